"""Elements inserted into a tensor and removed from it.

NumPy itself computes the new positions from element numbers; one op then takes the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ....core.extend import Tensor, as_shape, as_tensor, is_open, on_device_of, ops
from ..common.axes import axis_of
from ..common.dynamic_shapes import any_unknown, as_sizes, index_of, known_rank, table
from ..common.op_builders import named
from .joining import concatenate
from .ranges import arange
from .rearrangement import moveaxis

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _lines(x: Any, axis: int | None, name: str) -> tuple[Any, int, Any]:
    """Return ``x`` (flattened without an axis), the axis from 0, and its size."""
    if axis is None:
        x, axis = ops["reshape"](x, shape=(-1,)), 0
    along = axis_of(x, axis, name) % known_rank(x, name)
    return x, along, x.shape[along]


def _on_host(obj: Any, name: str) -> Any:
    """Return an index of known value in NumPy's form."""
    if isinstance(obj, (slice, int)):
        return obj
    if any_unknown(obj):
        return as_sizes(obj, name)
    index = np.asarray(obj)
    if not index.size:
        return index.astype(np.intp)
    if index.dtype.kind not in "biu":
        raise IndexError(f"{name}: an index holds integers or booleans, got dtype {index.dtype}")
    return index


def _cut(x: Any, along: int, end: int, start: int) -> list[Any]:
    """Return the part before ``end`` along an axis, and the part from ``start``."""
    before = (slice(None),) * along
    return [x[(*before, slice(None, end))], x[(*before, slice(start, None))]]


def _count(index: Any, size: Any) -> Any:
    """Return how many positions an index has."""
    if isinstance(index, slice):
        if any_unknown(size, index.start, index.stop, index.step):
            return arange(size)[index].shape[0]
        return len(range(*index.indices(size)))
    if isinstance(index, tuple) or is_open(index):
        return len(index) if isinstance(index, tuple) else 1
    if np.ndim(index) == 0:
        return 1
    return int(np.count_nonzero(index)) if index.dtype.kind == "b" else len(index)


def _in_dtype_of(values: Any, x: Any, name: str) -> Any:
    """Return values in the dtype of ``x``; Python numbers must fit into it."""
    if x.dtype.kind in "iu" and type(values) in (int, float, list, tuple):
        try:
            values = np.asarray(values, x.dtype)
        except OverflowError as error:
            raise OverflowError(f"{name}: {error}") from None
        except (TypeError, ValueError):  # tensors among them, or what is refused below
            pass
    return ops["cast_like"](on_device_of(values, x), x)


def _placed(work: Callable[[], NDArray[Any]], name: str) -> NDArray[Any]:
    """Return NumPy's result for element numbers; its errors get our name."""
    try:
        return work()
    except (IndexError, ValueError) as error:
        raise type(error)(f"{name}: {error}") from None


