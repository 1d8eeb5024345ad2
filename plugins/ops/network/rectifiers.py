"""Activations that keep large numbers, or nearly so: ReLU and its relatives, and shrinkage.

Shrinkage sets small numbers to 0, or moves numbers towards it.
"""

from __future__ import annotations

import math
from typing import Any

from ....core.extend import F, Op, Tensor
from ..common.kernels import reals
from ..common.op_builders import elementwise, named
from ..common.parameters import plain_number
from .sigmoids import between


def relu_kernel(xp: Any, x: Any) -> Any:
    """Return ``max(x, 0)``."""
    return xp.maximum(reals(x), 0)


relu = elementwise(
    "relu",
    relu_kernel,
    holomorphic=False,
    doc="""Return ``max(x, 0)``, elementwise.

    Notes
    -----
    The gradient is 1 for positive ``x`` and 0 elsewhere, including 0 and nan.

    References
    ----------
    Nair and Hinton, "Rectified linear units improve restricted Boltzmann machines", 2010.

    Examples
    --------
    >>> gt.nn.relu([-1.0, 0.0, 2.0]).tolist()
    [0.0, 0.0, 2.0]
    >>> gt.grad(gt.nn.relu)(0.0).item()
    0.0
    """,
    x=lambda g, out: g * (out > 0),
)
relu6 = elementwise(
    "relu6",
    lambda xp, x: xp.minimum(xp.maximum(reals(x), 0), 6),
    holomorphic=False,
    doc="""Return ``min(max(x, 0), 6)``, elementwise.

    Notes
    -----
    The gradient is 1 between 0 and 6, and 0 at these bounds and beyond.

    References
    ----------
    Krizhevsky, "Convolutional deep belief networks on CIFAR-10", 2010.

    Examples
    --------
    >>> gt.nn.relu6([-1.0, 2.0, 9.0]).tolist()
    [0.0, 2.0, 6.0]
    """,
    x=lambda g, out: g * (out > 0) * (out < 6),
)


def _leaky_slope(g: Any, x: Any, alpha: float) -> Any:
    return g * F.where(x > 0, 1.0, F.broadcast_like(alpha, x))


_leaky_relu = elementwise(
    "leaky_relu",
    lambda xp, x, *, alpha=0.2: (
        xp.where(reals(x) > 0, x, alpha * x) if alpha else xp.maximum(reals(x), 0)  # not 0 * inf
    ),
    kind=Op,
    holomorphic=False,
    floating=True,
    doc="Return ``x`` where positive, otherwise ``alpha * x``.",
    x=_leaky_slope,
)


def leaky_relu(x: Any, alpha: float = 0.2) -> Tensor:
    """Return ``x`` where it is positive, otherwise ``alpha * x``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    alpha
        The slope for negative numbers, 0.2 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient at 0 is ``alpha``.

    References
    ----------
    Maas, Hannun and Ng, "Rectifier nonlinearities improve neural network acoustic models", 2013.

    Examples
    --------
    >>> gt.nn.leaky_relu([-4.0, 0.0, 2.0], alpha=0.25).tolist()
    [-1.0, 0.0, 2.0]
    """
    return _leaky_relu(x, alpha=float(alpha))


# -- with an exponential below 0 -------------------------------------------------------------------


def _elu_slope(x: Any, alpha: float) -> Any:
    # the exponential of positive x is not needed, and could overflow
    return F.where(x > 0, 1.0, F.exp(F.where(x > 0, 0.0, x)) * alpha)


_elu = elementwise(
    "elu",
    lambda xp, x, *, alpha=1.0: xp.where(reals(x) > 0, x, alpha * xp.expm1(xp.minimum(x, 0))),
    kind=Op,
    holomorphic=False,
    floating=True,
    doc="Return ``x`` where positive, otherwise ``alpha * (exp(x) - 1)``.",
    x=lambda g, x, alpha: g * _elu_slope(x, alpha),
)


