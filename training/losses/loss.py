"""``Loss``: the base class of loss objects."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, as_tensor, in_precision, ops, snake_case
from ...layers import mask_of
from ..shapes import mask_weights, weights_like

__all__ = ["Loss"]

_REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none", None)


class Loss:
    """Base class of losses: ``call(y_true, y_pred)`` returns a value per example.

    Parameters
    ----------
    reduction
        How to combine these values: ``"sum_over_batch_size"`` or ``"mean"`` for their mean,
        ``"sum"``, or ``"none"``.
    name
        A name for histories; the class name in snake case by default.

    Raises
    ------
    ValueError
        If the reduction is unknown.

    Examples
    --------
    >>> class Fourth(gt.training.losses.Loss):
    ...     def call(self, y_true, y_pred):
    ...         return gt.mean((y_true - y_pred) ** 4, axis=-1)
    >>> Fourth("sum")(gt.ones((2, 3)), gt.zeros((2, 3))).item()
    2.0
    """

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = None
    ) -> None:
        kind = type(self).__name__
        if reduction is not None and not isinstance(reduction, str):
            raise TypeError(
                f"{kind}: reduction must be one of {_REDUCTIONS}, got {type(reduction).__name__}; "
                f"a loss is made first and then called: {kind}()(y_true, y_pred)"
            )
        if reduction not in _REDUCTIONS:
            raise ValueError(f"{kind}: reduction must be one of {_REDUCTIONS}, got {reduction!r}")
        self.name = name or snake_case(kind)
        self.__name__ = self.name
        self.reduction = reduction

    def call(self, y_true: Any, y_pred: Any) -> Any:
        """Return a value per example."""
        raise NotImplementedError(f"{type(self).__name__}: define call(y_true, y_pred)")

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the reduced loss.

        Parameters
        ----------
        y_true, y_pred
            Labels and predictions.
        sample_weight
            A factor for each example's value. The mean still divides by the number of values. If
            the predictions have a mask, because a layer of the model masks padding, padding counts
            neither in the sum nor in that number.
        """
        values = in_precision(as_tensor(self.call(y_true, y_pred)), "float32")
        mask = mask_of(y_pred)
        if mask is not None:
            mean = self.reduction in ("sum_over_batch_size", "mean")
            sample_weight = mask_weights(mask, values, sample_weight, self.name, mean)
        if sample_weight is not None:
            values = values * weights_like(sample_weight, values)
        if self.reduction in ("none", None):
            return values
        return ops["sum"](values) if self.reduction == "sum" else ops["mean"](values)
