"""Values and names from files, as text that is safe to print or to put into a page."""

from __future__ import annotations

import html
import json
import math
import unicodedata
from typing import Any

import numpy as np

from ..errors import DamagedFile, printable
from ..records.schema import decode, read_spec

#: How much of a value or a name is shown; what is longer ends in "...".
_LONGEST = 200


def markup(text: Any, most: int = _LONGEST) -> str:
    """Return a text for HTML and SVG, between tags and within quotes."""
    return html.escape(printable(text, most), quote=True)


def width(text: str) -> int:
    """Return the number of columns of a text in a fixed-width font."""
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def counted(n: int, noun: str) -> str:
    """Return ``1 node``, ``1,200 nodes``."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{n:,} {noun if n == 1 else plural}"


def number_text(x: float) -> str:
    """Return a number with at most four digits, for people."""
    if isinstance(x, int):
        return f"{x:,}"
    return f"{x:.4g}" if math.isfinite(x) else str(x)


def strict_json(record: Any) -> str:
    """Return JSON text: no NaN, of printable ASCII; numbers that JSON lacks become strings."""
    text = json.dumps(_plain(record), indent=2, ensure_ascii=True, allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else str(float(value))
    return value.item() if isinstance(value, np.generic) else value


# -- values in files -------------------------------------------------------------------------------


def shown(
    item: Any,
    where: str,
    witnesses: list[str] | None = None,
    outputs: list[str] | None = None,
) -> str:
    """Return an encoded value as Python would print it, specs as their dtypes and shapes.

    Parameters
    ----------
    item
        A VALUE or TREE of the file.
    where
        What it describes, for errors.
    witnesses
        The names of the witnesses of formulas, where formulas are allowed.
    outputs
        The text for the outputs of a graph; ``output 0`` and so on by default.
    """

    def inside(x: Any) -> str:
        return shown(x, where, witnesses, outputs)

    if type(item) is list:
        return f"[{', '.join(map(inside, item))}]"
    if type(item) is not dict:
        return repr(item)
    if len(item) != 1:
        raise DamagedFile(f"{where}: not an encoded value: {str(item)[:80]!r}")
    ((tag, content),) = item.items()
    if tag == "spec":
        return str(read_spec(content, where))
    if tag == "output" and type(content) is int:
        known = outputs is not None and 0 <= content < len(outputs)
        return outputs[content] if outputs and known else f"output {content}"
    if tag == "tuple" and type(content) is list:
        comma = "," if len(content) == 1 else ""
        return f"({', '.join(map(inside, content))}{comma})"
    if tag == "dict" and type(content) is dict:
        return "{" + ", ".join(f"{key}: {inside(x)}" for key, x in content.items()) + "}"
    if tag == "size" and witnesses is not None:
        return expression_text(content, witnesses)
    if tag in ("float", "complex"):
        return str(decode(item))
    # a kind of value that came later is shown, not understood
    return f"{tag}({json.dumps(content, ensure_ascii=True)[:_LONGEST]})"


def expression_text(formula: Any, witnesses: list[str]) -> str:
    """Return a formula of sizes as an expression: ``(%3.shape[0] + 1) // 2``."""
    text = _expression(formula, witnesses)
    return text[1:-1] if type(formula) is list and text.startswith("(") else text


def _expression(formula: Any, witnesses: list[str]) -> str:
    if type(formula) is int:
        return str(formula)
    if type(formula) is dict:
        return str(decode(formula))
    if type(formula) is not list or not formula or type(formula[0]) is not str:
        raise DamagedFile(f"not a size: {str(formula)[:80]!r}")
    kind, *rest = formula
    if kind in ("size", "value"):
        numbers = all(type(n) is int and n >= 0 for n in rest)
        if not numbers or len(rest) != (2 if kind == "size" else 1) or rest[0] >= len(witnesses):
            raise DamagedFile(f"not a size: {str(formula)[:80]!r}")
        name = witnesses[rest[0]]
        return f"{name}.shape[{rest[1]}]" if kind == "size" else f"int({name})"
    texts = [_expression(x, witnesses) for x in rest]
    if kind == "neg" and len(texts) == 1:
        return f"(-{texts[0]})"
    if kind.isalpha():
        return f"{kind}({', '.join(texts)})"
    return f"({f' {kind} '.join(texts)})"
