"""``tf.keras.mixed_precision``: gradtape's policies and loss scaling under Keras' names."""

from __future__ import annotations

from ..names import lookup

__all__: list[str] = []

__getattr__ = lookup(__name__)
