"""Rules: how the nodes of some ops become steps of a plan.

A rule computes in the order of the op's kernel on NumPy, so that the numbers are the same. ``ops``
has the table of rules, and those of a few lines. The other modules are rules of indexing, of
``einsum`` and of ``solve_triangular``, and those that look at their inputs: masks that are
constant, and factors that are one-hot.
"""

from .ops import RULES as RULES
from .ops import Rule as Rule
from .ops import cast_into as cast_into
from .ops import elementwise as elementwise
from .ops import exponentials_of as exponentials_of
from .ops import for_arrays_only as for_arrays_only
from .ops import has_rows_of_logits as has_rows_of_logits
