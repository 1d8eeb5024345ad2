"""Variances and standard deviations over axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import F, Tensor, as_dtype, beside, ops
from ..common.axes import Axis, as_axis
from ..common.dtypes import real_of
from ..common.kernels import cast_to
from ..shapes.adjoints import size_over
from .builder import reduction
from .options import averaged, chosen, count_of, in_dtype

__all__ = ["std", "var"]


def _var_kernel(
    xp: Any, x: Any, *, axis: Axis = None, ddof: float = 0, keepdims: bool = False
) -> Any:
    half = x.dtype if x.dtype.name == "float16" else None  # its squares soon overflow
    if half is not None or x.dtype.kind not in "fc":
        x = cast_to(xp, x, np.float64 if half is None else np.float32)
    d = x - xp.mean(x, axis=axis, keepdims=True)
    squares = d * d if x.dtype.kind == "f" else xp.real(d) ** 2 + xp.imag(d) ** 2
    freedom = size_over(xp, squares, axis=axis) - ddof
    result = xp.sum(squares, axis=axis, keepdims=keepdims) / xp.maximum(freedom, 0.0)
    return result if half is None else cast_to(xp, result, half)


def _deviation(share: Any, x: Any, axis: Axis, keepdims: bool) -> Any:
    spread = F.unreduce_like(share, x, axis=axis, keepdims=keepdims)
    return spread * (x - F.mean(x, axis=axis, keepdims=True))


def _var_rule(g: Any, x: Any, axis: Axis, ddof: float, keepdims: bool) -> Any:
    # the mean's own dependence on x cancels: deviations sum to 0
    share = (g + g) / (F.size_over(x, axis=axis) - ddof)
    return _deviation(share, x, axis, keepdims)


def _std_rule(g: Any, x: Any, out: Any, axis: Axis, ddof: float, keepdims: bool) -> Any:
    slope = g / F.where(out == 0, 1.0, out)
    return _deviation(slope / (F.size_over(x, axis=axis) - ddof), x, axis, keepdims)


_var = reduction("var", _var_kernel, real_of, _var_rule)
_std = reduction(
    "std",
    lambda xp, x, *, axis=None, ddof=0, keepdims=False: xp.sqrt(
        _var_kernel(xp, x, axis=axis, ddof=ddof, keepdims=keepdims)
    ),
    real_of,
    _std_rule,
)


def var(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Tensor:
    """Return the variance: the mean squared distance from the mean.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reduce; all by default.
    ddof
        The sum of squares is divided by ``n - ddof``: 0 gives the biased variance (the default),
        1 the unbiased one.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to compute in.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    The variance of complex numbers is that of the distances: ``mean(abs(x - mean(x)) ** 2)``.

    Examples
    --------
    >>> gt.var(gt.constant([1.0, 2.0, 3.0, 6.0])).item()
    3.5
    >>> gt.var(gt.constant([1.0, 3.0]), ddof=1).item()
    2.0
    """
    axis, keepdims = as_axis(axis, "var"), bool(keepdims)
    if dtype is None and where is None and mean is None:
        return _var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    if dtype is not None and as_dtype(dtype).kind not in "fc":
        raise TypeError(f"var: dtype must be a floating one, to compute in, got {as_dtype(dtype)}")
    x, kept, result = averaged(x, dtype, where, "var")
    if kept is None and mean is None:
        variance = _var(x, axis=axis, ddof=ddof, keepdims=keepdims)
    else:
        if mean is None:
            total = ops["sum"](chosen(x, kept, 0), axis=axis, keepdims=True)
            mean = total / count_of(kept, x, axis, True)
        else:
            mean = in_dtype(beside(mean, x), x.dtype)
        apart = chosen(x - mean, kept, 0)
        squares = ops["real"](apart * ops["conj"](apart))
        freedom = ops["maximum"](count_of(kept, x, axis, keepdims) - ddof, 0)
        variance = ops["sum"](squares, axis=axis, keepdims=keepdims) / freedom
    return in_dtype(variance, real_of(result) if dtype is None else result)


def std(
    x: Any,
    axis: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    dtype: Any = None,
    where: Any = None,
    mean: Any = None,
) -> Tensor:
    """Return the standard deviation, the square root of :func:`var`.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.
    axis
        The axis or axes to reduce; all by default.
    ddof
        The sum of squares is divided by ``n - ddof``; 0 by default.
    keepdims
        Leave the axes in the result, with size 1.
    dtype
        The dtype to compute in.
    where
        Which elements count: booleans that broadcast to the shape of ``x``; all by default.
    mean
        The mean, of a shape that broadcasts with ``x``, if it is known already. Gradients reach it.

    Returns
    -------
    A tensor of the shape of ``x`` without the axes, of the real dtype of ``x``; ``float64`` for
    integers.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If an axis is given twice, or ``where`` does not broadcast to the shape of ``x``.

    Notes
    -----
    Where all elements are equal the gradient is 0, a subgradient.

    Examples
    --------
    >>> gt.std(gt.constant([[1.0, 3.0], [2.0, 2.0]]), axis=1).tolist()
    [1.0, 0.0]
    """
    if dtype is None and where is None and mean is None:
        return _std(x, axis=as_axis(axis, "std"), ddof=ddof, keepdims=bool(keepdims))
    return root_of_variance(var(x, axis, ddof, keepdims, dtype=dtype, where=where, mean=mean))


def root_of_variance(variance: Any) -> Any:
    """Return the square root, with the gradient 0, a subgradient, where it is 0."""
    equal = variance == 0
    return ops["where"](equal, 0.0, ops["sqrt"](ops["where"](equal, 1.0, variance)))
