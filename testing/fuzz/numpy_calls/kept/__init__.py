"""The intended differences from NumPy, as data from which docs/numpy.md is written."""

from __future__ import annotations

from ..compare import Answer
from ..differences import Difference
from ..targets import Call
from .everywhere import EVERYWHERE
from .numbers import NUMBERS
from .rest import REST
from .statistics import STATISTICS

__all__ = ["DIFFERENCES", "explained"]

DIFFERENCES: tuple[Difference, ...] = (*EVERYWHERE, *NUMBERS, *STATISTICS, *REST)


def explained(call: Call, theirs: Answer, ours: Answer) -> Difference | None:
    """Return the intended difference that explains two answers, if there is one."""
    return next((known for known in DIFFERENCES if known.differs(call, theirs, ours)), None)
