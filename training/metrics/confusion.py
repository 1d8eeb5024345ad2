"""Metrics of binary predictions at thresholds: precision, recall, areas under curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.extend import Tensor, Variable, as_tensor, ops
from ..shapes import alike
from .stateful import OfScores, quotient, weighted

__all__ = [
    "AUC",
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "PrecisionAtRecall",
    "Recall",
    "RecallAtPrecision",
    "SensitivityAtSpecificity",
    "SpecificityAtSensitivity",
    "TrueNegatives",
    "TruePositives",
]


class _AtThresholds(OfScores):
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
        The number of thresholds to try, 200 by default.
    from_logits
        Whether predictions are logits. By default they are what the loss takes in ``fit`` and
        ``evaluate``, otherwise probabilities. Logits become probabilities by a sigmoid, or by a
        softmax if the loss is a categorical cross-entropy. Thresholds of 0 compare any scores.

    Raises
    ------
    ValueError
        If a setting is out of its range. At an update, if predictions are NaN or not from 0 to 1,
        or labels are neither 0 nor 1; after an update in a trace, at the result.
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
        if not anything:
            all_count = sample_weight is None and getattr(self, "top_k", None) is None
            weight = self.checked(y_pred, weight, all_count)
        weight = ops["reshape"](self.of_binary(y_true, weight), shape=(-1,))
        labels = ops["reshape"](y_true.astype("bool"), shape=(-1,)).astype("float32")
        p = ops["reshape"](y_pred.astype("float32"), shape=(-1, 1))
        over = ops["greater"](p, as_tensor(self._gradtape_limits)).astype("float32")
        yes, no = labels * weight, (1.0 - labels) * weight
        found, wrong = ops["matmul"](yes, over), ops["matmul"](no, over)
        self.true_positives.assign_add(found)
        self.false_positives.assign_add(wrong)
        self.false_negatives.assign_add(ops["sum"](yes) - found)
        self.true_negatives.assign_add(ops["sum"](no) - wrong)

    def as_asked(self, values: Any) -> Tensor:
        """Return a scalar if there is one threshold, otherwise all values."""
        one = not isinstance(self.thresholds, Sequence)
        return values[0] if one else values


class _Count(_AtThresholds):
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


class _Share(_AtThresholds):
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
            y_pred = ops["where"](ops["less"](places, self.top_k), y_pred, -np.inf)
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


# -- curves ----------------------------------------------------------------------------------------


#: The largest number of thresholds: a file that names a metric must not take all the memory.
_MOST = 2**16


def _even(count: int) -> list[float]:
    """Return thresholds from just below 0 to just above 1."""
    inner = [i / (count - 1) for i in range(1, count - 1)]
    return [-1e-7, *inner, 1.0 + 1e-7]


class _Curve(_AtThresholds):
    """A metric computed from the counts at many thresholds."""

    def __init__(
        self, num_thresholds: int, name: str | None, from_logits: bool | None = None
    ) -> None:
        if not hasattr(num_thresholds, "__index__") or not 2 <= num_thresholds <= _MOST:
            raise ValueError(
                f"{type(self).__name__}: num_thresholds must be an integer from 2 to {_MOST}, got "
                f"{num_thresholds!r}"
            )
        super().__init__([0.5], name, from_logits)
        self.num_thresholds = int(num_thresholds)
        self.set_limits(_even(self.num_thresholds))

    def rates(self) -> dict[str, Tensor]:
        """Return precision, recall, specificity and false-positive rate at each threshold."""
        tp, fp = self.true_positives.value, self.false_positives.value
        tn, fn = self.true_negatives.value, self.false_negatives.value
        return {
            "precision": quotient(tp, tp + fp),
            "recall": quotient(tp, tp + fn),
            "specificity": quotient(tn, tn + fp),
            "alarm": quotient(fp, fp + tn),  # 0 if there is no label 0
        }


class AUC(_Curve, saved_as="training.metrics.AUC"):
    """The area under the ROC curve, or under the curve of precision and recall.

    Parameters
    ----------
    num_thresholds
        The number of thresholds, evenly spaced from 0 to 1; 200 by default.
    curve
        ``"ROC"``, the default, for true and false positive rates; or ``"PR"`` for precision and
        recall.
    summation_method
        ``"interpolation"``, the default. ``"minoring"`` or ``"majoring"`` uses the lower or the
        higher end of each step.

    Notes
    -----
    If one of the classes does not occur, the area is not defined: the result is NaN, as in
    scikit-learn. For ``"PR"``, that is so without label 1. Precision and recall are interpolated as
    described by Davis and Goadrich.

    References
    ----------
    J. Davis and M. Goadrich, "The Relationship Between Precision-Recall and ROC Curves", ICML 2006.

    Examples
    --------
    >>> round(gt.training.metrics.AUC()([0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9]).item(), 4)
    0.75
    """

    _arguments = ("num_thresholds", "curve", "summation_method")

    def __init__(
        self,
        num_thresholds: int = 200,
        curve: str = "ROC",
        summation_method: str = "interpolation",
        from_logits: bool | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(num_thresholds, name, from_logits)
        if curve not in ("ROC", "PR"):
            raise ValueError(f"AUC: curve must be 'ROC' or 'PR', got {curve!r}")
        if summation_method not in ("interpolation", "minoring", "majoring"):
            raise ValueError(
                "AUC: summation_method must be 'interpolation', 'minoring' or 'majoring', got "
                f"{summation_method!r}"
            )
        self.curve, self.summation_method = curve, summation_method

    def result(self) -> Tensor:
        """Return the area; NaN if it is not defined."""
        self.check_state()
        tp, fn = self.true_positives.value, self.false_negatives.value
        defined = ops["greater"](tp[0] + fn[0], 0)
        if self.curve == "ROC":
            fp, tn = self.false_positives.value, self.true_negatives.value
            defined = ops["logical_and"](defined, ops["greater"](fp[0] + tn[0], 0))
        return ops["where"](defined, self._area(), np.nan)

    def _area(self) -> Tensor:
        rates = self.rates()
        if self.curve == "PR" and self.summation_method == "interpolation":
            return self._interpolated()
        along = ("alarm", "recall") if self.curve == "ROC" else ("recall", "precision")
        x, y = (rates[name] for name in along)
        ends = y[:-1], y[1:]
        if self.summation_method == "interpolation":
            heights = (ends[0] + ends[1]) / 2.0
        else:
            heights = ops["minimum" if self.summation_method == "minoring" else "maximum"](*ends)
        return ops["sum"]((x[:-1] - x[1:]) * heights)

    def _interpolated(self) -> Tensor:
        tp, fp = self.true_positives.value, self.false_positives.value
        fn = self.false_negatives.value
        hits = tp[:-1] - tp[1:]
        both = tp + fp
        slope = quotient(hits, ops["maximum"](both[:-1] - both[1:], 0.0))
        intercept = tp[1:] - slope * both[1:]
        positive = ops["logical_and"](ops["greater"](both[:-1], 0), ops["greater"](both[1:], 0))
        ratio = ops["where"](positive, quotient(both[:-1], ops["maximum"](both[1:], 0.0)), 1.0)
        steps = slope * (hits + intercept * ops["log"](ops["where"](positive, ratio, 1.0)))
        return ops["sum"](quotient(steps, ops["maximum"](tp[1:] + fn[1:], 0.0)))


class _At(_Curve):
    """The best value of one rate among the thresholds at which another is high enough."""

    _arguments = ("num_thresholds",)
    best: ClassVar[str]
    given: ClassVar[str]

    def __init__(
        self, num_thresholds: int, name: str | None, from_logits: bool | None, **least: float
    ) -> None:
        super().__init__(num_thresholds, name, from_logits)
        ((self._setting, value),) = least.items()
        if not 0.0 <= value <= 1.0:
            raise ValueError(
                f"{type(self).__name__}: {self._setting} must be between 0 and 1, got {value!r}"
            )
        self.value = float(value)

    def result(self) -> Tensor:
        """Return the rate; 0 if the other rate is nowhere high enough."""
        self.check_state()
        rates = self.rates()
        enough = ops["greater_equal"](rates[self.given], self.value)
        return ops["max"](ops["where"](enough, rates[self.best], 0.0))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return {self._setting: self.value, **super().get_config()}


class SensitivityAtSpecificity(_At, saved_as="training.metrics.SensitivityAtSpecificity"):
    """The best sensitivity (recall) among thresholds with at least a given specificity.

    Parameters
    ----------
    specificity
        The smallest specificity (the share of label 0 that is predicted as 0), between 0 and 1.
    """

    best, given = "recall", "specificity"

    def __init__(
        self,
        specificity: float,
        num_thresholds: int = 200,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(num_thresholds, name, from_logits, specificity=specificity)


class SpecificityAtSensitivity(_At, saved_as="training.metrics.SpecificityAtSensitivity"):
    """The best specificity among thresholds with at least a given sensitivity (recall).

    The specificity is the share of label 0 that is predicted as 0.

    Parameters
    ----------
    sensitivity
        The smallest sensitivity, between 0 and 1.
    """

    best, given = "specificity", "recall"

    def __init__(
        self,
        sensitivity: float,
        num_thresholds: int = 200,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(num_thresholds, name, from_logits, sensitivity=sensitivity)


class PrecisionAtRecall(_At, saved_as="training.metrics.PrecisionAtRecall"):
    """The best precision among thresholds with at least a given recall.

    Parameters
    ----------
    recall
        The smallest recall, between 0 and 1.
    """

    best, given = "precision", "recall"

    def __init__(
        self,
        recall: float,
        num_thresholds: int = 200,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(num_thresholds, name, from_logits, recall=recall)


class RecallAtPrecision(_At, saved_as="training.metrics.RecallAtPrecision"):
    """The best recall among thresholds with at least a given precision.

    Parameters
    ----------
    precision
        The smallest precision, between 0 and 1.
    """

    best, given = "recall", "precision"

    def __init__(
        self,
        precision: float,
        num_thresholds: int = 200,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(num_thresholds, name, from_logits, precision=precision)
