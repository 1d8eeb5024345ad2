"""Products of vectors, matrices and tensors.

A product is linear in each operand, so its gradient rules are products again: ``matmul_adjoint_x``
sends the result's gradient back to the first operand, ``matmul_adjoint_y`` to the second, and each
of the three is differentiated by the other two. That holds at any rank, known in a trace or not.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from ....core.extend import NONDIFF, BinaryOp, F, Tensor, among, broadcast_shapes, ops
from ..common.axes import as_axis, reduced_axes
from ..common.batching import pairs
from ..common.dtypes import as_like
from ..common.op_builders import named, op
from ..common.ranks import known_rank
from ..shapes.joining import common_dtype
from .batching import matmul_rule, tensordot_rule, to_x_rule, to_y_rule

__all__ = ["cross", "dot", "inner", "kron", "matmul", "outer", "tensordot", "vdot", "vecdot"]


def _sum_to(xp: Any, x: Any, shape: tuple[int, ...]) -> Any:
    """Sum ``x`` over the axes along which an operand of ``shape`` was broadcast."""
    if x.shape == shape:
        return x
    extra = x.ndim - len(shape)
    axes = tuple(i for i, n in enumerate(x.shape) if i < extra or shape[i - extra] != n)
    return xp.reshape(xp.sum(x, axis=axes, dtype=x.dtype), shape)


# -- matmul ----------------------------------------------------------------------------------------


def _matmul_shape(x: Any, y: Any) -> Any:
    """Return the shape of ``x @ y``; known sizes must agree."""
    if (x is not None and not x) or (y is not None and not y):
        raise ValueError(f"matmul: shapes {x} and {y}: an operand has no axes; use multiply")
    if x is None or y is None:
        return None
    inner = (x[-1], y[-2] if len(y) > 1 else y[0])
    if None not in inner and inner[0] != inner[1]:
        raise ValueError(f"matmul: shapes {x} and {y} do not match: {inner[0]} is not {inner[1]}")
    batch = broadcast_shapes(x[:-2], y[:-2], op="matmul") or ()
    return (*batch, *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))


def matmul_kernel(xp: Any, x: Any, y: Any) -> Any:
    try:
        return xp.matmul(x, y)
    except (ValueError, TypeError):
        _matmul_shape(getattr(x, "shape", ()), getattr(y, "shape", ()))
        raise


def to_x(xp: Any, g: Any, y: Any, like: Any) -> Any:
    rank = like.ndim
    if y.ndim == 1:
        return xp.expand_dims(g, axis=-1) * y
    if rank == 1:
        return _sum_to(xp, (y @ xp.expand_dims(g, axis=-1))[..., 0], like.shape)
    if y.ndim > 2 == rank:
        over = (*range(y.ndim - 2), y.ndim - 1)
        return xp.tensordot(g, y, axes=(over, over))
    return _sum_to(xp, g @ xp.matrix_transpose(y), like.shape)


def to_y(xp: Any, g: Any, x: Any, like: Any) -> Any:
    rank = like.ndim
    if x.ndim == 1:
        if rank == 1:
            return g * x
        gy = xp.expand_dims(g, axis=-2) * xp.expand_dims(x, axis=-1)
        return _sum_to(xp, gy, like.shape)
    if rank <= 2 < x.ndim or rank == 1:
        columns = xp.reshape(x, (-1, x.shape[-1])) if x.size else xp.reshape(x, (0, x.shape[-1]))
        rows = xp.reshape(g, (columns.shape[0], *like.shape[1:]))
        return xp.matrix_transpose(columns) @ rows
    return _sum_to(xp, xp.matrix_transpose(x) @ g, like.shape)


def _like_spec(g: Any, other: Any, like: Any, **params: Any) -> tuple[Any, Any]:
    return like.shape, common_dtype((g, other))


matmul = op(
    "matmul",
    matmul_kernel,
    BinaryOp,
    gradients={
        "x": lambda g, y, x_like: as_like(F.matmul_adjoint_x(g, y, x_like), x_like),
        "y": lambda g, x, y_like: as_like(F.matmul_adjoint_y(g, x, y_like), y_like),
    },
    infer=lambda x, y: (
        _matmul_shape(getattr(x, "shape", ()), getattr(y, "shape", ())),  # a Python number has none
        common_dtype((x, y)),
    ),
    holomorphic=True,
    batch=matmul_rule,
    jvp="multilinear",
    doc="""Return the matrix product of ``x`` and ``y``.

    Parameters
    ----------
    x, y
        Tensors of at least one axis. Matrices are in the last two; axes before broadcast. One with
        a single axis is a row on the left and a column on the right; the result lacks that axis.

    Returns
    -------
    Tensor
        Products of shape ``(..., m, n)``, for operands ``(..., m, k)`` and ``(..., k, n)``, of the
        dtype to which theirs promote.

    Raises
    ------
    ValueError
        If the inner sizes differ, or an operand has no axes.

    Notes
    -----
    With the upstream gradient ``g``, the gradients are ``g @ y.mT`` and ``x.mT @ g`` (conjugated if
    complex), summed over the axes that were broadcast.

    Examples
    --------
    >>> gt.matmul(gt.constant([[1, 2], [3, 4]]), gt.constant([1, 1])).tolist()
    [3, 7]
    """,
)
op(
    "matmul_adjoint_x",
    to_x,
    gradients={
        "g": lambda g, y, g_like: as_like(F.matmul(g, y), g_like),
        "y": lambda d, g, y_like: as_like(F.matmul_adjoint_y(g, d, y_like), y_like),
        "like": NONDIFF,
    },
    infer=_like_spec,
    holomorphic=True,
    batch=to_x_rule,
    jvp="multilinear",
    doc="Send a gradient of ``matmul`` back to its first operand, of the shape of ``like``.",
)
op(
    "matmul_adjoint_y",
    to_y,
    gradients={
        "g": lambda g, x, g_like: as_like(F.matmul(x, g), g_like),
        "x": lambda d, g, x_like: as_like(F.matmul_adjoint_x(g, d, x_like), x_like),
        "like": NONDIFF,
    },
    infer=_like_spec,
    holomorphic=True,
    batch=to_y_rule,
    jvp="multilinear",
    doc="Send a gradient of ``matmul`` back to its second operand, of the shape of ``like``.",
)


@named
def dot(x: Any, y: Any) -> Tensor:
    """Return NumPy's ``dot``: a product of numbers, ``x @ y`` up to matrices, else a tensordot.

    Beyond matrices it joins the last axis of ``x`` with the last but one of ``y``; prefer
    :func:`matmul` or :func:`tensordot`, which say what they do.

    Parameters
    ----------
    x, y
        Tensors of any rank; dtypes promote.

    Returns
    -------
    Tensor
        A number for two vectors, a matrix for two matrices; beyond, a tensor of the other axes of
        ``x``, then those of ``y``.

    Raises
    ------
    ValueError
        If the joined axes differ in size.

    Examples
    --------
    >>> gt.dot(gt.constant([1, 2]), gt.constant([3, 4])).item()
    11
    """
    x, y = among((x, y))
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

    Raises
    ------
    TypeError
        If an operand does not convert to a tensor.

    Examples
    --------
    >>> gt.outer(gt.constant([1, 2]), gt.constant([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = among((x, y))
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
        If they do not have as many elements.

    Examples
    --------
    >>> gt.vdot(gt.constant([1j, 2.0]), gt.constant([1j, 1.0])).item()
    (3+0j)
    """
    x, y = (ops["reshape"](t, shape=(-1,)) for t in among((a, b)))
    if x.shape != y.shape and None not in (*x.shape, *y.shape):
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
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.vecdot(gt.constant([[1, 2], [3, 4]]), gt.constant([1, 1])).tolist()
    [3, 7]
    """
    (x1, x2), along = among((x1, x2)), as_axis(axis, "vecdot")
    sizes = [_size_along(x, along) for x in (x1, x2)]
    if sizes[0] != sizes[1] and None not in sizes:
        raise ValueError(f"vecdot: the sizes of axis {axis} differ: {sizes[0]} and {sizes[1]}")
    left = ops["conj"](x1) if x1.dtype.kind == "c" else x1
    products = ops["multiply"](left, x2)
    total = ops["sum"](products, axis=along, keepdims=False)
    # a sum widens small integers, a product does not
    return total if total.dtype == products.dtype else total.astype(products.dtype)


def _size_along(x: Any, axis: Any) -> int | None:
    if x.shape is None:
        return None
    if not x.shape:
        raise ValueError("vecdot: vectors are needed, got shape ()")
    size: int | None = x.shape[reduced_axes(axis, len(x.shape), "vecdot")[0]]
    return size


@named
def inner(a: Any, b: Any) -> Tensor:
    """Return the sums of products over the last axes of ``a`` and ``b``, for all pairs of rows.

    Parameters
    ----------
    a, b
        Tensors whose last axes have the same size; a number multiplies. Dtypes promote.

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
    a, b = among((a, b))
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
        A tensor whose sizes are the products of theirs, of the dtype to which theirs promote.

    Raises
    ------
    TraceError
        If a rank is unknown in a trace.

    Examples
    --------
    >>> gt.kron(gt.constant([1, 10]), gt.constant([1, 2, 3])).tolist()
    [1, 2, 3, 10, 20, 30]
    """
    a, b = among((a, b))
    rank = max(known_rank(a, "kron"), known_rank(b, "kron"))
    missing = [tuple(range(rank - x.ndim)) for x in (a, b)]
    a, b = (ops["expand_dims"](x, axis=m) if m else x for x, m in zip((a, b), missing))
    blocks = ops["multiply"](
        ops["expand_dims"](a, axis=tuple(range(1, 2 * rank, 2))) if rank else a,
        ops["expand_dims"](b, axis=tuple(range(0, 2 * rank, 2))) if rank else b,
    )
    return ops["merge_pairs"](blocks)


def _merged(shape: Any) -> Any:
    if shape is None:
        return None
    pairs = zip(shape[::2], shape[1::2], strict=True)
    return tuple(None if None in pair else pair[0] * pair[1] for pair in pairs)


op(
    "merge_pairs",
    lambda xp, x: xp.reshape(x, _merged(x.shape)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x: (_merged(x.shape), x.dtype),
    holomorphic=True,
    batch=pairs,
    jvp="linear",
    doc="Join each pair of neighbouring axes to one.",
)


@named
def cross(
    a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None
) -> Tensor:
    """Return the cross product of vectors of three elements, or of two in a plane.

    Parameters
    ----------
    a, b
        Tensors; their vectors are along one axis, the other axes broadcast.
    axisa, axisb, axisc
        The axis of the vectors in ``a``, in ``b``, and in the result; the last by default.
    axis
        If given, it stands for all three.

    Returns
    -------
    Tensor
        A tensor of vectors; if all have two elements, of numbers: the third of each product. Where
        vectors of one side have two elements, the third is 0. NumPy gives up vectors of two, and so
        does this function: it warns.

    Raises
    ------
    ValueError
        If vectors do not have two or three elements, or a trace does not know how many they have.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.cross(gt.constant([1, 0, 0]), gt.constant([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    sides = []
    a, b = among((a, b))
    for name, x, along in (("a", a, axisa), ("b", b, axisb)):
        if x.shape is not None:
            (place,) = reduced_axes(as_axis(along, "cross"), len(x.shape), "cross")
            if x.shape[place] not in (2, 3, None):
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


# -- tensordot -------------------------------------------------------------------------------------


Pairs = tuple[tuple[int, ...], tuple[int, ...]]


def _contracted(x: Any, y: Any, axes: Pairs) -> Pairs:
    """Return the axes that a tensordot of these shapes joins, counted from 0."""
    result = tuple(
        reduced_axes(given, len(shape), "tensordot")
        for given, shape in zip(axes, (x, y), strict=True)
    )
    if len(result[0]) != len(result[1]):
        raise ValueError(f"tensordot: axes {axes} do not come in pairs")
    for i, j in zip(*result, strict=True):
        if x[i] != y[j] and None not in (x[i], y[j]):
            raise ValueError(f"tensordot: shapes {x} and {y} differ on axes {i} and {j}")
    return result  # type: ignore[return-value]


def _rest(rank: int, taken: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(i for i in range(rank) if i not in taken)


def _tensordot_kernel(xp: Any, x: Any, y: Any, *, axes: Pairs) -> Any:
    return xp.tensordot(x, y, axes=_contracted(x.shape, y.shape, axes))


def _tensordot_shape(x: Any, y: Any, axes: Pairs) -> Any:
    if x is None or y is None:
        return None
    ax, ay = _contracted(x, y, axes)
    return (*(x[i] for i in _rest(len(x), ax)), *(y[j] for j in _rest(len(y), ay)))


def _tensordot_to_x(xp: Any, g: Any, y: Any, like: Any, *, axes: Pairs) -> Any:
    ax, ay = _contracted(like.shape, y.shape, axes)
    free_x, free_y = _rest(like.ndim, ax), _rest(y.ndim, ay)
    gx = xp.tensordot(g, y, axes=(tuple(range(len(free_x), g.ndim)), free_y))
    # the axes of gx are those of x that stayed, then those joined, in the order that y has them
    order = (*free_x, *(i for _, i in sorted(zip(ay, ax, strict=True))))
    return xp.permute_dims(gx, tuple(order.index(i) for i in range(like.ndim)))


def _tensordot_to_y(xp: Any, g: Any, x: Any, like: Any, *, axes: Pairs) -> Any:
    ax, ay = _contracted(x.shape, like.shape, axes)
    free_x, free_y = _rest(x.ndim, ax), _rest(like.ndim, ay)
    gy = xp.tensordot(x, g, axes=(free_x, tuple(range(len(free_x)))))
    order = (*(j for _, j in sorted(zip(ax, ay, strict=True))), *free_y)
    return xp.permute_dims(gy, tuple(order.index(j) for j in range(like.ndim)))


_tensordot = op(
    "tensordot",
    _tensordot_kernel,
    gradients={
        "x": lambda g, y, x_like, axes: as_like(
            F.tensordot_adjoint_x(g, y, x_like, axes=axes), x_like
        ),
        "y": lambda g, x, y_like, axes: as_like(
            F.tensordot_adjoint_y(g, x, y_like, axes=axes), y_like
        ),
    },
    infer=lambda x, y, axes: (_tensordot_shape(x.shape, y.shape, axes), common_dtype((x, y))),
    holomorphic=True,
    batch=tensordot_rule,
    jvp="multilinear",
    doc="Sum the products of two arrays over pairs of axes.",
)
op(
    "tensordot_adjoint_x",
    _tensordot_to_x,
    gradients={
        "g": lambda g, y, g_like, axes: as_like(F.tensordot(g, y, axes=axes), g_like),
        "y": lambda d, g, y_like, axes: as_like(
            F.tensordot_adjoint_y(g, d, y_like, axes=axes), y_like
        ),
        "like": NONDIFF,
    },
    infer=_like_spec,
    holomorphic=True,
    batch=tensordot_rule,
    jvp="multilinear",
    doc="Send a gradient of ``tensordot`` back to its first operand.",
)
op(
    "tensordot_adjoint_y",
    _tensordot_to_y,
    gradients={
        "g": lambda g, x, g_like, axes: as_like(F.tensordot(x, g, axes=axes), g_like),
        "x": lambda d, g, x_like, axes: as_like(
            F.tensordot_adjoint_x(g, d, x_like, axes=axes), x_like
        ),
        "like": NONDIFF,
    },
    infer=_like_spec,
    holomorphic=True,
    batch=tensordot_rule,
    jvp="multilinear",
    doc="Send a gradient of ``tensordot`` back to its second operand.",
)


@named
def tensordot(x: Any, y: Any, axes: Any = 2) -> Tensor:
    """Return the sum of products of ``x`` and ``y`` over pairs of axes.

    Parameters
    ----------
    x, y
        Tensors; they do not broadcast. Dtypes promote.
    axes
        ``n`` (2 by default): the last ``n`` axes of ``x`` with the first ``n`` of ``y``. Or a pair:
        axes of ``x``, and those of ``y`` to join them with.

    Returns
    -------
    Tensor
        A tensor of the other axes of ``x``, then those of ``y``.

    Raises
    ------
    ValueError
        If sizes on paired axes differ, or axes do not come in pairs.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.tensordot(gt.ones((2, 3, 4)), gt.ones((3, 4, 5))).shape
    (2, 5)
    >>> gt.tensordot(gt.ones((2, 3)), gt.ones((2, 4)), axes=(0, 0)).shape
    (3, 4)
    """
    if isinstance(axes, (int, np.integer)):
        pair: Any = (tuple(range(-int(axes), 0)), tuple(range(int(axes))))
    else:
        pair = tuple(as_axis(a, "tensordot") for a in axes)
        pair = tuple(a if isinstance(a, tuple) else (a,) for a in pair)
        if len(pair) != 2:
            raise ValueError(f"tensordot: axes is a number or a pair, got {axes!r}")
    return _tensordot(*among((x, y)), axes=pair)
