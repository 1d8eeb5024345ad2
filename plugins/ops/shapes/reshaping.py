"""The same elements in another shape, and axes of size 1 inserted and removed."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from ....core.errors import TraceError
from ....core.extend import (
    F,
    Op,
    Tensor,
    as_shape,
    as_tensor,
    exact_quotient,
    is_open,
    known_size,
    rank_of,
    sizes_differ,
)
from ..common.axes import as_axis, axis_over, batch_axes, leading, reduced_axes
from ..common.dynamic_shapes import elements
from ..common.op_builders import named, op

Shape = tuple[int | None, ...] | None


def _reshape_spec(x: Any, *, shape: tuple[int, ...]) -> tuple[Any, Any]:
    free = _free(shape)
    known = prod(n for i, n in enumerate(shape) if i not in free)
    if len(free) > 1 or any((n < -1) is True for n in shape):
        raise ValueError(f"reshape: at most one size may be -1, all others at least 0, got {shape}")
    size = elements(x.shape)
    if size is None:
        return tuple(None if i in free else n for i, n in enumerate(shape)), x.dtype
    if is_open(size) or is_open(known):
        fits = bool(free) or not sizes_differ(size, known)
    else:
        fits = not size % known if free and known else size == known
    if not fits:
        raise ValueError(f"reshape: {size} elements of shape {x.shape} do not fill shape {shape}")
    if not is_open(known) and not known:
        return shape, x.dtype
    return tuple(exact_quotient(size, known) if i in free else n for i, n in enumerate(shape)), (
        x.dtype
    )


def _free(shape: tuple[Any, ...]) -> list[int]:
    """Return the position of -1, the remaining size, in a shape."""
    return [i for i, n in enumerate(shape) if not is_open(n) and n == -1]


def reshaped(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``reshape``."""
    (x,), shape = xs, params["shape"]
    if x.shape is None:
        if _free(shape):
            raise TraceError(
                "reshape: vmap needs to know the number of axes of the example to reshape "
                f"{x!r} to {shape}"
            )
        return op.raw(x, shape=(-1, *shape))
    batch, *sizes = x.shape
    free = _free(shape)
    # replace -1 by the number: NumPy cannot compute it for an array without elements
    known = prod(n for i, n in enumerate(shape) if i not in free)
    left = exact_quotient(prod(sizes), known) if is_open(known) else prod(sizes) // max(known, 1)
    return op.raw(x, shape=(batch, *(left if i in free else n for i, n in enumerate(shape))))


_reshape = op(
    "reshape",
    lambda xp, x, *, shape: xp.reshape(x, shape),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=_reshape_spec,
    holomorphic=True,
    batch=reshaped,
    jvp="linear",
    view="reshape",
    integers="moves",
    doc="Give ``x`` another shape; one dimension may be -1.",
)


def _transposed(x: Any, order: str, name: str) -> Any:
    """Return ``x`` with its axes reversed, so that columns become rows."""
    if not isinstance(order, str):
        raise TypeError(f"{name}: order must be text, got {order!r}")
    if order != "F":
        why = (
            "" if order not in ("A", "K") else "; it asks for memory, of which a tensor tells none"
        )
        raise ValueError(f"{name}: order must be 'C' (rows) or 'F' (columns), got {order!r}{why}")
    return as_tensor(x).T