def elu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return ``x`` where it is positive, otherwise ``alpha * (exp(x) - 1)``, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    alpha
        The absolute value of the limit for large negative numbers, 1 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.

    Notes
    -----
    The gradient at 0 is ``alpha``.

    References
    ----------
    Clevert, Unterthiner and Hochreiter, "Fast and accurate deep network learning by exponential
    linear units (ELUs)", 2016.

    Examples
    --------
    >>> gt.round(gt.nn.elu(np.array([-1.0, 0.0, 2.0])), 3).tolist()
    [-0.632, 0.0, 2.0]
    """
    return _elu(x, alpha=float(alpha))


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
    floating=True,
    doc="""Return the scaled exponential linear unit: ``scale * elu(x, alpha)``, elementwise.

    Notes
    -----
    ``alpha`` is 1.6733 and ``scale`` 1.0507 (rounded): they preserve mean 0 and variance 1. The
    gradient at 0 is ``scale * alpha``.

    References
    ----------
    Klambauer, Unterthiner, Mayr and Hochreiter, "Self-normalizing neural networks", 2017.

    Examples
    --------
    >>> gt.round(gt.nn.selu(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-1.111, 0.0, 1.051]
    """,
    x=lambda g, x: g * (_SELU_SCALE * _elu_slope(x, _SELU_ALPHA)),
)


def _celu_kernel(xp: Any, x: Any, *, alpha: float = 1.0) -> Any:
    zero = xp.zeros_like(reals(x))
    return xp.maximum(x, zero) + alpha * xp.expm1(xp.minimum(x, zero) / alpha)


_celu = elementwise(
    "celu",
    _celu_kernel,
    kind=Op,
    holomorphic=False,
    floating=True,
    # the exponential of positive x is not needed, and could overflow
    x=lambda g, x, alpha: g * F.exp(F.where(x > 0, 0.0, x) / alpha),
    doc="Return ``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``, elementwise.",
)


@named
def celu(x: Any, alpha: float = 1.0) -> Tensor:
    """Return the continuously differentiable exponential linear unit, elementwise.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    alpha
        A positive number, 1 by default; results are above ``-alpha``.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If ``alpha`` is not positive.

    Notes
    -----
    ``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``; the gradient at 0 is 1.

    References
    ----------
    Barron, "Continuously differentiable exponential linear units", 2017.

    Examples
    --------
    >>> gt.round(gt.nn.celu(np.array([-1.0, 0.0, 2.0])), 3).tolist()
    [-0.632, 0.0, 2.0]
    """
    if not alpha > 0:
        raise ValueError(f"celu: alpha must be positive, got {alpha!r}")
    return _celu(x, alpha=float(alpha))


# -- smooth rectifiers -----------------------------------------------------------------------------


softplus = elementwise(
    "softplus",
    lambda xp, x: xp.maximum(reals(x), 0) + xp.log1p(xp.exp(-xp.abs(x))),
    holomorphic=False,
    floating=True,
    doc="""Return ``log(1 + exp(x))``, elementwise, without overflow.

    Notes
    -----
    The gradient is ``sigmoid(x)``.

    References
    ----------
    Dugas, Bengio, Belisle, Nadeau and Garcia, "Incorporating second-order functional knowledge for
    better option pricing", 2001.

    Examples
    --------
    >>> gt.round(gt.nn.softplus(np.array([-1000.0, 0.0, 1000.0])), 4).tolist()
    [0.0, 0.6931, 1000.0]
    """,
    x=lambda g, x: g * F.sigmoid(x),
)


def _squareplus_kernel(xp: Any, x: Any, *, b: float = 4.0) -> Any:
    size = xp.abs(reals(x))
    root = xp.hypot(x, xp.full_like(x, math.sqrt(b)))
    total = 0.5 * size + 0.5 * root  # each halved: their sum could overflow
    # the difference loses digits for negative x; its product with the sum is b
    return xp.where(x < 0, 0.25 * b / total, total)


def _squareplus_slope_kernel(xp: Any, x: Any, y: Any, *, b: float = 4.0) -> Any:
    ends = xp.isinf(x)
    root = xp.hypot(xp.where(ends, xp.zeros_like(x), x), xp.full_like(x, math.sqrt(b)))
    return xp.where(ends, xp.astype(x > 0, x.dtype), xp.where(ends, xp.zeros_like(y), y) / root)


def _squareplus_bend(g: Any, x: Any, b: float) -> Any:
    root = F.hypot(x, math.sqrt(b))
    return g * (0.5 * b / root / root / root)  # the cube of the root could overflow


_squareplus_slope = elementwise(
    "squareplus_slope",
    _squareplus_slope_kernel,
    kind=Op,
    holomorphic=False,
    x=_squareplus_bend,
    y=lambda g: F.zeros_like(g),  # it is there to save time; the slope of x counts it
    doc="Return ``y / sqrt(x * x + b)`` for ``y = squareplus(x)``, elementwise.",
)
_squareplus = elementwise(
    "squareplus",
    _squareplus_kernel,
    kind=Op,
    holomorphic=False,
    floating=True,
    x=lambda g, x, out, b: g * F.squareplus_slope(x, out, b=b),
    doc="Return ``(x + sqrt(x * x + b)) / 2``, elementwise.",
)


@named
def squareplus(x: Any, b: float = 4.0) -> Tensor:
    """Return ``(x + sqrt(x * x + b)) / 2``, elementwise: like softplus, without exponentials.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    b
        The roundness of the bend, a positive number; 4 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If ``b`` is not positive.

    References
    ----------
    Barron, "Squareplus: a softplus-like algebraic rectifier", 2021.

    Examples
    --------
    >>> gt.nn.squareplus([-1.5, 0.0, 1.5]).tolist()
    [0.5, 1.0, 2.0]
    """
    plain_number(b, "squareplus", "b", "write (x + gradtape.sqrt(x * x + b)) / 2")
    if not b > 0:
        raise ValueError(f"squareplus: b must be positive, got {b!r}")
    return _squareplus(x, b=float(b))


# -- shrinkage -------------------------------------------------------------------------------------


def _shrink(name: str, kernel: Any, doc: str) -> Op:
    return elementwise(
        name,
        kernel,
        kind=Op,
        holomorphic=False,
        floating=True,
        x=lambda g, x, threshold: F.where(F.abs(x) > threshold, g, 0.0),
        doc=doc,
    )


def _hard_shrink_kernel(xp: Any, x: Any, *, threshold: float = 0.5) -> Any:
    return xp.where(xp.abs(reals(x)) <= threshold, xp.zeros_like(x), x)


def _soft_shrink_kernel(xp: Any, x: Any, *, threshold: float = 0.5) -> Any:
    return x - between(xp, x, -threshold, threshold)


_hard_shrink = _shrink(
    "hard_shrink",
    _hard_shrink_kernel,
    "Return ``x`` where its absolute value is above a threshold, otherwise 0.",
)
_soft_shrink = _shrink(
    "soft_shrink", _soft_shrink_kernel, "Return ``x`` moved towards 0 by a threshold, or 0."
)
tanh_shrink = elementwise(
    "tanh_shrink",
    lambda xp, x: x - xp.tanh(reals(x)),
    holomorphic=False,
    floating=True,
    x=lambda g, x: g * F.square(F.tanh(x)),
    doc="""Return ``x - tanh(x)``, elementwise.

    Examples
    --------
    >>> gt.round(gt.nn.tanh_shrink(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.238, 0.0, 0.238]
    """,
)


def _threshold(threshold: Any, name: str) -> float:
    how = "write gradtape.where(gradtape.abs(x) > threshold, x - threshold * gradtape.sign(x), 0.0)"
    if name == "soft_shrink":  # of the other, the derivative is 0
        plain_number(threshold, name, "threshold", how)
    if not threshold >= 0:
        raise ValueError(f"{name}: threshold must be at least 0, got {threshold!r}")
    return float(threshold)


@named
def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return ``x`` where it is above ``threshold`` in absolute value, otherwise 0.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    threshold
        A number of at least 0, 0.5 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If the threshold is negative.
    GradientError
        If a derivative with respect to ``b`` is requested.

    Notes
    -----
    The gradient is 1 where ``x`` is kept, and 0 elsewhere, including at the threshold.

    References
    ----------
    Donoho and Johnstone, "Ideal spatial adaptation by wavelet shrinkage", 1994.

    Examples
    --------
    >>> gt.nn.hard_shrink([-2.0, 0.25, 1.0]).tolist()
    [-2.0, 0.0, 1.0]
    """
    return _hard_shrink(x, threshold=_threshold(threshold, "hard_shrink"))


@named
def soft_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return ``x`` moved towards 0 by ``threshold``, or 0 where it is no larger than that.

    Parameters
    ----------
    x
        A floating tensor of any shape.
    threshold
        A number of at least 0, 0.5 by default.

    Returns
    -------
    A tensor of the shape and dtype of ``x``.

    Raises
    ------
    TypeError
        If ``x`` is complex, or not a tensor, an array or a number.
    ValueError
        If the threshold is negative.
    GradientError
        If a derivative with respect to ``threshold`` is requested.

    Notes
    -----
    The gradient is 1 where ``x`` is above the threshold in absolute value, and 0 elsewhere.

    References
    ----------
    Donoho, "De-noising by soft-thresholding", 1995.

    Examples
    --------
    >>> gt.nn.soft_shrink([-2.0, 0.25, 1.0]).tolist()
    [-1.5, 0.0, 0.5]
    """
    return _soft_shrink(x, threshold=_threshold(threshold, "soft_shrink"))
