"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from .analysis import calculus, fitting, polynomials
from .common.op_builders import OPS
from .control import control
from .control import scan as row_loops
from .elementwise import (
    arithmetic,
    casting,
    comparison,
    complex_numbers,
    extrema,
    floating_point,
    integers,
    powers,
    rounding,
    special,
    trigonometry,
)
from .fourier import fft
from .indexing import indexing, occurrences, selection, updates
from .linalg import (
    decompositions,
    einsum,
    factorizations,
    least_squares,
    matrices,
    matrix_functions,
    norms,
    products,
    tensor_equations,
)
from .linalg import namespace as linalg
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
    "arithmetic",
    "arrangement",
    "blocks",
    "calculus",
    "casting",
    "comparison",
    "complex_numbers",
    "control",
    "convolution",
    "counting",
    "covariance",
    "creation",
    "decompositions",
    "distributions",
    "editing",
    "einsum",
    "extrema",
    "factorizations",
    "fft",
    "fitting",
    "floating_point",
    "gradtape_ops",
    "images",
    "indexing",
    "integers",
    "joining",
    "least_squares",
    "like",
    "linalg",
    "losses",
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
    "powers",
    "products",
    "random",
    "reductions",
    "rounding",
    "row_loops",
    "scans",
    "selection",
    "sequences",
    "shape",
    "shrinkage",
    "special",
    "statistics",
    "tensor_equations",
    "trigonometry",
    "updates",
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
