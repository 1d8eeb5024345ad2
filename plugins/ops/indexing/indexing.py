"""Ops that pick elements, and their adjoints, which add gradients back where they came from.

An adjoint writes into zeros of the original's shape; where an element was picked twice, it adds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    F,
    Tensor,
    TensorSpec,
    as_tensor,
    broadcast_shapes,
    decode_index,
    ops,
)
from ..common.axes import one_axis, reduced_axes
from ..common.batching import along, leading
from ..common.kernels import kind_of
from ..common.op_builders import named, op
from ..common.ranks import known_rank
from .batching import diag_rule, getitem_rule, put_rule, take_adjoint_rule, take_rule

__all__ = [
    "argsort",
    "diag",
    "diagonal",
    "gather",
    "sort",
    "take",
    "take_along_axis",
]


def complete(where: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index that leaves no axis unsaid, as the array API wants it."""
    return where if any(part is Ellipsis for part in where) else (*where, Ellipsis)


def scatter_add(
    xp: Any, out: Any, where: Any, values: Any, pick: Callable[[Any], Any] | None = None
) -> Any:
    """Add ``values`` to ``out[where]``, in place where possible; repeated places add up.

    ``pick(x)`` is ``x[where]``, for libraries that do not index by ``where``.
    """
    add_at = getattr(getattr(xp, "add", None), "at", None)
    if add_at is not None:
        add_at(out, where, values)
        return out
    # The array API has no such function: send every value to its place by a matrix product.
    size = prod(out.shape)
    numbers = xp.reshape(xp.arange(size), out.shape)
    picked = numbers[where] if pick is None else pick(numbers)
    places = xp.reshape(picked, (1, -1)) == xp.reshape(xp.arange(size), (-1, 1))
    added = xp.astype(places, values.dtype) @ xp.reshape(values, (-1,))
    return out + xp.reshape(added, out.shape)


# -- x[index] --------------------------------------------------------------------------------------


def index_shape(shape: Any, index: tuple[Any, ...], arrays: tuple[TensorSpec, ...]) -> Any:
    """Return the shape of ``x[index]``, by NumPy's rules, with unknown sizes."""
    if shape is None or any(array.shape is None for array in arrays):
        return None
    parts = [arrays[p[1]] if isinstance(p, tuple) and p[0] == "array" else p for p in index]
    used = sum(_axes_used(part) for part in parts)
    if used > len(shape):
        raise IndexError(f"getitem: too many indices for shape {shape}: {used}")
    if "..." not in [p for p in parts if isinstance(p, str)]:
        parts.append("...")
    advanced = bool(arrays)
    sizes = list(shape)
    picked: list[Any] = []  # what the advanced indices give, broadcast together
    places: list[int] = []  # their positions in the index
    front = 0  # how many axes of the result precede the first of them
    result: list[int | None] = []
    for place, part in enumerate(parts):
        if isinstance(part, str):
            kept = len(shape) - used if part == "..." else 0
            result += sizes[:kept] if part == "..." else [1]
            del sizes[:kept]
        elif isinstance(part, tuple):
            result.append(_sliced(sizes.pop(0), slice(*part[1:])))
        else:
            if advanced and not places:
                front = len(result)
            places.append(place)
            picked.append(_picked(part, sizes, shape))
    if not advanced:
        return tuple(result)
    if places != list(range(places[0], places[-1] + 1)):
        front = 0  # apart from each other, they go first
    joined = broadcast_shapes(*picked, op="getitem") or ()
    return (*result[:front], *joined, *result[front:])


def _axes_used(part: Any) -> int:
    if isinstance(part, str):
        return 0
    if isinstance(part, TensorSpec) and part.dtype.kind == "b":
        return len(part.shape or ())
    return 1


