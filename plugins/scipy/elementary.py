"""Elementary functions and losses; gamma, beta and zeta functions, and exponential integrals."""

from __future__ import annotations

from math import pi
from typing import Any

from ...core.extend import SCALARS, F, kind_of
from .building import NAMES, NoDerivative, known, ufunc


def _log_ratio(x: Any, y: Any) -> Any:
    """Return ``log(x / y)``, also where the ratio is near 1 and its rounding would matter."""
    gap = x - y  # exact for numbers within a factor of 2
    near, one = F.abs(gap) < 0.5 * F.abs(y), F.ones_like(gap)
    ratio = F.where(near, gap / y, F.zeros_like(gap))
    # log(0) is apart: the slope with respect to y is finite there
    none = x == 0
    far = F.log(F.where(near, one, F.where(none, one, x) / y)) + F.log(F.where(none, x, one))
    return F.where(near, F.log1p(ratio), far)


def _or_zero(x: Any, y: Any) -> Any:
    """Return ``x / y``, 0 where both are 0."""
    none = F.logical_and(x == 0, y == 0)
    return F.where(none, F.zeros_like(y), x / F.where(none, F.ones_like(y), y))


def _power_exp(a: Any, x: Any, b: Any) -> Any:
    """Return ``x**a * exp(b)``, where neither overflows alone; smooth at 0 as the power is."""
    none, one = x == 0, F.ones_like(x)
    power = F.where(none, x, one) ** a * F.exp(F.where(none, b, F.zeros_like(b)))
    return F.where(none, power, F.exp(NAMES["xlogy"](a, F.where(none, one, x)) + b))


NAMES.update(log_ratio=_log_ratio, or_zero=_or_zero, power_exp=_power_exp)

known("cbrt", "cbrt", "elementary", x="cbrt(x) / (3 * x)")
known("exp2", "exp2", "elementary", x="log(2) * exp2(x)")
known("expm1", "expm1", "elementary", x="exp(x)")
known("log1p", "log1p", "elementary", x="1 / (1 + x)")
known("round", "round", "elementary", x="0")
known("expit", "sigmoid", "elementary", x="expit(x) * expit(-x)")
known("log_expit", "log_sigmoid", "elementary", x="expit(-x)")
ufunc("logit", "elementary", x="1 / (x * (1 - x))")
ufunc("exp10", "elementary", x="2.302585092994046 * out")
ufunc("cosm1", "elementary", x="-sin(x)")
ufunc("exprel", "DLMF 13.6.2", x="hyp1f1(2.0, 3.0, x) / 2")
ufunc("powm1", "elementary", x="y * (x ** (y - 1))", y="xlogy((out + 1), x)")

# angles in degrees
ufunc("sindg", "elementary", x="pi / 180 * cosdg(x)")
ufunc("cosdg", "elementary", x="-pi / 180 * sindg(x)")
ufunc("tandg", "elementary", x="pi / 180 * (1 + out * out)")
ufunc("cotdg", "elementary", x="-pi / 180 * (1 + out * out)")
ufunc("radian", "elementary", d="pi / 180", m="pi / 10800", s="pi / 648000")

# entropies
ufunc("xlogy", "elementary", complex=True, x="log(y)", y="or_zero(x, y)")
ufunc("xlog1py", "elementary", complex=True, x="log1p(y)", y="or_zero(x, 1 + y)")
ufunc("entr", "elementary", x="-log(x) - 1")
ufunc("rel_entr", "elementary", x="log_ratio(x, y) + 1", y="-or_zero(x, y)")
ufunc("kl_div", "elementary", x="log_ratio(x, y)", y="1 - or_zero(x, y)")

# losses
ufunc(
    "huber",
    "elementary",
    delta="maximum(abs(r) - delta, 0)",
    r="maximum(minimum(r, delta), -delta)",
)
ufunc(
    "pseudo_huber",
    "elementary",
    delta="delta * root_minus_1(delta, r) ** 2 / (root_minus_1(delta, r) + 1)",
    r="r / (root_minus_1(delta, r) + 1)",
)


def _root_minus_1(delta: Any, r: Any) -> Any:
    """Return ``sqrt(1 + (r / delta)**2) - 1`` without cancellation."""
    square = F.square(r / delta)
    return square / (1 + F.sqrt(1 + square))


NAMES.update(root_minus_1=_root_minus_1)

