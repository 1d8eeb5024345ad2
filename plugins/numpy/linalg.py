"""Matrix products and norms that are faster on NumPy than the portable kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..ops.common.axes import Axis
from ..ops.linalg import determinants, linear_systems, matmul, norms
from .reductions import SMALLEST_SQUARE

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"


#: NumPy's own dtype object. Arrays of other libraries may have another; their products are slow.
_HALF = np.dtype(np.float16)
_product = np.matmul


def _in_float32(kernel: Callable[..., Array], *arrays: Array) -> Array:
    """Run a kernel on float16 as float32, which BLAS supports; its sums are rounded once."""
    return kernel(*[x.astype(np.float32) for x in arrays]).astype(np.float16)


def matmul_on_numpy(x: Array, y: Array) -> Array:
    try:
        if x.dtype is _HALF is y.dtype:
            return _in_float32(matmul_on_numpy, x, y)
        if y.ndim == 2 < x.ndim and x.size:  # one product for all rows, not one per matrix
            rows: Array = x.reshape(-1, x.shape[-1]) @ y
            return rows.reshape(*x.shape[:-1], y.shape[1])
        product: Array = _product(x, y)
        return product
    except (AttributeError, TypeError, ValueError):
        return matmul.matmul_kernel(np, x, y)  # which reports what does not fit


def matmul_adjoint_x_on_numpy(g: Array, y: Array, like: Array) -> Array:
    if g.dtype is _HALF is y.dtype:
        return _in_float32(matmul_adjoint_x_on_numpy, g, y, like)
    if y.ndim == 2 == like.ndim:
        return g @ y.T
    if y.ndim == 2 < g.ndim == like.ndim:
        return matmul_on_numpy(g, y.T)
    return matmul.adjoint_x_kernel(np, g, y, like)


def matmul_adjoint_y_on_numpy(g: Array, x: Array, like: Array) -> Array:
    if g.dtype is _HALF is x.dtype:
        return _in_float32(matmul_adjoint_y_on_numpy, g, x, like)
    if x.ndim == 2 == like.ndim:
        return x.T @ g
    return matmul.adjoint_y_kernel(np, g, x, like)


def norm_on_numpy(x: Array, *, axis: Axis = None, keepdims: bool = False) -> Any:
    smallest = SMALLEST_SQUARE.get(x.dtype.char)
    if smallest is not None and (axis is None or (axis in (0, -1) and x.ndim == 1)):
        flat = x.reshape(-1)
        with np.errstate(over="ignore", under="ignore"):
            total = flat.dot(flat)
        if smallest <= total < np.inf:
            size = np.sqrt(total)
            return size.reshape((1,) * x.ndim) if keepdims else size
    return norms.norm_kernel(np, x, axis=axis, keepdims=keepdims)


def cofactor_on_numpy(x: Array) -> Array:
    """Return the cofactors from minors or an inverse; use singular values only if these fail."""
    size = x.shape[-1]
    if size < 2 or x.ndim < 2 or x.shape[-2] != size or x.dtype.char not in "fdFD":
        portable: Array = determinants.cofactor_kernel(np, x)
        return portable
    if size < 4:
        return _minors(x)
    matrices, limits = x.reshape(-1, size, size), np.finfo(x.dtype)
    with np.errstate(all="ignore"):
        det = np.linalg.det(matrices)
        sound = np.isfinite(det) & (np.abs(det) > limits.tiny)
        regular = matrices
        if not sound.all():
            regular = np.where(sound[:, None, None], matrices, np.eye(size, dtype=x.dtype))
        inverse = np.linalg.inv(regular)
        sound &= _row_sum(regular) * _row_sum(inverse) < limits.eps**-0.3
        result: Array = det[:, None, None] * inverse.swapaxes(1, 2)
    if not sound.all():
        result[~sound] = determinants.cofactor_kernel(np, matrices[~sound])
    return result.reshape(x.shape)


def _row_sum(x: Array) -> Any:
    return np.abs(x).sum(-1).max(-1)


def _minors(x: Array) -> Array:
    result: Array = np.empty_like(x)
    if x.shape[-1] == 2:
        result[...] = x[..., ::-1, ::-1]
        result[..., 0, 1] *= -1
        result[..., 1, 0] *= -1
        return result
    for i in range(3):
        # the signs are right because rows and columns are taken cyclically
        first, second = x[..., i - 2, :], x[..., i - 1, :]
        for j in range(3):
            minor = first[..., j - 2] * second[..., j - 1]
            minor -= first[..., j - 1] * second[..., j - 2]
            result[..., i, j] = minor
    return result


#: Triangular systems are solved in blocks of rows of this size if they have this many rows.
_ROWS, _MANY_ROWS = 16, 48


def solve_triangular_on_numpy(
    a: Array, b: Array, *, lower: bool = False, unit_diagonal: bool = False
) -> Array:
    """Substitute block by block: NumPy lacks this, and its ``solve`` would factorise first."""
    if not in_blocks(a.shape, np.result_type(a, b)) or not b.size:
        portable: Array = linear_systems.solve_triangular_kernel(
            np, a, b, lower=lower, unit_diagonal=unit_diagonal
        )
        return portable
    below = a if lower else a.swapaxes(-1, -2)
    return substituted(a, b, inverses_of_blocks(below, unit_diagonal), lower)


def in_blocks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether triangular systems are solved in blocks.

    Parameters
    ----------
    shape
        The shape of the matrices.
    dtype
        The dtype of the solution.
    """
    return dtype.char in "fdFD" and shape[-1] >= _MANY_ROWS


