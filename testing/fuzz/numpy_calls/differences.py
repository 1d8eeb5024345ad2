"""Where gradtape differs from NumPy on purpose: in data, from which docs/numpy.md is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from .compare import Answer
from .targets import Call

__all__ = ["DIFFERENCES", "Difference", "explained"]


@dataclass(frozen=True)
class Difference:
    """A difference that is kept.

    Attributes
    ----------
    what
        The functions, for the page.
    differs
        Whether a call, with NumPy's answer and ours, differs in this way.
    reason
        What differs and why, for the page.
    example
        An expression of ``xp`` (numpy or gradtape) and ``array`` whose answers differ so.
    """

    what: str
    differs: Callable[[Call, Answer, Answer], bool]
    reason: str
    example: str


DIFFERENCES: tuple[Difference, ...] = ()


def explained(call: Call, theirs: Answer, ours: Answer) -> Difference | None:
    """Return the kept difference that explains two answers, if there is one."""
    return next((known for known in DIFFERENCES if known.differs(call, theirs, ours)), None)
