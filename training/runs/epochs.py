"""The loop over epochs, with callbacks and Ctrl-C, and the progress that it shows."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Collection
from html import escape
from types import TracebackType
from typing import Any, Self

from ..callbacks.callback import number_of
from ..data import Batches, Examples, first_batches
from ..ranks import DeferredInterrupt
from .resuming import Run
from .session import History

__all__ = ["Progress", "line_of", "run_epochs"]


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
    session, notify = run.session, run.listeners.notify
    run.history.params |= {"verbose": verbose, "epochs": run.epochs, "steps": run.length}
    run.attach()
    notify("on_train_begin")
    run.begin()
    with run.ranks.interrupt() as interrupt:
        while run.epoch < run.epochs and not run.stopped:
            notify("on_epoch_begin", run.epoch)
            session.begin_epoch()
            run.begin_epoch()
            held = held_out if _is_due(run.epoch + 1, validation_freq) else None
            with Progress(run.epoch, run.epochs, run.length, run.batch, verbose) as shown:
                try:
                    logs = _epoch(run, interrupt, shown)
                    session.settle()
                    if held is not None and not interrupt.requested:
                        run.seed(held, run.epoch)
                        notify("on_test_begin")
                        batches = run.listeners.around(first_batches(held, validation_steps))
                        values = session.evaluate(batches, lambda: interrupt.requested)
                        notify("on_test_end", {f"val_{name}": x for name, x in values.items()})
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
    notify("on_train_end")
    return run.history


def _epoch(run: Run, interrupt: DeferredInterrupt, shown: Progress) -> dict[str, float]:
    """Do the remaining steps of an epoch, or those until Ctrl-C; return its values."""
    batches = run.session.ahead(run.batches(), run.data.early)
    for i, batch in enumerate(batches, run.batch):
        run.listeners.notify("on_train_batch_begin", i)
        run.trained(run.session.train(batch))
        shown.batch(run.logs)
        stopped = run.is_stop_requested()
        if interrupt.requested or stopped:
            break
        run.save_within()
    if not run.logs:
        raise ValueError("fit: data has no batches, or a training step returned no values")
    return dict(run.logs)


def _is_due(epoch: int, often: int | Collection[int]) -> bool:
    return epoch % often == 0 if isinstance(often, int) else epoch in often


# -- progress, on a terminal, in a log or in a notebook -------------------------------------------

#: Seconds between two updates of a line.
_PAUSE = 0.1
_GREEN, _DIM, _PLAIN = "\x1b[32m", "\x1b[2m", "\x1b[0m"
_BAR = 20


class Progress:
    """Shows one epoch; a context manager.

    Parameters
    ----------
    epoch, epochs
        The number of the epoch, counted from 0, and the number of epochs.
    total
        The number of batches, if it is known.
    done
        The number of batches that are done already.
    verbose
        0 for nothing, 1 for a line that is updated if possible, 2 for one at the end of the epoch.
    """

    def __init__(
        self, epoch: int, epochs: int, total: int | None, done: int = 0, verbose: int = 1
    ) -> None:
        self.label = f"epoch {epoch + 1:{len(str(epochs))}}/{epochs}"
        self.total, self.done, self._first = total, done, done
        self.stream = sys.stderr
        self.shows = bool(verbose)
        notebook = _notebook() if verbose == 1 else None
        self._place: Any = None
        if notebook is not None:
            self._html, self._place = (
                notebook.HTML,
                notebook.display(notebook.HTML(""), display_id=True),
            )
        self.moves = verbose == 1 and self._place is None and _is_terminal(self.stream)
        self._begun = self._shown = time.monotonic()
        self._logs: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and self.shows:  # keep the last line above the error
            self._write(self._picture(), last=True)

    def batch(self, logs: dict[str, float]) -> None:
        """Show a completed batch."""
        self.done += 1
        self._logs = logs
        if not self.moves and self._place is None:
            return
        now = time.monotonic()
        if now - self._shown >= _PAUSE:
            self._shown = now
            self._write(self._picture())

    def end(self, logs: dict[str, float]) -> None:
        """Show the values of the epoch."""
        if not self.shows:
            return
        took = time.monotonic() - self._begun
        self._write((f"{self.label}  {_time(took)}", logs, 1.0), last=True)

    def _picture(self) -> tuple[str, dict[str, float], float | None]:
        """Return the beginning of the line, the values, and the completed fraction."""
        done = self.done - self._first
        if self.total is None:
            return f"{self.label}  batch {self.done}", self._logs, None
        took = time.monotonic() - self._begun
        left = took / done * (self.total - self.done) if done else 0.0
        head = f"{self.label}  {self.done}/{self.total}  {_time(left)} left"
        return head, self._logs, self.done / max(self.total, 1)

    def _write(
        self, picture: tuple[str, dict[str, float], float | None], last: bool = False
    ) -> None:
        head, logs, part = picture
        if self._place is not None:
            self._place.update(self._html(_as_html(head, logs, part)))
            return
        if not self.moves:  # lines in a log may have any length
            text = line_of(head, logs, None)
        else:
            width = max(shutil.get_terminal_size((80, 24)).columns - 1, 20)
            if last and _length(head, logs) > width >= _length(self.label, logs):
                head = self.label  # digits are more useful than the time
            values = line_of("", logs, width - len(head) - (0 if last else _BAR + 2))
            bar = "" if last or part is None else f"  {_bar(part, self.stream)}"
            text = head + bar + values
            room = width - len(text)
            if room < 0:
                text = text[:width]
            elif _has_colours(self.stream):
                text = f"{_GREEN}{self.label}{_PLAIN}{_DIM}{head[len(self.label) :]}{_PLAIN}"
                text += bar + values
            text = f"\r{text}{' ' * room}"
        print(text, end="\n" if last or not self.moves else "", file=self.stream, flush=True)


def _length(head: str, logs: dict[str, float]) -> int:
    """Return the length of a line with three digits of each value."""
    return len(line_of(head, logs, None)) - len(logs)


def line_of(head: str, logs: dict[str, float], room: int | None) -> str:
    """Return a line of values in at most ``room`` characters; None for any length.

    Values that do not fit get fewer digits. If that is not enough, they are left out from the end,
    the losses last.
    """
    texts = [
        head + "".join(f"  {name} {_number(x, digits)}" for name, x in logs.items())
        for digits in (4, 3, 2)
    ]
    if room is None:
        return texts[0]
    for text in texts:
        if len(text) <= room:
            return text
    kept = dict(logs)
    ranked = sorted(logs, key=lambda name: name.removeprefix("val_") != "loss")
    for name in reversed(ranked[1:]):
        del kept[name]
        text = head + "".join(f"  {name} {_number(x, 3)}" for name, x in kept.items())
        if len(text) + 4 <= room:
            return f"{text} ..."
    return head


def _number(given: Any, digits: int) -> str:
    value = number_of(given)
    if value is None:
        return " ".join(str(given).split())
    size = abs(value)
    if size and (size < 10.0**-digits or size >= 1e5):
        return f"{value:.{digits - 1}e}"
    return f"{value:.{digits}f}"


def _time(seconds: float) -> str:
    if seconds < 10:
        return f"{seconds:.1f}s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{seconds:02d}s" if minutes else f"{seconds}s"


def _bar(part: float, stream: Any) -> str:
    full = round(part * _BAR)
    plain = "utf" not in (getattr(stream, "encoding", None) or "").lower()
    return ("#" if plain else "━") * full + ("." if plain else "╌") * (_BAR - full)


def _as_html(head: str, logs: dict[str, float], part: float | None) -> str:
    bar = "" if part is None else f'<progress value="{part:.3f}"></progress> '
    cells = "".join(
        f"<td>{escape(name)} <b>{_number(value, 4)}</b></td>" for name, value in logs.items()
    )
    return f"<table><tr><td>{bar}{escape(head)}</td>{cells}</tr></table>"


def _is_terminal(stream: Any) -> bool:
    asks = getattr(stream, "isatty", None)
    return asks is not None and asks() and os.environ.get("TERM") != "dumb"


def _has_colours(stream: Any) -> bool:
    return _is_terminal(stream) and not os.environ.get("NO_COLOR")


def _notebook() -> Any:
    """Return the module that shows HTML in a notebook; None elsewhere."""
    asks = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell = None if asks is None else asks()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    import IPython.display

    return IPython.display
