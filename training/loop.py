"""What ``fit``, ``evaluate`` and ``predict`` do with one batch after another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..core.errors import TraceError
from ..core.extend import (
    GradientTape,
    Module,
    Tensor,
    Variable,
    active_graph,
    are_several,
    as_inputs,
    backend_of,
    calling_in,
    flatten,
    frozen_variables,
    pack_like,
    scope_of,
    to_numpy,
)
from ..data import Dataset
from ..layers import RNN, added_losses, constrained, forward_pass, penalties, takes_training
from . import optimizers
from .checks import FirstLook, check_restored, whats_not_finite
from .data import Examples, as_dataset
from .loss_scaling import scaling, scaling_for
from .objective import Objective, Values, class_weights
from .sending import Ahead
from .session import Session
from .steps import MODES, Step, attributes_of

__all__ = ["Trainer", "evaluate", "predict"]


class Trainer(Session):
    """A model with what it is trained for, and its optimizer.

    Parameters
    ----------
    model, loss, metrics, optimizer, loss_weights, weighted_metrics, class_weight, compile
        As for :func:`gradtape.training.fit`.
    method
        Who trains or measures, for messages.
    """

    def __init__(
        self,
        model: Any,
        loss: Any,
        metrics: Any = None,
        optimizer: Any = "adam",
        method: str = "fit",
        *,
        loss_weights: Any = None,
        weighted_metrics: Any = None,
        class_weight: Any = None,
        compile: Any = False,
    ) -> None:
        if not isinstance(model, Module) or not callable(model):
            raise TypeError(
                f"expected a model, a gradtape.Module that can be called, got {model!r}"
            )
        if compile not in MODES:
            raise ValueError(f"{method}: compile is 'auto', True or False, got {compile!r}")
        self.model = model
        self.optimizer = optimizers.get(optimizer)
        self.objective = Objective(model, loss, metrics, loss_weights, weighted_metrics)
        self.with_training = takes_training(model)
        if method == "fit":
            check_restored(model)
            self.optimizer = scaling_for(model, self.optimizer)
        self.variables: list[Variable] = []
        self._penalties: list[tuple[Variable, Any]] = []
        self._limits: list[tuple[Variable, Any]] = []
        self.method = method
        loops = any(isinstance(x, RNN) and not x.unroll for x in (model, *model.submodules))
        around = self._held, self._attributes, loops
        self.training = Step(self._train, compile, "training", *around)
        self.testing = Step(self._test, compile, "validation", *around)
        #: Whether somebody who is told of each batch may change the model within an epoch.
        self.watched = False
        self._weigh = class_weights(class_weight)
        self._looked: dict[Any, int] = {}  # the sizes of the batches that were looked at
        self._totals: dict[str, float] = {}
        self._count = 0
        self._snapshot: list[tuple[Variable, Any]] | None = None
        self._begun = False
        self._fetch: Callable[[], None] = _nothing

    def ahead(self, batches: Iterable[Any], early: bool) -> Iterable[Any]:
        """Return batches, those in host memory copied to the device that the model is on."""
        self._fetch = _nothing
        array = next((variable.array for variable in self.model.variables), None)
        owner = None if array is None else backend_of(array)
        if owner is None or owner.host:
            return batches
        found = Ahead(batches, owner, owner.device(array), early)
        self._fetch = found.fetch
        return found

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the values, as far as they are known."""
        return self.objective.names

    def call(self, x: Any, training: bool) -> Any:
        """Return the model's predictions, the mode handed on if it does not take it."""
        try:
            with calling_in(training):
                return self.model(x, training=training) if self.with_training else self.model(x)
        except (AttributeError, LookupError, TypeError) as error:
            if isinstance(error, TraceError) or not are_several(x):
                raise
            raise TypeError(
                f"{self.method}: x is a {type(x).__name__} of {len(x)} arrays, which this model "
                f"does not take ({error}); several inputs are joined with np.concatenate or "
                "np.stack, or the model is one that takes them"
            ) from error

    def check(self, y: Any, what: str) -> None:
        """Raise if labels are outside what the losses can mean."""
        self.objective.check(y, what)

    def prepare(self, batch: tuple[Any, ...]) -> None:
        """Make the model's variables and the optimizer's, with a call at inference."""
        for sent in self.ahead([batch], early=False):
            self._remember(sent[0])

    def trackables(self) -> dict[str, Any]:
        """Return the model, the optimizer, and metrics with state."""
        stateful = list(self.objective.stateful.values())
        kept = {"metrics": stateful} if stateful else {}
        return {"model": self.model, "optimizer": self.optimizer, **kept}

    def state(self) -> dict[str, Any]:
        """Return what the epoch measured so far, and of what batches a close look was taken."""
        return {
            "totals": self._totals or dict.fromkeys(self.names, 0.0),
            "count": self._count,
            "looked": [[list(alike), size] for alike, size in self._looked.items()],
            "met": self.training.met,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Go on within an epoch that measured this."""
        if set(state["totals"]) != set(self.names):
            raise ValueError(
                f"the run measured {', '.join(state['totals'])}; this one {', '.join(self.names)}"
            )
        if type(state["count"]) is not int or not 0 <= state["count"] < 2**63:
            raise ValueError(f"a count of examples is {str(state['count'])[:40]}")
        self._totals = {name: float(state["totals"][name]) for name in self.names}
        self._count = state["count"]
        self._looked = {tuple(alike): size for alike, size in state["looked"]}
        self.training.met = {str(key): int(n) for key, n in state.get("met", {}).items()}

    def begin_epoch(self) -> None:
        """Forget what the epoch before measured."""
        self._totals, self._count = {}, 0
        self.objective.reset()
        self._begun = False

    def train(self, batch: tuple[Any, ...]) -> dict[str, float]:
        """Do one training step; return the values of the epoch's examples so far."""
        if not self._begun:
            self.objective.meet(batch[1])
            self._remember(batch[0])
            self.training.revise()
            self._begun = True
        elif self.watched:
            self.training.revise()
        if self._weigh is not None:
            weight = self._weigh(batch[1])
            batch = (*batch[:2], weight if len(batch) == 2 else batch[2] * weight)
        with scaling(self.optimizer):
            values = self._run(self.training, batch)
        self._fetch()
        number = self._finite(values.loss, batch)
        self._count += _added(self._totals, number, values, _length(batch))
        return self._means(self._totals, self._count)

    def _finite(self, loss: Tensor, batch: tuple[Any, ...]) -> float:
        """Return the loss as a number; raise if it is not finite."""
        number = float(loss)
        if not math.isfinite(number):
            raise FloatingPointError(
                f"fit: the loss is {number}; a smaller learning rate, or scaled inputs, may help. "
                f"{whats_not_finite(batch)}The model is as it was when this epoch began"
            )
        return number

    def _means(self, totals: dict[str, float], count: int) -> dict[str, float]:
        stateful = self.objective.stateful
        return {
            name: totals[name] if name in stateful else totals[name] / count for name in self.names
        }

    def _remember(self, x: Any) -> None:
        """Remember the state before an epoch that begins with the inputs ``x``."""
        if self._snapshot is None:
            self.call(x, training=False)  # so that every variable is there
        self.variables = list(self.model.trainable_variables)
        if not self.variables:
            frozen = "" if self.model.trainable else ": it is frozen (trainable is False)"
            raise ValueError(f"fit: {self.model!r} has no trainable variables{frozen}")
        self.optimizer.build(self._claimants())
        self._penalties = penalties(self.model)
        self._limits = [(v, rule) for v, rule in constrained(self.model) if v.trainable]
        # arrays are never written, so holding on to them is enough
        held = (*self.model.variables, *self.optimizer.variables)
        self._snapshot = [(variable, variable.array) for variable in held]

    def _claimants(self) -> list[Variable]:
        """Return the variables in the order of the state that a file brought for the optimizer.

        Of a model that was frozen since, in part, these are more than train.
        """
        self.optimizer.adopt(self.variables)
        held = self.optimizer.unclaimed
        if held in (0, len(self.variables)):
            return self.variables
        modules = (self.model, *self.model.submodules)
        frozen = {v for module in modules for v in frozen_variables(module)}
        both = [v for v in self.model.variables if v.trainable or v in frozen]
        if len(both) != held:
            raise ValueError(
                f"fit: the optimizer was saved with the state of {held} variables, and the model "
                f"trains {len(self.variables)}; freeze what was frozen then, or begin another"
            )
        return both

    def restore(self) -> None:
        """Go back to the state in which the epoch began."""
        for variable, array in self._snapshot or ():
            variable.set_array(array)

    def finish(self) -> None:
        """Put the averages of weights in their place, if the optimizer keeps them."""
        self.optimizer.finalize_variable_values(self.variables)

    # -- steps -----------------------------------------------------------------------------------

    def _run(self, step: Step, batch: tuple[Any, ...]) -> Values:
        """Do a step; look closely at the first batch.

        Also at the first with labels of another rank, or in a column, as validation data may have.
        """
        leaves = [flatten(part) for part in batch[:2]]
        alike = (*[x.ndim for x in leaves[0]], *[n for y in leaves[1] for n in _rank(y)])
        seen = self._looked.get(alike, 0)
        if seen > 1 or seen == _length(batch):  # one example alone cannot show what broadcasts
            return step(batch)
        values: Values = step(batch, FirstLook(self.method))
        self._looked[alike] = _length(batch)
        return values

    def _train(self, x: Any, y: Any, weight: Any = None, look: FirstLook | None = None) -> Values:
        """Train on a batch; return what it gave before."""
        with GradientTape() as tape:
            predicted, total, means = self._forward(x, y, weight, True, look)
            scaled = self.optimizer.scale_loss(total)
        if active_graph.get() is None:
            self._fetch()  # the device computes meanwhile: the next line waits for it
            self._finite(total, (x, y, weight))
        gradients = tape.gradient(scaled, self.variables)
        self.optimizer.apply_gradients(zip(gradients, self.variables, strict=True))
        for variable, constraint in self._limits:
            variable.assign(constraint(variable.value))
        return self._measured(y, predicted, weight, total, means, look)

    def _test(self, x: Any, y: Any, weight: Any = None, look: FirstLook | None = None) -> Values:
        """Measure a batch at inference."""
        predicted, total, means = self._forward(x, y, weight, False, look)
        return self._measured(y, predicted, weight, total, means, look)

    def _forward(
        self, x: Any, y: Any, weight: Any, training: bool, look: FirstLook | None
    ) -> tuple[Any, Tensor, dict[str, Tensor]]:
        """Return the predictions, the loss, and the losses of several outputs."""
        with look.looking() if look is not None else nullcontext(), forward_pass(self.model):
            predicted = self.call(x, training)
            added = [regularizer(v.value) for v, regularizer in self._penalties]
            added += added_losses(self.model)
            total, means = self.objective.minimised(y, predicted, weight, added, look)
        if total.dtype.kind not in "fiub":
            raise TypeError(
                f"{self.method}: the loss has dtype {total.dtype}; it must be real to be minimised"
            )
        return predicted, total, means

    def _measured(
        self,
        y: Any,
        predicted: Any,
        weight: Any,
        total: Tensor,
        means: dict[str, Tensor],
        look: FirstLook | None,
    ) -> Values:
        with look.looking() if look is not None else nullcontext():
            found, results = self.objective.measured(y, predicted, weight)
        return Values(total, {**means, **found}, results)

    def _held(self) -> list[Variable]:
        """Return the variables that a step may change."""
        measures = [v for metric in self.objective.stateful.values() for v in metric.variables]
        return [*self.model.variables, *self.optimizer.variables, *measures]

    def _attributes(self) -> dict[str, Any]:
        """Return what a trace of a step takes from Python objects."""
        trainers = self.optimizer, *self.optimizer.submodules
        found = attributes_of((self.model, *self.model.submodules, *trainers))
        found["the variables that train ()"] = [id(v) for v in self.variables]
        return found

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Return the values of loss and metrics at inference; early if ``stop()``."""
        totals: dict[str, float] = {}
        count = 0
        self.objective.reset()
        self.testing.revise()
        for batch in self.ahead(batches, early=False):
            if not count:
                self.objective.meet(batch[1])
                if not self._penalties:
                    self.call(batch[0], training=False)  # so that every weight is there
                    self._penalties = penalties(self.model)
            values = self._run(self.testing, batch)
            count += _added(totals, float(values.loss), values, _length(batch))
            if stop():
                break
        if not count:
            raise ValueError("evaluate: data has no batches")
        return self._means(totals, count)


def _length(batch: tuple[Any, ...]) -> int:
    return len(flatten(batch[0])[0])


def _rank(y: Tensor) -> tuple[int, bool]:
    return y.ndim, y.shape[-1] == 1


def _added(totals: dict[str, float], loss: float, values: Values, length: int) -> int:
    """Add what a batch gave to totals; return how many examples it has."""
    totals["loss"] = totals.get("loss", 0.0) + loss * length
    for name, value in values.means.items():
        totals[name] = totals.get(name, 0.0) + float(np.mean(to_numpy(value.array))) * length
    for name, value in values.results.items():
        if value.ndim:
            raise ValueError(
                f"metric {name!r} has {value.shape} values, and a history lists one; let it "
                "average (average='macro'), or update it in a callback"
            )
        totals[name] = float(to_numpy(value.array))
    return length


def _nothing() -> None:
    """Do nothing."""


def evaluate(
    model: Module,
    data: Any,
    *,
    batch_size: int = 32,
    loss: Any = "sparse_categorical_crossentropy",
    metrics: Any = None,
    loss_weights: Any = None,
    weighted_metrics: Any = None,
) -> dict[str, float]:
    """Measure a model at inference.

    Parameters
    ----------
    model
        A module that is called with a batch.
    data
        Arrays ``(x, y)`` or ``(x, y, sample_weight)``, or an iterable of such batches.
    batch_size
        The size of the batches that arrays are cut into.
    loss, metrics, loss_weights, weighted_metrics
        As for :func:`gradtape.training.fit`.

    Returns
    -------
    The values of all examples, by name: ``"loss"`` and each metric.

    Raises
    ------
    ValueError
        If the data or an argument are unusable, as for :func:`gradtape.training.fit`.

    Examples
    --------
    >>> data = (gt.ones((4, 2)), gt.ones((4, 2)))
    >>> gt.training.evaluate(gt.layers.Activation("relu"), data, loss="mse")
    {'loss': 0.0}
    """
    trainer = Trainer(
        model,
        loss,
        metrics,
        method="evaluate",
        loss_weights=loss_weights,
        weighted_metrics=weighted_metrics,
    )
    return trainer.evaluate(as_dataset(data, batch_size, check=trainer.check).batches())


def predict(model: Module, x: Any, *, batch_size: int = 32) -> Any:
    """Return a model's outputs at inference, computed batch by batch.

    Parameters
    ----------
    model
        A module that is called with a batch and returns tensors, in any structure.
    x
        Inputs, in any structure; the first axis counts examples. Or a
        :class:`gradtape.data.Dataset` of batches of them, or of pairs of inputs and labels.
    batch_size
        The size of the batches.

    Returns
    -------
    A tensor whose first axis counts the same examples, or several in the model's structure.

    Raises
    ------
    ValueError
        If there are no examples, or ``batch_size`` is not positive.
    TypeError
        If the model returns something else than tensors with an axis of examples.

    Examples
    --------
    >>> gt.training.predict(gt.layers.Activation("relu"), [[-1.0], [2.0]]).tolist()
    [[0.0], [2.0]]
    """
    trainer = Trainer(model, "mse", ())
    parts = trainer.ahead(*_inputs(x, batch_size))
    try:
        outputs = [trainer.call(part, training=False) for part in parts]
    except (AttributeError, TypeError) as error:
        if not are_several(x):
            raise
        raise TypeError(
            f"predict: x is a {type(x).__name__} of {len(x)} arrays, which this model does not "
            f"take ({error}); give it inputs alone, without labels"
        ) from error
    if not outputs:
        raise ValueError("predict: there are no batches")
    columns = []
    for column in zip(*map(flatten, outputs), strict=True):
        for output in column:
            if not isinstance(output, Tensor) or not output.ndim:
                raise TypeError(
                    "predict: a model returns tensors with an axis of examples, got "
                    f"{output.shape if isinstance(output, Tensor) else type(output).__name__}"
                )
        arrays = [output.array for output in column]
        with scope_of(arrays):
            columns.append(Tensor(backend_of(arrays[0]).xp.concat(arrays, axis=0)))
    return pack_like(outputs[0], columns)


def _inputs(x: Any, batch_size: int) -> tuple[Iterator[Any], bool]:
    """Return batches of inputs, and whether one may be read before it is wanted."""
    if isinstance(x, Dataset):
        return (part[0] if isinstance(part, tuple) else part for part in x), False
    return Examples(as_inputs(x), None, batch_size).batches(), True
