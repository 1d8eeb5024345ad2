"""The loop over epochs: progress, callbacks and Ctrl-C."""

from __future__ import annotations

from typing import Any

from .data import Batches, Examples
from .interrupt import DeferredInterrupt
from .resuming import Run
from .session import History

__all__ = ["run_epochs"]


def run_epochs(run: Run, held_out: Examples | Batches | None, verbose: bool) -> History:
    """Train for some epochs, and return what was measured.

    Parameters
    ----------
    run
        What is trained, on what, and where it is.
    held_out
        What to evaluate on after each epoch.
    verbose
        Whether to show a progress bar.

    Raises
    ------
    ValueError
        If an epoch has no batches.

    Notes
    -----
    After Ctrl-C the run ends with the batch, and its epoch is not in the history.
    """
    session, tell = run.session, run.listeners.tell
    tell("on_train_begin")
    run.begin()
    with DeferredInterrupt() as interrupt:
        while run.epoch < run.epochs and not run.stopped:
            label = f"epoch {run.epoch + 1}/{run.epochs}"
            tell("on_epoch_begin", run.epoch)
            session.begin_epoch()
            run.begin_epoch()
            with _progress(run, label, verbose) as bar:
                try:
                    logs = _epoch(run, interrupt, bar)
                    if held_out is not None and not interrupt.requested:
                        values = session.evaluate(held_out.batches(), lambda: interrupt.requested)
                        logs |= {f"val_{name}": value for name, value in values.items()}
                    if interrupt.requested:
                        run.interrupt()
                except BaseException:
                    session.restore()
                    raise
                bar.set_postfix_str(_line(logs))
            if interrupt.requested or run.end_epoch(logs) or interrupt.requested:
                break
    run.history.interrupted = interrupt.requested
    tell("on_train_end")
    return run.history


def _epoch(run: Run, interrupt: DeferredInterrupt, bar: Any) -> dict[str, float]:
    """Do the steps of one epoch that are left, or those until Ctrl-C; return its values."""
    batches = run.session.ahead(run.batches(), run.data.early)
    for i, batch in enumerate(batches, run.batch):
        run.trained(run.session.train(batch))
        bar.postfix = _line(run.logs)
        bar.update()
        run.listeners.tell("on_train_batch_end", i, run.logs)
        if interrupt.requested:
            break
        run.save_within()
    if not run.logs:
        raise ValueError("fit: data has no batches, or a training step returned no values")
    return dict(run.logs)


def _progress(run: Run, label: str, verbose: bool) -> Any:
    from tqdm.auto import tqdm  # takes as long to import as all of gradtape

    total, done = run.data.length, run.batch
    return tqdm(total=total, initial=done, desc=label, unit="batch", disable=not verbose)


def _line(logs: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in logs.items())
