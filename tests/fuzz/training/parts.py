"""What random programs are made of besides gradtape's names: data, own layers and own models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from gradtape import layers as L
from gradtape import training as tr

# -- data ------------------------------------------------------------------------------------------


def numbers(shape: Any, seed: int = 0) -> Any:
    """Return random numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def padded(shape: Any, lengths: Sequence[int], seed: int = 0) -> Any:
    """Return random sequences that are zero after their lengths."""
    found = numbers(shape, seed)
    found[seen(shape, lengths) == 0] = 0.0
    return found


def seen(shape: Any, lengths: Sequence[int]) -> Any:
    """Return where sequences are not padding."""
    return np.arange(shape[1]) < np.asarray(lengths)[:, None]


def words(shape: Any, lengths: Sequence[int], seed: int = 0) -> Any:
    """Return random sequences of words 1 to 4, and 0 for padding."""
    found = np.random.default_rng(seed).integers(1, 5, shape)
    return np.where(seen(shape, lengths), found, 0).astype("int32")


def classes(shape: Any, count: int, seed: int = 0, ignored: int | None = None) -> Any:
    """Return random classes, of which some are ``ignored`` if that is given."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, count, shape)
    return found if ignored is None else np.where(rng.random(shape) < 0.4, ignored, found)


def onehot(shape: Any, count: int, seed: int = 0) -> Any:
    """Return random classes as vectors."""
    return np.eye(count, dtype="float32")[classes(shape, count, seed)]


def weights(shape: Any, seed: int = 0) -> Any:
    """Return random weights, of which some are 0."""
    return np.maximum(numbers(shape, seed) + 0.7, 0.0).astype("float32")


# -- losses ----------------------------------------------------------------------------------------


def own_loss(y: Any, p: Any) -> Any:
    """Return a value per example."""
    return gt.mean(gt.abs(y - p) ** 1.5, axis=-1)


class OwnLoss(tr.losses.Loss):
    """A loss object."""

    def call(self, y: Any, p: Any) -> Any:
        """Return a value per example."""
        return gt.mean((y - p) ** 4, axis=-1)


# -- layers ----------------------------------------------------------------------------------------


class Scale(gt.Module):
    """A module with a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = gt.Variable(np.float32(0.7))

    def __call__(self, x: Any) -> Any:
        """Scale ``x``."""
        return x * self.factor


class Penalised(L.Layer):
    """A layer that adds a loss, the mean over its examples."""

    def call(self, x: Any) -> Any:
        """Return ``x``."""
        self.add_loss(0.3 * gt.mean(x * x))
        return x


class Shift(L.Layer):
    """A layer whose weight has a regularizer."""

    def build(self, input_shape: Any) -> None:
        """Make the weight."""
        shape = (input_shape[-1],)
        self.shift = self.add_weight(shape, "random_normal", "shift", regularizer="l2")

    def call(self, x: Any) -> Any:
        """Shift ``x``."""
        return x + self.shift


class Residual(L.Layer):
    """A layer that holds another one."""

    def __init__(self, layer: Any, **options: Any) -> None:
        super().__init__(**options)
        self.layer = layer

    def call(self, x: Any, training: bool = False) -> Any:
        """Add what the layer returns to ``x``."""
        return x + self.layer(x)


class SelfAttention(L.Layer):
    """A layer that holds a layer of several inputs, and uses masks."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = L.MultiHeadAttention(1, 2)

    def call(self, x: Any, mask: Any = None) -> Any:
        """Attend to the steps of ``x``."""
        return self.attention(x, x, x, query_mask=mask, value_mask=mask)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of ``x``."""
        return mask


class Counting(L.Layer):
    """A layer with a state: the number of calls in training."""

    def build(self, input_shape: Any) -> None:
        """Make the state."""
        self.calls = self.add_weight((), "zeros", "calls", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        """Return ``x``, and count."""
        if training:
            self.calls.assign_add(1.0)
        return x


# -- models ----------------------------------------------------------------------------------------


class Chain(gt.Module):
    """Modules one after the other, in a module."""

    def __init__(self, parts: Sequence[Any]) -> None:
        super().__init__()
        self.parts = list(parts)

    def __call__(self, x: Any, training: bool = False) -> Any:
        """Call them."""
        for part in self.parts:
            x = part(x)
        return x


class ChainModel(gt.Model):
    """Modules one after the other, in a subclass of ``Model``."""

    def __init__(self, parts: Sequence[Any]) -> None:
        super().__init__()
        self.parts = {str(i): part for i, part in enumerate(parts)}

    def call(self, x: Any, training: bool = False) -> Any:  # type: ignore[override]
        """Call them."""
        for part in self.parts.values():
            x = part(x)
        return x


def after(x: Any, parts: Sequence[Callable[[Any], Any]]) -> Any:
    """Return what modules make of ``x``, one after the other."""
    for part in parts:
        x = part(x)
    return x


def functional(shape: Any, parts: Sequence[Any], dtype: str = "float32") -> Any:
    """Return a graph of layers in a row."""
    x = gt.Input(shape, dtype=dtype)
    return gt.Model(x, after(x, parts))


def branches(shape: Any, parts: Sequence[Any], dtype: str = "float32") -> Any:
    """Return a graph in which the last layer but one is called twice, on two branches."""
    x = gt.Input(shape, dtype=dtype)
    *before, shared, last = parts
    h = after(x, before)
    return gt.Model(x, last(L.Add()([shared(h), shared(h * 0.5)])))


def heads(shape: Any, parts: Sequence[Any], dtype: str = "float32", **ends: Any) -> Any:
    """Return a graph with several outputs, by name."""
    x = gt.Input(shape, dtype=dtype)
    h = after(x, parts)
    return gt.Model(x, {name: end(h) for name, end in ends.items()})


# -- callbacks -------------------------------------------------------------------------------------


class Journal(tr.Callback):
    """A callback with a file that it opens when a run begins."""

    def on_train_begin(self) -> None:
        """Open the file."""
        self.lines: list[str] = []
        self.token = object.__repr__(self)
        self.stream = Path("journal.txt").open("w")  # noqa: SIM115

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        """Write a line, if everything here is of this run."""
        if self.token != object.__repr__(self) or self.stream.closed:
            raise RuntimeError("a resumed run put the old token over the one of this run")
        self.stream.flush()
        self.lines.append(f"{epoch} {logs['loss']}")

    def on_train_end(self) -> None:
        """Write the lines, and close the file."""
        self.stream.write("\n".join(self.lines))
        self.stream.close()

    def compared(self) -> Any:
        """Return what a resumed run must have."""
        return self.lines


class Counted(tr.Callback):
    """A callback that counts, and keeps values of the run."""

    def on_train_begin(self) -> None:
        """Begin at 0."""
        self.batches = 0
        self.seen: dict[int, Any] = {}

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        """Count a batch."""
        self.batches += 1

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        """Keep a value by epoch."""
        self.seen[epoch] = (self.batches, logs["loss"])

    def compared(self) -> Any:
        """Return what a resumed run must have."""
        return [self.batches, self.seen]


# -- containers ------------------------------------------------------------------------------------


class Held:
    """A plain object that holds others."""

    def __init__(self, *items: Any) -> None:
        self.items = list(items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and repr(self.items) == repr(other.items)

    __hash__ = object.__hash__


class Pair(NamedTuple):
    """A tuple with names."""

    first: Any
    second: Any
