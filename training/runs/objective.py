"""The objective of training: losses and metrics of one output, or of each of several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ...core.extend import Tensor, as_tensor, in_precision, ops, warn_user
from ...layers import Model, mask_of
from .. import losses
from .. import metrics as known_metrics
from ..checks import check_labels
from ..losses.loss import counted_call, kind_of
from ..metrics.objects import MeanOf, Metric, knowing_losses
from ..names import returned
from ..shapes import in_columns, mask_weights, mean_of_counted

__all__ = ["Head", "Objective", "update"]

#: Functions here call formulas of the user, in which ``v -= ...`` is no update of a variable.
_gradtape_formulas = True


class Head:
    """The loss and the metrics of one output.

    Parameters
    ----------
    name
        The output's name, a prefix of the names of its values; empty if it is the only one.
    key
        Its index or key in the model's outputs.
    loss
        The loss, or its name; None for an output that is only measured.
    share
        The factor of its loss in the sum.
    metrics, weighted
        Metrics, and metrics that use the weights of examples.
    """

    def __init__(
        self, name: str, key: Any, loss: Any, share: float, metrics: Any, weighted: Any
    ) -> None:
        self.name, self.key, self.share = name, key, share
        self.loss: Any = None if loss is None else losses.get(loss)
        self.kind = None if loss is None else kind_of(self.loss)
        #: The name of the loss in histories, and whether it is a sum over the examples.
        self.loss_name = f"{name}_loss" if name else "loss"
        self.summed = isinstance(self.loss, losses.Loss) and self.loss.reduction == "sum"
        if metrics is None:
            several = self.kind is not None and self.kind.classes != "binary"
            metrics = ("accuracy",) if several and not weighted else ()
        plain = known_metrics.get(metrics, self.kind)
        weighing = known_metrics.get(weighted or (), self.kind, weighted=True)
        both = plain.keys() & weighing.keys()  # named apart as in Keras
        weighing = {f"weighted_{x}" if x in both else x: metric for x, metric in weighing.items()}
        for called in plain.keys() & weighing.keys():
            raise ValueError(
                f"two metrics are called {called!r}, one in metrics and one in weighted_metrics; "
                "name one of them: training.metrics.MeanMetricWrapper(function, 'another_name')"
            )
        prefix = f"{name}_" if name else ""
        self.metrics = {prefix + called: x for called, x in (plain | weighing).items()}
        self.weighted = {prefix + called for called in weighing}

    @property
    def needs_labels(self) -> bool:
        """Whether anything is minimised or measured."""
        return self.loss is not None or bool(self.metrics)

    def of(self, structure: Any) -> Any:
        """Return this output's part of labels, predictions or weights; None if there is none."""
        if isinstance(structure, dict):
            return structure.get(self.key, structure.get(self.name))
        if isinstance(structure, (list, tuple)):
            return structure[self.key]
        return structure

    def minimised(self, y: Any, predicted: Any, weight: Any) -> tuple[Tensor, Tensor | None]:
        """Return the loss of a batch, a scalar tensor, and the number of values in the mean.

        That number is None if all values count, or the loss returned one number for the batch.
        """
        loss = self.loss
        if isinstance(loss, losses.Loss):
            if type(loss).__call__ is losses.Loss.__call__:
                # a training step needs a number: without a reduction, the mean
                return loss.reduced(y, predicted, weight, loss.reduction if self.summed else "mean")
            given = {} if weight is None else {"sample_weight": weight}
            value, count = counted_call(loss, y, predicted, **given)
            return ops["mean"](value), count
        if weight is not None and losses.is_named(loss):
            y, predicted = in_columns(y, predicted)
        values = in_precision(returned(loss(y, predicted), loss), "float32")
        if weight is not None and not values.ndim:
            raise ValueError(
                f"{_name(loss)} returns one number for a batch, so weights of examples cannot "
                "be applied; return a value for each example"
            )
        mask = mask_of(predicted)
        counted = None if mask is None else mask_weights(mask, values, None, _name(loss))
        return mean_of_counted(values, counted, weight)


