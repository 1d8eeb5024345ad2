"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from .analysis import differences, fitting, interpolation, polynomials, vector_convolution
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
from .fourier import frequencies, multi_dimensional, one_dimensional, primitives
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
    "differences",
    "distributions",
    "duplicate_indices",
    "editing",
    "einsum",
    "extrema",
    "factorizations",
    "fitting",
    "floating_point",
    "frequencies",
    "getitem",
    "gradtape_ops",
    "histograms",
    "images",
    "integers",
    "interpolation",
    "joining",
    "least_squares",
    "linalg",
    "losses",
    "matrices",
    "matrix_functions",
    "multi_dimensional",
    "nan_extrema",
    "nan_quantiles",
    "nan_sums",
    "nn",
    "normalization",
    "norms",
    "one_dimensional",
    "padding",
    "polynomials",
    "pooling",
    "powers",
    "primitives",
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
    "vector_convolution",
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