def reshape(
    x: Any, shape: int | Sequence[int], order: str = "C", *, copy: bool | None = None
) -> Tensor:
    """Return the same elements in another shape.

    Parameters
    ----------
    shape
        The new shape, a size or a sequence of them; one may be -1, which stands for the remaining
        size.
    order
        ``"C"`` (the default) takes and places the elements by rows, the last index changing
        fastest; ``"F"`` by columns, the first index changing fastest.
    copy
        Ignored: a tensor never changes, so a copy makes no difference.

    Returns
    -------
    Tensor
        The elements of ``x``, in the new shape; the dtype of ``x``.

    Raises
    ------
    ValueError
        If the elements do not fill the shape, more than one size is -1, or ``order`` is another
        word. ``"A"`` and ``"K"`` refer to the order in memory, which a tensor does not have.

    Examples
    --------
    >>> gt.reshape(gt.arange(6), (2, -1)).tolist()
    [[0, 1, 2], [3, 4, 5]]
    >>> gt.reshape(gt.arange(6), (2, -1), order="F").tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    sizes = as_shape(shape, "reshape")
    if order == "C":
        return _reshape(x, shape=sizes)
    return _reshape(_transposed(x, order, "reshape"), shape=sizes[::-1]).T


@named
def ravel(x: Any, order: str = "C") -> Tensor:
    """Return the elements of ``x`` along one axis.

    Parameters
    ----------
    order
        ``"C"`` (the default) for row-major order, ``"F"`` for column-major order, as for
        :func:`reshape`.

    Returns
    -------
    Tensor
        The elements, of shape ``(x.size,)`` and the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``order`` is another word.

    Examples
    --------
    >>> gt.ravel(gt.constant([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return _reshape(x if order == "C" else _transposed(x, order, "ravel"), shape=(-1,))


def _flat_last_spec(x: Any, *, count: int) -> tuple[Any, Any]:
    if x.shape is None:
        return None, x.dtype
    kept = len(x.shape) - count
    return (*x.shape[:kept], elements(x.shape[kept:])), x.dtype


flatten_last = op(
    "flatten_last",
    lambda xp, x, *, count: xp.reshape(
        x, (*x.shape[: x.ndim - count], prod(x.shape[x.ndim - count :]))
    ),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=_flat_last_spec,
    holomorphic=True,
    batch=leading,
    jvp="linear",
    view=True,
    doc="Merge the last ``count`` axes into one.",
)


def _expand_kernel(xp: Any, x: Any, *, axis: Any) -> Any:
    return xp.reshape(x, _expanded(x.shape, axis))


def _expanded(shape: Any, axis: Any) -> Any:
    rank = len(shape) + (len(axis) if isinstance(axis, tuple) else 1)
    if rank > 64:  # NumPy's limit too
        raise ValueError(f"expand_dims: the result would have {rank} dimensions, above 64")
    new = reduced_axes(axis, rank, "expand_dims")
    sizes = iter(shape)
    return tuple(1 if i in new else next(sizes) for i in range(rank))


def _squeezed(shape: Any, axis: Any) -> Any:
    if axis is None:
        open_ones = [n for n in shape if n is None or is_open(n != 1)]
        return None if open_ones else tuple(n for n in shape if n != 1)
    gone = reduced_axes(axis, len(shape), "squeeze")
    for i in gone:
        if shape[i] is not None and sizes_differ(shape[i], 1):
            raise ValueError(
                f"squeeze: axis {i} of shape {shape} has size {shape[i]}; only size 1 is removed"
            )
    return tuple(n for i, n in enumerate(shape) if i not in gone)


def expanded(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``expand_dims``."""
    axis = params["axis"]
    new = len(axis) if isinstance(axis, tuple) else 1
    return op.raw(xs[0], axis=batch_axes(axis, rank_of(xs[0], op) - 1 + new, op.name))


def squeezed(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``squeeze``."""
    (x,), axis = xs, params["axis"]
    rank = rank_of(x, op) - 1
    if axis is None:
        if not all(map(known_size, x.shape[1:])):
            raise TraceError(f"squeeze: which sizes of {x!r} are 1 is unknown; name the axes")
        return op.raw(x, axis=tuple(i for i, n in enumerate(x.shape) if i and n == 1))
    return op.raw(x, axis=batch_axes(axis, rank, op.name))


_expand_dims = op(
    "expand_dims",
    _expand_kernel,
    gradients={"x": lambda g, axis: F.squeeze(g, axis=axis)},
    infer=lambda x, axis: (None if x.shape is None else _expanded(x.shape, axis), x.dtype),
    holomorphic=True,
    batch=expanded,
    jvp="linear",
    view="reshape",
    integers="moves",
    doc="Insert axes of size 1, at the positions ``axis`` of the result.",
)
_squeeze = op(
    "squeeze",
    lambda xp, x, *, axis=None: xp.reshape(x, _squeezed(x.shape, axis)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x, axis: (None if x.shape is None else _squeezed(x.shape, axis), x.dtype),
    holomorphic=True,
    batch=squeezed,
    jvp="linear",
    view="reshape",
    integers="moves",
    doc="Remove axes of size 1.",
)


def expand_dims(x: Any, axis: int | Sequence[int]) -> Tensor:
    """Return ``x`` with axes of size 1 inserted at the positions ``axis`` of the result.

    Parameters
    ----------
    axis
        One position or several, as axes of the result; negative ones count from its end.

    Returns
    -------
    Tensor
        The elements of ``x``, with an additional axis for each position; the dtype of ``x``.

    Raises
    ------
    numpy.exceptions.AxisError
        If a position is out of bounds for the result.
    ValueError
        If a position is repeated, or the result would have more than 64 axes.

    Examples
    --------
    >>> gt.expand_dims(gt.ones((2, 3)), axis=(0, -1)).shape
    (1, 2, 3, 1)
    """
    return _expand_dims(x, axis=as_axis(axis, "expand_dims"))


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> Tensor:
    """Return ``x`` without axes of size 1: those of ``axis``, or all.

    Parameters
    ----------
    axis
        The axis or axes to remove; by default all that have size 1.

    Returns
    -------
    Tensor
        The elements of ``x`` with fewer axes; the dtype of ``x``.

    Raises
    ------
    ValueError
        If an axis to remove has another size, or is named twice.
    numpy.exceptions.AxisError
        If an axis is out of bounds.

    Examples
    --------
    >>> gt.squeeze(gt.ones((1, 3, 1))).shape
    (3,)
    >>> gt.squeeze(gt.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    return _squeeze(x, axis=axis_over(x, axis, "squeeze"))
