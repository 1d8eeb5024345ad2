"""For each ufunc of SciPy: mpmath's function, if there is one, and where to compare.

The points of an argument are drawn from a range, ``(low, high)``, or from a list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath as mp
import numpy as np
import scipy.special

__all__ = ["CASES", "Case"]


@dataclass(frozen=True)
class Case:
    """A ufunc's reference, and the points of its arguments in order."""

    reference: Callable[..., Any] | None
    arguments: tuple[Any, ...]
    #: The largest relative errors of first and second derivatives.
    first: float = 1e-11
    second: float = 1e-10
    #: How many points are compared, at least: fewer where mpmath is slow.
    count: int = 6
    #: The references of several results.
    results: tuple[Callable[..., Any] | None, ...] = field(default=())
    #: Why differences of SciPy's values do not show the derivative.
    exempt: str = ""

    def points(self, count: int | None = None) -> list[np.ndarray]:
        """Return arrays of points, one for each argument."""
        rng = np.random.default_rng(0)
        lists = [len(where) for where in self.arguments if isinstance(where, list)]
        count = count or max(self.count, *lists, 0)
        found = []
        for where in self.arguments:
            if isinstance(where, list):
                found.append(np.array([where[i % len(where)] for i in range(count)]))
            else:
                low, high = where
                found.append(low + (high - low) * (rng.permutation(count) + 0.37) / count)
        return found


CASES: dict[str, Case] = {}


def case(name: str, reference: Any, *arguments: Any, **bounds: Any) -> None:
    several = isinstance(reference, tuple)
    CASES[name] = Case(
        None if several else reference, arguments, results=reference if several else (), **bounds
    )


N = [0, 1, 2, 3, 4, 5, 7]
ORDER = (-2.3, 4.1)
half = mp.mpf(1) / 2


def ncdf(x: Any) -> Any:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def inverse(f: Any, start: Any) -> Any:
    """Return the inverse of an increasing function near a starting value."""
    return lambda y, *rest: mp.findroot(lambda x: f(x, *rest) - y, start(y, *rest))


# elementary
case("cbrt", lambda x: mp.cbrt(x), (0.1, 30))
case("exp2", lambda x: mp.mpf(2) ** x, (-20, 20))
case("expm1", mp.expm1, (-5, 5))
case("log1p", mp.log1p, (-0.9, 10))
case("round", lambda x: mp.mpf(0), (0.6, 1.4))
case("expit", lambda x: 1 / (1 + mp.exp(-x)), (-8, 8))
case("log_expit", lambda x: -mp.log1p(mp.exp(-x)), (-30, 8))
case("logit", lambda x: mp.log(x / (1 - x)), (0.001, 0.98))
case("exp10", lambda x: mp.mpf(10) ** x, (-10, 10))
case("cosm1", lambda x: mp.cos(x) - 1, (-5, 5))
case("exprel", lambda x: mp.expm1(x) / x, (-30, 30))
case("powm1", lambda x, y: x**y - 1, (0.1, 5), (-3, 3))
case("sindg", lambda x: mp.sin(mp.radians(x)), (-170, 170))
case("cosdg", lambda x: mp.cos(mp.radians(x)), (-170, 170))
case("tandg", lambda x: mp.tan(mp.radians(x)), (-80, 80))
case("cotdg", lambda x: mp.cot(mp.radians(x)), (10, 170))
case("radian", lambda d, m, s: mp.radians(d + m / 60 + s / 3600), (0, 90), (0, 60), (0, 60))
case("xlogy", lambda x, y: x * mp.log(y), (-3, 5), (0.01, 10))
case("xlog1py", lambda x, y: x * mp.log1p(y), (-3, 5), (-0.9, 10))
case("entr", lambda x: -x * mp.log(x), (0.01, 8))
case("rel_entr", lambda x, y: x * mp.log(x / y), (0.1, 8), (0.2, 5))
case("kl_div", lambda x, y: x * mp.log(x / y) - x + y, (0.1, 8), (0.2, 5))
case(
    "huber",
    lambda d, r: r * r / 2 if abs(r) <= d else d * (abs(r) - d / 2),
    (0.3, 3),
    (-4.1, 4.3),
)
case("pseudo_huber", lambda d, r: d**2 * (mp.sqrt(1 + (r / d) ** 2) - 1), (0.3, 3), (-4, 4))
case("boxcox", lambda x, k: (x**k - 1) / k, (0.1, 9), (-2, 3))
case("boxcox1p", lambda x, k: ((1 + x) ** k - 1) / k, (-0.9, 9), (-2, 3))
case("inv_boxcox", lambda y, k: (1 + k * y) ** (1 / k), (-0.4, 3), (0.05, 2))
case("inv_boxcox1p", lambda y, k: (1 + k * y) ** (1 / k) - 1, (-0.4, 3), (0.05, 2))
_tukey = inverse(lambda p, k: (p**k - (1 - p) ** k) / k, lambda x, k: (1e-9, 1 - 1e-9))