def inverses_of_blocks(a: Array, unit_diagonal: bool = False) -> Array:
    """Return the inverses of the blocks on the diagonal; the last one is extended by ones.

    Parameters
    ----------
    a
        Matrices, of which only the lower triangle is read.
    unit_diagonal
        Whether the diagonal is ones, and is not read.
    """
    size = a.shape[-1]
    count = -(-size // _ROWS)
    blocks = np.zeros((*a.shape[:-2], count, _ROWS, _ROWS), a.dtype)
    for i in range(count):
        here = slice(i * _ROWS, min((i + 1) * _ROWS, size))
        rows = here.stop - here.start
        blocks[..., i, :rows, :rows] = a[..., here, here]
    diagonal = np.einsum("...ii->...i", blocks)
    if unit_diagonal:
        diagonal[...] = 1
    diagonal[..., -1, size - (count - 1) * _ROWS :] = 1
    if not diagonal.all():
        raise np.linalg.LinAlgError("Singular matrix")
    inverses: Array = np.linalg.inv(np.tril(blocks))
    return inverses


def substituted(a: Array, b: Array, inverses: Array, lower: bool) -> Array:
    """Return the solution of triangular systems.

    Parameters
    ----------
    a, b
        Matrices, and the right sides.
    inverses
        The result of :func:`inverses_of_blocks` for ``a``, transposed if it is not lower.
    lower
        Which triangle of ``a`` is read.
    """
    size = a.shape[-1]
    a = np.ascontiguousarray(a)  # the last digits of products may depend on the order in memory
    x = np.empty(
        (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), np.result_type(a, b)
    )
    x[...] = b
    inverses = inverses if lower else inverses.swapaxes(-1, -2)
    starts = [*enumerate(range(0, size, _ROWS))]
    for i, start in starts if lower else reversed(starts):
        here = slice(start, min(start + _ROWS, size))
        done = slice(0, start) if lower else slice(here.stop, None)
        rows = x[..., here, :]
        rest = rows - a[..., here, done] @ x[..., done, :]
        rows[...] = inverses[..., i, : rows.shape[-2], : rows.shape[-2]] @ rest
    return x


#: Kernels by op.
