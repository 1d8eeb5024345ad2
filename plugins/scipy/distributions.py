"""Error functions, the normal distribution, and other distribution functions and their inverses.

The formulas are densities of the distributions. An inverse has the reciprocal of the density at its
result.
"""

from __future__ import annotations

from math import comb, perm, pi, sqrt
from typing import Any

import numpy as np

from ...core.extend import SCALARS, F, Op, broadcast_shapes, kind_of
from ..ops.common.op_builders import shapes_of
from .building import NAMES, NoDerivative, helper, known, refused, scipys, ufunc

# -- the normal distribution -----------------------------------------------------------------------


_ROOT = "1.1283791670955126"  # 2 / sqrt(pi)
_HALF = "0.8862269254527580"  # sqrt(pi) / 2
_WIDE = "2.5066282746310002"  # sqrt(2 * pi)
_THIN = "0.3989422804014327"  # 1 / sqrt(2 * pi)

known("erf", "erf", "DLMF 7.2.1", x=f"{_ROOT} * exp(-x * x)")
known("erfc", "erfc", "DLMF 7.2.2", x=f"-{_ROOT} * exp(-x * x)")
ufunc("erfi", "DLMF 7.5.1", complex=True, x=f"{_ROOT} * exp(x * x)")
ufunc(
    "erfcx", "DLMF 7.10.1", complex=True, x=f"real_slope('erfcx', x, lambda: 2 * x * out - {_ROOT})"
)
ufunc("erfinv", "DLMF 7.17.1", x=f"{_HALF} * exp(out * out)")
ufunc("erfcinv", "DLMF 7.17.1", x=f"-{_HALF} * exp(out * out)")
ufunc(
    "dawsn",
    "DLMF 7.10.2, 7.12.1",
    complex=True,
    x="real_slope('dawsn', x, lambda: 1 - 2 * x * out)",
)
ufunc("wofz", "DLMF 7.10.3, 7.12.1", complex=True, x="slope(0.0, out * 0 + x, 'wofz', 1)")
ufunc("ndtr", "DLMF 7.2.1", x=f"{_THIN} * exp(-x * x / 2)")
ufunc("ndtri", "DLMF 7.17.1", x=f"{_WIDE} * exp(out * out / 2)")
ufunc("log_ndtr", "DLMF 7.8.1", x="0.7978845608028654 / erfcx(-0.7071067811865476 * x)")
ufunc("ndtri_exp", "DLMF 7.8.1", x="1.2533141373155003 * erfcx(-0.7071067811865476 * out)")
ufunc(
    "owens_t",
    "Owen 1956, 2.3",
    h=f"-{_THIN} / 2 * exp(-h * h / 2) * erf(0.7071067811865476 * a * h)",
    a="exp(-h * h * (1 + a * a) / 2) / (2 * pi * (1 + a * a))",
)
ufunc(
    "fresnel",
    "DLMF 7.2.7",
    complex=True,
    results=("s", "c"),
    z=("sin(pi / 2 * z * z)", "cos(pi / 2 * z * z)"),
)
ufunc(
    "modfresnelp",
    "DLMF 7.2.6",
    results=("f", "k"),
    x=(
        "-exp(1j * x * x)",
        "-2j * x * k - (0.3989422804014327 - 0.3989422804014327j)",
    ),
)
ufunc(
    "modfresnelm",
    "DLMF 7.2.6",
    results=("f", "k"),
    x=(
        "-exp(-1j * x * x)",
        "2j * x * k - (0.3989422804014327 + 0.3989422804014327j)",
    ),
)
ufunc(
    "voigt_profile",
    "DLMF 7.19.4, 7.10.3",
    x="voigt_slopes(x, sigma, gamma_, out)[0]",
    sigma="voigt_slopes(x, sigma, gamma_, out)[1]",
    gamma_="voigt_slopes(x, sigma, gamma_, out)[2]",
)
_ROOT_OF_K = NoDerivative("the number of samples is a whole number")
ufunc("kolmogorov", "Feller 1948, 1.4; DLMF 20.7.32", x="kolmogorov_slope(x)")
ufunc("kolmogi", "Feller 1948, 1.4; DLMF 20.7.32", x="1 / kolmogorov_slope(out)")
ufunc(
    "smirnov",
    "Birnbaum and Tingey 1951, 3.0",
    n=_ROOT_OF_K,
    d="smirnovp(n, d)",
)
ufunc(
    "smirnovi",
    "Birnbaum and Tingey 1951, 3.0",
    n=_ROOT_OF_K,
    p="1 / smirnovp(n, out)",
)
_NO_SECOND = NoDerivative("SciPy has no second derivative of this distribution function")
ufunc("_smirnovp", "", module="scipy.special._ufuncs", n=_ROOT_OF_K, d=_NO_SECOND)


