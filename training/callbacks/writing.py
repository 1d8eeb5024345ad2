"""Callbacks that write files: models, backups, tables, and TensorBoard's events."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from string import Formatter
from typing import Any

from ...core.extend import services
from .callback import Callback, MonitorCallback, number_of

__all__ = ["BackupAndRestore", "CSVLogger", "ModelCheckpoint", "TensorBoard"]


class _FileName(Formatter):
    """Fills in values by whole names: those of plugins are ``acme.name`` or ``acme::name``."""

    def parse(self, format_string: Any) -> Iterator[tuple[str, str | None, str | None, str | None]]:
        for text, name, spec, conversion in super().parse(format_string):
            if spec and spec[0] == ":" and spec[1:2].isidentifier():
                rest, _, spec = spec[1:].partition(":")
                name = f"{name}::{rest}"
            yield text, name, spec, conversion

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return kwargs[field_name], field_name


class ModelCheckpoint(MonitorCallback):
    """Save the model after each epoch, or after each epoch that is better than all before.

    Parameters
    ----------
    filepath
        The file; missing folders are created. ``{epoch}``, ``{batch}`` and names of values in it
        are replaced, as in ``"model-{epoch:02d}-{val_loss:.2f}.h5"``.
    monitor
        The name of the value, ``"val_loss"`` by default.
    verbose
        Whether to print the path of each saved file.
    save_best_only
        Whether to save only after better epochs.
    save_weights_only
        Whether to save only the weights, without functions.
    mode
        ``"min"``, ``"max"``, or ``"auto"``, the default. ``"auto"`` follows the name: an accuracy
        should grow, a loss or an error should fall.
    save_freq
        ``"epoch"``, the default; or a number of batches after which to save, using the means of the
        epoch so far. To resume a run, use ``fit(checkpoint=, save_every=)`` instead.
    initial_value_threshold
        A value that the first saved epoch must improve on.

    Raises
    ------
    ValueError
        If a setting is unknown. When the run begins, if ``filepath`` cannot be filled in. When
        saving, if it or ``monitor`` names an unknown value.
    SaveError
        If a file cannot be written.

    Examples
    --------
    >>> gt.training.ModelCheckpoint("best.h5", save_best_only=True).monitor
    'val_loss'
    """

    kept = ("best", "batches")
    writes_files = True

    def __init__(
        self,
        filepath: Any,
        monitor: str = "val_loss",
        verbose: bool = False,
        save_best_only: bool = False,
        save_weights_only: bool = False,
        mode: str = "auto",
        save_freq: int | str = "epoch",
        initial_value_threshold: float | None = None,
    ) -> None:
        super().__init__(monitor, mode)
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ValueError(
                f"ModelCheckpoint: save_freq is 'epoch' or a number of batches, got {save_freq!r}"
            )
        if not (save_weights_only and services["saving.writer_of"](filepath)):
            services["saving.check_format"](filepath, "ModelCheckpoint")
        self.save_freq, self.epoch, self.batches = save_freq, 0, 0
        self.filepath, self.verbose = str(filepath), bool(verbose)
        self.save_best_only = bool(save_best_only)
        self.save_weights_only = bool(save_weights_only)
        self.best: float | None = initial_value_threshold
        if self.save_best_only and initial_value_threshold is None:
            self.best = self.worst
        self._has_saved = False

    def on_train_begin(self) -> None:
        """Raise if the name of the file cannot be filled in."""
        super().on_train_begin()
        numbers = {"epoch": 1} if self.save_freq == "epoch" else {"epoch": 1, "batch": 1}
        try:
            names = [name for _, name, _, _ in _FileName().parse(self.filepath) if name]
            if "batch" in names and "batch" not in numbers:
                raise ValueError("{batch} needs save_freq=, a number of batches")
            # other callbacks may add values, so unknown names are an error only later
            _FileName().format(self.filepath, **{**dict.fromkeys(names, 1.0), **numbers})
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise ValueError(
                f"ModelCheckpoint: {self.filepath!r} cannot be filled in: {error}. Values are "
                "floats, as in {loss:.3f}; {epoch} and {batch} are integers, as in {epoch:02d}"
            ) from None

    def on_epoch_begin(self, epoch: int) -> None:
        """Note the epoch."""
        self.epoch = epoch

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Save the model, if ``save_freq`` batches are done and the values are good enough."""
        self.batches += 1
        if self.save_freq != "epoch" and self.batches % int(self.save_freq) == 0:
            self._save(self.epoch, batch, logs)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Save the model, if this epoch should be saved."""
        if self.save_freq == "epoch":
            self._save(epoch, None, logs)

    def _save(self, epoch: int, batch: int | None, logs: dict[str, float]) -> None:
        if self.save_best_only:
            value = self.value(logs)
            if value is None or (self.best is not None and not self.better(value, self.best)):
                return
            self.best = float(value)
        known = {**logs, "epoch": epoch + 1, **({} if batch is None else {"batch": batch + 1})}
        try:
            path = _FileName().format(self.filepath, **known)
        except LookupError as error:
            raise ValueError(
                f"ModelCheckpoint: {self.filepath!r} needs {error}; there are {', '.join(known)}"
            ) from None
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with services["saving.under_any_name"]() if self._has_saved else nullcontext():
            if self.save_weights_only:
                self.model.save_weights(path)
            else:
                own = getattr(self.model, "_gradtape_save", None)  # with what else it keeps
                services["saving.save"](self.model, path) if own is None else own(path)
        self._has_saved = True
        if self.verbose:
            print(f"epoch {epoch + 1}: saved {path}")


class BackupAndRestore(Callback):
    """Keep the run in a file, and continue an interrupted run when ``fit`` is called again.

    This is ``fit(checkpoint=..., resume=True)`` under Keras's name. The file is removed when a run
    has completed its epochs.

    Parameters
    ----------
    backup_dir
        The folder of the file, created if it does not exist.
    save_freq
        ``"epoch"``, the default; or a number of batches after which to save within an epoch, too.
    delete_checkpoint
        Whether to remove the file at the end; true by default.

    Raises
    ------
    ValueError
        If ``save_freq`` is unknown.

    Examples
    --------
    >>> gt.training.BackupAndRestore("backup").path.name
    'run.h5'
    """

    _gradtape_internal = "ended"

    def __init__(
        self, backup_dir: Any, save_freq: int | str = "epoch", *, delete_checkpoint: bool = True
    ) -> None:
        if save_freq != "epoch" and not (isinstance(save_freq, int) and save_freq > 0):
            raise ValueError(
                f"BackupAndRestore: save_freq is 'epoch' or a number of batches, got {save_freq!r}"
            )
        self.path = Path(backup_dir) / "run.h5"
        self.save_every = None if isinstance(save_freq, str) else save_freq
        self.delete_checkpoint = bool(delete_checkpoint)

    def ended(self) -> None:
        """Remove the file, after the run has completed its epochs."""
        if self.delete_checkpoint:
            self.path.unlink(missing_ok=True)


class CSVLogger(Callback):
    """Write the values of each epoch to a CSV file.

    Parameters
    ----------
    filename
        The file.
    separator
        The separator of the values, a comma by default.
    append
        Whether to append to an existing file; false by default. A run that ``fit`` resumes always
        continues its file, after the lines of the epochs that it does not repeat. A run that ended
        before its first checkpoint is another run, whose lines are kept.

    Raises
    ------
    OSError
        When the run begins, if the file cannot be written.

    Examples
    --------
    >>> gt.training.CSVLogger("log.csv").separator
    ','
    """

    writes_files = True

    def __init__(self, filename: Any, separator: str = ",", append: bool = False) -> None:
        self.filename, self.separator, self.append = str(filename), separator, bool(append)
        self._columns: list[str] | None = None
        self._rows, self._begun = 0, True

    def on_train_begin(self) -> None:
        """Raise if the file cannot be written."""
        Path(self.filename).open("a").close()
        self._columns, self._rows, self._begun = None, 0, False

    def on_epoch_begin(self, epoch: int) -> None:
        """Empty the file, or read the columns of an existing one, before the first epoch."""
        if not self._begun:
            self._keep(None if self.append else 0)

    def _keep(self, count: int | None) -> None:
        """Begin with the header and a number of lines of the file; all for None."""
        self._begun = True
        with open(self.filename, newline="") as stream:
            header, *rows = [*csv.reader(stream, delimiter=self.separator)] or [[]]
        self._columns = header[1:] if header and count != 0 else None
        self._rows = len(rows) if count is None else min(count, len(rows))
        if self._rows < len(rows) or self._columns is None:
            self._replace([header, *rows[: self._rows]] if self._columns is not None else [])

    def _replace(self, rows: list[list[Any]]) -> None:
        with open(self.filename, "w", newline="") as stream:
            csv.writer(stream, delimiter=self.separator).writerows(rows)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs: the number of lines."""
        return {"rows": self._rows}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue after the lines that the file had at the checkpoint; later epochs run again."""
        if not self._begun:  # once, after the run has begun
            self._keep(state.get("rows"))

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Write a line; new values get new columns, with ``NA`` in the earlier lines."""
        if self._columns is not None and not set(logs) <= set(self._columns):
            self._widen([name for name in logs if name not in self._columns])
        with open(self.filename, "a", newline="") as stream:
            writer = csv.writer(stream, delimiter=self.separator)
            if self._columns is None:
                self._columns = list(logs)
                writer.writerow(["epoch", *self._columns])
            writer.writerow([epoch, *(_number(logs.get(name)) for name in self._columns)])
        self._rows += 1

    def _widen(self, names: list[str]) -> None:
        with open(self.filename, newline="") as stream:
            header, *rows = csv.reader(stream, delimiter=self.separator)
        self._columns = [*header[1:], *names]
        self._replace([[*header, *names], *([*row, *("NA" for _ in names)] for row in rows)])


