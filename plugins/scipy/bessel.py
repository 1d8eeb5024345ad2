"""Bessel functions and their relatives, and other solutions of wave equations.

The relatives are Airy, Kelvin and Struve functions, and integrals of these; the others are
parabolic cylinder, Mathieu and spheroidal functions, which SciPy returns with their derivatives:
the differential equation gives the second ones.
"""

from __future__ import annotations

from math import pi, sqrt
from typing import Any

from ...core.extend import F
from .building import NAMES, NoDerivative, ufunc

_V = NoDerivative("the order of a Bessel function")

ufunc("jv", "DLMF 10.6.1", complex=True, v=_V, z="(jv(v - 1, z) - jv(v + 1, z)) / 2")
ufunc("yv", "DLMF 10.6.1", complex=True, v=_V, z="(yv(v - 1, z) - yv(v + 1, z)) / 2")
ufunc("iv", "DLMF 10.29.1", complex=True, v=_V, z="(iv(v - 1, z) + iv(v + 1, z)) / 2")
ufunc("kv", "DLMF 10.29.1", complex=True, v=_V, z="-(kv(v - 1, z) + kv(v + 1, z)) / 2")
# scaled by a factor that is 1 for real arguments, or not holomorphic
ufunc("jve", "DLMF 10.6.1", v=_V, z="(jve(v - 1, z) - jve(v + 1, z)) / 2")
ufunc("yve", "DLMF 10.6.1", v=_V, z="(yve(v - 1, z) - yve(v + 1, z)) / 2")
ufunc("ive", "DLMF 10.29.1, 10.40.1", v=_V, z="slope(v, z, 'ive', 1)")
ufunc(
    "kve",
    "DLMF 10.29.1, 10.40.2",
    complex=True,
    v=_V,
    z="real_slope('kve', z, lambda: out - (kve(v - 1, z) + kve(v + 1, z)) / 2, v)",
)
ufunc("hankel1", "DLMF 10.6.1", complex=True, v=_V, z="(hankel1(v - 1, z) - hankel1(v + 1, z)) / 2")
ufunc("hankel2", "DLMF 10.6.1", complex=True, v=_V, z="(hankel2(v - 1, z) - hankel2(v + 1, z)) / 2")
ufunc(
    "hankel1e",
    "DLMF 10.6.1",
    complex=True,
    v=_V,
    z="(hankel1e(v - 1, z) - hankel1e(v + 1, z)) / 2 - 1j * out",
)
ufunc(
    "hankel2e",
    "DLMF 10.6.1",
    complex=True,
    v=_V,
    z="(hankel2e(v - 1, z) - hankel2e(v + 1, z)) / 2 + 1j * out",
)
ufunc("yn", "DLMF 10.6.1", n=_V, x="(yn(n - 1, x) - yn(n + 1, x)) / 2")
ufunc("kn", "DLMF 10.29.1", n=_V, x="-(kv(n - 1, x) + kv(n + 1, x)) / 2")
ufunc("j0", "DLMF 10.6.3", x="-j1(x)")
ufunc("j1", "DLMF 10.6.1", x="(j0(x) - jv(2, x)) / 2")
ufunc("y0", "DLMF 10.6.3", x="-y1(x)")
ufunc("y1", "DLMF 10.6.1", x="(y0(x) - yv(2, x)) / 2")
ufunc("i0", "DLMF 10.29.3", x="i1(x)")
ufunc("i1", "DLMF 10.29.1", x="(i0(x) + iv(2, x)) / 2")
ufunc("k0", "DLMF 10.29.3", x="-k1(x)")
ufunc("k1", "DLMF 10.29.1", x="-(k0(x) + kv(2, x)) / 2")
ufunc("i0e", "DLMF 10.29.1, 10.40.1", x="slope(0, x, 'ive', 1)")
ufunc("i1e", "DLMF 10.29.1, 10.40.1", x="slope(1, x, 'ive', 1)")
ufunc("k0e", "DLMF 10.29.1, 10.40.2", x="slope(0, x, 'kve', 1)")
ufunc("k1e", "DLMF 10.29.1, 10.40.2", x="slope(1, x, 'kve', 1)")

