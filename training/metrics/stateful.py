"""Metrics that keep more than a total and a count: of binary predictions at thresholds, and R2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.extend import Module, Tensor, Variable, active_graph, as_tensor, ops

# by its public name: training does not know which plugin provides it
from ...nn import softmax
from ..shapes import alike, column_dropped
from .objects import Metric

__all__ = [
    "FalseNegatives",
    "FalsePositives",
    "Precision",
    "R2Score",
    "Recall",
    "TrueNegatives",
    "TruePositives",
]


class Stateful(Metric):
    """A metric with several sums, which a reset sets to zero."""

    _gradtape_internal = "*"

    def __init__(self, name: str | None) -> None:
        Module.__init__(self, name)  # no total, no count

    def add_state(self, name: str, shape: tuple[int, ...], dtype: str = "float64") -> Variable:
        """Create sums, initially zero, as an attribute.

        Parameters
        ----------
        name
            The attribute.
        shape, dtype
            The shape and dtype of the sums.
        """
        variable = self.add_weight(shape, "zeros", dtype, name)
        setattr(self, name, variable)
        return variable


#: How far rounding in float16 may take a probability out of its range.
_ROUNDING = 1e-3


class OfScores(Stateful):
    """A metric of probabilities, which may come as logits."""

    _gradtape_internal = "*"

    from_logits: bool | None = None

    def take_logits(self, from_logits: bool | None) -> None:
        """Set whether predictions are logits; None for what the loss says.

        Raises
        ------
        TypeError
            If it is neither a bool nor None.
        """
        if from_logits not in (None, True, False):
            raise TypeError(
                f"{type(self).__name__}: from_logits is True, False or None, got {from_logits!r}"
            )
        self.from_logits = None if from_logits is None else bool(from_logits)

    def meet_loss(self, kind: Any) -> None:
        """Take from the loss whether predictions are logits; refuse an argument that differs."""
        super().meet_loss(kind)
        if None not in (kind, self.from_logits) and self.from_logits is not kind.from_logits:
            raise ValueError(
                f"{type(self).__name__}: from_logits={self.from_logits}, but the loss "
                f"{kind.name} takes {'logits' if kind.from_logits else 'probabilities'} from the "
                "same output; leave the argument out"
            )

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        given = {} if self.from_logits is None else {"from_logits": self.from_logits}
        return {**super().get_config(), **given}

    def takes_any(self, thresholds: Iterable[float]) -> bool:
        """Return whether any scores are compared as they are.

        Thresholds of 0 or 1, or beyond, say nothing about probabilities: 0 is that of logits.
        """
        return self.from_logits is None and not any(0.0 < x < 1.0 for x in thresholds)

    def probabilities(self, y_pred: Tensor) -> Tensor:
        """Return predictions as probabilities."""
        kind = self._gradtape_kind
        logits = self.from_logits
        if logits is None:
            logits = kind is not None and kind.from_logits
        if not logits:
            return y_pred
        if kind is not None and kind.classes != "binary":
            return softmax(y_pred, axis=kind.axis)
        return ops["sigmoid"](y_pred)

    def checked(self, p: Tensor, weight: Tensor, all_count: bool = False) -> Tensor:
        """Return the weights; raise if a prediction that counts is no probability.

        In a trace and on other devices, its weight becomes NaN, which :meth:`check_state` finds.
        Values of minus infinity stand for predictions that were left out before. ``all_count``
        says that there are none, and no weights of 0.
        """
        if not isinstance(p.array, np.ndarray):
            right = ops["equal"](ops["clip"](p, -_ROUNDING, 1.0 + _ROUNDING), p)  # NaN is not
            if not all_count:
                out = ops["logical_or"](ops["equal"](p, -np.inf), ops["equal"](weight, 0.0))
                right = ops["logical_or"](right, out)
            return ops["where"](right, weight, np.nan)
        values = p.array[(weight.array != 0) & (p.array != -np.inf)]
        if np.isnan(weight.array).any():  # as a count, it would look like a wrong prediction
            raise ValueError(f"{type(self).__name__}: sample_weight holds NaN")
        low, high = values.min(initial=0.0), values.max(initial=0.0)
        if not (low >= -_ROUNDING and high <= 1.0 + _ROUNDING):
            held = "hold NaN" if np.isnan(low) else f"are from {low:.4g} to {high:.4g}"
            raise ValueError(self._refusal(held))
        return weight

    def of_binary(self, y_true: Tensor, weight: Tensor) -> Tensor:
        """Return the weights; raise if a label that counts is neither 0 nor 1.

        In a trace and on other devices, its weight becomes NaN, as in :meth:`checked`.
        """
        right = ops["logical_or"](ops["equal"](y_true, 0.0), ops["equal"](y_true, 1.0))
        right = ops["logical_or"](right, ops["equal"](weight, 0.0))
        if not isinstance(right.array, np.ndarray):
            return ops["where"](right, weight, np.nan)
        if not right.array.all():
            wrong = y_true.array[~right.array].ravel()[0]
            raise ValueError(
                f"{type(self).__name__}: labels must be 0 or 1, got {wrong:g}; compare them with "
                "a threshold first, such as y > 0.5"
            )
        return weight

    def check_state(self) -> None:
        """Raise if predictions of earlier batches were no probabilities, or labels not 0 or 1.

        Each ``result`` calls it, because updates in a trace cannot raise. In a trace itself, it
        does nothing, as the state has no values there.
        """
        if active_graph.get() is not None:
            return
        if any(np.isnan(variable.numpy()).any() for variable in self.variables):
            held = (
                "hold NaN or values outside 0 to 1 (or labels are neither 0 nor 1, or "
                "sample_weight holds NaN)"
            )
            raise ValueError(self._refusal(held))

    def _refusal(self, held: str) -> str:
        return (
            f"{type(self).__name__}: the predictions {held}, but the metric takes probabilities, "
            "from 0 to 1; set from_logits=True for logits, or end the model with a sigmoid or "
            "softmax"
        )


def quotient(a: Any, b: Any) -> Tensor:
    """Return ``a / b``, and 0 where ``b`` is 0."""
    some = ops["not_equal"](b, 0)
    return ops["where"](some, ops["divide"](a, ops["where"](some, b, 1.0)), 0.0)


def weighted(values: Any, sample_weight: Any) -> Any:
    """Return a weight for each value, 1 by default; in float64, in which their sums are exact.

    Raises
    ------
    ValueError
        If there is not one weight for each value or for each example.
    """
    if sample_weight is None:
        return ops["ones_like"](values).astype("float64")
    weight = column_dropped(as_tensor(sample_weight).astype("float64"), values.shape)
    if weight.ndim > values.ndim:
        raise ValueError(
            f"sample_weight of shape {weight.shape} does not fit values of shape {values.shape}"
        )
    while weight.ndim < values.ndim:
        weight = ops["expand_dims"](weight, axis=-1)
    return ops["ones_like"](values).astype("float64") * weight


def known(scores: Any, weight: Any) -> Any:
    """Return weights that are NaN where a score that counts is NaN: it is neither high nor low.

    They make the state NaN, for which ``check_state`` raises.
    """
    right = ops["logical_or"](ops["equal"](scores, scores), ops["equal"](weight, 0.0))
    return ops["where"](right, weight, np.nan)


# -- regression -----------------------------------------------------------------------------------


class R2Score(Stateful, saved_as="training.metrics.R2Score"):
    """The share of the labels' variance that predictions explain, at most 1.

    Parameters
    ----------
    class_aggregation
        ``"uniform_average"``, the default, for the mean over the outputs.
        ``"variance_weighted_average"`` for their mean weighted by the labels' variance. ``None``
        for one score per output.

    Raises
    ------
    ValueError
        If ``class_aggregation`` is unknown.

    Notes
    -----
    ``1 - sum((y_true - y_pred)**2) / sum((y_true - mean(y_true))**2)``, in float64. The result is 0
    if no example has a weight. Labels that are all equal give 1 if all predictions are exact, and 0
    otherwise.

    Examples
    --------
    >>> gt.training.metrics.R2Score()([[1.0], [2.0], [3.0]], [[1.0], [2.0], [2.0]]).item()
    0.5
    """

    _arguments = ("class_aggregation",)
    weight: Variable
    origin: Variable
    sums: Variable
    squares: Variable
    rests: Variable

    def __init__(
        self, class_aggregation: str | None = "uniform_average", name: str | None = None
    ) -> None:
        super().__init__(name)
        if class_aggregation not in ("uniform_average", "variance_weighted_average", None):
            raise ValueError(
                "R2Score: class_aggregation must be 'uniform_average', "
                f"'variance_weighted_average' or None, got {class_aggregation!r}"
            )
        self.class_aggregation = class_aggregation

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Add labels and predictions, with weights of the examples."""
        y_true, y_pred = alike("R2Score", y_true, y_pred)
        if y_true.ndim == 1:
            y_true, y_pred = (ops["expand_dims"](y, axis=-1) for y in (y_true, y_pred))
        if y_true.ndim != 2:
            raise ValueError(
                f"R2Score: expected shape (batch,) or (batch, outputs), got {y_pred.shape}; "
                "reshape labels and predictions"
            )
        for name in ("weight", "origin", "sums", "squares", "rests"):
            if name not in vars(self):  # files of earlier versions have no origin: it was 0
                self.add_state(name, (y_true.shape[-1],))
        weight = weighted(y_true, sample_weight).astype("float64")
        y_true, y_pred = y_true.astype("float64"), y_pred.astype("float64")
        self.rests.assign_add(ops["sum"](weight * ops["square"](y_true - y_pred), axis=0))
        count = ops["sum"](weight, axis=0)
        mean = quotient(ops["sum"](weight * y_true, axis=0), count)
        apart = y_true - mean
        slip = quotient(ops["sum"](weight * apart, axis=0), count)  # rounding of the mean
        squares = ops["sum"](weight * ops["square"](apart), axis=0) - count * slip * slip
        self._merge(count, mean + slip, squares)

    def _merge(self, count: Tensor, mean: Tensor, squares: Tensor) -> None:
        """Add a batch, so that the origin is the mean of all labels, and their sums are 0.

        As in Chan, Golub and LeVeque, 1983: sums of the squares themselves would lose the variance
        of labels that are far from 0.
        """
        before, sums = self.weight.value, self.sums.value
        middle = self.origin.value + quotient(sums, before)
        apart, both = mean - middle, before + count
        spread = ops["square"](apart) * quotient(before * count, both)
        self.squares.assign(self._spread() + squares + spread)
        self.origin.assign(middle + apart * quotient(count, both))
        self.sums.assign(ops["zeros_like"](sums))
        self.weight.assign(both)

    def _spread(self) -> Tensor:
        """Return the weighted sum of the squared distances of the labels from their mean."""
        return self.squares.value - quotient(ops["square"](self.sums.value), self.weight.value)

    def result(self) -> Tensor:
        """Return the score, 0 before any batch."""
        if "weight" not in vars(self):
            return as_tensor(0.0)
        total, weight = self._spread(), self.weight.value
        # constant labels are explained if every prediction is exact, otherwise not at all
        met = ops["equal"](self.rests.value, 0.0).astype("float64") * ops["not_equal"](weight, 0)
        scores = 1.0 - quotient(self.rests.value, total)
        origin = self.origin.value if "origin" in vars(self) else 0.0
        rounding = weight * ops["square"](ops["multiply"](origin, 1e-15))
        scores = ops["where"](ops["less_equal"](total, rounding), met, scores)
        if self.class_aggregation == "variance_weighted_average":
            scores = ops["sum"](scores * quotient(total, ops["sum"](total)))
        elif self.class_aggregation == "uniform_average":
            scores = ops["mean"](scores)
        return scores


# -- counts at thresholds -------------------------------------------------------------------------


class AtThresholds(OfScores):
    """Counts of correct and wrong predictions at one or more thresholds."""

    _gradtape_internal = "*"

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
        if anything:
            weight = known(y_pred, weight)
        else:
            all_count = sample_weight is None and getattr(self, "top_k", None) is None
            weight = self.checked(y_pred, weight, all_count)
        weight = ops["reshape"](self.of_binary(y_true, weight), shape=(-1,))
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
    _gradtape_internal = "counted"

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
