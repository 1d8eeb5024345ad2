"""``Sums``: adds up the values of batches to those of an epoch."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import Tensor, to_numpy

__all__ = ["Sums", "Values"]


class Values(NamedTuple):
    """The values of a batch.

    Attributes
    ----------
    loss
        The loss to minimise: a scalar tensor.
    means
        Tensors whose means are values of the epoch, or parts of its loss. They are weighted by the
        batches' examples, or by ``counts``.
    results
        The results of metrics with state, for all batches so far.
    counts
        By name, the number of values in a mean that leaves some out, such as padding.
    """

    loss: Tensor
    means: dict[str, Tensor]
    results: dict[str, Tensor]
    counts: dict[str, Tensor]


class Sums:
    """The sums of the values of an epoch's batches so far.

    The epoch's loss is what a single batch with all examples would have. So parts of it whose mean
    leaves values out, or that are sums, are added up separately from the rest.

    Parameters
    ----------
    shares
        The factors of parts of the loss, by name.
    summed
        The names of those that are sums over the examples.
    """

    def __init__(self, shares: Mapping[str, float], summed: Collection[str]) -> None:
        self.shares, self.summed = shares, summed
        self.totals: dict[str, float] = {}
        self.counts: dict[str, float] = {}
        self.count = 0
        self.rest = 0.0

    def add(self, loss: float, values: Values, length: int) -> None:
        """Add the values of a batch of ``length`` examples.

        Raises
        ------
        ValueError
            If the result of a metric with state is not a scalar.
        """
        totals, rest = self.totals, loss
        for name, value in values.means.items():
            number, share = float(np.mean(to_numpy(value.array))), float(length)
            if name in self.summed:
                share = self.counts[name] = 1.0
            elif name in values.counts:
                share = float(to_numpy(values.counts[name].array))
                self.counts[name] = self.counts.get(name, 0.0) + share
            if name in self.counts and name in self.shares and math.isfinite(loss):
                rest -= self.shares[name] * number
            totals[name] = totals.get(name, 0.0) + number * share
        for name, value in values.results.items():
            if value.ndim:
                raise ValueError(
                    f"metric {name!r} has a result of shape {value.shape}, but a history needs a "
                    "scalar; let it average (average='macro'), or update it in a callback"
                )
            totals[name] = float(to_numpy(value.array))
        self.rest += rest * length
        self.count += length

    def means(self, names: Iterable[str], stateful: Mapping[str, Any]) -> dict[str, float]:
        """Return the means by name; for metrics with state, their results."""
        found = {}
        for name in names:
            share = 1.0 if name in stateful else self.counts.get(name, self.count)
            found[name] = self.totals.get(name, 0.0) / share if share else 0.0
        found["loss"] = self.rest / self.count if self.count else 0.0
        for name in self.shares.keys() & self.counts.keys():
            share = self.counts[name]
            found["loss"] += self.shares[name] * self.totals[name] / share if share else 0.0
        return found

    def state(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the sums as plain values."""
        totals = {name: self.totals.get(name, 0.0) for name in names}
        return {"totals": totals, "counts": self.counts, "count": self.count, "rest": self.rest}

    def load(self, state: Mapping[str, Any], names: Iterable[str]) -> None:
        """Restore what :meth:`state` returned.

        Raises
        ------
        ValueError
            If it holds other values, or is not such a state.
        """
        names = tuple(names)
        if set(state["totals"]) != set(names):
            raise ValueError(
                f"the saved run measured {', '.join(state['totals'])}, but this one measures "
                f"{', '.join(names)}; give the same loss and metrics"
            )
        if type(state["count"]) is not int or not 0 <= state["count"] < 2**63:
            raise ValueError(f"invalid count of examples: {str(state['count'])[:40]}")
        self.totals = {name: float(state["totals"][name]) for name in names}
        self.counts = {name: float(n) for name, n in state.get("counts", {}).items()}
        self.count = state["count"]
        if "rest" not in state:  # a file from before parts of the loss were added up separately
            self.totals["loss"], self.rest = 0.0, self.totals["loss"]
        else:
            self.rest = float(state["rest"])