def _number(value: Any) -> str:
    number = number_of(value)
    if number is None:
        return "NA" if value is None else str(value)
    return repr(number)


class TensorBoard(Callback):
    """Write the values of each epoch to event files, which ``tensorboard --logdir`` shows.

    The files for training are in the folder ``train``, those for validation in ``validation``. The
    names are Keras's: ``epoch_loss``, ``epoch_learning_rate``.

    Parameters
    ----------
    log_dir
        The folder, ``"logs"`` by default.
    histogram_freq
        The number of epochs after which to write histograms of the weights; 0, the default, for
        never.
    update_freq
        ``"epoch"``, the default; or ``"batch"``, or a number of batches, after which to write the
        means of the epoch so far, as ``batch_loss``.

    Raises
    ------
    ValueError
        If a setting is unknown.
    ImportError
        When the run begins, if tensorboardX is not installed:
        ``pip install "gradtape[tensorboard]"``.

    Examples
    --------
    >>> gt.training.TensorBoard("runs/first").log_dir
    'runs/first'
    """

    writes_files = True

    def __init__(
        self, log_dir: Any = "logs", histogram_freq: int = 0, *, update_freq: int | str = "epoch"
    ) -> None:
        if update_freq not in ("epoch", "batch") and not (
            isinstance(update_freq, int) and update_freq > 0
        ):
            raise ValueError(
                f"TensorBoard: update_freq is 'epoch', 'batch' or a number, got {update_freq!r}"
            )
        if not isinstance(histogram_freq, int) or histogram_freq < 0:
            raise ValueError(
                f"TensorBoard: histogram_freq is a number of epochs, got {histogram_freq!r}"
            )
        self.log_dir, self.histogram_freq = str(log_dir), histogram_freq
        self._every = {"epoch": 0, "batch": 1}.get(str(update_freq), update_freq)
        self._step, self._epoch = 0, 0
        self._purged: dict[str, int] = {}
        self._writers: dict[str, Any] = {}

    def on_train_begin(self) -> None:
        """Prepare the writers."""
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise ImportError(
                f'TensorBoard: {error}; pip install "gradtape[tensorboard]"'
            ) from error
        self._make, self._purged = SummaryWriter, {}

    def _write(self, part: str, name: str, value: Any, step: int) -> None:
        number = number_of(value)
        if number is None:  # another callback added a text, or an array
            return
        if part not in self._writers:
            place = str(Path(self.log_dir) / part)
            self._writers[part] = self._make(logdir=place, **self._purged)
        self._writers[part].add_scalar(name, number, step)

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        """Write the means so far, if ``update_freq`` batches are done."""
        self._step += 1
        if self._every and self._step % int(self._every) == 0:
            for name, value in logs.items():
                self._write("train", f"batch_{name}", value, self._step)

    def on_epoch_end(self, epoch: int, logs: dict[str, float]) -> None:
        """Write the values of the epoch."""
        self._epoch = epoch + 1
        for name, value in logs.items():
            validated = name.startswith("val_")
            part = "validation" if validated else "train"
            self._write(part, f"epoch_{name.removeprefix('val_')}", value, epoch)
        rate = getattr(self.optimizer, "learning_rate", None)  # a model may have several optimizers
        if rate is not None:
            rate = rate if hasattr(rate, "assign") else rate(self.optimizer.iterations.value)
            self._write("train", "epoch_learning_rate", float(rate), epoch)
        if self.histogram_freq and epoch % self.histogram_freq == 0:
            for i, variable in enumerate(self.model.variables):
                values = variable.numpy()
                self._writers["train"].add_histogram(f"{variable.name}_{i}", values, epoch)
        for writer in self._writers.values():
            writer.flush()

    def on_train_end(self) -> None:
        """Close the files."""
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a resumed run needs."""
        return {"step": self._step, "epoch": self._epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; what was written after it is not shown."""
        self._step = int(state["step"])
        self._epoch = int(state.get("epoch", 0))
        # values of batches count steps, not epochs: purging by epochs would remove these too
        if not self._every and self._epoch:
            self._purged = {"purge_step": self._epoch}
