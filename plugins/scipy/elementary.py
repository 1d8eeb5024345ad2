"""Elementary functions: exponentials, logarithms, angles, entropies, transformations, losses."""

from __future__ import annotations

from typing import Any

from ...core.extend import F
from .building import NAMES, known, ufunc


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
