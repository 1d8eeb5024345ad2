"""Irrational numbers to twice the precision, near which slopes are 0."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, NamedTuple


class Split(NamedTuple):
    """A number as the sum of two.

    Attributes
    ----------
    high
        The number, rounded to double precision.
    low
        What the rounding took.
    """

    high: float
    low: float

    def distance(self, x: Any, dtype: Any) -> Any:
        """Return ``x`` minus the number, exact to the last digits of ``dtype`` near the number.

        Parameters
        ----------
        x
            Tensors or arrays of real numbers.
        dtype
            Their dtype, of NumPy.
        """
        high, low = _parts(self, dtype)
        return (x - high) - low

    def cut(self, digits: int) -> tuple[float, float]:
        """Return the number's first binary digits, and the rest."""
        fraction, exponent = math.frexp(self.high)
        first = math.ldexp(round(math.ldexp(fraction, digits)), exponent - digits)
        return first, (self.high - first) + self.low


@cache
def _parts(number: Split, dtype: Any) -> tuple[float, float]:
    """Return a number, rounded to ``dtype``, and what the rounding took."""
    high = float(dtype.type(number.high)) if dtype.kind == "f" else number.high
    return high, (number.high - high) + number.low
