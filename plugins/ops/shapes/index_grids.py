"""Indices of grids, triangles and diagonals, as tuples of tensors to index with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    Tensor,
    as_dtype,
    as_shape,
    as_size,
    as_tensor,
    on_device_of,
    ops,
    sizes_differ,
    with_each_other,
)
from ..common.dynamic_shapes import any_unknown, fixed, known_rank, table
from ..common.op_builders import named
from .ranges import arange


def _tensors(arrays: Any) -> tuple[Tensor, ...]:
    return tuple(as_tensor(x) for x in arrays)


def _all_on_device_of(arrays: Any, like: Any) -> tuple[Tensor, ...]:
    return tuple(on_device_of(x, as_tensor(like)) for x in arrays)


@named
def indices(dimensions: int | Sequence[int], dtype: Any = "int64", sparse: bool = False) -> Any:
    """Return the indices of all elements of a grid.

    Parameters
    ----------
    dimensions
        The shape of the grid, r sizes.
    dtype
        The result's dtype, ``int64`` by default.
    sparse
        Return one tensor per axis, of size 1 along the others, instead of a full one.

    Returns
    -------
    A tensor of shape ``(r, *dimensions)``; a tuple of r tensors if ``sparse``.

    Raises
    ------
    TypeError
        If a size is not an integer, or ``dtype`` is not a dtype.
    ValueError
        If a size is negative.

    Examples
    --------
    >>> gt.indices((2, 3)).tolist()
    [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    >>> [i.shape for i in gt.indices((2, 3), sparse=True)]
    [(2, 1), (1, 3)]
    """
    sizes, dtype = as_shape(dimensions, "indices"), as_dtype(dtype)
    if any_unknown(*sizes):
        if not sparse:
            return table("indices", sizes, dtype=dtype)
        return ix_(*(arange(n, dtype=dtype) for n in sizes))
    if sparse:
        return _tensors(np.indices(sizes, dtype, sparse=True))
    return as_tensor(np.indices(sizes, dtype))


@named
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Return the indices of a triangle: of the elements on diagonal ``k`` and below.

    Parameters
    ----------
    n
        The number of rows.
    m
        The number of columns; ``n`` if not given.

    Returns
    -------
    Two ``int64`` vectors, of rows and of columns, which index a matrix.

    Examples
    --------
    >>> rows, columns = gt.tril_indices(2)
    >>> rows.tolist(), columns.tolist()
    ([0, 1, 1], [0, 0, 1])
    """
    return _triangle("tril_indices", n, k, m)


@named
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Tensor, ...]:
    """Return the indices of a triangle: of the elements on diagonal ``k`` and above.

    Parameters
    ----------
    n
        The number of rows.
    m
        The number of columns; ``n`` if not given.

    Returns
    -------
    Two ``int64`` vectors, of rows and of columns; a matrix can be indexed with them.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x[gt.triu_indices(2)].tolist()
    [1.0, 2.0, 4.0]
    """
    return _triangle("triu_indices", n, k, m)


def _triangle(name: str, n: Any, k: Any, m: Any, like: Any = None) -> tuple[Tensor, ...]:
    """Return the indices of a triangle, where ``like`` is."""
    if any_unknown(n, k, m):
        n, k, m = (as_size(x, name) for x in (n, k, n if m is None else m))
        return tuple(ops["unstack"](table(name, n, k, m), axis=0, num=2))
    found = getattr(np, name)(n, k, m)
    return _tensors(found) if like is None else _all_on_device_of(found, like)


def _matrix_shape(x: Any, name: str) -> tuple[Any, Any]:
    x = as_tensor(x)
    if known_rank(x, name) != 2:
        raise ValueError(f"{name}: a matrix is needed, got shape {x.shape}")
    n, m = x.shape
    return n, m


