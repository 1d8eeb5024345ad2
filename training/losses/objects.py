"""Losses as objects: a function with a value per example, its settings, and how to reduce it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core.extend import Tensor, as_tensor, ops
from ..shapes import of_one_rank, ratio, weights_like
from . import crossentropies, errors, focal, margins, overlaps
from .loss import Loss

__all__ = [
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "CategoricalHinge",
    "CosineSimilarity",
    "Dice",
    "Hinge",
    "Huber",
    "KLDivergence",
    "LogCosh",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredError",
    "MeanSquaredLogarithmicError",
    "Poisson",
    "SparseCategoricalCrossentropy",
    "SquaredHinge",
    "Tversky",
]


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


class SquaredHinge(_PlainLoss):
    """The mean of ``max(1 - y_true * y_pred, 0)**2``; see :func:`squared_hinge`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(margins.squared_hinge)


class CategoricalHinge(_PlainLoss):
    """The mean of :func:`categorical_hinge`.

    Parameters
    ----------
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(margins.categorical_hinge)
    _columns = False


class BinaryFocalCrossentropy(_FunctionLoss):
    """The mean of :func:`binary_focal_crossentropy`.

    Parameters
    ----------
    apply_class_balancing, alpha, gamma, from_logits, label_smoothing, axis
        As for the function. Logits are the default; in Keras they are not.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(focal.binary_focal_crossentropy)

    def __init__(
        self,
        apply_class_balancing: bool = False,
        alpha: float = 0.25,
        gamma: float = 2.0,
        from_logits: bool = True,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(
            reduction,
            name,
            apply_class_balancing=apply_class_balancing,
            alpha=alpha,
            gamma=gamma,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class CategoricalFocalCrossentropy(_FunctionLoss):
    """The mean of :func:`categorical_focal_crossentropy`.

    Parameters
    ----------
    alpha, gamma, from_logits, label_smoothing, axis
        As for the function. Logits are the default; in Keras they are not.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(focal.categorical_focal_crossentropy)
    _columns = False

    def __init__(
        self,
        alpha: Any = 0.25,
        gamma: float = 2.0,
        from_logits: bool = True,
        label_smoothing: float = 0.0,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(
            reduction,
            name,
            alpha=alpha,
            gamma=gamma,
            from_logits=from_logits,
            label_smoothing=label_smoothing,
            axis=axis,
        )


class Dice(_FunctionLoss):
    """One minus the Dice coefficient of labels and probabilities; see :func:`dice`.

    Parameters
    ----------
    axis
        The axis or axes of the sums; all by default.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(overlaps.dice)
    _columns = False

    def __init__(
        self,
        axis: Any = None,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(reduction, name, axis=axis)


class Tversky(_FunctionLoss):
    """One minus the Tversky index of labels and probabilities; see :func:`tversky`.

    Parameters
    ----------
    alpha, beta
        The weights of false positives and of false negatives.
    axis
        The axis or axes of the sums; all by default.
    reduction, name
        As for :class:`Loss`.
    """

    function = staticmethod(overlaps.tversky)
    _columns = False

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        axis: Any = None,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(reduction, name, alpha=alpha, beta=beta, axis=axis)
