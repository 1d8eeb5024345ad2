"""Choosing among elements and arrays: by condition, by rank, by value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ....core.extend import NONDIFF, Tensor, among, as_tensor, beside, ops
from ..common.axes import axis_of, one_axis, part_of, reduced_axes
from ..common.batching import along, leading, refused
from ..common.kernels import kind_of
from ..common.op_builders import named, op
from ..shapes.arrangement import broadcast_arrays
from .batching import searchsorted_rule
from .indexing import take_along_axis

__all__ = [
    "argpartition",
    "argwhere",
    "choose",
    "compress",
    "extract",
    "flatnonzero",
    "isin",
    "nonzero",
    "partition",
    "searchsorted",
    "select",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]

INDEX = np.dtype(np.int64)

# -- by condition ----------------------------------------------------------------------------------


@named
def compress(condition: Any, x: Any, axis: int | None = None) -> Tensor:
    """Return the entries along an axis for which a condition holds.

    Parameters
    ----------
    condition
        A vector of truth values; where it is shorter than the axis, the rest is false.
    x
        A tensor of any shape and dtype.
    axis
        The axis to select along; without it, the flattened ``x``.

    Returns
    -------
    A tensor of the dtype of ``x``, with as many entries along the axis as conditions hold; a vector
    without one. Gradients go back to where the entries were.

    Raises
    ------
    ValueError
        If the condition is no vector.
    IndexError
        If it holds beyond the end of the axis.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

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
    if None not in (size, truth.shape[0]) and size == truth.shape[0]:
        return part_of(x, along, truth)
    return ops["take"](x, _nonzero(truth)[0], axis=along)


@named
def extract(condition: Any, x: Any) -> Tensor:
    """Return the elements of the flattened ``x`` for which the flattened condition holds.

    Parameters
    ----------
    condition
        Truth values, of any shape; where there are fewer than elements, the rest is false.
    x
        A tensor of any shape and dtype.

    Returns
    -------
    A vector of the dtype of ``x``. Gradients go back to where the elements were.

    Raises
    ------
    IndexError
        If the condition holds beyond the end of ``x``.

    Examples
    --------
    >>> x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
    >>> gt.extract(x > 2.0, x).tolist()
    [3.0, 4.0]
    """
    x = as_tensor(x)
    return compress(ops["reshape"](_truth(condition, x), shape=(-1,)), x)


def _truth(condition: Any, x: Any) -> Any:
    condition = beside(condition, x)
    return condition if condition.dtype.kind == "b" else condition != 0


