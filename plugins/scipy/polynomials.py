"""Orthogonal polynomials, Legendre and hypergeometric functions."""

from __future__ import annotations

from typing import Any

from ...core.extend import SCALARS, F
from .building import NAMES, Refusal, ufunc

_N = Refusal("the degree of a polynomial")
_P = Refusal("the parameter of a polynomial")


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
    m=Refusal("the order of a Legendre function"),
    v=Refusal("the degree of a Legendre function"),
    x="((v + 1) * x * out - (v - m + 1) * lpmv(m, v + 1, x)) / (1 - x * x)",
)


# -- hypergeometric functions, and functions defined by equations ----------------------------------


_HYPER = Refusal("the parameter of a hypergeometric function")
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
_W = Refusal("the parameter of Wright's function")
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
    k=Refusal("the branch is a whole number"),
    tol=Refusal("the tolerance of the computation"),
)
