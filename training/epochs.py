"""The loop over epochs: progress, callbacks, Ctrl-C and what a run measured."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from .data import Batches, Examples
from .interrupt import DeferredInterrupt

__all__ = ["Callbacks", "History", "Session", "run_epochs"]

_EVENTS = ("on_train_begin", "on_epoch_begin", "on_train_batch_end", "on_epoch_end", "on_train_end")


class Session:
    """What is trained, a batch at a time: base class."""

    def begin_epoch(self) -> None:
        """Begin an epoch, before its first batch."""

    def train(self, batch: Any) -> dict[str, float]:
        """Train on a batch; return the values of the epoch so far."""
        raise NotImplementedError

    def evaluate(
        self, batches: Iterable[Any], stop: Callable[[], bool] = lambda: False
    ) -> dict[str, float]:
        """Return the values of these batches at inference; early if ``stop()``."""
        raise NotImplementedError

    def restore(self) -> None:
        """Go back to where the epoch began, as far as that is known: an exception ended it."""


class History:
    """What a training run measured.

    Attributes
    ----------
    history : dict of str to list of float
        One value per finished epoch for ``"loss"``, each metric, and with validation data for each
        of these with ``"val_"`` before it.
    epoch : list of int
        The finished epochs, from 0.
    interrupted : bool
        Whether Ctrl-C ended the run.

    Examples
    --------
    >>> history = gt.training.History()
    >>> history.append(0, {"loss": 0.5})
    >>> history.history
    {'loss': [0.5]}
    """

    def __init__(self) -> None:
        self.history: dict[str, list[float]] = {}
        self.epoch: list[int] = []
        self.interrupted = False

    def append(self, epoch: int, logs: dict[str, float]) -> None:
        """Add the values of an epoch."""
        self.epoch.append(epoch)
        for name, value in logs.items():
            self.history.setdefault(name, []).append(value)

    def __repr__(self) -> str:
        last = ", ".join(f"{name}={values[-1]:.4g}" for name, values in self.history.items())
        stopped = ", interrupted" if self.interrupted else ""
        return f"<History of {len(self.epoch)} epochs{stopped}{': ' if last else ''}{last}>"


class Callbacks:
    """Callbacks by the event that they listen to.

    Parameters
    ----------
    callbacks
        Functions of an epoch and its values, or objects with methods named for events.

    Raises
    ------
    TypeError
        If something is neither.
    """

    def __init__(self, callbacks: Iterable[Any]) -> None:
        self.by_event: dict[str, list[Callable[..., Any]]] = {event: [] for event in _EVENTS}
        for callback in callbacks:
            methods = {event: getattr(callback, event, None) for event in _EVENTS}
            if not any(methods.values()):
                if not callable(callback):
                    raise TypeError(
                        f"fit: a callback is a function or has one of the methods {_EVENTS}, "
                        f"got {callback!r}"
                    )
                methods["on_epoch_end"] = callback
            for event, method in methods.items():
                if method is not None:
                    self.by_event[event].append(method)

    def tell(self, event: str, *arguments: Any) -> bool:
        """Call those who listen; return whether one of them returned ``True``."""
        answers = [listener(*arguments) for listener in self.by_event[event]]  # all are told
        return any(answer is True for answer in answers)


def run_epochs(
    session: Session,
    data: Examples | Batches,
    held_out: Examples | Batches | None,
    *,
    epochs: int,
    generator: np.random.Generator | None,
    verbose: bool,
    callbacks: Iterable[Any],
) -> History:
    """Train for some epochs, and return what was measured.

    Parameters
    ----------
    session
        What is trained.
    data, held_out
        What to train on, and what to evaluate on after each epoch.
    epochs
        How often to go through the data.
    generator
        What draws the order of examples; ``None`` keeps theirs.
    verbose
        Whether to show a progress bar.
    callbacks
        As for :func:`gradtape.training.fit`.

    Raises
    ------
    ValueError
        If an epoch has no batches.

    Notes
    -----
    After Ctrl-C the run ends with the batch, and its epoch is not in the history.
    """
    listeners, run = Callbacks(callbacks), History()
    listeners.tell("on_train_begin")
    with DeferredInterrupt() as interrupt:
        for epoch in range(epochs):
            listeners.tell("on_epoch_begin", epoch)
            session.begin_epoch()
            with _progress(data.length, f"epoch {epoch + 1}/{epochs}", verbose) as bar:
                try:
                    logs = _epoch(session, data.batches(generator), interrupt, listeners, bar)
                    if held_out is not None and not interrupt.requested:
                        values = session.evaluate(held_out.batches(), lambda: interrupt.requested)
                        logs |= {f"val_{name}": value for name, value in values.items()}
                except BaseException:
                    session.restore()
                    raise
                bar.set_postfix_str(_line(logs))
            if interrupt.requested:
                break
            run.append(epoch, logs)
            if listeners.tell("on_epoch_end", epoch, logs) or interrupt.requested:
                break
    run.interrupted = interrupt.requested
    listeners.tell("on_train_end")
    return run


def _epoch(
    session: Session,
    batches: Iterable[Any],
    interrupt: DeferredInterrupt,
    listeners: Callbacks,
    bar: Any,
) -> dict[str, float]:
    """Do the steps of one epoch, or those until Ctrl-C; return its values."""
    logs: dict[str, float] = {}
    for i, batch in enumerate(batches):
        logs = session.train(batch)
        bar.postfix = _line(logs)
        bar.update()
        listeners.tell("on_train_batch_end", i, logs)
        if interrupt.requested:
            break
    if not logs:
        raise ValueError("fit: data has no batches, or a training step returned no values")
    return logs


def _progress(total: int | None, label: str, verbose: bool) -> Any:
    from tqdm.auto import tqdm  # takes as long to import as all of gradtape

    return tqdm(total=total, desc=label, unit="batch", disable=not verbose)


def _line(logs: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in logs.items())
