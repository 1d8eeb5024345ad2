"""Functions, gradients and training steps for other runtimes: ONNX, and StableHLO by JAX."""

from __future__ import annotations

from ..public import publish
from .errors import ExportError
from .to_onnx import onnx
from .to_stablehlo import stablehlo, variables

__all__ = ["ExportError", "onnx", "stablehlo", "variables"]

publish(__name__)