def tukey(x: Any, k: Any) -> Any:
    low, high = mp.mpf("1e-40"), 1 - mp.mpf("1e-40")
    return mp.findroot(
        lambda p: (p**k - (1 - p) ** k) / k - x, (low, high), solver="anderson", tol=1e-70
    )


case("tklmbda", tukey, (-0.9, 0.8), (0.2, 0.8))

# error functions and the normal distribution
case("erf", mp.erf, (-4, 4))
case("erfc", mp.erfc, (-4, 15))
case("erfi", mp.erfi, (-4, 4))
case("erfcx", lambda x: mp.exp(x * x) * mp.erfc(x), (-4, 10))
case("erfinv", mp.erfinv, (-0.99, 0.99))
case("erfcinv", lambda x: mp.erfinv(1 - x), (0.01, 1.99))
case("dawsn", lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), (-5, 5))
case("ndtr", ncdf, (-8, 6))
case("ndtri", lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), (0.001, 0.99))
case("log_ndtr", lambda x: mp.log(ncdf(x)), (-30, 5))
case("ndtri_exp", lambda y: mp.sqrt(2) * mp.erfinv(2 * mp.exp(y) - 1), (-15, -0.01))
case(
    "owens_t",
    lambda h, a: (
        mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi)
    ),
    (-3, 3),
    (-2, 2),
    count=4,
)
case("fresnel", (mp.fresnels, mp.fresnelc), (-4, 4))
case(
    "voigt_profile",
    lambda x, s, g: (
        mp.re(
            mp.exp(-(((x + 1j * g) / s / mp.sqrt(2)) ** 2))
            * mp.erfc(-1j * (x + 1j * g) / s / mp.sqrt(2))
        )
        / (s * mp.sqrt(2 * mp.pi))
    ),
    (-4, 4),
    (0.3, 2),
    (0.2, 2),
    first=1e-10,
    second=1e-9,
)
case("kolmogorov", None, (0.4, 2))
case("kolmogi", None, (0.05, 0.95))
case("smirnov", None, [3, 5, 10], (0.1, 0.8))
case("smirnovi", None, [3, 5, 10], (0.05, 0.9))

# gamma functions
case("gammaln", lambda x: mp.log(abs(mp.gamma(x))), (-3.7, 30))
case("psi", mp.digamma, (-3.7, 30))
case("digamma", mp.digamma, (-3.7, 30))
case("gamma", mp.gamma, (-3.7, 9))
case("rgamma", mp.rgamma, [-3.0, -2.4, -2.0, -1.3, -1.0, 0.25, 0.5, 1.0, 2.2, 3.7, 7.7, 15.0])
case("loggamma", mp.loggamma, (0.1, 40))
case("gammasgn", lambda x: mp.sign(mp.gamma(x)), (-3.7, 5.1))
case("beta", mp.beta, (0.2, 8), (0.3, 7))
case("betaln", lambda a, b: mp.log(mp.beta(a, b)), (0.2, 8), (0.3, 7))
case("binom", mp.binomial, (0.3, 9), (-0.4, 5.2))
case("poch", mp.rf, (0.3, 6), (0.2, 5))
case("_zeta", lambda x, q: mp.zeta(x, q), (1.2, 9), (0.3, 6))
case("gammainc", lambda a, x: mp.gammainc(a, 0, x, regularized=True), (0.3, 9), (0.1, 12))
case("gammaincc", lambda a, x: mp.gammainc(a, x, regularized=True), (0.3, 9), (0.1, 12))
case("gammaincinv", None, (0.3, 9), (0.05, 0.95))
case("gammainccinv", None, (0.3, 9), (0.05, 0.95))


