"""Metrics by class: F scores, intersection over union."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.extend import (
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    ops,
    same_size,
    with_each_other,
)
from ..shapes import alike, checked, column_dropped
from .stateful import OfScores, Stateful, known, quotient, weighted

__all__ = [
    "BinaryIoU",
    "ConfusionMatrix",
    "F1Score",
    "FBetaScore",
    "IoU",
    "MeanIoU",
    "confusion_matrix",
]

_AVERAGES = (None, "micro", "macro", "weighted")


def confusion_matrix(
    y_true: Any, y_pred: Any, num_classes: int, sample_weight: Any = None
) -> Tensor:
    """Count how often each class was predicted for each label.

    Parameters
    ----------
    y_true, y_pred
        Classes: integers from 0 to ``num_classes - 1``, of one shape.
    num_classes
        The number of classes.
    sample_weight
        The weight of each example; 1 by default.

    Returns
    -------
    A float64 tensor of shape ``(num_classes, num_classes)``: a row per label, a column per
    prediction.

    Raises
    ------
    ValueError
        If the shapes differ, or a class is out of range or not a whole number. In a trace, such a
        class counts as NaN.

    Examples
    --------
    >>> gt.training.metrics.confusion_matrix([0, 1, 1], [0, 0, 1], 2).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """
    y_true, y_pred = with_each_other((y_true, y_pred))
    y_true, y_pred = column_dropped(y_true, y_pred.shape), column_dropped(y_pred, y_true.shape)
    y_true = checked("confusion_matrix", y_true, y_pred)
    both = [ops["reshape"](y, shape=(-1,)) for y in (y_true, y_pred)]
    weight = ops["reshape"](weighted(y_true, sample_weight), shape=(-1,))
    for classes in both:
        weight = weight * _in_range(classes, num_classes)
    rows, columns = (ops["clip"](x.astype("int64"), 0, num_classes - 1) for x in both)
    counts = ops["segment_sum"](weight, rows * num_classes + columns, num=num_classes**2)
    return ops["reshape"](counts, shape=(num_classes, num_classes))


def _in_range(given: Tensor, count: int) -> Any:
    """Raise if a class is out of range or not whole; in a trace, return NaN for such, otherwise 1.

    Rounding would make classes of probabilities or logits.
    """
    classes = given.astype("int64")
    if getattr(classes.array, "traced", False):
        right = ops["equal"](ops["clip"](classes, 0, count - 1).astype(given.dtype), given)
        return ops["where"](right, 1.0, np.nan)
    if classes.size:
        low, high = int(ops["min"](classes)), int(ops["max"](classes))
        if low < 0 or high >= count:
            raise ValueError(
                f"a class is {low if low < 0 else high}; with num_classes={count}, classes are "
                f"from 0 to {count - 1}"
            )
        apart = ops["abs"](given - classes.astype(given.dtype)) if given.dtype.kind == "f" else None
        if apart is not None and float(ops["max"](apart)):
            wrong = float(given[int(ops["argmax"](apart))])
            raise ValueError(f"a class is {wrong:.6g}, which is not whole; of scores, give argmax")
    return 1.0


class ConfusionMatrix(Stateful, saved_as="training.metrics.ConfusionMatrix"):
    """How often each class was predicted for each label.

    Raises
    ------
    ValueError
        If ``num_classes`` is not positive. At an update, if a class is out of range; after an
        update in a trace, at the result.

    Examples
    --------
    >>> matrix = gt.training.metrics.ConfusionMatrix(2)
    >>> matrix([0, 1, 1], [0, 0, 1]).tolist()
    [[1.0, 0.0], [1.0, 1.0]]
    """

    _gradtape_internal = "shares"

    _family = """
    Parameters
    ----------
    num_classes
        The number of classes.
    sparse_y_true, sparse_y_pred
        Whether labels, and predictions, are classes; true by default. Otherwise they have a value
        for each class along ``axis``.
    axis
        The axis of the classes, the last by default.
    ignore_class
        A label that does not count.
    """
    _arguments: ClassVar[tuple[str, ...]] = (
        "num_classes",
        "sparse_y_true",
        "sparse_y_pred",
        "axis",
        "ignore_class",
    )
    matrix: Variable

    def __init__(
        self,
        num_classes: int,
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
        ignore_class: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(name)
        if not hasattr(num_classes, "__index__") or num_classes < 1:
            raise ValueError(
                f"{type(self).__name__}: num_classes must be positive, got {num_classes!r}"
            )
        self.num_classes = int(num_classes)
        self.sparse_y_true, self.sparse_y_pred = bool(sparse_y_true), bool(sparse_y_pred)
        self.axis, self.ignore_class = axis, ignore_class

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels and predictions, with weights of the examples."""
        if "matrix" not in vars(self):  # not earlier: a file that names the class takes no memory
            self.add_state("matrix", (self.num_classes, self.num_classes))
        y_true, y_pred = with_each_other((y_true, y_pred))
        if not self.sparse_y_true:
            y_true = ops["argmax"](y_true, axis=self.axis)
        largest = None
        if not self.sparse_y_pred:
            largest = ops["max"](y_pred, axis=self.axis, keepdims=False)
            y_pred = ops["argmax"](y_pred, axis=self.axis)
        if y_true.ndim == y_pred.ndim + 1:
            y_true = ops["reshape_like"](y_true, y_pred)
        weight = weighted(y_true, sample_weight)
        weight = weight if largest is None else known(largest, weight)
        if self.ignore_class is not None:
            kept = ops["not_equal"](y_true, self.ignore_class)
            weight = ops["where"](kept, weight, 0.0)
            y_true = ops["where"](kept, y_true, 0)
            y_pred = ops["where"](kept, y_pred, 0)
        self.matrix.assign_add(confusion_matrix(y_true, y_pred, self.num_classes, weight))

    def result(self) -> Tensor:
        """Return the counts: a row per label, a column per prediction."""
        if "matrix" not in vars(self):
            return as_tensor(np.zeros((self.num_classes, self.num_classes)))
        ConfusionMatrix.check_state(self)  # for scores, a subclass says more
        return self.matrix.value

    def check_state(self) -> None:
        """Raise if classes of earlier batches were out of range: updates in a trace cannot raise.

        In a trace itself, it does nothing, as the state has no values there.
        """
        if "matrix" not in vars(self) or active_graph.get() is not None:
            return
        if np.isnan(self.matrix.numpy()).any():
            raise ValueError(
                f"{type(self).__name__}: labels or predictions of an update held classes that are "
                f"not from 0 to {self.num_classes - 1}, or not whole (or there was NaN); "
                "predictions with a value for each class need sparse_y_pred=False"
            )

    def shares(self) -> tuple[Tensor, Tensor]:
        """Return the intersection over union of each class, and the union."""
        matrix = ConfusionMatrix.result(self)
        right = ops["diagonal"](matrix)
        union = ops["sum"](matrix, axis=0) + ops["sum"](matrix, axis=1) - right
        return quotient(right, union), union


