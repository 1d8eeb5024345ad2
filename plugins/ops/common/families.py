"""What the ops of a family share: shape rules, dtype rules, and the helpers that build the ops."""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from ....core.errors import BackendMismatch, GradtapeError
from ....core.extend import BinaryOp, Op, TensorSpec, UnaryOp, broadcast_shapes

__all__ = [
    "OPS",
    "as_axis",
    "cast_to",
    "elementwise",
    "kind_of",
    "named",
    "op",
    "reals",
    "reduced_axes",
    "reduced_shape",
    "result_dtype",
    "shapes_of",
    "standard",
]

SCALARS = (bool, int, float, complex)
Axis = int | tuple[int, ...] | None
Function = TypeVar("Function", bound=Callable[..., Any])

#: The ops of this package, in the order of definition.
OPS: list[Op] = []


def op(name: str, kernel: str | Callable[..., Any], kind: type[Op] = Op, **record: Any) -> Op:
    """Make an op and list it for the plugin."""
    made = kind(name, kernel, **record)
    OPS.append(made)
    return made


def named(function: Function) -> Function:
    """Let errors from the ops that a public function is made of carry the function's name."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (IndexError, TypeError, ValueError, ArithmeticError) as error:
            text = _renamed(function.__name__, error)
            if text is None:
                raise
            try:
                renamed = type(error)(text)
            except TypeError:  # NumPy has error types of its own that are not made from a message
                renamed = TypeError(text)
            # the user sees one error: where it was raised, and in the user's own words
            raise renamed.with_traceback(error.__traceback__) from error.__cause__

    return call  # type: ignore[return-value]


def _renamed(name: str, error: Exception) -> str | None:
    """Return what an error should say, None if it says so already or is not about arguments."""
    if isinstance(error, GradtapeError) and not isinstance(error, BackendMismatch):
        return None
    text = str(error)
    if re.match(rf"{name}\b", text):
        return None
    return f"{name}: {_INNER_NAME.sub('', text)}"


_INNER_NAME = re.compile(r"^(\w+(::\w+)?: )+")


def shapes_of(specs: Sequence[Any]) -> list[Any]:
    """Return the shapes of specs; a Python scalar has none."""
    return [() if isinstance(spec, SCALARS) else spec.shape for spec in specs]


def result_dtype(kernel: str | Callable[..., Any], specs: Sequence[Any], **params: Any) -> Any:
    """Return the dtype that a kernel gives, by running it on arrays without elements."""
    empty = [x if isinstance(x, SCALARS) else np.empty(0, x.dtype) for x in specs]
    run = getattr(np, kernel) if isinstance(kernel, str) else kernel
    result = run(*empty, **params) if isinstance(kernel, str) else run(np, *empty, **params)
    return result.dtype


def kind_of(dtype: Any) -> str:
    """Return NumPy's letter for the kind of a dtype of any array library: ``"f"``, ``"c"``, ..."""
    kind = getattr(dtype, "kind", None)
    return kind or np.dtype(str(dtype).rpartition(".")[2]).kind


def cast_to(xp: Any, x: Any, dtype: Any) -> Any:
    """Return an array cast to ``dtype`` (or its name); complex values lose the imaginary part."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if kind_of(x.dtype) == "c" and dtype.kind != "c":
        x = xp.real(x)
    return x.astype(dtype) if hasattr(x, "astype") else xp.astype(x, getattr(xp, dtype.name))


def standard(xp: Any, name: str, older: str) -> Callable[..., Any]:
    """Return a function of the array API standard, by its older name where that is all there is."""
    found: Callable[..., Any] = getattr(xp, name, None) or getattr(xp, older)
    return found


def reals(x: Any) -> Any:
    """Return ``x``, for kernels whose formulas hold for real numbers only.

    Raises
    ------
    TypeError
        If ``x`` is complex.
    """
    if kind_of(x.dtype) == "c":
        raise TypeError(f"expected real numbers, got dtype {x.dtype}")
    return x


def elementwise(
    name: str,
    kernel: str | Callable[..., Any] | None = None,
    doc: str = "",
    kind: type[Op] | None = None,
    holomorphic: bool = True,
    **rules: Callable[..., Any] | None,
) -> Op:
    """Make an elementwise op: its rules are named for its inputs, which broadcast.

    ``kernel`` is a function name in the array namespace (the op's own name by default) or
    ``kernel(xp, *arrays)``.
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
        doc=doc,
    )


def as_axis(axis: Any, name: str) -> Axis:
    """Return what a user gave as ``axis`` as a parameter: None, an int, or a tuple of ints."""
    try:
        if axis is None:
            return None
        if isinstance(axis, (tuple, list)):
            return tuple(operator.index(n) for n in axis)
        return operator.index(axis)
    except TypeError:
        raise TypeError(
            f"{name}: axis must be None, an integer or a tuple of integers, got {axis!r}"
        ) from None


def reduced_axes(axis: Axis, rank: int, name: str) -> tuple[int, ...]:
    """Return the axes meant by ``axis`` as numbers from 0.

    Raises
    ------
    numpy.exceptions.AxisError
        If one is out of bounds.
    ValueError
        If one is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = axis if isinstance(axis, tuple) else (axis,)
    for n in given:
        if not -rank <= n < rank:
            raise np.exceptions.AxisError(
                f"{name}: axis {n} is out of bounds for an array of dimension {rank}"
            )
    axes = tuple(n % rank for n in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{name}: duplicate value in axis {axis!r}")
    return axes


def reduced_shape(shape: Any, axis: Axis, keepdims: bool, name: str) -> Any:
    """Return the shape that is left of ``shape`` (unknown sizes and rank included)."""
    if shape is None:
        return () if axis is None and not keepdims else None
    axes = reduced_axes(axis, len(shape), name)
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)
