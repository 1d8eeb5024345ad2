"""Exports functions, gradients and training steps as ONNX, or as StableHLO by way of JAX."""

from __future__ import annotations

from ..public import publish
from .exporters import onnx, stablehlo, to, variables
from .tracing import ExportError

__all__ = ["ExportError", "onnx", "stablehlo", "to", "variables"]

publish(__name__)