class MeanIoU(ConfusionMatrix, saved_as="training.metrics.MeanIoU"):
    """The mean intersection over union of the classes; classes that do not occur do not count.

    Examples
    --------
    >>> gt.training.metrics.MeanIoU(2)([0, 0, 1, 1], [0, 1, 0, 1]).item()
    0.3333333333333333
    """

    def result(self) -> Tensor:
        """Return the mean."""
        shares, union = self.shares()
        there = ops["not_equal"](union, 0).astype("float64")
        return quotient(ops["sum"](shares * there), ops["sum"](there))


class IoU(ConfusionMatrix, saved_as="training.metrics.IoU"):
    """The mean intersection over union of some classes.

    Parameters
    ----------
    target_class_ids
        The classes in the mean; those that do not occur do not count.

    Examples
    --------
    >>> gt.training.metrics.IoU(2, [0])([0, 0, 1, 1], [0, 1, 0, 1]).item()
    0.3333333333333333
    """

    _arguments = (*ConfusionMatrix._arguments, "target_class_ids")

    def __init__(
        self,
        num_classes: int,
        target_class_ids: Sequence[int],
        sparse_y_true: bool = True,
        sparse_y_pred: bool = True,
        axis: int = -1,
        ignore_class: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_classes, sparse_y_true, sparse_y_pred, axis, ignore_class, name)
        self.target_class_ids = [int(i) for i in target_class_ids]
        if not all(0 <= i < self.num_classes for i in self.target_class_ids):
            raise ValueError(
                f"{type(self).__name__}: target_class_ids must be from 0 to {self.num_classes - 1},"
                f" got {self.target_class_ids}"
            )

    def result(self) -> Tensor:
        """Return the mean."""
        shares, union = self.shares()
        wanted = np.zeros(self.num_classes)
        wanted[self.target_class_ids] = 1
        there = ops["not_equal"](union, 0).astype("float64") * as_tensor(wanted)
        return quotient(ops["sum"](shares * there), ops["sum"](there))


