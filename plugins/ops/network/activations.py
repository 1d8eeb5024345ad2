"""More activations, each an op of its own: one pass forward, one rule."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from ....core.extend import F, Op, Tensor
from ..common.kernels import reals
from ..common.op_builders import elementwise

__all__ = [
    "gelu",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "log_sigmoid",
    "mish",
    "selu",
    "softsign",
]

# Klambauer and others, "Self-normalizing neural networks" (2017), equation 14
_SELU_ALPHA = 1.6732632423543772
_SELU_SCALE = 1.0507009873554805

selu = elementwise(
    "selu",
    lambda xp, x: (
        _SELU_SCALE
        * xp.where(reals(x) > 0, x, _SELU_ALPHA * xp.expm1(xp.minimum(x, xp.zeros_like(x))))
    ),
    holomorphic=False,
    doc="""Return the scaled exponential linear unit: ``scale * elu(x, alpha)``, elementwise.

    Notes
    -----
    ``alpha`` is 1.6733 and ``scale`` 1.0507, rounded here: they keep mean 0 and variance 1. The
    gradient at 0 is ``scale * alpha``.

    References
    ----------
    Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks", 2017.

    Examples
    --------
    >>> gt.round(gt.nn.selu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-1.111, 0.0, 1.051]
    """,
    x=lambda g, x: g * (_SELU_SCALE * _selu_slope(x)),
)


def _selu_slope(x: Any) -> Any:
    # the exponential of positive x is not wanted, and could overflow
    return F.where(x > 0, 1.0, F.exp(F.where(x > 0, 0.0, x)) * _SELU_ALPHA)


softsign = elementwise(
    "softsign",
    lambda xp, x: x / (1 + xp.abs(reals(x))),
    holomorphic=False,
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
    x=lambda g, x: g / F.square(F.abs(x) + 1.0),
)
log_sigmoid = elementwise(
    "log_sigmoid",
    lambda xp, x: xp.minimum(reals(x), xp.zeros_like(x)) - xp.log1p(xp.exp(-xp.abs(x))),
    holomorphic=False,
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
mish = elementwise(
    "mish",
    lambda xp, x: (
        x * xp.tanh(xp.maximum(reals(x), xp.zeros_like(x)) + xp.log1p(xp.exp(-xp.abs(x))))
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
    x=lambda g, x: g * _mish_slope(x, F.tanh(F.softplus(x))),
)


def _mish_slope(x: Any, t: Any) -> Any:
    return t + x * (1.0 - t * t) * F.sigmoid(x)


def _between(xp: Any, x: Any, low: float, high: float) -> Any:
    return xp.minimum(xp.maximum(reals(x), xp.full_like(x, low)), xp.full_like(x, high))


hard_sigmoid = elementwise(
    "hard_sigmoid",
    lambda xp, x: _between(xp, x + 3, 0, 6) / 6,
    holomorphic=False,
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
    x=lambda g, out: g * (out > 0) * (out < 1) * (1 / 6),
)
hard_tanh = elementwise(
    "hard_tanh",
    lambda xp, x: _between(xp, x, -1, 1),
    holomorphic=False,
    doc="""Return ``x`` between -1 and 1, and these bounds beyond, elementwise.

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
hard_silu = elementwise(
    "hard_silu",
    lambda xp, x: x * (_between(xp, reals(x) + 3, 0, 6) / 6),
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
    x=lambda g, x: g * (F.hard_sigmoid(x) + x * (F.abs(x) < 3) * (1 / 6)),
)

_HALF = sqrt(0.5)
_DENSITY = 1 / sqrt(2 * pi)
_TANH = sqrt(2 / pi)
_CUBE = 0.044715


def _gelu_kernel(xp: Any, x: Any, *, approximate: bool = False) -> Any:
    if approximate:
        return 0.5 * reals(x) * (1 + xp.tanh(_TANH * (x + _CUBE * (x * x * x))))
    return 0.5 * reals(x) * F.erfc(-_HALF * x)


def _gelu_rule(g: Any, x: Any, approximate: bool) -> Any:
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
    doc="Return ``x`` times the share of a normal distribution that is below it.",
    x=_gelu_rule,
)


def gelu(x: Any, approximate: bool = False) -> Tensor:
    """Return ``x * P(X <= x)`` for a standard normal ``X``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    approximate
        Use ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`` instead: quicker, and off
        by less than 0.0005. False by default: the exact form takes the error function from SciPy.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    BackendUnavailable
        If the exact form is wanted and SciPy is not installed.
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
