"""Choose elements and arrays by a condition, and find where one holds.

Slices are sorted into parts by number, and put together again by place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    NONDIFF,
    Tensor,
    TensorSpec,
    as_operands,
    as_size,
    as_tensor,
    check_fits_dtype,
    on_device_of,
    ops,
    same_size,
)
from ..common.axes import axis_of, leading, part_of, refused
from ..common.kernels import SCALARS, truth
from ..common.op_builders import named, op
from ..elementwise.comparison import equal
from ..shapes.broadcasting import broadcast_arrays
from ..shapes.creation import zeros
from ..shapes.joining import concatenate
from ..shapes.reshaping import reshape
from .take import take_along_axis


@named
def compress(condition: Any, x: Any, axis: int | None = None) -> Tensor:
    """Return the entries along an axis for which a condition holds.

    Parameters
    ----------
    condition
        A vector of booleans; if it is shorter than the axis, the rest is false.
    axis
        The axis to select along; without it, the flattened ``x``.

    Returns
    -------
    A tensor of the dtype of ``x``, with as many entries along the axis as conditions hold, or a
    vector without an axis. Gradients go back to the selected entries.

    Raises
    ------
    ValueError
        If the condition is not a vector.
    IndexError
        If it holds past the end of the axis.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> gt.compress([True, False, True], x, axis=0).tolist()
    [[1.0, 2.0], [5.0, 6.0]]
    """
    x = as_tensor(x)
    truth = _truth(condition, x)
    if truth.ndim != 1:
        raise ValueError(f"compress: the condition must be a vector, got shape {truth.shape}")
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    along = axis_of(x, axis, "compress")
    size = None if x.shape is None else x.shape[along]
    if same_size(size, truth.shape[0]):
        return part_of(x, along, truth)
    return ops["take"](x, _nonzero(truth)[0], axis=along)


@named
def extract(condition: Any, x: Any) -> Tensor:
    """Return the elements of the flattened ``x`` for which the flattened condition holds.

    Parameters
    ----------
    condition
        Booleans of any shape; if there are fewer than elements, the rest is false.

    Returns
    -------
    A vector of the dtype of ``x``. Gradients go back to the selected elements.

    Raises
    ------
    IndexError
        If the condition holds past the end of ``x``.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.extract(x > 2.0, x).tolist()
    [3.0, 4.0]
    """
    x = as_tensor(x)
    return compress(ops["reshape"](_truth(condition, x), shape=(-1,)), x)


def _truth(condition: Any, x: Any) -> Any:
    condition = on_device_of(condition, x)
    return condition if condition.dtype.kind == "b" else condition != 0


@named
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Return, for each element, the choice of the first condition that holds.

    Parameters
    ----------
    condlist
        Boolean tensors.
    choicelist
        As many tensors or numbers as conditions; all shapes broadcast.
    default
        The result where no condition holds, 0 by default.

    Returns
    -------
    A tensor of the broadcast shape and the promoted dtype of the choices. Gradients reach the
    choices and the default, each where it was selected.

    Raises
    ------
    ValueError
        If there are no conditions, not as many choices, or shapes do not broadcast.
    TypeError
        If a condition is not boolean.

    Examples
    --------
    >>> x = gt.constant([-1.0, 2.0, 9.0])
    >>> gt.select([x < 0.0, x < 5.0], [0.0, x], default=5.0).tolist()
    [0.0, 2.0, 5.0]
    """
    if len(condlist) != len(choicelist) or not condlist:
        raise ValueError(
            f"select: as many choices as conditions are needed, and at least one; got "
            f"{len(condlist)} conditions and {len(choicelist)} choices"
        )
    # together: a number is weak with respect to all choices, not only to the last one
    *choicelist, result = _of_one_dtype([*choicelist, default], "select")
    for position in range(len(condlist) - 1, -1, -1):
        condition = as_tensor(condlist[position])
        if condition.dtype.kind != "b":
            raise TypeError(
                f"select: condition {position} must be boolean, got dtype {condition.dtype}"
            )
        result = ops["where"](condition, choicelist[position], result)
    return result


