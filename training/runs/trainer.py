"""``Trainer``: the steps of ``fit``, ``evaluate`` and ``predict`` on batches; and who trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from functools import partial
from operator import is_
from typing import Any

from ...core.errors import TraceError
from ...core.extend import (
    GradientTape,
    Module,
    Tensor,
    Variable,
    active_graph,
    are_several,
    backend_of,
    calling_in,
    flatten,
    frozen_variables,
    inlining,
    lazy_module,
    mask_of,
    untrained_arrays,
)
from ...layers import (
    RNN,
    added_losses,
    constrained,
    forward_pass,
    penalties,
    penalty,
    states_kept,
    takes_training,
)
from .. import optimizers
from ..checks import (
    FirstBatchChecks,
    check_restored,
    check_used,
    warn_of_own_step,
    warn_of_padding,
    warn_of_untracked,
    whats_not_finite,
)
from ..loss_scaling import scaling, scaling_for
from ..ranks import ALONE, SingleRank
from ..threads import warn_once_of_threads
from .batches import BatchSender, ClassWeights, Sums, Values
from .objective import Objective
from .session import Session
from .step import MODES, BatchStep, Constant, constants_of

__all__ = ["Trainer", "ranks_and_trainer"]


class Trainer(Session):
    """A model with its losses, metrics and optimizer.

    Parameters
    ----------
    model, loss, metrics, optimizer, loss_weights, weighted_metrics, class_weight, compile
        As for :func:`gradtape.training.fit`.
    method
        The method that runs, for messages.
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
        warn_of_own_step(model, method)
        self.optimizer = optimizers.get(optimizer)
        if method == "fit" and not getattr(self.optimizer, "takes_gradients", True):
            kind = type(self.optimizer).__name__
            raise TypeError(
                f"fit: {kind} evaluates the loss several times in a step, which fit does once for "
                "each batch; write a function that returns the loss over all data, and call "
                f"{kind}().minimize(loss, model.trainable_variables)"
            )
        self.objective = Objective(model, loss, metrics, loss_weights, weighted_metrics)
        self.with_training = takes_training(model)
        if method == "fit":
            check_restored(model)
            self.optimizer = scaling_for(model, self.optimizer)
        self.variables: list[Variable] = []
        self._parts: tuple[Module, ...] | None = None  # those of the model that have been called
        self._penalties: list[tuple[Variable, Any]] = []
        self._limits: list[tuple[Variable, Any]] = []
        self.method = method
        loops = any(isinstance(x, RNN) and not x.unroll for x in (model, *model.submodules))
        around = self._held, self._attributes, loops
        self.training = BatchStep(self._train, compile, "training", *around)
        self.testing = BatchStep(self._test, compile, "validation", *around)
        self.applying = BatchStep(
            self._apply, compile, "prediction", *around, compare_all_results=True
        )
        #: Whether callbacks on batches may change the model within an epoch.
        self.watched = False
        #: Whether to warn, in the first step, if BLAS's threads wait for each other.
        self.looks_at_threads = False
        self.class_weights = ClassWeights.of(class_weight, self.objective.heads[0].kind)
        self._looked: dict[Any, int] = {}  # the sizes of the batches that were checked
        self._sums = self._no_sums()
        self._snapshot: list[tuple[Variable, Any]] | None = None
        self._begun = False
        # whether calls of the model give losses or masks too, which graphs of its functions lack
        self._inlines: bool | None = None
        self._number: float | None = None  # the loss of an eager step, read before the gradient
        self._fetch: Callable[[], None] = _nothing

    def ahead(self, batches: Iterable[Any], early: bool) -> Iterable[Any]:
        """Return the batches, copied from host memory to the model's device."""
        self._fetch = _nothing
        array = next((variable.array for variable in self.model.variables), None)
        owner = None if array is None else backend_of(array)
        if owner is None or owner.host:
            return batches
        found = BatchSender(batches, owner, owner.device(array), early)
        self._fetch = found.fetch
        return found

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names of the values that are known so far."""
        return self.objective.names

    def call(self, x: Any, training: bool) -> Any:
        """Return the model's predictions; layers inside get the mode even if the model does not."""
        try:
            with calling_in(training):
                told = {"training": training} if self.with_training else {}
                predicted = self.model(x, **told)
        except (AttributeError, LookupError, TypeError) as error:
            if isinstance(error, TraceError) or not are_several(x):
                raise
            labels = "give only inputs, without labels; " if self.method == "predict" else ""
            raise TypeError(
                f"{self.method}: x is a {type(x).__name__} of {len(x)} arrays, which this model "
                f"does not take ({error}); {labels}join several inputs with np.concatenate or "
                "np.stack, or use a model that takes several"
            ) from error
        if predicted is None:
            raise TypeError(
                f"{self.method}: a call of the model {self.model.name!r} "
                f"({type(self.model).__name__}) returned None; end it with return and the result"
            )
        return predicted

    def check(self, y: Any, what: str) -> None:
        """Raise if labels are invalid for the losses."""
        self.objective.check(y, what)

    def prepare(self, batch: tuple[Any, ...]) -> None:
        """Create the variables of the model, optimizer and metrics, with a call at inference."""
        for x, y, *weight in self.ahead([batch], early=False):
            self._remember(x)
            if any(not metric.variables for metric in self.objective.stateful.values()):
                self.objective.observe(y)
                with states_kept(self.model):
                    predicted = self.call(x, training=False)
                self.objective.measured(y, predicted, *(weight or [None]))
                self.objective.reset()

    def trackables(self) -> dict[str, Any]:
        """Return the model, the optimizer, and metrics with state."""
        stateful = list(self.objective.stateful.values())
        kept = {"metrics": stateful} if stateful else {}
        return {"model": self.model, "optimizer": self.optimizer, **kept}

    def state(self) -> dict[str, Any]:
        """Return the values of the epoch so far, and which kinds of batches have been checked."""
        return {
            **self._sums.state(self.names),
            "looked": [[list(alike), size] for alike, size in self._looked.items()],
            "met": self.training.met,
        }

    def load(self, state: dict[str, Any]) -> None:
        """Continue within an epoch in this state."""
        self._sums.load(state, self.names)
        self._looked = {tuple(alike): size for alike, size in state["looked"]}
        self.training.met = {str(key): int(n) for key, n in state.get("met", {}).items()}

    def begin_epoch(self) -> None:
        """Reset the values of the previous epoch."""
        self._sums = self._no_sums()
        self.objective.reset()
        self._begun = False

    def settle(self) -> None:
        """Raise if a metric got invalid predictions in the steps of an epoch."""
        self.objective.check_metrics()

    def _no_sums(self) -> Sums:
        return Sums(self.objective.shares, self.objective.summed)

    def train(self, batch: tuple[Any, ...]) -> dict[str, float]:
        """Do one training step; return the values for the epoch's examples so far."""
        if not self._begun:
            self.objective.observe(_labels(batch))
            self._sums.shares, self._sums.summed = self.objective.shares, self.objective.summed
            self._remember(batch[0])
            self.training.revise()
            self._begun = True
        elif self.watched:
            if self._parts != self.model.submodules or self._others_train():
                self._gather(batch[0])
            self.training.revise()
        if self.class_weights is not None:
            batch = (*batch[:2], self.class_weights(_labels(batch), *batch[2:]))
        self._number = None
        with scaling(self.optimizer):
            values = self._run(self.training, batch)
        self._fetch()
        number = self._finite(values.loss, batch) if self._number is None else self._number
        self._sums.add(number, values, self.count(batch))
        return self._sums.means(self.names, self.objective.stateful)

    def _finite(self, loss: Tensor, batch: tuple[Any, ...]) -> float:
        """Return the loss as a number; raise if it is not finite."""
        number = float(loss)
        if not math.isfinite(number):
            raise FloatingPointError(
                f"fit: the loss is {number}; a smaller learning rate, or scaled inputs, may help. "
                f"{whats_not_finite(batch)}The model is restored to the beginning of this epoch"
            )
        return number

    def _remember(self, x: Any) -> None:
        """Keep the state before an epoch that begins with the inputs ``x``."""
        self._gather(x)
        # arrays are never written, so references to them are enough
        held = (*self.model.variables, *self.optimizer.variables)
        self._snapshot = [(variable, variable.array) for variable in held]

    def _others_train(self) -> bool:
        """Return whether a callback has frozen or thawed variables, or replaced some."""
        now = self.model.trainable_variables
        return len(now) != len(self.variables) or not all(map(is_, now, self.variables))

    def _gather(self, x: Any) -> None:
        """Find the variables that train; those of new layers are created with the inputs ``x``."""
        if self._parts != self.model.submodules:
            with states_kept(self.model):
                self.call(x, training=False)
            if self._parts is None and self.looks_at_threads:
                warn_once_of_threads(self.model.variables, x)
            self._parts = self.model.submodules
        self.variables = list(self.model.trainable_variables)
        if not self.variables:
            frozen = "" if self.model.trainable else ": it is frozen (trainable is False)"
            arrays = ", ".join(untrained_arrays(self.model))
            hint = f"; arrays do not train, make a gradtape.Variable of {arrays}" if arrays else ""
            raise ValueError(f"fit: {self.model!r} has no trainable variables{frozen}{hint}")
        self.optimizer.name_variables(self.model)
        self.optimizer.build(self._claimants())
        self._penalties = penalties(self.model)
        self._limits = [(v, rule) for v, rule in constrained(self.model) if v.trainable]

    def _claimants(self) -> list[Variable]:
        """Return the variables in the order of the optimizer's state from a file.

        If parts of the model have been frozen since, there are more of them than train now.
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
                f"fit: the optimizer was saved with the state of {held} variables, but the model "
                f"trains {len(self.variables)}; freeze the same layers as then, or use a new "
                "optimizer"
            )
        return both

    def restore(self) -> None:
        """Restore the state at the beginning of the epoch."""
        for variable, array in self._snapshot or ():
            variable.set_array(array)

    def finish(self) -> None:
        """Assign the averages of weights to the variables, if the optimizer keeps them."""
        self.optimizer.finalize_variable_values(self.variables)

    # -- steps -----------------------------------------------------------------------------------

    def _run(self, step: BatchStep, batch: tuple[Any, ...]) -> Values:
        """Do a step; check the first batch closely.

        The first batch with labels of another rank is also checked, and the first with labels in a
        column, as validation data may have them.
        """
        leaves = [flatten(part) for part in batch[:2]]
        labels = [] if _labels(batch) is None else leaves[1]
        count = self.count(batch)
        alike = (*[x.ndim for x in leaves[0]], *[n for y in labels for n in _rank(y, count)])
        seen = self._looked.get(alike, 0)
        if seen > 1 or seen == count:  # a single example cannot show what broadcasts
            return step(batch)
        values: Values = step(batch, FirstBatchChecks(self.method))
        self._looked[alike] = count
        return values

    def count(self, batch: tuple[Any, ...]) -> int:
        """Return the number of examples in a batch."""
        return len(flatten(batch[0])[0])

    def _train(
        self, x: Any, y: Any = None, weight: Any = None, look: FirstBatchChecks | None = None
    ) -> Values:
        """Train on a batch; return its values before the step."""
        with GradientTape() as tape:
            parts, total, losses = self._forward(x, y, weight, True, look)
            scaled = self.optimizer.scale_loss(total)
        if look is not None:
            warn_of_untracked(self.model, tape.watched_variables(), self.method)
        if active_graph.get() is None:
            self._fetch()  # while the device computes: the next line waits for it
            self._number = self._finite(total, (x, y, weight))
        self._update(tape.gradient(scaled, self.variables))
        return self._measured(parts, total, losses, look)

    def _update(self, gradients: list[Any]) -> None:
        """Do a step of the optimizer, and apply the constraints."""
        pairs = list(zip(gradients, self.variables, strict=True))
        if self.objective.partial:  # weights for outputs without a loss do not change
            pairs = [(g, v) for g, v in pairs if g is not None]
        if any(g is None for g, _ in pairs) and not self.optimizer.skips_missing:
            check_used(self.model, [v for g, v in pairs if g is None], self.method)
        self.optimizer.apply_gradients(pairs)
        for variable, constraint in self._limits:
            variable.assign(constraint(variable.value))

    def _test(
        self, x: Any, y: Any = None, weight: Any = None, look: FirstBatchChecks | None = None
    ) -> Values:
        """Return the values of a batch at inference."""
        return self._measured(*self._forward(x, y, weight, False, look), look)

    def _apply(self, x: Any, look: Any = None) -> Any:
        """Return the outputs for a batch of inputs at inference."""
        return self.call(x, training=False)

    def _forward(
        self, x: Any, y: Any, weight: Any, training: bool, look: FirstBatchChecks | None
    ) -> tuple[tuple[Any, Any, Any], Tensor, tuple[dict[str, Tensor], dict[str, Tensor]]]:
        """Return labels, predictions and weights; the loss; its parts, and their counts."""
        with look.looking() if look is not None else nullcontext(), forward_pass(self.model):
            with inlining(self._inlines is not False):
                predicted = self.call(x, training)
            if self._inlines is None:
                masked = any(mask_of(leaf) is not None for leaf in flatten(predicted))
                self._inlines = masked or bool(added_losses(self.model))
            if look is not None and weight is None:
                warn_of_padding(self.model, x, predicted, self.method)
            y, predicted, weight = self._loss_inputs(y, predicted, weight)
            added = [penalty(v, regularizer) for v, regularizer in self._penalties]
            added += self._added()
            total, *losses = self.objective.minimised(y, predicted, weight, added, look)
        if total.dtype.kind not in "fiub":
            raise TypeError(
                f"{self.method}: the loss has dtype {total.dtype}; it must be real to be minimised"
            )
        return (y, predicted, weight), total, (losses[0], losses[1])

    def _loss_inputs(self, y: Any, predicted: Any, weight: Any) -> tuple[Any, Any, Any]:
        """Return the labels, predictions and weights that the loss is computed from: these."""
        return y, predicted, weight

    def _added(self) -> list[Any]:
        """Return the losses that layers added in the call."""
        return added_losses(self.model)

    def _measured(
        self,
        parts: tuple[Any, Any, Any],
        total: Tensor,
        losses: tuple[dict[str, Tensor], dict[str, Tensor]],
        look: FirstBatchChecks | None,
    ) -> Values:
        means, counts = losses
        with look.looking() if look is not None else nullcontext():
            found, results, seen = self.objective.measured(*parts)
        return Values(total, {**means, **found}, results, {**counts, **seen})

    def _held(self) -> list[Variable]:
        """Return the variables that a step may change."""
        measures = [v for metric in self.objective.stateful.values() for v in metric.variables]
        return [*self.model.variables, *self.optimizer.variables, *measures]

    def _attributes(self) -> dict[str, Constant]:
        """Return the values that a trace of a step takes from Python objects."""
        modules = self.model, *self.model.submodules, self.optimizer, *self.optimizer.submodules
        found = constants_of((*modules, *self.objective.measures))
        trained = Constant([id(v) for v in self.variables], None, True)
        return {**found, "the variables that train ()": trained}

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Return the values of loss and metrics at inference; end early if ``stop()``."""
        with states_kept(self.model):
            return self._evaluated(batches, stop)

    def _evaluated(self, batches: Iterable[Any], stop: Callable[[], bool]) -> dict[str, float]:
        sums: Sums | None = None
        self.objective.reset()
        self.testing.revise()
        for batch in self.ahead(batches, early=False):
            if sums is None:
                self.objective.observe(_labels(batch))
                sums = self._no_sums()
                if not self._penalties:
                    with states_kept(self.model):
                        self.call(batch[0], training=False)  # creates every weight
                    self._penalties = penalties(self.model)
            values = self._run(self.testing, batch)
            sums.add(float(values.loss), values, self.count(batch))
            if stop():
                break
        if sums is None:
            raise ValueError("evaluate: data has no batches")
        self.objective.check_metrics()
        return sums.means(self.names, self.objective.stateful)

    def predict(self, batches: Iterable[Any], early: bool) -> list[Any]:
        """Return the outputs of batches of inputs at inference."""
        found: list[Any] = []
        with states_kept(self.model):
            for part in self.ahead(batches, early):
                # batches of an iterable are tuples, or lists from PyTorch's loaders
                x = part[0] if isinstance(part, (tuple, list)) and not early else part
                # the first call creates the weights
                found.append(self.applying((x,)) if found else self.call(x, training=False))
                _check_rows(x, found[-1])
        return found


