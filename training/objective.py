"""What a model is trained for: losses and metrics of one output, or of each of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ..core.extend import Tensor, as_tensor, in_precision, ops, to_numpy
from ..layers import Model
from . import losses
from . import metrics as known_metrics
from .checks import check_labels
from .losses.kinds import kind_of
from .shapes import in_columns, weights_like

__all__ = ["Head", "Objective", "Values", "class_weights"]


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
    """

    loss: Tensor
    means: dict[str, Tensor]
    results: dict[str, Tensor]


class Head:
    """The loss and the metrics of one output.

    Parameters
    ----------
    name
        The output's name, which comes before those of its values; none if it is the only one.
    key
        Where it is in the model's outputs: a number or a key of a dictionary.
    loss
        The loss, or its name; None for an output that is only measured.
    share
        By what its loss is multiplied in the sum.
    metrics, weighted
        Metrics, and metrics that take the weights of examples too.
    """

    def __init__(
        self, name: str, key: Any, loss: Any, share: float, metrics: Any, weighted: Any
    ) -> None:
        self.name, self.key, self.share = name, key, share
        self.loss: Any = None if loss is None else losses.get(loss)
        self.kind = None if loss is None else kind_of(self.loss)
        if metrics is None:
            several = self.kind is not None and self.kind.classes != "binary"
            metrics = ("accuracy",) if several and not weighted else ()
        plain = known_metrics.get(metrics, self.kind)
        weighing = known_metrics.get(weighted or (), self.kind, weighted=True)
        for called in plain.keys() & weighing.keys():
            raise ValueError(f"two metrics are called {called!r}")
        prefix = f"{name}_" if name else ""
        self.metrics = {prefix + called: x for called, x in (plain | weighing).items()}
        self.weighted = {prefix + called for called in weighing}

    def of(self, structure: Any) -> Any:
        """Return what is for this output of labels, predictions or weights."""
        if isinstance(structure, (list, tuple, dict)):
            return structure[self.key]
        return structure

    def minimised(self, y: Any, predicted: Any, weight: Any) -> Tensor:
        """Return the mean loss of a batch, a tensor with one number."""
        if weight is None:
            return ops["mean"](in_precision(as_tensor(self.loss(y, predicted)), "float32"))
        if isinstance(self.loss, losses.Loss):
            return ops["mean"](self.loss(y, predicted, sample_weight=weight))
        own: Any = losses.function_named(getattr(self.loss, "__name__", None))
        if own is self.loss:
            y, predicted = in_columns(y, predicted)
        values = in_precision(as_tensor(self.loss(y, predicted)), "float32")
        if not values.ndim:
            raise ValueError(
                f"{getattr(self.loss, '__name__', 'the loss')} returns one number for a batch, "
                "which weights of examples cannot be put on; return a value for each example"
            )
        return ops["mean"](values * weights_like(weight, values))


