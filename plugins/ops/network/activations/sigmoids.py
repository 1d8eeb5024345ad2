"""Activations between two bounds: the logistic sigmoid and its relatives."""

from __future__ import annotations

from math import inf
from typing import Any

from .....core.extend import F
from ...common.kernels import at_hand, reals
from ...common.op_builders import elementwise

__all__ = ["hard_sigmoid", "hard_tanh", "log_sigmoid", "sigmoid", "softsign"]


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