ufunc(
    "besselpoly",
    "DLMF 10.6.2",
    a="nu / a * out - 2 * besselpoly(a, lmb + 1, nu + 1)",
    lmb=NoDerivative("the exponent of the weight"),
    nu=_V,
)

# Airy functions
ufunc(
    "airy",
    "DLMF 9.2.1",
    complex=True,
    results=("ai", "aip", "bi", "bip"),
    z=("aip", "z * ai", "bip", "z * bi"),
)
ufunc(
    "airye",
    "DLMF 9.2.1",
    results=("ai", "aip", "bi", "bip"),
    z=(
        "airye_slope(z, aip + root_of(z) * ai, 'kve', 1)",
        "airye_slope(z, z * ai + root_of(z) * aip, 'kve', 2)",
        "airye_slope(z, bip - root_of(z) * bi, 'ive', 1)",
        "airye_slope(z, z * bi - root_of(z) * bip, 'ive', 2)",
    ),
)
ufunc(
    "itairy",
    "DLMF 9.10.1",
    results=("ai", "bi", "ai_minus", "bi_minus"),
    x=("airy(x)[0]", "airy(x)[2]", "airy(-x)[0]", "airy(-x)[2]"),
)

# Kelvin functions
ufunc("ber", "DLMF 10.61.1", x="berp(x)")
ufunc("bei", "DLMF 10.61.1", x="beip(x)")
ufunc("ker", "DLMF 10.61.2", x="kerp(x)")
ufunc("kei", "DLMF 10.61.2", x="keip(x)")
ufunc("berp", "DLMF 10.61.3", x="-bei(x) - out / x")
ufunc("beip", "DLMF 10.61.3", x="ber(x) - out / x")
ufunc("kerp", "DLMF 10.61.3", x="-kei(x) - out / x")
ufunc("keip", "DLMF 10.61.3", x="ker(x) - out / x")
ufunc(
    "kelvin",
    "DLMF 10.61.3",
    results=("be", "ke", "bep", "kep"),
    x=("bep", "kep", "1j * be - bep / x", "1j * ke - kep / x"),
)

# Struve functions
ufunc(
    "struve",
    "DLMF 11.4.27, 11.4.28",
    v=NoDerivative("the order of a Struve function"),
    x="(struve(v - 1, x) - struve(v + 1, x) + struve_term(v, x)) / 2",
)
ufunc(
    "modstruve",
    "DLMF 11.4.29, 11.4.30",
    v=NoDerivative("the order of a Struve function"),
    x="(modstruve(v - 1, x) + modstruve(v + 1, x) + struve_term(v, x)) / 2",
)
ufunc("itstruve0", "DLMF 11.7.1", x="struve(0, x)")
ufunc("itmodstruve0", "DLMF 11.7.1", x="modstruve(0, x)")
ufunc("it2struve0", "DLMF 11.7.1", x="-struve(0, x) / x")

# integrals of Bessel functions
ufunc("itj0y0", "DLMF 10.22.1", results=("j", "y"), x=("j0(x)", "y0(x)"))
ufunc("iti0k0", "DLMF 10.43.1", results=("i", "k"), x=("i0(x)", "k0(x)"))
ufunc("it2j0y0", "DLMF 10.22.1", results=("j", "y"), x=("(1 - j0(x)) / x", "-y0(x) / x"))
ufunc("it2i0k0", "DLMF 10.43.1", results=("i", "k"), x=("(i0(x) - 1) / x", "-k0(x) / x"))


def _root_of(z: Any) -> Any:
    """Return the logarithmic derivative of the factor that scales Airy functions."""
    positive = z > 0
    return F.where(positive, F.sqrt(F.where(positive, z, F.ones_like(z))), F.zeros_like(z))


