"""Dtypes that ops compute in."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import as_tensor, ops

SCALARS = (bool, int, float, complex)


def inexact(dtype: Any) -> Any:
    """Return the floating or complex dtype for computations with numbers of ``dtype``."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def real_of(dtype: Any) -> Any:
    """Return the real dtype of the same precision."""
    return np.empty(0, inexact(dtype)).real.dtype


def as_floating(x: Any) -> Any:
    """Return ``x`` as a tensor of floating or complex numbers; others become ``float64``."""
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else ops["cast"](x, dtype="float64")
