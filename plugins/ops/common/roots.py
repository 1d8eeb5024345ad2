"""Irrational numbers to twice the precision, near which slopes are 0."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

__all__ = ["Split"]


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
        high = float(dtype.type(self.high)) if dtype.kind == "f" else self.high
        return (x - high) - ((self.high - high) + self.low)

    def cut(self, digits: int) -> tuple[float, float]:
        """Return the number's first binary digits, and the rest."""
        fraction, exponent = math.frexp(self.high)
        first = math.ldexp(round(math.ldexp(fraction, digits)), exponent - digits)
        return first, (self.high - first) + self.low
