"""Helpers for rules about matrices, which are in the last two axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....core.extend import F, TensorSpec, as_tensor, known_size, ops, sizes_differ, smallest


def transposed(x: Any) -> Any:
    """Return the transpose of matrices."""
    return F.swapaxes(x, axis1=-1, axis2=-2)


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose of matrices."""
    return F.conj(transposed(x)) if x.dtype.kind == "c" else transposed(x)


def over_matrix(g: Any) -> Any:
    """Return numbers, one per matrix, shaped to broadcast with the matrices."""
    return F.expand_dims(g, axis=(-2, -1))


def over_columns(s: Any) -> Any:
    """Return vectors shaped so that each element scales a column."""
    return F.expand_dims(s, axis=-2)


def over_rows(s: Any) -> Any:
    """Return vectors shaped so that each element scales a row."""
    return F.expand_dims(s, axis=-1)


def diagonals(x: Any) -> Any:
    """Return the diagonals of matrices, as the last axis."""
    return F.diagonal(x, offset=0)


def on_diagonal(s: Any, like: Any) -> Any:
    """Return square matrices of the shape of ``like`` with vectors ``s`` on their diagonals."""
    one = F.tril(F.triu(F.ones_like(like), k=0), k=0)
    return one * over_columns(s)


def hermitian_from_lower(x: Any) -> Any:
    """Return matrices with the lower triangle of ``x`` and its mirror; the diagonal is real."""
    lower = (F.tril(x, k=0) + F.tril(x, k=-1)) * 0.5
    return lower + adjoint(lower)


def inexact(dtype: Any) -> Any:
    """Return the floating or complex dtype in which matrices of ``dtype`` are factored."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def real_of(dtype: Any) -> Any:
    """Return the real dtype of the same precision."""
    return np.empty(0, inexact(dtype)).real.dtype


def square_shape(x: TensorSpec, name: str) -> Any:
    """Return the shape of square matrices; raise if they are not."""
    shape = x.shape
    if shape is not None and (len(shape) < 2 or sizes_differ(*shape[-2:])):
        raise np.linalg.LinAlgError(f"{name}: square matrices are needed, got shape {shape}")
    return shape


def sizes_of_matrices(x: TensorSpec, name: str) -> tuple[Any, Any, Any]:
    """Return the batch shape, rows and columns of matrices; raise if there are no two axes."""
    if x.shape is None:
        return None, None, None
    if len(x.shape) < 2:
        raise np.linalg.LinAlgError(f"{name}: matrices are needed, got shape {x.shape}")
    return x.shape[:-2], x.shape[-2], x.shape[-1]


def smaller_size(rows: Any, columns: Any) -> Any:
    """Return the smaller of two sizes, None if one is unknown."""
    if rows is None or columns is None:
        return None
    both_known = known_size(rows) and known_size(columns)
    return min(rows, columns) if both_known else smallest(rows, columns)


def with_sizes(batch: Any, *sizes: Any) -> Any:
    """Return a batch shape with sizes added, None if it is unknown."""
    return None if batch is None else (*batch, *sizes)


# -- tensors to factor, recorded -------------------------------------------------------------------


def as_inexact(x: Any) -> Any:
    """Return a tensor to factor: integers become ``float64``."""
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else x.astype("float64")


def conjugate_transpose(x: Any) -> Any:
    """Return the conjugate transpose of tensors: :func:`adjoint`, recorded."""
    flipped = ops["swapaxes"](as_tensor(x), axis1=-1, axis2=-2)
    return ops["conj"](flipped) if flipped.dtype.kind == "c" else flipped


def hermitian_part(a: Any, name: str) -> Any:
    """Return the Hermitian matrices whose lower triangle is that of ``a``."""
    a = as_inexact(a)
    square_shape(a, name)
    lower = ops["tril"](a, k=-1)
    middle = ops["real"](a - lower) if a.dtype.kind == "c" else a - lower
    return lower + conjugate_transpose(lower) + ops["tril"](middle, k=0)
