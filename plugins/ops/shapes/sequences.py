"""New tensors beside those of ``creation``: geometric progressions, a triangle of ones."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ....core.base.dtypes import as_dtype, default_dtype
from ....core.extend import ops
from ....core.tensors.convert import as_tensor, beside
from ....core.tensors.tensor import Operators, Tensor
from ..common.families import named
from .creation import linspace
from .shape import moveaxis

__all__ = ["geomspace", "logspace", "tri"]


def _dtype(dtype: Any) -> np.dtype[Any]:
    return default_dtype() if dtype is None else as_dtype(dtype)


@named
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return an ``(N, M)`` matrix (square by default) with ones on diagonal ``k`` and below."""
    return as_tensor(np.tri(N, M, k, dtype=_dtype(dtype)))


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
        How many powers.
    endpoint
        Whether ``stop`` is the last exponent; else it is one step beyond.
    base
        A positive number or tensor.
    dtype
        The result's dtype; the default dtype unless there are tensors.
    axis
        Where the axis of size ``num`` is.

    Returns
    -------
    A tensor. Gradients reach ``start``, ``stop`` and ``base`` if they are tensors.
    """
    if not any(isinstance(x, Operators) for x in (start, stop, base)):
        return as_tensor(np.logspace(start, stop, num, endpoint, base, _dtype(dtype), axis))
    if not isinstance(start, Operators) and not isinstance(stop, Operators):
        base = as_tensor(base)
        kind = base.dtype if base.dtype.kind in "fc" else _dtype(dtype)  # numbers are weak
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
    num, endpoint, dtype, axis
        As for :func:`logspace`.

    Returns
    -------
    A tensor. Gradients reach ``start`` and ``stop`` if they are tensors.

    Notes
    -----
    ``start * (stop / start) ** share``, with shares evenly spaced from 0 to 1: complex numbers
    are on a spiral that turns by half a circle at most.
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