def _kolmogorov_slope(x: Any) -> Any:
    """Return the derivative of ``kolmogorov``, from the series that converges faster."""
    near = x < 0.9
    low = F.where(near, F.maximum(x, 0.04), F.ones_like(x))  # below it underflows
    high = F.where(near, F.ones_like(x), x)
    small: Any = 0.0
    large: Any = 0.0
    for k in range(1, 5):
        power = (2 * k - 1) ** 2 * pi**2 / 8 / F.square(low)
        small = small + F.exp(-power) * (1 - 2 * power) / F.square(low)
        large = large - (-1.0) ** k * k * k * F.exp(-2.0 * k * k * F.square(high))
    return F.where(near, sqrt(2 * pi) * small, -8 * high * large)


NAMES.update(kolmogorov_slope=_kolmogorov_slope)


def _voigt_slopes(x: Any, sigma: Any, gamma_: Any, out: Any) -> tuple[Any, Any, Any]:
    """Return the derivatives of ``real(wofz(z)) / (sigma * sqrt(2 * pi))``."""
    z = (x + 1j * gamma_) / (sqrt(2) * sigma)
    slope = NAMES["slope"](0.0, z, "wofz", 1)
    real, imag, along = (
        F.cast_like(part, out) for part in (F.real(slope), F.imag(slope), F.real(z * slope))
    )
    scale = 1 / (2 * sqrt(pi) * sigma * sigma)
    return real * scale, -(out + along / (sqrt(2 * pi) * sigma)) / sigma, -imag * scale


NAMES.update(voigt_slopes=_voigt_slopes)


# -- other distributions ---------------------------------------------------------------------------


_SHAPE = NoDerivative("a shape parameter of the distribution")
_COUNT = NoDerivative("a number of events is a whole number")
_SOLVED = NoDerivative("it is the solution of an equation for a parameter")

# gamma, chi-square and Poisson distributions
_GAMMA = "power_exp({a} - 1, {x}, -{x} - gammaln({a}))"
_GDTR = _GAMMA.format(a="b", x="a * x")
ufunc("gdtr", "DLMF 8.8.13", a=f"x * {_GDTR}", b=_SHAPE, x=f"a * {_GDTR}")
ufunc("gdtrc", "DLMF 8.8.14", a=f"-x * {_GDTR}", b=_SHAPE, x=f"-a * {_GDTR}")
ufunc(
    "gdtria",
    "DLMF 8.8.13",
    p=f"1 / (x * {_GAMMA.format(a='b', x='out * x')})",
    b=_SHAPE,
    x="-out / x",
)
ufunc("gdtrib", "", a=_SOLVED, p=_SOLVED, x=_SOLVED)
ufunc(
    "gdtrix",
    "DLMF 8.8.13",
    a="-out / a",
    b=_SHAPE,
    p=f"1 / (a * {_GAMMA.format(a='b', x='a * out')})",
)
_CHI = _GAMMA.format(a="(v / 2)", x="(x / 2)")
ufunc("chdtr", "DLMF 8.8.13", v=_SHAPE, x=f"{_CHI} / 2")
ufunc("chdtrc", "DLMF 8.8.14", v=_SHAPE, x=f"-{_CHI} / 2")
ufunc("chdtri", "DLMF 8.8.14", v=_SHAPE, p=f"-2 / {_GAMMA.format(a='(v / 2)', x='(out / 2)')}")
ufunc("chdtriv", "", p=_SOLVED, x=_SOLVED)
_POISSON = "power_exp({k}, {m}, -{m} - gammaln({k} + 1))"
ufunc("pdtr", "DLMF 8.8.14", k=_COUNT, m="-" + _POISSON.format(k="floor(k)", m="m"))
ufunc("pdtrc", "DLMF 8.8.13", k=_COUNT, m=_POISSON.format(k="floor(k)", m="m"))
ufunc("pdtri", "DLMF 8.8.14", k=_COUNT, y="-1 / " + _POISSON.format(k="floor(k)", m="out"))
ufunc("pdtrik", "", p=_SOLVED, m=_SOLVED)

