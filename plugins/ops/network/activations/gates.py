"""Activations that multiply their input by a gate."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from .....core.extend import F, Op, Tensor, as_tensor, ops
from ...common.axes import axis_of
from ...common.kernels import reals
from ...common.op_builders import elementwise, named
from ...shapes.splitting import split
from .sigmoids import between, sigmoid_kernel

__all__ = ["gelu", "glu", "hard_silu", "mish", "silu"]


# beyond this, gates are open or closed in every dtype, up to rounding, as for an infinite x
_FAR = 1e3


def _within(x: Any) -> Any:
    return F.clip(x, -_FAR, _FAR)


silu = elementwise(
    "silu",
    lambda xp, x: xp.maximum(reals(x), -_FAR) * sigmoid_kernel(xp, x),
    holomorphic=False,
    doc="""Return ``x * sigmoid(x)``, elementwise; also known as swish.

    References
    ----------
    Elfwing, Uchibe and Doya, "Sigmoid-weighted linear units for neural network function
    approximation in reinforcement learning", 2018.

    Examples
    --------
    >>> gt.round(gt.nn.silu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.269, 0.0, 0.731]
    """,
    x=lambda g, x: g * _silu_slope(_within(x), F.sigmoid(x)),
)


def _silu_slope(x: Any, s: Any) -> Any:
    return s + x * s * (1 - s)


hard_silu = elementwise(
    "hard_silu",
    # the gate first, so that fewer arrays are alive at a time
    lambda xp, x: between(xp, x + 3, 0, 6) / 6 * xp.maximum(x, -3),
    holomorphic=False,
    doc="""Return ``x * hard_sigmoid(x)``, elementwise; also known as hard swish.

    References
    ----------
    Howard and others, "Searching for MobileNetV3", 2019.

    Examples
    --------
    >>> gt.nn.hard_silu([0.0, 3.0, 4.0]).tolist()
    [0.0, 3.0, 4.0]
    """,
    x=lambda g, x: g * (F.hard_sigmoid(x) + F.where(F.abs(x) < 3, x, 0.0) * (1 / 6)),
)


mish = elementwise(
    "mish",
    lambda xp, x: (
        xp.maximum(reals(x), -_FAR)
        * xp.tanh(xp.maximum(x, xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x))))
    ),
    holomorphic=False,
    doc="""Return ``x * tanh(softplus(x))``, elementwise.

    References
    ----------
    Misra, "Mish: a self regularized non-monotonic activation function", 2019.

    Examples
    --------
    >>> gt.round(gt.nn.mish(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.303, 0.0, 0.865]
    """,
    x=lambda g, x: g * _mish_slope(_within(x), F.tanh(F.softplus(x))),
)


def _mish_slope(x: Any, t: Any) -> Any:
    return t + x * (1.0 - t * t) * F.sigmoid(x)


_HALF = sqrt(0.5)
_DENSITY = 1 / sqrt(2 * pi)
_TANH = sqrt(2 / pi)
_CUBE = 0.044715


def _gelu_kernel(xp: Any, x: Any, *, approximate: bool = False) -> Any:
    half = 0.5 * xp.maximum(reals(x), -_FAR)
    if approximate:
        return half * (1 + xp.tanh(_TANH * (x + _CUBE * (x * x * x))))
    return half * F.erfc(-_HALF * x)


def _gelu_rule(g: Any, x: Any, approximate: bool) -> Any:
    x = F.clip(x, -50.0, 50.0)  # the slope is constant beyond, and the square fits into float16
    if not approximate:
        share = F.erfc(x * -_HALF) * 0.5
        return g * (share + x * F.exp(x * x * -0.5) * _DENSITY)
    square = x * x
    t = F.tanh(x * (square * _CUBE + 1.0) * _TANH)
    slope = (1.0 - t * t) * (square * (3 * _CUBE) + 1.0) * _TANH
    return g * ((t + 1.0) + x * slope) * 0.5


_gelu = elementwise(
    "gelu",
    _gelu_kernel,
    kind=Op,
    holomorphic=False,
    doc="Return ``x`` times the normal distribution function of ``x``.",
    x=_gelu_rule,
)


def gelu(x: Any, approximate: bool = False) -> Tensor:
    """Return ``x * P(X <= x)`` for a standard normal ``X``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    approximate
        Use ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`` instead, which is faster
        and off by less than 0.0005. False by default: the exact form needs SciPy's error function.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    BackendUnavailable
        If the exact form is requested and SciPy is not installed.
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    References
    ----------
    Hendrycks and Gimpel, "Gaussian error linear units (GELUs)", 2016.

    Examples
    --------
    >>> gt.round(gt.nn.gelu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.159, 0.0, 0.841]
    >>> gt.round(gt.nn.gelu(np.array([-1.0, 0.0, 1.0]), approximate=True), 3).tolist()
    [-0.159, 0.0, 0.841]
    """
    return _gelu(x, approximate=bool(approximate))


@named
def glu(x: Any, axis: int = -1) -> Tensor:
    """Return one half of ``x`` times the sigmoid of the other: a gated linear unit.

    Parameters
    ----------
    x
        A floating tensor.
    axis
        The axis to halve, the last by default; its size must be even.

    Returns
    -------
    A tensor of the dtype and shape of ``x``, except for half the size along the axis.

    Raises
    ------
    AxisError
        If the axis is out of bounds.
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If the size is odd.

    References
    ----------
    Dauphin, Fan, Auli and Grangier, "Language modeling with gated convolutional networks", 2017.

    Examples
    --------
    >>> gt.nn.glu([[1.0, 2.0, 0.0, 0.0]]).tolist()
    [[0.5, 1.0]]
    """
    x = as_tensor(x)
    values, gates = split(x, 2, axis_of(x, axis, "glu"))
    return values * ops["sigmoid"](gates)
