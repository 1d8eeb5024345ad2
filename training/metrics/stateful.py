"""``Stateful``: the base class of metrics that keep more than a total and a count."""

from __future__ import annotations

from typing import Any

from ...core.extend import Module, Tensor, Variable, as_tensor, ops
from ..shapes import column_dropped
from .objects import Metric

__all__: list[str] = []


class Stateful(Metric):
    """A metric with several sums, which a reset sets to zero."""

    def __init__(self, name: str | None) -> None:
        Module.__init__(self, name)  # no total, no count

    def add_state(self, name: str, shape: tuple[int, ...], dtype: str = "float32") -> Variable:
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


def quotient(a: Any, b: Any) -> Tensor:
    """Return ``a / b``, and 0 where ``b`` is 0."""
    some = ops["not_equal"](b, 0)
    return ops["where"](some, ops["divide"](a, ops["where"](some, b, 1.0)), 0.0)


def weighted(values: Any, sample_weight: Any) -> Any:
    """Return a weight for each value, 1 by default.

    Raises
    ------
    ValueError
        If there is not one weight for each value or for each example.
    """
    if sample_weight is None:
        return ops["ones_like"](values.astype("float32"))
    weight = column_dropped(as_tensor(sample_weight).astype("float32"), values.shape)
    if weight.ndim > values.ndim:
        raise ValueError(
            f"sample_weight of shape {weight.shape} does not fit values of shape {values.shape}"
        )
    while weight.ndim < values.ndim:
        weight = ops["expand_dims"](weight, axis=-1)
    return ops["ones_like"](values.astype("float32")) * weight
