"""Builders of ops; the names in errors of functions made of ops, and the errors in their docs."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from ....core.errors import BackendMismatch, GradtapeError
from ....core.extend import BinaryOp, Op, TensorSpec, UnaryOp, beside_tensors, broadcast_shapes
from .axes import reduced_axes
from .kernels import SCALARS

#: The ops of this package, in the order of definition.
OPS: list[Op] = []
Function = TypeVar("Function", bound=Callable[..., Any])


def op(name: str, kernel: str | Callable[..., Any], kind: type[Op] = Op, **record: Any) -> Op:
    """Make an op and list it for the plugin."""
    made = kind(name, kernel, verified=True, **record)
    OPS.append(made)
    return made


def named(function: Function) -> Function:
    """Put a public function's name into the errors of the ops that it calls."""
    return _carrying(function.__name__, function)


def named_in(space: str) -> Callable[[Function], Function]:
    """Return :func:`named` for functions of a namespace; errors show its name, too."""
    return lambda function: _carrying(f"{space}.{function.__name__}", function)


def _carrying(name: str, function: Function) -> Function:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return function(*args, **kwargs)
            except BackendMismatch:
                # again, with Python's numbers on the backend of the tensors among the arguments
                elsewhere = beside_tensors((args, kwargs))
                if elsewhere is None:
                    raise
                with elsewhere:
                    return function(*args, **kwargs)
        except (IndexError, TypeError, ValueError, ArithmeticError) as error:
            text = _renamed(name, error)
            if text is None:
                raise
            try:
                renamed = type(error)(text)
            except TypeError:  # some of NumPy's error types are not made from a message
                renamed = TypeError(text)
            # the user sees one error, from where it was raised, under the name that was called
            raise renamed.with_traceback(error.__traceback__) from error.__cause__

    return call  # type: ignore[return-value]


def _renamed(name: str, error: Exception) -> str | None:
    """Return the new text of an error; None if it has a name or is not about arguments."""
    if isinstance(error, GradtapeError) and not isinstance(error, BackendMismatch):
        return None
    text = str(error)
    if re.match(rf"{re.escape(name)}\b", text):
        return None
    return f"{name}: {_INNER_NAME.sub('', text)}"


_INNER_NAME = re.compile(r"^([\w.]+(::\w+)?: )+")


def shapes_of(specs: Sequence[Any]) -> list[Any]:
    """Return the shapes of specs; a Python scalar has none."""
    return [() if isinstance(spec, SCALARS) else spec.shape for spec in specs]


def result_dtype(kernel: str | Callable[..., Any], specs: Sequence[Any], **params: Any) -> Any:
    """Return the dtype of a kernel's result, found by running it on empty arrays."""
    empty = [x if isinstance(x, SCALARS) else np.empty(0, x.dtype) for x in specs]
    run = getattr(np, kernel) if isinstance(kernel, str) else kernel
    result = run(*empty, **params) if isinstance(kernel, str) else run(np, *empty, **params)
    return result.dtype


def elementwise(
    name: str,
    kernel: str | Callable[..., Any] | None = None,
    doc: str = "",
    kind: type[Op] | None = None,
    holomorphic: bool = True,
    floating: bool = False,
    record: Mapping[str, Any] | None = None,
    **rules: Callable[..., Any] | None,
) -> Op:
    """Make an elementwise op: its inputs broadcast, and its gradient rules use their names.

    ``kernel`` is a function name in the array namespace (the op's own name by default) or
    ``kernel(xp, *arrays)``. ``record`` has further arguments of :class:`Op`.
    """
    kernel = kernel or name
    inputs = tuple(rules)

    def infer(*specs: TensorSpec, **params: Any) -> tuple[Any, Any]:
        shape = broadcast_shapes(*shapes_of(specs), op=name)
        return shape, result_dtype(kernel, specs, **params)

    return op(
        name,
        kernel,
        kind or {1: UnaryOp, 2: BinaryOp}.get(len(inputs), Op),
        inputs=inputs,
        gradients=rules,
        infer=infer,
        broadcasts=len(inputs) > 1,
        holomorphic=holomorphic,
        batch="elementwise",
        floating=floating,
        doc=doc,
        **(record or {}),
    )


def same_shape(
    name: str, dtype: Callable[[Any], Any] | None = None, parameter: str = "axis"
) -> Callable[..., tuple[Any, Any]]:
    """Return the shape rule of an op that keeps the shape; its axis, if any, must exist."""

    def infer(x: Any, **params: Any) -> tuple[Any, Any]:
        axis = params[parameter]
        if x.shape is not None and axis is not None:
            reduced_axes(axis, len(x.shape), name)
        return x.shape, x.dtype if dtype is None else dtype(x.dtype)

    return infer


def same_spec(x: Any, **params: Any) -> tuple[Any, Any]:
    return x.shape, x.dtype


# -- docstrings of functions -----------------------------------------------------------------------
#
# The names and kinds of a function's parameters determine what it refuses, as an op's record does
# for an op. A docstring lists an exception itself if the function raises it for other reasons.

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
    implied: dict[str, list[str]] = {}
    for _, error, reason in implied_errors(function):
        if f"{error.rpartition('.')[2]}\n" not in listed:
            implied.setdefault(error, []).append(reason)
    if not implied:
        return doc
    title = "" if listed else f"\n\n{margin}Raises\n{margin}------"
    told = "".join(
        f"\n{margin}{error}\n{margin}    If {_joined(reasons, f'{margin}    ')}."
        for error, reasons in implied.items()
    )
    return f"{doc[:end].rstrip()}{title}{told}\n{doc[end:]}"


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
    return (", " if sum(map(len, parts)) < 80 else f",\n{margin}").join(parts)
