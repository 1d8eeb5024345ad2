"""The docstrings and signatures of ops: their authors' text, completed from the op's record.

They are built when they are first read, so that they cost nothing at import or in a call.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from ..base.array_types import TensorSpec

if TYPE_CHECKING:
    from .primitive import Primitive

#: numpydoc's sections, in its order.
SECTIONS = (
    "Parameters",
    "Returns",
    "Yields",
    "Raises",
    "Warns",
    "See Also",
    "Notes",
    "References",
    "Examples",
)
_KINDS = {"bool": "boolean", "int32": "an integer", "float32": "floating", "complex64": "complex"}


def signature_of(op: Primitive) -> inspect.Signature:
    """Return the signature of an op: arrays are positional, parameters keyword-only."""
    kinds = inspect.Parameter
    arrays, rest = _as_called(op)
    if not arrays:
        arrays = [
            kinds(name.lstrip("*"), kinds.VAR_POSITIONAL)
            if name.startswith("*")
            else kinds(name, kinds.POSITIONAL_ONLY)
            for name in op.inputs
        ]
        rest = [kinds(name, kinds.KEYWORD_ONLY, default=x) for name, x in op.defaults.items()]
    return inspect.Signature([*arrays, *rest])


def _as_called(op: Primitive) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """Return the parameters of a subclass's own ``__call__``, or empty lists to use the record."""
    given = list(inspect.signature(type(op).__call__).parameters.values())[1:]
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in given):
        return [], []
    arrays = [
        p.replace(name=name, kind=p.POSITIONAL_ONLY, annotation=p.empty)
        for name, p in zip(op.inputs, given)
    ]
    return arrays, given[len(arrays) :]


def docstring_of(op: Primitive) -> str:
    """Return an op's docstring: ``op.doc``, completed from the record."""
    text, sections = parsed(op.doc)
    signature = signature_of(op)
    sections.setdefault("Parameters", _arrays(op) + _settings(op))
    if "name" in signature.parameters and "name" not in sections["Parameters"].splitlines():
        sections["Parameters"] += "\nname\n    A label, as in TensorFlow; it has no effect."
    sections.setdefault("Returns", _returns(op))
    sections.setdefault("Raises", _raises(op))
    parts = [text or f"Run the op {op.name!r}."]
    titles = [*SECTIONS, *(title for title in sections if title not in SECTIONS)]
    parts += [
        f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in titles if title in sections
    ]
    return "\n\n".join(parts)


def parsed(doc: str) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring before its sections, and the sections by title."""
    lines = inspect.cleandoc(doc).splitlines()
    starts = [
        i
        for i in range(len(lines) - 1)
        if lines[i] and len(lines[i + 1]) >= 3 and not lines[i + 1].strip("-")
    ]
    ends = [*starts, len(lines)]
    sections = {lines[i]: "\n".join(lines[i + 2 : end]).strip() for i, end in zip(starts, ends[1:])}
    return "\n".join(lines[: ends[0]]).strip(), sections


# -- sections from the record ----------------------------------------------------------------------


def _arrays(op: Primitive) -> str:
    several = len(op.inputs) > 1 or op.variadic
    if op.batch != "elementwise":
        what = "Tensors or arrays." if several else "A tensor or an array."
    elif several:
        what = "Tensors, arrays or numbers; their shapes broadcast."
    else:
        what = "A tensor, an array or a number."
    return f"{', '.join(op.inputs)}\n    {what}"


def _settings(op: Primitive) -> str:
    told = ""
    for name, default in op.defaults.items():
        needed = default is inspect.Parameter.empty
        told += f"\n{name}\n    A setting{'.' if needed else f', by default ``{default!r}``.'}"
    return told


def _returns(op: Primitive) -> str:
    if op.batch != "elementwise":
        return "A tensor; a list of tensors if the op has several outputs."
    several = len(op.inputs) > 1
    shape = "the broadcast shape" if several else f"the shape of ``{op.inputs[0]}``"
    results = _results(op)
    dtype = results["float32"] or results["int32"]
    if dtype is None:
        return f"A tensor of {shape}."
    if dtype == "bool":
        return f"A boolean tensor of {shape}."
    if dtype not in ("float32", "int32"):
        return f"A tensor of {shape} and of dtype ``{dtype}``."
    told = f"A tensor of {shape} and {'the promoted dtype' if several else 'of its dtype'}"
    if results["float32"] and (results["int32"] or "").startswith("float"):
        told += "; integers give floats"
    if results["complex64"] == "float32":
        told += "; complex numbers give real ones"
    return told + "."


def _raises(op: Primitive) -> str:
    several = len(op.inputs) != 1 or op.variadic
    subject = "an argument" if several else f"``{op.inputs[0]}``"
    elementwise = op.batch == "elementwise"
    forms = "a tensor, an array or a number" if elementwise else "a tensor or an array"
    results = _results(op) if elementwise else {}
    refused = [_KINDS[kind] for kind, dtype in results.items() if dtype is None]
    if len(refused) == len(results):  # the record does not say
        refused = []
    told = f"TypeError\n    If {subject} is {''.join(f'{kind}, ' for kind in refused)}"
    told += f"or not {forms}." if refused else f"not {forms}."
    if op.broadcasts and several:
        told += "\nValueError\n    If the shapes do not broadcast."
    elif op.infer is not None and not elementwise:
        told += "\nValueError\n    If the shapes or the settings do not fit."
    return told


def _results(op: Primitive) -> dict[str, str | None]:
    """Return an op's result dtype for arguments of each kind, None for a kind that it refuses."""
    found: dict[str, str | None] = {}
    for kind in _KINDS:
        specs = [TensorSpec((), kind) for _ in op.inputs]
        params: dict[str, Any] = dict(op.defaults)
        try:
            found[kind] = op.infer(*specs, **params)[1].name  # type: ignore[misc]
        except Exception:  # a plugin's rule may raise anything, and there must be a docstring
            found[kind] = None
    return found