class Objective:
    """What is minimised and measured.

    Parameters
    ----------
    model
        The model; one of :class:`gradtape.Model` tells the names of its outputs.
    loss, metrics, loss_weights, weighted_metrics
        As for :func:`gradtape.training.fit`.

    Attributes
    ----------
    heads : list of Head
        One for each output, as far as they are known; else :meth:`meet` makes them.
    names : tuple of str
        The names of all values, ``"loss"`` first.
    """

    def __init__(
        self, model: Any, loss: Any, metrics: Any, loss_weights: Any, weighted_metrics: Any
    ) -> None:
        self._given = (loss, loss_weights, metrics, weighted_metrics)
        self.heads: list[Head] = []
        self.names: tuple[str, ...] = ("loss",)
        outputs = model.outputs if isinstance(model, Model) else None
        several = (list, tuple, dict)
        told = next((x for x in (loss, loss_weights) if isinstance(x, several)), None)
        if isinstance(metrics, dict):
            told = metrics if told is None else told
        if isinstance(outputs, several):
            self._make(outputs, tuple(model.output_names))
        elif isinstance(told, dict):
            self._make(told, tuple(told))
        elif told is not None:
            self._make(told, tuple(f"output_{i}" for i in range(len(told))))
        else:
            self._make(None, ())  # one, until several labels come

    def _make(self, outputs: Any, names: tuple[str, ...]) -> None:
        """Make the heads for outputs in this structure."""
        loss, shares, metrics, weighted = self._given
        if not isinstance(outputs, (list, tuple, dict)):
            self.heads = [Head("", None, loss, _share(shares), metrics, weighted)]
        else:
            keys = list(outputs) if isinstance(outputs, dict) else range(len(outputs))
            columns = [
                _each("loss", loss, names),
                [_share(x) for x in _each("loss_weights", shares, names)],
                _each("metrics", metrics, names, shared=False),
                _each("weighted_metrics", weighted, names, shared=False),
            ]
            rows = zip(names, keys, *columns, strict=True)
            self.heads = [Head(*row) for row in rows]
        found = ["loss"]
        if self.several:
            found += [f"{head.name}_loss" for head in self.heads if head.loss is not None]
        found += [name for head in self.heads for name in head.metrics]
        for name in found:
            if found.count(name) > 1:
                raise ValueError(f"two metrics are called {name!r}")
        self.names = tuple(found)

    @property
    def several(self) -> bool:
        """Whether there are several outputs."""
        return bool(self.heads[0].name)

    @property
    def stateful(self) -> dict[str, Any]:
        """The metrics that are objects with state, by name."""
        found = [pair for head in self.heads for pair in head.metrics.items()]
        return {name: x for name, x in found if isinstance(x, known_metrics.Metric)}

    def meet(self, y: Any) -> None:
        """Learn from labels how many outputs there are, if nothing else told."""
        if not self.several and isinstance(y, (list, tuple, dict)):
            names = tuple(y) if isinstance(y, dict) else [f"output_{i}" for i in range(len(y))]
            self._make(y, tuple(names))

    def check(self, y: Any, what: str) -> None:
        """Raise if labels are outside what the losses can mean."""
        self.meet(y)
        for head, labels in self._paired(y, what):
            check_labels(head.kind, labels, what)

    def _paired(self, y: Any, what: str) -> Iterator[tuple[Head, Any]]:
        if not self.several:
            yield self.heads[0], y
            return
        self._check_parts(f"{what}: y", y)
        for head in self.heads:
            yield head, head.of(y)

    def _check_parts(self, what: str, parts: Any) -> None:
        """Raise if labels or predictions do not have these outputs."""
        wanted = [head.key for head in self.heads]
        if isinstance(parts, dict):
            fits = set(parts) == set(wanted)
            found = f"has {sorted(map(str, parts))}"
        elif isinstance(parts, (list, tuple)):
            fits = wanted == list(range(len(parts)))
            found = f"is a {type(parts).__name__} of {len(parts)}"
        else:
            fits, found = False, "is one tensor"
        if not fits:
            names = ", ".join(head.name for head in self.heads)
            raise ValueError(f"{what} {found}, and the outputs are {names}")

    def reset(self) -> None:
        """Let metrics with state forget all batches."""
        for metric in self.stateful.values():
            metric.reset_state()

    def minimised(
        self, y: Any, predicted: Any, weight: Any, added: Iterable[Any], look: Any = None
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss of a batch, and the loss of each of several outputs by name.

        Parameters
        ----------
        y, predicted, weight
            Labels, predictions and weights of the examples, if there are any.
        added
            What comes to the loss besides: of regularizers.
        look
            A :class:`FirstLook` to whom labels and predictions are shown, at a first batch.
        """
        if self.several:
            self._check_parts("the model's output", predicted)
        total: Any = None
        means: dict[str, Tensor] = {}
        for head in self.heads:
            labels, output, share = self._for(head, y, predicted, weight)
            if look is not None:
                look.meet(labels, output, head.loss, head.kind)
            if head.loss is None:
                continue
            value = head.minimised(labels, output, share)
            if self.several:
                means[f"{head.name}_loss"] = value
            value = value if head.share == 1.0 else value * head.share
            total = value if total is None else total + value
        for value in added:
            total = value if total is None else total + value
        if total is None:
            raise ValueError("there is no loss: give loss=, or a layer that calls add_loss")
        return total, means

    def measured(
        self, y: Any, predicted: Any, weight: Any
    ) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the values of examples by metric, and what metrics with state say with them."""
        means: dict[str, Tensor] = {}
        results: dict[str, Tensor] = {}
        for head in self.heads:
            labels, output, share = self._for(head, y, predicted, weight)
            for name, metric in head.metrics.items():
                if isinstance(metric, known_metrics.Metric):
                    given = (share,) if name in head.weighted and share is not None else ()
                    metric.update_state(labels, output, *given)
                    results[name] = as_tensor(metric.result())
                else:
                    means[name] = as_tensor(metric(labels, output))
        return means, results

    def _for(self, head: Head, y: Any, predicted: Any, weight: Any) -> tuple[Any, Any, Any]:
        output = head.of(predicted) if self.several else predicted
        share = weight if weight is None or not self.several else head.of(weight)
        return head.of(y) if self.several else y, output, share


def _each(what: str, given: Any, names: tuple[str, ...], shared: bool = True) -> list[Any]:
    """Return what is given for each output."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ValueError(
                    f"{what} has {name!r}, which is no output; there are {', '.join(names)}"
                )
        return [given.get(name) for name in names]
    if isinstance(given, (list, tuple)) and (shared or given):
        if len(given) != len(names):
            raise ValueError(
                f"{what} has {len(given)} entries for {len(names)} outputs; give one for each "
                f"({', '.join(names)}), or a dictionary by these names"
            )
        return list(given)
    if not shared and given:
        raise ValueError(
            f"{what} of {len(names)} outputs come in a dictionary by their names "
            f"({', '.join(names)}), got {given!r}"
        )
    return [given] * len(names)


def _share(weight: Any) -> float:
    if weight is None:
        return 1.0
    if not isinstance(weight, (int, float, np.number)) or not np.isfinite(weight):
        raise ValueError(f"loss_weights are finite numbers, got {weight!r}")
    return float(weight)


def class_weights(given: Any) -> Callable[[Any], Any] | None:
    """Return a function of labels that gives the weight of each.

    Parameters
    ----------
    given
        A dictionary of weights by class; others weigh 1. Or None.

    Raises
    ------
    TypeError
        If it is no dictionary.
    ValueError
        If a class is no whole number from 0 on, or a weight is negative or not finite.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(f"class_weight is a dictionary of weights by class, got {given!r}")
    for label, weight in given.items():
        whole = isinstance(label, (int, np.integer)) and label >= 0
        if not whole or not isinstance(weight, (int, float, np.number)) or not 0 <= weight < np.inf:
            raise ValueError(
                "class_weight has whole numbers from 0 on, and weights that are finite and not "
                f"negative, got {label!r}: {weight!r}"
            )
    table = np.ones(max(given, default=0) + 2, "float32")  # the last one is for all others
    table[list(given)] = list(given.values())

    def weights(y: Any) -> Any:
        if isinstance(y, (list, tuple, dict)):
            raise ValueError("class_weight is for one output; give several as sample_weight")
        labels = to_numpy(y.array)
        if labels.ndim > 1:
            labels = labels[..., 0] if labels.shape[-1] == 1 else labels.argmax(-1)
        if labels.ndim > 1:
            raise ValueError(
                f"class_weight is for a class per example, and labels have shape {y.shape}"
            )
        places = np.rint(labels).astype("int64")
        if (places != labels).any():
            raise ValueError(
                "class_weight is for classes, whole numbers, and labels have others; give weights "
                "of examples: (x, y, sample_weight)"
            )
        known = (places >= 0) & (places < len(table) - 1)
        return as_tensor(table[np.where(known, places, -1)])

    return weights
