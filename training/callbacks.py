"""Callbacks for :func:`gradtape.training.fit`, with Keras' names, arguments and defaults."""

from __future__ import annotations

import csv
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..core.extend import public

__all__ = [
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "TerminateOnNaN",
]


class Callback:
    """Base class: define any of the methods; one that returns ``True`` at an epoch's end stops.

    Attributes
    ----------
    model
        The model that is trained, set before the training begins.
    optimizer
        Its optimizer.

    Examples
    --------
    >>> class Counter(gt.training.Callback):
    ...     epochs = 0
    ...     def on_epoch_end(self, epoch, logs):
    ...         self.epochs += 1
    >>> Counter().epochs
    0
    """

    model: Any = None
    optimizer: Any = None

    def on_train_begin(self) -> None:
        """Be told that the training begins."""

    def on_epoch_begin(self, epoch: int) -> None:
        """Be told that an epoch begins."""

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Be told that a batch was trained on, and the means over the epoch so far."""

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Be told what an epoch measured; return ``True`` to stop."""
        return None

    def on_train_end(self) -> None:
        """Be told that the training has ended."""


class _Watching(Callback):
    """What watches one value for getting better."""

    def __init__(self, monitor: str, mode: str, min_delta: float = 0.0) -> None:
        kind = type(self).__name__
        if mode not in ("auto", "min", "max"):
            raise ValueError(f"{kind}: mode must be 'auto', 'min' or 'max', got {mode!r}")
        self.monitor, self.mode = str(monitor), mode
        self.min_delta = abs(float(min_delta))
        self._said = False

    @property
    def larger_is_better(self) -> bool:
        """Whether the value is to grow."""
        if self.mode != "auto":
            return self.mode == "max"
        growing = ("acc", "accuracy", "auc", "precision", "recall", "score", "io_u", "top_k")
        name = self.monitor.removeprefix("val_")
        return any(part in name for part in growing)

    @property
    def worst(self) -> float:
        """What any value is better than."""
        return -math.inf if self.larger_is_better else math.inf

    def value(self, logs: dict[str, float]) -> float | None:
        """Return the value; warn once if there is none."""
        found = logs.get(self.monitor)
        if found is None and not self._said:
            self._said = True
            warnings.warn(
                f"{type(self).__name__}: there is no {self.monitor!r}, so it does nothing; there "
                f"are {', '.join(logs)}",
                stacklevel=3,
            )
        return found

    def better(self, value: float, best: float) -> bool:
        """Return whether a value is better than the best by more than ``min_delta``."""
        if self.larger_is_better:
            return value - self.min_delta > best
        return value + self.min_delta < best


