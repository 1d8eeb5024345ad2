"""Kinds of matrices, and of other operands of products and systems."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from fuzz.numpy_calls.draw import DTYPES, Draw
from fuzz.numpy_calls.kinds.base import kind

__all__: list[str] = []  # they are found in the table of kinds


# -- matrices --------------------------------------------------------------------------------------


def well(d: Draw, shape: tuple[int, ...], dtype: str) -> Any:
    """Return matrices whose inverse is not large."""
    values = d.values(shape, dtype, plain=True)
    if values.dtype.kind in "fciu" and shape[-1] == shape[-2]:
        values = values % 3 if values.dtype.kind in "iu" else np.clip(values.real, -3, 3)
        values = (values + 6 * np.eye(shape[-1])).astype(dtype)
    return values


def matrix_dtype(d: Draw) -> str:
    """Return a dtype of linear algebra."""
    common = ("float64", "float64", "float32", "complex128", "complex64", "int64")
    chosen: str = d.pick(DTYPES) if d.chance(0.1) else d.pick(common)
    return chosen


@kind
def square(d: Draw) -> Any:
    """Square matrices, in few calls singular or empty ones."""
    n = d.integer(1, 4) if d.chance(0.95) else 0
    shape = (*d.shape(0, 2)[: d.integer(0, 2)], n, n)
    if d.mistake():
        shape = d.pick(((n + 1, n), (n,), ()))
    dtype = matrix_dtype(d)
    if len(shape) < 2 or d.chance(0.05):
        return d.wrap(np.zeros(shape, dtype))
    return d.wrap(well(d, shape, dtype))


@kind
def symmetric(d: Draw) -> Any:
    """Symmetric (Hermitian) matrices with positive eigenvalues."""
    made = square(d)
    values = made.values
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        return made
    other = np.conj(np.swapaxes(values, -1, -2))
    kind_ = values.dtype.kind
    values = (values // 2 + other // 2) if kind_ in "iu" else values if kind_ == "b" else None
    if values is None:
        values = ((made.values + other) / 2).astype(made.values.dtype)
    d.first = values
    return made.with_values(values)


@kind
def matrix(d: Draw) -> Any:
    """Matrices of full rank."""
    shape = (*d.shape(0, 1), d.integer(1, 4), d.integer(1, 4))
    if d.mistake():
        shape = d.pick(((2,), (), (0, 3), (2, 0)))
    dtype = matrix_dtype(d)
    values = d.values(shape, dtype, plain=True)
    if values.ndim >= 2 and values.dtype.kind != "b":
        values = (values % 4 if values.dtype.kind in "iu" else values) + 5 * np.eye(
            shape[-2], shape[-1]
        )
    return d.wrap(values.astype(dtype))


@kind
def right_side(d: Draw) -> Any:
    """The right-hand side of equations with the first matrices."""
    n = d.x.shape[-1] if d.x.ndim else 2
    if d.mistake():
        n += 1
    dtype = d.x.dtype.name if d.chance(0.6) else matrix_dtype(d)
    shape = (*d.x.shape[:-2], n, d.integer(1, 3)) if d.chance(0.6) else (n,)
    return d.wrap(d.values(shape, dtype, plain=True))


@kind
def right_side_rows(d: Draw) -> Any:
    """The right-hand side of an overdetermined system."""
    n = d.x.shape[0] if d.x.ndim else 2
    shape = (n + d.mistake(), d.integer(1, 3)) if d.chance(0.5) else (n,)
    return d.wrap(d.values(shape, d.x.dtype.name, plain=True))


@kind
def plain_matrix(d: Draw) -> Any:
    shape = (d.integer(1, 4), d.integer(1, 4)) if not d.mistake() else (2, 2, 2)
    values = d.values(shape, matrix_dtype(d), plain=True)
    return d.wrap(values)


@kind
def factor(d: Draw) -> Any:
    """The second operand of ``matmul`` with the first array."""
    x = d.x.shape
    if not x:
        return d.array(d.shape(1, 2) if not d.mistake() else ())
    inner = x[-1] + d.mistake()
    if d.chance(0.3):
        return d.array((inner,))
    batch = x[:-2] if d.chance(0.5) else ()
    return d.array((*batch, inner, d.pick(SIZES_OF_PRODUCTS)))


SIZES_OF_PRODUCTS = (0, 1, 2, 3, 3)


@kind
def dotted(d: Draw) -> Any:
    """The second operand of ``dot`` with the first array."""
    x = d.x.shape
    if not x or d.chance(0.1):
        return d.array(d.shape()) if d.chance(0.5) else d.scalar()
    inner = x[-1] + d.mistake()
    return d.array((inner,) if d.chance(0.4) else (*d.shape(0, 1), inner, d.integer(1, 3)))


@kind
def inner_(d: Draw) -> Any:
    """An array with the same last axis."""
    x = d.x.shape
    if not x:
        return d.array(())
    return d.array((*d.shape(0, 2), x[-1] + d.mistake()))


@kind
def same_vector(d: Draw) -> Any:
    """A vector, or several, for ``matvec``: as long as the matrix is wide."""
    width = (d.x.shape[-1] if d.x.ndim else 1) + d.mistake()
    return d.array((*d.x.shape[:-2], width) if d.chance(0.5) else (width,))


@kind
def vecmat_matrix(d: Draw) -> Any:
    height = (d.x.shape[-1] if d.x.ndim else 1) + d.mistake()
    return d.array((*d.x.shape[:-1], height, d.integer(1, 3)) if d.chance(0.3) else (height, 2))


@kind
def of_threes(d: Draw) -> Any:
    """Vectors of three (in few calls two) numbers."""
    shape = (*d.shape(0, 2), d.pick((3, 3, 3, 2)))
    return d.array((*shape[:-1], 4) if d.mistake() else shape)


@kind
def of_threes_too(d: Draw) -> Any:
    last = d.x.shape[-1] if d.x.ndim and d.x.shape[-1] in (2, 3) else 3
    batch = d.x.shape[:-1] if d.chance(0.7) else ()
    return d.array((*batch, d.pick((last, last, 3))))


@kind
def tensordot_axes(d: Draw) -> Any:
    """The axes of the second array, drawn together with the rest of the call."""
    return d.given.pop("_axes", 1)


@kind
def tensordot_other(d: Draw) -> Any:
    x = d.x.shape
    count = d.integer(0, min(2, len(x)))
    rest = d.shape(0, 1)
    if d.chance(0.5):
        d.given["_axes"] = count
        shape = (*x[len(x) - count :], *rest)
    else:
        mine = d.rng.sample(range(len(x)), count)
        d.given["_axes"] = (mine, list(range(count)))
        shape = (*(x[a] for a in mine), *rest)
    if d.mistake():
        shape = (*shape, 2)[::-1]
    return d.array(shape)


@kind
def chain(d: Draw) -> Any:
    """Matrices to multiply with each other."""
    sizes = [d.integer(1, 4) for _ in range(d.integer(3, 5))]
    made = [d.array((m, n + d.mistake())) for m, n in pairwise(sizes)]
    return made


EINSUM = (
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)),
    ("i,i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("ij,jk,kl", (2, 3), (3, 2), (2, 2)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 1)),
    ("ijk->", (2, 1, 3)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,jk->ijk", (2, 0), (0, 2)),
    ("...->", (2, 3)),
    ("...i,i...->...", (2, 3), (3, 2)),
)


@kind
def einsum_call(d: Draw) -> Any:
    """Subscripts; the shapes of the operands are remembered."""
    subscripts, *shapes_ = d.pick(EINSUM)
    d.given["_shapes"] = shapes_
    return d.pick(("i->j", "ij,,", "i$")) if d.mistake() else subscripts


@kind
def einsum_operands(d: Draw) -> Any:
    return [d.array((*shape_, 2) if d.mistake() else shape_) for shape_ in d.given.pop("_shapes")]


@kind
def tensor_to_invert(d: Draw) -> Any:
    shape_ = d.pick(((2, 3, 6), (4, 2, 2), (2, 2, 2, 2), (3, 3), (6, 2, 3)))
    n = shape_[0] if shape_[0] in (4, 6) else int(np.sqrt(np.prod(shape_)))
    values = d.values((n, n), "float64", plain=True) + 8 * np.eye(n)
    return d.wrap(values.reshape(shape_).astype(d.pick(("float64", "float32", "complex128"))))


@kind
def halves(d: Draw) -> Any:
    return d.pick((0, -1)) if d.mistake() else d.pick((1, 2))


@kind
def tensor_side(d: Draw) -> Any:
    return d.array(d.x.shape[: 1 + (d.x.ndim == 4)], plain=True)
