"""Losses of overlapping regions, for segmentation; names and formulas are Keras's."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, ops
from ..shapes import EPSILON
from .inputs import of_one_shape

__all__ = ["dice", "tversky"]


@of_one_shape(columns=False, labels=(0.0, 1.0))
def dice(y_true: Any, y_pred: Any, axis: Any = None) -> Tensor:
    """Return ``1 - 2 * sum(y_true * y_pred) / (sum(y_true) + sum(y_pred))``.

    Parameters
    ----------
    y_true, y_pred
        Labels and probabilities of one shape.
    axis
        The axis or axes of the sums; all by default, which gives one number.

    Returns
    -------
    A tensor without these axes.

    Notes
    -----
    1e-7 is added to the denominator.

    References
    ----------
    F. Milletari, N. Navab and S.-A. Ahmadi, "V-Net: Fully Convolutional Neural Networks for
    Volumetric Medical Image Segmentation", 3DV 2016.

    Examples
    --------
    >>> round(gt.training.losses.dice([[1.0, 0.0]], [[0.5, 0.5]]).item(), 4)
    0.5
    """
    axis = _axes(axis)
    both = ops["sum"](y_true * y_pred, axis=axis)
    whole = ops["sum"](y_true, axis=axis) + ops["sum"](y_pred, axis=axis)
    return 1.0 - 2.0 * both / (whole + EPSILON)


@of_one_shape(columns=False, labels=(0.0, 1.0))
def tversky(
    y_true: Any, y_pred: Any, alpha: float = 0.5, beta: float = 0.5, axis: Any = None
) -> Tensor:
    """Return one minus the Tversky index, which weights false positives and negatives.

    Parameters
    ----------
    y_true, y_pred
        Labels and probabilities of one shape.
    alpha
        The weight of false positives.
    beta
        The weight of false negatives.
    axis
        The axis or axes of the sums; all by default, which gives one number.

    Returns
    -------
    A tensor without these axes: ``1 - tp / (tp + alpha * fp + beta * fn)``.

    Notes
    -----
    1e-7 is added to the denominator.

    References
    ----------
    S. S. M. Salehi, D. Erdogmus and A. Gholipour, "Tversky Loss Function for Image Segmentation
    Using 3D Fully Convolutional Deep Networks", MLMI 2017.

    Examples
    --------
    >>> round(gt.training.losses.tversky([[1.0, 0.0]], [[0.5, 0.5]]).item(), 4)
    0.5
    """
    axis = _axes(axis)
    right = ops["sum"](y_true * y_pred, axis=axis)
    extra = ops["sum"]((1.0 - y_true) * y_pred, axis=axis)
    missed = ops["sum"](y_true * (1.0 - y_pred), axis=axis)
    return 1.0 - right / (right + alpha * extra + beta * missed + EPSILON)


def _axes(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis
