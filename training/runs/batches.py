"""Batches around their steps: sent ahead, weighted by classes, and their values added up."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from ...core.extend import (
    Backend,
    Sender,
    Tensor,
    as_tensor,
    flatten,
    pack_like,
    to_numpy,
    warn_user,
)
from ..losses.loss import Kind
from ..shapes import column_dropped, weights_like

__all__ = ["BatchSender", "ClassWeights", "Sums", "Values"]


class BatchSender:
    """Iterates over batches, and copies arrays in host memory to a device.

    An error while a batch is read is raised when that batch is due.

    Parameters
    ----------
    batches
        Tensors in containers.
    backend, device
        The target. Arrays that are there already, or on another backend, are not copied.
    early
        Whether :meth:`fetch` may read a batch before it is needed. It must not for a user's
        iterable, whose code should run at the usual time.
    """

    def __init__(self, batches: Iterable[Any], backend: Backend, device: str, early: bool) -> None:
        self._batches = iter(batches)
        self._sender: Sender = backend.sender(device)
        self._early = early
        self._waiting: list[Any] = []
        self._error: Exception | None = None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._waiting and self._error is None:
            self._read()
        error, self._error = self._error, None
        if error is not None:
            raise error
        batch, sent = self._waiting.pop()
        self._sender.mark()
        taken = [self._sender.take(x) if there else x for there, x in sent]
        return pack_like(batch, [Tensor(x) for x in taken])

    def fetch(self) -> None:
        """Read the next batch and begin to copy it, if ``early`` allows that."""
        if self._early and not self._waiting and self._error is None:
            self._read()

    def _read(self) -> None:
        try:
            batch = next(self._batches)
            arrays = [x.array for x in flatten(batch)]
            here = [type(x) is np.ndarray for x in arrays]
            sent = [
                (copied, self._sender.send(x) if copied else x)
                for copied, x in zip(here, arrays, strict=True)
            ]
        except Exception as error:  # StopIteration too
            self._error = error
        else:
            self._waiting.append((batch, sent))


# -- the values of an epoch -----------------------------------------------------------------------


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


# -- the weights of classes -----------------------------------------------------------------------

#: How far shares of classes may be from a sum of 1, because of rounding.
_ROUNDING = 1e-2


class ClassWeights:
    """The weights of classes, for ``class_weight``.

    Parameters
    ----------
    given
        A dictionary of weights by class; other classes have weight 1.
    kind
        The kind of the loss, if it is known.

    Raises
    ------
    TypeError
        If ``given`` is not a dictionary.
    ValueError
        If a class is not a non-negative integer, or a weight is negative or not finite.
    """

    def __init__(self, given: Any, kind: Kind | None = None) -> None:
        if not isinstance(given, Mapping):
            raise TypeError(f"class_weight must be a dictionary of weights by class, got {given!r}")
        for label, weight in given.items():
            whole = isinstance(label, (int, np.integer)) and label >= 0
            number = isinstance(weight, (int, float, np.number))
            if not whole or not number or not 0 <= weight < np.inf:
                raise ValueError(
                    "class_weight must have non-negative integers as keys, and finite weights that "
                    f"are not negative, got {label!r}: {weight!r}"
                )
        self._table = np.ones(max(given, default=0) + 2, "float32")  # the last is for all others
        self._table[[int(label) for label in given]] = list(given.values())
        #: The classes of ``given`` that no label had yet.
        self.unseen = {int(label) for label in given}
        self._kind = kind

    @classmethod
    def of(cls, given: Any, kind: Kind | None = None) -> Self | None:
        """Return the weights; None for None."""
        return None if given is None else cls(given, kind)

    def __call__(self, y: Any, weight: Any = None) -> Any:
        """Return the weight of each label, times a weight of its own.

        Parameters
        ----------
        y
            The labels.
        weight
            Weights of the examples or the labels, which may be a column; None for 1.

        Raises
        ------
        ValueError
            If labels are not one class per example, or per step.
        """
        places = self._classes_of(y)
        known = (places >= 0) & (places < len(self._table) - 1)
        self.note(places)
        found = as_tensor(self._table[np.where(known, places, -1)])
        if weight is None:
            return found
        weight = column_dropped(as_tensor(weight), found.shape)
        weight = weight if weight.dtype.kind == "f" else weight.astype("float32")
        if weight.ndim > found.ndim:  # weights of steps, and classes of examples
            return weight * weights_like(found, weight)
        return weights_like(weight, found.astype(weight.dtype)) * found

    def observe(self, y: Any) -> None:
        """Note the classes in all labels to train on, before the first batch."""
        self.note(self._classes_of(y))

    def note(self, places: Any) -> None:
        """Note classes that occur."""
        if self.unseen:
            self.unseen.difference_update(np.unique(places).tolist())

    def warn(self, where: str) -> None:
        """Warn once about classes that do not occur, and whose weight says otherwise."""
        lacking = sorted(x for x in self.unseen if self._table[x] != 1.0)
        self.unseen = set()
        if lacking:
            told = ", ".join(map(str, lacking[:5])) + (", ..." if len(lacking) > 5 else "")
            warn_user(
                f"fit: class_weight has weights for the classes {told}, which do not occur in "
                f"{where}; its keys are the numbers in the labels, or their places in one-hot ones",
                UserWarning,
            )

    def _classes_of(self, y: Any) -> Any:
        """Return the class of each example, or of each step."""
        if isinstance(y, (list, tuple, dict)):
            raise ValueError("class_weight is for one output; give several as sample_weight")
        labels = to_numpy(y.array)
        kind = self._kind
        if labels.ndim > 2 and kind is None:
            raise ValueError(
                f"class_weight takes labels of each step, as of shape {y.shape}, only for a "
                "cross-entropy of gradtape; give sample_weight, a number for each value of the loss"
            )
        if labels.ndim > 1 and labels.shape[-1] == 1:
            labels = labels[..., 0]
        elif labels.ndim > 1 and (kind is None or kind.classes != "sparse"):
            axis = kind.axis if kind is not None and kind.classes == "categorical" else -1
            if not _are_shares(labels, axis):
                raise ValueError(
                    f"class_weight needs one class per example, or per step, but labels have shape "
                    f"{y.shape}, and are not one-hot; give sample_weight"
                )
            labels = labels.argmax(axis)
        places = np.rint(labels).astype("int64")
        if not np.array_equal(places, labels):
            raise ValueError(
                "class_weight needs labels that are classes, but some are not integers, such as "
                f"{labels[places != labels][0]}; give sample_weight"
            )
        return places


def _are_shares(labels: Any, axis: int) -> bool:
    """Return whether there is one class along an axis: shares with sum 1, or one number above 0."""
    shares = (labels >= 0).all(axis) & (np.abs(labels.sum(axis) - 1.0) < _ROUNDING)
    return bool((shares | ((labels > 0).sum(axis) == 1)).all())
