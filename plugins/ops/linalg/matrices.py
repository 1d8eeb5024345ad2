"""What rules about matrices share; matrices are in the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import F, TensorSpec, as_tensor, ops

__all__ = [
    "adjoint",
    "apart",
    "floating",
    "over_columns",
    "over_matrix",
    "over_rows",
    "shaped",
    "sizes_of_matrices",
    "smaller",
    "square",
    "transposed",
    "turned",
]


def transposed(x: Any) -> Any:
    """Return the transpose of matrices."""
    return F.swapaxes(x, axis1=-1, axis2=-2)


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return F.conj(transposed(x)) if x.dtype.kind == "c" else transposed(x)


def over_matrix(g: Any) -> Any:
    """Return numbers, one per matrix, so that they broadcast with the matrices."""
    return F.expand_dims(g, axis=(-2, -1))


def over_columns(s: Any) -> Any:
    """Return vectors so that each of their elements scales a column."""
    return F.expand_dims(s, axis=-2)


def over_rows(s: Any) -> Any:
    """Return vectors so that each of their elements scales a row."""
    return F.expand_dims(s, axis=-1)


def apart(s: Any) -> Any:
    """Return ``1 / (s[j] - s[i])`` for all pairs, and 0 where two elements are equal."""
    gaps = over_columns(s) - over_rows(s)
    equal = F.equal(gaps, 0)
    return F.where(equal, 0.0, 1.0 / F.where(equal, 1.0, gaps))


def square(x: TensorSpec, name: str) -> Any:
    """Return the shape of square matrices; raise if they are not."""
    shape = x.shape
    if shape is not None:
        fits = len(shape) > 1 and (shape[-1] == shape[-2] or None in shape[-2:])
        if not fits:
            raise np.linalg.LinAlgError(f"{name}: square matrices are needed, got shape {shape}")
    return shape


def sizes_of_matrices(x: TensorSpec, name: str) -> tuple[Any, Any, Any]:
    """Return the batch shape, rows and columns of matrices; raise if there are no two axes."""
    if x.shape is None:
        return None, None, None
    if len(x.shape) < 2:
        raise np.linalg.LinAlgError(f"{name}: matrices are needed, got shape {x.shape}")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def smaller(rows: Any, columns: Any) -> Any:
    """Return the smaller of two sizes, None if one is unknown."""
    return None if None in (rows, columns) else min(rows, columns)


def shaped(batch: Any, *sizes: Any) -> Any:
    """Return a batch shape with sizes added, None if it is unknown."""
    return None if batch is None else (*batch, *sizes)


def floating(x: Any) -> Any:
    """Return a tensor to factor: integers become ``float64``."""
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else x.astype("float64")


def turned(x: Any) -> Any:
    """Return the conjugate transpose of tensors: :func:`adjoint`, recorded."""
    flipped = ops["swapaxes"](as_tensor(x), axis1=-1, axis2=-2)
    return ops["conj"](flipped) if flipped.dtype.kind == "c" else flipped
