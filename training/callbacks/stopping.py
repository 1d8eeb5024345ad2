"""Callbacks that end a run."""

from __future__ import annotations

import math
from typing import Any

from .callback import Callback, Watching

__all__ = ["EarlyStopping", "TerminateOnNaN"]


class EarlyStopping(Watching):
    """End the run when a value stops improving.

    Parameters
    ----------
    monitor
        The name of the value, ``"val_loss"`` by default. Epochs without validation do not count.
    min_delta
        The smallest change that counts as an improvement, 0 by default.
    patience
        The number of epochs without improvement after which the run ends, 0 by default.
    verbose
        Whether to print why the run ended.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default. ``"auto"`` follows the name: an accuracy
        should grow, a loss or an error should fall.
    baseline
        A value to improve on: epochs that are no better than it count as without improvement.
    restore_best_weights
        Whether the model gets the weights of its best epoch at the end, even if no epoch ended the
        run early; false by default.
    start_from_epoch
        The number of epochs at the beginning that are ignored, 0 by default.

    Attributes
    ----------
    stopped_epoch : int or None
        The epoch that ended the run.
    best, best_epoch
        The best value, and its epoch.
    weights : list of numpy.ndarray or None
        With ``restore_best_weights``, the model's weights after that epoch.

    Raises
    ------
    ValueError
        If a setting is out of its range, or the name does not say whether the value should grow. At
        the end of an epoch, if there is no such value.

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
        """Reset the state of an earlier run."""
        self.wait = 0
        self.stopped_epoch: int | None = None
        self.best_epoch: int | None = None
        self.best = self.worst
        self.weights: list[Any] | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Compare the epoch with the best one; return ``True`` to end the run."""
        value = self.value(logs)
        if value is None or epoch < self.start_from_epoch:
            return None
        if self.weights is None and self.restore_best_weights:
            self._remember(epoch)  # the first epoch, in case none is better
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
            return self._ask_to_stop()
        return None

    def _remember(self, epoch: int) -> None:
        self.best_epoch = epoch
        if self.restore_best_weights:
            self.weights = [v.numpy().copy() for v in self.model.variables]

    def on_train_end(self) -> None:
        """Assign the weights of the best epoch to the model."""
        if self.weights is not None:
            for variable, value in zip(self.model.variables, self.weights, strict=True):
                variable.assign(value)
        super().on_train_end()


class TerminateOnNaN(Callback):
    """End the run as soon as the loss is not finite, and let ``fit`` return its history.

    Without this callback ``fit`` raises an error. In both cases the model is restored to its state
    at the beginning of the epoch.

    Parameters
    ----------
    raise_error
        Whether ``fit`` should raise as it does without the callback; false by default.

    Raises
    ------
    FloatingPointError
        From ``fit``, if the loss is not finite and ``raise_error`` is true.

    Examples
    --------
    >>> gt.training.TerminateOnNaN().on_epoch_end(0, {"loss": float("nan")})
    True
    """

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = bool(raise_error)

    def told(self, batch: int, error: BaseException) -> None:
        """Print why the run ends, unless ``fit`` raises the error."""
        if not self.raise_error:
            print(f"batch {batch + 1}: {error}")

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Return whether the loss is not finite."""
        return None if math.isfinite(logs.get("loss", 0.0)) else self._ask_to_stop()
