"""Functions applied to the lines of a tensor, or to its parts by condition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ....core import extend  # for what a first op does not need
from ....core.extend import (
    Operators,
    Tensor,
    as_tensor,
    is_open,
    known_size,
    on_device_of,
    ops,
    same_size,
    shapes_differ,
)
from ..common.axes import axis_of
from ..common.dynamic_shapes import ensured, known_rank
from ..common.kernels import SCALARS
from ..common.op_builders import named
from .joining import stack
from .rearrangement import moveaxis
from .splitting import unstack


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
        The axis of the vectors.
    x
        A tensor with at least one axis.
    args, kwargs
        Further arguments of ``func1d``.

    Returns
    -------
    Tensor
        A tensor with the results' axes instead of ``axis``.

    Raises
    ------
    ValueError
        If there are no vectors, or results differ in shape.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Notes
    -----
    The function is called once per vector. If it consists of ops with batching rules,
    :func:`gradtape.vmap` is faster; a trace that does not know the number of vectors uses it.

    Examples
    --------
    >>> gt.apply_along_axis(lambda v: v[-1] - v[0], 1, gt.constant([[1, 2, 5], [3, 4, 4]])).tolist()
    [4, 1]
    """
    x = as_tensor(x)
    along = axis_of(x, axis, "apply_along_axis") % x.ndim
    around = (*x.shape[:along], *x.shape[along + 1 :])
    lines = moveaxis(x, along, -1)
    if any(map(is_open, around)):
        return _along_open_axes(lambda line: func1d(line, *args, **kwargs), lines, along)
    if 0 in around:
        raise ValueError(f"apply_along_axis: there are no vectors in the shape {x.shape}")
    results = [as_tensor(func1d(lines[place], *args, **kwargs)) for place in np.ndindex(around)]
    rank = known_rank(results[0], "apply_along_axis")
    if all(map(known_size, results[0].shape)):
        joined = ops["reshape"](stack(results), shape=(*around, *results[0].shape))
    else:  # a trace does not know how much the function gives
        for size in around[::-1]:
            results = [stack(results[i : i + size]) for i in range(0, len(results), size)]
        joined = results[0]
    return _placed(joined, len(around), along, rank)


def _placed(joined: Any, first: int, along: int, rank: int) -> Any:
    """Return results, whose axes begin at ``first``, with them from ``along`` on."""
    last = tuple(range(first, first + rank))
    return moveaxis(joined, last, tuple(range(along, along + rank))) if rank else joined


def _along_open_axes(fn: Callable[[Any], Any], lines: Any, along: int) -> Any:
    """Apply a function to all vectors at once, in a trace that does not know their number."""
    *around, size = lines.shape
    count = prod(around)
    why = f"apply_along_axis: there are no vectors in the shape {lines.shape}"
    lines = ensured(lines, count > 0, why)
    results = as_tensor(extend.vmap(fn)(ops["reshape"](lines, shape=(count, size))))
    rank = known_rank(results, "apply_along_axis") - 1
    joined = ops["reshape"](results, shape=(*around, *results.shape[1:]))
    return _placed(joined, len(around), along, rank)


@named
def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Tensor:
    """Return the values of functions, each where its condition holds.

    Parameters
    ----------
    x
        A tensor of any shape.
    condlist
        Boolean tensors of the shape of ``x``, or one of them. If several hold, the last one counts.
    funclist
        A function or number per condition, and optionally one more for where none holds (otherwise
        0). A function is called with the vector of elements for which its condition holds, ``args``
        and ``kw``. It is not called if there are none.
    args, kw
        Further arguments of the functions.

    Returns
    -------
    Tensor
        A tensor of the shape and dtype of ``x``.

    Raises
    ------
    ValueError
        If there are not as many functions as conditions, or one more, or conditions differ in rank.
    IndexError
        If a condition does not fit ``x``.

    Examples
    --------
    >>> x = gt.constant([-2.0, 0.0, 3.0])
    >>> gt.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v * v]).tolist()
    [2.0, 0.0, 9.0]
    """
    x = as_tensor(x)
    conditions = [on_device_of(condition, x) for condition in _conditions(condlist, x)]
    shapes = [condition.shape for condition in conditions]
    if all(shape is not None for shape in shapes) and len(set(map(len, shapes))) > 1:
        raise ValueError(f"piecewise: conditions must have the same shape, got {shapes}")
    masks = [_mask(condition, x) for condition in conditions]
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
            # a number in the dtype of x, or an error if that does not hold it
            made = np.asarray(made, x.dtype) if type(made) in SCALARS else made
            result = ops["cast_like"](
                ops["where"](_across(mask, x), on_device_of(made, x), result), x
            )
            continue
        picked = x[mask]
        if picked.shape is not None and same_size(picked.shape[0], 0):
            continue
        values = ops["cast_like"](on_device_of(made(picked, *args, **kw), x), x)
        result = result.at[mask].set(values)
    return result


def _conditions(condlist: Any, x: Any) -> list[Any]:
    """Return the conditions of ``piecewise``: a list's, an array's along its first axis, or one."""
    if isinstance(condlist, (list, tuple)):
        one = x.ndim and np.ndim(condlist[0]) == 0 and not isinstance(condlist[0], Operators)
        return [condlist] if one else list(condlist)
    stacked = on_device_of(condlist, x)
    return list(unstack(stacked)) if stacked.ndim == x.ndim + 1 else [stacked]


def _mask(mask: Any, x: Any) -> Any:
    shape = mask.shape
    if shape is not None and x.shape is not None and shapes_differ(shape, x.shape[: len(shape)]):
        raise IndexError(
            f"piecewise: a condition of shape {shape} does not fit x of shape {x.shape}"
        )
    return mask if mask.dtype.kind == "b" else mask != 0


def _across(mask: Any, x: Any) -> Any:
    """Return a mask of the leading axes of ``x`` with the rest as axes of size 1."""
    if mask.shape is None or x.shape is None or mask.ndim in (0, x.ndim):
        return mask
    return ops["expand_dims"](mask, axis=tuple(range(mask.ndim, x.ndim)))
