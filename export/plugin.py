"""The exporters that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable

from ..core.extend import hookimpl
from .to_onnx import onnx
from .to_stablehlo import stablehlo

__all__ = ["gradtape_exporters"]


@hookimpl(trylast=True)
def gradtape_exporters() -> dict[str, Callable[..., bytes]]:
    """Provide ONNX and StableHLO."""
    return {"onnx": onnx, "stablehlo": stablehlo}
