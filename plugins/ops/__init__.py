"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from .analysis import calculus, fitting, polynomials
from .common.families import OPS
from .control import control
from .control import scan as row_loops
from .elementwise import arithmetic as elementwise
from .elementwise import floating, special
from .elementwise import integers as whole_numbers
from .fourier import fft
from .indexing import indexing, occurrences, selection, updates
from .linalg import (
    decompositions,
    determinants,
    diagonals,
    eigenvalues,
    einsum,
    least_squares,
    linear_systems,
    matmul,
    matrices,
    matrix_functions,
    norms,
    products,
    tensordot,
)
from .network import (
    activations,
    blocks,
    convolution,
    images,
    losses,
    nn,
    normalization,
    pooling,
    shrinkage,
    windows,
)
from .random import distributions, random
from .reductions import nan_statistics, reductions, scans
from .shapes import arrangement, creation, editing, joining, like, padding, sequences, shape
from .statistics import covariance, statistics
from .statistics import histograms as counting

__all__ = [
    "activations",
    "arrangement",
    "blocks",
    "calculus",
    "control",
    "convolution",
    "counting",
    "covariance",
    "creation",
    "decompositions",
    "determinants",
    "diagonals",
    "distributions",
    "editing",
    "eigenvalues",
    "einsum",
    "elementwise",
    "fft",
    "fitting",
    "floating",
    "gradtape_ops",
    "images",
    "indexing",
    "joining",
    "least_squares",
    "like",
    "linear_systems",
    "losses",
    "matmul",
    "matrices",
    "matrix_functions",
    "nan_statistics",
    "nn",
    "normalization",
    "norms",
    "occurrences",
    "padding",
    "polynomials",
    "pooling",
    "products",
    "random",
    "reductions",
    "row_loops",
    "scans",
    "selection",
    "sequences",
    "shape",
    "shrinkage",
    "special",
    "statistics",
    "tensordot",
    "updates",
    "whole_numbers",
    "windows",
]


@hookimpl
def gradtape_modules() -> dict[str, type]:
    """Provide the module classes of this package to saved files."""
    return {"random.Generator": random.Generator}


@hookimpl
def gradtape_ops() -> list[Op]:
    """Provide every op defined in this package."""
    return OPS
