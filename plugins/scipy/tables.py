"""All functions of ``scipy.special`` that have ops, from the modules of their families."""

from __future__ import annotations

from . import (
    bessel,
    distributions,
    elementary,
    elliptic,
    gamma,
    polynomials,
    tails,
)
from .building import FUNCTIONS, OPS

__all__ = ["FUNCTIONS", "OPS", "PRIVATE", "UFUNCS"]

_FAMILIES = (
    elementary,
    gamma,
    distributions,
    bessel,
    elliptic,
    polynomials,
    tails,
)
#: What runs on tensors, by the ufunc's name.
UFUNCS = {row.name: row.run for row in FUNCTIONS.values() if not row.private}
#: The same for ufuncs that SciPy's Python functions call.
PRIVATE = {row.name: row.run for row in FUNCTIONS.values() if row.private}