def betainc(a: Any, b: Any, x: Any) -> Any:
    return mp.betainc(a, b, 0, x, regularized=True)


case("betainc", betainc, (0.3, 6), (0.4, 7), (0.02, 0.95))
case("betaincc", lambda a, b, x: 1 - betainc(a, b, x), (0.3, 6), (0.4, 7), (0.02, 0.95))
case("betaincinv", None, (0.3, 6), (0.4, 7), (0.05, 0.9))
case("betainccinv", None, (0.3, 6), (0.4, 7), (0.05, 0.9))
case("expi", mp.ei, (-6, 8))
case("exp1", mp.e1, (0.05, 12))
case("expn", lambda n, x: mp.expint(n, x), [0, 1, 2, 3, 5, 10], (0.1, 9))
case("sici", (mp.si, mp.ci), (0.1, 15))
case("shichi", (mp.shi, mp.chi), (0.1, 8))
case(
    "spence",
    lambda z: mp.re(mp.polylog(2, 1 - z)),
    [0.02, 0.3, 0.7, 0.99, 1.0, 1.01, 1.4, 2.5, 9.0],
)

# distributions
case(
    "gdtr", lambda a, b, x: mp.gammainc(b, 0, a * x, regularized=True), (0.5, 2), (0.5, 5), (0.3, 5)
)
case("gdtrc", lambda a, b, x: mp.gammainc(b, a * x, regularized=True), (0.5, 2), (0.5, 5), (0.3, 5))
case("gdtria", None, (0.1, 0.9), (0.5, 5), (0.3, 5))
case("gdtrix", None, (0.5, 2), (0.5, 5), (0.1, 0.9))
case("chdtr", lambda v, x: mp.gammainc(v / 2, 0, x / 2, regularized=True), (0.5, 9), (0.2, 12))
case("chdtrc", lambda v, x: mp.gammainc(v / 2, x / 2, regularized=True), (0.5, 9), (0.2, 12))
case("chdtri", None, (0.5, 9), (0.05, 0.95))
case(
    "pdtr",
    lambda k, m: mp.gammainc(mp.floor(k) + 1, m, regularized=True),
    [0.0, 1.0, 2.0, 5.0],
    (0.2, 9),
)
case(
    "pdtrc",
    lambda k, m: mp.gammainc(mp.floor(k) + 1, 0, m, regularized=True),
    [0.0, 1.0, 2.0, 5.0],
    (0.2, 9),
)
case("pdtri", None, [0, 1, 2, 5], (0.05, 0.95))
case(
    "bdtr",
    lambda k, n, p: betainc(n - k, k + 1, 1 - p),
    [0.0, 1.0, 3.0, 4.0],
    [5, 6, 9],
    (0.05, 0.95),
)
case(
    "bdtrc", lambda k, n, p: betainc(k + 1, n - k, p), [0.0, 1.0, 3.0, 4.0], [5, 6, 9], (0.05, 0.95)
)
case("bdtri", None, [0.0, 1.0, 3.0, 4.0], [5, 6, 9], (0.05, 0.95))
case("nbdtr", lambda k, n, p: betainc(n, k + 1, p), [0, 1, 3, 4], [2, 6, 9], (0.05, 0.95))
case("nbdtrc", lambda k, n, p: 1 - betainc(n, k + 1, p), [0, 1, 3, 4], [2, 6, 9], (0.05, 0.95))
case("nbdtri", None, [0, 1, 3, 4], [2, 6, 9], (0.05, 0.95))
case("fdtr", lambda m, n, x: betainc(m / 2, n / 2, m * x / (n + m * x)), (1, 8), (1.5, 9), (0.1, 5))
case(
    "fdtrc",
    lambda m, n, x: 1 - betainc(m / 2, n / 2, m * x / (n + m * x)),
    (1, 8),
    (1.5, 9),
    (0.1, 5),
)
case("fdtri", None, (1, 8), (1.5, 9), (0.05, 0.9))
case(
    "stdtr",
    lambda n, t: half + mp.sign(t) * betainc(half, n / 2, t * t / (n + t * t)) / 2,
    (0.5, 20),
    (-5, 5),
)
case("stdtrit", None, (0.8, 20), (0.05, 0.9))
case(
    "nrdtrimn",
    lambda p, s, x: x - s * mp.sqrt(2) * mp.erfinv(2 * p - 1),
    (0.05, 0.95),
    (0.3, 3),
    (-3, 3),
)
case(
    "nrdtrisd",
    lambda m, p, x: (x - m) / (mp.sqrt(2) * mp.erfinv(2 * p - 1)),
    (-3, 1),
    (0.55, 0.95),
    (2, 3),
)