@named
def append(x: Any, values: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` with ``values`` appended; without ``axis``, both are flattened.

    Parameters
    ----------
    values
        The values to append, of the shape of ``x`` except for the size of ``axis``; dtypes promote.
    axis
        The axis to join along.

    Returns
    -------
    Tensor
        The joined tensor; a vector without ``axis``.

    Raises
    ------
    ValueError
        If shapes differ in other axes than ``axis``.

    Examples
    --------
    >>> gt.append(gt.constant([1, 2]), [[3], [4]]).tolist()
    [1, 2, 3, 4]
    """
    return concatenate([x, values], axis=axis)


@named
def delete(x: Any, obj: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` without some entries along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype.
    obj
        The entries to leave out: an integer, a slice, a vector of integers or of booleans, of known
        value.
    axis
        The axis. Without it, ``x`` is flattened.

    Returns
    -------
    Tensor
        The remaining entries, of the dtype of ``x``.

    Raises
    ------
    IndexError
        If an index is out of bounds, or holds neither integers nor booleans.
    ValueError
        If a boolean vector has a different size than the axis.

    Examples
    --------
    >>> gt.delete(gt.arange(5), [1, 3]).tolist()
    [0, 2, 4]
    """
    x, along, size = _lines(as_tensor(x), axis, "delete")
    index = _on_host(obj, "delete")
    if _open_places(size, index):
        return ops["take"](x, table("deleted", size, index_of(index)), axis=along)
    if type(index) is int and -size <= index < size:
        index %= size
        return ops["concatenate"](*_cut(x, along, index, index + 1), axis=along)
    kept = _placed(lambda: np.delete(np.arange(size), index), "delete")
    return ops["take"](x, on_device_of(kept, x), axis=along)


def _open_places(size: Any, index: Any) -> bool:
    """Return whether an index names unknown positions of an axis."""
    if isinstance(index, slice):
        index = (index.start, index.stop, index.step)
    return any_unknown(size, index)


@named
def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Tensor:
    """Return ``x`` with values inserted along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype.
    obj
        The entries of ``x`` to insert before: an integer, a slice, a vector of integers or of
        booleans, of known value.
    values
        The values, which broadcast to one entry per index, or for a single integer to any number of
        entries. They are cast to the dtype of ``x``; gradients reach them.
    axis
        The axis. Without it, ``x`` is flattened.

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
    new = _in_dtype_of(values, x, "insert")
    if new.ndim > x.ndim:
        raise ValueError(f"insert: values of shape {new.shape} do not fit shape {x.shape}")
    if new.ndim < x.ndim:
        new = ops["expand_dims"](new, axis=tuple(range(x.ndim - new.ndim)))
    index = _on_host(obj, "insert")
    if not isinstance(index, slice) and (is_open(index) or np.ndim(index) == 0):
        new = moveaxis(new, 0, along)  # as NumPy: for one place, the first axis counts the entries
    # an index of one place takes any number of entries
    one = not isinstance(index, slice) and (is_open(index) or np.size(index) == 1)
    count = new.shape[along] if one else _count(index, size)
    shape = tuple(count if i == along else n for i, n in enumerate(x.shape))
    try:
        new = ops["broadcast_to"](new, shape=shape)
    except ValueError:
        raise ValueError(
            f"insert: values of shape {new.shape} do not fit {count} entries along axis {along} "
            f"of shape {x.shape}"
        ) from None
    if _open_places(size, index) or is_open(count):
        order = table("inserted", size, index_of(index), count)
        return ops["take"](ops["concatenate"](x, new, axis=along), order, axis=along)
    if type(index) is int and -size <= index <= size:
        index += size if index < 0 else 0
        before, after = _cut(x, along, index, index)
        return ops["concatenate"](before, new, after, axis=along)
    added = size + np.arange(count)
    places = _placed(lambda: np.insert(np.arange(size), index, added), "insert")
    joined = ops["concatenate"](x, new, axis=along)
    return ops["take"](joined, on_device_of(places, x), axis=along)


@named
def resize(x: Any, new_shape: int | Sequence[int]) -> Tensor:
    """Return a tensor of a new shape, filled with the elements of ``x``, repeated as needed.

    Parameters
    ----------
    x
        A tensor of any shape and dtype; one without elements gives zeros.
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
    if any((n < 0) is True for n in shape):
        raise ValueError(f"resize: sizes must be at least 0, got {shape}")
    flat, _, size = _lines(as_tensor(x), None, "resize")
    wanted = prod(shape)
    if any_unknown(size, wanted):
        # of no elements there is one more, a zero
        more = ops["concatenate"](flat, ops["cast_like"](as_tensor([0]), flat), axis=0)
        return ops["reshape"](ops["take"](more, table("cycled", size, wanted), axis=0), shape=shape)
    if not size:
        return ops["broadcast_to"](ops["cast_like"](ops["sum"](flat, axis=None), flat), shape=shape)
    if wanted > size:
        flat = ops["tile"](flat, reps=(-(-wanted // size),))
    if flat.shape[0] != wanted:
        flat = flat[:wanted]
    return ops["reshape"](flat, shape=shape)


@named
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Tensor:
    """Return a tensor without the zeros at its ends.

    Parameters
    ----------
    filt
        A tensor of known values, because the number of zeros decides the shape.
    trim
        ``"f"`` for the front, ``"b"`` for the back, or both (the default).
    axis
        The axis or axes to shorten; all by default.

    Returns
    -------
    Tensor
        The part of ``filt`` between its first and last nonzero element.

    Raises
    ------
    ValueError
        If ``trim`` holds another letter.
    TypeError
        In a trace, where values are unknown.

    Examples
    --------
    >>> gt.trim_zeros(gt.constant([0, 0, 1, 0, 2, 0])).tolist()
    [1, 0, 2]
    """
    if not isinstance(trim, str):
        raise TypeError(f"trim_zeros: trim must consist of 'f' and 'b', got {trim!r}")
    ends = trim.lower()
    if not ends or set(ends) - set("fb"):
        raise ValueError(f"trim_zeros: trim must consist of 'f' and 'b', got {trim!r}")
    x = as_tensor(filt)
    if not x.ndim and axis is None:  # there are no ends
        return x
    found = np.nonzero(np.atleast_1d(x.to("numpy").numpy()))
    given = range(x.ndim) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    axes = [axis_of(x, n, "trim_zeros") % x.ndim for n in given]
    if len(set(axes)) < len(axes):
        raise ValueError(f"trim_zeros: an axis is repeated in {axis!r}")
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
