"""``tf.strings``: text in arrays of bytes, which ops refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..dtypes import string
from ..tensors import constant, convert_to_tensor

__all__ = ["as_string", "each_text", "format", "texts"]


def texts(value: Any) -> Any:
    """Return text as an array of bytes."""
    held = value if hasattr(value, "array") else constant(value, string)
    return np.asarray(held.array)


def each_text(function: Callable[..., Any], *values: Any, dtype: Any = object) -> Any:
    """Apply a function to each text."""
    found = np.vectorize(function, otypes=[dtype])(*values)
    return constant(np.asarray(found, dtype), string if dtype is object else None)


def as_string(
    input: Any,
    precision: int = -1,
    scientific: bool = False,
    shortest: bool = False,
    width: int = -1,
    fill: str = "",
    name: Any = None,
) -> Any:
    """Return numbers as text, with ``precision`` digits after the point."""
    x = convert_to_tensor(input).numpy()
    kind = "e" if scientific else "f" if x.dtype.kind == "f" and not shortest else ""
    digits = f".{precision if precision >= 0 else 6}" if kind else ""
    wide = f"{fill}{width}" if width > 0 else ""
    return each_text(lambda n: f"{{:{wide}{digits}{kind}}}".format(n).encode(), x)


def format(template: str, inputs: Any, placeholder: str = "{}", summarize: int = 3) -> Any:
    """Return ``template`` with each ``placeholder`` replaced by a tensor."""
    parts = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    text = template
    for part in parts:
        text = text.replace(placeholder, shown(part, summarize), 1)
    return constant(text)


def shown(value: Any, summarize: int | None = 3) -> str:
    """Return a value as TensorFlow prints it: ``summarize`` elements at each end of an axis."""
    if isinstance(value, (list, tuple)):
        ends = "[]" if isinstance(value, list) else "()"
        return f"{ends[0]}{', '.join(shown(x, summarize) for x in value)}{ends[1]}"
    if isinstance(value, dict):
        inner = (f"{key!r}: {shown(x, summarize)}" for key, x in value.items())
        return f"{{{', '.join(inner)}}}"
    if not hasattr(value, "numpy") and not isinstance(value, np.ndarray):
        return str(value)
    x = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    if x.dtype == object:
        x = np.vectorize(lambda b: b.decode(), otypes=[object])(x)
        return str(x[()]) if not x.ndim else f"[{' '.join(map(repr, x.tolist()))}]"
    few = 3 if summarize is None else summarize
    cut: Any = {"threshold": x.size + 1 if few < 0 else 0, "edgeitems": abs(few)}
    return np.array2string(x, formatter={"float_kind": _shortest}, **cut)


def _shortest(value: Any) -> str:
    """Return a float with as many digits as identify it."""
    few = f"{value:.6g}"
    return few if type(value)(few) == value else f"{value:.{9 if value.itemsize < 8 else 17}g}"
