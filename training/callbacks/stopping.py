"""Callbacks that end a training."""

from __future__ import annotations

import math
from typing import Any

from .callback import Callback, Watching

__all__ = ["EarlyStopping", "TerminateOnNaN"]


class EarlyStopping(Watching):
    """Stop when a value does not get better any more.

    Parameters
    ----------
    monitor
        The value's name, ``"val_loss"`` by default. Epochs without validation do not count.
    min_delta
        By how much it has to get better, 0 by default.
    patience
        After how many epochs without that to stop, 0 by default.
    verbose
        Whether to print why it stopped.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default: by the name, an accuracy is to grow, and a
        loss or an error is not.
    baseline
        A value that it has to be better than: epochs that are not count as without progress.
    restore_best_weights
        Whether the model has the weights of its best epoch in the end, stopped or not.
    start_from_epoch
        How many epochs are not watched, 0 by default.

    Attributes
    ----------
    stopped_epoch : int or None
        After which epoch it stopped.
    best, best_epoch
        The best value, and its epoch.
    weights : list of numpy.ndarray or None
        The model's of that epoch, with ``restore_best_weights``.

    Raises
    ------
    ValueError
        If a setting is out of its range, or the name does not say whether the value is to grow; at
        an epoch's end, if there is no such value.

    Examples
    --------
    >>> stop = gt.training.EarlyStopping(patience=3, restore_best_weights=True)
    >>> stop.monitor
    'val_loss'
    """

    kept = ("wait", "best", "best_epoch", "stopped_epoch", "weights")

    def __init__(
        self,
        monitor: str = "val_loss",
        min_delta: float = 0.0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
        start_from_epoch: int = 0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if not hasattr(patience, "__index__") or patience < 0:
            raise ValueError(f"EarlyStopping: patience is a number of epochs, got {patience!r}")
        self.patience, self.verbose = int(patience), bool(verbose)
        self.baseline, self.start_from_epoch = baseline, int(start_from_epoch)
        self.restore_best_weights = bool(restore_best_weights)
        self.begin()

    def begin(self) -> None:
        """Forget an earlier training."""
        self.wait = 0
        self.stopped_epoch: int | None = None
        self.best_epoch: int | None = None
        self.best = self.worst
        self.weights: list[Any] | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Compare the epoch with the best; return ``True`` to stop."""
        value = self.value(logs)
        if value is None or epoch < self.start_from_epoch:
            return None
        if self.weights is None and self.restore_best_weights:
            self._remember(epoch)  # of a run without a better epoch, the first
        self.wait += 1
        if self.better(value, self.best):
            self.best = float(value)
            self._remember(epoch)
            if self.baseline is None or self.better(value, self.baseline):
                self.wait = 0
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            if self.verbose:
                print(f"epoch {epoch + 1}: no better {self.monitor} for {self.wait} epochs")
            return True
        return None

    def _remember(self, epoch: int) -> None:
        self.best_epoch = epoch
        if self.restore_best_weights:
            self.weights = [v.numpy().copy() for v in self.model.variables]

    def on_train_end(self) -> None:
        """Give the model the weights of its best epoch."""
        if self.weights is not None:
            for variable, value in zip(self.model.variables, self.weights, strict=True):
                variable.assign(value)
        super().on_train_end()


class TerminateOnNaN(Callback):
    """End the run as soon as the loss is not finite, and let ``fit`` return its history.

    Without it ``fit`` raises then. Either way the model is as it was when the epoch began.

    Parameters
    ----------
    raise_error
        Whether to raise nevertheless; not by default.

    Raises
    ------
    FloatingPointError
        By ``fit``, with ``raise_error``.

    Examples
    --------
    >>> gt.training.TerminateOnNaN().on_epoch_end(0, {"loss": float("nan")})
    True
    """

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = bool(raise_error)

    def told(self, batch: int, error: BaseException) -> None:
        """Say why the run ends, if nothing is raised."""
        if not self.raise_error:
            print(f"batch {batch + 1}: {error}")

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Return whether the loss is not finite."""
        return True if not math.isfinite(logs.get("loss", 0.0)) else None
