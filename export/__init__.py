"""Exports functions, gradients and training steps as ONNX, or as StableHLO by way of JAX."""

from __future__ import annotations

from ..public import publish
from .errors import ExportError
from .to_onnx import onnx
from .to_stablehlo import stablehlo, variables

__all__ = ["ExportError", "onnx", "stablehlo", "variables"]

publish(__name__)
