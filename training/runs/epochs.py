"""The loop over epochs, with progress, callbacks and Ctrl-C."""

from __future__ import annotations

from collections.abc import Collection

from ..data import Batches, Examples, first_batches
from ..interrupt import DeferredInterrupt
from .progress import Progress
from .resuming import Run
from .session import History

__all__ = ["run_epochs"]


def run_epochs(
    run: Run,
    held_out: Examples | Batches | None,
    verbose: int,
    validation_freq: int | Collection[int] = 1,
    validation_steps: int | None = None,
) -> History:
    """Train for some epochs, and return the history.

    Parameters
    ----------
    run
        The run: its session, its data and its progress.
    held_out
        The validation data, or None.
    verbose
        What to show, as for :class:`Progress`.
    validation_freq
        The number of epochs between validations, or the epochs with one, counted from 1.
    validation_steps
        The number of batches of a validation; None for all.

    Raises
    ------
    ValueError
        If an epoch has no batches.

    Notes
    -----
    After Ctrl-C the run ends with the current batch, and the history does not include that epoch.
    """
    session, tell = run.session, run.listeners.tell
    run.attach()
    tell("on_train_begin")
    run.begin()
    with run.ranks.interrupt() as interrupt:
        while run.epoch < run.epochs and not run.stopped:
            tell("on_epoch_begin", run.epoch)
            session.begin_epoch()
            run.begin_epoch()
            held = held_out if _is_due(run.epoch + 1, validation_freq) else None
            with Progress(run.epoch, run.epochs, run.length, run.batch, verbose) as shown:
                try:
                    logs = _epoch(run, interrupt, shown)
                    session.settle()
                    if held is not None and not interrupt.requested:
                        run.seed(held, run.epoch)
                        tell("on_test_begin")
                        batches = run.listeners.around(first_batches(held, validation_steps))
                        values = session.evaluate(batches, lambda: interrupt.requested)
                        tell("on_test_end", {f"val_{name}": x for name, x in values.items()})
                        logs |= {f"val_{name}": value for name, value in values.items()}
                    interrupt.settle()
                    if interrupt.requested:
                        run.interrupt()
                except BaseException as error:
                    session.restore()
                    if not run.ends_quietly(error):
                        raise
                    break
                shown.end(logs)
            if interrupt.requested or run.end_epoch(logs):
                break
            interrupt.settle()
            if interrupt.requested:
                break
    run.history.interrupted = interrupt.requested
    if not interrupt.requested:  # otherwise the run may be resumed from here
        session.finish()
    tell("on_train_end")
    return run.history


def _epoch(run: Run, interrupt: DeferredInterrupt, shown: Progress) -> dict[str, float]:
    """Do the remaining steps of an epoch, or those until Ctrl-C; return its values."""
    batches = run.session.ahead(run.batches(), run.data.early)
    for i, batch in enumerate(batches, run.batch):
        run.listeners.tell("on_train_batch_begin", i)
        run.trained(run.session.train(batch))
        shown.batch(run.logs)
        stopped = run.told_to_stop()
        if interrupt.requested or stopped:
            break
        run.save_within()
    if not run.logs:
        raise ValueError("fit: data has no batches, or a training step returned no values")
    return dict(run.logs)


def _is_due(epoch: int, often: int | Collection[int]) -> bool:
    return epoch % often == 0 if isinstance(often, int) else epoch in often
