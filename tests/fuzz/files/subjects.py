"""Valid files to change, and their values when they are loaded."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Self, cast

import numpy as np

import gradtape as gt
from gradtape.saving.container.hdf5.file import SafeFile
from gradtape.saving.container.hdf5.write import to_bytes

__all__ = ["Parts", "Subject", "behaviour", "subjects"]

_ROWS = np.linspace(-1.0, 1.0, 6, dtype="float32").reshape(2, 3)


@dataclass
class Parts:
    """The contents of a file, independent of how they are written."""

    attributes: dict[str, str]
    texts: dict[str, str]
    arrays: dict[str, Any]

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Self:
        """Read a file of format 2."""
        with SafeFile(path) as file:
            file.check()
            return cls(
                {name: file.attribute(name) for name in ("format", "format_version")},
                {name: file.text(name) for name in sorted(file.texts)},
                {name: file.array(name) for name in sorted(set(file.sizes) - file.texts)},
            )

    def encoded(self, compression: str | None = None) -> bytes:
        """Return a file with these contents, with correct checksums and digests."""
        return bytes(to_bytes(self.attributes, self.texts, self.arrays, compression))


@dataclass
class Subject:
    """A valid file.

    Attributes
    ----------
    name
        A name for messages.
    data
        Its bytes.
    parts
        Its contents.
    behaviour
        Its values when it is loaded; see :func:`behaviour`.
    """

    name: str
    data: bytes
    parts: Parts
    behaviour: list[Any]


def _plain() -> gt.Module:
    """Return a module with variables of many kinds, in containers of each kind."""
    module: Any = gt.Module("plain")
    for dtype in ("bool", "int8", "uint16", "int64", "float16", "float64", "complex64"):
        setattr(module, dtype, gt.Variable(np.arange(6).reshape(2, 3).astype(dtype)))
    module.parts = [gt.Variable(1.0), {"deep": (gt.Variable(2.0), "text", 0.5, None)}]
    module.large = gt.Variable(np.zeros((40, 50), "float32"))
    module.empty = gt.Variable(np.zeros((0, 3), "float32"))
    return cast(gt.Module, module)


class _Traced(gt.Module):
    """A module with graphs that contain each kind of node."""

    def __init__(self) -> None:
        super().__init__("traced")
        self.w = gt.Variable(np.arange(6.0, dtype="float32").reshape(3, 2))
        self.count = gt.Variable(0)
        self.layer = gt.layers.Dense(2, activation="tanh")
        self.layer(_ROWS)
        self.up = self

    @gt.function(input_signature=[gt.TensorSpec(["rows", 3])])
    def project(self, x: Any, n: int = 2) -> Any:
        @gt.custom_gradient
        def cube(x: Any) -> Any:
            return x * x * x, lambda g: 10.0 * g * x * x

        self.count.assign_add(n)
        y = gt.cond(gt.sum(x) > 0, lambda: x, lambda: gt.sin(x))
        spread = gt.ones((x.shape[0] // 2 + 1, 2))
        return cube(y) @ self.w, {"c": x + gt.constant([1.0, 2.0, 3.0]), "s": spread}


def _layers() -> gt.Module:
    """Return a module with layers, which are restored with their classes."""
    layers = gt.layers
    model = layers.Sequential(
        [layers.Dense(3, activation="relu"), layers.BatchNorm(), layers.Dense(2)]
    )
    model(_ROWS)
    model(_ROWS, training=True)
    return cast(gt.Module, model)


class _Marking(gt.layers.Layer):
    """A user's layer, whose mask is a graph in the file."""

    def call(self, x: Any, mask: Any = None) -> Any:
        return gt.concatenate([x, x[:, ::-1]], axis=1)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return None if mask is None else gt.concatenate([mask, mask], axis=1)


