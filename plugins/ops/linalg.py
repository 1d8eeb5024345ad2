"""Linear algebra under NumPy's names: products, norms, and what is solved or factored."""

from __future__ import annotations

from .decompositions import cholesky, det, inv, norm, slogdet, solve, trace
from .einsum import einsum
from .indexing import diagonal
from .products import dot, matmul, outer, tensordot
from .shape import matrix_transpose

__all__ = [
    "cholesky",
    "det",
    "diagonal",
    "dot",
    "einsum",
    "inv",
    "matmul",
    "matrix_transpose",
    "norm",
    "outer",
    "slogdet",
    "solve",
    "tensordot",
    "trace",
]