@named
def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """Return, for each element, the choice of the first condition that holds.

    Parameters
    ----------
    condlist
        Boolean tensors.
    choicelist
        As many tensors or numbers; all shapes broadcast.
    default
        What is taken where no condition holds, 0 if not given.

    Returns
    -------
    A tensor of the shapes broadcast together, of the promotion of the choices' dtypes. Gradients
    reach the choices and the default, each where it was taken.

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
    result = default
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
    """Return, for each element, that of the choice whose number ``a`` gives.

    Parameters
    ----------
    a
        Integers from 0; the shapes of ``a`` and all choices broadcast.
    choices
        Tensors or numbers; their dtypes promote.
    mode
        What happens to numbers without a choice: ``"raise"`` (the default), ``"wrap"`` or
        ``"clip"``.

    Returns
    -------
    A tensor of the shapes broadcast together. Gradients reach the choices, each where it was taken.

    Raises
    ------
    ValueError
        If a number has no choice and the mode is ``"raise"``, there are no choices, shapes do not
        broadcast, or the mode is another.
    TypeError
        If ``a`` holds no integers.

    Examples
    --------
    >>> gt.choose(gt.constant([0, 1, 0]), [gt.constant([1.0, 2.0, 3.0]), -1.0]).tolist()
    [1.0, -1.0, 3.0]
    """
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    options = among(list(choices))
    numbers = beside(a, options[0], weak=False) if options else as_tensor(a)
    if not options or numbers.dtype.kind not in "iub":
        raise (TypeError if options else ValueError)(
            f"choose: choices and integers to pick them are needed, got {len(options)} choices "
            f"and numbers of dtype {numbers.dtype}"
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


def _check_kernel(xp: Any, x: Any, *, count: int) -> Any:
    if xp.any((x < 0) | (x >= count)):
        raise ValueError(f"a number is not that of one of the {count} choices, from 0")
    return x


_checked_choice = op(
    "choose_checked",
    lambda xp, x, *, count: _check_kernel(xp, x, count=count),
    gradients={"x": NONDIFF},
    infer=lambda x, count: (x.shape, x.dtype),
    batch=leading,
    doc="Return integers, all of which must be below ``count`` and not negative.",
)


_SIZE = (
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
    batch=refused(_SIZE),
    doc="Return the indices of the elements that are not 0: an array per axis.",
)


@named
def nonzero(x: Any) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not 0, in C order; they have no gradient.

    Parameters
    ----------
    x
        A tensor of at least one axis, of any dtype.

    Returns
    -------
    A tuple of integer vectors, one per axis: ``x[nonzero(x)]`` are the elements. Their size depends
    on the values: a trace does not know it.

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
    """Return the indices of the elements of the flattened ``x`` that are not 0; no gradient.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    An integer vector. Its size depends on the values: a trace does not know it.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers.

    Examples
    --------
    >>> gt.flatnonzero(gt.constant([[1, 0], [0, 2]])).tolist()
    [0, 3]
    """
    return _nonzero(ops["reshape"](x, shape=(-1,)))[0]


@named
def argwhere(x: Any) -> Tensor:
    """Return the indices of the elements that are not 0, one per row; they have no gradient.

    Parameters
    ----------
    x
        A tensor of at least one axis, of any dtype.

    Returns
    -------
    An integer matrix of shape ``(count, x.ndim)``, in C order. Its size depends on the values: a
    trace does not know it.

    Raises
    ------
    ValueError
        If ``x`` has no axes.

    Examples
    --------
    >>> gt.argwhere(gt.constant([[1, 0], [0, 2]])).tolist()
    [[0, 0], [1, 1]]
    """
    return ops["stack"](*_nonzero(x), axis=-1)


# -- by rank ---------------------------------------------------------------------------------------


def _argpartition_kernel(xp: Any, x: Any, *, kth: Any, axis: int = -1) -> Any:
    if hasattr(xp, "argpartition"):
        return xp.argpartition(x, kth, axis=axis)
    return xp.argsort(x, axis=axis, stable=True)


def _argpartition_spec(x: Any, *, kth: Any, axis: int) -> tuple[Any, Any]:
    if x.shape is not None:
        size = x.shape[axis_of(x, axis, "argpartition")]
        for k in kth if isinstance(kth, tuple) else (kth,):
            if size is not None and not -size <= k < size:
                raise ValueError(f"argpartition: kth={k} is out of bounds for size {size}")
    return x.shape, INDEX


_argpartition = op(
    "argpartition",
    _argpartition_kernel,
    gradients={"x": NONDIFF},
    infer=_argpartition_spec,
    batch=along("axis"),
    doc="Return the indices that put the elements of some ranks where sorting would.",
)


@named
def argpartition(x: Any, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Return the indices that :func:`partition` applies; they have no gradient.

    Parameters
    ----------
    x
        A tensor of any dtype.
    kth
        The rank from 0, or several; a negative one counts from the end.
    axis
        The axis to partition along, the last by default; ``None`` flattens first.

    Returns
    -------
    An integer tensor of the shape of ``x``: which of the elements come before, and after, is known,
    but not in which order.

    Raises
    ------
    ValueError
        If ``kth`` is out of bounds.
    TypeError
        If ``kth`` holds no integers.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.argpartition(gt.constant([3.0, 1.0, 2.0]), 1)[1].item()
    2
    """
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    try:
        ranks = tuple(map(operator.index, kth)) if np.ndim(kth) else operator.index(kth)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"argpartition: kth holds integers, got {kth!r}") from None
    return _argpartition(x, kth=ranks, axis=one_axis(axis, "argpartition"))


