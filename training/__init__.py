"""Training: optimizers, losses, metrics and the loop over mini-batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..public import publish
from . import callbacks, losses, metrics, optimizers, schedules, summary

# from where their names are listed: type checkers do not add lists
from .callbacks.callback import *
from .callbacks.control import *
from .callbacks.progress import *
from .callbacks.writing import *
from .fitting import fit
from .losses import (
    mean_squared_error,
    sparse_categorical_crossentropy,
    sparse_categorical_crossentropy_from_logits,
)
from .measuring import evaluate, predict
from .metrics import accuracy
from .optimizers.adaptive import *
from .optimizers.classic import *
from .optimizers.lbfgs import *
from .optimizers.optimizer import Optimizer
from .optimizers.options import clip_by_global_norm, global_norm
from .runs.session import History

if TYPE_CHECKING:
    from ..saving.checkpoints import Checkpoint, CheckpointManager, RestoreReport

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "History",
    "Optimizer",
    "RestoreReport",
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
    "schedules",
    "sparse_categorical_crossentropy",
    "sparse_categorical_crossentropy_from_logits",
    "summary",
]
__all__ += callbacks.__all__
__all__ += optimizers.adaptive.__all__
__all__ += optimizers.classic.__all__
__all__ += optimizers.lbfgs.__all__

# checkpoints are in saving, which imports training
publish(__name__, above={".saving.checkpoints": "Checkpoint CheckpointManager RestoreReport"})
