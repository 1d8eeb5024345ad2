"""``tf.keras.utils``: arrays, seeds, and data by batches."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np

import gradtape

from ..names import adapts, lookup

__all__ = [
    "PyDataset",
    "Sequence",
    "clear_session",
    "normalize",
    "pad_sequences",
    "set_random_seed",
    "to_categorical",
]


@adapts("data.Dataset")
class PyDataset:
    """Base class of data by batches: ``len(self)`` of them, each by ``self[i]``.

    ``fit`` takes all that has these. How Keras spreads them over processes is ignored.
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
        """Be told that an epoch has ended."""


Sequence = PyDataset


def clear_session(free_memory: bool = True) -> None:
    """Do nothing: models that nobody holds are forgotten, and there is no session."""


@adapts("linalg.norm")
def normalize(x: Any, axis: int = -1, order: Any = 2) -> Any:
    """Return an array divided by its norms along an axis."""
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
    """Return classes as an array of vectors with a one each."""
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
    """Return lists of different lengths as one array, filled up and cut at their beginnings."""
    for name, side in (("padding", padding), ("truncating", truncating)):
        if side not in ("pre", "post"):
            raise ValueError(f"pad_sequences: {name} is 'pre' or 'post', got {side!r}")
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


__getattr__ = lookup(__name__)
