"""Products with vectors by their places, and linear equations between tensors."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ....core.extend import Tensor, as_tensor, beside, ops
from ..common.op_builders import named
from .decompositions import inv, solve
from .products import matmul

__all__ = ["matvec", "tensorinv", "tensorsolve", "vecmat"]


def _operands(x: Any, y: Any, ranks: tuple[int, int], name: str) -> tuple[Any, Any]:
    first = as_tensor(x)
    found = first, beside(y, first)
    for operand, least in zip(found, ranks, strict=True):
        if operand.shape is not None and len(operand.shape) < least:
            raise ValueError(
                f"{name}: operands of at least {ranks[0]} and {ranks[1]} axes are needed, got "
                f"shapes {found[0].shape} and {found[1].shape}"
            )
    return found


@named
def matvec(x1: Any, x2: Any) -> Tensor:
    """Return products of matrices and vectors.

    Parameters
    ----------
    x1
        Matrices ``(..., m, n)``.
    x2
        Vectors ``(..., n)``; the leading axes broadcast, dtypes promote.

    Returns
    -------
    Tensor
        Vectors ``(..., m)``.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> gt.matvec(gt.constant([[1, 2], [3, 4]]), gt.constant([1, 1])).tolist()
    [3, 7]
    """
    matrices, vectors = _operands(x1, x2, (2, 1), "matvec")
    return ops["squeeze"](matmul(matrices, ops["expand_dims"](vectors, axis=-1)), axis=-1)


@named
def vecmat(x1: Any, x2: Any) -> Tensor:
    """Return products of vectors, conjugated, and matrices.

    Parameters
    ----------
    x1
        Vectors ``(..., m)``.
    x2
        Matrices ``(..., m, n)``; the leading axes broadcast, dtypes promote.

    Returns
    -------
    Tensor
        Vectors ``(..., n)``.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Examples
    --------
    >>> gt.vecmat(gt.constant([1, 1]), gt.constant([[1, 2], [3, 4]])).tolist()
    [4, 6]
    """
    vectors, matrices = _operands(x1, x2, (1, 2), "vecmat")
    if vectors.dtype.kind == "c":
        vectors = ops["conj"](vectors)
    return ops["squeeze"](matmul(ops["expand_dims"](vectors, axis=-2), matrices), axis=-2)


def _known(x: Any, name: str) -> tuple[int, ...]:
    if x.shape is None or None in x.shape:
        raise ValueError(f"{name}: sizes must be known, got shape {x.shape}")
    return tuple(x.shape)


@named
def tensorinv(x: Any, ind: int = 2) -> Tensor:
    """Return the inverse of a tensor as a linear map between tensors.

    Parameters
    ----------
    x
        A tensor of known shape, whose first ``ind`` axes have as many elements as the others.
    ind
        How many axes the map's results have; 2 by default.

    Returns
    -------
    Tensor
        A tensor of shape ``x.shape[ind:] + x.shape[:ind]``:
        ``tensordot(tensorinv(x, ind), x, ind)`` is the identity map.

    Raises
    ------
    ValueError
        If ``ind`` is below 1, or a size is unknown in a trace.
    numpy.linalg.LinAlgError
        If the tensor is no square map, or singular.

    Examples
    --------
    >>> gt.linalg.tensorinv(gt.reshape(gt.eye(6), (2, 3, 6))).shape
    (6, 2, 3)
    """
    count = operator.index(ind)
    if count < 1:
        raise ValueError(f"tensorinv: ind must be at least 1, got {ind}")
    x = as_tensor(x)
    shape = _known(x, "tensorinv")
    rows, columns = shape[:count], shape[count:]
    if prod(rows) != prod(columns):
        raise np.linalg.LinAlgError(
            f"tensorinv: the first {count} axes of shape {shape} must have as many elements as the "
            "others"
        )
    square = ops["reshape"](x, shape=(prod(rows), prod(columns)))
    return ops["reshape"](inv(square), shape=(*columns, *rows))


@named
def tensorsolve(a: Any, b: Any, axes: Sequence[int] | None = None) -> Tensor:
    """Return ``x`` of ``tensordot(a, x, x.ndim) == b``.

    Parameters
    ----------
    a
        The coefficients, a tensor of known shape ``b.shape + x.shape``.
    b
        The right-hand side.
    axes
        Axes of ``a`` to move to its end first.

    Returns
    -------
    Tensor
        A tensor of the shape of the last axes of ``a``.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the equations are not as many as the unknowns, or singular.
    ValueError
        If a size is unknown in a trace.

    Examples
    --------
    >>> gt.linalg.tensorsolve(gt.reshape(2.0 * gt.eye(6), (2, 3, 6)), gt.ones((2, 3))).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    """
    a = as_tensor(a)
    b = beside(b, a)
    if axes is not None:
        last = tuple(operator.index(n) for n in axes)
        a = ops["transpose"](a, axes=(*(n for n in range(a.ndim) if n not in last), *last))
    shape, size = _known(a, "tensorsolve"), prod(_known(b, "tensorsolve"))
    unknowns = shape[b.ndim :]
    if prod(unknowns) != size or prod(shape) != size * size:
        raise np.linalg.LinAlgError(
            f"tensorsolve: coefficients of shape {shape} need as many unknowns as equations, "
            f"got b of shape {b.shape}"
        )
    square = ops["reshape"](a, shape=(size, size))
    x = solve(square, ops["reshape"](b, shape=(size,)))
    return ops["reshape"](x, shape=unknowns)
