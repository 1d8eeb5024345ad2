"""The ops, as one plugin: a folder for each family of ops, and all rules of each op.

``common`` holds the tools that the folders share. Folders import each other in one direction only,
which ``.importlinter`` checks.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...core.extend import Op, hookimpl
from ...public import HOMES
from .common.op_builders import OPS
from .random.functions import shared
from .random.generator import Generator

__all__ = ["gradtape_modules", "gradtape_ops", "gradtape_services"]

#: The meaning of what files name has never changed.
gradtape_compatible_since = "0.1"

#: The modules that define ops and functions made of them, by folder.
MODULES = {
    "analysis": (
        "covariance curve_fitting differences fourier fourier_nd histograms nan_quantiles "
        "polynomials quantiles signals"
    ),
    "collectives": "averaging exchange",
    "control": "conditions effects scan subgraphs tensor_array",
    "elementwise": (
        "arithmetic comparison conversion floating_point integers powers special trigonometry"
    ),
    "images": "colours measures placing resizing",
    "indexing": "batched_index getitem selection sets sorting take",
    "linalg": (
        "contractions decompositions determinants eigenvalues least_squares linear_systems "
        "matmul matrices matrix_functions norms products"
    ),
    "network": (
        "convolution embeddings gated_activations losses normalization pooling rectifiers sigmoids "
        "softmax_cross_entropy transposed_convolution windows"
    ),
    "random": "functions generator philox stateless",
    "reductions": "builder cumulative extrema nan_sums sums variance",
    "shapes": (
        "adjoints application broadcasting creation diagonals editing index_grids joining padding "
        "ranges rearrangement reshaping splitting"
    ),
}

for _family, _modules in MODULES.items():
    for _module in _modules.split():
        import_module(f".{_family}.{_module}", __name__)


@hookimpl(trylast=True)
def gradtape_modules() -> dict[str, type]:
    """Provide the module classes of this package to saved files."""
    return {"random.Generator": Generator}


@hookimpl(trylast=True)
def gradtape_ops() -> list[Op]:
    """Provide every op defined in this package."""
    return OPS


@hookimpl(trylast=True)
def gradtape_services() -> dict[str, Any]:
    """Provide the public functions to packages below: methods of tensors call them."""
    inside = f".{__name__.partition('.')[2]}."
    found = {
        f"ops.{name}": getattr(import_module(f".{home.removeprefix(inside)}", __name__), name)
        for name, home in HOMES.items()
        if home.startswith(inside)
    }
    return {**found, "ops.random_generator": shared}
