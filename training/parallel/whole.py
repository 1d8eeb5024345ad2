"""``WholeTrainer``: a trainer whose steps the engine runs as one program over the whole batch.

The step is that of a single process, unchanged, and covers all examples. The first step moves
variables to the devices of the engine, where they stay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ...core.errors import TraceError
from ...core.extend import (
    Tensor,
    active_graph,
    communicator,
    map_structure,
    to_numpy,
    wish,
)
from ...plugins.ops.random.functions import shared
from ..ranks import Layout, Part
from ..steps.constants import differing
from ..steps.step import Step
from ..steps.sums import Values
from ..steps.trainer import Trainer
from .together import WholeRanks
from .trainer import ParallelTrainer

__all__ = ["WholeTrainer"]


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
    _held_against, _added = Trainer._held_against, Trainer._added

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
            part = batch if isinstance(batch, Part) else self._cut(batch)
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

    def _run(self, step: Step, batch: tuple[Any, ...]) -> Values:
        token = wish.set(self.ranks.wish)
        try:
            return Trainer._run(self, step, batch)
        finally:
            wish.reset(token)


class WholeStep(Step):
    """A step of training or evaluation, as one program over the batch of all processes.

    Parameters
    ----------
    trainer
        The trainer of the step.
    step, what
        As for :class:`Step`.
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


def _of_all(x: Any, layout: Layout) -> Any:
    """Return the rows of all processes, whose numbers of rows differ."""
    most = max(layout.counts)
    own = np.ascontiguousarray(to_numpy(x.array))
    padded = np.concatenate([own, np.repeat(own[-1:], most - len(own), axis=0)])
    found = communicator().all_gather(padded)
    return np.concatenate([rows[:n] for rows, n in zip(found, layout.counts, strict=True)])