class EarlyStopping(_Watching):
    """Stop when a value does not get better any more.

    Parameters
    ----------
    monitor
        The value's name, ``"val_loss"`` by default.
    min_delta
        By how much it has to get better, 0 by default.
    patience
        After how many epochs without that to stop, 0 by default.
    verbose
        Whether to print why it stopped.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default: by the name, an accuracy is to grow.
    baseline
        A value that it has to be better than at all.
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

    Raises
    ------
    ValueError
        If a setting is out of its range.

    Examples
    --------
    >>> stop = gt.training.EarlyStopping(patience=3, restore_best_weights=True)
    >>> stop.monitor
    'val_loss'
    """

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
        self._begin()

    def _begin(self) -> None:
        self.wait = 0
        self.stopped_epoch: int | None = None
        self.best_epoch: int | None = None
        self.best = self.worst if self.baseline is None else float(self.baseline)
        self._weights: list[Any] | None = None

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Compare the epoch with the best; return ``True`` to stop."""
        value = self.value(logs)
        if value is None or epoch < self.start_from_epoch:
            return None
        if self._weights is None and self.restore_best_weights:
            self._remember(epoch)  # of a run without a better epoch, the first
        self.wait += 1
        if self.better(value, self.best):
            self.best, self.wait = float(value), 0
            self._remember(epoch)
        elif self.wait >= self.patience and epoch > 0:
            self.stopped_epoch = epoch
            if self.verbose:
                print(f"epoch {epoch + 1}: no better {self.monitor} for {self.wait} epochs")
            return True
        return None

    def _remember(self, epoch: int) -> None:
        self.best_epoch = epoch
        if self.restore_best_weights:
            self._weights = [v.numpy().copy() for v in self.model.variables]

    def on_train_end(self) -> None:
        """Give the model the weights of its best epoch."""
        if self._weights is not None:
            for variable, value in zip(self.model.variables, self._weights, strict=True):
                variable.assign(value)

    def on_train_begin(self) -> None:
        """Forget an earlier training, unless this one goes on with it."""
        if self.stopped_epoch is not None:
            self._begin()

    def state_dict(self) -> dict[str, Any]:
        """Return what a resumed training needs."""
        return {
            "wait": self.wait,
            "best": self.best,
            "best_epoch": self.best_epoch,
            "stopped_epoch": self.stopped_epoch,
            "weights": self._weights,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.wait, self.best = int(state["wait"]), float(state["best"])
        self.best_epoch, self.stopped_epoch = state["best_epoch"], state["stopped_epoch"]
        self._weights = state["weights"]


class ReduceLROnPlateau(_Watching):
    """Multiply the learning rate by a factor when a value does not get better any more.

    Parameters
    ----------
    monitor
        The value's name, ``"val_loss"`` by default.
    factor
        The factor, below 1; 0.1 by default.
    patience
        After how many epochs without a better value, 10 by default.
    verbose
        Whether to print each new learning rate.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default: by the name, an accuracy is to grow.
    min_delta
        By how much it has to get better, 0.0001 by default.
    cooldown
        For how many epochs after a change none are counted, 0 by default.
    min_lr
        The least learning rate, 0 by default.

    Raises
    ------
    ValueError
        If the factor is not below 1; when the training begins, if the learning rate is a schedule.

    Examples
    --------
    >>> gt.training.ReduceLROnPlateau(factor=0.5).patience
    10
    """

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
        self.wait = self.cooling = 0
        self.best = self.worst

    def on_train_begin(self) -> None:
        """Raise if the learning rate is not to be set."""
        _check_rate(self)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Compare the epoch with the best, and set the learning rate."""
        value = self.value(logs)
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
        A function of the epoch, from 0, and the learning rate.
    verbose
        Whether to print it.

    Raises
    ------
    TypeError
        If ``schedule`` is no function.
    ValueError
        When the training begins, if the learning rate is a schedule of the optimizer's own.

    Examples
    --------
    >>> halving = gt.training.LearningRateScheduler(lambda epoch, rate: rate * 0.5)
    >>> halving.schedule(0, 1.0)
    0.5
    """

    def __init__(self, schedule: Callable[[int, float], float], verbose: bool = False) -> None:
        if not callable(schedule):
            raise TypeError(f"LearningRateScheduler: schedule is a function, got {schedule!r}")
        self.schedule, self.verbose = schedule, bool(verbose)

    def on_train_begin(self) -> None:
        """Raise if the learning rate is not to be set."""
        _check_rate(self)

    def on_epoch_begin(self, epoch: int) -> None:
        """Set the learning rate."""
        rate = float(self.schedule(epoch, float(self.optimizer.learning_rate)))
        self.optimizer.learning_rate = rate
        if self.verbose:
            print(f"epoch {epoch + 1}: learning rate {rate:.4g}")


def _check_rate(callback: Callback) -> None:
    rate = callback.optimizer.learning_rate
    if not hasattr(rate, "assign"):
        raise ValueError(
            f"{type(callback).__name__}: the optimizer's learning rate is a schedule, which would "
            "set it again; give the optimizer a number"
        )


class ModelCheckpoint(_Watching):
    """Save the model after epochs: each, or those that are better than all before.

    Parameters
    ----------
    filepath
        The file; ``{epoch}`` and names of values in it are replaced, as in
        ``"model-{epoch:02d}-{val_loss:.2f}.h5"``.
    monitor
        The value's name, ``"val_loss"`` by default.
    verbose
        Whether to print what was saved.
    save_best_only
        Whether to save better epochs alone.
    save_weights_only
        Whether to save weights, and no functions.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default: by the name, an accuracy is to grow.
    save_freq
        ``"epoch"``; to save within epochs, use ``fit(checkpoint=, save_every=)``.
    initial_value_threshold
        A value that the first one saved has to be better than.

    Raises
    ------
    ValueError
        If a setting is unknown.
    SaveError
        If a file cannot be written.

    Examples
    --------
    >>> gt.training.ModelCheckpoint("best.h5", save_best_only=True).monitor
    'val_loss'
    """

    def __init__(
        self,
        filepath: Any,
        monitor: str = "val_loss",
        verbose: bool = False,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: str = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        if save_freq != "epoch":
            raise ValueError(
                "ModelCheckpoint: save_freq must be 'epoch'; to save within epochs, use "
                "fit(checkpoint=..., save_every=...)"
            )
        self.filepath, self.verbose = str(filepath), bool(verbose)
        self.save_best_only = bool(save_best_only)
        self.save_weights_only = bool(save_weights_only)
        self.best = self.worst if initial_value_threshold is None else initial_value_threshold

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Save the model, if this epoch is to be saved."""
        if self.save_best_only:
            value = self.value(logs)
            if value is None or not self.better(value, self.best):
                return
            self.best = float(value)
        path = self.filepath.format(epoch=epoch + 1, **logs)
        if self.save_weights_only:
            self.model.save_weights(path)
        else:
            _save(self.model, path)
        if self.verbose:
            print(f"epoch {epoch + 1}: saved {path}")


