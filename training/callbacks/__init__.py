"""Callbacks for :func:`gradtape.training.fit`, with Keras' names, arguments and defaults."""

from __future__ import annotations

from .callback import Callback, LambdaCallback
from .rates import LearningRateScheduler, ReduceLROnPlateau
from .stopping import EarlyStopping, TerminateOnNaN
from .writing import CSVLogger, ModelCheckpoint

__all__ = [
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "TerminateOnNaN",
]