def _airye_slope(z: Any, near: Any, kind: str, thirds: int) -> Any:
    """Return ``near``, or for large ``z`` the derivative by Bessel functions (DLMF 9.6)."""
    wide = z > 1
    large = F.where(wide, z, F.ones_like(z))
    root = F.sqrt(large)
    zeta, slope = root * large * (2 / 3), NAMES["slope"]
    if kind == "kve":
        factor = (-1.0) ** (thirds + 1) / (pi * sqrt(3))
        value, change = NAMES["kve"](thirds / 3, zeta), slope(thirds / 3, zeta, "kve", 1)
    else:
        factor = 1 / sqrt(3)
        orders = (thirds / 3, -thirds / 3)
        value = sum(NAMES["ive"](v, zeta) for v in orders)
        change = sum(slope(v, zeta, "ive", 1) for v in orders)
    # of sqrt(z) * value, or of z * value
    far = value / (2 * root) + large * change if thirds == 1 else value + root * large * change
    return F.where(wide, factor * far, near)


def _struve_term(v: Any, x: Any) -> Any:
    """Return ``(x / 2)**v / (sqrt(pi) * gamma(v + 1.5))``."""
    return 0.5641895835477563 * NAMES["rgamma"](v + 1.5) * (x / 2) ** v


NAMES.update(airye_slope=_airye_slope, root_of=_root_of, struve_term=_struve_term)


# -- parabolic cylinder, Mathieu and spheroidal functions ------------------------------------------


_ORDER = NoDerivative("the order of a parabolic cylinder function")
for _name in ("pbdv", "pbvv"):
    ufunc(
        _name, "DLMF 12.2.4", results=("d", "dp"), v=_ORDER, x=("dp", "(x * x / 4 - v - 0.5) * d")
    )
ufunc("pbwa", "DLMF 12.14.1", results=("w", "wp"), a=_ORDER, x=("wp", "(a - x * x / 4) * w"))

_M = NoDerivative("the order of a Mathieu function")
_Q = NoDerivative("the parameter of a Mathieu function")
ufunc("mathieu_a", "", m=_M, q=_Q)
ufunc("mathieu_b", "", m=_M, q=_Q)
_DEGREE = "0.017453292519943295"
for _name, _value in (("cem", "a"), ("sem", "b")):
    ufunc(
        f"mathieu_{_name}",
        "DLMF 28.2.1",
        results=("y", "yp"),
        m=_M,
        q=_Q,
        x=(  # in degrees
            f"{_DEGREE} * yp",
            f"{_DEGREE} * (2 * q * cos({_DEGREE} * 2 * x) - mathieu_{_value}(m, q)) * y",
        ),
    )
    for _kind in "12":
        ufunc(
            f"mathieu_mod{_name}{_kind}",
            "DLMF 28.20.1",
            results=("y", "yp"),
            m=_M,
            q=_Q,
            x=("yp", f"(mathieu_{_value}(m, q) - 2 * q * cosh(2 * x)) * y"),
        )

_P = NoDerivative("the parameter of a spheroidal wave function")
_PARAMETERS: Any = {"m": _P, "n": _P, "c": _P}
_VALUE: Any = {"cv": _P}
ufunc("pro_cv", "", **_PARAMETERS)
ufunc("obl_cv", "", **_PARAMETERS)
for _kind in ("pro", "obl"):
    _one, _sign = ("(x * x - 1)", "-") if _kind == "pro" else ("(x * x + 1)", "+")
    for _name in ("ang1", "rad1", "rad2"):
        for _end, _value in (("", f"{_kind}_cv(m, n, c)"), ("_cv", "cv")):
            if _name == "ang1":
                _second = (
                    f"(2 * x * sp - ({_value} {_sign} c * c * x * x - m * m / (1 - x * x)) * s) "
                    "/ (1 - x * x)"
                )
            else:
                _charge = "+" if _kind == "pro" else "-"
                _second = (
                    f"(({_value} - c * c * x * x {_charge} m * m / {_one}) * s - 2 * x * sp) "
                    f"/ {_one}"
                )
            ufunc(
                f"{_kind}_{_name}{_end}",
                "DLMF 30.2.1",
                results=("s", "sp"),
                **_PARAMETERS,
                **(_VALUE if _end else {}),
                x=("sp", _second),
            )
