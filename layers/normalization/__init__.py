"""Normalisation layers: statistics of the batch, of each example, or of a data set."""

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
