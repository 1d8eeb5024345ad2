"""New tensors of numbers in even steps, in equal ratios, and on grids."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import (
    Operators,
    Tensor,
    as_dtype,
    as_tensor,
    beside,
    default_dtype,
    host_array,
    ops,
)
from ..common.op_builders import named
from ..common.ranks import known_rank
from .broadcasting import broadcast_arrays
from .creation import number_dtype
from .transposition import moveaxis

__all__ = ["arange", "geomspace", "linspace", "logspace", "meshgrid"]


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
    if start is None or step is None:
        raise TypeError(f"arange: start and step are numbers, got {start} and {step}")
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


def _finished(result: Any, dtype: Any, axis: int) -> Any:
    if dtype is not None:
        result = ops["cast"](result, dtype=as_dtype(dtype).name)
    return result if axis == 0 else moveaxis(result, 0, axis)


@named
def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: Any = 10.0,
    dtype: Any = None,
    axis: int = 0,
) -> Tensor:
    """Return powers of ``base``, with exponents evenly spaced from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop
        The first and last exponent: numbers or tensors, which broadcast.
    num
        How many powers, 50 by default.
    endpoint
        Whether ``stop`` is the last exponent; else it is one step beyond.
    base
        A positive number or tensor, 10 by default.
    dtype
        The result's dtype; the default dtype unless there are tensors.
    axis
        Where the axis of size ``num`` is; the first by default.

    Returns
    -------
    A tensor of the shape of ``start`` and ``stop`` broadcast together, with the new axis. Gradients
    reach ``start``, ``stop`` and ``base`` if they are tensors.

    Raises
    ------
    ValueError
        If ``num`` is negative, or ``start`` and ``stop`` do not broadcast.
    numpy.exceptions.AxisError
        If ``axis`` is out of bounds.

    Examples
    --------
    >>> gt.logspace(0, 3, 4, base=2.0).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    if not any(isinstance(x, Operators) for x in (start, stop, base)):
        return as_tensor(np.logspace(start, stop, num, endpoint, base, number_dtype(dtype), axis))
    if not isinstance(start, Operators) and not isinstance(stop, Operators):
        base = as_tensor(base)
        kind = base.dtype if base.dtype.kind in "fc" else number_dtype(dtype)  # numbers are weak
        start = beside(np.asarray(start, kind), base)
    exponents = linspace(start, stop, num, endpoint)
    return _finished(ops["power"](base, exponents), dtype, axis)


@named
def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """Return numbers in geometric progression from ``start`` to ``stop``.

    Parameters
    ----------
    start, stop
        The first and last number, not 0: real ones of the same sign, or complex ones; they
        broadcast.
    num
        How many numbers, 50 by default.
    endpoint
        Whether ``stop`` is the last number; else it is one step beyond.
    dtype
        The result's dtype; if not given that of tensors that are floating or complex, the default
        dtype for Python's real numbers.
    axis
        Where the axis of size ``num`` is; the first by default.

    Returns
    -------
    A tensor of the shape of ``start`` and ``stop`` broadcast together, with the new axis. Gradients
    reach ``start`` and ``stop`` if they are tensors.

    Raises
    ------
    ValueError
        If ``num`` is negative or a Python number 0, or ``start`` and ``stop`` do not broadcast.
    numpy.exceptions.AxisError
        If ``axis`` is out of bounds.

    Notes
    -----
    ``start * (stop / start) ** share``, with shares evenly spaced from 0 to 1: complex numbers
    are on a spiral that turns by half a circle at most.

    Examples
    --------
    >>> gt.geomspace(1, 8, 4).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    if not isinstance(start, Operators) and not isinstance(stop, Operators):
        made = np.geomspace(start, stop, num, endpoint, dtype, axis)
        small = dtype is None and made.dtype.kind == "f"
        return as_tensor(made.astype(default_dtype()) if small else made)
    first = as_tensor(start)
    start, stop = first, beside(stop, first)
    ratio = stop / start
    count = operator.index(num)
    shares = np.arange(count) / max(count - 1 if endpoint else count, 1)
    real = np.empty(0, ratio.dtype).real.dtype
    column = beside(shares.astype(real).reshape(-1, *[1] * ratio.ndim), first)
    return _finished(start * ratio**column, dtype, axis)


@named
def meshgrid(
    *arrays: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Tensor, ...]:
    """Return the coordinates of a grid from those along each of its axes.

    Parameters
    ----------
    arrays
        Vectors of coordinates; a number is one of size 1.
    copy
        Only for NumPy's signature: tensors never change.
    sparse
        Leave each result with size 1 along the other axes, to be broadcast.
    indexing
        ``"ij"``: result axis i belongs to array i; ``"xy"`` (the default): the first two are
        exchanged, as in a picture.

    Returns
    -------
    tuple of Tensor
        A tensor per array, of its dtype, with as many axes as there are arrays.

    Raises
    ------
    ValueError
        If ``indexing`` is another word.

    Examples
    --------
    >>> x, y = gt.meshgrid(gt.arange(3), gt.arange(2))
    >>> x.tolist()
    [[0, 1, 2], [0, 1, 2]]
    >>> y.tolist()
    [[0, 0, 0], [1, 1, 1]]
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[:2] = [1, 0]
    grids = []
    for place, x in zip(order, arrays, strict=True):
        shape = tuple(-1 if i == place else 1 for i in range(rank))
        grids.append(ops["reshape"](as_tensor(x), shape=shape))
    return tuple(grids) if sparse else broadcast_arrays(*grids)
