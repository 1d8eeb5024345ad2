"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from .analysis import calculus, fitting, polynomials
from .common.op_builders import OPS
from .control import control
from .control import scan as row_loops
from .elementwise import (
    arithmetic,
    bounds,
    casting,
    comparison,
    complex_numbers,
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
from .reductions import cumulative, extrema, nan_extrema, nan_sums, sums, truth, variance
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
from .statistics import covariance, histograms, nan_quantiles, quantiles

__all__ = [
    "activations",
    "adjoints",
    "application",
    "arithmetic",
    "blocks",
    "bounds",
    "broadcasting",
    "calculus",
    "casting",
    "comparison",
    "complex_numbers",
    "control",
    "convolution",
    "covariance",
    "creation",
    "cumulative",
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
    "nan_extrema",
    "nan_quantiles",
    "nan_sums",
    "nn",
    "normalization",
    "norms",
    "padding",
    "polynomials",
    "pooling",
    "powers",
    "products",
    "quantiles",
    "random",
    "ranges",
    "rearrangement",
    "reshaping",
    "rounding",
    "row_loops",
    "selection",
    "sets",
    "shrinkage",
    "sorting",
    "special",
    "splitting",
    "sums",
    "take",
    "tensor_equations",
    "tiling",
    "transposition",
    "trigonometry",
    "truth",
    "variance",
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
