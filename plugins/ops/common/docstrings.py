"""What docstrings of functions made of ops leave out: usual parameters, and implied errors.

The names and annotations of a function's parameters determine what it refuses, as an op's record
does for an op. A docstring describes a parameter itself if it is another, and lists an exception
itself if the function raises it for other reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

_AXIS_ERROR = "numpy.exceptions.AxisError"
_ONE_AXIS = {_AXIS_ERROR: "the axis is out of bounds"}
_AXES = {
    "TypeError": "{} does not hold integers",
    "ValueError": "an axis is given twice",
    _AXIS_ERROR: "an axis is out of bounds",
}
_INTEGER = {"TypeError": "{} is not an integer"}
#: What an argument is refused for, by the parameter's name ("" for any other) and annotation.
_REASONS: dict[tuple[str, str], dict[str, str]] = {
    ("axis", "int"): _INTEGER | _ONE_AXIS,
    ("axis", "int | None"): {"TypeError": "{} is neither None nor one integer"} | _ONE_AXIS,
    ("axis", "Any"): _AXES,
    ("axes", "Any"): {x: _AXES[x] for x in ("TypeError", _AXIS_ERROR)},
    ("axes", "int | Sequence[int] | None"): _AXES,
    ("axis2", "int"): _INTEGER | {_AXIS_ERROR: "an axis is out of bounds"},
    ("device", "str | None"): {"LookupError": "no plugin provides the backend of {}"},
    ("dtype", "Any"): {"TypeError": "{} is not a dtype"},
    ("shape", "int | Sequence[int]"): {
        "TypeError": "{} does not hold integers",
        "ValueError": "a size is negative",
    },
    ("where", "Any"): {"ValueError": "{} does not broadcast to the shape of ``x``"},
    ("n", "int | None"): _INTEGER | {"ValueError": "there are no points"},
    ("norm", "str | None"): {"ValueError": "there is no such norm"},
    ("num_partitions", "int"): {},
    ("s", "Any"): {"ValueError": "the numbers of sizes and axes differ, there are no points"},
    ("seed", "int"): {},
    ("", "int"): _INTEGER,
    ("", "int | None"): _INTEGER,
}
#: What a parameter usually is, by its name and annotation.
_PARAMETERS = {
    ("axis", "Any"): "The axis or axes to reduce; all by default.",
    ("device", "str | None"): (
        "The device of the result, as ``tensor.device`` names it; by default that of new tensors."
    ),
    ("dtype", "Any"): "The result's dtype; the default dtype if not given.",
    ("generator", "Any"): (
        "The :class:`gradtape.random.Generator` that draws; the shared one by default."
    ),
    ("image", "Any"): "Images of shape ``(..., height, width, channels)``.",
    ("k", "int"): (
        "The diagonal: 0 (the default) for the main one, positive above it, negative below it."
    ),
    ("keepdims", "bool"): "Leave the axes in the result, with size 1.",
    ("norm", "str | None"): "As for :func:`fft`.",
    ("s", "Any"): "The number of points along each axis, -1 for its own size.",
    ("shape", "int | Sequence[int]"): "One size or a sequence of them.",
    ("where", "Any"): (
        "Which elements count: booleans that broadcast to the shape of ``x``; all by default."
    ),
    ("x", "Any"): "A tensor of any shape and dtype.",
}
#: The sections that follow the errors.
_NEXT = ("Warns", "See Also", "Notes", "References", "Examples")


#: The functions whose docstrings are complete; another public name may be for the same one.
_COMPLETE: set[FunctionType] = set()


def complete_docstring(function: FunctionType) -> None:
    """Complete the docstring of a public function, one that has examples; once."""
    doc = function.__doc__
    if doc is None or "Examples\n" not in doc or function in _COMPLETE:  # python -OO leaves none
        return
    _COMPLETE.add(function)
    function.__doc__ = completed(doc, getattr(function, "__wrapped__", function))


def completed(doc: str, function: FunctionType) -> str:
    """Return a docstring with the parameters and the errors that it does not list."""
    margin = "\n" + " " * (len(doc) - len(doc.rstrip(" ")))  # that of the closing quotes
    doc = _with_parameters(doc, function.__annotations__, margin)
    end = _start_of(_NEXT, doc, margin)
    _, _, listed = doc[:end].partition(f"{margin}Raises\n")
    implied: dict[str, list[str]] = {}
    for _, error, reason in implied_errors(function):
        if f"{error.rpartition('.')[2]}\n" not in listed:
            implied.setdefault(error, []).append(reason)
    if not implied:
        return doc
    title = "" if listed else f"\n{margin}Raises{margin}------"
    told = "".join(
        f"{margin}{error}{margin}    If {_joined(reasons, f'{margin}    ')}."
        for error, reasons in implied.items()
    )
    return f"{doc[:end].rstrip()}{title}{told}\n{doc[end:]}"


def _with_parameters(doc: str, kinds: dict[str, Any], margin: str) -> str:
    """Return a docstring with the usual descriptions of parameters that it does not describe."""
    title = f"\n{margin}Parameters{margin}----------"
    *names, _ = kinds
    for place in reversed(range(len(names))):
        name = names[place]
        text = _PARAMETERS.get((name, kinds[name]))
        described = (f"{margin}{name}\n", f"{margin}{name}, ", f", {name}\n")
        if text is None or any(head in doc for head in described):
            continue
        end = _start_of(("Returns", "Yields", "Raises", *_NEXT), doc, margin) - 1  # an empty line
        if title not in doc:
            doc, end = f"{doc[:end]}{title}{doc[end:]}", end + len(title)
        start, later = doc.find(title), names[place + 1 :]
        heads = [f"{margin}{x}{after}" for x in later for after in ("\n", ", ")]
        end = min([x for head in heads if (x := doc.find(head, start)) >= 0] or [end])
        doc = f"{doc[:end]}{margin}{name}{margin}    {text}{doc[end:]}"
    return doc


def _start_of(titles: Sequence[str], doc: str, margin: str) -> int:
    """Return where the first of some sections starts, or the end if there is none."""
    starts = (doc.find(f"{margin}{title}{margin}---") for title in titles)
    return min((start for start in starts if start >= 0), default=len(doc))


def implied_errors(function: FunctionType) -> Iterator[tuple[str, str, str]]:
    """Give the errors that parameters imply: a parameter, an exception and the reason."""
    code, kinds = function.__code__, function.__annotations__
    if any(str(kind).startswith("Callable") for kind in kinds.values()):
        return  # its arguments are what the function that it calls takes
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    needed = names[: code.co_argcount - len(function.__defaults__ or ())]
    arrays = [x for x in needed if kinds[x] == "Any" and (x, "Any") not in _REASONS]
    if arrays or kinds.get("arrays") == "Any":
        one = len(arrays) == 1 and arrays != ["arrays"]
        subject = f"``{arrays[0]}``" if one else "an argument"
        yield "".join(arrays[:1]), "TypeError", f"{subject} is not a tensor, an array or a number"
    for name in names:
        others = _REASONS.get(("", kinds[name]), {})
        for error, reason in _REASONS.get((name, kinds[name]), others).items():
            yield name, error, reason.format(f"``{name}``")


def _joined(reasons: list[str], margin: str) -> str:
    *most, last = reasons
    parts = [*most, f"or {last}"] if most else [last]
    return (", " if sum(map(len, parts)) < 80 else f",{margin}").join(parts)
