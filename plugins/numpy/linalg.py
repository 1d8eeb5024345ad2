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
#: The largest product of the greatest numbers in a block and in its inverse for which the inverse
#: is about as accurate as substitution.
_WELL_CONDITIONED = 16


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
    return substituted(a, b, blocks_with_inverses(below, unit_diagonal), lower)


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


def blocks_with_inverses(a: Array, unit_diagonal: bool = False) -> Array:
    """Return the blocks on the diagonal and their inverses; the last block is extended by ones.

    Parameters
    ----------
    a
        Matrices, of which only the lower triangle is read.
    unit_diagonal
        Whether the diagonal is ones, and is not read.

    Returns
    -------
    ndarray
        Of shape (..., blocks, 2, rows, columns), where the pairs are a block and its inverse.
    """
    size = a.shape[-1]
    count = -(-size // _ROWS)
    both = np.zeros((*a.shape[:-2], count, 2, _ROWS, _ROWS), a.dtype)
    blocks, inverses = both[..., 0, :, :], both[..., 1, :, :]
    for i in range(count):
        here = slice(i * _ROWS, min((i + 1) * _ROWS, size))
        rows = here.stop - here.start
        blocks[..., i, :rows, :rows] = a[..., here, here]
    np.copyto(blocks, 0, where=np.triu(np.ones((_ROWS, _ROWS), bool), 1))
    diagonal = np.einsum("...ii->...i", blocks)
    if unit_diagonal:
        diagonal[...] = 1
    diagonal[..., -1, size - (count - 1) * _ROWS :] = 1
    if not diagonal.all():
        raise np.linalg.LinAlgError("Singular matrix")
    with np.errstate(all="ignore"):  # the solution tells
        _invert(blocks, inverses)
    return both


def _invert(blocks: Array, inverses: Array) -> None:
    """Write the inverses of lower triangles, from those of their halves.

    LAPACK's inverse would exchange rows, and be far less accurate.
    """
    diagonal = np.einsum("...ii->...i", inverses)
    np.divide(1, np.einsum("...ii->...i", blocks), diagonal)
    half = 1
    while half < _ROWS:
        block, inverse = (_on_diagonal(x, 2 * half) for x in (blocks, inverses))
        first, second = slice(None, half), slice(half, None)
        left = block[..., second, first] @ inverse[..., first, first]
        np.negative(inverse[..., second, second] @ left, inverse[..., second, first])
        half *= 2


def _on_diagonal(x: Array, size: int) -> Array:
    """Return a view of the square blocks on the diagonal of matrices."""
    count = x.shape[-1] // size
    view: Array = np.einsum("...iaib->...iab", x.reshape(*x.shape[:-2], count, size, count, size))
    return view


def substituted(a: Array, b: Array, blocks: Array, lower: bool) -> Array:
    """Return the solution of triangular systems.

    Parameters
    ----------
    a, b
        Matrices, and the right sides.
    blocks
        The result of :func:`blocks_with_inverses` for ``a``, transposed if it is not lower.
    lower
        Which triangle of ``a`` is read.
    """
    size = a.shape[-1]
    a = np.ascontiguousarray(a)  # the last digits of products may depend on the order in memory
    x = np.empty(
        (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *b.shape[-2:]), np.result_type(a, b)
    )
    x[...] = b
    rough = _are_rough(blocks)
    blocks = blocks if lower else blocks.swapaxes(-1, -2)
    starts = [*enumerate(range(0, size, _ROWS))]
    with np.errstate(all="ignore"):
        for i, start in starts if lower else reversed(starts):
            here = slice(start, min(start + _ROWS, size))
            done = slice(0, start) if lower else slice(here.stop, None)
            rows = x[..., here, :]
            count = rows.shape[-2]
            block, inverse = blocks[..., i, 0, :count, :count], blocks[..., i, 1, :count, :count]
            rest = rows - a[..., here, done] @ x[..., done, :]
            rows[...] = inverse @ rest
            if rough[i]:  # one correction is as accurate as substitution
                rest -= block @ rows
                rows += inverse @ rest
        if not np.isfinite(x).all():
            _substitute_by_rows(a, b, x, blocks, lower)
    return x


def _are_rough(blocks: Array) -> list[bool]:
    """Return for which blocks a product with the inverse may lose digits."""
    sizes = np.abs(blocks).max((*range(blocks.ndim - 4), -2, -1))
    with np.errstate(all="ignore"):
        found: list[bool] = (~(sizes[:, 0] * sizes[:, 1] <= _WELL_CONDITIONED)).tolist()
    return found


def _substitute_by_rows(a: Array, b: Array, x: Array, blocks: Array, lower: bool) -> None:
    """Write the solution to ``x`` if inverses overflow, or numbers are not finite.

    Infinities and nan then reach only rows that depend on them.
    """
    size = a.shape[-1]
    x[...] = b
    for i in range(size) if lower else reversed(range(size)):
        done = slice(0, i) if lower else slice(i + 1, None)
        row, place = x[..., i : i + 1, :], i % _ROWS
        row -= a[..., i : i + 1, done] @ x[..., done, :]
        row /= blocks[..., i // _ROWS, 0, place, place][..., None, None]


#: Kernels by op.