class Objective:
    """The losses to minimise and the metrics to measure, for all outputs.

    Parameters
    ----------
    model
        The model; a :class:`gradtape.Model` has names for its outputs.
    loss, metrics, loss_weights, weighted_metrics
        As for :func:`gradtape.training.fit`.

    Attributes
    ----------
    heads : list of Head
        One for each output. If the outputs are unknown, :meth:`observe` creates them.
    names : tuple of str
        The names of all values, ``"loss"`` first.
    """

    def __init__(
        self, model: Any, loss: Any, metrics: Any, loss_weights: Any, weighted_metrics: Any
    ) -> None:
        self._given = (loss, loss_weights, metrics, weighted_metrics)
        self.heads: list[Head] = []
        self.names: tuple[str, ...] = ("loss",)
        plan = vars(model).get("_gradtape_plan") if isinstance(model, Model) else None
        outputs = None if plan is None else plan.outputs
        several = (list, tuple, dict)
        told = next((x for x in (loss, loss_weights) if isinstance(x, several)), None)
        if isinstance(metrics, dict):
            told = metrics if told is None else told
        if isinstance(outputs, several):
            self._make(outputs, tuple(model.output_names))
        elif outputs is not None and _of_one(model.output_names, self._given):
            given = [x[model.output_names[0]] if isinstance(x, dict) else x for x in self._given]
            self._given = (given[0], given[1], given[2], given[3])
            self._make(None, ())
        elif isinstance(told, dict):
            self._make(told, tuple(told))
        elif told is not None:
            self._make(told, tuple(f"output_{i}" for i in range(len(told))))
        else:
            self._make(None, ())  # one output, unless the labels show several

    def _make(self, outputs: Any, names: tuple[str, ...]) -> None:
        """Create the heads for outputs in this structure."""
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
            found += [head.loss_name for head in self.heads if head.loss is not None]
        found += [name for head in self.heads for name in head.metrics]
        for name in found:
            if found.count(name) > 1:
                raise ValueError(f"two metrics are called {name!r}")
        _check_own(self.heads)
        self.names = tuple(found)

    @property
    def several(self) -> bool:
        """Whether there are several outputs."""
        return bool(self.heads[0].name)

    @property
    def partial(self) -> bool:
        """Whether some of the outputs have no loss."""
        return self.several and any(head.loss is None for head in self.heads)

    @property
    def shares(self) -> dict[str, float]:
        """The factors of the outputs' losses in the sum, by name."""
        return {head.loss_name: head.share for head in self.heads if head.loss is not None}

    @property
    def summed(self) -> set[str]:
        """The names of losses that are sums over the examples."""
        return {head.loss_name for head in self.heads if head.summed}

    @property
    def measures(self) -> list[Any]:
        """The losses and the metrics."""
        return [x for head in self.heads for x in (head.loss, *head.metrics.values())]

    @property
    def stateful(self) -> dict[str, Any]:
        """The metrics that are objects with state, by name."""
        found = [pair for head in self.heads for pair in head.metrics.items()]
        return {name: x for name, x in found if isinstance(x, known_metrics.Metric)}

    def knowing_losses(self) -> AbstractContextManager[None]:
        """Return a context in which the metrics with state know the losses of their outputs."""
        pairs = [(x, head.kind) for head in self.heads for x in head.metrics.values()]
        return knowing_losses([pair for pair in pairs if isinstance(pair[0], known_metrics.Metric)])

    def observe(self, y: Any) -> None:
        """Infer the number of outputs from labels, if it is still unknown."""
        if not self.several and isinstance(y, (list, tuple, dict)):
            names = tuple(y) if isinstance(y, dict) else [f"output_{i}" for i in range(len(y))]
            self._make(y, tuple(names))

    def check(self, y: Any, what: str) -> None:
        """Raise if labels are invalid for the losses."""
        self.observe(y)
        for head, labels in zip(self.heads, self._labels(y, what)):
            if labels is not None:
                check_labels(head.loss, head.kind, labels, what)

    def _labels(self, y: Any, what: str) -> list[Any]:
        """Return the labels of each output; None for outputs that need none.

        Raises
        ------
        ValueError
            If labels are missing for a loss or a metric, or belong to other outputs.
        """
        heads = self.heads
        needing = [head for head in heads if head.needs_labels]
        if y is None or (not self.several and not needing):
            if needing:
                raise ValueError(
                    f"{what}: there are no labels, but loss= or metrics= needs them; give y, or "
                    "set loss=None to minimise only what layers add with add_loss"
                )
            return [y] * len(heads)
        if not self.several:
            return [y]
        if isinstance(y, (list, tuple)) and len(y) == len(needing) < len(heads):
            waiting = iter(y)
            return [next(waiting) if head.needs_labels else None for head in heads]
        self._check_parts(f"{what}: y", y, needing)
        return [head.of(y) for head in heads]

    def _weights(self, weight: Any) -> list[Any]:
        """Return the weights of each output's examples; None for outputs that have none.

        Raises
        ------
        ValueError
            If weights belong to other outputs, which would leave these without.
        """
        heads = self.heads
        if not isinstance(weight, (dict, list, tuple)):
            return [weight] * len(heads)
        if not self.several:
            raise ValueError(
                f"sample_weight is a {type(weight).__name__} of {len(weight)}, but there is one "
                "output; give one array"
            )
        needing = [head for head in heads if head.needs_labels]
        if isinstance(weight, (list, tuple)) and len(weight) == len(needing) < len(heads):
            waiting = iter(weight)
            return [next(waiting) if head.needs_labels else None for head in heads]
        self._check_parts("sample_weight", weight, [])
        return [head.of(weight) for head in heads]

    def _check_parts(self, what: str, parts: Any, needing: list[Head] | None = None) -> None:
        """Raise if labels or predictions lack an output of those that need them, or have others."""
        wanted = [head.key for head in self.heads]
        if isinstance(parts, dict):
            needed = self.heads if needing is None else needing
            known = {*wanted, *(head.name for head in self.heads)}
            fits = set(parts) <= known and all(head.of(parts) is not None for head in needed)
            found = f"has {sorted(map(str, parts))}"
        elif isinstance(parts, (list, tuple)):
            fits = wanted == list(range(len(parts)))
            found = f"is a {type(parts).__name__} of {len(parts)}"
        else:
            fits, found = len(wanted) == 1, "is one tensor"
        if not fits:
            names = ", ".join(head.name for head in self.heads)
            raise ValueError(f"{what} {found}, but the outputs are {names}")

    def check_metrics(self) -> None:
        """Raise if a metric with state got invalid predictions."""
        for metric in self.stateful.values():
            metric.check_state()

    def reset(self) -> None:
        """Reset the metrics with state."""
        for metric in self.stateful.values():
            metric.reset_state()

    def minimised(
        self, y: Any, predicted: Any, weight: Any, added: Iterable[Any], look: Any = None
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Return the loss of a batch; by name, parts of it, and the numbers of values in these.

        The parts are the losses of several outputs, and those that do not average over examples.

        Parameters
        ----------
        y, predicted, weight
            Labels, predictions and weights of the examples, if there are any.
        added
            Further terms of the loss, such as those of regularizers.
        look
            A :class:`FirstBatchChecks` that checks labels and predictions, for a first batch.
        """
        if self.several:
            self._check_parts("the model's output", predicted)
        total: Any = None
        means: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        for head, labels, output, share in self._parts(y, predicted, weight):
            if look is not None and head.needs_labels:
                look.observe(labels, output, head.loss, head.kind)
            if head.loss is None:
                continue
            value, count = head.minimised(labels, output, share)
            if count is not None:
                counts[head.loss_name] = count
            if self.several or head.summed or count is not None:
                means[head.loss_name] = value
            value = value if head.share == 1.0 else value * head.share
            total = value if total is None else total + value
        for value in added:
            total = value if total is None else total + value
        if total is None:
            raise ValueError(
                "there is no loss: give loss=, or a model with a layer that calls add_loss or has "
                "a regularizer"
            )
        return total, means, counts

    def measured(self, y: Any, predicted: Any, weight: Any) -> tuple[dict[str, Tensor], ...]:
        """Return the values of metrics, the results of those with state, and counts; all by name.

        The counts are the numbers of values in means that leave out padding.
        """
        means: dict[str, Tensor] = {}
        results: dict[str, Tensor] = {}
        counts: dict[str, Tensor] = {}
        for head, labels, output, share in self._parts(y, predicted, weight):
            mask = mask_of(output)
            for name, metric in head.metrics.items():
                if isinstance(metric, known_metrics.Metric):
                    own = share if name in head.weighted else None
                    with knowing_losses([(metric, head.kind)]):
                        update(metric, labels, output, own)
                        results[name] = as_tensor(metric.result())
                    continue
                means[name] = values = returned(metric(labels, output), metric)
                if mask is not None:
                    values = values.astype("float32")
                    seen = mask_weights(mask, values, None, _name(metric))
                    means[name], count = mean_of_counted(values, seen)
                    if count is not None:
                        counts[name] = count
        return means, results, counts

    def _parts(self, y: Any, predicted: Any, weight: Any) -> Iterator[tuple[Head, Any, Any, Any]]:
        """Yield each output's head with its labels, predictions and weights."""
        rows = zip(self.heads, self._labels(y, "data"), self._weights(weight))
        for head, labels, share in rows:
            yield head, labels, head.of(predicted) if self.several else predicted, share


def _check_own(heads: list[Head]) -> None:
    """Raise if one metric with state measures several outputs: its values would mix them.

    Raises
    ------
    ValueError
        The message names both outputs' metrics.
    """
    owners: dict[int, str] = {}
    for head in heads:
        for name, metric in head.metrics.items():
            if not isinstance(metric, known_metrics.Metric):
                continue
            other = owners.setdefault(id(metric), name)
            if other != name:
                raise ValueError(
                    f"{other!r} and {name!r} are one metric object, which would mix the outputs; "
                    f"give each output an object of its own: {type(metric).__name__}(...)"
                )


def _of_one(names: list[str], given: tuple[Any, ...]) -> bool:
    """Return whether there are dictionaries for outputs, with the only output's name as key."""
    found = [x for x in given if isinstance(x, dict)]
    return bool(found) and all(list(x) == names for x in found)


def update(metric: Any, y: Any, predicted: Any, weight: Any) -> None:
    """Update a metric with state with a batch; padding has weight 0."""
    mask = mask_of(predicted)
    if mask is not None and not isinstance(metric, MeanOf):  # MeanOf uses the mask itself
        seen = as_tensor(mask).astype("float32")
        weight = mask_weights(mask, seen, weight, _name(metric))
    vars(metric)["_gradtape_updated"] = True
    before = _not_reset(metric)
    metric.update_state(y, predicted, *(() if weight is None else (weight,)))
    now = _not_reset(metric)
    changed = [k for k, x in before.items() if now.get(k, x) is not x and now[k] != x]  # NaN is NaN
    if changed:
        vars(metric)[_TOLD] = True
        warn_user(
            f"metric {_name(metric)!r}: update_state changes {changed[0]!r}, which reset_state "
            "leaves as it is, so epochs and validations add up; make it a variable, by add_weight, "
            "or define reset_state",
            UserWarning,
        )


#: An attribute of metrics that the warning about Python state was for.
_TOLD = "_gradtape_told"


def _not_reset(metric: Any) -> dict[str, Any]:
    """Return the numbers and lengths of lists that a reset leaves; none after the warning.

    An empty list is left out, and so is what is not yet a number: the first batch may set them.
    """
    if type(metric).reset_state is not Metric.reset_state or _TOLD in vars(metric):
        return {}
    held = vars(metric).items()
    numbers = {name: x for name, x in held if type(x) in (int, float)}
    return numbers | {name: len(x) for name, x in held if type(x) is list and x}


def _name(measure: Any) -> str:
    return str(getattr(measure, "__name__", None) or getattr(measure, "name", "the loss"))


def _each(what: str, given: Any, names: tuple[str, ...], shared: bool = True) -> list[Any]:
    """Return the argument for each output."""
    if isinstance(given, Mapping):
        for name in given:
            if name not in names:
                raise ValueError(
                    f"{what} has {name!r}, which is not an output; there are {', '.join(names)}"
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
            f"{what} for {len(names)} outputs must be a dictionary by their names "
            f"({', '.join(names)}), got {given!r}"
        )
    return [given] * len(names)


def _share(weight: Any) -> float:
    if weight is None:
        return 1.0
    if not isinstance(weight, (int, float, np.number)) or not np.isfinite(weight):
        raise ValueError(f"loss_weights must be finite numbers, got {weight!r}")
    return float(weight)
