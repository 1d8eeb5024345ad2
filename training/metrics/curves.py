"""Metrics of binary predictions at all thresholds: areas under curves, and best rates."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core.extend import Tensor, Variable, active_graph, as_tensor, functions, ops, warn_user
from .stateful import AtThresholds, Stateful, quotient

__all__ = [
    "AUC",
    "PrecisionAtRecall",
    "RecallAtPrecision",
    "SensitivityAtSpecificity",
    "SpecificityAtSensitivity",
]


#: The largest number of thresholds: a file that names a metric must not take all the memory.
_MOST = 2**16
#: From this share of undecided pairs on, thresholds that were asked for are reported.
_OPEN = 0.25
#: How many different scores are kept apart.
_KEPT = 1024


def _even(count: int) -> list[float]:
    """Return thresholds from just below 0 to just above 1."""
    inner = [i / (count - 1) for i in range(1, count - 1)]
    return [-1e-7, *inner, 1.0 + 1e-7]


class _Curve(AtThresholds):
    """A metric computed from the counts at many thresholds, or at every score."""

    _gradtape_internal = "*"

    scores: Variable
    positives: Variable
    negatives: Variable

    def __init__(
        self, num_thresholds: int | None, name: str | None, from_logits: bool | None = None
    ) -> None:
        Stateful.__init__(self, name)
        self.take_logits(from_logits)
        self.thresholds, self.num_thresholds = [0.5], num_thresholds
        if num_thresholds is None:
            self._gradtape_limits = np.array(self.thresholds, "float32")
            for part in ("scores", "positives", "negatives"):
                self.add_state(part, (_KEPT,))
            return
        if not hasattr(num_thresholds, "__index__") or not 2 <= num_thresholds <= _MOST:
            raise ValueError(
                f"{type(self).__name__}: num_thresholds must be an integer from 2 to {_MOST}, or "
                f"None for every score, got {num_thresholds!r}"
            )
        self.num_thresholds = int(num_thresholds)
        self.set_limits(_even(self.num_thresholds))

    def probabilities(self, y_pred: Tensor) -> Tensor:
        """Return predictions as probabilities; in float64, as logits of 20 and 30 differ there."""
        return super().probabilities(y_pred.astype("float64"))

    def _count(self, yes: Tensor, no: Tensor, scores: Tensor) -> None:
        """Add the weights of examples with label 1, of those with label 0, and their scores."""
        if self.num_thresholds is not None:
            super()._count(yes, no, scores)
            return
        states = (self.scores, self.positives, self.negatives)
        both = [
            ops["concatenate"](state.value, x.astype("float64"), axis=0)
            for state, x in zip(states, (scores, yes, no))
        ]
        for state, x in zip(states, _joined(*both)):
            state.assign(x)

    def _counts(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return true and false positives, and true and false negatives, at each threshold."""
        if self.num_thresholds is not None:
            tp, fp = self.true_positives.value, self.false_positives.value
            return tp, fp, self.true_negatives.value, self.false_negatives.value
        tp, fp = (
            ops["pad"](ops["cumsum"](x.value, axis=0, reverse=True), pad_width=((0, 1),))
            for x in (self.positives, self.negatives)
        )
        return tp, fp, fp[0] - fp, tp[0] - tp

    def rates(self) -> dict[str, Tensor]:
        """Return precision, recall, specificity and false-positive rate at each threshold."""
        tp, fp, tn, fn = self._counts()
        return {
            "precision": quotient(tp, tp + fp),
            "recall": quotient(tp, tp + fn),
            "specificity": quotient(tn, tn + fp),
            "alarm": quotient(fp, fp + tn),  # 0 if there is no label 0
        }


