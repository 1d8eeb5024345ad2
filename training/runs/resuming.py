"""``Run``: the progress of a training run, and how to resume it from a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, pairwise
from typing import Any

import numpy as np

from ...core.extend import services, warn_of_hidden
from ...layers import initializers
from ...plugins.ops.random.functions import shared
from ..callbacks import TerminateOnNaN
from ..callbacks.callback import number_of
from ..checks import warn_of_shuffled
from ..data import Batches, Examples
from ..names import as_count
from ..ranks import ALONE, SingleRank
from .session import Callbacks, History, Session

__all__ = ["Run", "as_epochs"]

#: The entries of a run's state, and their types.
_KINDS = {
    "epoch": int,
    "batch": int,
    "logs": dict,
    "stopped": bool,
    "data": list,
    "epochs": list,
    "history": dict,
    "session": dict,
    "callbacks": list,
}
#: An upper limit for the numbers of epochs and batches in a file.
_MOST = 2**48


class Run:
    """The progress of a training run, which a checkpoint keeps besides model and optimizer.

    Parameters
    ----------
    session
        The session that trains.
    data
        The training data.
    callbacks
        The callbacks; checkpoints keep the state of those that are objects.
    epochs
        The number of epochs, including those before ``initial_epoch``.
    initial_epoch
        The number of the first epoch.
    shuffle, seed
        Whether each epoch has its own random order, and the seed for it.
    checkpoint
        The checkpoint: a manager or a path, or None.
    save_every
        The number of batches after which to save within an epoch; None to save only at its end.
    resume
        Whether to continue from the checkpoint if there is one.
    steps_per_epoch
        The number of batches of an epoch; None for one pass through the data.
    ranks
        The ranks that take part.

    Attributes
    ----------
    epoch, batch : int
        The next epoch and batch.
    logs : dict of str to float
        The values of the epoch so far.
    stopped : bool
        Whether a callback ended the run.
    history : History
        The finished epochs.

    Raises
    ------
    ValueError
        If the arguments contradict each other.
    """

    def __init__(
        self,
        session: Session,
        data: Examples | Batches,
        callbacks: Iterable[Any],
        *,
        epochs: int,
        initial_epoch: int = 0,
        shuffle: bool = True,
        seed: int | None = None,
        checkpoint: Any = None,
        save_every: Any = None,
        resume: bool = False,
        steps_per_epoch: Any = None,
        ranks: SingleRank = ALONE,
    ) -> None:
        self.session, self.data, self.ranks = session, data, ranks
        self.listeners = Callbacks(callbacks, stored=checkpoint is not None)
        self.epochs, self.epoch, self.batch = epochs, initial_epoch, 0
        self.logs: dict[str, float] = {}
        self.stopped = False
        self.history = History()
        self.measured: list[str] | None = None
        self._listened: bool | None = None
        self._quiet = next(
            (x for x in self.listeners.objects() if isinstance(x, TerminateOnNaN)), None
        )
        self._asked = seed
        drawn = ranks.same(_seed(seed))  # once, so that dropout is the same with ranks and alone
        self._seed = drawn if shuffle else None
        # pipelines have the same order on all ranks, with or without a seed
        self._together = None if ranks is ALONE else drawn
        self._source: Any = None
        self._stream: Iterator[Any] | None = None
        self.steps_per_epoch = _as_count("steps_per_epoch", steps_per_epoch)
        self._check_data(shuffle)
        self._every = _as_count("save_every", save_every)
        self._keeper = self._opened(checkpoint, resume)
        self._found = self._keeper.find() if resume else None
        self._plan: Any = None

    def _check_data(self, shuffle: bool) -> None:
        """Raise if an epoch would never end; warn if examples are shuffled that should not be."""
        if self.data.endless and self.steps_per_epoch is None:
            raise ValueError(
                f"fit: {self.data.what} never ends (repeat()); give steps_per_epoch=, or leave "
                "repeat() out, so that each epoch is one pass through the data"
            )
        if shuffle and isinstance(self.data, Examples):
            warn_of_shuffled(getattr(self.session, "model", None))

    def _opened(self, checkpoint: Any, resume: bool) -> Any:
        """Return the object that keeps checkpoints; None without one."""
        keeps = resume or self._every is not None
        if checkpoint is None and keeps:
            raise ValueError(
                f"fit: {'resume' if resume else 'save_every'} needs a checkpoint: "
                "checkpoint=PATH, or a gradtape.training.CheckpointManager"
            )
        if not self.data.rewinds and keeps:
            raise ValueError(
                f"fit: {self.data.what} is an iterator, which cannot be rewound to where a run "
                "stopped; to resume, give arrays, a list, or an object whose __iter__ starts again"
            )
        if checkpoint is None:
            return None
        kept = {**self.session.trackables(), "fit": self}
        return self.ranks.keeper(services["saving.Keeper"](checkpoint, kept), self.session)

    def check_best(self, names: Iterable[str]) -> None:
        """Raise if no epoch will measure the value for a manager's best checkpoint.

        Raises
        ------
        ValueError
            The message lists what is measured.
        """
        best, measured = self._keeper and self._keeper.best, list(names)
        if best and best not in measured:
            raise ValueError(
                f"fit: the checkpoint manager's best={best!r} is not measured; measured are "
                f"{', '.join(measured)}"
            )

    def attach(self) -> None:
        """Pass the model, the optimizer, the settings and the names of values to the callbacks."""
        self.listeners.attach(self.session, self.measured, self.history.params)

    def ends_quietly(self, error: BaseException) -> bool:
        """Return whether a non-finite loss ends the run without an error, as a callback asks."""
        if not isinstance(error, FloatingPointError) or self._quiet is None:
            return False
        self._quiet.report(self.batch, error)
        return not self._quiet.raise_error

    # -- the run -------------------------------------------------------------------------------

    def begin(self) -> None:
        """Begin the run, from the checkpoint if there is one to resume."""
        warn_of_hidden(self.session.model, "fit")
        if self._found is not None:
            for batch in self.data.batches():
                self.session.prepare(batch)  # creates all variables that the file holds
                break
            self._plan = self._keeper.plan(self._found)
            self._plan.apply()
        if self._keeper is not None:
            self._keeper.check()  # not only when an epoch has been trained

    @property
    def length(self) -> int | None:
        """The number of batches of an epoch; None if it is unknown."""
        return self.data.length if self.steps_per_epoch is None else self.steps_per_epoch

    def begin_epoch(self) -> None:
        """Begin an epoch, or continue within it."""
        if not self.batch:
            if self.steps_per_epoch is None:
                self._source = self.data.state()
            if self._asked is not None:
                drawn = np.random.SeedSequence([int(self._asked), self.epoch])
                shared().set_seed(int(drawn.generate_state(1, np.uint64)[0] >> np.uint64(1)))
        elif self._plan is not None:
            self._plan.apply()  # again: session and callbacks have just begun the epoch afresh
        self._plan = None

    def batches(self) -> Iterator[Any]:
        """Yield the batches of the epoch that have not been trained on."""
        if self.steps_per_epoch is None:
            return self._pass(self.epoch, self.batch)
        if self._stream is None:
            self._stream = self._passes(self.epoch * self.steps_per_epoch + self.batch)
        return islice(self._stream, self.steps_per_epoch - self.batch)

    def seed(self, data: Examples | Batches, number: int) -> None:
        """Seed a pass through data from the run's seed, if there is one."""
        seed = self._asked if self._together is None else self._together
        if seed is not None:
            data.seed_pass(int(seed), number)

    def _pass(self, number: int, first: int) -> Iterator[Any]:
        """Yield the batches of a pass, without those that have been trained on."""
        self.seed(self.data, number)
        if not first or isinstance(self.data, Examples):
            yield from self.data.batches(self._order(number), first)
            return
        random: Any = np.array(shared().state.numpy())
        batches = self.data.batches()
        for _ in islice(batches, first):
            pass
        shared().state = random  # undo what the data drew while batches were skipped
        yield from batches

    def _order(self, number: int) -> np.random.Generator | None:
        return None if self._seed is None else np.random.default_rng([self._seed, number])

    def _passes(self, done: int) -> Iterator[Any]:
        """Yield the batches of one pass after another, without the first ``done`` batches."""
        number, length = 0, self.data.length
        random: Any = np.array(shared().state.numpy())
        if not self.data.rewinds:
            done = 0  # an iterator does not return them again
        elif length is not None:
            number, done = divmod(done, length)
        while True:
            came = 0
            if length or not number:
                self._source = self.data.state()
            for batch in self._pass(number, done if length else 0):
                came += 1
                if length or came > done:
                    yield batch
                elif came == done:
                    shared().state = random  # undo what the data drew while batches were skipped
            if not self.data.rewinds or not (came or done):
                raise ValueError(
                    f"fit: {self.data.what} ran out of batches in epoch {self.epoch + 1}; "
                    f"steps_per_epoch={self.steps_per_epoch} needs that many batches for each epoch"
                )
            number, done = number + 1, 0 if length else max(done - came, 0)

    def trained(self, logs: dict[str, float]) -> None:
        """Note a completed batch, before callbacks are called."""
        self.batch += 1
        self.logs = logs

    def is_stop_requested(self) -> bool:
        """Call callbacks after a batch; return whether one of them, on any rank, asks to stop."""
        stopped = self.listeners.notify("on_train_batch_end", self.batch - 1, self.logs)
        if self._listened is None:  # on any rank: all take part, or none
            listened = bool(self.listeners.by_event["on_train_batch_end"])
            self._listened = self.ranks.any(listened)
        return self.ranks.any(stopped) if self._listened else stopped

    def save_within(self) -> None:
        """Save within an epoch, if ``save_every`` batches are done."""
        if self._every is not None and self.batch % self._every == 0:
            self._keeper.save()

    def end_epoch(self, logs: dict[str, float]) -> bool:
        """Call callbacks at the end of an epoch, and save; return whether to end the run."""
        epoch = self.epoch
        self.epoch, self.batch, self.logs = epoch + 1, 0, {}
        self.stopped = self.ranks.any(self.listeners.notify("on_epoch_end", epoch, logs))
        self.history.append(epoch, _numbers(logs))
        if self._keeper is not None:
            if self.steps_per_epoch is None:
                self._source = self.data.state()
            self._keeper.save(logs)
        return self.stopped

    def interrupt(self) -> None:
        """Save within an interrupted epoch, if the run can be resumed there."""
        if self._keeper is not None and self.data.rewinds:
            self._keeper.save()

    # -- the state -----------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the run."""
        source, length = self._source, self.data.length
        done = self.epoch * (self.steps_per_epoch or 0) + self.batch
        if self.steps_per_epoch is not None and length and done % length == 0:
            source = self.data.state()  # that of the next pass
        return {
            "epoch": self.epoch,
            "batch": self.batch,
            "logs": _numbers(self.logs),
            "stopped": self.stopped,
            "seed": None if self._seed is None else str(self._seed),
            "data": self.data.signature(),
            "source": source,
            "epochs": self.history.epoch,
            "history": self.history.history,
            "epochs_of": self.history.epochs_of,
            "session": self.session.state(),
            "random": shared().state.numpy(),
            "callbacks": self.listeners.states(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a run.

        Raises
        ------
        ValueError
            If the run had other data or another order, or this is not the state of a run.
        """
        wrong = _wrong(state)
        if wrong:
            raise ValueError(f"this is not the state of a run: invalid {', '.join(wrong)}")
        seed = None if state["seed"] is None else int(state["seed"])
        within = state["batch"] > 0
        if within and list(state["data"]) != self.data.signature():
            raise ValueError(
                "the run stopped within an epoch, with other data or another batch size: "
                f"[examples, batch size, batches] {state['data']}, now {self.data.signature()}"
            )
        length = self.data.length
        length = length if self.steps_per_epoch is None else self.steps_per_epoch
        if within and length is not None and state["batch"] > length:
            raise ValueError(f"the run stopped after batch {state['batch']} of {length}")
        if self._asked is not None and self._seed is not None and seed not in (None, self._seed):
            raise ValueError(
                f"the run had seed {seed}, not {self._seed}; give the same seed, or none"
            )
        if within and (seed is None) != (self._seed is None):
            raise ValueError("the run stopped within an epoch: give the same shuffle= as before")
        if seed is not None and self._seed is not None:
            self._seed = seed
        self.epoch, self.batch = state["epoch"], state["batch"]
        self.logs = {name: float(value) for name, value in state["logs"].items()}
        self.stopped = state["stopped"]
        self.history.epoch = [int(epoch) for epoch in state["epochs"]]
        self.history.history = {
            name: [float(value) for value in values] for name, values in state["history"].items()
        }
        self.history.epochs_of = {
            name: [int(epoch) for epoch in epochs] for name, epochs in _epochs_of(state).items()
        }
        if state["source"] is not None:
            self.data.load(state["source"])
        self._source = state["source"]
        self.session.load(state["session"])
        shared().state = state["random"]
        self.listeners.load(state["callbacks"])


def _numbers(logs: dict[str, Any]) -> dict[str, float]:
    """Return the values that are numbers: callbacks may add others."""
    found = {name: number_of(value) for name, value in logs.items()}
    return {name: number for name, number in found.items() if number is not None}


def as_epochs(epochs: Any, initial_epoch: Any) -> tuple[int, int]:
    """Return the number of epochs, and the number of the first one, as Python integers.

    Raises
    ------
    ValueError
        If they are not non-negative integers, or the first epoch comes after the last.
    """
    last = as_count("fit: epochs", epochs, least=0)
    first = as_count("fit: initial_epoch", initial_epoch, least=0)
    if first > last:
        raise ValueError(
            f"fit: initial_epoch={first} is after the last epoch; epochs={last} includes the "
            "epochs before initial_epoch"
        )
    return last, first


def _wrong(state: dict[str, Any]) -> list[str]:
    """Return the names of entries that do not have the form of :meth:`Run.state_dict`."""
    found = [name for name, kind in _KINDS.items() if type(state.get(name)) is not kind]
    if found:
        return found
    seed, epochs, history = state["seed"], state["epochs"], state["history"]
    if seed is not None and not (type(seed) is str and seed.isascii() and seed.isdecimal()):
        found.append("seed")
    if any(type(epoch) is not int for epoch in epochs) or not _rise([-1, *epochs]):
        found.append("epochs")
    elif not 0 <= state["epoch"] < _MOST or (epochs and state["epoch"] != epochs[-1] + 1):
        found.append("epoch")
    if not 0 <= state["batch"] < _MOST:
        found.append("batch")
    if any(type(x) is not list or len(x) > len(epochs) for x in history.values()):
        found.append("history")
    elif any(len(history.get(name, ())) != len(x) for name, x in _epochs_of(state).items()):
        found.append("epochs_of")
    return found


def _epochs_of(state: dict[str, Any]) -> dict[str, list[int]]:
    """Return the epochs in which each value was measured; in files without them, the last ones."""
    known: dict[str, list[int]] = state.get("epochs_of", {})
    epochs = state["epochs"]
    return known or {name: epochs[len(epochs) - len(x) :] for name, x in state["history"].items()}


def _rise(numbers: list[int]) -> bool:
    return all(a < b for a, b in pairwise(numbers))


def _as_count(option: str, value: Any) -> int | None:
    return None if value is None else as_count(f"fit: {option}", value, 1)


def _seed(seed: int | None) -> int:
    # drawn like that of a layer, so that gt.random.set_seed repeats the run
    return initializers.draw_seed() if seed is None else int(seed)
