"""Training: optimizers, losses, metrics and the loop over mini-batches."""

from __future__ import annotations

from ..public import publish
from . import losses, metrics
from .fitting import History, fit
from .loop import evaluate, predict
from .losses import (
    mean_squared_error,
    sparse_categorical_crossentropy,
    sparse_categorical_crossentropy_from_logits,
)
from .metrics import accuracy
from .optimizer import Optimizer
from .optimizers import SGD, Adam

__all__ = [
    "SGD",
    "Adam",
    "History",
    "Optimizer",
    "accuracy",
    "evaluate",
    "fit",
    "losses",
    "mean_squared_error",
    "metrics",
    "predict",
    "sparse_categorical_crossentropy",
    "sparse_categorical_crossentropy_from_logits",
]

publish(__name__)