@named
def partition(x: Any, kth: int | Sequence[int], axis: int | None = -1) -> Tensor:
    """Return ``x`` with the ``kth`` smallest element in its place along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype.
    kth
        The rank from 0, or several; a negative one counts from the end.
    axis
        The axis to partition along, the last by default; ``None`` flattens first.

    Returns
    -------
    A tensor of the shape and dtype of ``x``, with no larger element before the ``kth``, and no
    smaller one after it. Gradients go back to where the elements were.

    Raises
    ------
    ValueError
        If ``kth`` is out of bounds.
    TypeError
        If ``kth`` holds no integers.
    numpy.exceptions.AxisError
        If the axis is out of bounds.

    Examples
    --------
    >>> gt.partition(gt.constant([3.0, 1.0, 2.0]), 1).tolist()
    [1.0, 2.0, 3.0]
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    return take_along_axis(x, argpartition(x, kth, axis), axis)


# -- by value: without gradients -------------------------------------------------------------------


def _searchsorted_kernel(xp: Any, x: Any, values: Any, *, side: str = "left") -> Any:
    found = xp.searchsorted(x, xp.reshape(values, (-1,)), side=side)
    return xp.reshape(xp.asarray(found), values.shape)


def _searchsorted_spec(x: Any, values: Any, *, side: str) -> tuple[Any, Any]:
    if x.shape is not None and len(x.shape) != 1:
        raise ValueError(f"searchsorted: x must be a vector, got shape {x.shape}")
    return values.shape, INDEX


_searchsorted = op(
    "searchsorted",
    _searchsorted_kernel,
    gradients={"x": NONDIFF, "values": NONDIFF},
    infer=_searchsorted_spec,
    batch=searchsorted_rule,
    doc="Return where values would go into a sorted vector.",
)


@named
def searchsorted(x: Any, values: Any, side: str = "left", sorter: Any = None) -> Tensor:
    """Return where values would go into a sorted vector; the indices have no gradient.

    Parameters
    ----------
    x
        A vector in ascending order.
    values
        Numbers or a tensor of any shape.
    side
        ``"left"`` (the default): before elements that are equal; ``"right"``: after them.
    sorter
        Indices that sort ``x``, if it is not sorted.

    Returns
    -------
    An integer tensor of the shape of ``values``.

    Raises
    ------
    ValueError
        If ``x`` is no vector, or ``side`` is another word.
    TypeError
        If ``side`` is no string.

    Examples
    --------
    >>> x = gt.constant([1.0, 2.0, 3.0])
    >>> gt.searchsorted(x, [2.0, 2.5]).tolist()
    [1, 2]
    >>> gt.searchsorted(x, [2.0, 2.5], side="right").tolist()
    [2, 2]
    """
    if not isinstance(side, str):
        raise TypeError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
    x = as_tensor(x)
    if sorter is not None:
        x = ops["take"](x, beside(sorter, x, weak=False), axis=0)
    return _searchsorted(x, beside(values, x), side=side)


def _unique_kernel(
    xp: Any, x: Any, *, axis: int | None = None, equal_nan: bool = True
) -> tuple[Any, ...]:
    if hasattr(xp, "unique"):
        values, indices, inverse, counts = xp.unique(x, True, True, True, axis, equal_nan=equal_nan)
    elif axis is None and not (equal_nan and kind_of(x.dtype) in "fc" and xp.any(xp.isnan(x))):
        values, indices, inverse, counts = xp.unique_all(x)
    else:
        raise TypeError(
            f"the standard has none along an axis, or of nan that are equal; {xp.__name__} has no "
            "unique of its own"
        )
    shape = x.shape if axis is None else (x.shape[axis],)
    return values, indices, xp.reshape(inverse, shape), counts


def _unique_spec(x: Any, *, axis: int | None, equal_nan: bool) -> list[tuple[Any, Any]]:
    count = ((None,), INDEX)
    if axis is None:
        return [((None,), x.dtype), count, (x.shape, INDEX), count]
    if x.shape is None:
        return [(None, x.dtype), count, ((None,), INDEX), count]
    (along,) = reduced_axes(axis, len(x.shape), "unique")
    slices = tuple(None if i == along else n for i, n in enumerate(x.shape))
    return [(slices, x.dtype), count, ((x.shape[along],), INDEX), count]


_unique = op(
    "unique",
    _unique_kernel,
    gradients={"x": NONDIFF},
    infer=_unique_spec,
    batch=refused(_SIZE),
    doc="Return the values that occur, where first, which each element is, and how often.",
)


@named
def unique(
    x: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    """Return the values that occur in a tensor, in ascending order; they have no gradient.

    Parameters
    ----------
    x
        A tensor of any shape.
    return_index
        Return the indices of their first occurrences in the flattened ``x``, too.
    return_inverse
        Return, for each element, the index of its value, too: a tensor of the shape of ``x``.
    return_counts
        Return how often each occurs, too.
    axis
        Take whole slices along an axis as values, in the order of their elements; indices are then
        vectors.
    equal_nan
        Whether nan are one value, as here and in NumPy, or each its own.

    Returns
    -------
    A vector (slices along ``axis``); or a tuple of it and what was asked for, in this order. Its
    size depends on the values: a trace does not know it.

    Raises
    ------
    numpy.exceptions.AxisError
        If the axis is out of bounds.
    TypeError
        If ``axis`` is neither None nor one integer.

    Examples
    --------
    >>> gt.unique(gt.constant([3, 1, 3])).tolist()
    [1, 3]
    >>> values, counts = gt.unique(gt.constant([3, 1, 3]), return_counts=True)
    >>> counts.tolist()
    [1, 2]
    """
    asked = (True, return_index, return_inverse, return_counts)
    along = None if axis is None else one_axis(axis, "unique")
    found = _unique(x, axis=along, equal_nan=bool(equal_nan))
    kept = tuple(y for y, wanted in zip(found, asked, strict=True) if wanted)
    return kept if len(kept) > 1 else kept[0]


class UniqueAllResult(NamedTuple):
    """What :func:`unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCountsResult(NamedTuple):
    """What :func:`unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverseResult(NamedTuple):
    """What :func:`unique_inverse` returns."""

    values: Any
    inverse_indices: Any