def _picked(part: Any, sizes: list[Any], shape: Any) -> Any:
    """Return the shape that an integer, index array or mask gives; take its axes off ``sizes``."""
    if isinstance(part, int):
        size = sizes.pop(0)
        if size is not None and not -size <= part < size:
            raise IndexError(f"getitem: index {part} is out of bounds for size {size} in {shape}")
        return ()
    if part.dtype.kind != "b":
        sizes.pop(0)
        return part.shape
    for n in part.shape:
        size = sizes.pop(0)
        if None not in (n, size) and n != size:
            raise IndexError(f"getitem: a mask of shape {part.shape} does not fit shape {shape}")
    return (None,)


def _sliced(size: int | None, part: slice) -> int | None:
    if size is not None:
        return len(range(*part.indices(size)))
    return None


def _getitem_kernel(xp: Any, x: Any, *arrays: Any, index: Any) -> Any:
    where = decode_index(index, arrays)
    return x[where if arrays else complete(where)]


def _getitem_vjp(gs: Any, inputs: Any, outputs: Any, needed: Any, *, index: Any) -> list[Any]:
    gx = F.index_add_like(gs[0], *inputs, index=index)
    return [gx, *[None] * (len(inputs) - 1)]


def _index_add(xp: Any, g: Any, like: Any, *arrays: Any, index: Any) -> Any:
    out = xp.zeros(like.shape, dtype=g.dtype)
    where = decode_index(index, arrays)
    if all(kind_of(array.dtype) == "b" for array in arrays):
        out[where if arrays else complete(where)] = g  # slices and masks name no element twice
        return out
    return scatter_add(xp, out, where, g)


op(
    "getitem",
    _getitem_kernel,
    vjp=_getitem_vjp,
    shapes_only=("x", "out"),
    infer=lambda x, *arrays, index: (index_shape(x.shape, index, arrays), x.dtype),
    batch=getitem_rule,
    jvp="linear",
    doc="Pick elements by integers, slices and index arrays.",
)
op(
    "index_add_like",
    _index_add,
    vjp=lambda gs, inputs, outputs, needed, index: [
        F.getitem(gs[0], *inputs[2:], index=index),
        *[None] * (len(inputs) - 1),
    ],
    shapes_only=("g", "like", "out"),
    infer=lambda g, like, *arrays, index: (like.shape, g.dtype),
    batch=put_rule,
    jvp="linear",
    doc="Add ``g`` to zeros of the shape of ``like``, at an index: the adjoint of getitem.",
)


# -- take ------------------------------------------------------------------------------------------


def _take_kernel(xp: Any, x: Any, indices: Any, *, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = xp.reshape(x, (-1,)), 0
    (along,) = reduced_axes(axis, x.ndim, "take")
    picked = xp.take(x, xp.reshape(indices, (-1,)), axis=along)
    return xp.reshape(picked, (*x.shape[:along], *indices.shape, *x.shape[along + 1 :]))


def _take_spec(x: TensorSpec, indices: TensorSpec, *, axis: int | None) -> tuple[Any, Any]:
    if axis is None:
        return indices.shape, x.dtype
    if x.shape is None or indices.shape is None:
        return None, x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "take")
    return (*x.shape[:along], *indices.shape, *x.shape[along + 1 :]), x.dtype


def _take_adjoint(xp: Any, g: Any, indices: Any, like: Any, *, axis: int | None = None) -> Any:
    shape = like.shape if axis is not None else (prod(like.shape),)
    along = 0 if axis is None else axis % len(shape)
    out = xp.zeros(shape, dtype=g.dtype)
    where = (*(slice(None),) * along, indices)

    def pick(x: Any) -> Any:
        return _take_kernel(xp, x, indices, axis=along)

    return xp.reshape(scatter_add(xp, out, where, g, pick), like.shape)


