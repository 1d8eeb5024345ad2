"""Orthogonal polynomials, Legendre, hypergeometric and elliptic functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.extend import SCALARS, F, Op, broadcast_shapes
from ..ops.common.op_builders import shapes_of
from .building import NAMES, NoDerivative, helper, ufunc

_N = NoDerivative("the degree of a polynomial")
_P = NoDerivative("the parameter of a polynomial")


def _below(n: Any) -> Any:
    """Return the degree minus 1, but 0 for a constant: its derivative has the factor ``n``."""
    if type(n) in SCALARS:
        return 0 if n == 0 else n - 1
    return F.where(n == 0, n, n - 1)


def _any(n: Any) -> Any:
    """Return 1, or 0 for a constant."""
    return int(n != 0) if type(n) in SCALARS else F.cast_like(n != 0, n)


NAMES.update(below=_below, any=_any)
_NOT = "any(n) * "
ufunc("eval_chebyt", "DLMF 18.9.21", complex=True, n=_N, x="n * eval_chebyu(below(n), x)")
ufunc(
    "eval_chebyu",
    "DLMF 18.7.4, 18.9.19",
    complex=True,
    n=_N,
    x=_NOT + "2 * eval_gegenbauer(below(n), 2.0, x)",
)
ufunc("eval_chebyc", "DLMF 18.1.3", complex=True, n=_N, x="n * eval_chebys(below(n), x)")
ufunc(
    "eval_chebys",
    "DLMF 18.1.3",
    complex=True,
    n=_N,
    x=_NOT + "eval_gegenbauer(below(n), 2.0, x / 2)",
)
ufunc(
    "eval_sh_chebyt",
    "DLMF 18.7.7",
    complex=True,
    n=_N,
    x="2 * n * eval_sh_chebyu(below(n), x)",
)
ufunc(
    "eval_sh_chebyu",
    "DLMF 18.7.8",
    complex=True,
    n=_N,
    x=_NOT + "4 * eval_gegenbauer(below(n), 2.0, 2 * x - 1)",
)
ufunc(
    "eval_legendre",
    "DLMF 18.7.9, 18.9.19",
    complex=True,
    n=_N,
    x=_NOT + "eval_gegenbauer(below(n), 1.5, x)",
)
ufunc(
    "eval_sh_legendre",
    "DLMF 18.7.10",
    complex=True,
    n=_N,
    x=_NOT + "2 * eval_gegenbauer(below(n), 1.5, 2 * x - 1)",
)
ufunc(
    "eval_gegenbauer",
    "DLMF 18.9.19",
    complex=True,
    n=_N,
    alpha=_P,
    x=_NOT + "2 * alpha * eval_gegenbauer(below(n), alpha + 1, x)",
)
ufunc(
    "eval_jacobi",
    "DLMF 18.9.15",
    complex=True,
    n=_N,
    alpha=_P,
    beta=_P,
    x=_NOT + "(n + alpha + beta + 1) / 2 * eval_jacobi(below(n), alpha + 1, beta + 1, x)",
)
ufunc(
    "eval_sh_jacobi",
    "DLMF 18.1.2, 18.9.15",
    complex=True,
    n=_N,
    p=_P,
    q=_P,
    x="n * eval_sh_jacobi(below(n), p + 2, q + 1, x)",
)
ufunc(
    "eval_laguerre",
    "DLMF 18.9.23",
    complex=True,
    n=_N,
    x="-" + _NOT + "eval_genlaguerre(below(n), 1.0, x)",
)
ufunc(
    "eval_genlaguerre",
    "DLMF 18.9.23",
    complex=True,
    n=_N,
    alpha=_P,
    x="-" + _NOT + "eval_genlaguerre(below(n), alpha + 1, x)",
)
ufunc("eval_hermite", "DLMF 18.9.25", n=_N, x="2 * n * eval_hermite(below(n), x)")
ufunc("eval_hermitenorm", "DLMF 18.9.27", n=_N, x="n * eval_hermitenorm(below(n), x)")
ufunc(
    "lpmv",
    "DLMF 14.10.4",
    m=NoDerivative("the order of a Legendre function"),
    v=NoDerivative("the degree of a Legendre function"),
    x="((v + 1) * x * out - (v - m + 1) * lpmv(m, v + 1, x)) / (1 - x * x)",
)


# -- hypergeometric functions, and functions defined by equations ----------------------------------


_HYPER = NoDerivative("the parameter of a hypergeometric function")
ufunc("hyp0f1", "DLMF 16.3.1", complex=True, v=_HYPER, z="hyp0f1(v + 1, z) / v")
ufunc(
    "hyp1f1", "DLMF 13.3.15", complex=True, a=_HYPER, b=_HYPER, x="a / b * hyp1f1(a + 1, b + 1, x)"
)
ufunc(
    "hyp2f1",
    "DLMF 15.5.1",
    complex=True,
    a=_HYPER,
    b=_HYPER,
    c=_HYPER,
    z="a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)",
)
ufunc("hyperu", "DLMF 13.3.22", a=_HYPER, b=_HYPER, x="-a * hyperu(a + 1, b + 1, x)")
_W = NoDerivative("the parameter of Wright's function")
ufunc("wright_bessel", "DLMF 10.46.1", a=_W, b=_W, x="wright_bessel(a, a + b, x)")
ufunc(
    "log_wright_bessel",
    "DLMF 10.46.1",
    a=_W,
    b=_W,
    x="exp(log_wright_bessel(a, a + b, x) - out)",
)
ufunc("wrightomega", "Corless and Jeffrey 2002, 6", complex=True, z="out / (1 + out)")
ufunc(
    "_lambertw",
    "DLMF 4.13.4",
    complex=True,
    module="scipy.special._ufuncs",
    z="exp(-out) / (1 + out)",
    k=NoDerivative("the branch is a whole number"),
    tol=NoDerivative("the tolerance of the computation"),
)


# -- elliptic integrals and functions, and the arithmetic-geometric mean ---------------------------


# Derivatives of elliptic integrals are integrals of the same form with larger exponents. One op
# computes all of these: no formula divides by a difference that can vanish.
_STEP = 0.5  # of the trapezoidal rule, in the logarithm of t
_BLOCK = 2**14  # how many terms are computed at once
_FAR = 82.0  # beyond the scales of all arguments the integrand is below exp(-_FAR / 2)


def _integral(*arrays: Any, halves: Any, power: int) -> Any:
    """Return the integral by the trapezoidal rule in ``log(t)``.

    The integrand is analytic in a strip of half-width pi, so that the error is about
    ``exp(-2 * pi**2 / _STEP)``, less than double precision. Every term is positive.
    """
    args = [np.asarray(x, np.float64) for x in np.broadcast_arrays(*arrays)]
    dtype = np.result_type(*arrays)
    with np.errstate(all="ignore"):
        used = [(x, n) for x, n in zip(args, halves, strict=True) if n]
        logs = [np.log(np.where(x > 0, x, np.nan)) for x, _ in used]
        low, high = np.fmin.reduce(logs) - _FAR, np.fmax.reduce(logs) + _FAR
        spread = float(np.nanmax(high - low, initial=0.0))
        steps = int(np.ceil(spread / _STEP))
        total, step = np.zeros(args[0].shape), (high - low) / max(steps, 1)
        block = max(_BLOCK // max(total.size, 1), 1)
        for first in range(0, steps + 1, block):
            places = np.arange(first, min(first + block, steps + 1)).reshape(-1, *[1] * total.ndim)
            t = np.exp(low + places * step)
            term = t ** (power + 1)
            for x, n in used:
                term = term * (t + x) ** (-0.5 * n)
            total += term.sum(axis=0)
        total *= step
        zeros = sum(n * (x == 0) for x, n in used)
        total = np.where(zeros >= 2 * (power + 1), np.inf, total)
        total = np.where(np.any([(x < 0) | np.isnan(x) for x, _ in used], axis=0), np.nan, total)
    return total.astype(dtype if dtype.kind == "f" else np.float64)


def _kernel(xp: Any, x: Any, y: Any, z: Any, w: Any, *, halves: Any, power: int = 0) -> Any:
    return _integral(x, y, z, w, halves=halves, power=power)


def _raised(place: int) -> Any:
    def rule(g: Any, x: Any, y: Any, z: Any, w: Any, halves: Any, power: int) -> Any:
        if not halves[place]:
            return F.zeros_like(g)
        higher = tuple(n + 2 * (i == place) for i, n in enumerate(halves))
        slope = F["scipy::carlson"](x, y, z, w, halves=higher, power=power)
        return g * (-0.5 * halves[place] * slope)

    return rule


def _infer(x: Any, y: Any, z: Any, w: Any, *, halves: Any, power: int) -> Any:
    specs = (x, y, z, w)
    dtype = np.result_type(*[s if type(s) in SCALARS else s.dtype for s in specs])
    return broadcast_shapes(*shapes_of(specs), op="carlson"), (
        dtype if dtype.kind == "f" else np.dtype(np.float64)
    )


def _carlson(x: Any, y: Any, z: Any, halves: Any, w: Any = 1.0, power: int = 0) -> Any:
    """Return the integral of ``t**power * (t + x)**(-halves[0] / 2)`` and so on."""
    return F["scipy::carlson"](x, y, z, w, halves=halves, power=power)


helper(
    Op(
        "scipy::carlson",
        _kernel,
        inputs=("x", "y", "z", "w"),
        gradients={name: _raised(i) for i, name in enumerate("xyzw")},
        infer=_infer,
        host=True,
        verified=True,
        broadcasts=True,
        batch="elementwise",
        doc="""Return an integral of products of square roots, elementwise.

        It is the integral of ``t**power * (t + x)**(-a/2) * (t + y)**(-b/2) * (t + z)**(-c/2) *
        (t + w)**(-d/2)`` over ``t`` from 0 to infinity, where ``halves = (a, b, c, d)``.

        References
        ----------
        NIST Digital Library of Mathematical Functions, 19.16 and 19.18.
        """,
    ),
    "carlson",
    _carlson,
)

# Carlson's symmetric integrals
ufunc(
    "elliprf",
    "DLMF 19.16.1",
    x="-carlson(x, y, z, (3, 1, 1, 0)) / 4",
    y="-carlson(x, y, z, (1, 3, 1, 0)) / 4",
    z="-carlson(x, y, z, (1, 1, 3, 0)) / 4",
)
ufunc(
    "elliprd",
    "DLMF 19.16.5",
    x="-0.75 * carlson(x, y, z, (3, 1, 3, 0))",
    y="-0.75 * carlson(x, y, z, (1, 3, 3, 0))",
    z="-2.25 * carlson(x, y, z, (1, 1, 5, 0))",
)
ufunc(
    "elliprj",
    "DLMF 19.16.2",
    x="-0.75 * carlson(x, y, z, (3, 1, 1, 2), p)",
    y="-0.75 * carlson(x, y, z, (1, 3, 1, 2), p)",
    z="-0.75 * carlson(x, y, z, (1, 1, 3, 2), p)",
    p="-1.5 * carlson(x, y, z, (1, 1, 1, 4), p)",
)
ufunc(
    "elliprg",
    "DLMF 19.16.2_5, 19.18.4",
    x="carlson(x, y, z, (3, 1, 1, 0), power=1) / 8",
    y="carlson(x, y, z, (1, 3, 1, 0), power=1) / 8",
    z="carlson(x, y, z, (1, 1, 3, 0), power=1) / 8",
)
ufunc(
    "elliprc",
    "DLMF 19.16.6",
    x="-carlson(x, y, 1, (3, 2, 0, 0)) / 4",
    y="-carlson(x, y, 1, (1, 4, 0, 0)) / 2",
)
ufunc(
    "agm",
    "DLMF 19.8.5, 19.25.1",
    a="sign(a) * agm_slope(a, b, out)",
    b="sign(b) * agm_slope(b, a, out)",
)

# Legendre's integrals
ufunc("ellipk", "DLMF 19.25.1", m="carlson(zeros_like(m), 1 - m, 1, (1, 3, 1, 0)) / 4")
ufunc("ellipkm1", "DLMF 19.25.1", p="-carlson(zeros_like(p), p, 1, (1, 3, 1, 0)) / 4")
ufunc("ellipe", "DLMF 19.25.1", m="ellipe_slope(m)")
ufunc(
    "ellipkinc",
    "DLMF 19.2.4, 19.25.5",
    phi="1 / sqrt(1 - m * sin(phi) ** 2)",
    m="ellipkinc_slope(phi, m)",
)
ufunc(
    "ellipeinc",
    "DLMF 19.2.5, 19.25.11",
    phi="sqrt(1 - m * sin(phi) ** 2)",
    m="ellipeinc_slope(phi, m)",
)
# the amplitude changes with m as the integral at a fixed amplitude does, times -dn
ufunc(
    "ellipj",
    "DLMF 22.13.1, 22.16.1",
    results=("sn", "cn", "dn", "ph"),
    u=("cn * dn", "-sn * dn", "-m * sn * cn", "dn"),
    m=(
        "-cn * dn * ellipkinc_slope(ph, m)",
        "sn * dn * ellipkinc_slope(ph, m)",
        "-sn * sn / (2 * dn) + m * sn * cn * ellipkinc_slope(ph, m)",
        "-dn * ellipkinc_slope(ph, m)",
    ),
)


def _agm_slope(a: Any, b: Any, out: Any) -> Any:
    """Return the derivative of the mean of two numbers, which may be equal.

    The mean is ``pi / 2 / RF(0, a*a, b*b)``.
    """
    a, b = F.abs(a), F.abs(b)
    integral = _carlson(F.zeros_like(out), F.square(a), F.square(b), (1, 3, 1, 0))
    return F.square(out) * a * integral / np.pi


def _ellipe_slope(m: Any) -> Any:
    """Return the derivative of ``ellipe``."""
    return -_carlson(F.zeros_like(m), 1 - m, 1.0, (1, 3, 1, 0), power=1) / 4


def _turns(phi: Any) -> tuple[Any, Any, Any]:
    """Return the number of half turns, and sine and cosine squared of the rest."""
    turns = F.round(phi / np.pi)
    rest = phi - np.pi * turns
    return turns, F.sin(rest), F.square(F.cos(rest))


def _ellipkinc_slope(phi: Any, m: Any) -> Any:
    """Return the derivative of ``ellipkinc`` with respect to ``m``."""
    turns, sine, square = _turns(phi)
    rest = _carlson(square, 1 - m * F.square(sine), 1.0, (1, 3, 1, 0)) / 4
    whole = _full_slope(m, turns, _ellipk_slope)
    return sine**3 * rest + 2 * turns * whole


def _ellipeinc_slope(phi: Any, m: Any) -> Any:
    """Return the derivative of ``ellipeinc`` with respect to ``m``."""
    turns, sine, square = _turns(phi)
    rest = NAMES["elliprd"](square, 1 - m * F.square(sine), F.ones_like(square)) / 6
    whole = _full_slope(m, turns, _ellipe_slope)
    return -(sine**3) * rest + 2 * turns * whole


def _ellipk_slope(m: Any) -> Any:
    return _carlson(F.zeros_like(m), 1 - m, 1.0, (1, 3, 1, 0)) / 4


def _full_slope(m: Any, turns: Any, slope: Any) -> Any:
    """Return the derivative of a complete integral, 0 where there is no half turn.

    Without a half turn, ``m`` may be above 1, where the complete integral is not defined.
    """
    m = F.where(turns == 0, F.zeros_like(turns * m), m)
    return slope(m)


NAMES.update(
    agm_slope=_agm_slope,
    ellipe_slope=_ellipe_slope,
    ellipkinc_slope=_ellipkinc_slope,
    ellipeinc_slope=_ellipeinc_slope,
)
