"""Solutions of wave equations: parabolic cylinder, Mathieu and spheroidal functions.

SciPy returns each function with its derivative, and the differential equation gives the second one.
"""

from __future__ import annotations

from typing import Any

from .building import Refusal, ufunc

_V = Refusal("the order of a parabolic cylinder function")
for _name in ("pbdv", "pbvv"):
    ufunc(_name, "DLMF 12.2.4", results=("d", "dp"), v=_V, x=("dp", "(x * x / 4 - v - 0.5) * d"))
ufunc("pbwa", "DLMF 12.14.1", results=("w", "wp"), a=_V, x=("wp", "(a - x * x / 4) * w"))

_M = Refusal("the order of a Mathieu function")
_Q = Refusal("the parameter of a Mathieu function")
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

_P = Refusal("the parameter of a spheroidal wave function")
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
