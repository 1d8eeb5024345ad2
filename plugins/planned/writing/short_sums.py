"""Sums over few elements of a row, or over an axis before a short one.

NumPy calls its inner loop once for each sum of a short row, and once for each short row that it
adds to others. The functions here take one pass over all rows for each element, or leave the order
of loops to ``einsum``. They add in the order of ``add.reduce``, from +0 on, and each is compared
with it, bit for bit, before a plan uses it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from ...summing import sum_columns, sums_columns
from ..steps import PlanStep, Shape, StepKind, reduce_into, shape_of

# NumPy's stubs do not know positional keepdims
_reduce: Any = np.add.reduce
#: NumPy adds rows of fewer elements in order, and longer ones in several partial sums.
_FEW = 8
#: The minimum number of sums, the maximum of elements of a short row, and of all elements.
_SEVERAL, _SHORT, _MOST = 32, 16, 2**18


def quickest(step: PlanStep, ordered: bool = False) -> Callable[..., Any]:
    """Return the quickest function with NumPy's bits that runs a step.

    It depends on the step's shapes and axes, so it is chosen when the step is written, not when it
    is made: other steps may be made from that one.

    Parameters
    ----------
    step
        The step.
    ordered
        Whether its input will be C contiguous.
    """
    if step.kind is not StepKind.REDUCTION:
        return step.run
    run = _quickest_sum(step)
    return run if ordered else partial(reduce_into, run)


def _quickest_sum(step: PlanStep) -> Callable[..., Any]:
    (x,), axis = step.inputs, step.params["axis"]
    if step.run != np.add.reduce or x.dtype.char not in "fd" or x.dtype != step.out.dtype:
        return step.run
    run = short_sum(shape_of(x), axis, x.dtype)
    if run is None and sums_columns(shape_of(x), axis):
        run = sum_columns
    return run or step.run


@lru_cache(maxsize=256)
def short_sum(shape: Shape, axis: Any, dtype: Any) -> Callable[..., Any] | None:
    """Return a function like ``add.reduce`` for contiguous arrays of a shape; None if none pays.

    Parameters
    ----------
    shape
        The shape of the arrays.
    axis
        The axis to sum over, or a tuple of axes.
    dtype
        Their dtype, of single or double precision.
    """
    if type(axis) is tuple and len(axis) == 1:
        (axis,) = axis
    if type(axis) is not int or not 1 < prod(shape) <= _MOST:
        return None
    axis %= len(shape)
    outer, count, inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
    run: Callable[..., Any]
    if inner == 1 and 1 < count < _FEW and outer >= _SEVERAL:
        run = _sum_of_few
    elif 1 < inner <= _SHORT and count > 1 and outer > 1 and outer * count >= _SEVERAL:
        run = _sum_of_short
    else:
        return None
    return run if _agrees(run, shape, axis, dtype) else None


def _sum_of_few(x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool) -> Any:
    """Add the first elements of all rows, the second ones, and so on."""
    if not x.flags.c_contiguous or (out is not None and not out.flags.c_contiguous):
        return _reduce(x, axis, dtype, out, keepdims)
    rows = x.reshape(-1, _only(x, axis))
    total = np.empty(len(rows), x.dtype) if out is None else out.reshape(-1)
    np.add(rows[:, 0], rows[:, 1], total)
    for i in range(2, rows.shape[1]):
        np.add(total, rows[:, i], total)
    np.add(total, 0.0, total)  # all zeros negative
    return _shaped(total, x, axis, keepdims) if out is None else out


def _sum_of_short(x: Any, axis: Any, dtype: Any, out: Any, keepdims: bool) -> Any:
    """Add short rows to short rows."""
    if not x.flags.c_contiguous or (out is not None and not out.flags.c_contiguous):
        return _reduce(x, axis, dtype, out, keepdims)
    axis = (axis[0] if type(axis) is tuple else axis) % x.ndim
    outer, inner = prod(x.shape[:axis]), prod(x.shape[axis + 1 :])
    total = np.empty((outer, inner), x.dtype) if out is None else out.reshape(outer, inner)
    np.einsum("ijk->ik", x.reshape(outer, x.shape[axis], inner), out=total)
    if not np.isfinite(total).all():  # einsum gives no warning
        return _reduce(x, axis, dtype, out, keepdims)
    return _shaped(total, x, axis, keepdims) if out is None else out


def _only(x: Any, axis: Any) -> int:
    size: int = x.shape[axis[0] if type(axis) is tuple else axis]
    return size


def _shaped(total: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    axis = (axis[0] if type(axis) is tuple else axis) % x.ndim
    kept = (1,) if keepdims else ()
    return total.reshape(*x.shape[:axis], *kept, *x.shape[axis + 1 :])


def _agrees(run: Callable[..., Any], shape: Shape, axis: int, dtype: Any) -> bool:
    """Return whether a function has the bits of ``add.reduce``, of numbers of all sizes."""
    for given in numbers_to_sum(shape, dtype):
        found, right = run(given, axis, None, None, False), np.add.reduce(given, axis)
        if found.tobytes() != right.tobytes():
            return False
    return True


def numbers_to_sum(shape: Shape, dtype: Any) -> list[Any]:
    """Return arrays that tell the order of sums: numbers of all sizes, and negative zeros.

    Parameters
    ----------
    shape
        The shape of the arrays.
    dtype
        Their dtype, of single or double precision.
    """
    random = np.random.default_rng(0)
    x = random.normal(size=shape) * np.exp2(random.integers(-20, 20, shape))
    return [x.astype(dtype), np.full(shape, -0.0, dtype)]
