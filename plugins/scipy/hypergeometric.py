"""Hypergeometric functions, and functions defined by equations."""

from __future__ import annotations

from .building import Refusal, ufunc

_P = Refusal("the parameter of a hypergeometric function")
ufunc("hyp0f1", "DLMF 16.3.1", complex=True, v=_P, z="hyp0f1(v + 1, z) / v")
ufunc("hyp1f1", "DLMF 13.3.15", complex=True, a=_P, b=_P, x="a / b * hyp1f1(a + 1, b + 1, x)")
ufunc(
    "hyp2f1",
    "DLMF 15.5.1",
    complex=True,
    a=_P,
    b=_P,
    c=_P,
    z="a * b / c * hyp2f1(a + 1, b + 1, c + 1, z)",
)
ufunc("hyperu", "DLMF 13.3.22", a=_P, b=_P, x="-a * hyperu(a + 1, b + 1, x)")
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