# beta, binomial, F and Student's distributions
_BETA = "power_exp({a} - 1, {x}, xlog1py({b} - 1, -{x}) - betaln({a}, {b}))"
_BINOMIAL = _BETA.format(a="(floor(k) + 1)", b="(n - floor(k))", x="{p}")
ufunc("bdtr", "DLMF 8.17.1", k=_COUNT, n=_COUNT, p="-" + _BINOMIAL.format(p="p"))
ufunc("bdtrc", "DLMF 8.17.1", k=_COUNT, n=_COUNT, p=_BINOMIAL.format(p="p"))
ufunc("bdtri", "DLMF 8.17.1", k=_COUNT, n=_COUNT, y="-1 / " + _BINOMIAL.format(p="out"))
ufunc("bdtrik", "", y=_SOLVED, n=_SOLVED, p=_SOLVED)
ufunc("bdtrin", "", k=_SOLVED, y=_SOLVED, p=_SOLVED)
_NEGATIVE = _BETA.format(a="n", b="(floor(k) + 1)", x="{p}")
ufunc("nbdtr", "DLMF 8.17.1", k=_COUNT, n=_COUNT, p=_NEGATIVE.format(p="p"))
ufunc("nbdtrc", "DLMF 8.17.1", k=_COUNT, n=_COUNT, p="-" + _NEGATIVE.format(p="p"))
ufunc("nbdtri", "DLMF 8.17.1", k=_COUNT, n=_COUNT, y="1 / " + _NEGATIVE.format(p="out"))
ufunc("nbdtrik", "", y=_SOLVED, n=_SOLVED, p=_SOLVED)
ufunc("nbdtrin", "", k=_SOLVED, y=_SOLVED, p=_SOLVED)
ufunc("btdtria", "", p=_SOLVED, b=_SOLVED, x=_SOLVED)
ufunc("btdtrib", "", a=_SOLVED, p=_SOLVED, x=_SOLVED)
_F = (
    "power_exp(dfn / 2 - 1, {x}, xlogy(dfn / 2, dfn / dfd) "
    "- (dfn + dfd) / 2 * log1p(dfn / dfd * {x}) - betaln(dfn / 2, dfd / 2))"
)
ufunc("fdtr", "DLMF 8.17.1", dfn=_SHAPE, dfd=_SHAPE, x=_F.format(x="x"))
ufunc("fdtrc", "DLMF 8.17.1", dfn=_SHAPE, dfd=_SHAPE, x="-" + _F.format(x="x"))
ufunc("fdtri", "DLMF 8.17.1", dfn=_SHAPE, dfd=_SHAPE, p="1 / " + _F.format(x="out"))
ufunc("fdtridfd", "", dfn=_SOLVED, p=_SOLVED, x=_SOLVED)
_STUDENT = "exp(-(df + 1) / 2 * log1p({t} * {t} / df) - betaln(df / 2, 0.5)) / sqrt(df)"
ufunc("stdtr", "DLMF 8.17.1", df=_SHAPE, t=_STUDENT.format(t="t"))
ufunc("stdtrit", "DLMF 8.17.1", df=_SHAPE, p=f"1 / ({_STUDENT.format(t='out')})")
ufunc("stdtridf", "", p=_SOLVED, t=_SOLVED)

# the normal distribution, solved for its parameters
_SLOPE = "2.5066282746310002 * exp(ndtri(p) ** 2 / 2)"
ufunc("nrdtrimn", "DLMF 7.17.1", p=f"-std * {_SLOPE}", std="-ndtri(p)", x="1 + 0 * x")
ufunc(
    "nrdtrisd",
    "DLMF 7.17.1",
    mn="-1 / ndtri(p)",
    p=f"-(x - mn) / ndtri(p) ** 2 * {_SLOPE}",
    x="1 / ndtri(p)",
)

