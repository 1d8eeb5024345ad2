"""Softmax along an axis, and its logarithm."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....core.extend import F, Tensor
from ...common.axes import one_axis
from ...common.batching import along
from ...common.kernels import in_float32, kind_of, reals
from ...common.op_builders import op, same_shape

__all__ = ["log_softmax", "softmax"]


def shifted_below_zero(xp: Any, x: Any, axis: int) -> Any:
    """Return ``x`` minus its maximum, so that its exponentials stay finite."""
    return x - xp.max(reals(x), axis=axis, keepdims=True)


def size_along(x: Any, axis: int) -> int:
    try:
        size: int = x.shape[axis]
    except IndexError:
        raise np.exceptions.AxisError(axis, x.ndim) from None
    return size


@in_float32
def softmax_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
    """Return exponentials that sum to 1 along an axis."""
    if not size_along(x, axis):
        return x
    e = xp.exp(shifted_below_zero(xp, x, axis))
    return e / xp.sum(e, axis=axis, keepdims=True)


@in_float32
def log_softmax_kernel(xp: Any, x: Any, *, axis: int = -1) -> Any:
    """Return the logarithm of the softmax, which stays finite."""
    if not size_along(x, axis):
        return x
    shifted = shifted_below_zero(xp, x, axis)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=axis, keepdims=True))


def exponential_dtype(dtype: Any) -> Any:
    """Return the dtype of exponentials of numbers of a dtype."""
    return dtype if kind_of(dtype) in "fc" else np.exp(np.empty(0, dtype)).dtype


_softmax = op(
    "softmax",
    softmax_kernel,
    gradients={
        "x": lambda g, out, axis: out * (g - F.sum(g * out, axis=axis, keepdims=True)),
    },
    infer=same_shape("softmax", exponential_dtype),
    floating=True,
    batch=along("axis"),
    view=False,
    doc="Return exponentials that sum to 1 along an axis.",
)
_log_softmax = op(
    "log_softmax",
    log_softmax_kernel,
    gradients={
        "x": lambda g, out, axis: g - F.exp(out) * F.sum(g, axis=axis, keepdims=True),
    },
    infer=same_shape("log_softmax", exponential_dtype),
    floating=True,
    batch=along("axis"),
    doc="Return the logarithm of the softmax along an axis.",
)


def softmax(x: Any, axis: int = -1) -> Tensor:
    """Return ``exp(x) / sum(exp(x))`` along ``axis``, for ``x`` of any size.

    Parameters
    ----------
    x
        A floating tensor of at least one axis.
    axis
        The axis along which results sum to 1, the last by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    TypeError
        If ``x`` is complex, or ``axis`` is not an integer.

    Notes
    -----
    With ``s = softmax(x)``, an upstream gradient ``g`` becomes ``s * (g - sum(g * s))``.

    References
    ----------
    Bridle, "Probabilistic interpretation of feedforward classification network outputs", 1990.

    Examples
    --------
    >>> gt.nn.softmax([1.0, 1.0]).tolist()
    [0.5, 0.5]
    >>> gt.nn.softmax([[0.0, 1000.0]], axis=0).tolist()
    [[1.0, 1.0]]
    """
    return _softmax(x, axis=one_axis(axis, "softmax"))


def log_softmax(x: Any, axis: int = -1) -> Tensor:
    """Return ``x - log(sum(exp(x)))`` along ``axis``, for ``x`` of any size.

    Parameters
    ----------
    x
        A floating tensor of at least one axis.
    axis
        The axis along which the exponentials of results sum to 1, the last by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    IndexError
        If the axis is out of bounds.
    TypeError
        If ``x`` is complex, or ``axis`` is not an integer.

    Notes
    -----
    An upstream gradient ``g`` becomes ``g - softmax(x) * sum(g)``.

    Examples
    --------
    >>> gt.round(gt.nn.log_softmax(np.array([1.0, 1.0])), 4).tolist()
    [-0.6931, -0.6931]
    """
    return _log_softmax(x, axis=one_axis(axis, "log_softmax"))
