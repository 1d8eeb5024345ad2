"""The base classes of layers. Nothing here depends on a particular layer."""

from __future__ import annotations

from ...core.extend import (
    added_losses,
    constrained,
    forward_pass,
    keep_mask,
    mask_of,
    penalties,
    penalty,
)
from .calls import takes_training
from .layer import Layer
from .weights import stateful_layers, states_continued, states_kept

__all__ = [
    "Layer",
    "added_losses",
    "constrained",
    "forward_pass",
    "keep_mask",
    "mask_of",
    "penalties",
    "penalty",
    "stateful_layers",
    "states_continued",
    "states_kept",
    "takes_training",
]
