"""Exports functions, gradients and training steps as ONNX, or as StableHLO by way of JAX."""

from __future__ import annotations

from ..public import publish
from .by_name import to
from .errors import ExportError
from .to_onnx import onnx
from .to_stablehlo import stablehlo, variables

__all__ = ["ExportError", "onnx", "stablehlo", "to", "variables"]

publish(__name__)