def chndtr(x: Any, df: Any, nc: Any) -> Any:
    return mp.nsum(
        lambda j: (
            mp.exp(-nc / 2)
            * (nc / 2) ** j
            / mp.factorial(j)
            * mp.gammainc(df / 2 + j, 0, x / 2, regularized=True)
        ),
        [0, 60],
    )


def ncfdtr(m: Any, n: Any, nc: Any, f: Any) -> Any:
    return mp.nsum(
        lambda j: (
            mp.exp(-nc / 2)
            * (nc / 2) ** j
            / mp.factorial(j)
            * betainc(m / 2 + j, n / 2, m * f / (n + m * f))
        ),
        [0, 40],
    )


case("chndtr", chndtr, (0.5, 12), (1, 8), (0.2, 5), first=1e-8, second=1e-6, count=4)
case("chndtrix", None, (0.1, 0.9), (1, 8), (0.2, 5))
case("chndtrinc", None, (4, 9), (1, 3), (0.2, 0.5))
case("ncfdtr", ncfdtr, (1, 6), (2, 9), (0.2, 4), (0.2, 4), first=1e-8, second=1e-6, count=4)
case("ncfdtri", None, (1, 6), (2, 9), (0.2, 4), (0.1, 0.9))
case(
    "ncfdtrinc",
    None,
    (1, 6),
    (2, 9),
    (0.1, 0.4),
    (1.5, 4),
    exempt="SciPy finds it with an error of 1e-3",
)
case("nctdtr", None, (2, 9), (-1, 2), (-3, 4))
case("nctdtrit", None, (2, 9), (-1, 2), (0.1, 0.9))

# Bessel functions
case("jv", mp.besselj, ORDER, (0.2, 15))
case("jn", mp.besselj, ORDER, (0.2, 15))
case("yv", mp.bessely, ORDER, (0.2, 15))
case("iv", mp.besseli, ORDER, (0.2, 15))
case("kv", mp.besselk, ORDER, (0.2, 15))
case("jve", mp.besselj, ORDER, (0.2, 15))
case("yve", mp.bessely, ORDER, (0.2, 15))
case("ive", lambda v, z: mp.besseli(v, z) * mp.exp(-abs(z)), ORDER, (0.2, 15))
case("kve", lambda v, z: mp.besselk(v, z) * mp.exp(z), ORDER, (0.2, 15))
case("yn", mp.bessely, [0, 1, 2, 5], (0.2, 15))
case("kn", mp.besselk, [0, 1, 2, 5], (0.2, 15), count=6)
for _n in "01":
    case(f"j{_n}", lambda x, n=int(_n): mp.besselj(n, x), (-9, 15))
    case(f"y{_n}", lambda x, n=int(_n): mp.bessely(n, x), (0.2, 15))
    case(f"i{_n}", lambda x, n=int(_n): mp.besseli(n, x), (-9, 15))
    case(f"k{_n}", lambda x, n=int(_n): mp.besselk(n, x), (0.2, 15), count=6)
    case(f"i{_n}e", lambda x, n=int(_n): mp.besseli(n, x) * mp.exp(-abs(x)), (-9, 15))
    case(f"k{_n}e", lambda x, n=int(_n): mp.besselk(n, x) * mp.exp(x), (0.2, 15), count=6)
