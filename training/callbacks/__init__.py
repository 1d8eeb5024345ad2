"""Callbacks for :func:`gradtape.training.fit`, with Keras's names, arguments and defaults."""

from __future__ import annotations

from .callback import Callback, LambdaCallback
from .rates import LearningRateScheduler, ReduceLROnPlateau
from .stopping import EarlyStopping, TerminateOnNaN
from .tensorboard import TensorBoard
from .writing import BackupAndRestore, CSVLogger, ModelCheckpoint

__all__ = [
    "BackupAndRestore",
    "CSVLogger",
    "Callback",
    "EarlyStopping",
    "LambdaCallback",
    "LearningRateScheduler",
    "ModelCheckpoint",
    "ReduceLROnPlateau",
    "TensorBoard",
    "TerminateOnNaN",
]
