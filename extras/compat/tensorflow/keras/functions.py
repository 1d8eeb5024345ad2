"""Keras's functions: activations, settings and old names, and helpers for data."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradtape

from ....layers import activations as known
from ....layers.basic.advanced_activations import ramp
from ..dtypes import as_dtype
from ..names import adapts
from ..tensors import Variable, convert_to_tensor

# -- tf.keras.activations --------------------------------------------------------------------------


@adapts("layers.activations.get")
def get(identifier: Any) -> Callable[[Any], Any]:
    """Return the activation for a name or function; None gives :func:`linear`."""
    return known.get(identifier) or linear


@adapts()
def linear(x: Any) -> Any:
    """Return ``x``."""
    return x


@adapts("nn.leaky_relu")
def leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    """Return ``x`` where positive, otherwise ``negative_slope * x``."""
    return gradtape.nn.leaky_relu(x, negative_slope)


@adapts("nn.relu", "layers.ReLU")
def relu(
    x: Any, negative_slope: float = 0.0, max_value: float | None = None, threshold: float = 0.0
) -> Any:
    """Return ``x`` above ``threshold``, otherwise ``negative_slope * (x - threshold)``.

    Values are capped at ``max_value``.
    """
    return ramp(x, negative_slope, max_value, threshold)


# -- tf.keras.backend ------------------------------------------------------------------------------


_settings: dict[str, Any] = {"epsilon": 1e-7, "floatx": "float32"}


def epsilon() -> float:
    """Return the small number that keeps logarithms and quotients finite."""
    return float(_settings["epsilon"])


def set_epsilon(value: float) -> None:
    """Set what :func:`epsilon` returns; gradtape's losses always use 1e-7."""
    _settings["epsilon"] = float(value)


def floatx() -> str:
    """Return the default dtype of layers and inputs."""
    return str(_settings["floatx"])


def set_floatx(value: str) -> None:
    """Set the default dtype of layers and inputs to ``float16``, ``float32`` or ``float64``."""
    if value not in ("float16", "float32", "float64"):
        raise ValueError(f"set_floatx: expected float16, float32 or float64, got {value!r}")
    _settings["floatx"] = value


def image_data_format() -> str:
    """Return the default position of image channels."""
    return "channels_last"


def set_image_data_format(data_format: str) -> None:
    """Refuse any format except ``"channels_last"``; layers take ``data_format``."""
    if data_format != "channels_last":
        raise ValueError(
            f"set_image_data_format: {data_format!r} is not supported here: pass "
            f"data_format={data_format!r} to each layer"
        )


def clear_session(free_memory: bool = True) -> None:
    """Do nothing: unused models are freed, and there is no session."""


@adapts("Variable")
def variable(value: Any, dtype: Any = None, name: Any = None, constraint: Any = None) -> Any:
    """Return a variable, by default of dtype :func:`floatx`."""
    return Variable(value, dtype=as_dtype(dtype or floatx()), name=name, constraint=constraint)


@adapts("Tensor.numpy")
def get_value(x: Any) -> Any:
    """Return the value as a NumPy array."""
    return convert_to_tensor(x).numpy()


def set_value(x: Any, value: Any) -> None:
    """Set the value of a variable."""
    x.assign(value)


def batch_get_value(tensors: Any) -> list[Any]:
    """Return the values of several variables."""
    return [get_value(x) for x in tensors]


def batch_set_value(tuples: Any) -> None:
    """Set the values of variables, given pairs of variables and values."""
    for x, value in tuples:
        x.assign(value)


@adapts("Tensor.shape")
def int_shape(x: Any) -> Any:
    """Return the shape, with None for unknown sizes."""
    return tuple(x.shape.as_list())


def is_keras_tensor(x: Any) -> bool:
    """Return whether ``x`` is made from an ``Input``, and so has no value."""
    return isinstance(x, gradtape.Tensor) and not hasattr(x.array, "__array__")


@adapts("tensordot")
def dot(x: Any, y: Any) -> Any:
    """Return the product along the last axis of ``x`` and the second-to-last of ``y``."""
    x, y = convert_to_tensor(x), convert_to_tensor(y)
    return gradtape.tensordot(x, y, [[x.ndim - 1], [max(y.ndim - 2, 0)]])


# -- tf.keras.utils --------------------------------------------------------------------------------


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


# -- the namespaces --------------------------------------------------------------------------------

#: By namespace, its documentation and its names.
SPACES = {
    "keras.activations": (
        "``tf.keras.activations``: functions of one tensor.",
        "get leaky_relu linear relu",
    ),
    "keras.backend": (
        "``tf.keras.backend``: Keras's settings, and old names of functions.",
        (
            "batch_get_value batch_set_value clear_session dot epsilon floatx get_value "
            "image_data_format int_shape is_keras_tensor set_epsilon set_floatx "
            "set_image_data_format set_value variable"
        ),
    ),
    "keras.utils": (
        "``tf.keras.utils``: arrays, seeds, and batched data.",
        (
            "Progbar PyDataset Sequence img_to_array normalize pad_sequences plot_model "
            "register_keras_serializable set_random_seed to_categorical"
        ),
    ),
}
