"""``tf.keras.backend``: what Keras tells of its settings; they are fixed here."""

from __future__ import annotations

from ..names import lookup
from .utils import clear_session

__all__ = ["clear_session", "epsilon", "floatx", "image_data_format"]


def epsilon() -> float:
    """Return the number that keeps logarithms and quotients finite."""
    return 1e-7


def floatx() -> str:
    """Return the dtype of layers by default."""
    return "float32"


def image_data_format() -> str:
    """Return where the channels of images are by default."""
    return "channels_last"


__getattr__ = lookup(__name__)
