"""The exporters that ship with gradtape, as a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import hookimpl
from .to_onnx import onnx
from .to_stablehlo import stablehlo


@hookimpl(trylast=True)
def gradtape_exporters() -> dict[str, Callable[..., bytes]]:
    """Provide ONNX and StableHLO."""
    return {"onnx": onnx, "stablehlo": stablehlo}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List libraries of exports in ``gradtape doctor``."""
    return {"export": lambda: {"packages": {"onnx": "onnx"}}}
