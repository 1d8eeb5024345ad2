"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from .analysis import calculus, fitting, polynomials
from .common.families import OPS
from .control import cond, scan, while_loop
from .elementwise import arithmetic as elementwise
from .elementwise import floating, special
from .elementwise import integers as whole_numbers
from .fourier import fft
from .indexing import indexing, occurrences, selection, updates
from .linalg import (
    decompositions,
    determinants,
    eigenvalues,
    einsum,
    least_squares,
    linear_systems,
    matmul,
    matrix_diagonals,
    matrix_functions,
    norms,
    products,
    tensordot,
)
from .network import (
    convolution,
    dropout,
    embeddings,
    losses,
    normalization,
    pooling,
    softmax_cross_entropy,
    transposed_convolution,
)
from .network.activations import gates, rectifiers, shrinkage, sigmoids, softmax
from .random import distributions, gamma, generator, keys
from .reductions import nan_statistics, reductions, scans
from .shapes import arrangement, creation, editing, joining, like, padding, sequences, shape
from .statistics import covariance, statistics
from .statistics import histograms as counting

__all__ = [
    "arrangement",
    "calculus",
    "cond",
    "convolution",
    "counting",
    "covariance",
    "creation",
    "decompositions",
    "determinants",
    "distributions",
    "dropout",
    "editing",
    "eigenvalues",
    "einsum",
    "elementwise",
    "embeddings",
    "fft",
    "fitting",
    "floating",
    "gamma",
    "gates",
    "generator",
    "gradtape_ops",
    "indexing",
    "joining",
    "keys",
    "least_squares",
    "like",
    "linear_systems",
    "losses",
    "matmul",
    "matrix_diagonals",
    "matrix_functions",
    "nan_statistics",
    "normalization",
    "norms",
    "occurrences",
    "padding",
    "polynomials",
    "pooling",
    "products",
    "rectifiers",
    "reductions",
    "scan",
    "scans",
    "selection",
    "sequences",
    "shape",
    "shrinkage",
    "sigmoids",
    "softmax",
    "softmax_cross_entropy",
    "special",
    "statistics",
    "tensordot",
    "transposed_convolution",
    "updates",
    "while_loop",
    "whole_numbers",
]


@hookimpl
def gradtape_modules() -> dict[str, type]:
    """Provide the module classes of this package to saved files."""
    return {"random.Generator": generator.Generator}


@hookimpl
def gradtape_ops() -> list[Op]:
    """Provide every op defined in this package."""
    return OPS
