"""Products of vectors, matrices and tensors, made of other ops."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ....core.extend import (
    F,
    Op,
    Tensor,
    as_operands,
    as_tensor,
    on_device_of,
    ops,
    shapes_differ,
    sizes_differ,
)
from ..common.axes import as_axis, one_axis, reduced_axes
from ..common.dynamic_shapes import ensured, known_rank
from ..common.op_builders import named, op
from .contractions import tensordot
from .matmul import matmul


@named
def dot(x: Any, y: Any) -> Tensor:
    """Return NumPy's ``dot``: a product of numbers, ``x @ y`` up to matrices, or a tensordot.

    Beyond matrices it sums over the last axis of ``x`` and the second-to-last of ``y``; prefer
    :func:`matmul` or :func:`tensordot`, which are explicit.

    Parameters
    ----------
    x, y
        Tensors of any rank; dtypes promote.

    Returns
    -------
    Tensor
        A number for two vectors, a matrix for two matrices. For more axes, a tensor of the other
        axes of ``x``, followed by those of ``y``.

    Raises
    ------
    ValueError
        If the summed axes differ in size.

    Examples
    --------
    >>> gt.dot(gt.constant([1, 2]), gt.constant([3, 4])).item()
    11
    """
    x, y = as_operands((x, y))
    if x.shape == () or known_rank(y, "dot") == 0:
        return ops["multiply"](x, y)
    if y.ndim <= 2:
        return matmul(x, y)
    return tensordot(x, y, axes=(-1, -2))


@named
def outer(x: Any, y: Any) -> Tensor:
    """Return the products of each element of ``x`` with each of ``y``, as a matrix.

    Parameters
    ----------
    x, y
        Tensors of any shape, which are flattened; dtypes promote.

    Returns
    -------
    Tensor
        A matrix of shape ``(x.size, y.size)``; complex elements are not conjugated.

    Examples
    --------
    >>> gt.outer(gt.constant([1, 2]), gt.constant([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = as_operands((x, y))
    column = ops["reshape"](x, shape=(-1, 1))
    return ops["multiply"](column, ops["reshape"](y, shape=(1, -1)))


@named
def vdot(a: Any, b: Any) -> Tensor:
    """Return the sum of ``conj(a) * b`` over all elements of two tensors of equal size.

    Parameters
    ----------
    a, b
        Tensors of any shape, which are flattened; dtypes promote.

    Returns
    -------
    Tensor
        A number, of shape ``()``.

    Raises
    ------
    ValueError
        If they have different numbers of elements.

    Examples
    --------
    >>> gt.vdot(gt.constant([1j, 2.0]), gt.constant([1j, 1.0])).item()
    (3+0j)
    """
    x, y = (ops["reshape"](t, shape=(-1,)) for t in as_operands((a, b)))
    if shapes_differ(x.shape, y.shape):
        raise ValueError(f"vdot: a has {x.shape[0]} elements, b has {y.shape[0]}")
    return matmul(ops["conj"](x) if x.dtype.kind == "c" else x, y)


@named
def vecdot(x1: Any, x2: Any, axis: int = -1) -> Tensor:
    """Return the sums of ``conj(x1) * x2`` along an axis; the others broadcast.

    Parameters
    ----------
    x1, x2
        Tensors of at least one axis; dtypes promote.
    axis
        The axis of the vectors in both; the last by default.

    Returns
    -------
    Tensor
        The products, without the axis of the vectors.

    Raises
    ------
    ValueError
        If an array has no axes, or the sizes of the axis differ.

    Examples
    --------
    >>> gt.vecdot(gt.constant([[1, 2], [3, 4]]), gt.constant([1, 1])).tolist()
    [3, 7]
    """
    (x1, x2), along = as_operands((x1, x2)), one_axis(axis, "vecdot")
    sizes = [_size_along(x, along) for x in (x1, x2)]
    ranks = {None if x.shape is None else len(x.shape) for x in (x1, x2)}
    if along >= 0 and len(ranks) > 1:  # the same number means another axis of each
        x1, x2 = (ops["moveaxis"](x, source=(along,), destination=(-1,)) for x in (x1, x2))
        along = -1
    if None not in ranks:
        words = f"vecdot: the sizes of axis {axis} differ: {sizes[0]} and {sizes[1]}"
        x1 = ensured(x1, sizes[0] == sizes[1], words)
    left = ops["conj"](x1) if x1.dtype.kind == "c" else x1
    products = ops["multiply"](left, x2)
    total = ops["sum"](products, axis=along, keepdims=False)
    # a sum widens small integers, a product does not
    return total if total.dtype == products.dtype else total.astype(products.dtype)


def _size_along(x: Any, axis: Any) -> Any:
    if x.shape is None:
        return None
    if not x.shape:
        raise ValueError("vecdot: vectors are needed, got shape ()")
    return x.shape[reduced_axes(axis, len(x.shape), "vecdot")[0]]


@named
def inner(a: Any, b: Any) -> Tensor:
    """Return the sums of products over the last axes of ``a`` and ``b``, for all pairs of rows.

    Parameters
    ----------
    a, b
        Tensors whose last axes have the same size; a number is multiplied. Dtypes promote.

    Returns
    -------
    Tensor
        A tensor of shape ``a.shape[:-1] + b.shape[:-1]``; complex elements are not conjugated.

    Raises
    ------
    ValueError
        If the last axes differ in size.

    Examples
    --------
    >>> gt.inner(gt.constant([[1, 2], [3, 4]]), gt.constant([1, 0])).tolist()
    [1, 3]
    """
    a, b = as_operands((a, b))
    if () in (a.shape, b.shape):
        return ops["multiply"](a, b)
    if a.shape is None and b.shape is None:
        known_rank(a, "inner")
    return tensordot(a, b, axes=(-1, -1))


@named
def kron(a: Any, b: Any) -> Tensor:
    """Return the Kronecker product: blocks of ``b``, each scaled by an element of ``a``.

    Parameters
    ----------
    a, b
        Tensors of known rank; the one with fewer axes gets axes of size 1 in front.

    Returns
    -------
    Tensor
        A tensor whose sizes are the products of the operands' sizes, of the promoted dtype.

    Raises
    ------
    TraceError
        If a rank is unknown in a trace.

    Examples
    --------
    >>> gt.kron(gt.constant([1, 10]), gt.constant([1, 2, 3])).tolist()
    [1, 2, 3, 10, 20, 30]
    """
    a, b = as_operands((a, b))
    rank = max(known_rank(a, "kron"), known_rank(b, "kron"))
    missing = [tuple(range(rank - x.ndim)) for x in (a, b)]
    a, b = (ops["expand_dims"](x, axis=m) if m else x for x, m in zip((a, b), missing))
    blocks = ops["multiply"](
        ops["expand_dims"](a, axis=tuple(range(1, 2 * rank, 2))) if rank else a,
        ops["expand_dims"](b, axis=tuple(range(0, 2 * rank, 2))) if rank else b,
    )
    return ops["merge_pairs"](blocks)


def _merged_shape(shape: Any) -> Any:
    if shape is None:
        return None
    pairs = zip(shape[::2], shape[1::2], strict=True)
    return tuple(None if n is None or m is None else n * m for n, m in pairs)


def _merge_pairs_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    # the hidden axis makes a pair with one of size 1
    return op.raw(F.expand_dims(xs[0], axis=1))


op(
    "merge_pairs",
    lambda xp, x: xp.reshape(x, _merged_shape(x.shape)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x: (_merged_shape(x.shape), x.dtype),
    holomorphic=True,
    batch=_merge_pairs_rule,
    jvp="linear",
    doc="Merge each pair of adjacent axes into one.",
)


@named
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Return the cross product of vectors of three elements, or of two elements in a plane.

    Parameters
    ----------
    a, b
        Tensors; their vectors are along one axis, the other axes broadcast.
    axisa, axisb, axisc
        The axis of the vectors in ``a``, in ``b``, and in the result; the last by default.
    axis
        If given, it replaces all three.

    Returns
    -------
    Tensor
        A tensor of vectors. If all have two elements, a tensor of numbers: the third of each
        product. If one side has two elements, its third is 0. NumPy deprecates vectors of two
        elements, and this function warns too.

    Raises
    ------
    ValueError
        If vectors do not have two or three elements, or a trace does not know how many they have.

    Examples
    --------
    >>> gt.cross(gt.constant([1, 0, 0]), gt.constant([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    sides = []
    a, b = as_operands((a, b))
    for name, x, along in (("a", a, axisa), ("b", b, axisb)):
        if x.shape is not None:
            (place,) = reduced_axes(as_axis(along, "cross"), len(x.shape), "cross")
            if sizes_differ(x.shape[place], 2) and sizes_differ(x.shape[place], 3):
                raise ValueError(
                    f"cross: vectors must have 3 elements, got shape {x.shape} for {name} "
                    f"with axis {along}"
                )
        last = as_axis(along, "cross") == -1
        sides.append(x if last else ops["moveaxis"](x, source=(along,), destination=(-1,)))
    sizes = [None if x.shape is None else x.shape[-1] for x in sides]
    if None in sizes:  # vectors of 2 elements have another product, of another shape
        raise ValueError(
            "cross: whether vectors have 2 or 3 elements is unknown in this trace, for shapes "
            f"{a.shape} and {b.shape}; give the function's input_signature that size"
        )
    flat = [n == 2 for n in sizes]
    if any(flat):
        warnings.warn(
            "cross: vectors of 2 elements are deprecated, as in NumPy; give them a third, 0",
            DeprecationWarning,
            stacklevel=3,
        )
    if all(flat):
        (a1, a2), (b1, b2) = ((x[..., 0], x[..., 1]) for x in sides)
        return ops["subtract"](ops["multiply"](a1, b2), ops["multiply"](a2, b1))
    sides = [_with_third(x) if short else x for x, short in zip(sides, flat, strict=True)]
    turned = [[ops["roll"](x, shift=-n, axis=-1) for n in (1, 2)] for x in sides]
    (a1, a2), (b1, b2) = turned
    result = ops["subtract"](ops["multiply"](a1, b2), ops["multiply"](a2, b1))
    if axisc == -1:
        return result
    return ops["moveaxis"](result, source=(-1,), destination=(as_axis(axisc, "cross"),))


def _with_third(x: Any) -> Any:
    """Return vectors of two elements with a third, 0."""
    return ops["concatenate"](x, ops["zeros_like"](x[..., :1]), axis=-1)


# -- vectors by their places -----------------------------------------------------------------------


def _operands(x: Any, y: Any, ranks: tuple[int, int], name: str) -> tuple[Any, Any]:
    first = as_tensor(x)
    found = first, on_device_of(y, first)
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
        If the shapes do not match.

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


# -- chains of matrices ----------------------------------------------------------------------------


@named
def multi_dot(arrays: Any) -> Tensor:
    """Return the product of several matrices, multiplied in the cheapest order.

    Parameters
    ----------
    arrays
        Two or more matrices; the first and the last may be vectors. Dtypes promote. If a trace does
        not know all sizes, they are multiplied from left to right.

    Returns
    -------
    Tensor
        The product: a matrix, or a vector or a number if vectors are at one end or both.

    Raises
    ------
    numpy.linalg.LinAlgError
        If one does not have 2 axes.
    ValueError
        If there are fewer than two, or sizes do not match.

    References
    ----------
    T. H. Cormen, C. E. Leiserson, R. L. Rivest and C. Stein, "Introduction to Algorithms",
    3rd edition, 2009, section 15.2.

    Examples
    --------
    >>> gt.linalg.multi_dot([gt.ones((2, 3)), gt.ones((3, 4)), gt.ones(4)]).tolist()
    [12.0, 12.0]
    """
    matrices = as_operands(list(arrays))
    if len(matrices) < 2:
        raise ValueError(f"multi_dot: at least two arrays are needed, got {len(matrices)}")
    for x in matrices:
        known_rank(x, "multi_dot")
    shapes: list[Any] = [x.shape for x in matrices]
    last = len(shapes) - 1
    for i, shape in enumerate(shapes):
        if shape is None or (len(shape) != 2 and not (len(shape) == 1 and i in (0, last))):
            raise np.linalg.LinAlgError(f"multi_dot: array {i} must have 2 axes, got shape {shape}")
    sizes = [1 if len(shapes[0]) == 1 else shapes[0][0]]
    sizes += [shape[0] for shape in shapes[1:]]
    sizes.append(1 if len(shapes[-1]) == 1 else shapes[-1][1])
    return _chain(matrices, _cuts(sizes), 0, len(matrices) - 1)


def _cuts(sizes: list[Any]) -> dict[tuple[int, int], int]:
    """Return where to cut each chain ``i..j``; matrix i is ``(sizes[i], sizes[i + 1])``."""
    count = len(sizes) - 1
    cuts: dict[tuple[int, int], int] = {}
    work: dict[tuple[int, int], Any] = dict.fromkeys(((i, i) for i in range(count)), 0)
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [
                work[i, k] + work[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                for k in range(i, j)
            ]
            # in a trace nobody may know which is the least: then from the left
            least = (k for k, cost in enumerate(costs) if all((cost <= c) is True for c in costs))
            place = next(least, len(costs) - 1)
            work[i, j] = costs[place]
            cuts[i, j] = i + place
    return cuts


def _chain(matrices: list[Any], cuts: dict[tuple[int, int], int], i: int, j: int) -> Any:
    if i == j:
        return matrices[i]
    k = cuts[i, j]
    return matmul(_chain(matrices, cuts, i, k), _chain(matrices, cuts, k + 1, j))
