"""The tables of NumPy's ziggurats, which NumPy does not export.

A ziggurat covers a density with 256 layers of one area. A random word picks a layer and a place in
it; nearly all places lie below the density.

References
----------
Marsaglia and Tsang, "The ziggurat method for generating random variables", 2000.
Doornik, "An improved ziggurat method to generate normal random samples", 2005.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from functools import lru_cache
from math import nextafter, sqrt
from typing import NamedTuple

import numpy as np


class Ziggurat(NamedTuple):
    """The layers of a density, from the lowest one up.

    Attributes
    ----------
    start
        Where the tail begins.
    widths
        The width of each layer, divided by the number of places in it; of the lowest layer, that
        of a rectangle of its area.
    limits
        The number of places in each layer that lie below the density for certain.
    heights
        The density at the end of each layer.
    """

    start: Decimal
    widths: list[float]
    limits: list[int]
    heights: list[float]


_EXACT = Context(prec=50)
#: Where the tails of the densities begin, so that 256 layers fit exactly.
_NORMAL_TAIL = Decimal("3.6541528853610087963519472518")
_EXPONENTIAL_TAIL = Decimal("7.6971174701310497140446280481")


@lru_cache
def normal(single: bool) -> Ziggurat:
    """Return the table of the normal distribution, without the factor that makes its integral 1.

    NumPy's table was computed in double precision. Its rounding errors are part of the table: one
    height of 256 is not the nearest number to the density, and the area is four units in the last
    place too small.

    Parameters
    ----------
    single
        Whether the numbers are of single precision.
    """
    places, area = (23 if single else 52), float.fromhex("0x1.43016a5a4372ep-8")
    start = float(_NORMAL_TAIL)
    x, height = [start], [_exp(-0.5 * start * start)]
    for layer in range(254, 0, -1):
        x.append(sqrt(-2 * _log(area / x[-1] + height[-1])))
        height.append(_exp(-0.5 * x[-1] * x[-1]))
        if layer == 38:
            height[-1] = nextafter(height[-1], 1.0)
    x, height = [area / height[0], *x[::-1]], [1.0, *height[::-1]]
    inside = [x[255] / x[0], 0.0, *(x[i - 1] / x[i] for i in range(2, 256))]
    widths = [a * 2.0**-places for a in x]
    limits = [round(share * 2.0**places) for share in inside]
    return Ziggurat(_NORMAL_TAIL, _rounded(widths, single), limits, _rounded(height, single))


@lru_cache
def exponential(single: bool) -> Ziggurat:
    """Return the table of the exponential distribution, which was computed exactly and rounded.

    Those of single precision were rounded to 9 decimal digits first.

    Parameters
    ----------
    single
        Whether the numbers are of single precision.
    """
    places, tail = (23 if single else 53), _EXPONENTIAL_TAIL
    with localcontext(_EXACT):
        x, height = [tail], [(-tail).exp()]
        area = (tail + 1) * height[0]
        for _ in range(254):
            height.append(area / x[-1] + height[-1])
            x.append(-height[-1].ln())
        x, height = [area / height[0], *x[::-1]], [Decimal(1), *height[::-1]]
        inside = [x[255] / x[0], Decimal(0), *(x[i - 1] / x[i] for i in range(2, 256))]
        if single:
            limits = [round(share * 2**places) for share in inside]
        else:  # the last bit of these integers is 0
            limits = [2 * int(share * 2**52) for share in inside]
    table = [[float(y) * 2.0**-places for y in x], [*map(float, height)]]
    if single:
        table = [[float(f"{y:.8e}") for y in column] for column in table]
    widths, heights = (_rounded(column, single) for column in table)
    return Ziggurat(tail, widths, limits, heights)


def _exp(x: float) -> float:
    """Return the nearest number to an exponential, whatever the machine's library gives."""
    return float(_EXACT.exp(Decimal(x)))


def _log(x: float) -> float:
    return float(_EXACT.ln(Decimal(x)))


def _rounded(numbers: Sequence[float], single: bool) -> list[float]:
    return [float(np.float32(x)) if single else x for x in numbers]
