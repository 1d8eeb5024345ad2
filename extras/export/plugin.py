"""The exporters that ship with gradtape and ONNX's lowerings of ops, as a plugin.

Lowerings are only named here: spox is imported with the first export.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import hookimpl, lazy_entry
from .exporters import onnx, stablehlo


@hookimpl(trylast=True)
def gradtape_exporters() -> dict[str, Callable[..., bytes]]:
    """Provide ONNX and StableHLO."""
    return {"onnx": onnx, "stablehlo": stablehlo}


@hookimpl(trylast=True)
def gradtape_formats() -> dict[str, str]:
    """Say what to call for files that ``save`` does not write."""
    onnx = "gradtape.export.onnx(model, spec, path=...) writes ONNX, from a TensorSpec of the input"
    stablehlo = "gradtape.export.stablehlo(model, spec, path=...) writes StableHLO"
    return {".onnx": onnx, ".mlir": stablehlo, ".stablehlo": stablehlo}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List libraries of exports in ``gradtape doctor``."""
    return {"export": lambda: {"packages": {"onnx": "onnx"}}}


#: The ops with nodes of their own, and those that run graphs: both are in ``onnx_lowerings``.
NODES = (
    "avg_pool class_labels conv det digamma erf erfc gelu gelu_slope lgamma log_softmax max_pool "
    "nextafter polygamma relu sigmoid softmax spacing sparse_softmax_cross_entropy unbroadcast_like"
).split()
CONTROL = ("cond", "scan", "while_loop")


@hookimpl(trylast=True)
def gradtape_lowerings() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide lowerings to ONNX; an op whose kernel uses the array API needs none.

    A lowering is a function of a namespace of arrays, the op's arrays and its parameters. It
    returns NotImplemented where the op's own kernel should run instead.
    """
    return {
        **{(op, "onnx"): lazy_entry("export.onnx_lowerings", "LOWERINGS", op) for op in NODES},
        **{(op, "onnx"): lazy_entry("export.onnx_lowerings", "CONTROL", op) for op in CONTROL},
    }