def _save(model: Any, path: str) -> None:
    public("save")(model, path)  # saving stands above training


class TerminateOnNaN(Callback):
    """Stop as soon as the loss is not finite.

    ``fit`` raises on its own when a batch's loss is not finite, and restores the model; this is for
    programs that come from Keras.

    Examples
    --------
    >>> gt.training.TerminateOnNaN().on_epoch_end(0, {"loss": float("nan")})
    True
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> bool | None:
        """Return whether the loss is not finite."""
        return True if not math.isfinite(logs.get("loss", 0.0)) else None


class CSVLogger(Callback):
    """Write the values of each epoch to a CSV file.

    Parameters
    ----------
    filename
        The file.
    separator
        What is between values, a comma by default.
    append
        Whether to add to a file that is there, as after an interruption; not by default.

    Raises
    ------
    OSError
        When the training begins, if the file cannot be written.

    Examples
    --------
    >>> gt.training.CSVLogger("log.csv").separator
    ','
    """

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = str(filename), separator, bool(append)
        self._columns: list[str] | None = None

    def on_train_begin(self) -> None:
        """Begin the file, or read which columns it has."""
        path = Path(self.filename)
        self._columns = None
        if self.append and path.exists() and path.stat().st_size:
            with path.open(newline="") as stream:
                self._columns = next(csv.reader(stream, delimiter=self.separator))[1:]
        else:
            path.write_text("")

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Write a line."""
        with open(self.filename, "a", newline="") as stream:
            writer = csv.writer(stream, delimiter=self.separator)
            if self._columns is None:
                self._columns = list(logs)
                writer.writerow(["epoch", *self._columns])
            writer.writerow([epoch, *(_number(logs.get(name)) for name in self._columns)])


def _number(value: Any) -> Any:
    return "NA" if value is None else repr(float(np.asarray(value)))


class LambdaCallback(Callback):
    """A callback of functions.

    Parameters
    ----------
    on_epoch_begin, on_epoch_end, on_train_begin, on_train_end, on_train_batch_end
        Functions for the events; those that are ``None``, the default, do nothing.

    Raises
    ------
    TypeError
        If one is no function.

    Examples
    --------
    >>> callback = gt.training.LambdaCallback(on_epoch_end=lambda epoch, logs: print(epoch))
    >>> callback.on_epoch_end(3, {})
    3
    """

    def __init__(
        self,
        on_epoch_begin: Callable[..., Any] | None = None,
        on_epoch_end: Callable[..., Any] | None = None,
        on_train_begin: Callable[..., Any] | None = None,
        on_train_end: Callable[..., Any] | None = None,
        on_train_batch_end: Callable[..., Any] | None = None,
    ) -> None:
        given = {
            "on_epoch_begin": on_epoch_begin,
            "on_epoch_end": on_epoch_end,
            "on_train_begin": on_train_begin,
            "on_train_end": on_train_end,
            "on_train_batch_end": on_train_batch_end,
        }
        for event, function in given.items():
            if function is None:
                continue
            if not callable(function):
                raise TypeError(f"LambdaCallback: {event} is a function, got {function!r}")
            vars(self)[event] = function
