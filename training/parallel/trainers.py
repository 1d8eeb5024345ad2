"""Trainers of several ranks: each on its part of a batch, or as one program over all of it.

``ParallelTrainer`` runs each step with other ranks, on its part of a batch. If the loss of a batch
is a mean over its examples, each rank computes it for its own examples, and the average over the
ranks is correct. Any other loss (your own, or one that leaves padding or a class out of the mean)
is computed for the whole batch on every rank, from gathered predictions. The same holds for
metrics.

``WholeTrainer`` has steps that the engine runs as one program over the whole batch. The step is
that of a single process, unchanged, and covers all examples. The first step moves variables to the
devices of the engine, where they stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ...core.errors import TraceError
from ...core.extend import (
    GradientTape,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    communicator,
    flatten,
    map_structure,
    ops,
    pack_like,
    reducing,
    stop_request,
    to_numpy,
)
from ...distributed import broadcast_variables
from ...distributed.agreement import agree_on_graph
from ...distributed.reduction import Reduction
from ...layers import keep_mask, mask_of
from ...plugins.ops.random.functions import shared
from ..checks import FirstBatchChecks, whats_not_finite
from ..loss_scaling import LossScaleOptimizer
from ..losses.loss import Loss
from ..names import stated
from ..ranks import BatchLayout, RankPart
from ..runs.batches import Values
from ..runs.step import BatchStep, differing
from ..runs.trainer import Trainer
from .together import TrainingRanks, WholeRanks, sample_of

__all__ = ["ParallelTrainer", "WholeTrainer"]


class ParallelTrainer(Trainer):
    """A trainer in a job of several ranks.

    Parameters
    ----------
    ranks
        The ranks.
    given, options
        As for :class:`Trainer`.
    """

    def __init__(self, ranks: TrainingRanks, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self.ranks = ranks
        self.layout = BatchLayout(0, (1,))
        self._alike = False
        self._compared: set[str] = set()
        self._apart = True  # whether each rank computes the loss of its own examples

    # -- batches -------------------------------------------------------------------------------

    def ahead(self, batches: Iterable[Any], early: bool) -> Iterable[Any]:
        """Yield this rank's parts of batches."""
        waiting: deque[BatchLayout] = deque()

        def parts() -> Iterator[Any]:
            for batch in batches:
                part = batch if isinstance(batch, RankPart) else self._cut(batch)
                waiting.append(part.layout)
                yield part.batch

        for batch in super().ahead(parts(), early):
            self.layout = waiting.popleft()
            yield batch

    def _cut(self, batch: Any) -> RankPart:
        """Return this rank's rows of a batch that all ranks pass."""
        count = len(flatten(batch[0])[0])
        if "batches" not in self._compared:
            self._compared.add("batches")
            self.ranks.compare(
                "batches",
                "each rank must iterate over the same batches, and takes its rows of each. Pass a "
                "seed to shuffles, or to fit, and do not shard by hand",
                sample_of(batch),
            )
        layout = self.ranks.share(count)
        rows = slice(layout.start, layout.stop)
        return RankPart(map_structure(lambda x: Tensor(x.array[rows, ...]), batch), layout)

    def count(self, batch: tuple[Any, ...]) -> int:
        """Return the number of examples that all ranks have of a batch."""
        return self.layout.total

    def _remember(self, x: Any) -> None:
        super()._remember(x)
        if self._alike:
            return
        self._alike = True
        held = self.held()
        told = ", ".join(f"{v.name} {v.dtype}{list(v.shape)}" for v in self.variables)
        self.ranks.agree(f"called fit to train {told} by {type(self.optimizer).__name__}")
        # a short run is never traced, and compares no graphs
        layers = enumerate((self.model, *self.model.submodules))
        settings = {f"layer {i} of the model": x for i, x in layers}
        self.ranks.agree_on("fit", settings)
        broadcast_variables([*held, shared().state])
        self._snapshot = [(variable, variable.array) for variable, _ in self._snapshot or ()]

    def held(self) -> list[Variable]:
        """Return the variables that must be the same on all ranks."""
        return self._held()

    def settle(self) -> None:
        """Average moving statistics of each rank's own examples, and compare all other variables.

        Raises
        ------
        DistributedError
            If ranks have diverged. The message names them.
        """
        super().settle()
        self.ranks.average(
            [
                vars(layer)[name]
                for layer in (self.model, *self.model.submodules)
                for name in getattr(layer, "averaged_on_ranks", ())
                if name in vars(layer)  # a layer that was not called has no statistics
            ]
        )
        self.ranks.compare(
            "weights",
            "they diverged. Causes are a callback that sets a different value on each rank, code "
            "in the step whose result differs, such as NumPy's random numbers, and a layer that "
            "assigns a statistic of the rank's own examples to a weight that averaged_on_ranks "
            "does not name. No checkpoint was written",
            [variable.array for variable in self.held()],
        )

    # -- steps ---------------------------------------------------------------------------------

    def train(self, batch: tuple[Any, ...]) -> dict[str, float]:
        """Run one training step with the other ranks."""
        try:
            return super().train(batch)
        except FloatingPointError as error:
            where, _, told = str(error).partition(": ")
            if where != "data_parallel":
                raise
            told = told.replace("The optimizer has taken no step", whats_not_finite(batch))
            raise FloatingPointError(
                f"fit: {told}The model is restored to the beginning of this epoch"
            ) from None

    def _run(self, step: BatchStep, batch: tuple[Any, ...]) -> Values:
        step.layout, step.size = self.layout, self.layout.total
        with self.ranks.working_on(self.layout):
            return super()._run(step, batch)

    def _train(
        self, x: Any, y: Any = None, weight: Any = None, look: FirstBatchChecks | None = None
    ) -> Values:
        reduction = Reduction()
        token = reducing.set(reduction)
        try:
            with GradientTape() as tape:
                parts, total, losses = self._forward(x, y, weight, True, look)
                scaled = self.optimizer.scale_loss(total)
            reduction.weight = self._weight()
            values, told = self._batch_values(parts, total, losses, look)
            reduction.companions = list(told.values())
            if active_graph.get() is None:
                self._fetch()  # while the device computes: the next line waits for it
            self._update(tape.gradient(scaled, self.variables))
        finally:
            reducing.reset(token)
        self._agree_on_trace()
        return _averaged(values, {name: reduction.mean_of(x) for name, x in told.items()})

    def _agree_on_trace(self) -> None:
        """Raise on all ranks if they trace different steps, before any waits in vain."""
        graph = active_graph.get()
        if graph is None or "trace" in self._compared:
            return
        self._compared.add("trace")
        agree_on_graph(self.ranks.group, graph)

    def _test(
        self, x: Any, y: Any = None, weight: Any = None, look: FirstBatchChecks | None = None
    ) -> Values:
        values, told = self._batch_values(*self._forward(x, y, weight, False, look), look)
        reduction = Reduction(self._weight())
        found = reduction.averages([reduction.weigh(part) for part in told.values()])
        return _averaged(values, dict(zip(told, found, strict=True)))

    def _batch_values(
        self,
        parts: tuple[Any, Any, Any],
        total: Tensor,
        losses: tuple[dict[str, Tensor], dict[str, Tensor]],
        look: FirstBatchChecks | None,
    ) -> tuple[Values, dict[str, Tensor]]:
        """Return a batch's values, and the scalars that cover only this rank's examples."""
        metrics = chain(*(head.metrics.values() for head in self.objective.heads))
        apart = self._apart and all(map(_is_mean, metrics))
        if self._apart and not apart:
            parts = self._whole(*parts)
        means, counts = losses
        values = self._measured(parts, total, ({}, counts), look)
        told = {"": total, **(means if self._apart else {})}
        if apart:
            told |= {name: _number(x) for name, x in values.means.items()}
        return values._replace(means={**means, **values.means}), told

    def _weight(self) -> Any:
        """Return the weight of this rank's losses: its share if they cover its own examples."""
        layout = self.layout
        mine = layout.counts[layout.rank] if self._apart else 1
        if isinstance(self.optimizer, LossScaleOptimizer):
            # so that gradients are as large as in a single process, and overflow like them
            return _weight(mine / (sum(layout.counts) if self._apart else len(layout.counts)))
        return 1.0 if layout.even or not self._apart else _weight(mine / max(layout.counts))

    # -- whole batches -------------------------------------------------------------------------

    def _loss_inputs(self, y: Any, predicted: Any, weight: Any) -> tuple[Any, Any, Any]:
        self.objective.observe(y)
        masked = any(mask_of(leaf) is not None for leaf in flatten(predicted))
        heads = self.objective.heads
        self._apart = not masked and all(_is_mean(head.loss) for head in heads)
        return (y, predicted, weight) if self._apart else self._whole(y, predicted, weight)

    def _added(self) -> list[Any]:
        added = super()._added()
        if self._apart or not added:
            return added
        # from means over this rank's examples to means over all
        layout = self.layout
        weight = layout.counts[layout.rank] / max(layout.counts)
        reduction = Reduction(1.0 if layout.even else _weight(weight))
        return reduction.averages([reduction.weigh(as_tensor(x)) for x in added])

    def _whole(self, y: Any, predicted: Any, weight: Any) -> tuple[Any, Any, Any]:
        """Return labels, predictions and weights of all ranks."""
        found = []
        for part in (y, predicted, weight):
            leaves = [] if part is None else flatten(part)
            found.append(None if part is None else pack_like(part, [self._rows(x) for x in leaves]))
        return found[0], found[1], found[2]

    def _rows(self, x: Any) -> Any:
        """Return a tensor with the rows of all ranks."""
        if self.layout.repeated or x is None:
            return x
        counts, most = self.layout.counts, max(self.layout.counts)
        mine = counts[self.layout.rank]
        padded = x
        if not self.layout.even:  # padded with its last row, which is removed below
            places = np.minimum(np.arange(most), mine - 1)
            padded = ops["take"](x, as_tensor(places), axis=0)
        rows = [np.arange(n) + rank * most for rank, n in enumerate(counts)]
        gathered = ops["rows_of_ranks"](padded)
        found = ops["take"](gathered, as_tensor(np.concatenate(rows)), axis=0)
        mask = mask_of(x)
        if mask is not None:
            keep_mask(found, self._rows(as_tensor(mask)))
        return found


