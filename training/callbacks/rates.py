"""Callbacks that set the learning rate."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from .callback import Callback, Watching

__all__ = ["LearningRateScheduler", "ReduceLROnPlateau"]


class ReduceLROnPlateau(Watching):
    """Multiply the learning rate by a factor when a value stops improving.

    Parameters
    ----------
    monitor
        The name of the value, ``"val_loss"`` by default.
    factor
        The factor, below 1; 0.1 by default.
    patience
        The number of epochs without improvement before the change, 10 by default.
    verbose
        Whether to print each new learning rate.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default. ``"auto"`` follows the name: an accuracy
        should grow, a loss or an error should fall.
    min_delta
        The smallest change that counts as an improvement, 0.0001 by default.
    cooldown
        The number of epochs after a change that do not count, 0 by default.
    min_lr
        The smallest learning rate, 0 by default.

    Raises
    ------
    ValueError
        If the factor is not between 0 and 1, or the name does not say whether the value should
        grow. When the run begins, if the learning rate is a schedule. At the end of an epoch, if
        there is no such value.

    Examples
    --------
    >>> gt.training.ReduceLROnPlateau(factor=0.5).patience
    10
    """

    kept = ("wait", "cooling", "best")

    def __init__(
        self,
        monitor: str = "val_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, mode, min_delta)
        if not 0.0 < factor < 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor must be between 0 and 1, got {factor!r}")
        self.factor, self.patience, self.verbose = float(factor), int(patience), bool(verbose)
        self.cooldown, self.min_lr = int(cooldown), float(min_lr)
        self.begin()

    def begin(self) -> None:
        """Reset the state of an earlier run."""
        self.wait = self.cooling = 0
        self.best = self.worst

    def on_train_begin(self) -> None:
        """Raise if the learning rate is a schedule, which cannot be set."""
        _check_rate(self)
        super().on_train_begin()

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Compare the epoch with the best one, set the learning rate, and add it to the values."""
        value = self.value(logs)
        logs["learning_rate"] = float(self.optimizer.learning_rate)
        if value is None:
            return
        if self.cooling:
            self.cooling -= 1
            self.wait = 0
        if self.better(value, self.best):
            self.best, self.wait = float(value), 0
        elif not self.cooling:
            self.wait += 1
            rate = float(self.optimizer.learning_rate)
            if self.wait >= self.patience and rate > self.min_lr:
                rate = max(rate * self.factor, self.min_lr)
                self.optimizer.learning_rate = rate
                self.cooling, self.wait = self.cooldown, 0
                if self.verbose:
                    print(f"epoch {epoch + 1}: learning rate {rate:.4g}")


class LearningRateScheduler(Callback):
    """Set the learning rate before each epoch.

    Parameters
    ----------
    schedule
        A function of the epoch, counted from 0, and the learning rate; or only of the epoch.
    verbose
        Whether to print the learning rate.

    Raises
    ------
    TypeError
        If ``schedule`` is not a function, or does not return a number.
    ValueError
        When the run begins, if the optimizer's learning rate is itself a schedule.

    Examples
    --------
    >>> halving = gt.training.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    >>> halving.schedule(0, 1.0)
    0.5
    """

    def __init__(self, schedule: Callable[..., float], verbose: bool = False) -> None:
        if not callable(schedule):
            raise TypeError(f"LearningRateScheduler: schedule is a function, got {schedule!r}")
        self.schedule, self.verbose = schedule, bool(verbose)
        try:
            inspect.signature(schedule).bind(0, 0.0)
            self._alone = False
        except TypeError:
            self._alone = True
        except ValueError:  # not written in Python
            self._alone = False

    def on_train_begin(self) -> None:
        """Raise if the learning rate is a schedule, which cannot be set."""
        _check_rate(self)

    def on_epoch_begin(self, epoch: int) -> None:
        """Set the learning rate."""
        known = () if self._alone else (float(self.optimizer.learning_rate),)
        found = self.schedule(epoch, *known)
        if found is None or np.ndim(found):
            raise TypeError(f"LearningRateScheduler: schedule must return a number, got {found!r}")
        rate = float(found)
        self.optimizer.learning_rate = rate
        if self.verbose:
            print(f"epoch {epoch + 1}: learning rate {rate:.4g}")

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Add the learning rate to the values."""
        logs["learning_rate"] = float(self.optimizer.learning_rate)


def _check_rate(callback: Callback) -> None:
    rate = callback.optimizer.learning_rate
    if not hasattr(rate, "assign"):
        raise ValueError(
            f"{type(callback).__name__}: the optimizer's learning rate is a schedule, which cannot "
            "be set; give the optimizer a number"
        )
