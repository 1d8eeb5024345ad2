"""Activations that set small numbers to 0, or move numbers towards it."""

from __future__ import annotations

from typing import Any

from .....core.extend import F, Op, Tensor
from ...common.kernels import reals
from ...common.op_builders import elementwise, named
from .sigmoids import between

__all__ = ["hard_shrink", "soft_shrink", "tanh_shrink"]


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
