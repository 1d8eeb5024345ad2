"""``R2Score``: how much of the labels' variance predictions explain."""

from __future__ import annotations

from typing import Any

from ...core.extend import Tensor, Variable, as_tensor, ops
from ..shapes import alike
from .stateful import Stateful, quotient, weighted

__all__ = ["R2Score"]


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
