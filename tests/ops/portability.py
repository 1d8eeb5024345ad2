"""What cannot run on every library that conforms to the array API standard, and why."""

from __future__ import annotations

__all__ = ["FUNCTIONS_NOT_PORTABLE", "NOT_PORTABLE"]

_NO_FUNCTION = "the standard has no such function; kernels exist for NumPy (by SciPy) and CuPy"
_TRUTH = "numbers: the standard's logical functions take only booleans"
_INDEX = "index arrays for only some axes: the standard needs one, or an integer, for each axis"
_STEPS = "its gradient multiplies numbers by booleans, which is one pass on NumPy and CuPy"

#: Op -> what of it is not portable. The suite fails if an op here turns out to be portable.
NOT_PORTABLE = {
    **dict.fromkeys(("digamma", "erf", "erfc", "lgamma", "polygamma"), _NO_FUNCTION),
    **dict.fromkeys(
        ("gelu", "gelu_slope"),
        "the exact form needs erfc, which the standard lacks; approximate=True is portable",
    ),
    **dict.fromkeys(("logical_and", "logical_not", "logical_or", "logical_xor"), _TRUTH),
    **dict.fromkeys(("getitem", "index_add_all_like", "index_add_like", "index_set"), _INDEX),
    "unique": "along an axis: the standard has only unique elements",
    "power": "a floating base with integer exponents: the standard does not promote them",
    **dict.fromkeys(("hard_sigmoid", "hard_tanh", "relu", "relu6"), _STEPS),
}

#: The same for functions made of ops.
FUNCTIONS_NOT_PORTABLE = {
    "compress": _INDEX,
    "interp": "it multiplies integers by floats: the standard does not promote them",
    "isclose": "integers: the standard does not promote them with the tolerances",
    "nn.hinge": "boolean labels: the standard does not multiply them",
}