def _is_mean(measure: Any) -> bool:
    """Return whether the value of a loss or a metric is a mean over the batch's examples."""
    if isinstance(measure, Loss):
        settings = getattr(measure, "settings", {})
        if measure.reduction == "sum" or settings.get("ignore_class") is not None:
            return False
        function = getattr(type(measure), "function", None)
        return bool(stated(type(measure), "by_example")) and _is_mean(function)
    if isinstance(measure, partial):
        return not measure.args and not measure.keywords and _is_mean(measure.func)
    # the function of a metric, such as that of a binary accuracy
    of = getattr(measure, "__self__", None)
    known = stated(measure, "by_example") or stated(type(of), "by_example")
    return measure is None or bool(known)


def _weight(share: float) -> Tensor:
    """Return a weight as a tensor, even if it is 1, so that all ranks trace the same ops."""
    return as_tensor(np.float64(share))


def _number(values: Tensor) -> Tensor:
    """Return the mean of values as a floating scalar tensor."""
    return ops["mean"](values if values.dtype.kind == "f" else values.astype("float32"))


def _averaged(values: Values, found: dict[str, Tensor]) -> Values:
    """Return a batch's values with the means of the whole batch; the loss has an empty name."""
    loss = found.pop("")
    return values._replace(loss=loss, means={**values.means, **found})