_take = op(
    "take",
    _take_kernel,
    gradients={
        "x": lambda g, indices, x_like, axis: F.take_adjoint(g, indices, x_like, axis=axis),
        "indices": NONDIFF,
    },
    infer=_take_spec,
    holomorphic=True,
    batch=take_rule,
    jvp="linear",
    doc="Pick entries along an axis by index.",
)
op(
    "take_adjoint",
    _take_adjoint,
    gradients={
        "g": lambda g, indices, axis: F.take(g, indices, axis=axis),
        "indices": NONDIFF,
        "like": NONDIFF,
    },
    infer=lambda g, indices, like, axis: (like.shape, g.dtype),
    holomorphic=True,
    batch=take_adjoint_rule,
    jvp="linear",
    doc="Add ``g`` to zeros of the shape of ``like``, where ``take`` picked from.",
)


def _indices(indices: Any, name: str, refusal: type[Exception] = IndexError) -> Any:
    if isinstance(indices, (list, tuple)) and not indices:
        indices = np.zeros(0, np.int64)
    array = as_tensor(indices)
    if array.dtype.kind not in "iu":
        raise refusal(f"{name}: indices must be integers, got dtype {array.dtype}")
    return array


def _inside(shape: Any, indices: Any, axis: int | None, mode: str) -> Any:
    """Return indices that are in bounds, by the mode of :func:`take`."""
    if shape is not None:
        sizes = shape if axis is None else (shape[reduced_axes(axis, len(shape), "take")[0]],)
    if shape is None or None in sizes:
        raise ValueError(f"take: mode={mode!r} needs a known size in a trace, got shape {shape}")
    size = prod(sizes)
    if size == 0:
        raise IndexError(f"take: there is nothing to take from, got shape {shape}")
    indices = indices.astype("int64")  # the size may be more than a narrow dtype holds
    return indices % size if mode == "wrap" else ops["clip"](indices, 0, size - 1)


