"""``Sums``: what batches gave, added up to the values of an epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.extend import Tensor, to_numpy

__all__ = ["Sums", "Values"]


class Values(NamedTuple):
    """What a batch gave.

    Attributes
    ----------
    loss
        What is minimised: a tensor with one number.
    means
        Tensors whose means, over batches by their examples, are values of the epoch.
    results
        What metrics with state say of all batches so far.
    counts
        Of how many values the means are that leave out padding, by name.
    """

    loss: Tensor
    means: dict[str, Tensor]
    results: dict[str, Tensor]
    counts: dict[str, Tensor]


class Sums:
    """What the batches of an epoch gave so far."""

    def __init__(self) -> None:
        self.totals: dict[str, float] = {}
        self.counts: dict[str, float] = {}
        self.count = 0

    def add(self, loss: float, values: Values, length: int) -> None:
        """Add what a batch of ``length`` examples gave.

        Raises
        ------
        ValueError
            If a metric with state says more than one number.
        """
        totals = self.totals
        totals["loss"] = totals.get("loss", 0.0) + loss * length
        for name, value in values.means.items():
            share: float = length
            if name in values.counts:
                share = float(to_numpy(values.counts[name].array))
                self.counts[name] = self.counts.get(name, 0.0) + share
            totals[name] = totals.get(name, 0.0) + float(np.mean(to_numpy(value.array))) * share
        for name, value in values.results.items():
            if value.ndim:
                raise ValueError(
                    f"metric {name!r} has {value.shape} values, and a history lists one; let it "
                    "average (average='macro'), or update it in a callback"
                )
            totals[name] = float(to_numpy(value.array))
        self.count += length

    def means(self, names: Iterable[str], stateful: Mapping[str, Any]) -> dict[str, float]:
        """Return the values by name; what metrics with state say is as it is."""
        found = {}
        for name in names:
            share = 1.0 if name in stateful else self.counts.get(name, self.count)
            found[name] = self.totals[name] / share if share else 0.0
        return found

    def state(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the sums as plain values."""
        totals = self.totals or dict.fromkeys(names, 0.0)
        return {"totals": totals, "counts": self.counts, "count": self.count}

    def load(self, state: Mapping[str, Any], names: Iterable[str]) -> None:
        """Set what :meth:`state` returned.

        Raises
        ------
        ValueError
            If it is of other values, or no state.
        """
        names = tuple(names)
        if set(state["totals"]) != set(names):
            raise ValueError(
                f"the run measured {', '.join(state['totals'])}; this one {', '.join(names)}"
            )
        if type(state["count"]) is not int or not 0 <= state["count"] < 2**63:
            raise ValueError(f"a count of examples is {str(state['count'])[:40]}")
        self.totals = {name: float(state["totals"][name]) for name in names}
        self.counts = {name: float(n) for name, n in state.get("counts", {}).items()}
        self.count = state["count"]