# the power transformations of Box and Cox: exprel of a multiple of a logarithm
ufunc(
    "boxcox",
    "Box and Cox 1964",
    x="exp((lmbda - 1) * log(x))",
    lmbda="log(x) ** 2 * hyp1f1(2.0, 3.0, lmbda * log(x)) / 2",
)
ufunc(
    "boxcox1p",
    "Box and Cox 1964",
    x="exp((lmbda - 1) * log1p(x))",
    lmbda="log1p(x) ** 2 * hyp1f1(2.0, 3.0, lmbda * log1p(x)) / 2",
)
ufunc(
    "inv_boxcox",
    "Box and Cox 1964; DLMF 15.4.1",
    y="out / (1 + lmbda * y)",
    lmbda="-out * y ** 2 * hyp2f1(2.0, 2.0, 3.0, -lmbda * y) / 2",
)
ufunc(
    "inv_boxcox1p",
    "Box and Cox 1964; DLMF 15.4.1",
    y="(out + 1) / (1 + lmbda * y)",
    lmbda="-(out + 1) * y ** 2 * hyp2f1(2.0, 2.0, 3.0, -lmbda * y) / 2",
)
ufunc(
    "tklmbda",
    "Joiner and Rosenblatt 1971, 2.1",
    x="tukey_density(out, lmbda)",
    lmbda="tukey_density(out, lmbda) * (power_slope(1 - out, lmbda) - power_slope(out, lmbda))",
)


def _tukey_density(p: Any, lmbda: Any) -> Any:
    """Return ``1 / (p**(lmbda - 1) + (1 - p)**(lmbda - 1))``, 0 outside of the support."""
    inside = (p > 0) & (p < 1)
    p = F.where(inside, p, 0.5 + F.zeros_like(p))
    density = 1 / (F.exp((lmbda - 1) * F.log(p)) + F.exp((lmbda - 1) * F.log1p(-p)))
    return F.where(inside, density, F.zeros_like(density))


def _power_slope(p: Any, lmbda: Any) -> Any:
    """Return the derivative of ``(p**lmbda - 1) / lmbda`` with respect to ``lmbda``."""
    inside = (p > 0) & (p < 1)
    size = F.log(F.where(inside, p, 0.5 + F.zeros_like(p)))
    # infinite beyond some 700, where SciPy's function may not return
    at = F.minimum(lmbda * size, 1000.0)
    return F.square(size) * NAMES["hyp1f1"](2.0, 3.0, at) / 2


NAMES.update(tukey_density=_tukey_density, power_slope=_power_slope)


# -- gamma, beta and zeta functions, and exponential integrals -------------------------------------


_SHAPE = NoDerivative("the parameter of an incomplete gamma or beta function")
_PRIVATE = "scipy.special._ufuncs"


def _array(x: Any, like: Any) -> Any:
    return F.zeros_like(like) + x if type(x) in SCALARS else x


def _rgamma_slope(x: Any) -> Any:
    """Return the derivative of ``1 / gamma(x)``, also at its zeros (DLMF 5.5.3)."""
    if kind_of(x.dtype) == "c":
        return -NAMES["psi"](x) * NAMES["rgamma"](x)
    left = x < 0.5
    low, high = F.where(left, x, F.zeros_like(x)), F.where(left, F.ones_like(x), x)
    near = low - 2 * F.round(low / 2)  # sin(pi * x) has the period 2
    mirror = NAMES["gamma"](1 - low)
    wave = NAMES["psi"](1 - low) * F.sin(pi * near) / pi
    reflected = mirror * (F.cos(pi * near) - wave)
    return F.where(left, reflected, -NAMES["psi"](high) * NAMES["rgamma"](high))


def _binom_slope(n: Any, k: Any, out: Any, wanted: str) -> Any:
    """Return a derivative of ``gamma(n + 1) / (gamma(k + 1) * gamma(n - k + 1))``."""
    psi, rgamma, slope = NAMES["psi"], NAMES["rgamma"], _rgamma_slope
    # there a reciprocal is 0, and psi infinite; another 0 has underflowed
    pole = F.logical_and(out == 0, F.logical_or(k < 0, k > n))
    one = F.ones_like(out)
    top, low, rest = (F.where(pole, one, x) for x in (n + 1, k + 1, n - k + 1))
    smooth = psi(top) - psi(rest) if wanted == "n" else psi(rest) - psi(low)
    top, low, rest = (F.where(pole, x, one) for x in (n + 1, k + 1, n - k + 1))
    if wanted == "n":
        flat = rgamma(low) * (psi(top) * rgamma(rest) + slope(rest))
    else:
        flat = slope(low) * rgamma(rest) - rgamma(low) * slope(rest)
    return F.where(pole, NAMES["gamma"](top) * flat, out * smooth)


def _poch_slope(z: Any, m: Any, out: Any, wanted: str) -> Any:
    """Return a derivative of ``gamma(z + m) / gamma(z)``, also at its zeros."""
    psi, rgamma = NAMES["psi"], NAMES["rgamma"]
    pole, one = F.logical_and(out == 0, z <= 0), F.ones_like(out)
    top, low = (F.where(pole, one, x) for x in (z + m, z))
    smooth = psi(top) - psi(low) if wanted == "z" else psi(top)
    top, low = (F.where(pole, x, one) for x in (z + m, z))
    flat = psi(top) * rgamma(low) + (_rgamma_slope(low) if wanted == "z" else 0)
    return F.where(pole, NAMES["gamma"](top) * flat, out * smooth)


