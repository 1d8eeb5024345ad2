"""Dtypes that rules compute in, and results in them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import F, as_tensor, ops

__all__ = ["SCALARS", "as_floating", "as_like", "inexact", "real_of"]

SCALARS = (bool, int, float, complex)


def inexact(dtype: Any) -> Any:
    """Return the floating or complex dtype in which numbers of ``dtype`` are factored."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def real_of(dtype: Any) -> Any:
    """Return the real dtype of that precision."""
    return np.empty(0, inexact(dtype)).real.dtype


def as_like(g: Any, like: Any) -> Any:
    """Return a gradient in the dtype of ``like``; its shape is right already."""
    return g if g.dtype == like.dtype else F.cast_like(g, like)


def as_floating(x: Any) -> Any:
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else ops["cast"](x, dtype="float64")
