"""Callbacks that control a run: its end, and its learning rate."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .callback import Callback, MonitorCallback

__all__ = ["EarlyStopping", "LearningRateScheduler", "ReduceLROnPlateau", "TerminateOnNaN"]


class EarlyStopping(MonitorCallback):
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
    kept_arrays = ("weights",)

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

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state.

        Raises
        ------
        ValueError
            If ``state`` is not a state of this class, or its weights do not fit the model.
        """
        weights = state["weights"]
        if weights is not None and self.model is not None:  # a loop may set the model later
            shapes = [variable.shape for variable in self.model.variables]
            if type(weights) is not list or [np.shape(x) for x in weights] != shapes:
                raise ValueError(f"EarlyStopping: weights are not arrays of shapes {shapes!s:.200}")
        super().load_state_dict(state)

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

    _gradtape_internal = "report"

    def __init__(self, raise_error: bool = False) -> None:
        self.raise_error = bool(raise_error)

    def report(self, batch: int, error: BaseException) -> None:
        """Print why the run ends, unless ``fit`` raises the error."""
        if not self.raise_error:
            print(f"batch {batch + 1}: {error}")

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Return whether the loss is not finite."""
        return None if math.isfinite(logs.get("loss", 0.0)) else self._ask_to_stop()


# -- learning rate --------------------------------------------------------------------------------


class ReduceLROnPlateau(MonitorCallback):
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
