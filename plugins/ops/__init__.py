"""The op families, as one plugin."""

from __future__ import annotations

from ...core.extend import Op, hookimpl
from . import (
    activations,
    arrangement,
    blocks,
    calculus,
    control,
    convolution,
    counting,
    creation,
    decompositions,
    distributions,
    editing,
    einsum,
    elementwise,
    factorizations,
    fft,
    fitting,
    floating,
    images,
    indexing,
    joining,
    least_squares,
    like,
    linalg,
    losses,
    matrices,
    matrix_functions,
    nn,
    normalization,
    norms,
    occurrences,
    padding,
    polynomials,
    pooling,
    products,
    random,
    reductions,
    scans,
    selection,
    sequences,
    shape,
    shrinkage,
    special,
    statistics,
    tensor_equations,
    updates,
    windows,
)
from .families import OPS

__all__ = [
    "activations",
    "arrangement",
    "blocks",
    "calculus",
    "control",
    "convolution",
    "counting",
    "creation",
    "decompositions",
    "distributions",
    "editing",
    "einsum",
    "elementwise",
    "factorizations",
    "fft",
    "fitting",
    "floating",
    "gradtape_ops",
    "images",
    "indexing",
    "joining",
    "least_squares",
    "like",
    "linalg",
    "losses",
    "matrices",
    "matrix_functions",
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
    "scans",
    "selection",
    "sequences",
    "shape",
    "shrinkage",
    "special",
    "statistics",
    "tensor_equations",
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
