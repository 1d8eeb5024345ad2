"""New tensors of a given shape, on the current backend."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    Operators,
    Tensor,
    as_dtype,
    as_shape,
    as_tensor,
    beside,
    default_dtype,
    host_array,
    ops,
)
from ..common.op_builders import named
from ..common.ranks import known_rank

__all__ = ["arange", "eye", "full", "linspace", "ones", "zeros"]


def number_dtype(dtype: Any) -> np.dtype[Any]:
    return default_dtype() if dtype is None else as_dtype(dtype)


@named
def zeros(shape: int | Sequence[int], dtype: Any = None) -> Tensor:
    """Return a tensor of zeros.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A tensor of that shape, on the current backend.

    Raises
    ------
    TypeError
        If ``shape`` holds no integers, or ``dtype`` is no dtype.
    ValueError
        If a size is negative.

    Examples
    --------
    >>> gt.zeros((2, 3)).tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    return as_tensor(np.zeros(as_shape(shape, "zeros"), number_dtype(dtype)))


@named
def ones(shape: int | Sequence[int], dtype: Any = None) -> Tensor:
    """Return a tensor of ones.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A tensor of that shape, on the current backend.

    Raises
    ------
    TypeError
        If ``shape`` holds no integers, or ``dtype`` is no dtype.
    ValueError
        If a size is negative.

    Examples
    --------
    >>> gt.ones(3, dtype="int32").tolist()
    [1, 1, 1]
    """
    return as_tensor(np.ones(as_shape(shape, "ones"), number_dtype(dtype)))


@named
def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None) -> Tensor:
    """Return a tensor filled with one value.

    Parameters
    ----------
    shape
        One size or a sequence of them.
    fill_value
        A number, or a tensor that broadcasts to ``shape`` (gradients reach it).
    dtype
        The value's own dtype if not given.

    Returns
    -------
    A tensor of that shape.

    Raises
    ------
    TypeError
        If ``shape`` holds no integers, or ``dtype`` is no dtype.
    ValueError
        If a size is negative, or ``fill_value`` does not broadcast to ``shape``.

    Examples
    --------
    >>> gt.full((2, 2), 7.0).tolist()
    [[7.0, 7.0], [7.0, 7.0]]
    """
    value = as_tensor(fill_value, dtype)
    return ops["broadcast_to"](value, shape=as_shape(shape, "full"))


@named
def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return a matrix with ones on a diagonal and zeros elsewhere.

    Parameters
    ----------
    n
        The number of rows.
    m
        The number of columns; ``n`` if not given.
    k
        Which diagonal: above the main one if positive, below it if negative; 0 by default.
    dtype
        The result's dtype; the default dtype if not given.

    Returns
    -------
    A tensor of shape ``(n, m)``, on the current backend.

    Raises
    ------
    TypeError
        If a size is no integer, or ``dtype`` is no dtype.
    ValueError
        If a size is negative.

    Examples
    --------
    >>> gt.eye(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> gt.eye(2, 3, k=1).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    return as_tensor(np.eye(n, m, k, dtype=number_dtype(dtype)))


@named
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return evenly spaced numbers from ``start`` up to, but without, ``stop``.

    Parameters
    ----------
    start
        The first number; alone it is ``stop``, and the first number 0.
    stop
        The bound, which is left out.
    step
        The distance between numbers, 1 by default; it may be negative, but not 0.
    dtype
        The result's dtype. If not given, it is ``int64`` for Python's integers and the default
        dtype for its floats; those of tensors promote.

    Returns
    -------
    A vector of ``ceil((stop - start) / step)`` elements, none if that is negative. It gets no
    gradient.

    Raises
    ------
    ZeroDivisionError
        If ``step`` is 0.
    TypeError
        If a bound is no number, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.arange(4).tolist()
    [0, 1, 2, 3]
    >>> gt.arange(0.0, 1.0, 0.25).tolist()
    [0.0, 0.25, 0.5, 0.75]
    """
    bounds = (0, start, step) if stop is None else (start, stop, step)
    if dtype is None:
        # Python integers are weak, the step by default too
        dtype = np.result_type(*(x if type(x) is int else host_array(x) for x in bounds))
    return as_tensor(np.arange(*bounds, dtype=as_dtype(dtype)))


@named
def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None
) -> Tensor:
    """Return evenly spaced numbers from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop
        The bounds: numbers or tensors, which broadcast. Gradients reach tensors.
    num
        How many numbers, 50 by default.
    endpoint
        Whether ``stop`` is the last number; else it is one step beyond.
    dtype
        The result's dtype; if not given the default dtype for numbers, and for tensors their own,
        integers promoted with the default dtype.

    Returns
    -------
    A vector of ``num`` elements; for tensors of some shape, a tensor with a new first axis of that
    size.

    Raises
    ------
    ValueError
        If ``num`` is negative, or the bounds do not broadcast.
    TypeError
        If ``num`` is no integer, or ``dtype`` is no dtype.

    Examples
    --------
    >>> gt.linspace(0.0, 1.0, 5).tolist()
    [0.0, 0.25, 0.5, 0.75, 1.0]
    >>> gt.linspace(0.0, 1.0, 4, endpoint=False).tolist()
    [0.0, 0.25, 0.5, 0.75]
    """
    if isinstance(start, Operators) or isinstance(stop, Operators):
        tensor = as_tensor(start if isinstance(start, Operators) else stop)
        start, stop = beside(start, tensor), beside(stop, tensor)
        way, num = stop - start, operator.index(num)
        kind = np.result_type(
            way.dtype, number_dtype(dtype) if way.dtype.kind in "biu" else way.dtype
        )
        shares = np.arange(num) / max(num - 1 if endpoint else num, 1)
        column = beside(shares.astype(kind).reshape(-1, *[1] * known_rank(way, "linspace")), way)
        result = start + way * column
        return result if dtype is None else result.astype(dtype)
    return as_tensor(np.linspace(start, stop, num, endpoint=endpoint, dtype=number_dtype(dtype)))
