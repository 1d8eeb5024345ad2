"""What a row gives to the one who times it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Made"]


class Made(NamedTuple):
    """What a contender runs, the arrays that tell whether it is right, and what it changes."""

    run: Callable[[], Any]
    result: Callable[[], list[np.ndarray]]
    changed: Callable[[], Any] = list
