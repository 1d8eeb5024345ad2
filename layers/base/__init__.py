"""What all layers are made of; it knows none of them."""

from __future__ import annotations

from .layer import Layer, takes_training

__all__ = ["Layer", "takes_training"]
