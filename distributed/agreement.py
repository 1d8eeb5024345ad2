"""What ranks compare before they do a step together: that they run the same code."""

from __future__ import annotations

from typing import Any
from zlib import crc32

import numpy as np

from ..core.errors import DistributedError
from ..core.extend import told_by_ranks

__all__ = ["agree"]


def agree(group: Any, what: str) -> None:
    """Raise on every rank if ranks say different things; collective.

    Parameters
    ----------
    group
        A :class:`Group`.
    what
        What this rank runs, in words.

    Raises
    ------
    DistributedError
        If another rank says something else; it names each.
    """
    found = group.communicator
    if found.size == 1:
        return
    code = crc32(what.encode())
    most, least = found.all_reduce(np.array([code, -code]), "max").tolist()
    if most != -least:
        raise DistributedError(f"ranks run different code: {told_by_ranks(found, what)}")
