"""What cannot run on every library that conforms to the array API standard, and why."""

from __future__ import annotations

__all__ = ["FUNCTIONS_NOT_PORTABLE", "NOT_PORTABLE"]

_NO_FUNCTION = "the standard has no such function; kernels exist for NumPy (by SciPy) and CuPy"
_TRUTH = "for booleans only: the standard's logic takes no numbers"
_INDEX = "not by index arrays for some axes only: the standard wants one, or an integer, for each"
_STEPS = "its gradient multiplies numbers by booleans, which is one pass on NumPy and CuPy"

#: Op -> what of it is not portable. The suite fails if an op here turns out to be portable.
NOT_PORTABLE = {
    **dict.fromkeys(("digamma", "erf", "erfc", "lgamma", "polygamma"), _NO_FUNCTION),
    "gelu": "the exact form needs erfc, which the standard has not; approximate=True is portable",
    **dict.fromkeys(("logical_and", "logical_not", "logical_or", "logical_xor"), _TRUTH),
    **dict.fromkeys(("getitem", "index_add_all_like", "index_add_like", "index_set"), _INDEX),
    "unique": "not along an axis: the standard has that of elements only",
    "power": "not for a floating base and integer exponents: the standard does not promote these",
    **dict.fromkeys(("hard_sigmoid", "hard_tanh", "relu", "relu6"), _STEPS),
}

#: The same for functions made of ops.
FUNCTIONS_NOT_PORTABLE = {
    "compress": _INDEX,
    "interp": "it multiplies whole numbers by floating ones: the standard does not promote these",
    "isclose": "not of integers: the standard does not promote these beside tolerances",
    "nn.hinge": "not of boolean labels: the standard does not multiply these",
}
