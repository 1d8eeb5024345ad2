"""Who may run groups as loops of their own: what other emitters than NumPy implement."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .steps import Group, Kind, Step

__all__ = ["Emitter"]


class Emitter:
    """Who runs groups as loops of their own; this one leaves all of them to NumPy."""

    def takes(self, step: Step) -> bool:
        """Return whether a step may be in a group: here, what is elementwise, or a reduction.

        Parameters
        ----------
        step
            The step.
        """
        return step.elementwise or step.kind is Kind.REDUCTION

    def loop(self, group: Group) -> Callable[..., Any] | None:
        """Return what runs a group, ``function(*outputs, *inputs)``, or None to leave it to NumPy.

        Parameters
        ----------
        group
            The group. Outputs are C contiguous arrays that overlap with nothing; inputs are of any
            strides, those without axes may be NumPy scalars.
        """
        return None
