"""``tf.keras.backend``: Keras's settings, and old names of functions."""

from __future__ import annotations

from typing import Any

import gradtape

from ..dtypes import as_dtype
from ..names import adapts, lookup
from ..tensors import Variable, convert_to_tensor

__all__ = (
    "batch_get_value batch_set_value clear_session dot epsilon floatx get_value "
    "image_data_format int_shape is_keras_tensor set_epsilon set_floatx set_image_data_format "
    "set_value variable"
).split()

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


__getattr__ = lookup(__name__)
