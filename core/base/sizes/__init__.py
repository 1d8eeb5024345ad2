"""Sizes that a trace does not know: expressions that compute, compare and print as integers do.

From the bottom up: :mod:`.open_values` (what needs a value and raises), :mod:`.unknowns` (sums,
proofs about them, and the classes), :mod:`.arithmetic` (their operators), :mod:`.formulas`
(expressions as graphs and files hold them) and :mod:`.shapes`.
"""

from .arithmetic import apart, as_symbol, exact_quotient, largest, same_size, smallest
from .formulas import KINDS, Formula, dims_of, evaluated, holds, lowered, planned
from .open_values import Open, OpenSize, is_open, known_size
from .shapes import (
    Shape,
    agreed,
    as_shape,
    as_size,
    blunt,
    broadcast_shapes,
    same_shape,
    shapes_differ,
    sizes_differ,
    unsure,
)
from .unknowns import Condition, Dim, Number, Size, alone

__all__ = [
    "KINDS",
    "Condition",
    "Dim",
    "Formula",
    "Number",
    "Open",
    "OpenSize",
    "Shape",
    "Size",
    "agreed",
    "alone",
    "apart",
    "as_shape",
    "as_size",
    "as_symbol",
    "blunt",
    "broadcast_shapes",
    "dims_of",
    "evaluated",
    "exact_quotient",
    "holds",
    "is_open",
    "known_size",
    "largest",
    "lowered",
    "planned",
    "same_shape",
    "same_size",
    "shapes_differ",
    "sizes_differ",
    "smallest",
    "unsure",
]
