"""Linear algebra under NumPy's names: products, norms, and what is solved or factored."""

from __future__ import annotations

from .decompositions import cholesky, det, inv, slogdet, solve, trace
from .einsum import einsum
from .factorizations import eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from .indexing import diagonal
from .least_squares import lstsq, matrix_rank, pinv
from .matrix_functions import expm, matrix_power, multi_dot, solve_triangular
from .norms import cond, matrix_norm, norm, vector_norm
from .products import cross, dot, inner, kron, matmul, outer, tensordot, vdot, vecdot
from .shape import matrix_transpose
from .tensor_equations import matvec, tensorinv, tensorsolve, vecmat

__all__ = [
    "cholesky",
    "cond",
    "cross",
    "det",
    "diagonal",
    "dot",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "inner",
    "inv",
    "kron",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "vdot",
    "vecdot",
    "vecmat",
    "vector_norm",
]
