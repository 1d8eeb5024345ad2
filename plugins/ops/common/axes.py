"""Axes from users and for rules: checked, counted from 0, and removed from shapes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import Tensor

Axis = int | tuple[int, ...] | None


def _number(axis: Any) -> int:
    """Return an axis as an int; refuse a boolean, which was meant as another argument."""
    if axis is True or axis is False:
        raise TypeError
    return operator.index(axis)


def as_axis(axis: Any, name: str) -> Axis:
    """Return a user's ``axis`` as a parameter: None, an int, or a tuple of ints."""
    try:
        if axis is None:
            return None
        if isinstance(axis, (tuple, list)):
            return tuple(_number(n) for n in axis)
        return _number(axis)
    except TypeError:
        raise TypeError(
            f"{name}: axis must be None, an integer or a tuple of integers, got {axis!r}"
        ) from None


def axis_over(x: Any, axis: Any, name: str) -> Axis:
    """Return the axis or axes of a sum or an extremum of ``x``, as a parameter.

    As in NumPy, an array without axes may also be reduced over axis 0.
    """
    along = as_axis(axis, name)
    if along is None:
        return None
    shape = x.array.shape if type(x) is Tensor else getattr(x, "shape", None)
    if shape == () and along in (0, -1, (0,), (-1,)):
        return None
    return along


def one_axis(axis: Any, name: str) -> int:
    """Return a single axis as an int."""
    try:
        return _number(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be an integer, got {axis!r}") from None


def axis_of(x: Any, axis: Any, name: str) -> int:
    """Return a single axis of ``x`` as an int, checked if the rank is known.

    Raises
    ------
    numpy.exceptions.AxisError
        If it is out of bounds.
    """
    axis = one_axis(axis, name)
    if x.shape is not None:
        reduced_axes(axis, len(x.shape), name)
    return axis


def part_of(x: Any, axis: int, part: Any) -> Any:
    """Return ``x`` with an index applied along one axis, for any rank."""
    if axis >= 0:
        return x[(*(slice(None),) * axis, part)]
    return x[(Ellipsis, part, *(slice(None),) * (-axis - 1))]


def reduced_axes(axis: Axis, rank: int, name: str) -> tuple[int, ...]:
    """Return the axes selected by ``axis`` as numbers from 0.

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
    """Return the shape after a reduction of ``shape`` (unknown sizes and rank included)."""
    if shape is None:
        return () if axis is None and not keepdims else None
    axes = reduced_axes(axis, len(shape), name)
    if keepdims:
        return tuple(1 if i in axes else n for i, n in enumerate(shape))
    return tuple(n for i, n in enumerate(shape) if i not in axes)


def axis_number(shape: Any, axis: int, name: str) -> int:
    (along,) = reduced_axes(axis, len(shape), name)
    return along


def optional_axis(axis: Any, name: str) -> int | None:
    try:
        return None if axis is None else _number(axis)
    except TypeError:
        raise TypeError(f"{name}: axis must be None or one integer, got {axis!r}") from None
