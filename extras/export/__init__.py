"""Exports functions, gradients and training steps as ONNX, or as StableHLO by way of JAX."""

from __future__ import annotations

from ..public import publish
from .exporters import ExportError, onnx, stablehlo, to, variables

__all__ = ["ExportError", "onnx", "stablehlo", "to", "variables"]

publish(__name__)
