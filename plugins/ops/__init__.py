"""The ops, as one plugin: a room for each chapter of NumPy's manual, an op with all of its rules.

``common`` holds the tools that rooms share. Rooms import each other in one direction alone, which
``.importlinter`` checks.
"""

from __future__ import annotations

from importlib import import_module

from ...core.extend import Op, hookimpl
from .common.op_builders import OPS
from .random.generator import Generator

__all__ = ["gradtape_modules", "gradtape_ops"]

#: What defines ops and the functions made of them, by room.
MODULES = {
    "analysis": "calculus fitting polynomials",
    "control": "cond loops scan subgraphs while_loop",
    "elementwise": (
        "arithmetic casting comparison complex_numbers extrema floating_point integers "
        "powers rounding special trigonometry"
    ),
    "fourier": "fft",
    "indexing": "batched_index duplicate_indices getitem scattering selection sets sorting take",
    "linalg": (
        "decompositions determinants eigenvalues einsum least_squares linear_systems "
        "matmul matrices matrix_diagonals matrix_functions norms products tensordot"
    ),
    "network": (
        "channels convolution dropout embeddings losses normalization pooling "
        "softmax_cross_entropy transposed_convolution windows"
    ),
    "network.activations": "gates rectifiers shrinkage sigmoids softmax",
    "random": "distributions functions gamma generator keys parameters",
    "reductions": "nan_statistics options reductions scans",
    "shapes": "arrangement creation diagonals editing joining like padding sequences shape",
    "statistics": "covariance histograms statistics",
}

for _room, _modules in MODULES.items():
    for _module in _modules.split():
        import_module(f".{_room}.{_module}", __name__)


@hookimpl
def gradtape_modules() -> dict[str, type]:
    """Provide the module classes of this package to saved files."""
    return {"random.Generator": Generator}


@hookimpl
def gradtape_ops() -> list[Op]:
    """Provide every op defined in this package."""
    return OPS
