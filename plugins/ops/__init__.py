"""The ops, as one plugin: a folder for each chapter of NumPy's manual, and all rules of each op.

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
    "analysis": "differences fitting interpolation polynomials tapers vector_convolution",
    "collectives": "averaging exchange",
    "control": "cond effects host_call loops scan subgraphs tensor_array while_loop",
    "elementwise": (
        "arithmetic bounds casting comparison complex_numbers floating_point integers "
        "powers rounding special trigonometry"
    ),
    "fourier": "frequencies multi_dimensional one_dimensional primitives",
    "indexing": (
        "batched_index duplicate_indices getitem partitions reads selection sets sorting take"
    ),
    "linalg": (
        "decompositions determinants eigenvalues einsum least_squares linear_systems "
        "matmul matrices matrix_diagonals matrix_functions norms products tensordot"
    ),
    "network": (
        "channels convolution dropout embeddings labels losses normalization pooling "
        "softmax_cross_entropy transposed_convolution windows"
    ),
    "network.activations": "gates rectifiers shrinkage sigmoids softmax",
    "random": "distributions functions gamma generator keys parameters philox",
    "reductions": "builder cumulative extrema nan_extrema nan_sums options sums truth variance",
    "shapes": (
        "adjoints application broadcasting creation diagonals editing index_grids joining padding "
        "ranges rearrangement reshaping splitting tiling transposition"
    ),
    "statistics": "covariance histograms nan_quantiles quantiles",
    "images": "resizing placing colours measures",
}

for _room, _modules in MODULES.items():
    for _module in _modules.split():
        import_module(f".{_room}.{_module}", __name__)


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
