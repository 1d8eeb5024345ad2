"""Checkpoints: the state of a training run in files; users find them in ``gradtape.training``."""

from .checkpoint import Checkpoint, RestoreReport
from .manager import CheckpointManager, Keeper

__all__ = ["Checkpoint", "CheckpointManager", "Keeper", "RestoreReport"]
