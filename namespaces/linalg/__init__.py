"""Linear algebra under NumPy's names: products, norms, solvers and decompositions."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.linalg.contractions import einsum, tensordot
from ..plugins.ops.linalg.decompositions import cholesky, qr, svd, svdvals
from ..plugins.ops.linalg.determinants import det, slogdet
from ..plugins.ops.linalg.eigenvalues import eig, eigh, eigvals, eigvalsh
from ..plugins.ops.linalg.least_squares import lstsq, matrix_rank, pinv
from ..plugins.ops.linalg.linear_systems import inv, solve, solve_triangular, tensorinv, tensorsolve
from ..plugins.ops.linalg.matmul import matmul
from ..plugins.ops.linalg.matrix_functions import diagonal, expm, matrix_power, trace
from ..plugins.ops.linalg.norms import cond, matrix_norm, norm, vector_norm
from ..plugins.ops.linalg.products import (
    cross,
    dot,
    inner,
    kron,
    matvec,
    multi_dot,
    outer,
    vdot,
    vecdot,
    vecmat,
)
from ..plugins.ops.shapes.rearrangement import matrix_transpose
from ..public import publish

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

publish(__name__)