def _network() -> gt.Module:
    """Return a functional model: recurrent, convolutional, with masks and functions."""
    layers: Any = gt.layers
    words, image = gt.Input((4,), dtype="int32"), gt.Input((5, 5, 2))
    x = layers.Embedding(7, 2, mask_zero=True)(words)
    x = layers.LSTM(2, return_sequences=True, kernel_regularizer="l2")(_Marking()(x))
    x = layers.Bidirectional(layers.GRU(2))(layers.TimeDistributed(layers.Dense(2))(x))
    y = layers.Conv2D(2, 3, bias_constraint="max_norm", dilation_rate=1)(image)
    y = layers.Flatten()(layers.MaxPooling2D(2, 1)(layers.BatchNormalization()(y)))
    y = layers.Lambda(lambda y: gt.tanh(y) * 2.0)(y)
    both = layers.Dense(2, activation="softmax")(layers.Concatenate()([x, y]))
    return cast(gt.Module, gt.Model([words, image], {"both": both, "image": y}))


def _training() -> gt.Module:
    """Return a module with all objects of training: optimizers, schedules, metrics, layers."""
    layers, training = gt.layers, gt.training
    module: Any = gt.Module("training")
    schedule = training.schedules.PiecewiseConstantDecay([2, 4], [0.1, 0.01, 0.001])
    module.model = layers.Sequential(
        [
            layers.Normalization(),
            layers.Reshape((3, 1)),
            layers.RNN([layers.LSTMCell(2), layers.GRUCell(1)], stateful=True),
            layers.Dropout(0.5, seed=1),
        ]
    )
    module.model.layers[0].adapt(_ROWS)
    module.model(_ROWS, training=True)
    module.optimizers = [
        training.Adam(schedule, ema_momentum=0.9, use_ema=True),
        training.SGD(0.1, momentum=0.9, gradient_accumulation_steps=2),
        training.LBFGS(),
    ]
    w = gt.Variable([1.0, 2.0])
    for optimizer in module.optimizers[:2]:
        optimizer.apply_gradients([(gt.ones(2), w)])
    module.w = w
    module.metrics = [
        training.metrics.AUC(5),
        training.metrics.ConfusionMatrix(2),
        training.metrics.Precision([0.2, 0.5]),
    ]
    for metric in module.metrics:
        metric.update_state(np.array([0, 1]), np.array([0, 1]))
    return cast(gt.Module, module)


_MAKERS: dict[str, tuple[Callable[[], gt.Module], str | None]] = {
    "plain": (_plain, None),
    "traced": (_Traced, None),
    "layers": (_layers, None),
    "network": (_network, None),
    "training": (_training, None),
    "compressed": (_plain, "gzip"),
}


@cache
def subjects() -> list[Subject]:
    """Return all subjects; they are made once."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "subject.h5")
        for name, (make, compression) in _MAKERS.items():
            with warnings.catch_warnings(action="ignore"):  # about float64, which is intended
                gt.save(make(), path)
            parts = Parts.of(path)
            data = parts.encoded(compression)
            with open(path, "wb") as stream:
                stream.write(data)
            found.append(Subject(name, data, parts, behaviour(path)))
    return found


def behaviour(path: str) -> list[Any]:
    """Return the values of a loaded file; equal values mean the same model."""
    model = gt.load(path)
    found: list[Any] = [(name, _bytes(v)) for name, v in sorted(model.named_variables.items())]
    found += [("tree", repr(_plain_values(model)))]
    if hasattr(model, "project"):
        first, second = model.project(_ROWS)
        found += [("project", [_bytes(x) for x in (first, *second.values(), model.count)])]
    elif isinstance(model, gt.layers.Sequential):
        found += [("call", _bytes(model(_ROWS)))]
    return found


def _bytes(x: Any) -> tuple[str, tuple[int, ...], bytes]:
    array = np.asarray(x.numpy())
    return array.dtype.name, array.shape, array.tobytes()


def _plain_values(module: Any) -> list[Any]:
    return [
        (type(item).__name__, item.name, sorted(vars(item)))
        for item in (module, *module.submodules)
    ]
