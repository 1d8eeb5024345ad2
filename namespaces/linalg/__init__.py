"""Linear algebra under NumPy's names: products, norms, solvers and decompositions."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.linalg.contractions import einsum as einsum
from ..plugins.ops.linalg.contractions import tensordot as tensordot
from ..plugins.ops.linalg.decompositions import cholesky as cholesky
from ..plugins.ops.linalg.decompositions import qr as qr
from ..plugins.ops.linalg.decompositions import svd as svd
from ..plugins.ops.linalg.decompositions import svdvals as svdvals
from ..plugins.ops.linalg.determinants import det as det
from ..plugins.ops.linalg.determinants import slogdet as slogdet
from ..plugins.ops.linalg.eigenvalues import eig as eig
from ..plugins.ops.linalg.eigenvalues import eigh as eigh
from ..plugins.ops.linalg.eigenvalues import eigvals as eigvals
from ..plugins.ops.linalg.eigenvalues import eigvalsh as eigvalsh
from ..plugins.ops.linalg.least_squares import lstsq as lstsq
from ..plugins.ops.linalg.least_squares import matrix_rank as matrix_rank
from ..plugins.ops.linalg.least_squares import pinv as pinv
from ..plugins.ops.linalg.linear_systems import inv as inv
from ..plugins.ops.linalg.linear_systems import solve as solve
from ..plugins.ops.linalg.linear_systems import solve_triangular as solve_triangular
from ..plugins.ops.linalg.linear_systems import tensorinv as tensorinv
from ..plugins.ops.linalg.linear_systems import tensorsolve as tensorsolve
from ..plugins.ops.linalg.matmul import matmul as matmul
from ..plugins.ops.linalg.matrix_functions import diagonal as diagonal
from ..plugins.ops.linalg.matrix_functions import expm as expm
from ..plugins.ops.linalg.matrix_functions import matrix_power as matrix_power
from ..plugins.ops.linalg.matrix_functions import trace as trace
from ..plugins.ops.linalg.norms import cond as cond
from ..plugins.ops.linalg.norms import matrix_norm as matrix_norm
from ..plugins.ops.linalg.norms import norm as norm
from ..plugins.ops.linalg.norms import vector_norm as vector_norm
from ..plugins.ops.linalg.products import cross as cross
from ..plugins.ops.linalg.products import dot as dot
from ..plugins.ops.linalg.products import inner as inner
from ..plugins.ops.linalg.products import kron as kron
from ..plugins.ops.linalg.products import matvec as matvec
from ..plugins.ops.linalg.products import multi_dot as multi_dot
from ..plugins.ops.linalg.products import outer as outer
from ..plugins.ops.linalg.products import vdot as vdot
from ..plugins.ops.linalg.products import vecdot as vecdot
from ..plugins.ops.linalg.products import vecmat as vecmat
from ..plugins.ops.shapes.rearrangement import matrix_transpose as matrix_transpose
from ..public import publish

publish(__name__)
