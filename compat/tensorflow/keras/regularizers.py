"""``tf.keras.regularizers``: gradtape's own, which have Keras' names and arguments."""

from __future__ import annotations

from ..names import lookup

__all__: list[str] = []
__getattr__ = lookup(__name__)
