"""Training by the ranks of a job, for ``fit(distributed=group)``."""

from __future__ import annotations

from .together import TrainingRanks as TrainingRanks
from .together import WholeRanks as WholeRanks
from .together import together as together
from .trainers import ParallelTrainer as ParallelTrainer
from .trainers import WholeTrainer as WholeTrainer
