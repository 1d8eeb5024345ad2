"""Loss objects: a function with a value per example, its settings, and its reduction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from ...core.extend import Tensor, as_tensor, complete_docstring, ops
from ..shapes import of_one_rank, weights_like
from . import crossentropies, errors
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
    """A loss that calls one of the functions, with settings."""

    _family = """
    Parameters
    ----------
    apply_class_balancing, alpha, gamma, label_smoothing, axis
        As for the function.
    from_logits
        As for the function; true by default, unlike in Keras.
    reduction, name
        As for :class:`Loss`.
    """
    function: ClassVar[Callable[..., Any]]
    #: Whether the function is all that a class adds; it says which values depend on one example.
    by_example: ClassVar[bool] = False
    #: Whether a vector and a column hold the same examples; not if the last axis holds classes.
    _columns: ClassVar[bool] = True

    def __init_subclass__(cls, of: Any = None, columns: bool = True) -> None:
        if of is not None:
            cls.function, cls._columns, cls.by_example = staticmethod(of), columns, True
        complete_docstring(cls)

    def __init__(self, reduction: str | None, name: str | None, **settings: Any) -> None:
        super().__init__(reduction, type(self).function.__name__ if name is None else name)
        self.settings = settings

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {**self.settings, **super().get_config()}

    def call(self, y_true: Any, y_pred: Any) -> Tensor:
        """Return a value per example."""
        if self._columns:
            y_true, y_pred = of_one_rank(y_true, y_pred)
        return type(self).function(y_true, y_pred, **self.settings)


class _PlainLoss(_FunctionLoss):
    """A loss that calls a function without settings."""

    def __init__(
        self, reduction: str | None = "sum_over_batch_size", name: str | None = None
    ) -> None:
        super().__init__(reduction, name)


class _SmoothedLoss(_FunctionLoss):
    """A cross-entropy with smoothed labels."""

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


class MeanSquaredError(_PlainLoss, of=errors.mean_squared_error):
    """The mean of ``(y_true - y_pred)**2``; see :func:`mean_squared_error`.

    Examples
    --------
    >>> gt.training.losses.MeanSquaredError()([[1.0], [2.0]], [[1.0], [4.0]]).item()
    2.0
    """


class MeanAbsoluteError(_PlainLoss, of=errors.mean_absolute_error):
    """The mean of ``|y_true - y_pred|``; see :func:`mean_absolute_error`."""


class MeanAbsolutePercentageError(_PlainLoss, of=errors.mean_absolute_percentage_error):
    """The mean error in per cent; see :func:`mean_absolute_percentage_error`."""


class MeanSquaredLogarithmicError(_PlainLoss, of=errors.mean_squared_logarithmic_error):
    """The mean squared error of logarithms; see :func:`mean_squared_logarithmic_error`."""


class Huber(_FunctionLoss, of=errors.huber):
    """The mean of Huber's loss; see :func:`huber`.

    Parameters
    ----------
    delta
        The error above which the loss is a straight line; positive.

    Raises
    ------
    ValueError
        If ``delta`` is not above 0.
    """

    def __init__(
        self,
        delta: float = 1.0,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        if not delta > 0:
            raise ValueError(f"Huber: delta must be above 0, got {delta!r}")
        super().__init__(reduction, name or "huber_loss", delta=delta)


class Hinge(_PlainLoss, of=errors.hinge):
    """The mean of ``max(1 - y_true * y_pred, 0)``; see :func:`hinge`."""


class KLDivergence(_PlainLoss, of=errors.kl_divergence, columns=False):
    """The mean Kullback-Leibler divergence; see :func:`kl_divergence`."""


class LogCosh(_PlainLoss, of=errors.log_cosh):
    """The mean of ``log(cosh(y_pred - y_true))``; see :func:`log_cosh`."""


class Poisson(_PlainLoss, of=errors.poisson):
    """The mean of ``y_pred - y_true * log(y_pred)``; see :func:`poisson`."""


class CosineSimilarity(_FunctionLoss, of=errors.cosine_similarity, columns=False):
    """Minus the mean cosine of labels and predictions; see :func:`cosine_similarity`.

    Parameters
    ----------
    axis
        The axis of the vectors.
    """

    def __init__(
        self,
        axis: int = -1,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(reduction, name, axis=axis)


class BinaryCrossentropy(_SmoothedLoss, of=crossentropies.binary_crossentropy):
    """The mean cross-entropy of binary labels; see :func:`binary_crossentropy`."""


class CategoricalCrossentropy(
    _SmoothedLoss, of=crossentropies.categorical_crossentropy, columns=False
):
    """The mean cross-entropy of label distributions; see :func:`categorical_crossentropy`."""


class SparseCategoricalCrossentropy(
    _FunctionLoss, of=crossentropies.sparse_categorical_crossentropy, columns=False
):
    """The mean cross-entropy of integer labels; see :func:`sparse_categorical_crossentropy`.

    Parameters
    ----------
    ignore_class
        A label that is left out of the mean.

    Examples
    --------
    >>> loss = gt.training.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    >>> round(loss([1, -1], [[0.0, 0.0], [9.0, 0.0]]).item(), 4)
    0.6931
    """

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

    def counted(self, y_true: Any, y_pred: Any, values: Tensor) -> Any:
        """Return 0 for padding and for ignored labels; None if all values count."""
        counted, ignored = super().counted(y_true, y_pred, values), self.settings["ignore_class"]
        if ignored is None:
            return counted
        kept = weights_like(ops["not_equal"](as_tensor(y_true), ignored), values)
        return kept if counted is None else kept * counted


class SquaredHinge(_PlainLoss, of=errors.squared_hinge):
    """The mean of ``max(1 - y_true * y_pred, 0)**2``; see :func:`squared_hinge`."""


class CategoricalHinge(_PlainLoss, of=errors.categorical_hinge, columns=False):
    """The mean of :func:`categorical_hinge`."""


class BinaryFocalCrossentropy(_FunctionLoss, of=crossentropies.binary_focal_crossentropy):
    """The mean of :func:`binary_focal_crossentropy`."""

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
        balance = {"apply_class_balancing": apply_class_balancing, "alpha": alpha, "gamma": gamma}
        settings = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(reduction, name, **balance, **settings)


class CategoricalFocalCrossentropy(
    _FunctionLoss, of=crossentropies.categorical_focal_crossentropy, columns=False
):
    """The mean of :func:`categorical_focal_crossentropy`."""

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
        settings = {"from_logits": from_logits, "label_smoothing": label_smoothing, "axis": axis}
        super().__init__(reduction, name, alpha=alpha, gamma=gamma, **settings)


class Dice(_FunctionLoss, of=errors.dice, columns=False):
    """One minus the Dice coefficient of labels and probabilities; see :func:`dice`.

    Parameters
    ----------
    axis
        The axis or axes of the sums; all by default.
    """

    def __init__(
        self,
        axis: Any = None,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(reduction, name, axis=axis)


class Tversky(_FunctionLoss, of=errors.tversky, columns=False):
    """One minus the Tversky index of labels and probabilities; see :func:`tversky`.

    Parameters
    ----------
    alpha, beta
        The weights of false positives and of false negatives.
    axis
        The axis or axes of the sums; all by default.
    """

    def __init__(
        self,
        alpha: float = 0.5,
        beta: float = 0.5,
        axis: Any = None,
        reduction: str | None = "sum_over_batch_size",
        name: str | None = None,
    ) -> None:
        super().__init__(reduction, name, alpha=alpha, beta=beta, axis=axis)
