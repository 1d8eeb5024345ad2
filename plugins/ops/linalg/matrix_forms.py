"""Sums of products of two arrays that are products of matrices, or of stacks of them.

``"abc,cde->abde"`` is one product, of ``a * b`` rows and ``d * e`` columns; ``"bqd,bkd->bqk"`` is a
stack of products, with the second factors transposed. Libraries of linear algebra compute these
many times as fast as sums over labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

from ....core.extend import kind_of

Shape = tuple[int, ...]


class MatrixForm(NamedTuple):
    """How a sum of products becomes a product of matrices.

    Attributes
    ----------
    swapped
        Whether the second array is the first factor.
    shapes
        The shapes to give to the factors.
    turned
        Whether to transpose each of them then.
    shape
        The shape to give to the product.
    """

    swapped: bool
    shapes: tuple[Shape, Shape]
    turned: tuple[bool, bool]
    shape: Shape


def matrix_form(terms: Sequence[str], output: str, arrays: Sequence[Any]) -> MatrixForm | None:
    """Return how to compute a sum of products as a product of matrices; None if it is none.

    Parameters
    ----------
    terms
        The labels of each array, one for each axis.
    output
        Those of the result.
    arrays
        The arrays, or specs of them.
    """
    if (
        len(arrays) != 2
        or arrays[0].dtype != arrays[1].dtype
        or kind_of(arrays[0].dtype) not in "fc"
    ):
        return None
    shapes = tuple(arrays[0].shape), tuple(arrays[1].shape)
    if any(type(n) is not int for n in (*shapes[0], *shapes[1])):
        return None
    return _form((terms[0], terms[1]), output, shapes)


@lru_cache(maxsize=1024)
def _form(terms: tuple[str, str], output: str, shapes: tuple[Shape, Shape]) -> MatrixForm | None:
    sizes = dict(zip("".join(terms), (*shapes[0], *shapes[1]), strict=True))
    for term, shape in zip(terms, shapes, strict=True):
        if len(set(term)) < len(term) or any(sizes[a] != n for a, n in zip(term, shape)):
            return None
    batch = _shared_start(*terms, output)
    first, second = (term[len(batch) :] for term in terms)
    summed = "".join(a for a in first if a in second)
    rows, columns = (_without(term, summed) for term in (first, second))
    if not (summed and rows and columns) or summed in output:
        return None
    swapped = output == batch + columns + rows
    if not swapped and output != batch + rows + columns:
        return None
    if first not in (rows + summed, summed + rows):
        return None
    if second not in (columns + summed, summed + columns):
        return None
    if swapped:
        first, second, rows, columns = second, first, columns, rows
    turned = first != rows + summed, second != summed + columns
    outer, inner = tuple(sizes[a] for a in batch), prod(sizes[a] for a in summed)
    left, right = (prod(sizes[a] for a in term) for term in (rows, columns))
    return MatrixForm(
        swapped,
        (
            (*outer, inner, left) if turned[0] else (*outer, left, inner),
            (*outer, right, inner) if turned[1] else (*outer, inner, right),
        ),
        turned,
        tuple(sizes[a] for a in output),
    )


def multiplied(xp: Any, form: MatrixForm, x: Any, y: Any) -> Any:
    """Return the sum of products of two arrays.

    Parameters
    ----------
    xp
        The namespace of their library.
    form
        The result of :func:`matrix_form`.
    x, y
        The arrays.
    """
    factors = []
    for array, shape, turned in zip(
        (y, x) if form.swapped else (x, y), form.shapes, form.turned, strict=True
    ):
        matrix = xp.reshape(array, shape)
        factors.append(xp.matrix_transpose(matrix) if turned else matrix)
    return xp.reshape(xp.matmul(*factors), form.shape)


def _shared_start(*terms: str) -> str:
    count = 0
    while all(len(term) > count and term[count] == terms[0][count] for term in terms):
        count += 1
    return terms[0][:count]


def _without(term: str, labels: str) -> str:
    return "".join(a for a in term if a not in labels)
