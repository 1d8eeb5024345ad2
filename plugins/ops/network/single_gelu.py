"""``gelu`` and its slope in single precision, in ufuncs alone.

The normal distribution function of ``-u`` is ``exp(-u * u / 2)`` times a smooth function of ``u``,
here a polynomial of ``(u - K) / (u + K)`` divided by ``u + K`` (Schonfelder, "Chebyshev expansions
for the error and related functions", 1978). A library's ``erfc`` computes in double precision and
takes ten times as long. Its argument is rounded besides, which costs digits of small results.

All steps are ufuncs, without choices by condition, so that plans compute them in groups, and share
what both functions need.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt
from typing import Any

import numpy as np

#: The result does not change beyond this number.
_END = 16.0
_K = 4.25
#: Coefficients for 0 to 16, from the constant on; their relative error is 1e-8.
_TAIL = (
    0.7595542073249817,
    -0.625129759311676,
    0.41822752356529236,
    -0.2205153852701187,
    0.08527246862649918,
    -0.019366629421710968,
    -0.0007526989211328328,
    0.002184185665100813,
    -0.0003608204424381256,
    -0.0002317030739504844,
)
#: Within this distance of its root, the slope is a Taylor series with so many terms.
_NEAR, _TERMS = 0.2, 7
_DENSITY = 1 / sqrt(2 * pi)


def is_single(x: Any) -> bool:
    """Return whether an array has single precision.

    Parameters
    ----------
    x
        An array of any backend.
    """
    return str(x.dtype).endswith("float32")


def distribution(xp: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return ``x`` within limits, ``exp(-x * x / 2)``, and the normal distribution function.

    Parameters
    ----------
    xp
        The namespace of the array's library.
    x
        Real numbers in single precision.
    """
    x = xp.minimum(xp.maximum(x, -_END), _END)
    # the square of its first 12 digits is exact; the rest gives a factor near 1
    scaled = x * 4097.0
    high = scaled - (scaled - x)
    rest = (x - high) * (x + high) * -0.5
    factor = 1.0 + rest * (1.0 + rest * (0.5 + rest * (1 / 6)))
    bell = xp.exp(high * high * -0.5) * factor
    size = xp.abs(x)
    inverse = 1.0 / (size + _K)
    place = 1.0 - 2 * _K * inverse
    series = place * _TAIL[-1] + _TAIL[-2]
    for coefficient in _TAIL[-3::-1]:
        series = series * place + coefficient
    tail = bell * (inverse * series)
    return x, bell, tail + _where_positive(xp, x) * (1.0 - 2.0 * tail)


def _where_positive(xp: Any, x: Any) -> Any:
    """Return 1 for positive numbers and 0 for others; products with booleans take much longer."""
    return xp.minimum(xp.maximum(x * 1e37, 0.0), 1.0)


def gelu_kernel(xp: Any, x: Any, lowest: float) -> Any:
    """Return ``x`` times the normal distribution function.

    Parameters
    ----------
    xp
        The namespace of the array's library.
    x
        Real numbers in single precision.
    lowest
        Smaller numbers count as this one: minus infinity times 0 is nan.
    """
    return xp.maximum(x, lowest) * distribution(xp, x)[2]


def slope_kernel(xp: Any, x: Any, root: Any, series: Sequence[float]) -> Any:
    """Return the derivative of ``gelu``.

    Parameters
    ----------
    xp
        The namespace of the array's library.
    x
        Real numbers in single precision.
    root
        Where it is 0, as a ``Split``.
    series
        Its Taylor series there, without the constant.
    """
    x, bell, share = distribution(xp, x)
    slope = share + x * (bell * _DENSITY)
    past = root.distance(x, np.dtype(np.float32))
    near = past * series[_TERMS - 1] + series[_TERMS - 2]
    for factor in series[_TERMS - 3 :: -1]:
        near = near * past + factor
    return slope + _where_positive(xp, _NEAR - xp.abs(past)) * (near * past - slope)