@named
def take(x: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Tensor:
    """Return entries of ``x`` picked by index.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices
        Integers of any shape; negative ones count from the end. Repeated ones are fine: their
        gradients add up.
    axis
        The axis to pick along; ``None`` picks from the flattened ``x``.
    mode
        What an index out of bounds does: ``"raise"``; ``"wrap"``, counted around the end; or
        ``"clip"``, the first or the last element (negative indices are the first one then).

    Returns
    -------
    A tensor of the dtype of ``x``, of shape
    ``x.shape[:axis] + indices.shape + x.shape[axis + 1:]``.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If an index is no integer.
    ValueError
        If the mode is unknown, or needs a size that is not known in a trace.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.take(x, [1, 1, 0], axis=0).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    >>> gt.take(x, [0, -1]).tolist()
    [1.0, 4.0]
    """
    x, indices = as_tensor(x), _indices(indices, "take", TypeError)
    if mode != "raise":
        if mode not in ("wrap", "clip"):
            raise ValueError(f"take: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
        indices = _inside(x.shape, indices, axis, mode)
    return _take(x, indices, axis=None if axis is None else one_axis(axis, "take"))


@named
def gather(params: Any, indices: Any, axis: int = 0) -> Tensor:
    """Return slices of ``params`` along ``axis``: :func:`take` with TensorFlow's argument names.

    Parameters
    ----------
    params
        A tensor of any dtype.
    indices
        Integers of any shape; negative ones count from the end. Gradients of repeated ones add up.
    axis
        The axis to pick along; the first by default.

    Returns
    -------
    A tensor of the dtype of ``params``, of shape
    ``params.shape[:axis] + indices.shape + params.shape[axis + 1:]``.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    TypeError
        If an index is no integer.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> table = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.gather(table, [1, 1, 0]).tolist()
    [[3.0, 4.0], [3.0, 4.0], [1.0, 2.0]]
    """
    return take(params, indices, axis)


def _along_axis_index(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index arrays with which ``x[...]`` picks what take_along_axis does."""
    along, rank = axis % len(shape), len(shape)
    grid = [xp.reshape(xp.arange(n), (-1, *(1,) * (rank - i - 1))) for i, n in enumerate(shape)]
    grid[along] = indices
    return tuple(grid)


def _along_axis_spec(x: TensorSpec, indices: TensorSpec, *, axis: int) -> tuple[Any, Any]:
    if x.shape is None or indices.shape is None:
        return None, x.dtype
    (along,) = reduced_axes(axis, len(x.shape), "take_along_axis")
    if len(x.shape) != len(indices.shape):
        raise ValueError(
            "take_along_axis: x and indices must have the same number of axes, "
            f"got shapes {x.shape} and {indices.shape}"
        )
    other = tuple(1 if i == along else n for i, n in enumerate(x.shape))
    return broadcast_shapes(other, indices.shape, op="take_along_axis"), x.dtype


def _along_axis_adjoint(xp: Any, g: Any, indices: Any, like: Any, *, axis: int) -> Any:
    out = xp.zeros(like.shape, dtype=g.dtype)
    return scatter_add(xp, out, _along_axis_index(xp, like.shape, indices, axis), g)


_take_along_axis = op(
    "take_along_axis",
    lambda xp, x, indices, *, axis: xp.take_along_axis(x, indices, axis=axis),
    gradients={
        "x": lambda g, indices, x_like, axis: F.take_along_axis_adjoint(
            g, indices, x_like, axis=axis
        ),
        "indices": NONDIFF,
    },
    infer=_along_axis_spec,
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Pick entries along an axis, by an index for each position of the other axes.",
)
op(
    "take_along_axis_adjoint",
    _along_axis_adjoint,
    gradients={
        "g": lambda g, indices, axis: F.take_along_axis(g, indices, axis=axis),
        "indices": NONDIFF,
        "like": NONDIFF,
    },
    infer=lambda g, indices, like, axis: (like.shape, g.dtype),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Add ``g`` to zeros of the shape of ``like``, where ``take_along_axis`` picked from.",
)


@named
def take_along_axis(x: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """Return entries of ``x`` along ``axis``, by an index for each position of the other axes.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices
        Integers with as many axes as ``x``; the other axes broadcast.
    axis
        The axis to pick along, the last by default; ``None`` picks from the flattened ``x``.

    Returns
    -------
    A tensor of the dtype of ``x``, of the shape of ``indices`` where its other axes have the sizes
    of ``x``. Gradients go back to where the entries were; those of repeated ones add up.

    Raises
    ------
    ValueError
        If ``indices`` has another number of axes.
    IndexError
        If an index is out of bounds or no integer, or another axis does not broadcast.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> x = gt.constant([[3.0, 1.0], [2.0, 4.0]])
    >>> gt.take_along_axis(x, gt.argsort(x, axis=1), axis=1).tolist()
    [[1.0, 3.0], [2.0, 4.0]]
    """
    x, indices = as_tensor(x), _indices(indices, "take_along_axis")
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    return _take_along_axis(x, indices, axis=one_axis(axis, "take_along_axis"))


# -- sorting ---------------------------------------------------------------------------------------


def _argsort_spec(x: TensorSpec, *, axis: int) -> tuple[Any, Any]:
    if x.shape is not None:
        reduced_axes(axis, len(x.shape), "argsort")
    return x.shape, np.dtype(np.int64)


def _sort_spec(x: TensorSpec, *, axis: int) -> tuple[Any, Any]:
    if x.shape is not None:
        reduced_axes(axis, len(x.shape), "sort")
    return x.shape, x.dtype


_argsort = op(
    "argsort",
    lambda xp, x, *, axis=-1: xp.argsort(x, axis=axis, stable=True),
    gradients={"x": NONDIFF},
    infer=_argsort_spec,
    batch=along("axis"),
    doc="Return the indices that sort along an axis; equal elements keep their order.",
)


def _unsort(xp: Any, g: Any, order: Any, *, axis: int) -> Any:
    out = xp.zeros(g.shape, dtype=g.dtype)
    where = _along_axis_index(xp, g.shape, order, axis)
    if not hasattr(getattr(xp, "add", None), "at"):
        return scatter_add(xp, out, where, g)
    out[where] = g  # an order names every element once
    return out


_sort = op(
    "sort",
    lambda xp, x, *, axis=-1: xp.sort(x, axis=axis),
    gradients={
        # which element went where is asked for here only: values alone are quicker to sort
        "x": lambda g, x, axis: F.unsort(g, F.sort_order(x, axis=axis), axis=axis)
    },
    infer=_sort_spec,
    holomorphic=True,
    batch=along("axis"),
    doc="Sort along an axis.",
)
op(
    "sort_order",
    lambda xp, x, *, axis: xp.argsort(x, axis=axis),
    gradients={"x": NONDIFF},
    infer=_argsort_spec,
    batch=along("axis"),
    doc="Return indices that sort along an axis, those of equal elements in any order.",
)
op(
    "unsort",
    _unsort,
    gradients={
        "g": lambda g, order, axis: F.take_along_axis(g, order, axis=axis),
        "order": NONDIFF,
    },
    infer=lambda g, order, axis: (g.shape, g.dtype),
    holomorphic=True,
    batch=along("axis"),
    jvp="linear",
    doc="Put elements along an axis back where an order of all of them took them from.",
)


@named
def argsort(x: Any, axis: int | None = -1) -> Tensor:
    """Return the indices that sort ``x`` along ``axis``; they have no gradient.

    Parameters
    ----------
    x
        A tensor of any dtype; complex numbers are in the order of their real parts, then imaginary
        parts, and nan comes last.
    axis
        The axis to sort along, the last by default; ``None`` sorts the flattened ``x``.

    Returns
    -------
    An integer tensor of the shape of ``x``. Equal elements keep their order.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.argsort(gt.constant([3.0, 1.0, 2.0])).tolist()
    [1, 2, 0]
    """
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    return _argsort(x, axis=one_axis(axis, "argsort"))


@named
def sort(x: Any, axis: int | None = -1) -> Tensor:
    """Return ``x`` in ascending order along ``axis``.

    Parameters
    ----------
    x
        A tensor of any dtype; complex numbers are in the order of their real parts, then imaginary
        parts, and nan comes last.
    axis
        The axis to sort along, the last by default; ``None`` sorts the flattened ``x``.

    Returns
    -------
    A tensor of the shape and dtype of ``x``. Gradients go back to where elements were.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.sort(gt.constant([[3.0, 1.0], [2.0, 4.0]]), axis=0).tolist()
    [[2.0, 1.0], [3.0, 4.0]]
    """
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    return _sort(x, axis=one_axis(axis, "sort"))


# -- diagonals -------------------------------------------------------------------------------------


def _on_diagonal(xp: Any, g: Any, rows: int, columns: int, offset: int) -> Any:
    """Return matrices of zeros with ``g`` on a diagonal."""
    before = max(0, -offset)
    batch, count = g.shape[:-1], g.shape[-1]
    gap = xp.zeros((*batch, before), dtype=g.dtype)
    rest = xp.zeros((*batch, rows - before - count), dtype=g.dtype)
    column = xp.expand_dims(xp.concat((gap, g, rest), axis=-1), axis=-1)
    return xp.where(xp.eye(rows, columns, k=offset) > 0, column, xp.zeros_like(column))


def _diagonal_kernel(xp: Any, x: Any, *, offset: int = 0) -> Any:
    if x.ndim < 2:
        raise ValueError("an array of at least two axes is needed")
    return xp.linalg.diagonal(x, offset=offset)


def _diagonal_spec(x: TensorSpec, *, offset: int) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    if len(x.shape) < 2:
        raise ValueError(f"diagonal: at least two axes are needed, got shape {x.shape}")
    rows, columns = x.shape[-2:]
    if rows is None or columns is None:
        return (*x.shape[:-2], None), x.dtype
    return (*x.shape[:-2], max(0, min(rows + min(offset, 0), columns - max(offset, 0)))), x.dtype


def _diagonal_adjoint(xp: Any, g: Any, like: Any, *, offset: int = 0) -> Any:
    if not g.shape[-1]:
        return xp.zeros(like.shape, dtype=g.dtype)
    rows, columns = like.shape[-2:]
    return _on_diagonal(xp, g, rows, columns, offset)


_diagonal = op(
    "diagonal",
    _diagonal_kernel,
    gradients={"x": lambda g, x_like, offset: F.diagonal_adjoint(g, x_like, offset=offset)},
    infer=_diagonal_spec,
    holomorphic=True,
    batch=leading,
    jvp="linear",
    doc="Return a diagonal of the last two axes.",
)
op(
    "diagonal_adjoint",
    _diagonal_adjoint,
    gradients={"g": lambda g, offset: F.diagonal(g, offset=offset), "like": NONDIFF},
    infer=lambda g, like, offset: (like.shape, g.dtype),
    holomorphic=True,
    batch=diag_rule,
    jvp="linear",
    doc="Put ``g`` on a diagonal of zeros of the shape of ``like``.",
)
_diag = op(
    "diag",
    lambda xp, x, *, k=0: _diag_kernel(xp, x, k),
    gradients={"x": lambda g, k: F.diagonal(g, offset=k)},
    infer=lambda x, k: (
        None if x.shape is None else (*x.shape[:-1], *[_grown(x.shape[-1], k)] * 2),
        x.dtype,
    ),
    holomorphic=True,
    batch=leading,
    jvp="linear",
    doc="Return matrices with ``x`` on a diagonal.",
)


def _grown(size: int | None, k: int) -> int | None:
    return None if size is None else size + abs(k)


def _diag_kernel(xp: Any, x: Any, k: int) -> Any:
    size = x.shape[-1] + abs(k)
    return _on_diagonal(xp, x, size, size, k)


@named
def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return the diagonal of the matrices in two axes of ``x``, as its last axis.

    Parameters
    ----------
    x
        A tensor of at least two axes, of any dtype.
    offset
        Which diagonal: above the main one if positive, below it if negative; 0 by default.
    axis1, axis2
        The axes of rows and columns; the first two by default.

    Returns
    -------
    A tensor of the dtype of ``x``, with the two axes replaced by a last one; it has size 0 for a
    diagonal beyond the corner.

    Raises
    ------
    numpy.exceptions.AxisError
        If an axis is out of bounds.
    ValueError
        If both axes are the same.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.diagonal(x).tolist()
    [1.0, 4.0]
    >>> gt.diagonal(x, offset=1).tolist()
    [2.0]
    """
    if (axis1, axis2) != (-2, -1):
        x = ops["moveaxis"](x, source=(axis1, axis2), destination=(-2, -1))
    return _diagonal(x, offset=operator.index(offset))


@named
def diag(v: Any, k: int = 0) -> Tensor:
    """Return a matrix with a vector ``v`` on diagonal ``k``, or that diagonal of a matrix ``v``.

    Parameters
    ----------
    v
        A vector of ``n`` elements, or a matrix; of any dtype.
    k
        Which diagonal: above the main one if positive, below it if negative; 0 by default.

    Returns
    -------
    A matrix of shape ``(n + abs(k), n + abs(k))``, or a vector; of the dtype of ``v``.

    Raises
    ------
    ValueError
        If ``v`` is neither vector nor matrix.

    Examples
    --------
    >>> gt.diag(gt.constant([1.0, 2.0])).tolist()
    [[1.0, 0.0], [0.0, 2.0]]
    >>> gt.diag(gt.constant([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [1.0, 4.0]
    """
    v = as_tensor(v)
    if known_rank(v, "diag") == 1:
        return _diag(v, k=operator.index(k))
    if v.ndim == 2:
        return _diagonal(v, offset=operator.index(k))
    raise ValueError(f"diag: a vector or matrix is needed, got shape {v.shape}")
