"""``Loss``: the base class of loss objects."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from ...core.extend import Tensor, as_tensor, in_precision, ops, snake_case
from ...layers import mask_of
from ..shapes import mask_weights, mean_of_counted, weights_like

__all__ = ["Loss"]

#: The results of calls, with the numbers of values in their means; None outside training.
_COUNTS: ContextVar[list[tuple[Tensor, Tensor | None]] | None] = ContextVar("counts", default=None)
_REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none", None)


class Loss:
    """Base class of losses: ``call(y_true, y_pred)`` returns a value per example.

    Override ``call``. An overridden ``__call__`` may return what ``super().__call__`` returns; from
    any other number, an epoch's loss is a mean over examples, also if some values are padding.

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
        value, count = self.reduced(y_true, y_pred, sample_weight, self.reduction)
        noted = _COUNTS.get()
        if noted is not None:
            noted.append((value, count))
        return value

    def reduced(
        self, y_true: Any, y_pred: Any, sample_weight: Any, reduction: str | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return the loss with a reduction, and the number of values in its mean.

        An epoch's loss weights the means of batches by these numbers. They are None if all values
        count, and for other reductions.
        """
        values = in_precision(as_tensor(self.call(y_true, y_pred)), "float32")
        counted = self.counted(y_true, y_pred, values)
        if reduction in ("sum_over_batch_size", "mean"):
            return mean_of_counted(values, counted, sample_weight)
        for weight in (sample_weight, counted):
            values = values if weight is None else values * weights_like(weight, values)
        return (ops["sum"](values) if reduction == "sum" else values), None

    def counted(self, y_true: Any, y_pred: Any, values: Tensor) -> Any:
        """Return 1 for values that count and 0 for others, such as padding; None if all count."""
        return mask_weights(mask_of(y_pred), values, None, self.name)


def counted_call(loss: Callable[..., Any], *args: Any, **given: Any) -> tuple[Any, Tensor | None]:
    """Return what a loss returns, and the number of values in that mean, if :class:`Loss` took it.

    The number is None if all values count, or another mean was returned.
    """
    noted: list[tuple[Tensor, Tensor | None]] = []
    token = _COUNTS.set(noted)
    try:
        value = loss(*args, **given)
    finally:
        _COUNTS.reset(token)
    return value, next((count for known, count in noted if known is value), None)
