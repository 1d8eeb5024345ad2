"""Derivatives of functions that are scaled to be of moderate size, at any argument.

Their recurrences are differences of nearly equal numbers where the argument is large. There, the
derivatives are computed from an integral of positive numbers, or from an asymptotic series.
"""

from __future__ import annotations

from math import comb, perm, pi, sqrt
from typing import Any

import numpy as np

from ...core.extend import SCALARS, F, Op, broadcast_shapes, kind_of
from ..ops.common.op_builders import shapes_of
from .building import NAMES, helper, refused, scipys

__all__: list[str] = []

Array = np.ndarray[Any, Any]


def _erfcx(v: Array, z: Array, order: int) -> Array:
    """Return a derivative of ``erfcx``.

    It is ``(-2)**n * 2 / sqrt(pi)`` times the integral of ``t**n * exp(-t*t - 2*z*t)`` over
    positive ``t`` (DLMF 7.7.1), by the trapezoidal rule in ``log(t)``. Its error is about
    ``exp(-pi**2 / 2 / step)``, since the integrand is analytic in a strip of half-width pi / 4.
    """
    step = 0.125
    high = np.maximum(z, 0.5)
    peak = np.log(np.minimum((order + 1) / (2 * high), sqrt((order + 1) / 2)))
    low, total = peak - 45 / (order + 1) - 2, np.zeros_like(z)
    for i in range(int((45 / (order + 1) + 7) / step)):
        t = np.exp(low + i * step)
        total += t ** (order + 1) * np.exp(-t * (t + 2 * high))
    far = (-2.0) ** order * 2 / sqrt(pi) * step * total
    before, near = np.full_like(z, 2 / sqrt(pi)), scipys("erfcx")(z)
    for n in range(order):  # all terms have the same sign for negative z
        before, near = near, 2 * z * near + (2 * n * before if n else -before)
    return np.where(z > 0.5, far, near)


def _dawson(name: str, factor: complex) -> Any:
    """Return the function for derivatives of ``dawsn`` or ``wofz``.

    DLMF 7.10.3, and 7.12.1 for large ``z``, in the upper half-plane.
    """

    def slope(v: Array, z: Array, order: int) -> Array:
        before, near = np.full_like(z, -factor), scipys(name)(z)
        for n in range(order):
            before, near = near, -2 * z * near - (2 * n * before if n else before)
        wide = (np.abs(z) >= 7) & (z.imag >= 0)
        far, large = np.zeros_like(z), np.where(wide, z, np.inf)
        term = factor / (2 * large)
        for k in range(30):
            far += term * perm(2 * k + order, order) * (-1.0) ** order
            term = term * (2 * k + 1) / (2 * large * large)
        return np.where(wide, far / large**order, near)

    return slope


def _scaled_bessel(name: str, sign: float) -> Any:
    """Return the function for derivatives of ``ive`` or ``kve``: DLMF 10.29.1, and 10.40."""

    def slope(v: Array, z: Array, order: int) -> Array:
        # f' is sign * (f(v - 1) + f(v + 1)) / 2 - shift * f(v), and so on
        near, shift = np.zeros_like(z), np.where(z < 0, -sign, sign)
        for k in range(order + 1):
            weight = comb(order, k) * (sign / 2) ** (order - k) * (-shift) ** k
            for j in range(order - k + 1):
                neighbour = scipys(name)(v + order - k - 2 * j, z)
                near = near + weight * comb(order - k, j) * neighbour
        size = np.abs(z)
        wide = (size > 40) & (size > v * v)
        large = np.where(wide, size, np.inf)
        term, far = np.ones_like(z), np.zeros_like(z)
        for k in range(25):
            power = np.prod([-0.5 - k - i for i in range(order)])
            far += term * power
            term = term * -sign * (4 * v * v - (2 * k + 1) ** 2) / (8 * (k + 1) * large)
        scale = 1 / np.sqrt(2 * pi * large) if sign > 0 else np.sqrt(pi / (2 * large))
        parity = np.where(v % 2 == order % 2, 1.0, -1.0)  # negative z has whole orders only
        whole = np.where(z < 0, np.where(v == np.round(v), parity, np.nan), 1.0)
        return np.where(wide, whole * scale * far / large**order, near)

    return slope


_SLOPES = {
    "erfcx": _erfcx,
    "dawsn": _dawson("dawsn", 1.0),
    "wofz": _dawson("wofz", 2j / sqrt(pi)),
    "ive": _scaled_bessel("ive", 1.0),
    "kve": _scaled_bessel("kve", -1.0),
}


def _kernel(xp: Any, v: Any, z: Any, *, function: str, order: int) -> Any:
    _check(function, order)

    dtype = _result_dtype((v, z))
    wide = np.broadcast_arrays(*[np.asarray(x, np.result_type(x, np.float64)) for x in (v, z)])
    with np.errstate(all="ignore"):
        found: Array = _SLOPES[function](*wide, order)
    return found.astype(dtype)


def _result_dtype(given: Any) -> Any:
    dtype = np.result_type(*[x if type(x) in SCALARS else x.dtype for x in given])
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


#: More derivatives than anyone takes; a file may ask for any number.
_MOST = 64


def _check(function: Any, order: Any) -> None:
    if function not in _SLOPES or type(order) is not int or not 0 <= order <= _MOST:
        raise ValueError(
            f"function {function!r:.40} and order {order!r:.20}: pass one of "
            f"{', '.join(_SLOPES)}, and an order from 0 to {_MOST}"
        )


def _infer(v: Any, z: Any, function: Any, order: Any) -> Any:
    _check(function, order)
    return broadcast_shapes(*shapes_of((v, z)), op="scipy::slope"), _result_dtype((v, z))


def _slope(v: Any, z: Any, function: str, order: int) -> Any:
    """Return a derivative of ``ive``, ``kve``, ``erfcx``, ``dawsn`` or ``wofz``, for any ``z``."""
    return F["scipy::slope"](v, z, function=function, order=order)


helper(
    Op(
        "scipy::slope",
        _kernel,
        gradients={
            "v": lambda g, function: refused(function, "v", "the order of a Bessel function")(g),
            "z": lambda g, v, z, function, order: g * _slope(v, z, function, order + 1),
        },
        infer=_infer,
        host=True,
        verified=True,
        broadcasts=True,
        holomorphic=True,
        batch="elementwise",
        doc="Return a derivative of a function of SciPy with respect to its last argument.",
    ),
    "slope",
    _slope,
)


def _real_slope(function: str, z: Any, otherwise: Any, v: Any = 0.0) -> Any:
    """Return the derivative of a scaled function; ``otherwise()`` for complex numbers."""
    return otherwise() if kind_of(z.dtype) == "c" else _slope(v, z, function, 1)


NAMES.update(real_slope=_real_slope)
