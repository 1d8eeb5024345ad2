"""The intended differences from NumPy, as data from which docs/numpy.md is written."""

from __future__ import annotations

from fuzz.numpy_calls.compare import Answer
from fuzz.numpy_calls.differences import Difference
from fuzz.numpy_calls.kept.everywhere import EVERYWHERE
from fuzz.numpy_calls.kept.numbers import NUMBERS
from fuzz.numpy_calls.kept.rest import REST
from fuzz.numpy_calls.kept.statistics import STATISTICS
from fuzz.numpy_calls.targets import Call

__all__ = ["DIFFERENCES", "explained"]

DIFFERENCES: tuple[Difference, ...] = (*EVERYWHERE, *NUMBERS, *STATISTICS, *REST)


def explained(call: Call, theirs: Answer, ours: Answer) -> Difference | None:
    """Return the intended difference that explains two answers, if there is one."""
    return next((known for known in DIFFERENCES if known.differs(call, theirs, ours)), None)
