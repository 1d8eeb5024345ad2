"""``Stateful``: the base class of metrics that keep more than a total and a count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ...core.extend import Module, Tensor, Variable, active_graph, as_tensor, ops

# by its public name: training does not know which plugin provides it
from ...nn import softmax
from ..shapes import column_dropped
from .objects import Metric

__all__: list[str] = []


class Stateful(Metric):
    """A metric with several sums, which a reset sets to zero."""

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

    def check_state(self) -> None:
        """Raise if predictions of earlier batches were no probabilities.

        Each ``result`` calls it, because updates in a trace cannot raise. In a trace itself, it
        does nothing, as the state has no values there.
        """
        if active_graph.get() is not None:
            return
        if any(np.isnan(variable.numpy()).any() for variable in self.variables):
            held = "hold NaN or values outside 0 to 1 (or sample_weight holds NaN)"
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
