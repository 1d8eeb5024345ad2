"""Training: optimizers, losses, metrics and the loop over mini-batches."""

from __future__ import annotations

from ..public import publish
from . import losses, metrics, optimizers
from .clipping import clip_by_global_norm, global_norm
from .epochs import History
from .fitting import fit
from .loop import evaluate, predict
from .losses import (
    mean_squared_error,
    sparse_categorical_crossentropy,
    sparse_categorical_crossentropy_from_logits,
)
from .metrics import accuracy
from .optimizer import Optimizer
from .optimizers import *

__all__ = [
    "History",
    "Optimizer",
    "accuracy",
    "clip_by_global_norm",
    "evaluate",
    "fit",
    "global_norm",
    "losses",
    "mean_squared_error",
    "metrics",
    "optimizers",
    "predict",
    "sparse_categorical_crossentropy",
    "sparse_categorical_crossentropy_from_logits",
]
__all__ += optimizers.__all__

publish(__name__)
