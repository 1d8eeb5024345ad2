"""Layers that shift and scale: by batches, by examples, by data sets."""

from __future__ import annotations

from .adapted import Normalization
from .batch_norm import BatchNorm, BatchNormalization
from .layer_norm import GroupNormalization, LayerNormalization, RMSNormalization, UnitNormalization

__all__ = [
    "BatchNorm",
    "BatchNormalization",
    "GroupNormalization",
    "LayerNormalization",
    "Normalization",
    "RMSNormalization",
    "UnitNormalization",
]