@named
def choose(a: Any, choices: Sequence[Any], mode: str = "raise") -> Tensor:
    """Return, for each element, the choice with the number in ``a``.

    Parameters
    ----------
    a
        Integers from 0; the shapes of ``a`` and all choices broadcast.
    choices
        Tensors or numbers; their dtypes promote.
    mode
        How to treat numbers without a choice: ``"raise"`` (the default), ``"wrap"`` or ``"clip"``.

    Returns
    -------
    A tensor of the broadcast shape. Gradients reach the choices, each where it was selected.

    Raises
    ------
    ValueError
        If a number has no choice and the mode is ``"raise"``, there are no choices, shapes do not
        broadcast, or the mode is another.
    TypeError
        If ``a`` does not hold integers, or holds ``uint64``.

    Examples
    --------
    >>> gt.choose(gt.constant([0, 1, 0]), [gt.constant([1.0, 2.0, 3.0]), -1.0]).tolist()
    [1.0, -1.0, 3.0]
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    options = _of_one_dtype(list(choices), "choose")
    numbers = on_device_of(a, options[0], weak=False) if options else as_tensor(a)
    if numbers.dtype.kind == "b":
        numbers = ops["cast"](numbers, dtype="int64")
    if not options:
        raise ValueError("choose: there are no choices")
    if not np.can_cast(numbers.dtype, np.intp):
        raise TypeError(
            f"choose: a must hold integers, got dtype {numbers.dtype}; cast it with "
            "a.astype('int64')"
        )
    count = len(options)
    if mode == "wrap":
        numbers = ops["remainder"](numbers, count)
    elif mode == "clip":
        numbers = ops["minimum"](ops["maximum"](numbers, 0), count - 1)
    else:
        numbers = _checked_choice(numbers, count=count)
    numbers, *options = broadcast_arrays(numbers, *options)
    stacked = ops["stack"](*options, axis=0)
    picked = take_along_axis(stacked, ops["expand_dims"](numbers, axis=0), 0)
    return ops["squeeze"](picked, axis=0)


def _of_one_dtype(choices: list[Any], name: str) -> list[Any]:
    """Return choices as tensors; Python numbers take the dtype of the other choices."""
    options = as_operands(choices)
    if not options or all(type(choice) in SCALARS for choice in choices):
        return options
    given = [c if type(c) in SCALARS else x.dtype for c, x in zip(choices, options, strict=True)]
    dtype = np.result_type(*given)
    for choice in choices:
        check_fits_dtype(choice, dtype, name)
    there = next(x for c, x in zip(choices, options, strict=True) if type(c) not in SCALARS)
    return [
        on_device_of(np.asarray(c, dtype), there)
        if type(c) in SCALARS
        else ops["cast"](x, dtype=dtype.name)
        for c, x in zip(choices, options, strict=True)
    ]


def _check_kernel(xp: Any, x: Any, *, count: int) -> Any:
    if truth(xp.any((x < 0) | (x >= count)), unknown=False):
        raise ValueError(f"a number is not from 0 to {count - 1}, the number of a choice")
    return x


_checked_choice = op(
    "choose_checked",
    lambda xp, x, *, count: _check_kernel(xp, x, count=count),
    gradients={"x": NONDIFF},
    infer=lambda x, count: (x.shape, x.dtype),
    batch=leading,
    doc="Return integers, which must all be below ``count`` and not negative.",
)

INDEX = np.dtype(np.int64)

SIZES_DIFFER = (
    "how many there are differs from example to example, and the examples of a vmap have one "
    "shape; compute a mask and use gradtape.where, or loop over the examples"
)


def _nonzero_spec(x: Any) -> list[tuple[Any, Any]]:
    if x.shape is None:
        raise ValueError("nonzero: the number of axes is unknown in this trace")
    if not x.shape:
        raise ValueError("nonzero: at least one axis is needed, got shape ()")
    return [((None,), INDEX)] * len(x.shape)


_nonzero = op(
    "nonzero",
    lambda xp, x: tuple(xp.nonzero(x)),
    gradients={"x": NONDIFF},
    infer=_nonzero_spec,
    batch=refused(SIZES_DIFFER),
    doc="Return the indices of the nonzero elements, one array per axis.",
)


@named
def nonzero(x: Any) -> tuple[Tensor, ...]:
    """Return the indices of the nonzero elements, in C order; they have no gradient.

    Parameters
    ----------
    x
        A tensor of at least one axis, of any dtype.

    Returns
    -------
    A tuple of integer vectors, one per axis: ``x[nonzero(x)]`` are the nonzero elements. Their size
    depends on the values, so a trace does not know it.

    Raises
    ------
    ValueError
        If ``x`` has no axes.

    Examples
    --------
    >>> rows, columns = gt.nonzero(gt.constant([[1, 0], [0, 2]]))
    >>> rows.tolist(), columns.tolist()
    ([0, 1], [0, 1])
    """
    return tuple(_nonzero(x))


@named
def flatnonzero(x: Any) -> Tensor:
    """Return the indices of the nonzero elements of the flattened ``x``; they have no gradient.

    Returns
    -------
    An integer vector. Its size depends on the values, so a trace does not know it.

    Examples
    --------
    >>> gt.flatnonzero(gt.constant([[1, 0], [0, 2]])).tolist()
    [0, 3]
    """
    return _nonzero(ops["reshape"](x, shape=(-1,)))[0]


@named
def argwhere(x: Any) -> Tensor:
    """Return the indices of the nonzero elements, one per row; they have no gradient.

    Returns
    -------
    An integer matrix of shape ``(count, x.ndim)``, in C order. Its size depends on the values, so a
    trace does not know it.

    Examples
    --------
    >>> gt.argwhere(gt.constant([[1, 0], [0, 2]])).tolist()
    [[0, 0], [1, 1]]
    """
    x = as_tensor(x)
    if x.shape == ():  # one row without columns, or none: NumPy's answer for a single number
        return as_tensor(np.zeros((int(bool(x)), 0), np.int64))
    return ops["stack"](*_nonzero(x), axis=-1)


# -- parts -----------------------------------------------------------------------------------------


def _below(x: Tensor, index: Tensor, name: str) -> tuple[Any, ...]:
    """Return the shape of the slices of which ``index`` has a number for each."""
    given, own = x.shape[: index.ndim], x.shape
    if len(own) < index.ndim or not TensorSpec(index.shape).admits(given):
        raise ValueError(
            f"{name}: numbers of shape {index.shape} are for the first axes of the data, whose "
            f"shape is {own}"
        )
    return tuple(own[index.ndim :])


@named
def dynamic_partition(data: Any, partitions: Any, num_partitions: int) -> list[Tensor]:
    """Return the slices of a tensor in parts, by a number for each slice.

    Parameters
    ----------
    data
        A tensor.
    partitions
        Integers, for the first axes of ``data``: the part of each slice. Slices of other numbers
        than 0 to ``num_partitions - 1`` are in none.
    num_partitions
        How many parts there are.

    Returns
    -------
    list of Tensor
        Parts, in which slices keep their order. A trace does not know how many slices each has.

    Raises
    ------
    ValueError
        If the shape of the numbers is not that of the first axes, or there is no part.

    Examples
    --------
    >>> parts = gt.dynamic_partition(gt.constant([1.0, 2.0, 3.0]), [0, 1, 0], 2)
    >>> [part.tolist() for part in parts]
    [[1.0, 3.0], [2.0]]
    """
    x, index = as_tensor(data), as_tensor(partitions)
    if not hasattr(num_partitions, "__index__") or num_partitions < 1:
        raise ValueError(f"dynamic_partition: there are 1 or more parts, got {num_partitions!r}")
    rows = reshape(x, (-1, *_below(x, index, "dynamic_partition")))
    index = reshape(index, (-1,))
    return [compress(equal(index, i), rows, 0) for i in range(num_partitions)]


@named
def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any]) -> Tensor:
    """Return one tensor of slices that are given with their places.

    Parameters
    ----------
    indices
        Tensors of integers: the places of the slices.
    data
        As many tensors; each begins with the axes of its indices.

    Returns
    -------
    Tensor
        As many slices as the largest index and 1. Of slices with one place, the last is there;
        zeros are where no slice goes.

    Raises
    ------
    ValueError
        If there are not as many indices as data, or shapes do not fit.

    Examples
    --------
    >>> gt.dynamic_stitch([[0, 2], [1]], [[1.0, 3.0], [2.0]]).tolist()
    [1.0, 2.0, 3.0]
    """
    places, parts = [as_tensor(i) for i in indices], [as_tensor(x) for x in data]
    if len(places) != len(parts) or not parts:
        raise ValueError(f"dynamic_stitch: {len(places)} indices for {len(parts)} tensors")
    rows = [
        reshape(x, (-1, *_below(x, i, "dynamic_stitch")))
        for i, x in zip(places, parts, strict=True)
    ]
    index, values = concatenate([reshape(i, (-1,)) for i in places]), concatenate(rows)
    count = as_size(ops["max"](index, axis=None, keepdims=False) + 1, "dynamic_stitch")
    return zeros((count, *values.shape[1:]), values.dtype).at[index].set(values)
