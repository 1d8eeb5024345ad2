"""All rows of the table of accuracy."""

from __future__ import annotations

from .activations import ACTIVATIONS
from .angles import ANGLES_AND_LINES
from .pairs import PAIRS
from .powers import POWERS
from .row import Row
from .special import SPECIAL

__all__ = ["ROWS"]

ROWS: list[Row] = [*POWERS, *ANGLES_AND_LINES, *ACTIVATIONS, *SPECIAL, *PAIRS]
