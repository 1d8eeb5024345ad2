"""Checkpoints: the state of a training run in files; users find them in ``gradtape.training``."""

from .checkpoint import Checkpoint
from .manager import CheckpointManager
from .restoring import RestoreReport
from .runs import Keeper

__all__ = ["Checkpoint", "CheckpointManager", "Keeper", "RestoreReport"]
