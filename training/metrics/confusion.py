"""Metrics of binary predictions at thresholds: counts, precision, recall."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.extend import Tensor, Variable, as_tensor, ops
from ..shapes import alike
from .stateful import OfScores, known, quotient, weighted

__all__ = [
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "Recall",
    "TrueNegatives",
    "TruePositives",
]


class AtThresholds(OfScores):
    """Counts of correct and wrong predictions at one or more thresholds."""

    _family = """
    Parameters
    ----------
    thresholds
        A number between 0 and 1, 0.5 by default, or several of them.
    top_k
        Only the ``top_k`` largest predictions of each example can count as 1. Without
        ``thresholds``, all of them do.
    class_id
        Count only this class of the last axis.
    num_thresholds
        The number of thresholds to try, evenly spaced from 0 to 1. By default, every score is one:
        the result is exact for up to 1024 different scores. Of more, the closest are joined.
    from_logits
        Whether predictions are logits. By default they are what the loss takes in ``fit`` and
        ``evaluate``, otherwise probabilities. Logits become probabilities by a sigmoid, or by a
        softmax if the loss is a categorical cross-entropy. Thresholds of 0 compare any scores.

    Raises
    ------
    ValueError
        If a setting is out of its range. At an update, if predictions are NaN or not from 0 to 1;
        after an update in a trace, at the result.
    """
    _arguments: ClassVar[tuple[str, ...]] = ("thresholds",)

    true_positives: Variable
    false_positives: Variable
    true_negatives: Variable
    false_negatives: Variable

    def __init__(self, thresholds: Any, name: str | None, from_logits: bool | None = None) -> None:
        super().__init__(name)
        self.take_logits(from_logits)
        given = thresholds if isinstance(thresholds, Sequence) else [thresholds]
        if not given or not all(0.0 <= x <= 1.0 for x in given):
            raise ValueError(
                f"{type(self).__name__}: thresholds must be between 0 and 1, got {thresholds!r}"
            )
        self.thresholds = thresholds
        self.set_limits([float(x) for x in given])

    def set_limits(self, limits: list[float]) -> None:
        """Create the counts for thresholds, which need not be between 0 and 1."""
        self._gradtape_limits = np.array(limits, "float32")
        for name in ("true_positives", "false_positives", "true_negatives", "false_negatives"):
            self.add_state(name, (len(limits),))

    def prepared(self, y_true: Tensor, y_pred: Tensor) -> tuple[Any, Any]:
        """Return labels and predictions in the form that is counted."""
        return y_true, y_pred

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels, 0 and 1, and probabilities of one shape, with weights of the examples."""
        y_true, y_pred = alike(type(self).__name__, y_true, y_pred)
        anything = self.takes_any(self._gradtape_limits)
        y_true, y_pred = self.prepared(y_true, y_pred if anything else self.probabilities(y_pred))
        weight = weighted(y_pred, sample_weight)
        if anything:
            weight = known(y_pred, weight)
        else:
            all_count = sample_weight is None and getattr(self, "top_k", None) is None
            weight = self.checked(y_pred, weight, all_count)
        weight = ops["reshape"](weight, shape=(-1,))
        labels = ops["reshape"](y_true.astype("bool"), shape=(-1,)).astype("float32")
        self._count(labels * weight, (1.0 - labels) * weight, ops["reshape"](y_pred, shape=(-1,)))

    def _count(self, yes: Tensor, no: Tensor, scores: Tensor) -> None:
        """Add the weights of examples with label 1, of those with label 0, and their scores."""
        p = ops["expand_dims"](scores.astype("float32"), axis=-1)
        over = ops["greater"](p, as_tensor(self._gradtape_limits)).astype("float64")
        found, wrong = ops["matmul"](yes, over), ops["matmul"](no, over)
        self.true_positives.assign_add(found)
        self.false_positives.assign_add(wrong)
        self.false_negatives.assign_add(ops["sum"](yes) - found)
        self.true_negatives.assign_add(ops["sum"](no) - wrong)

    def as_asked(self, values: Any) -> Tensor:
        """Return a scalar if there is one threshold, otherwise all values."""
        one = not isinstance(self.thresholds, Sequence)
        return values[0] if one else values


class _Count(AtThresholds):
    counted: ClassVar[str]

    def __init__(
        self,
        thresholds: Any = 0.5,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(thresholds, name, from_logits)

    def result(self) -> Tensor:
        """Return the count."""
        self.check_state()
        return self.as_asked(getattr(self, self.counted).value)


class TruePositives(_Count, saved_as="training.metrics.TruePositives"):
    """The number of predictions above the threshold with label 1.

    Examples
    --------
    >>> gt.training.metrics.TruePositives()([0, 1, 1], [0.9, 0.8, 0.2]).item()
    1.0
    """

    counted = "true_positives"


class FalsePositives(_Count, saved_as="training.metrics.FalsePositives"):
    """The number of predictions above the threshold with label 0."""

    counted = "false_positives"


class TrueNegatives(_Count, saved_as="training.metrics.TrueNegatives"):
    """The number of predictions not above the threshold with label 0."""

    counted = "true_negatives"


class FalseNegatives(_Count, saved_as="training.metrics.FalseNegatives"):
    """The number of predictions not above the threshold with label 1."""

    counted = "false_negatives"


class _Share(AtThresholds):
    """A ratio of counts: of all predictions, of the best of each example, or of one class."""

    _arguments = ("top_k", "class_id")
    #: The count that is added to the true positives in the denominator.
    _others: ClassVar[str]

    def __init__(
        self,
        thresholds: Any = None,
        top_k: int | None = None,
        class_id: int | None = None,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(0.5 if thresholds is None else thresholds, name, from_logits)
        if thresholds is None and top_k is not None:  # the best count, whatever their values
            self._gradtape_limits = np.array([-np.inf], "float32")
        self._given, self.top_k, self.class_id = thresholds, top_k, class_id

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {"thresholds": self._given, **super().get_config()}

    def result(self) -> Tensor:
        """Return the ratio, 0 if the denominator is 0."""
        self.check_state()
        tp, others = self.true_positives.value, getattr(self, self._others).value
        return self.as_asked(quotient(tp, tp + others))

    def prepared(self, y_true: Tensor, y_pred: Tensor) -> tuple[Any, Any]:
        """Return only the best predictions, or only one class."""
        if self.top_k is not None:
            # ranks from the largest prediction on; equal ones keep their order
            places = ops["argsort"](ops["argsort"](-y_pred, axis=-1), axis=-1)
            among = ops["logical_or"](ops["less"](places, self.top_k), y_pred != y_pred)
            y_pred = ops["where"](among, y_pred, -np.inf)  # NaN stays, to be refused
        if self.class_id is not None:
            y_true, y_pred = y_true[..., self.class_id], y_pred[..., self.class_id]
        return y_true, y_pred


class Precision(_Share, saved_as="training.metrics.Precision"):
    """The share of label 1 among the predictions above the threshold; 0 if there are none.

    Examples
    --------
    >>> gt.training.metrics.Precision()([0, 1, 1, 1], [0.9, 0.8, 0.2, 0.7]).item()
    0.6666666666666666
    """

    _others = "false_positives"


class Recall(_Share, saved_as="training.metrics.Recall"):
    """The share of predictions above the threshold among those with label 1; 0 if there are none.

    Examples
    --------
    >>> gt.training.metrics.Recall()([0, 1, 1, 1], [0.9, 0.8, 0.2, 0.7]).item()
    0.6666666666666666
    """

    _others = "false_negatives"