# -- one program over the whole batch -------------------------------------------------------------


class WholeTrainer(ParallelTrainer):
    """A trainer on the devices of an engine.

    Parameters
    ----------
    ranks
        The processes.
    given, options
        As for :class:`Trainer`.
    """

    # the steps and their losses are those of a single process
    _train, _test = Trainer._train, Trainer._test
    _loss_inputs, _added = Trainer._loss_inputs, Trainer._added

    def __init__(self, ranks: WholeRanks, *given: Any, **options: Any) -> None:
        super().__init__(ranks, *given, **options)
        if self.method == "fit" and self.training.mode is False:
            raise ValueError(
                f"{self.method}: the engine {ranks.group.engine!r} always compiles steps for all "
                "its devices; leave compile=False out"
            )
        self.training = WholeStep(self, self._train, "training")
        self.testing = WholeStep(self, self._test, "validation")

    def ahead(self, batches: Iterable[Any], early: bool) -> Iterator[Any]:
        """Yield batches unchanged: the engine moves them to its devices."""
        for batch in batches:
            part = batch if isinstance(batch, RankPart) else self._cut(batch)
            self.layout = part.layout
            yield part.batch

    def here(self, part: Any) -> Any:
        """Return tensors on the device of the model's variables."""
        (found,) = Trainer.ahead(self, [part], early=False)
        return found

    def call(self, x: Any, training: bool) -> Any:
        """Return the model's predictions."""
        return super().call(self.here(x) if active_graph.get() is None else x, training)

    def forget(self) -> None:
        """Forget the loss of a step that was undone."""
        self._number = None

    def _run(self, step: BatchStep, batch: tuple[Any, ...]) -> Values:
        token = stop_request.set(self.ranks.stop_request)
        try:
            return Trainer._run(self, step, batch)
        finally:
            stop_request.reset(token)


