"""``tf.linalg``: products with their flags, factorizations, diagonals and norms."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape

from ...core.extend import as_size, largest
from .dtypes import cast
from .names import adapts, lookup
from .tensors import axes, convert_to_tensor, sizes

__all__ = "band_part diag norm".split()


# -- products --------------------------------------------------------------------------------------


def turned(x: Any, transpose: bool, adjoint: bool, op: str) -> Any:
    """Return matrices, transposed or adjoint if a flag is set."""
    if not transpose and not adjoint:
        return x
    if transpose and adjoint:
        raise ValueError(f"{op}: pass either transpose or adjoint for an argument, not both")
    turned = gradtape.matrix_transpose(x)
    return gradtape.conj(turned) if adjoint else turned


def turned_matmul(
    a: Any, b: Any, t_a: bool, t_b: bool, adjoint_a: bool, adjoint_b: bool, output_type: Any
) -> Any:
    """Return the product of matrices, each transposed or adjoint if its flag is set."""
    if output_type is not None:
        a, b = cast(a, output_type), cast(b, output_type)
    for x in (a, b):
        shape = x.array.shape
        if shape is not None and len(shape) < 2:
            raise ValueError(f"matmul: the arguments must be matrices, got shape {shape}")
    a, b = turned(a, t_a, adjoint_a, "matmul"), turned(b, t_b, adjoint_b, "matmul")
    return gradtape.matmul(a, b)


# -- diagonals -------------------------------------------------------------------------------------


@adapts("diag")
def diag(
    diagonal: Any,
    name: str = "diag",
    k: int = 0,
    num_rows: int = -1,
    num_cols: int = -1,
    padding_value: Any = 0,
    align: str = "",
) -> Any:
    """Return square matrices with the vectors of the last axis on diagonal ``k``."""
    if (num_rows, num_cols) != (-1, -1) or padding_value != 0:
        raise ValueError(
            "diag: num_rows, num_cols and padding_value are not supported: leave them out"
        )
    diagonal, k = convert_to_tensor(diagonal), one(k)
    if diagonal.ndim == 1:
        return gradtape.diag(diagonal, k)
    n = diagonal.shape[-1] + abs(k)
    if k:
        widths = [(0, 0)] * (diagonal.ndim - 1) + [(0, k) if k > 0 else (-k, 0)]
        diagonal = gradtape.pad(diagonal, widths)
    # row i has its element in column i + k
    return gradtape.expand_dims(diagonal, -1) * gradtape.eye(n, k=k, dtype=diagonal.dtype)


def repeated(matrix: Any, batch_shape: Any) -> Any:
    """Return a matrix for each example of a batch."""
    return gradtape.broadcast_to(matrix, (*sizes(batch_shape, "eye"), *matrix.shape))


def one(k: Any) -> int:
    if np.size(k) != 1:
        raise ValueError(f"diagonals {k!r}: a range of diagonals is not supported: pass one number")
    return int(np.asarray(k).reshape(()))


@adapts("tril", "triu")
def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> Any:
    """Return matrices with zeros outside a band; a negative number keeps a whole triangle."""
    x = convert_to_tensor(input)
    lower, upper = as_size(num_lower, "band_part"), as_size(num_upper, "band_part")
    if (lower < 0) is not True:
        x = gradtape.triu(x, -_kept(lower, x, -2))
    return x if (upper < 0) is True else gradtape.tril(x, _kept(upper, x, -1))


def _kept(count: Any, x: Any, axis: int) -> Any:
    """Return how many diagonals next to the main one are kept: all for a negative count."""
    if (count < 0) is False:
        return count
    # the sign is unknown in the trace: a negative count becomes at least the size
    return count + largest(-count, 0) * (x.shape[axis] + 1)


# -- norms -----------------------------------------------------------------------------------------


@adapts("linalg.norm")
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = False,
    name: str | None = None,
) -> Any:
    """Return norms of vectors or matrices."""
    x, axis = convert_to_tensor(tensor), axes(axis)
    if type(axis) is tuple and len(axis) == 2:
        return gradtape.linalg.norm(x, "fro" if ord == "euclidean" else ord, axis, bool(keepdims))
    if ord == "fro":
        raise ValueError("norm: 'fro' is a norm of matrices: pass a pair of axes as axis")
    order = 2 if ord == "euclidean" else ord
    return gradtape.linalg.vector_norm(x, axis, bool(keepdims), order)


__getattr__ = lookup(__name__)
