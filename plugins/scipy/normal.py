"""Error functions and the normal distribution."""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from ...core.extend import F
from .building import NAMES, Refusal, known, ufunc

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
_ROOT_OF_K = Refusal("the number of samples is a whole number")
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
_NO_SECOND = Refusal("SciPy has no second derivative of this distribution function")
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
