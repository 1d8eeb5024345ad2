"""The errors that functions made of ops have in common: their docstrings need not list them.

The names and kinds of a function's parameters tell what it refuses, as an op's record does for an
op. A docstring lists an exception itself if the function raises it for other reasons.
"""

from __future__ import annotations

from types import FunctionType, ModuleType

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
    ("dtype", "Any"): {"TypeError": "{} is not a dtype"},
    ("shape", "int | Sequence[int]"): {
        "TypeError": "{} does not hold integers",
        "ValueError": "a size is negative",
    },
    ("where", "Any"): {"ValueError": "{} does not broadcast to the shape of ``x``"},
    ("num_partitions", "int"): {},
    ("seed", "int"): {},
    ("", "int"): _INTEGER,
    ("", "int | None"): _INTEGER,
}
#: The sections that follow the errors.
_NEXT = ("Warns", "See Also", "Notes", "References", "Examples")


def complete_docstrings(module: ModuleType) -> None:
    """Complete the docstrings of a module's public functions: those that have examples."""
    for value in vars(module).values():
        if isinstance(value, FunctionType) and value.__module__ == module.__name__:
            doc = value.__doc__
            if doc is not None and "Examples\n" in doc:  # python -OO leaves none
                value.__doc__ = completed(doc, getattr(value, "__wrapped__", value))


def completed(doc: str, function: FunctionType) -> str:
    """Return a docstring with the errors that it does not list."""
    margin = " " * (len(doc) - len(doc.rstrip(" ")))  # that of the closing quotes
    starts = (doc.find(f"\n{margin}{title}\n{margin}---") for title in _NEXT)
    end = min(start for start in starts if start >= 0)
    _, _, listed = doc[:end].partition(f"\n{margin}Raises\n")
    told = "".join(
        f"\n{margin}{error}\n{margin}    If {_joined(reasons, f'{margin}    ')}."
        for error, reasons in _errors(function).items()
        if f"{error.rpartition('.')[2]}\n" not in listed
    )
    if not told:
        return doc
    title = "" if listed else f"\n\n{margin}Raises\n{margin}------"
    return f"{doc[:end].rstrip()}{title}{told}\n{doc[end:]}"


def _errors(function: FunctionType) -> dict[str, list[str]]:
    """Return what arguments are refused for, by exception."""
    code, kinds = function.__code__, function.__annotations__
    if any(str(kind).startswith("Callable") for kind in kinds.values()):
        return {}  # its arguments are what the function that it calls takes
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    needed = names[: code.co_argcount - len(function.__defaults__ or ())]
    arrays = [x for x in needed if kinds[x] == "Any" and (x, "Any") not in _REASONS]
    found: dict[str, list[str]] = {}
    if arrays or kinds.get("arrays") == "Any":
        one = len(arrays) == 1 and arrays != ["arrays"]
        subject = f"``{arrays[0]}``" if one else "an argument"
        found["TypeError"] = [f"{subject} is not a tensor, an array or a number"]
    for name in names:
        others = _REASONS.get(("", kinds[name]), {})
        for error, reason in _REASONS.get((name, kinds[name]), others).items():
            found.setdefault(error, []).append(reason.format(f"``{name}``"))
    return found


def _joined(reasons: list[str], margin: str) -> str:
    *most, last = reasons
    parts = [*most, f"or {last}"] if most else [last]
    return (", " if sum(map(len, parts)) < 80 else f",\n{margin}").join(parts)
