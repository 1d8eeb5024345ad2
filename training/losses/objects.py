"""Losses as objects: a function with a value per example, its settings, and how to reduce it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core.extend import Tensor, as_tensor, in_precision, ops, snake_case
from ..shapes import of_one_rank, ratio, weights_like
from . import crossentropies, errors

__all__ = [
    "BinaryCrossentropy",
    "CategoricalCrossentropy",
    "CosineSimilarity",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "Loss",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
]

_REDUCTIONS = ("sum_over_batch_size", "mean", "sum", "none", None)


class Loss:
    """Base class of losses: ``call(y_true, y_pred)`` gives a value per example.

    Parameters
    ----------
    reduction
        What becomes of these: ``"sum_over_batch_size"`` or ``"mean"`` (their mean), ``"sum"``, or
        ``"none"``.
    name
        A name for histories; the class name in snake case by default.

    Raises
    ------
    ValueError
        If the reduction is another.

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
        if reduction not in _REDUCTIONS:
            raise ValueError(
                f"{type(self).__name__}: reduction {reduction!r} is none of {_REDUCTIONS}"
            )
        self.name = name or snake_case(type(self).__name__)
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
            Numbers by which the examples' values are multiplied; the mean still divides by how
            many values there are.
        """
        values = in_precision(as_tensor(self.call(y_true, y_pred)), "float32")
        if sample_weight is not None:
            values = values * weights_like(sample_weight, values)
        if self.reduction in ("none", None):
            return values
        return ops["sum"](values) if self.reduction == "sum" else ops["mean"](values)


class _FunctionLoss(Loss):
    """A loss that is one of the functions, with settings."""

    function: ClassVar[Callable[..., Any]]
    #: Whether a vector and a column count the same examples: not where classes have an axis.
    _columns: ClassVar[bool] = True

    def __init__(self, reduction: str | None, name: str | None, **settings: Any) -> None:
        super().__init__(reduction, name or type(self).function.__name__)
        self.settings = settings

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return a value per example."""
        if self._columns:
            y_true, y_pred = of_one_rank(y_true, y_pred)
        return type(self).function(y_true, y_pred, **self.settings)


class _PlainLoss(_FunctionLoss):
    """One of the functions without settings."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = None
    ) -> None:
        super().__init__(reduction, name)


class MeanSquaredError(_PlainLoss):
    """The mean of ``(y_true - y_pred)**2``; see :func:`mean_squared_error`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.

    Examples
    --------
    >>> gt.training.losses.MeanSquaredError()([[1.0], [2.0]], [[1.0], [4.0]]).item()
    2.0
    """

    function = staticmethod(errors.mean_squared_error)


class MeanAbsoluteError(_PlainLoss):
    """The mean of ``|y_true - y_pred|``; see :func:`mean_absolute_error`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.mean_absolute_error)


class MeanAbsolutePercentageError(_PlainLoss):
    """The mean error in per cent; see :func:`mean_absolute_percentage_error`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.mean_absolute_percentage_error)


class MeanSquaredLogarithmicError(_PlainLoss):
    """The mean squared error of logarithms; see :func:`mean_squared_logarithmic_error`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.mean_squared_logarithmic_error)


class Huber(_FunctionLoss):
    """The mean of Huber's loss; see :func:`huber`.

    Parameters
    ----------
    delta
        The error from which on the loss is a line, above 0.
    reduction, name
        As for :class:`Loss`.

    Raises
    ------
    ValueError
        If ``delta`` is not above 0.
    """

    function = staticmethod(errors.huber)

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        if not delta > 0:
            raise ValueError(f"Huber: delta must be above 0, got {delta!r}")
        super().__init__(reduction, name or "huber_loss", delta=delta)


class Hinge(_PlainLoss):
    """The mean of ``max(1 - y_true * y_pred, 0)``; see :func:`hinge`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.hinge)


class KLDivergence(_PlainLoss):
    """The mean Kullback-Leibler divergence; see :func:`kl_divergence`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.kl_divergence)
    _columns = False


class LogCosh(_PlainLoss):
    """The mean of ``log(cosh(y_pred - y_true))``; see :func:`log_cosh`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.log_cosh)


class Poisson(_PlainLoss):
    """The mean of ``y_pred - y_true * log(y_pred)``; see :func:`poisson`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.poisson)


class CosineSimilarity(_FunctionLoss):
    """Minus the mean cosine of the angle to the labels; see :func:`cosine_similarity`.

    Parameters
    ----------
    axis
        The axis of the vectors.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(errors.cosine_similarity)
    _columns = False

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(reduction, name, axis=axis)


class BinaryCrossentropy(_FunctionLoss):
    """The mean cross-entropy of yes-or-no labels; see :func:`binary_crossentropy`.

    Parameters
    ----------
    from_logits, label_smoothing, axis
        As for the function. Logits are the default; in Keras they are not.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(crossentropies.binary_crossentropy)

    def __init__(
        self,
        from_logits: bool = True,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(reduction, name, from_logits=from_logits, **settings)


class CategoricalCrossentropy(_FunctionLoss):
    """The mean cross-entropy of label distributions; see :func:`categorical_crossentropy`.

    Parameters
    ----------
    from_logits, label_smoothing, axis
        As for the function. Logits are the default; in Keras they are not.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(crossentropies.categorical_crossentropy)
    _columns = False

    def __init__(
        self,
        from_logits: bool = True,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        settings = {"label_smoothing": label_smoothing, "axis": axis}
        super().__init__(reduction, name, from_logits=from_logits, **settings)


class SparseCategoricalCrossentropy(_FunctionLoss):
    """The mean cross-entropy of integer labels; see :func:`sparse_categorical_crossentropy`.

    Parameters
    ----------
    from_logits, axis
        As for the function. Logits are the default; in Keras they are not.
    ignore_class
        A label that is left out of the mean.
    reduction, name
        As for :class:`Loss`.

    Examples
    --------
    >>> loss = gt.training.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    >>> round(loss([1, -1], [[0.0, 0.0], [9.0, 0.0]]).item(), 4)
    0.6931
    """

    function = staticmethod(crossentropies.sparse_categorical_crossentropy)
    _columns = False

    def __init__(
        self,
        from_logits: bool = True,
        ignore_class: int | None = None,
        reduction: str | None = "sum_over_batch_size",
        axis: int = -1,
        name: str | None = None,
    ) -> None:
        settings = {"ignore_class": ignore_class, "axis": axis}
        super().__init__(reduction, name, from_logits=from_logits, **settings)

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> Tensor:
        """Return the reduced loss; the mean is over the labels that are not ignored."""
        ignored = self.settings["ignore_class"]
        if ignored is None or self.reduction not in ("sum_over_batch_size", "mean"):
            return super().__call__(y_true, y_pred, sample_weight)
        values = self.call(y_true, y_pred)
        kept = weights_like(ops["not_equal"](as_tensor(y_true), ignored), values)
        weight = kept
        if sample_weight is not None:
            weight = kept * weights_like(sample_weight, values)
        return ratio(ops["sum"](values * weight), ops["sum"](kept))
