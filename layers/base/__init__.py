"""What all layers are made of; it knows none of them."""

from __future__ import annotations

from .layer import Layer, takes_training
from .losses import added_losses, constrained, forward_pass, penalties

__all__ = [
    "Layer",
    "added_losses",
    "constrained",
    "forward_pass",
    "penalties",
    "takes_training",
]
