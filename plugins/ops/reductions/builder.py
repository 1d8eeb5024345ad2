"""Make reductions: ops with an axis, whose result has the remaining axes of the input.

Every rule sends the upstream gradient back along the reduced axes with ``unreduce_like``. NumPy's
``where=``, ``initial=`` and ``dtype=`` are made of other ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import (
    Op,
    as_dtype,
    as_tensor,
    beside,
    broadcast_shapes,
    kind_of,
    numpy_dtype,
    ops,
    shapes_differ,
)
from ..common.axes import Axis, along, reduced_shape
from ..common.kernels import cast_to, inexact, real_of
from ..common.op_builders import op


def reduction(
    name: str,
    kernel: Callable[..., Any],
    dtype: Callable[[Any], Any],
    rule: Callable[..., Any] | None,
    holomorphic: bool = False,
    batch: Any = None,
    jvp: Any = None,
    **traits: Any,
) -> Op:
    """Make a reduction; ``dtype`` gives the result's dtype from the input's.

    ``traits`` are further arguments of :class:`Op`.
    """

    def infer(x: Any, axis: Axis, keepdims: bool, **params: Any) -> tuple[Any, Any]:
        return reduced_shape(x.shape, axis, keepdims, name), np.dtype(dtype(x.dtype))

    return op(
        name,
        kernel,
        gradients={"x": rule},
        infer=infer,
        holomorphic=holomorphic,
        batch=batch or along("axis"),
        jvp=jvp,
        **traits,
    )


def widened(xp: Any, x: Any, dtype: Callable[[Any], Any]) -> Any:
    """Return booleans and integers in the dtype of the result, others unchanged.

    NumPy's reductions widen them; other libraries refuse some, or widen to another dtype.
    """
    return cast_to(xp, x, dtype(numpy_dtype(x.dtype))) if kind_of(x.dtype) in "biu" else x


def same_dtype(dtype: Any) -> Any:
    return dtype


def summed_dtype(dtype: Any) -> Any:
    return np.sum(np.empty(0, dtype)).dtype  # NumPy widens small integers


# -- NumPy's options -------------------------------------------------------------------------------


def degrees(name: str, ddof: float, correction: float | None) -> float:
    """Return the number to subtract from the count: ``ddof`` or ``correction``."""
    if correction is None:
        return ddof
    if ddof:
        raise ValueError(f"{name}: ddof and correction mean the same; pass one of them")
    return correction


def kept_by(x: Any, where: Any, name: str) -> Any:
    """Return which elements of ``x`` count, as booleans of its shape; None for all."""
    if where is None or where is True:
        return None
    where = beside(where, x)
    where = where if where.dtype.kind == "b" else where != 0
    joined = broadcast_shapes(x.shape, where.shape, op=name)
    if shapes_differ(joined, x.shape):
        raise ValueError(
            f"{name}: where of shape {where.shape} does not broadcast to shape {x.shape}"
        )
    # in the dtype of booleans, so that only the shape of x matters
    return ops["broadcast_like"](where, ops["equal"](x, x))


def chosen(x: Any, kept: Any, fill: Any) -> Any:
    """Return ``x`` with ``fill`` instead of the elements that do not count."""
    return x if kept is None else ops["where"](kept, x, fill)


def counted(x: Any, dtype: Any, where: Any, fill: Any, name: str) -> Any:
    """Return ``x`` in the dtype to reduce in, with ``fill`` where elements do not count."""
    x = as_tensor(x)
    if dtype is not None:
        x = in_dtype(x, as_dtype(dtype))
    return chosen(x, kept_by(x, where, name), bool(fill) if x.dtype.kind == "b" else fill)


def started_from(initial: Any, join: Any, result: Any, dtype: Any, name: str) -> Any:
    """Return a reduction started from ``initial``, in its own dtype."""
    result = result if dtype is None else in_dtype(result, as_dtype(dtype))
    if initial is None:
        return result
    return join(result, start_of(initial, result, name))


def start_of(initial: Any, like: Any, name: str) -> Any:
    """Return the start value of a reduction, in the dtype of ``like``.

    Raises
    ------
    OverflowError
        If it is a Python number that the integer dtype cannot hold.
    """
    if type(initial) in (int, float) and like.dtype.kind in "iu":
        try:
            initial = np.asarray(int(initial), like.dtype)
        except (OverflowError, ValueError) as error:
            raise OverflowError(f"{name}: initial={initial}: {error}") from None
    return in_dtype(beside(initial, like), like.dtype)


def averaged(x: Any, dtype: Any, where: Any, name: str) -> tuple[Any, Any, Any]:
    """Return ``x`` in the dtype to average in, which elements count, and the result's dtype."""
    x = as_tensor(x)
    result = inexact(x.dtype) if dtype is None else as_dtype(dtype)
    if result.name == "float16":  # its sums soon overflow
        x = in_dtype(x, np.dtype(np.float32))
    else:
        x = x if dtype is None else in_dtype(x, result)  # integers are cut off before the sum
        x = in_dtype(x, result if result.kind in "fc" else np.dtype(np.float64))
    return x, kept_by(x, where, name), result


def count_of(kept: Any, like: Any, axis: Axis, keepdims: bool) -> Any:
    """Return how many elements count (all, if ``kept`` is None), in the real dtype of ``like``."""
    if kept is None:
        return ops["size_over"](like, axis=axis)
    return ops["sum"](
        ops["cast"](kept, dtype=real_of(like.dtype).name), axis=axis, keepdims=keepdims
    )


def in_dtype(x: Any, dtype: Any) -> Any:
    """Return ``x`` in a dtype, or ``x`` itself if it has that dtype."""
    return x if x.dtype == dtype else ops["cast"](x, dtype=np.dtype(dtype).name)
