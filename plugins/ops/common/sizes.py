"""Sizes, which may be expressions in a trace, and also None in shape rules."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.errors import TraceError
from ....core.extend import as_size, is_open, largest, ops, same_size, sizes_differ, smallest
from .op_builders import op


def whole_division(compute: Callable[[Any, Any], Any]) -> Any:
    """Return how a division computes with sizes, of which none may be 0 as a divisor."""

    def divide(a: Any, b: Any) -> Any:
        if not sizes_differ(b, 0):
            raise ZeroDivisionError  # allowed for tensors, not for sizes
        return compute(a, b)

    return np.frompyfunc(divide, 2, 1)


#: The larger and the smaller of two sizes, as ufuncs of arrays of objects.
LARGEST: Any = np.frompyfunc(largest, 2, 1)
SMALLEST: Any = np.frompyfunc(smallest, 2, 1)


def open_among(*values: Any) -> bool:
    """Return whether lists contain an unknown size, or an integer that a trace computes."""
    return any(
        open_among(*x)
        if isinstance(x, (list, tuple))
        else is_open(x) or getattr(getattr(x, "array", None), "traced", False)
        for x in values
        if type(x) is not int
    )


def as_sizes(given: Any, name: str) -> Any:
    """Return nested lists of integers as nested tuples; unknown ones stay as they are."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, (tuple, list)):
        return tuple(as_sizes(item, name) for item in given)
    return as_size(given, name)


def fixed(n: Any, name: str, what: str) -> Any:
    """Return a number that decides the form of a result, so that a trace must know it.

    Raises
    ------
    TraceError
        If it is unknown.
    """
    n = as_size(n, name)
    if is_open(n):
        raise TraceError(
            f"{name}: {what} decides the structure of a trace, so it must be known; got {n!r}, "
            "which is unknown while the function is traced. Give its TensorSpec the size, or "
            "compute with one tensor that has an axis of this size"
        )
    return n


def place_between(low: Any, high: Any, index: Any, size: Any) -> Any:
    """Return the position of an index, limited to two ends; None if its sign is unknown.

    A negative index counts from the end.
    """
    negative = index < 0
    if is_open(negative):
        return None
    return largest(size + index, low) if negative else smallest(index, high)


def elements(shape: Any) -> Any:
    """Return how many elements an array of a shape has; None if a size or the rank is unknown."""
    return None if shape is None or any(n is None for n in shape) else prod(shape)


def empty(shape: Any) -> bool:
    """Return whether an array of a shape is known to have no elements."""
    return shape is not None and any(same_size(n, 0) for n in shape)


def never_empty(x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``x``, padded with a 0 along axes that turn out empty in a run of a trace."""
    open_axes = tuple(i for i in axes if is_open(x.shape[i]))
    if not open_axes:
        return x
    sizes = tuple(largest(1, x.shape[i]) for i in open_axes)
    return ops["crop_or_pad"](x, sizes=sizes, axes=open_axes)


def _checked(condition: Any, message: str) -> None:
    if condition is False:
        raise ValueError(message)


def _check_kernel(xp: Any, x: Any, *, condition: bool, message: str) -> Any:
    _checked(condition, message)
    return x


def _check_spec(x: Any, condition: Any, message: str) -> tuple[Any, Any]:
    _checked(condition, message)
    return x.shape, x.dtype


op(
    "size_checked",
    _check_kernel,
    gradients={"x": lambda g: g},
    infer=_check_spec,
    holomorphic=True,
    batch=lambda op, xs, batched, params: op.raw(xs[0], **params),
    jvp="linear",
    doc="Return ``x``; raise if a comparison of sizes does not hold.",
)


def ensured(x: Any, condition: Any, message: str) -> Any:
    """Return ``x`` if a comparison of sizes holds; each run checks what a trace does not know.

    Raises
    ------
    ValueError
        If it does not hold.
    """
    if condition is True:
        return x
    _checked(condition, message)
    return ops["size_checked"](x, condition=condition, message=message)


def ensured_alike(x: Any, shape: Any, message: str) -> Any:
    """Return ``x`` if its shape is ``shape``; each run checks what a trace does not know.

    Raises
    ------
    ValueError
        If it is not. An unknown rank is not checked.
    """
    if x.shape is None or shape is None:
        return x
    _checked(len(x.shape) == len(shape), message)
    for n, m in zip(x.shape, shape, strict=True):
        x = ensured(x, n == m, message)
    return x
