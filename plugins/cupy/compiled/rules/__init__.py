"""Rules of ops for CuPy beyond elementwise ones: views, joins, products, and written kernels."""

from __future__ import annotations

from ....planned import Rule
from .arrangements import RULES as ARRANGEMENTS
from .composed import RULES as COMPOSED
from .convolution import RULES as CONVOLUTIONS
from .indexing import RULES as INDEXING
from .lines import RULES as LINES
from .pooling import RULES as POOLING
from .products import RULES as PRODUCTS
from .rearrangement import RULES as REARRANGEMENT

#: The rules by op name; each receives nodes whose inputs are all arrays.
RULES: dict[str, Rule] = {
    **ARRANGEMENTS,
    **CONVOLUTIONS,
    **POOLING,
    **INDEXING,
    **PRODUCTS,
    **REARRANGEMENT,
    **COMPOSED,
    **LINES,
}
