"""Elementwise functions that NumPy computes in one ufunc, which may have another name."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["KERNELS"]

#: Kernels by op.
KERNELS: dict[str, Callable[..., Any]] = {
    "arccos": np.arccos,
    "arccosh": np.arccosh,
    "arcsin": np.arcsin,
    "arcsinh": np.arcsinh,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "arctanh": np.arctanh,
    "exp2": np.exp2,
    "power": operator.pow,
}