NAMES.update(rgamma_slope=_rgamma_slope, binom_slope=_binom_slope, poch_slope=_poch_slope)

known("gammaln", "lgamma", "DLMF 5.2.2", x="psi(x)")
known("psi", "digamma", "DLMF 5.15.1", x="zeta(2, x)")
known("digamma", "digamma", "DLMF 5.15.1", x="zeta(2, x)")
ufunc("gamma", "DLMF 5.2.2", complex=True, x="out * psi(x)")
ufunc("rgamma", "DLMF 5.2.2, 5.5.3", complex=True, x="rgamma_slope(x)")
ufunc("loggamma", "DLMF 5.2.2", complex=True, x="psi(x)")
ufunc("gammasgn", "DLMF 5.2.1", x="0 * x")
ufunc("beta", "DLMF 5.12.1", a="out * (psi(a) - psi(a + b))", b="out * (psi(b) - psi(a + b))")
ufunc("betaln", "DLMF 5.12.1", a="psi(a) - psi(a + b)", b="psi(b) - psi(a + b)")
ufunc("binom", "DLMF 1.2.6", n="binom_slope(n, k, out, 'n')", k="binom_slope(n, k, out, 'k')")
ufunc("poch", "DLMF 5.2.5", z="poch_slope(z, m, out, 'z')", m="poch_slope(z, m, out, 'm')")

# zeta functions
_S = NoDerivative("the exponent of a zeta function")
ufunc("zetac", "", x=_S)
ufunc("_riemann_zeta", "", module=_PRIVATE, x=_S)
ufunc("_zeta", "DLMF 25.11.17", module=_PRIVATE, x=_S, q="-x * zeta(x + 1, q)")

# incomplete gamma functions
_DENSITY = "power_exp(a - 1, {x}, -{x} - gammaln(a))"
ufunc("gammainc", "DLMF 8.8.13", a=_SHAPE, x=_DENSITY.format(x="x"))
ufunc("gammaincc", "DLMF 8.8.14", a=_SHAPE, x="-" + _DENSITY.format(x="x"))
ufunc("gammaincinv", "DLMF 8.8.13", a=_SHAPE, y=f"1 / {_DENSITY.format(x='out')}")
ufunc("gammainccinv", "DLMF 8.8.14", a=_SHAPE, y=f"-1 / {_DENSITY.format(x='out')}")

# incomplete beta functions
_DENSITY = "power_exp(a - 1, {x}, xlog1py(b - 1, -{x}) - betaln(a, b))"
ufunc("betainc", "DLMF 8.17.1", a=_SHAPE, b=_SHAPE, x=_DENSITY.format(x="x"))
ufunc("betaincc", "DLMF 8.17.1", a=_SHAPE, b=_SHAPE, x="-" + _DENSITY.format(x="x"))
ufunc("betaincinv", "DLMF 8.17.1", a=_SHAPE, b=_SHAPE, y=f"1 / {_DENSITY.format(x='out')}")
ufunc("betainccinv", "DLMF 8.17.1", a=_SHAPE, b=_SHAPE, y=f"-1 / {_DENSITY.format(x='out')}")

# exponential integrals
ufunc("expi", "DLMF 6.2.5", complex=True, x="exp(x) / x")
ufunc("exp1", "DLMF 6.2.1", complex=True, x="-exp(-x) / x")
ufunc("expn", "DLMF 8.19.13", n=NoDerivative("the order"), x="expn_slope(n, x, out)")
ufunc(
    "sici",
    "DLMF 6.2.9, 6.2.11",
    complex=True,
    results=("si", "ci"),
    x=("sinc(x / pi)", "cos(x) / x"),
)
ufunc(
    "shichi",
    "DLMF 6.2.15, 6.2.16",
    complex=True,
    results=("shi", "chi"),
    x=("hyp0f1(1.5, x * x / 4)", "cosh(x) / x"),
)
ufunc("spence", "DLMF 25.12.2", complex=True, z="-log_over(z)")


def _expn_slope(n: Any, x: Any, out: Any) -> Any:
    """Return the derivative of an exponential integral (DLMF 8.19.12 if the order is 0)."""
    lowered = NAMES["expn"](F.maximum(_array(n, out) - 1, 0), x)
    return -F.where(_array(n, out) >= 1, lowered, (F.exp(-x) + out) / x)


def _log_over(z: Any) -> Any:
    """Return ``log(z) / (z - 1)``, 1 at 1."""
    near = F.abs(z - 1) < 0.5
    one = F.ones_like(z)
    close = NAMES["hyp2f1"](1.0, 1.0, 2.0, 1 - F.where(near, z, one))
    far = F.where(near, 2 * one, z)
    return F.where(near, close, F.log(far) / (far - 1))


NAMES.update(expn_slope=_expn_slope, log_over=_log_over)