class WholeStep(BatchStep):
    """A step of training or evaluation, as one program over the batch of all processes.

    Parameters
    ----------
    trainer
        The trainer of the step.
    step, what
        As for :class:`BatchStep`.
    """

    def __init__(self, trainer: WholeTrainer, step: Any, what: str) -> None:
        super().__init__(step, True, what, trainer._held, trainer._attributes)
        self._trainer = trainer
        self._whole: Any = None

    def __call__(self, batch: tuple[Any, ...], look: Any = None) -> Any:
        """Run the step on a batch, from this process's part."""
        if look is not None:
            self._look(batch, look)
        if self._whole is None:
            self._traced_with = self._attributes()
            found = self._trainer.ranks.group.communicator
            # processes were compared, and variables copied to all, before the first step
            self._whole = found.parallel(self._named(), {})
        layout = self._trainer.layout
        if not layout.repeated and not layout.even:
            batch = map_structure(lambda x: Tensor(_of_all(x, layout)), batch)
            return self._whole.run(batch, {}, whole=True)
        return self._whole.run(batch, {}, whole=layout.repeated)

    def _named(self) -> Any:
        def step(*batch: Any) -> Any:
            return self.step(*batch)

        step.__name__ = f"the {self.what} step"
        return step

    def _look(self, batch: tuple[Any, ...], look: Any) -> None:
        """Run the step in Python on this process's rows, to inspect values, and undo it."""
        before = self._attributes()
        held = {v: v.array for v in (*self._variables(), shared().state)}
        layout = self._trainer.layout
        if layout.repeated and layout.total >= len(layout.counts):
            own = slice(layout.rank, None, len(layout.counts))
            batch = map_structure(lambda x: Tensor(x.array[own, ...]), batch)
        try:
            self.step(*self._trainer.here(batch), look=look)
        finally:
            for variable, array in held.items():
                variable.set_array(array)
            self._trainer.forget()
        changed = differing(before, self._attributes())
        if changed:
            raise TraceError(
                f"the {self.what} step cannot be compiled: it changes {changed}, which a compiled "
                "program would do only once"
            )

    def revise(self) -> None:
        """Forget the program if Python attributes that it was traced with have changed."""
        if self._whole is not None and differing(self._traced_with, self._attributes()):
            self._whole = None


def _of_all(x: Any, layout: BatchLayout) -> Any:
    """Return the rows of all processes, whose numbers of rows differ."""
    most = max(layout.counts)
    own = np.ascontiguousarray(to_numpy(x.array))
    padded = np.concatenate([own, np.repeat(own[-1:], most - len(own), axis=0)])
    found = communicator().all_gather(padded)
    return np.concatenate([rows[:n] for rows, n in zip(found, layout.counts, strict=True)])