@named
def tril_indices_from(x: Any, k: int = 0) -> tuple[Tensor, ...]:
    """Return the indices of the lower triangle of a matrix ``x``; see :func:`tril_indices`.

    Parameters
    ----------
    x
        A matrix; only its shape is used.

    Returns
    -------
    Two ``int64`` vectors, of rows and of columns.

    Raises
    ------
    ValueError
        If ``x`` is not a matrix.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x[gt.tril_indices_from(x)].tolist()
    [1.0, 3.0, 4.0]
    """
    n, m = _matrix_shape(x, "tril_indices_from")
    return _triangle("tril_indices", n, k, m, x)


@named
def triu_indices_from(x: Any, k: int = 0) -> tuple[Tensor, ...]:
    """Return the indices of the upper triangle of a matrix ``x``; see :func:`triu_indices`.

    Parameters
    ----------
    x
        A matrix, of which the shape is used.

    Returns
    -------
    Two ``int64`` vectors, of rows and of columns.

    Raises
    ------
    ValueError
        If ``x`` is not a matrix.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x[gt.triu_indices_from(x, k=1)].tolist()
    [2.0]
    """
    n, m = _matrix_shape(x, "triu_indices_from")
    return _triangle("triu_indices", n, k, m, x)


@named
def diag_indices(n: int, ndim: int = 2) -> tuple[Tensor, ...]:
    """Return the indices of the main diagonal of an array of ``ndim`` axes of size ``n``.

    Parameters
    ----------
    n
        The size of each axis.
    ndim
        The number of axes, 2 by default.

    Returns
    -------
    ``ndim`` vectors, each of the numbers from 0 to ``n - 1``.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x[gt.diag_indices(2)].tolist()
    [1.0, 4.0]
    """
    ndim = fixed(ndim, "diag_indices", "ndim")
    if any_unknown(n):
        return (arange(n),) * ndim
    return _tensors(np.diag_indices(n, ndim))


@named
def diag_indices_from(x: Any) -> tuple[Tensor, ...]:
    """Return the indices of the main diagonal of ``x``; see :func:`diag_indices`.

    Parameters
    ----------
    x
        A tensor of at least two axes, all of the same size; only its shape is used.

    Returns
    -------
    A vector for each axis.

    Raises
    ------
    ValueError
        If ``x`` has fewer axes, or their sizes differ.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> x[gt.diag_indices_from(x)].tolist()
    [1.0, 4.0]
    """
    rank = known_rank(as_tensor(x), "diag_indices_from")
    sizes = as_tensor(x).shape
    if rank < 2 or any(sizes_differ(n, sizes[0]) for n in sizes):
        raise ValueError(
            f"diag_indices_from: two or more axes of one size are needed, got shape {sizes}"
        )
    if any_unknown(*sizes):
        return (table("numbered", tuple(sizes)),) * rank
    return _all_on_device_of(np.diag_indices(sizes[0], rank), x)


@named
def ix_(*args: Any) -> tuple[Tensor, ...]:
    """Return indices of a grid: of all elements whose index along each axis is among those given.

    Parameters
    ----------
    args
        A vector for each axis: integers, or booleans that mark the indices.

    Returns
    -------
    Tensors that broadcast together, one for each vector. ``x[gt.ix_(rows, columns)]`` is the part
    of ``x`` in these rows and columns.

    Raises
    ------
    ValueError
        If an argument is not a vector.
    TraceError
        In a trace, for booleans whose values are unknown.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> x[gt.ix_([0, 1], [True, False, True])].tolist()
    [[1.0, 3.0], [4.0, 6.0]]
    """
    made = []
    given = [np.zeros(0, np.int64) if isinstance(x, list) and not x else x for x in args]
    for i, x in enumerate(with_each_other(given)):
        if x.shape is None or len(x.shape) != 1:
            raise ValueError(f"ix_: vectors are needed, got shape {x.shape}")
        if x.dtype.kind == "b":
            x = on_device_of(np.flatnonzero(x.numpy()), x)
        others = tuple(axis for axis in range(len(args)) if axis != i)
        made.append(ops["expand_dims"](x, axis=others) if others else x)
    return tuple(made)