def _check_rows(x: Any, outputs: Any) -> None:
    """Raise if a model's outputs do not have one row for each row of its inputs."""
    given = {leaf.shape[0] if leaf.ndim else None for leaf in flatten(x)}
    for output in flatten(outputs):
        if not isinstance(output, Tensor) or not output.ndim:
            told = output.shape if isinstance(output, Tensor) else type(output).__name__
            raise TypeError(
                f"predict: a model must return tensors with one row per example, got {told}"
            )
        if output.shape[0] not in given:
            shapes = " and ".join(str(leaf.shape) for leaf in flatten(x))
            raise ValueError(
                f"predict: the model returns shape {output.shape} for inputs of shape {shapes}; "
                "the first axis must be the examples. Batch a Dataset with batch(n)"
            )


def _labels(batch: tuple[Any, ...]) -> Any:
    return batch[1] if len(batch) > 1 else None


def _rank(y: Tensor, count: int) -> tuple[int, bool]:
    return y.ndim, (count if y.ndim == 1 else y.shape[-1]) == 1


def _nothing() -> None:
    """Do nothing."""


def ranks_and_trainer(group: Any, method: str) -> tuple[SingleRank, Any]:
    """Return the ranks, and the class of their trainers.

    Parameters
    ----------
    group
        A group of :mod:`gradtape.distributed`, or None.
    method
        The caller, for messages.

    Raises
    ------
    TypeError
        If ``group`` is not a group.
    """
    if group is None:
        return ALONE, Trainer
    parallel = lazy_module("training.parallel")  # imported only if needed
    ranks: SingleRank = parallel.together(group, method)
    if ranks is ALONE:
        return ranks, Trainer
    whole = isinstance(ranks, parallel.WholeRanks)
    return ranks, partial(parallel.WholeTrainer if whole else parallel.ParallelTrainer, ranks)
