"""``TensorBoard``: writes the values of a run to event files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .callback import Callback, number_of

__all__ = ["TensorBoard"]


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
        rate = self.optimizer.learning_rate
        if not hasattr(rate, "assign"):
            rate = rate(self.optimizer.iterations.value)
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
