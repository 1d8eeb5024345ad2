"""New tensors of a given shape, on the current backend."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.base.dtypes import as_dtype, default_dtype
from ....core.base.spec import as_shape
from ....core.extend import ops
from ....core.tensors.convert import as_tensor, beside, host_array
from ....core.tensors.tensor import Operators, Tensor
from ..common.families import named
from ..common.ranks import known_rank

__all__ = ["arange", "eye", "full", "linspace", "ones", "zeros"]


def _dtype(dtype: Any) -> np.dtype[Any]:
    return default_dtype() if dtype is None else as_dtype(dtype)


@named
def zeros(shape: int | Sequence[int], dtype: Any = None) -> Tensor:
    """Return a tensor of zeros; of the default dtype unless one is given."""
    return as_tensor(np.zeros(as_shape(shape, "zeros"), _dtype(dtype)))


@named
def ones(shape: int | Sequence[int], dtype: Any = None) -> Tensor:
    """Return a tensor of ones; of the default dtype unless one is given."""
    return as_tensor(np.ones(as_shape(shape, "ones"), _dtype(dtype)))


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
    """
    value = as_tensor(fill_value, dtype)
    return ops["broadcast_to"](value, shape=as_shape(shape, "full"))


@named
def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Return an ``(n, m)`` matrix (square by default) with ones on diagonal ``k``."""
    return as_tensor(np.eye(n, m, k, dtype=_dtype(dtype)))


@named
def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """Return evenly spaced numbers from ``start`` (0 if not given) up to, but without, ``stop``.

    Integers give ``int64`` and floats the default dtype, unless one is given.
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
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, the last if ``endpoint``.

    Bounds that are tensors get gradients; the numbers are along a new first axis.
    """
    if isinstance(start, Operators) or isinstance(stop, Operators):
        tensor = as_tensor(start if isinstance(start, Operators) else stop)
        start, stop = beside(start, tensor), beside(stop, tensor)
        way, num = stop - start, operator.index(num)
        kind = np.result_type(way.dtype, _dtype(dtype) if way.dtype.kind in "biu" else way.dtype)
        shares = np.arange(num) / max(num - 1 if endpoint else num, 1)
        column = beside(shares.astype(kind).reshape(-1, *[1] * known_rank(way, "linspace")), way)
        result = start + way * column
        return result if dtype is None else result.astype(dtype)
    return as_tensor(np.linspace(start, stop, num, endpoint=endpoint, dtype=_dtype(dtype)))
