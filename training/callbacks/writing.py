"""Callbacks that write files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np

from ...core.extend import public
from .callback import Callback, Watching

__all__ = ["CSVLogger", "ModelCheckpoint"]


class ModelCheckpoint(Watching):
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

    kept = ("best",)

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