@named
def unique_all(x: Any) -> UniqueAllResult:
    """Return the values that occur, their first indices, the inverse indices and the counts.

    As the array API standard has it, and unlike :func:`unique`, every nan is a value of its own.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    values
        A vector in ascending order, of the dtype of ``x``.
    indices
        For each value the index of its first occurrence in the flattened ``x``.
    inverse_indices
        For each element of ``x`` the index of its value, in the shape of ``x``.
    counts
        How often each value occurs.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers.

    Examples
    --------
    >>> found = gt.unique_all(gt.constant([3, 1, 3]))
    >>> found.values.tolist(), found.indices.tolist()
    ([1, 3], [1, 0])
    >>> found.inverse_indices.tolist(), found.counts.tolist()
    ([1, 0, 1], [1, 2])
    """
    return UniqueAllResult(*_unique(x, axis=None, equal_nan=False))


@named
def unique_counts(x: Any) -> UniqueCountsResult:
    """Return the values that occur, and how often each does; every nan is one of its own.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    values
        A vector in ascending order, of the dtype of ``x``.
    counts
        How often each value occurs.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers.

    Examples
    --------
    >>> gt.unique_counts(gt.constant([3, 1, 3])).counts.tolist()
    [1, 2]
    """
    values, _, _, counts = unique_all(x)
    return UniqueCountsResult(values, counts)


@named
def unique_inverse(x: Any) -> UniqueInverseResult:
    """Return the values that occur, and for each element of ``x`` the index of its value.

    Every nan is a value of its own.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    values
        A vector in ascending order, of the dtype of ``x``.
    inverse_indices
        An integer tensor of the shape of ``x``: ``values[inverse_indices]`` is ``x``.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers.

    Examples
    --------
    >>> gt.unique_inverse(gt.constant([3, 1, 3])).inverse_indices.tolist()
    [1, 0, 1]
    """
    values, _, inverse, _ = unique_all(x)
    return UniqueInverseResult(values, inverse)


@named
def unique_values(x: Any) -> Tensor:
    """Return the values that occur, in ascending order; every nan is one of its own.

    Parameters
    ----------
    x
        A tensor of any shape and dtype.

    Returns
    -------
    A vector of the dtype of ``x``. Its size depends on the values: a trace does not know it.

    Raises
    ------
    TypeError
        If ``x`` holds no numbers.

    Examples
    --------
    >>> gt.unique_values(gt.constant([3, 1, 3])).tolist()
    [1, 3]
    """
    return unique_all(x).values


@named
def isin(x: Any, values: Any, *, invert: bool = False) -> Tensor:
    """Return whether each element is among some values; it has no gradient.

    Parameters
    ----------
    x
        A tensor of any shape.
    values
        The values to look for, of any shape.
    invert
        Return whether it is not among them instead.

    Returns
    -------
    A boolean tensor of the shape of ``x``.

    Raises
    ------
    TypeError
        If ``x`` or ``values`` holds no numbers.

    Notes
    -----
    Every element is compared with every value, in a tensor of ``x.size * values.size`` booleans.
    nan is among no values.

    Examples
    --------
    >>> gt.isin(gt.constant([1, 2, 3]), [2, 3, 5]).tolist()
    [False, True, True]
    """
    x, values = among((x, values))
    values = ops["reshape"](beside(values, x), shape=(-1,))
    found = ops["any"](ops["equal"](ops["expand_dims"](x, axis=-1), values), axis=-1)
    return ops["logical_not"](found) if invert else found