case(
    "besselpoly",
    lambda a, k, v: mp.quad(lambda x: x**k * mp.besselj(v, 2 * a * x), [0, 1]),
    (0.3, 4),
    [0.0, 1.0, 2.5],
    [0.0, 1.0, 2.0],
    count=4,
)
case(
    "airy",
    (mp.airyai, lambda z: mp.airyai(z, 1), mp.airybi, lambda z: mp.airybi(z, 1)),
    (-6, 5),
)


def scaled(f: Any, sign: int, derivative: int) -> Any:
    return lambda z: f(z, derivative=derivative) * mp.exp(sign * 2 * z ** (half * 3) / 3)


case(
    "airye",
    (
        scaled(mp.airyai, 1, 0),
        scaled(mp.airyai, 1, 1),
        scaled(mp.airybi, -1, 0),
        scaled(mp.airybi, -1, 1),
    ),
    (0.2, 6),
)
case(
    "itairy",
    (
        lambda x: mp.airyai(x, derivative=-1),
        lambda x: mp.airybi(x, derivative=-1),
        lambda x: -mp.airyai(-x, derivative=-1),
        lambda x: -mp.airybi(-x, derivative=-1),
    ),
    (0.2, 5),
    first=1e-8,
    exempt="the values have errors of 1e-5",
)
case("ber", lambda x: mp.ber(0, x), (0.1, 8))
case("bei", lambda x: mp.bei(0, x), (0.1, 8))
case("ker", lambda x: mp.ker(0, x), (0.1, 8), count=10)
case("kei", lambda x: mp.kei(0, x), (0.1, 8))
for _f in ("ber", "bei", "ker", "kei"):
    case(f"{_f}p", lambda x, f=_f: mp.diff(lambda t: getattr(mp, f)(0, t), x), (0.1, 8), count=5)
case("struve", mp.struveh, (-0.9, 3), (0.2, 10))
case("modstruve", mp.struvel, (-0.9, 3), (0.2, 10))
case("itstruve0", None, (0.3, 8))
case("itmodstruve0", None, (0.3, 8))
case("it2struve0", None, (0.5, 8))
case("itj0y0", (None, None), (0.3, 8))
case("iti0k0", (None, None), (0.3, 8))
case("it2j0y0", (None, None), (0.5, 8))
case("it2i0k0", (None, None), (0.5, 8))

# elliptic integrals and functions
case("elliprf", mp.elliprf, (0.1, 5), (0.2, 4), [0.3, 1.0, 2.0])
case("elliprd", mp.elliprd, (0.1, 5), (0.2, 4), [0.3, 1.0, 2.0])
case("elliprj", mp.elliprj, (0.1, 5), (0.2, 4), (0.3, 3), (0.2, 3))
case("elliprg", mp.elliprg, (0.1, 5), (0.2, 4), (0.3, 3))
case("elliprc", mp.elliprc, (0.1, 5), (0.2, 4))
case("agm", mp.agm, (0.2, 5), (0.3, 6))
case("ellipk", mp.ellipk, [-8.0, -2.0, -0.3, -1e-3, 0.0, 1e-3, 0.2, 0.5, 0.9, 0.999])
case("ellipkm1", lambda p: mp.ellipk(1 - p), [0.03, 0.1, 0.5, 0.9, 1.0, 1.5])
case("ellipe", mp.ellipe, [-8.0, -2.0, -0.3, -1e-3, 0.0, 1e-3, 0.2, 0.5, 0.9, 0.999])
case("ellipkinc", mp.ellipf, (-4, 5), (-3, 0.9))
case("ellipeinc", mp.ellipe, (-4, 5), (-3, 0.9))
case(
    "ellipj",
    (
        lambda u, m: mp.ellipfun("sn", u, m=m),
        lambda u, m: mp.ellipfun("cn", u, m=m),
        lambda u, m: mp.ellipfun("dn", u, m=m),
        None,
    ),
    (-3, 4),
    (0.05, 0.95),
)

