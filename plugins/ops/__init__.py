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
from .indexing import duplicate_indices, getitem, selection, sets, sorting, take
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
from .shapes import (
    adjoints,
    application,
    broadcasting,
    creation,
    diagonals,
    editing,
    joining,
    padding,
    ranges,
    rearrangement,
    reshaping,
    splitting,
    tiling,
    transposition,
)
from .statistics import covariance, histograms, statistics

__all__ = [
    "activations",
    "adjoints",
    "application",
    "arithmetic",
    "blocks",
    "broadcasting",
    "calculus",
    "casting",
    "comparison",
    "complex_numbers",
    "control",
    "convolution",
    "covariance",
    "creation",
    "decompositions",
    "diagonals",
    "distributions",
    "duplicate_indices",
    "editing",
    "einsum",
    "extrema",
    "factorizations",
    "fft",
    "fitting",
    "floating_point",
    "getitem",
    "gradtape_ops",
    "histograms",
    "images",
    "integers",
    "joining",
    "least_squares",
    "linalg",
    "losses",
    "matrices",
    "matrix_functions",
    "nan_statistics",
    "nn",
    "normalization",
    "norms",
    "padding",
    "polynomials",
    "pooling",
    "powers",
    "products",
    "random",
    "ranges",
    "rearrangement",
    "reductions",
    "reshaping",
    "rounding",
    "row_loops",
    "scans",
    "selection",
    "sets",
    "shrinkage",
    "sorting",
    "special",
    "splitting",
    "statistics",
    "take",
    "tensor_equations",
    "tiling",
    "transposition",
    "trigonometry",
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