# noncentral distributions: mixtures of central ones with Poisson weights
_CHI = (
    "power_exp(df / 2 - 1, {x} / 2, -({x} + {nc}) / 2 - gammaln(df / 2)) / 2 "
    "* hyp0f1(df / 2, {nc} * {x} / 4)"
)
_BY_NC = "((chndtr({x}, df + 2, {nc}) - chndtr({x}, df, {nc})) / 2)"
ufunc(
    "chndtr",
    "Johnson, Kotz and Balakrishnan 1995, 29.4",
    x=_CHI.format(x="x", nc="nc"),
    df=_SHAPE,
    nc=_BY_NC.format(x="x", nc="nc"),
)
ufunc(
    "chndtrix",
    "Johnson, Kotz and Balakrishnan 1995, 29.4",
    p=f"1 / ({_CHI.format(x='out', nc='nc')})",
    df=_SHAPE,
    nc=f"-{_BY_NC.format(x='out', nc='nc')} / ({_CHI.format(x='out', nc='nc')})",
)
ufunc(
    "chndtrinc",
    "Johnson, Kotz and Balakrishnan 1995, 29.4",
    x=f"-({_CHI.format(x='x', nc='out')}) / {_BY_NC.format(x='x', nc='out')}",
    df=_SHAPE,
    p=f"1 / {_BY_NC.format(x='x', nc='out')}",
)
ufunc("chndtridf", "", x=_SOLVED, p=_SOLVED, nc=_SOLVED)
_F = (
    "power_exp(dfn / 2 - 1, {f}, xlogy(dfn / 2, dfn / dfd) - {nc} / 2 "
    "- (dfn + dfd) / 2 * log1p(dfn / dfd * {f}) - betaln(dfn / 2, dfd / 2)) "
    "* hyp1f1((dfn + dfd) / 2, dfn / 2, {nc} / 2 * dfn * {f} / (dfn * {f} + dfd))"
)
_BY_NC = "((ncfdtr(dfn + 2, dfd, {nc}, {f} * dfn / (dfn + 2)) - ncfdtr(dfn, dfd, {nc}, {f})) / 2)"
ufunc(
    "ncfdtr",
    "Johnson, Kotz and Balakrishnan 1995, 30.3",
    dfn=_SHAPE,
    dfd=_SHAPE,
    nc=_BY_NC.format(f="f", nc="nc"),
    f=_F.format(f="f", nc="nc"),
)
ufunc(
    "ncfdtri",
    "Johnson, Kotz and Balakrishnan 1995, 30.3",
    dfn=_SHAPE,
    dfd=_SHAPE,
    nc=f"-{_BY_NC.format(f='out', nc='nc')} / ({_F.format(f='out', nc='nc')})",
    p=f"1 / ({_F.format(f='out', nc='nc')})",
)
ufunc(
    "ncfdtrinc",
    "Johnson, Kotz and Balakrishnan 1995, 30.3",
    dfn=_SHAPE,
    dfd=_SHAPE,
    p=f"1 / {_BY_NC.format(f='f', nc='out')}",
    f=f"-({_F.format(f='f', nc='out')}) / {_BY_NC.format(f='f', nc='out')}",
)
ufunc("ncfdtridfd", "", dfn=_SOLVED, p=_SOLVED, nc=_SOLVED, f=_SOLVED)
ufunc("ncfdtridfn", "", dfd=_SOLVED, p=_SOLVED, nc=_SOLVED, f=_SOLVED)
_T = (
    "exp(df / 2 * log(df) - df * 0.6931471805599453 - nc * nc / 2 - (df / 2) * log(df + {t} * {t}) "
    "+ gammaln(df + 1) - gammaln(df / 2)) * (1.4142135623730951 * nc * {t} "
    "* hyp1f1(df / 2 + 1, 1.5, nc * nc * {t} * {t} / (2 * (df + {t} * {t}))) "
    "/ ((df + {t} * {t}) * exp(gammaln((df + 1) / 2))) "
    "+ hyp1f1((df + 1) / 2, 0.5, nc * nc * {t} * {t} / (2 * (df + {t} * {t}))) "
    "/ (sqrt(df + {t} * {t}) * exp(gammaln(df / 2 + 1))))"
)
_NC = NoDerivative("the noncentrality of Student's distribution")
ufunc("nctdtr", "Johnson, Kotz and Balakrishnan 1995, 31.5", df=_SHAPE, nc=_NC, t=_T.format(t="t"))
ufunc(
    "nctdtrit",
    "Johnson, Kotz and Balakrishnan 1995, 31.5",
    df=_SHAPE,
    nc=_NC,
    p=f"1 / ({_T.format(t='out')})",
)
ufunc("nctdtridf", "", p=_SOLVED, nc=_SOLVED, t=_SOLVED)
ufunc("nctdtrinc", "", df=_SOLVED, p=_SOLVED, t=_SOLVED)


# -- derivatives of scaled functions, at any argument ----------------------------------------------


# Recurrences are differences of nearly equal numbers where the argument is large. There, the
# derivatives are computed from an integral of positive numbers, or from an asymptotic series.
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
