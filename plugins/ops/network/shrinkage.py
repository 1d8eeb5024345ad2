"""Activations that shrink, smooth or gate their input."""

from __future__ import annotations

from typing import Any

from ....core.extend import F, Op, Tensor, as_tensor, ops
from ..common.axes import axis_of
from ..common.kernels import reals
from ..common.op_builders import elementwise, named
from ..shapes.joining import split

__all__ = ["celu", "glu", "hard_shrink", "soft_shrink", "squareplus", "tanh_shrink"]


def _celu_kernel(xp: Any, x: Any, *, alpha: float = 1.0) -> Any:
    zero = xp.zeros_like(reals(x))
    return xp.maximum(x, zero) + alpha * xp.expm1(xp.minimum(x, zero) / alpha)


_celu = elementwise(
    "celu",
    _celu_kernel,
    kind=Op,
    holomorphic=False,
    # the exponential of positive x is not wanted, and could overflow
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
        A positive number, 1 by default: results are above its negative.

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


def _squareplus_kernel(xp: Any, x: Any, *, b: float = 4.0) -> Any:
    return 0.5 * (reals(x) + xp.sqrt(x * x + b))


_squareplus = elementwise(
    "squareplus",
    _squareplus_kernel,
    kind=Op,
    holomorphic=False,
    x=lambda g, x, b: g * ((x / F.sqrt(x * x + b) + 1.0) * 0.5),
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
        How round the bend is, a positive number; 4 by default.

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
    if not b > 0:
        raise ValueError(f"squareplus: b must be positive, got {b!r}")
    return _squareplus(x, b=float(b))


def _shrink(name: str, kernel: Any, doc: str) -> Op:
    return elementwise(
        name,
        kernel,
        kind=Op,
        holomorphic=False,
        x=lambda g, x, threshold: F.where(F.abs(x) > threshold, g, 0.0),
        doc=doc,
    )


def _hard_shrink_kernel(xp: Any, x: Any, *, threshold: float = 0.5) -> Any:
    return xp.where(xp.abs(reals(x)) <= threshold, xp.zeros_like(x), x)


def _soft_shrink_kernel(xp: Any, x: Any, *, threshold: float = 0.5) -> Any:
    inside = xp.minimum(
        xp.maximum(reals(x), xp.full_like(x, -threshold)), xp.full_like(x, threshold)
    )
    return x - inside


_hard_shrink = _shrink(
    "hard_shrink",
    _hard_shrink_kernel,
    "Return ``x`` where it is above a threshold in size, else 0.",
)
_soft_shrink = _shrink(
    "soft_shrink", _soft_shrink_kernel, "Return ``x`` moved towards 0 by a threshold, or 0."
)
tanh_shrink = elementwise(
    "tanh_shrink",
    lambda xp, x: x - xp.tanh(reals(x)),
    holomorphic=False,
    x=lambda g, x: g * F.square(F.tanh(x)),
    doc="""Return ``x - tanh(x)``, elementwise.

    Examples
    --------
    >>> gt.round(gt.nn.tanh_shrink(np.array([-1.0, 0.0, 1.0])), 3).tolist()
    [-0.238, 0.0, 0.238]
    """,
)


def _threshold(threshold: Any, name: str) -> float:
    if not threshold >= 0:
        raise ValueError(f"{name}: threshold must be at least 0, got {threshold!r}")
    return float(threshold)


@named
def hard_shrink(x: Any, threshold: float = 0.5) -> Tensor:
    """Return ``x`` where it is above ``threshold`` in absolute value, else 0.

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

    Notes
    -----
    The gradient is 1 where ``x`` is kept, and 0 elsewhere, at the threshold too.

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
    """Return ``x`` moved towards 0 by ``threshold``, and 0 where it is no larger than that.

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
    A tensor of the dtype of ``x`` and its shape, but for half the size along the axis.

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
