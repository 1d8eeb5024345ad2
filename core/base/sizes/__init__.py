"""Sizes that a trace does not know: expressions that compute, compare and print as integers do.

From the bottom up: :mod:`.open_values` (what needs a value and raises), :mod:`.unknowns` (sums,
proofs about them, and the classes), :mod:`.arithmetic` (their operators), :mod:`.formulas`
(expressions as graphs and files hold them) and :mod:`.shapes`.
"""

from .arithmetic import as_symbol as as_symbol
from .arithmetic import exact_quotient as exact_quotient
from .arithmetic import largest as largest
from .arithmetic import same_size as same_size
from .arithmetic import size_difference as size_difference
from .arithmetic import smallest as smallest
from .formulas import KINDS as KINDS
from .formulas import Formula as Formula
from .formulas import contains_instance as contains_instance
from .formulas import dims_of as dims_of
from .formulas import evaluated as evaluated
from .formulas import lowered as lowered
from .formulas import planned as planned
from .open_values import Open as Open
from .open_values import OpenSize as OpenSize
from .open_values import is_open as is_open
from .open_values import known_size as known_size
from .shapes import Shape as Shape
from .shapes import as_shape as as_shape
from .shapes import as_size as as_size
from .shapes import broadcast_shapes as broadcast_shapes
from .shapes import common_size as common_size
from .shapes import has_unknown_sizes as has_unknown_sizes
from .shapes import same_shape as same_shape
from .shapes import shapes_differ as shapes_differ
from .shapes import sizes_differ as sizes_differ
from .shapes import without_expressions as without_expressions
from .unknowns import Condition as Condition
from .unknowns import Dim as Dim
from .unknowns import Number as Number
from .unknowns import Size as Size
from .unknowns import size_of_atom as size_of_atom
