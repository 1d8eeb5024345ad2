"""Activations between bounds: the logistic sigmoid and its relatives, and softmax."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from ....core.extend import F, Tensor, kind_of
from ..common.axes import along, one_axis
from ..common.kernels import at_hand, in_float32, reals
from ..common.op_builders import elementwise, op, same_shape


def sigmoid_kernel(xp: Any, x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))`` without overflow."""
    e = xp.exp(-xp.abs(reals(x)))  # at most 1
    return xp.where(x >= 0, 1, e) / (1 + e)


sigmoid = elementwise(
    "sigmoid",
    sigmoid_kernel,
    holomorphic=False,
    floating=True,
    doc="""Return ``1 / (1 + exp(-x))``, elementwise, without overflow.

    Notes
    -----
    The gradient is ``sigmoid(x) * (1 - sigmoid(x))``.

    Examples
    --------
    >>> gt.nn.sigmoid([-1000.0, 0.0, 1000.0]).tolist()
    [0.0, 0.5, 1.0]
    >>> gt.grad(gt.nn.sigmoid)(0.0).item()
    0.25
    """,
    x=lambda g, x, out: g * F.sigmoid_slope(x, out),
)


#: Above this distance from 1, ``1 - y`` has digits enough in double precision.
SIGMOID_DIGITS = 0.07


def sigmoid_slope_kernel(xp: Any, x: Any, y: Any) -> Any:
    """Return ``y * (1 - y)`` for ``y = sigmoid(x)``, exact where ``y`` is near 1.

    NumPy's exponential is fast in single precision, and slow in double precision.
    """
    e = xp.exp(-xp.abs(reals(x)))  # at most 1
    below = e + 1
    slope = e / (below * below)
    if str(x.dtype).endswith("float64"):
        rest = 1 - y
        return xp.where(rest > SIGMOID_DIGITS, rest * y, slope)
    return slope


_sigmoid_slope = elementwise(
    "sigmoid_slope",
    sigmoid_slope_kernel,
    holomorphic=False,
    # 1 - 2y, without cancellation
    x=lambda g, x, out: -g * (out * F.tanh(0.5 * x)),
    y=lambda g: F.zeros_like(g),  # it is there to save time; the slope of x counts it
    record={"inline": True},
    doc="Return ``y * (1 - y)`` for ``y = sigmoid(x)``, elementwise, exact where ``y`` is near 1.",
)


log_sigmoid = elementwise(
    "log_sigmoid",
    lambda xp, x: xp.minimum(reals(x), xp.zeros_like(x)) - xp.log1p(xp.exp(-xp.abs(x))),
    holomorphic=False,
    floating=True,
    doc="""Return ``log(sigmoid(x))``, elementwise, without overflow.

    Notes
    -----
    The gradient is ``sigmoid(-x)``.

    Examples
    --------
    >>> gt.round(gt.nn.log_sigmoid(np.array([-100.0, 0.0])), 4).tolist()
    [-100.0, -0.6931]
    """,
    x=lambda g, x: g * F.sigmoid(-x),
)


def _softsign_kernel(xp: Any, x: Any) -> Any:
    size = xp.abs(reals(x))
    ends = size == inf
    if at_hand(xp.any(ends), unknown=True):
        x, size = xp.where(ends, xp.sign(x), x), xp.where(ends, xp.zeros_like(size), size)
    return x / (1 + size)


softsign = elementwise(
    "softsign",
    _softsign_kernel,
    holomorphic=False,
    floating=True,
    doc="""Return ``x / (1 + abs(x))``, elementwise.

    References
    ----------
    Bergstra, Desjardins, Lamblin and Bengio, "Quadratic polynomials learn better image features",
    2009.

    Examples
    --------
    >>> gt.nn.softsign([-1.0, 0.0, 3.0]).tolist()
    [-0.5, 0.0, 0.75]
    """,
    x=lambda g, x: g * F.square(F.reciprocal(F.abs(x) + 1.0)),
)


def between(xp: Any, x: Any, low: float, high: float) -> Any:
    """Return real numbers, limited to two bounds."""
    return xp.minimum(xp.maximum(reals(x), xp.full_like(x, low)), xp.full_like(x, high))


hard_sigmoid = elementwise(
    "hard_sigmoid",
    lambda xp, x: between(xp, x + 3, 0, 6) / 6,
    holomorphic=False,
    floating=True,
    doc="""Return ``relu6(x + 3) / 6``, elementwise.

    Notes
    -----
    The gradient is 1/6 between -3 and 3, and 0 at these bounds and beyond.

    References
    ----------
    Howard and others, "Searching for MobileNetV3", 2019.

    Examples
    --------
    >>> gt.nn.hard_sigmoid([-4.0, 0.0, 4.0]).tolist()
    [0.0, 0.5, 1.0]
    """,
    x=lambda g, x: g * (F.abs(x) < 3) * (1 / 6),  # x + 3 can round to the bounds
)
hard_tanh = elementwise(
    "hard_tanh",
    lambda xp, x: between(xp, x, -1, 1),
    holomorphic=False,
    floating=True,
    doc="""Return ``x`` limited to the interval from -1 to 1, elementwise.

    Notes
    -----
    The gradient is 1 between the bounds, and 0 at them and beyond.

    References
    ----------
    Collobert, "Large scale machine learning", 2004.

    Examples
    --------
    >>> gt.nn.hard_tanh([-2.0, 0.5, 2.0]).tolist()
    [-1.0, 0.5, 1.0]
    """,
    x=lambda g, out: g * (out > -1) * (out < 1),
)


# -- softmax ---------------------------------------------------------------------------------------


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
