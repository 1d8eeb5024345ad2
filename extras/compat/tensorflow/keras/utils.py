"""``tf.keras.utils``: arrays, seeds, and batched data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import gradtape

from ..names import adapts, lookup

__all__ = (
    "Progbar PyDataset Sequence img_to_array normalize pad_sequences plot_model "
    "register_keras_serializable set_random_seed to_categorical"
).split()


@adapts("data.Dataset")
class PyDataset:
    """Base class of batched data: ``self[i]`` is one of ``len(self)`` batches.

    ``fit`` takes any object with these methods. Keras's options for processes are ignored.
    """

    def __init__(
        self, workers: int = 1, use_multiprocessing: bool = False, max_queue_size: int = 10
    ) -> None:
        self.workers, self.use_multiprocessing = workers, use_multiprocessing
        self.max_queue_size = max_queue_size

    def __iter__(self) -> Iterator[Any]:
        yield from (self[i] for i in range(len(self)))  # type: ignore[arg-type, index]
        self.on_epoch_end()

    def on_epoch_end(self) -> None:
        """Run after each epoch; does nothing by default."""


Sequence = PyDataset


@adapts("linalg.norm")
def normalize(x: Any, axis: int = -1, order: Any = 2) -> Any:
    """Divide an array by its norms along an axis."""
    norms = np.atleast_1d(np.linalg.norm(x, order, axis))
    norms[norms == 0] = 1
    return x / np.expand_dims(norms, axis)


@adapts("random.set_seed")
def set_random_seed(seed: int) -> None:
    """Seed gradtape, NumPy and Python."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - it is what Keras seeds
    gradtape.random.set_seed(seed)


@adapts("one_hot")
def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """Return class indices as an array of one-hot vectors."""
    x = np.asarray(x, dtype="int64")
    x = x[..., 0] if x.ndim > 1 and x.shape[-1] == 1 else x
    count = int(x.max()) + 1 if num_classes is None else num_classes
    return np.asarray(gradtape.one_hot(x, count))


def pad_sequences(
    sequences: Any,
    maxlen: int | None = None,
    dtype: Any = "int32",
    padding: str = "pre",
    truncating: str = "pre",
    value: Any = 0.0,
) -> Any:
    """Return lists of different lengths as one array, padded and truncated on the given sides."""
    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in ("pre", "post"):
            raise ValueError(f"pad_sequences: {name} must be 'pre' or 'post', got {side!r}")
    rows = [np.asarray(row) for row in sequences]
    length = max(map(len, rows), default=0) if maxlen is None else maxlen
    rest = next((row.shape[1:] for row in rows if len(row)), ())
    found = np.full((len(rows), length, *rest), value, dtype)
    for line, row in zip(found, rows):
        kept = row[max(len(row) - length, 0) :] if truncating == "pre" else row[:length]
        start = length - len(kept) if padding == "pre" else 0
        if len(kept):
            line[start : start + len(kept)] = kept
    return found


class Progbar:
    """A progress line for your own loop, with the means of its values."""

    def __init__(
        self,
        target: int | None,
        width: int = 20,
        verbose: int = 1,
        interval: float = 0.05,
        stateful_metrics: Any = None,
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
            ended = finalize or current == self.target
            whole = "Unknown" if self.target is None else self.target
            line = " - ".join([f"{current}/{whole}", *means])
            print(f"\r{line}", end="\n" if ended else "", flush=True)

    def add(self, n: int, values: Any = None) -> None:
        """Show ``n`` more steps as done."""
        self.update(self._done + n, values)


@adapts("plot.model")
def plot_model(model: Any, to_file: Any = "model.png", *options: Any, **ignored: Any) -> Any:
    """Draw a model to a file and return the picture; see :func:`gradtape.plot.model`."""
    return gradtape.plot.model(model, to_file)


def register_keras_serializable(package: str = "Custom", name: str | None = None) -> Any:
    """Return a decorator that does nothing: files hold graphs and need no classes."""
    return lambda cls: cls


@adapts("asarray")
def img_to_array(img: Any, data_format: Any = None, dtype: Any = "float32") -> Any:
    """Return an image as an array of floats, channels last."""
    found = np.asarray(img, dtype)
    return found if found.ndim == 3 else found[..., None]


__getattr__ = lookup(__name__)
