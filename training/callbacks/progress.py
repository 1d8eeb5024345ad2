"""A line of progress, for loops that you write, and as a callback."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .callback import Callback, number_of

__all__ = ["Progbar", "ProgbarLogger"]


class Progbar:
    """A line of progress on standard output for your own loop, with the means of its values.

    Parameters
    ----------
    target
        The number of steps; None if it is unknown.
    width, interval, unit_name
        Ignored: they are options of Keras's bar.
    verbose
        0 for no line.
    stateful_metrics
        Names of values that are means already; the latest is shown.

    Raises
    ------
    TypeError
        If a value is not a number.

    Examples
    --------
    >>> bar = gt.training.Progbar(2, verbose=0)
    >>> bar.add(1, [("loss", 0.5)])
    """

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Iterable[str] | None = None,
        unit_name: str = "step",
    ) -> None:
        self.target, self.verbose = target, verbose
        self.stateful = set(stateful_metrics or ())
        self._sums: dict[str, tuple[float, int]] = {}
        self._done = 0

    def update(self, current: int, values: Any = None, finalize: bool | None = None) -> None:
        """Show ``current`` steps as done, with the latest ``(name, value)`` pairs."""
        steps, self._done = current - self._done, current
        for name, value in values or ():
            total, count = self._sums.get(name, (0.0, 0))
            kept = name in self.stateful
            self._sums[name] = (
                (float(value), 1) if kept else (total + float(value) * steps, count + steps)
            )
        if self.verbose:
            means = [f"{name}: {total / max(n, 1):.4f}" for name, (total, n) in self._sums.items()]
            ended = current == self.target if finalize is None else finalize
            whole = "Unknown" if self.target is None else self.target
            line = " - ".join([f"{current}/{whole}", *means])
            print(f"\r{line}", end="\n" if ended else "", flush=True)

    def add(self, n: int, values: Any = None) -> None:
        """Show ``n`` more steps as done."""
        self.update(self._done + n, values)


class ProgbarLogger(Callback):
    """Prints a line of progress for each epoch to standard output.

    ``fit`` itself shows one on standard error; ``verbose=0`` turns that off.

    Examples
    --------
    >>> gt.training.ProgbarLogger().model is None
    True
    """

    _bar: Progbar | None = None

    def on_epoch_begin(self, epoch: int) -> None:
        """Print the number of the epoch."""
        print(f"Epoch {epoch + 1}/{self.params.get('epochs', 'Unknown')}")
        self._bar = Progbar(self.params.get("steps"))

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Show the batch as done."""
        self._show(batch + 1, logs)  # validation may follow: the epoch ends the line

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Show the values of the epoch, and end the line."""
        if self._bar is not None:
            self._show(self._bar._done, logs, True)

    def _show(self, done: int, logs: dict[str, float], last: bool = False) -> None:
        bar = self._bar or Progbar(None)
        numbers = {name: number_of(value) for name, value in logs.items()}
        bar.stateful |= set(numbers)  # means already
        bar.update(done, [(name, x) for name, x in numbers.items() if x is not None], last)
