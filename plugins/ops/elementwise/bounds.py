"""The larger and the smaller of two values, and values limited to an interval."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import F, Tensor, ops
from ..common.kernels import native
from ..common.op_builders import elementwise, named
from ..common.sizes import LARGEST, SMALLEST


def _is_nan(x: Any) -> Any:
    return x != x  # of integers and Python numbers, too


maximum = elementwise(
    "maximum",
    x=lambda g, x, y: F.where(F.logical_or(x >= y, _is_nan(x)), g, 0.0),
    y=lambda g, x, y: F.where(F.logical_or(x >= y, _is_nan(x)), 0.0, g),
    holomorphic=False,
    record={"integers": LARGEST},
    doc="""Return the larger of ``x`` and ``y``, elementwise; nan if either is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``, and at a nan to the argument that is nan.

    Examples
    --------
    >>> gt.maximum([1.0, 5.0], 3.0).tolist()
    [3.0, 5.0]
    >>> gt.grad(gt.maximum)(2.0, 2.0).item()
    1.0
    """,
)
minimum = elementwise(
    "minimum",
    x=lambda g, x, y: F.where(F.logical_or(x <= y, _is_nan(x)), g, 0.0),
    y=lambda g, x, y: F.where(F.logical_or(x <= y, _is_nan(x)), 0.0, g),
    holomorphic=False,
    record={"integers": SMALLEST},
    doc="""Return the smaller of ``x`` and ``y``, elementwise; nan if either is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``, and at a nan to the argument that is nan.

    Examples
    --------
    >>> gt.minimum([1.0, 5.0], 3.0).tolist()
    [1.0, 3.0]
    >>> gt.grad(gt.minimum)(2.0, 2.0).item()
    1.0
    """,
)


def _took_x(x: Any, out: Any) -> Any:
    return F.logical_or(x == out, out != out)  # nan only where both are


def _skip_nan(name: str) -> Callable[..., Any]:
    def kernel(xp: Any, x: Any, y: Any) -> Any:
        # either may be a Python number
        x, y = (
            v if hasattr(v, "shape") else xp.asarray(v, dtype=w.dtype) for v, w in ((x, y), (y, x))
        )
        best = getattr(xp, name)(x, y)
        return xp.where(xp.isnan(x), y, xp.where(xp.isnan(y), x, best))

    return kernel


fmax = elementwise(
    "fmax",
    native("fmax", _skip_nan("maximum")),
    x=lambda g, x, out: F.where(_took_x(x, out), g, 0.0),
    y=lambda g, x, out: F.where(_took_x(x, out), 0.0, g),
    holomorphic=False,
    doc="""Return the larger of ``x`` and ``y``, elementwise; the other where one is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.fmax([1.0, 5.0, np.nan], 3.0).tolist()
    [3.0, 5.0, 3.0]
    """,
)
fmin = elementwise(
    "fmin",
    native("fmin", _skip_nan("minimum")),
    x=lambda g, x, out: F.where(_took_x(x, out), g, 0.0),
    y=lambda g, x, out: F.where(_took_x(x, out), 0.0, g),
    holomorphic=False,
    doc="""Return the smaller of ``x`` and ``y``, elementwise; the other where one is nan.

    Notes
    -----
    At a tie the gradient goes to ``x``.

    Examples
    --------
    >>> gt.fmin([1.0, 5.0, np.nan], 3.0).tolist()
    [1.0, 3.0, 3.0]
    """,
)


def _took_lower(x: Any, lower: Any, upper: Any) -> Any:
    """Return where ``clip`` gives the lower bound; among several nans it gives the first."""
    return (x < lower) & (lower <= upper) | _is_nan(lower) & (x == x)


def _took_upper(x: Any, lower: Any, upper: Any) -> Any:
    return (x > upper) | (lower > upper) | _is_nan(upper) & (x == x) & (lower == lower)


def _clip_kernel(xp: Any, x: Any, lower: Any, upper: Any) -> Any:
    if type(lower) is float and getattr(upper, "dtype", x.dtype) != x.dtype:
        lower = lower + xp.zeros_like(upper)  # unrounded by a narrower x
    return xp.minimum(xp.maximum(x, lower), upper)


_clip = elementwise(
    "clip",
    _clip_kernel,
    x=lambda g, x, lower, upper: F.where((x >= lower) & (x <= upper) | _is_nan(x), g, 0.0),
    lower=lambda g, x, lower, upper: F.where(_took_lower(x, lower, upper), g, 0.0),
    upper=lambda g, x, lower, upper: F.where(_took_upper(x, lower, upper), g, 0.0),
    holomorphic=False,
    doc="Limit ``x`` to the interval from ``lower`` to ``upper``.",
)


@named
def clip(x: Any, min: Any = None, max: Any = None) -> Tensor:
    """Limit ``x`` to an interval, elementwise.

    Parameters
    ----------
    x
        A real tensor.
    min, max
        The bounds: numbers or tensors that broadcast with ``x``. None, the default, means no bound.

    Returns
    -------
    ``minimum(maximum(x, min), max)``: a tensor of the broadcast shape and the promoted dtype.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor, an array or a number.
    ValueError
        If the shapes do not broadcast.

    Notes
    -----
    The gradient of ``x`` is 1 inside the interval and on its bounds, 0 outside, as in
    ``tf.clip_by_value``. A bound has the gradient of the elements that it replaces.

    Examples
    --------
    >>> gt.clip([-2.0, 0.5, 3.0], 0.0, 1.0).tolist()
    [0.0, 0.5, 1.0]
    >>> gt.clip([-2.0, 0.5, 3.0], max=1.0).tolist()
    [-2.0, 0.5, 1.0]
    """
    min, max = _attainable(x, min, max)
    if min is None:
        return ops["identity"](x) if max is None else minimum(x, max)
    return maximum(x, min) if max is None else _clip(x, min, max)


def _attainable(x: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return bounds, None for an integer outside the range of the dtype of ``x``, as NumPy does."""
    if type(low) is int or type(high) is int:
        dtype = getattr(x, "dtype", None)
        if dtype is not None and dtype.kind in "iu":
            info = np.iinfo(dtype)
            low = None if type(low) is int and low <= info.min else low
            high = None if type(high) is int and high >= info.max else high
    return low, high
