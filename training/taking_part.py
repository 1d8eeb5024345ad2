"""Selects who trains: this process alone, or the ranks of a job."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..core.extend import late
from .ranks import ALONE, Alone
from .steps.trainer import Trainer

__all__ = ["ranks_of"]


def ranks_of(group: Any, method: str) -> tuple[Alone, Any]:
    """Return the ranks, and the class of their trainers.

    Parameters
    ----------
    group
        A group of :mod:`gradtape.distributed`, or None.
    method
        The caller, for messages.

    Raises
    ------
    TypeError
        If ``group`` is not a group.
    """
    if group is None:
        return ALONE, Trainer
    parallel = late("training.parallel")  # imported only if needed
    ranks: Alone = parallel.together(group, method)
    if ranks is ALONE:
        return ranks, Trainer
    whole = isinstance(ranks, parallel.WholeRanks)
    return ranks, partial(parallel.WholeTrainer if whole else parallel.ParallelTrainer, ranks)