def _joined(scores: Tensor, yes: Tensor, no: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return scores in order, each once, and the weights of their labels.

    Too many different scores are joined by ranges. Sizes do not depend on the values, so that a
    traced step can do it.
    """
    order = ops["argsort"](scores, axis=0)
    scores, yes, no = (ops["take"](x, order, axis=0) for x in (scores, yes, no))
    before = ops["concatenate"](scores[:1], scores[:-1], axis=0)
    rises = ops["not_equal"](scores, before).astype("int64")
    place = ops["cumsum"](rises, axis=0, reverse=False)
    few = ops["less"](place[-1], _KEPT)
    place = functions["cond"](few, lambda: place, lambda: _ranges(place, yes, no))
    # one sum of both takes less time than two
    both = ops["concatenate"](yes, no, axis=0), ops["concatenate"](place, place + _KEPT, axis=0)
    sums = ops["segment_sum"](*both, num=2 * _KEPT)
    # the last score of each place, or of one before it if it is empty
    last = ops["searchsorted"](place, as_tensor(np.arange(_KEPT)), side="right") - 1
    return ops["take"](scores, ops["maximum"](last, 0), axis=0), sums[:_KEPT], sums[_KEPT:]


def _ranges(place: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    """Return places of scores in order as numbers of ranges.

    A range has about equal shares of both labels, however rare one of them is. Towards the highest
    scores ranges become smaller: precision depends on how few of label 0 are above a threshold.
    """
    size = yes.shape[0]
    yes, no = (ops["segment_sum"](x, place, num=size) for x in (yes, no))
    shares = [quotient(x, ops["sum"](x)) for x in (yes, no)]
    rise, fall = (ops["cumsum"](x, axis=0, reverse=False) - x / 2.0 for x in shares)
    above = ops["log1p"]((1.0 - fall) * size) / ops["log1p"](ops["ones_like"](fall) * size)
    part = ops["floor"]((rise + fall + 1.0 - above) / 3.0 * float(_KEPT))
    part = ops["clip"](ops["where"](ops["equal"](part, part), part, 0.0), 0.0, _KEPT - 1.0)
    return ops["take"](part.astype("int64"), place, axis=0)


class AUC(_Curve, saved_as="training.metrics.AUC"):
    """The area under the ROC curve, or under the curve of precision and recall.

    Parameters
    ----------
    num_thresholds
        The number of thresholds, evenly spaced from 0 to 1, as in Keras, which takes 200. By
        default, every score is one: the area is exact for up to 1024 different scores. Of more, the
        closest are joined, and the area is as a rule within a few thousandths.
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
        num_thresholds: int | None = None,
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
        tp, fp, tn, fn = self._counts()
        if self.num_thresholds is not None and active_graph.get() is None:
            self._warn_of_ties(np.diff(tp.numpy()), np.diff(fp.numpy()))
        defined = ops["greater"](tp[0] + fn[0], 0)
        if self.curve == "ROC":
            defined = ops["logical_and"](defined, ops["greater"](fp[0] + tn[0], 0))
        return ops["where"](defined, self._area(), np.nan)

    def _warn_of_ties(self, yes: Any, no: Any) -> None:
        """Warn if so many pairs of the two labels lie between thresholds that the area is open."""
        pairs = float(yes.sum() * no.sum())
        share = float(yes @ no) / pairs if pairs > 0 else 0.0
        if share > _OPEN:
            warn_user(
                f"{type(self).__name__}: {self.num_thresholds} thresholds do not separate the "
                f"predictions; the area may be off by {share / 2:.2g}. Leave num_thresholds out: "
                "then every score is a threshold",
                UserWarning,
            )

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
        tp, fp, _, fn = self._counts()
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

    _gradtape_internal = "best given"

    _arguments = ("num_thresholds",)
    best: ClassVar[str]
    given: ClassVar[str]

    def __init__(
        self, num_thresholds: int | None, name: str | None, from_logits: bool | None, **least: float
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
        num_thresholds: int | None = None,
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
        num_thresholds: int | None = None,
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
        num_thresholds: int | None = None,
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
        num_thresholds: int | None = None,
        name: str | None = None,
        *,
        from_logits: bool | None = None,
    ) -> None:
        super().__init__(num_thresholds, name, from_logits, precision=precision)
