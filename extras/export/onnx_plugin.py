"""How ONNX expresses ops: a plugin that names them, and imports spox with the first export."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import hookimpl, late_entry

#: The ops with nodes of their own in ``onnx_lowerings``, and those in ``onnx_control``.
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
        **{(op, "onnx"): late_entry("export.onnx_lowerings", "LOWERINGS", op) for op in NODES},
        **{(op, "onnx"): late_entry("export.onnx_control", "CONTROL", op) for op in CONTROL},
    }
