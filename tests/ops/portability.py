"""What cannot run on every library that conforms to the array API standard, and why."""

from __future__ import annotations

__all__ = ["FUNCTIONS_NOT_PORTABLE", "NOT_PORTABLE"]

_NO_FUNCTION = "the standard has no such function; kernels exist for NumPy (by SciPy) and CuPy"

#: Op -> what of it is not portable. The suite fails if an op here turns out to be portable.
NOT_PORTABLE = {
    **dict.fromkeys(("digamma", "erf", "erfc", "lgamma", "polygamma"), _NO_FUNCTION),
    **dict.fromkeys(
        ("gelu", "gelu_slope"),
        "the exact form needs erfc, which the standard lacks; approximate=True is portable",
    ),
    "unique": "along an axis: the standard has only unique elements",
}

#: The same for functions made of ops.
FUNCTIONS_NOT_PORTABLE: dict[str, str] = {}
