"""Make reductions: ops with an axis, whose result has the remaining axes of the input.

Every rule sends the upstream gradient back along the reduced axes with ``unreduce_like``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import Op, numpy_dtype
from ..common.axes import Axis, reduced_shape
from ..common.batching import along
from ..common.kernels import cast_to, kind_of
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
