"""NumPy's helpers that put in, take out or lay out elements anew, made of other ops.

Where elements go is worked out by NumPy itself, on their numbers; one op then picks them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....core.extend import Operators, Tensor, as_shape, as_tensor, beside, ops
from ..common.axes import axis_of
from ..common.dtypes import SCALARS
from ..common.op_builders import named
from .joining import stack, unstack
from .shape import moveaxis

__all__ = ["apply_along_axis", "delete", "insert", "piecewise", "resize", "trim_zeros", "unwrap"]


def _lines(x: Any, axis: int | None, name: str) -> tuple[Any, int, int]:
    """Return ``x`` (flattened without an axis), the axis from 0, and its size, which is known."""
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    along = axis_of(x, axis, name) % x.ndim
    size = x.shape[along]
    if size is None:
        raise ValueError(
            f"{name}: the size of axis {axis} is unknown in this trace, got shape {x.shape}; give "
            "the function's input_signature a known size"
        )
    return x, along, size


def _on_host(obj: Any, name: str) -> Any:
    """Return an index of known value as NumPy takes it."""
    if isinstance(obj, (slice, int)):
        return obj
    index = np.asarray(obj)
    if not index.size:
        return index.astype(np.intp)
    if index.dtype.kind not in "biu":
        raise IndexError(f"{name}: an index holds integers or booleans, got dtype {index.dtype}")
    return index


def _placed(work: Callable[[], NDArray[Any]], name: str) -> NDArray[Any]:
    """Return what NumPy makes of the elements' numbers, its errors with our name."""
    try:
        return work()
    except (IndexError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


@named
def delete(x: Any, obj: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` without some entries along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype.
    obj
        Which to leave out: an integer, a slice, a vector of integers or of booleans, of known
        value.
    axis
        The axis; its size must be known. Without it, ``x`` is flattened.

    Returns
    -------
    Tensor
        The entries that are left, of the dtype of ``x``.

    Raises
    ------
    IndexError
        If an index is out of bounds, or holds neither integers nor booleans.
    ValueError
        If a boolean vector has another size than the axis.

    Examples
    --------
    >>> gt.delete(gt.arange(5), [1, 3]).tolist()
    [0, 2, 4]
    """
    x, along, size = _lines(as_tensor(x), axis, "delete")
    index = _on_host(obj, "delete")
    kept = _placed(lambda: np.delete(np.arange(size), index), "delete")
    return ops["take"](x, beside(kept, x), axis=along)


@named
def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` with values put in along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype.
    obj
        Before which entries of ``x``: an integer, a slice, a vector of integers or of booleans, of
        known value.
    values
        What to put in: it broadcasts to one entry per index, or for a single integer to any number
        of entries. It takes the dtype of ``x``; gradients reach it.
    axis
        The axis; its size must be known. Without it, ``x`` is flattened.

    Returns
    -------
    Tensor
        A tensor of the dtype of ``x``, with more entries along the axis.

    Raises
    ------
    IndexError
        If an index is out of bounds, or holds neither integers nor booleans.
    ValueError
        If the values do not broadcast.

    Examples
    --------
    >>> gt.insert(gt.constant([1, 2, 3]), 1, 9).tolist()
    [1, 9, 2, 3]
    """
    x, along, size = _lines(as_tensor(x), axis, "insert")
    new = ops["cast_like"](beside(values, x), x)
    if new.ndim > x.ndim:
        raise ValueError(f"insert: values of shape {new.shape} do not fit shape {x.shape}")
    if new.ndim < x.ndim:
        new = ops["expand_dims"](new, axis=tuple(range(x.ndim - new.ndim)))
    index = _on_host(obj, "insert")
    if not isinstance(index, slice) and np.ndim(index) == 0:
        new = moveaxis(new, 0, along)  # as NumPy: for one place, the first axis counts the entries
    numbers = np.arange(size)
    # how many places there are; an index of one takes any number of entries
    count = len(_placed(lambda: np.insert(numbers, index, 0), "insert")) - size
    if not isinstance(index, slice) and np.size(index) == 1:
        count = new.shape[along]
    shape = tuple(count if i == along else n for i, n in enumerate(x.shape))
    try:
        new = ops["broadcast_to"](new, shape=shape)
    except ValueError:
        raise ValueError(
            f"insert: values of shape {new.shape} do not fit {count} entries along axis {along} "
            f"of shape {x.shape}"
        ) from None
    order = _placed(lambda: np.insert(numbers, index, size + np.arange(count)), "insert")
    joined = ops["concatenate"](x, new, axis=along)
    return ops["take"](joined, beside(order, x), axis=along)


@named
def resize(x: Any, new_shape: int | Sequence[int]) -> Tensor:
    """Return a tensor of a new shape, filled with the elements of ``x`` over and over.

    Parameters
    ----------
    x
        A tensor of any dtype and known shape; one without elements gives zeros.
    new_shape
        One size or a sequence of them.

    Returns
    -------
    Tensor
        A tensor of the new shape and the dtype of ``x``.

    Raises
    ------
    ValueError
        If a size is negative.
    TypeError
        If a size is not an integer.

    Examples
    --------
    >>> gt.resize(gt.constant([1, 2, 3]), (2, 2)).tolist()
    [[1, 2], [3, 1]]
    """
    shape = as_shape(new_shape, "resize")
    if min(shape, default=0) < 0:
        raise ValueError(f"resize: sizes must be at least 0, got {shape}")
    flat, _, size = _lines(as_tensor(x), None, "resize")
    wanted = int(np.prod(shape))
    if not size:
        return ops["broadcast_to"](ops["sum"](flat, axis=None), shape=shape)
    if wanted != size:
        flat = ops["take"](flat, beside(np.arange(wanted) % size, flat), axis=0)
    return ops["reshape"](flat, shape=shape)


@named
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """Return a tensor without the zeros at its ends.

    Parameters
    ----------
    filt
        A tensor of known values: how many zeros there are decides the shape.
    trim
        ``"f"`` for the front, ``"b"`` for the back, or both (the default).
    axis
        The axis or axes to shorten; all by default.

    Returns
    -------
    Tensor
        The part of ``filt`` between the first and the last element that is not 0.

    Raises
    ------
    ValueError
        If ``trim`` holds another letter.
    TypeError
        In a trace, which knows no values.

    Examples
    --------
    >>> gt.trim_zeros(gt.constant([0, 0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    ends = trim.lower()
    if not ends or set(ends) - set("fb"):
        raise ValueError(f"trim_zeros: trim is made of 'f' and 'b', got {trim!r}")
    x = as_tensor(filt)
    found = np.nonzero(x.to("numpy").numpy())
    given = range(x.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = [axis_of(x, n, "trim_zeros") % x.ndim for n in given]
    index = [slice(None)] * x.ndim
    for n in axes:
        where = found[n]
        if not len(where):
            index[n] = slice(0, 0)
            continue
        start = int(where.min()) if "f" in ends else 0
        stop = int(where.max()) + 1 if "b" in ends else None
        index[n] = slice(start, stop)
    return x[tuple(index)]


@named
def unwrap(
    p: Any, discont: float | None = None, axis: int = -1, *, period: float = 2 * np.pi
) -> Tensor:
    """Return angles without jumps: neighbours differ by at most half a period.

    Parameters
    ----------
    p
        A real tensor of at least one axis, in radians by default. Integers stay such with an
        integer period.
    discont
        Only jumps larger than this are taken out; half the period if that is more, or none given.
    axis
        The axis along which angles follow each other; the last by default.
    period
        What is added or subtracted, any number of times; ``2 * pi`` by default.

    Returns
    -------
    Tensor
        A tensor of the shape of ``p``.

    Raises
    ------
    TypeError
        If ``p`` is complex.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    The gradient is that of ``p``: whole periods do not change with it.

    Examples
    --------
    >>> gt.unwrap(gt.constant([0, 1, 2, 3, 0, 1]), period=4).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    x = as_tensor(p)
    along = axis_of(x, axis, "unwrap") % x.ndim
    whole = x.dtype.kind in "biu" and isinstance(period, int)
    if x.dtype.kind == "c":
        raise TypeError(f"unwrap: expected real numbers, got dtype {x.dtype}")
    half = period // 2 if whole else period / 2
    jump = half if discont is None else discont
    fixed = ops["stop_gradient"](x)
    step = ops["difference"](fixed, axis=along)
    turned = ops["remainder"](step + half, period) - half
    if not (whole and period % 2):  # half a period either way: keep the sign of the step
        turned = ops["where"]((turned == -half) & (step > 0), half, turned)
    change = ops["where"](ops["abs"](step) < jump, 0, turned - step)
    change = ops["cumsum"](change, axis=along, reverse=False)
    before = ops["zeros_like"](ops["cast_like"](_first(x, along), change))
    return x + ops["concatenate"](before, change, axis=along)


def _first(x: Any, axis: int) -> Any:
    return x[(*(slice(None),) * axis, slice(0, 1))]


@named
def apply_along_axis(
    func1d: Callable[..., Any], axis: int, x: Any, *args: Any, **kwargs: Any
) -> Tensor:
    """Return a function's results for every vector along an axis.

    Parameters
    ----------
    func1d
        A function of a vector, and of ``args`` and ``kwargs``, that returns a tensor or a number,
        of the same shape for each.
    axis
        The axis along which the vectors are.
    x
        A tensor of known shape, with at least one axis.
    args, kwargs
        What else ``func1d`` takes.

    Returns
    -------
    Tensor
        A tensor with the results' axes in the place of ``axis``.

    Raises
    ------
    ValueError
        If a size is unknown, there are no vectors, or results differ in shape.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    The function is called once per vector; :func:`gradtape.vmap` is quicker where it is made of
    ops that know batches.

    Examples
    --------
    >>> gt.apply_along_axis(lambda v: v[-1] - v[0], 1, gt.constant([[1, 2, 5], [3, 4, 4]])).tolist()
    [4, 1]
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "apply_along_axis") % x.ndim
    around = (*x.shape[:along], *x.shape[along + 1 :])
    if None in around or 0 in around:
        raise ValueError(
            f"apply_along_axis: known sizes of at least 1 are needed, got shape {x.shape}"
        )
    lines = moveaxis(x, along, -1)
    results = [as_tensor(func1d(lines[place], *args, **kwargs)) for place in np.ndindex(around)]
    rank = results[0].ndim
    joined = stack(results)
    joined = ops["reshape"](
        joined, shape=(*around, *as_shape(joined.shape[1:], "apply_along_axis"))
    )
    last = tuple(range(len(around), len(around) + rank))
    return moveaxis(joined, last, tuple(range(along, along + rank))) if rank else joined


@named
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """Return functions' values, each where its condition holds.

    Parameters
    ----------
    x
        A tensor of any shape.
    condlist
        Boolean tensors of the shape of ``x``, or one of them. The last that holds counts.
    funclist
        A function or number per condition, and perhaps one more for where none holds (0 else). A
        function is called with the vector of elements for which its condition holds, ``args`` and
        ``kw``; it is not called for none.
    args, kw
        What else the functions take.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If there are not as many functions as conditions, or one more.

    Examples
    --------
    >>> x = gt.constant([-2.0, 0.0, 3.0])
    >>> gt.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v * v]).tolist()
    [2.0, 0.0, 9.0]
    """
    x = as_tensor(x)
    masks = [_mask(condition, x) for condition in _conditions(condlist, x)]
    if len(funclist) == len(masks) + 1:
        nowhere = masks[0]
        for mask in masks[1:]:
            nowhere = nowhere | mask
        masks.append(~nowhere)
    elif len(funclist) != len(masks):
        raise ValueError(
            f"piecewise: with {len(masks)} conditions, {len(masks)} or {len(masks) + 1} functions "
            f"are needed, got {len(funclist)}"
        )
    result = ops["zeros_like"](x)
    for mask, made in zip(masks, funclist, strict=True):
        if not callable(made):
            result = ops["where"](mask, made if type(made) in SCALARS else beside(made, x), result)
            result = ops["cast_like"](result, x)
            continue
        picked = x[mask]
        if picked.shape is not None and picked.shape[0] == 0:
            continue
        values = ops["cast_like"](beside(made(picked, *args, **kw), x), x)
        result = result.at[mask].set(values)
    return result


def _conditions(condlist: Any, x: Any) -> list[Any]:
    """Return the conditions of ``piecewise``: a list's, an array's along its first axis, or one."""
    if isinstance(condlist, (list, tuple)):
        one = x.ndim and np.ndim(condlist[0]) == 0 and not isinstance(condlist[0], Operators)
        return [condlist] if one else list(condlist)
    stacked = beside(condlist, x)
    return unstack(stacked) if stacked.ndim == x.ndim + 1 else [stacked]


def _mask(condition: Any, x: Any) -> Any:
    mask = beside(condition, x)
    return mask if mask.dtype.kind == "b" else mask != 0
