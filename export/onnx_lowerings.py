"""Ops that ONNX has itself, or that kernels cannot say in the array API's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["LOWERINGS"]

LOWERINGS: dict[str, Callable[..., Any]] = {}
