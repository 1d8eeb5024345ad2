"""Keras's functions: activations, settings and old names, and helpers for data."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import gradtape

from ....core.extend import snake_case
from ....layers import activations as known
from ....layers.basic.advanced_activations import ramp
from ....training import described
from ..dtypes import as_dtype
from ..names import adapts
from ..tensors import Variable

# -- tf.keras.activations --------------------------------------------------------------------------


@adapts("layers.activations.get")
def get(identifier: Any) -> Callable[[Any], Any]:
    """Return the activation for a name or function; None gives :func:`linear`."""
    return known.get(identifier) or linear


@adapts()
def linear(x: Any) -> Any:
    """Return ``x``."""
    return x


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


#: How many objects without a name have been made, by class name.
made: Counter[str] = Counter()


def unique(name: str) -> str:
    """Return a layer's name for its class, with a number from the second on."""
    name = snake_case(name)
    made[name] += 1
    return name if made[name] == 1 else f"{name}_{made[name] - 1}"


def clear_session(free_memory: bool = True) -> None:
    """Let the names of layers count from 1 again; there is no session."""
    made.clear()


@adapts("Variable")
def variable(value: Any, dtype: Any = None, name: Any = None, constraint: Any = None) -> Any:
    """Return a variable, by default of dtype :func:`floatx`."""
    return Variable(value, dtype=as_dtype(dtype or floatx()), name=name, constraint=constraint)


# -- tf.keras.utils --------------------------------------------------------------------------------


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


@adapts("plot.model")
def plot_model(model: Any, to_file: Any = "model.png", *options: Any, **ignored: Any) -> Any:
    """Draw a model to a file and return the picture; see :func:`gradtape.plot.model`."""
    return gradtape.plot.model(model, to_file)


custom_object_scope = CustomObjectScope = described.custom_object_scope
get_custom_objects = described.get_custom_objects
register_keras_serializable = described.register_keras_serializable


# -- the namespaces --------------------------------------------------------------------------------

#: By namespace, its documentation and its names.
SPACES = {
    "keras.activations": (
        "``tf.keras.activations``: functions of one tensor.",
        "get linear relu",
    ),
    "keras.backend": (
        "``tf.keras.backend``: Keras's settings, and old names of functions.",
        (
            "clear_session epsilon floatx image_data_format set_epsilon set_floatx "
            "set_image_data_format variable"
        ),
    ),
    "keras.saving": (
        "``tf.keras.saving``: files, and the names of your own classes in them.",
        "CustomObjectScope custom_object_scope get_custom_objects register_keras_serializable",
    ),
    "keras.utils": (
        "``tf.keras.utils``: arrays, seeds, and batched data.",
        (
            "CustomObjectScope custom_object_scope get_custom_objects "
            "normalize plot_model "
            "register_keras_serializable set_random_seed to_categorical"
        ),
    ),
}