class BinaryIoU(OfScores, IoU, saved_as="training.metrics.BinaryIoU"):
    """The mean intersection over union of two classes, for probabilities or logits.

    Parameters
    ----------
    target_class_ids
        The classes in the mean, both by default.
    threshold
        Probabilities of at least this value count as 1; 0.5 by default. If it is not between 0 and
        1, it is compared with any scores.
    from_logits
        Whether predictions are logits. By default they are what the loss takes in ``fit`` and
        ``evaluate``, otherwise probabilities.

    Raises
    ------
    ValueError
        At an update, if predictions are NaN or not from 0 to 1; after an update in a trace, at the
        result.

    Examples
    --------
    >>> gt.training.metrics.BinaryIoU(threshold=0.3)([0, 1, 0, 1], [0.1, 0.2, 0.4, 0.7]).item()
    0.3333333333333333
    """

    _arguments = ("target_class_ids", "threshold")

    def __init__(
        self,
        target_class_ids: Sequence[int] = (0, 1),
        threshold: float = 0.5,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        IoU.__init__(self, 2, target_class_ids, name=name)
        self.take_logits(from_logits)
        self.threshold = float(threshold)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels and probabilities, with weights of the examples."""
        y_pred = as_tensor(y_pred)
        sample_weight = weighted(y_pred, sample_weight)
        if self.takes_any((self.threshold,)):
            sample_weight = known(y_pred, sample_weight)
        else:
            y_pred = self.probabilities(y_pred)
            sample_weight = self.checked(y_pred, sample_weight)
        above = ops["greater_equal"](y_pred, self.threshold)
        super().update_state(y_true, above.astype("int64"), sample_weight)

    def result(self) -> Tensor:
        """Return the mean."""
        self.check_state()
        return super().result()


class FBetaScore(OfScores, saved_as="training.metrics.FBetaScore"):
    """``(1 + beta²) * precision * recall / (beta² * precision + recall)``.

    Parameters
    ----------
    average
        ``None``, the default, for one score per class. ``"micro"`` for the score of all classes
        together, ``"macro"`` for the mean of the scores, ``"weighted"`` for their mean weighted by
        how often each label occurs.
    beta
        The weight of recall relative to precision, 1 by default.
    threshold
        Predictions above it count as 1. By default, only the largest of each example counts as 1;
        of a single class, those above 0.5.
    from_logits
        Whether predictions are logits, if there is a threshold between 0 and 1. By default they are
        what the loss takes in ``fit`` and ``evaluate``, otherwise probabilities.

    Raises
    ------
    ValueError
        If a setting is out of its range. At an update, if labels are neither 0 nor 1; with such a
        threshold, also if predictions are NaN or not from 0 to 1. After an update in a trace, at
        the result.

    Notes
    -----
    Labels are one-hot and predictions are probabilities, both of shape ``(examples, classes)``.

    Examples
    --------
    >>> score = gt.training.metrics.FBetaScore(beta=2.0, threshold=0.5)
    >>> score([[1, 1], [1, 0]], [[0.2, 0.6], [0.6, 0.2]]).tolist()
    [0.5555555555555556, 1.0]
    """

    _arguments: ClassVar[tuple[str, ...]] = ("average", "beta", "threshold")
    true_positives: Variable
    false_positives: Variable
    false_negatives: Variable

    def __init__(
        self,
        average: str | None = None,
        beta: float = 1.0,
        threshold: float | None = None,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(name or "fbeta_score")
        self.take_logits(from_logits)
        if average not in _AVERAGES:
            raise ValueError(
                f"{type(self).__name__}: average must be one of {_AVERAGES}, got {average!r}"
            )
        if not beta > 0:
            raise ValueError(f"{type(self).__name__}: beta must be positive, got {beta!r}")
        self.average, self.beta, self.threshold = average, float(beta), threshold

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels and predictions, with weights of the examples."""
        y_true, y_pred = alike(type(self).__name__, y_true, y_pred, columns=False)
        if y_pred.ndim != 2:
            raise ValueError(
                f"{type(self).__name__}: predictions must have shape (examples, classes), got "
                f"{y_pred.shape}"
            )
        if "true_positives" not in vars(self):
            for name in ("true_positives", "false_positives", "false_negatives"):
                self.add_state(name, (y_pred.shape[-1],))
        weight = weighted(y_true, sample_weight)
        threshold = self.threshold
        if threshold is None and same_size(y_pred.shape[-1], 1):
            threshold = 0.5  # the largest of one would be every prediction
        if threshold is None:
            largest = ops["max"](y_pred, axis=-1, keepdims=True)
            found, weight = ops["equal"](y_pred, largest), known(largest, weight)
        else:
            if self.takes_any((threshold,)):
                weight = known(y_pred, weight)
            else:
                y_pred = self.probabilities(y_pred)
                weight = self.checked(y_pred, weight)
            found = ops["greater"](y_pred, threshold)
        weight = self.of_binary(y_true, weight)
        found = found.astype("float32")
        y_true = y_true.astype("float32")
        self.true_positives.assign_add(ops["sum"](found * y_true * weight, axis=0))
        self.false_positives.assign_add(ops["sum"](found * (1.0 - y_true) * weight, axis=0))
        self.false_negatives.assign_add(ops["sum"]((1.0 - found) * y_true * weight, axis=0))

    def result(self) -> Tensor:
        """Return the score, 0 before any batch."""
        self.check_state()
        if "true_positives" not in vars(self):
            return as_tensor(0.0)
        tp, fp = self.true_positives.value, self.false_positives.value
        fn = self.false_negatives.value
        labels = tp + fn
        if self.average == "micro":
            tp, fp, fn = (ops["sum"](x) for x in (tp, fp, fn))
        precision, recall = quotient(tp, tp + fp), quotient(tp, tp + fn)
        square = self.beta**2
        scores = quotient(precision * recall * (1.0 + square), precision * square + recall)
        if self.average == "macro":
            return ops["mean"](scores)
        if self.average == "weighted":
            return ops["sum"](scores * quotient(labels, ops["sum"](labels)))
        return scores


class F1Score(FBetaScore, saved_as="training.metrics.F1Score"):
    """``2 * precision * recall / (precision + recall)``.

    Parameters
    ----------
    average, threshold, from_logits
        As for :class:`FBetaScore`.

    Examples
    --------
    >>> score = gt.training.metrics.F1Score(average="macro")
    >>> score([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]]).item()
    0.3333333333333333
    """

    _arguments = ("average", "threshold")

    def __init__(
        self,
        average: str | None = None,
        threshold: float | None = None,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(average, 1.0, threshold, name or "f1_score", from_logits=from_logits)
