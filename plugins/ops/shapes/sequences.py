"""New tensors beside those of ``creation``: geometric progressions, a triangle of ones."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.extend import Operators, Tensor, as_dtype, as_tensor, beside, default_dtype, ops
from ..common.op_builders import named
from .creation import linspace, number_dtype
from .shape import moveaxis

__all__ = ["geomspace", "logspace"]


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