# hypergeometric functions
case("hyp0f1", mp.hyp0f1, (0.4, 5), (-5, 6))
case("hyp1f1", mp.hyp1f1, (0.3, 4), (0.5, 5), (-5, 6))
case("hyp2f1", mp.hyp2f1, (0.3, 2), (0.4, 2.2), (0.6, 3), (-3, 0.9))
case("hyperu", mp.hyperu, (0.3, 3), (0.4, 2.3), (0.3, 6), first=1e-8, second=1e-8)
case(
    "wright_bessel",
    lambda a, b, x: mp.nsum(lambda k: x**k * mp.rgamma(a * k + b) / mp.factorial(k), [0, 200]),
    (0.3, 2),
    (0.5, 3),
    (0.1, 5),
    count=6,
)
case(
    "log_wright_bessel",
    lambda a, b, x: mp.log(
        mp.nsum(lambda k: x**k * mp.rgamma(a * k + b) / mp.factorial(k), [0, 200])
    ),
    (0.3, 2),
    (0.5, 3),
    (0.1, 5),
    count=6,
)
case("wrightomega", lambda z: mp.lambertw(mp.exp(z)), (-8, 20))

# polynomials
case("eval_chebyt", mp.chebyt, N, (-0.9, 0.95))
case("eval_chebyu", mp.chebyu, N, (-0.9, 0.95))
case("eval_chebyc", lambda n, x: 2 * mp.chebyt(n, x / 2), N, (-1.9, 1.8))
case("eval_chebys", lambda n, x: mp.chebyu(n, x / 2), N, (-1.9, 1.8))
case("eval_sh_chebyt", lambda n, x: mp.chebyt(n, 2 * x - 1), N, (0.05, 0.95))
case("eval_sh_chebyu", lambda n, x: mp.chebyu(n, 2 * x - 1), N, (0.05, 0.95))
case("eval_legendre", mp.legendre, N, (-0.9, 0.95))
case("eval_sh_legendre", lambda n, x: mp.legendre(n, 2 * x - 1), N, (0.05, 0.95))
case("eval_gegenbauer", mp.gegenbauer, N, (0.4, 3), (-0.9, 0.95))
case("eval_jacobi", mp.jacobi, N, (-0.4, 3), (-0.3, 2), (-0.9, 0.95))
case(
    "eval_sh_jacobi",
    lambda n, p, q, x: mp.jacobi(n, p - q, q - 1, 2 * x - 1) / mp.binomial(2 * n + p - 1, n),
    N,
    (2, 4),
    (0.5, 2),
    (0.05, 0.95),
)
case("eval_laguerre", lambda n, x: mp.laguerre(n, 0, x), N, (0.1, 6))
case("eval_genlaguerre", mp.laguerre, N, (-0.4, 3), (0.1, 6))
case("eval_hermite", mp.hermite, N, (-2, 3))
case(
    "eval_hermitenorm",
    lambda n, x: mp.hermite(n, x / mp.sqrt(2)) / mp.mpf(2) ** (n * half),
    N,
    (-2, 3),
)
case(
    "lpmv",
    lambda m, v, x: mp.legenp(v, m, x),
    [0.0, 1.0, 2.0],
    [2.0, 3.5, 4.0],
    (-0.9, 0.9),
    count=6,
)

# solutions of wave equations
case("pbdv", (mp.pcfd, lambda v, x: mp.diff(lambda t: mp.pcfd(v, t), x)), (-2, 4), (-3, 3))
case("pbvv", (None, None), (-2, 4), (0.3, 3))
case("pbwa", (None, None), (-3, 3), (-3, 3))
for _k in ("cem", "sem"):
    case(f"mathieu_{_k}", (None, None), [1, 2, 3], (0.2, 4), (-80, 80))
    for _i in "12":
        case(f"mathieu_mod{_k}{_i}", (None, None), [1, 2, 3], (0.2, 4), (0.2, 1.5))
for _k in ("pro", "obl"):
    _ranges = {"ang1": (-0.9, 0.9), "rad1": (1.2, 3), "rad2": (2.3, 3.5)}
    for _i, _range in _ranges.items():
        case(f"{_k}_{_i}", (None, None), [1], [1, 2, 3], (0.5, 1.5), _range)
        _value = float(getattr(scipy.special, f"{_k}_cv")(1, 2, 1.5))
        case(f"{_k}_{_i}_cv", (None, None), [1], [2], [1.5], [_value], _range)
