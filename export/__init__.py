"""Functions, gradients and training steps for other runtimes: ONNX, and StableHLO by JAX."""

from __future__ import annotations

from ..public import publish
from .errors import ExportError
from .to_onnx import onnx

__all__ = ["ExportError", "onnx"]

publish(__name__)
