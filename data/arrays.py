"""The arrays of elements: how they enter a pipeline, and how several become one."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.extend import (
    COUNTS,
    Tensor,
    Variable,
    as_tensor,
    default_dtype,
    flatten,
    map_structure,
    outline,
    pack_like,
    structure,
    to_numpy,
)

__all__ = [
    "Nested",
    "arrays_of",
    "columns_of",
    "copied",
    "gathered",
    "lists_stacked",
    "of_one_dtype",
    "owned",
    "read_only",
    "rows_of",
    "stacked",
    "unmasked",
]


#: The number of bytes of a batch to make room for at first.
_ROOM = 2**26
#: Types of arrays whose values are all that they hold.
_PLAIN = frozenset({np.ndarray, np.memmap})


class Nested:
    """What an element may have instead of an array: a dataset, such as a window."""


def arrays_of(value: Any) -> Any:
    """Return nested containers with NumPy arrays instead of tensors, arrays and numbers.

    A list of numbers, nested or not, becomes one array. Python numbers get the dtypes of the
    tensors that ``gt.constant`` makes of them.
    """
    kind = type(value)
    if kind is np.ndarray:
        return value
    if kind is tuple:
        return tuple([arrays_of(part) for part in value])
    return _each(value, arrays_of) if _is_container(value) else _array_of(value)


def _is_container(value: Any) -> bool:
    return isinstance(value, (tuple, dict)) or (isinstance(value, list) and not _is_array(value))


def _array_of(value: Any) -> Any:
    kind = type(value)
    if kind is int:
        return np.asarray(value)
    if isinstance(value, (np.ndarray, Nested)):
        return value
    if kind in (float, complex, list):  # not NumPy scalars, which are subclasses
        value = as_tensor(value)
    if isinstance(value, (Tensor, Variable)):
        return np.asarray(to_numpy(value.array))
    if hasattr(kind, "columns"):  # a data frame, whose columns may hold something else
        return np.asarray(to_numpy(as_tensor(value).array))
    found = np.asarray(value)
    if found.dtype.kind == "O" and found.ndim == 2:  # a data frame of several dtypes
        found = np.asarray(to_numpy(as_tensor(value).array))
    return found


def _each(value: Any, function: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {key: function(part) for key, part in value.items()}
    parts = [function(part) for part in value]
    if isinstance(value, list):
        return parts
    return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)


def _is_array(value: list[Any]) -> bool:
    """Return whether a list contains only numbers, at any depth of nested lists."""
    return all(
        _is_array(x) if isinstance(x, list) else isinstance(x, (int, float, complex, np.generic))
        for x in value
    )


def owned(box: list[Any], shared: bool = False) -> Any:
    """Take the last value out of a list and return what :func:`arrays_of` does, for keeping.

    A function or object of the user may fill the same array anew for the next element. So each
    array that anyone else still holds is copied, and an array that nobody else can reach is not.

    Parameters
    ----------
    box
        A list that holds the value. No other name of the caller may refer to it.
    shared
        Whether someone else holds a container of the value.
    """
    kind = type(box[-1])
    if kind is int or kind is float:
        return _array_of(box.pop())
    if kind is not np.ndarray and (kind is tuple or _is_container(box[-1])):
        return _owned_parts(box, shared)
    if kind is not np.ndarray and not isinstance(box[-1], np.ndarray):
        if isinstance(box[-1], Nested):
            return box.pop()
        box.append(_array_of(box.pop()))
        kind, shared = type(box[-1]), False  # another object than the container's
    # counted in the list, as the count of a name depends on Python's version and on debuggers
    alone = not shared and kind is np.ndarray and _count(box[-1]) <= _ALONE
    array = box.pop()
    return array if alone and (array.flags.owndata or _is_only_view(array)) else array.copy()


def _owned_parts(box: list[Any], shared: bool) -> Any:
    shared = shared or _count(box[-1]) > _ALONE
    value = box.pop()
    kind, names = type(value), tuple(value) if isinstance(value, dict) else None
    parts = list(value if names is None else value.values())
    del value  # a container that nobody else holds ends here
    parts.reverse()
    found = [owned(parts, shared) for _ in range(len(parts))]
    if kind is tuple:
        return tuple(found)
    if names is not None:
        return dict(zip(names, found))
    if issubclass(kind, list):
        return found
    return kind(*found) if hasattr(kind, "_fields") else tuple(found)


def _is_only_view(array: Any) -> bool:
    """Return whether an array is the only view of another."""
    return (
        type(array.base) is np.ndarray and array.base.flags.owndata and _count(array.base) <= _ALONE
    )


_count: Callable[[Any], int] = getattr(sys, "getrefcount", lambda value: 0)


def _count_of_one_holder() -> int:
    """Return the count of references to an array that one list, or one view, holds."""
    box = [np.empty(2)]
    return _count(box[-1])


# where references are not counted, or by several threads at once, everything is copied
_ALONE = _count_of_one_holder() if COUNTS else -1


def lists_stacked(who: str, value: Any) -> Any:
    """Return arrays in tuples and dictionaries, where each list has become one array.

    Raises
    ------
    ValueError
        If a list has arrays of different shapes.
    TypeError
        If it has other things than arrays and numbers, or arrays of different dtypes.
    """
    if not isinstance(value, (tuple, dict, list)) or (isinstance(value, list) and _is_array(value)):
        return arrays_of(value)
    if not isinstance(value, list):
        return _each(value, partial(lists_stacked, who))
    parts = [_stacked_part(who, part) for part in value]
    shapes = sorted({str(part.shape) for part in parts})
    if len(shapes) > 1:
        raise ValueError(
            f"{who}: a list is one array, but this one has arrays of different shapes: "
            f"{', '.join(shapes[:4])}; give several components in a tuple, and elements of "
            "different sizes to Dataset(list) or Dataset.from_generator, for padded_batch()"
        )
    return np.stack(of_one_dtype(who, parts))


def _stacked_part(who: str, part: Any) -> Any:
    if isinstance(part, dict):
        raise TypeError(
            f"{who}: a list of dictionaries is not an array; give one dictionary of arrays, or the "
            "list to Dataset(list)"
        )
    return lists_stacked(who, list(part) if isinstance(part, tuple) else part)


def read_only(array: Any) -> Any:
    """Return a read-only view of a NumPy array; arrays of other libraries unchanged."""
    if not isinstance(array, np.ndarray):
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def stacked(elements: Sequence[Any]) -> Any:
    """Stack elements into one batch, with one array for each leaf.

    Raises
    ------
    ValueError
        If their shapes or structures differ.
    TypeError
        If their dtypes differ.
    """
    columns = [of_one_dtype("batch", column) for column in columns_of("batch", elements)]
    try:
        found = [np.stack(column) for column in columns]
    except ValueError as error:
        shapes = sorted({str(tuple(x.shape for x in leaves)) for leaves in zip(*columns)})
        raise ValueError(
            f"batch: cannot stack elements of different shapes: {', '.join(shapes[:4])}; reshape "
            "them with map(), use padded_batch(), or use batch size 1"
        ) from error
    return pack_like(elements[0], found)


def gathered(elements: Iterator[Any], size: int) -> tuple[Any, int]:
    """Read up to ``size`` elements into one batch; return it and their number.

    Each element is written into the batch before the next one is read, so that it need not be
    copied to wait for that.

    Raises
    ------
    ValueError, TypeError
        As for :func:`stacked`.
    """
    batch, count, room = None, 0, size
    waiting: list[Any] | None = None
    for element in itertools.islice(elements, size):
        if count == 0:
            room = max(1, min(size, _ROOM // sum(x.nbytes + 1 for x in _arrays(element))))
            batch = map_structure(partial(_room_for, room=room), element)
        elif count == room and waiting is None:
            room = min(size, 2 * room)
            batch = map_structure(partial(_with_room, room=room), batch)
        if waiting is None and not _put(batch, element, count):
            # an error, or numbers of Python of several kinds
            waiting = list(rows_of(batch, count))
        if waiting is not None:
            waiting.append(map_structure(copied, element))
        count += 1
    if waiting is not None:
        return stacked(waiting), count
    if 0 < count < room:
        batch = map_structure(lambda x: x[:count].copy(), batch)
    return batch, count


def _arrays(element: Any) -> list[Any]:
    return [x for x in flatten(element) if isinstance(x, np.ndarray)] or [np.empty(0)]


def _room_for(leaf: Any, room: int) -> Any:
    """Return an array for copies of a leaf; None if they cannot be assigned one by one."""
    plain = type(leaf) in _PLAIN and not leaf.dtype.hasobject and leaf.dtype.isnative
    return np.empty((room, *leaf.shape), leaf.dtype) if plain else None


def copied(leaf: Any) -> Any:
    """Return a copy of an array; a dataset unchanged."""
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


def _put(batch: Any, element: Any, i: int) -> bool:
    """Write an element into a batch; return False if it does not have the batch's structure."""
    kind = type(element)
    if kind in _PLAIN:
        if type(batch) is not np.ndarray:
            return False
        if element.dtype != batch.dtype or element.shape != batch.shape[1:]:
            return False
        batch[i] = element
        return True
    if type(batch) is not kind or batch is None or len(element) != len(batch):
        return False
    if kind is dict:
        if element.keys() != batch.keys():
            return False
        batch, element = batch.values(), map(element.__getitem__, batch)
    for part, given in zip(batch, element):  # noqa: SIM110  (a generator takes twice as long)
        if not _put(part, given, i):
            return False
    return True


def _with_room(array: Any, room: int) -> Any:
    found = np.empty((room, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found


def columns_of(who: str, elements: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the leaves of elements that have one structure: a tuple for each place.

    Raises
    ------
    ValueError
        If the structures differ.
    """
    first = elements[0]
    if isinstance(first, np.ndarray) and all(isinstance(x, np.ndarray) for x in elements):
        return [tuple(elements)]
    kind = structure(first)
    types = [type(first), *map(type, first)] if type(first) is tuple else []
    flat = types == [tuple] + [np.ndarray] * (len(types) - 1)
    for element in elements:
        if flat and [type(element), *map(type, element)] == types:
            continue  # much faster
        if structure(element) != kind:
            raise ValueError(
                f"{who}: elements of different structures do not make one batch: "
                f"{outline(first)} and {outline(element)}, where * is an array"
            )
    return list(zip(*map(flatten, elements), strict=True))


def of_one_dtype(who: str, column: Sequence[Any]) -> Sequence[Any]:
    """Return arrays of one dtype, to be combined.

    Numbers of Python may be integers in one place and floats in another. Like those of one list,
    they become floats, if that changes no value. Arrays without values fit to any others.

    Raises
    ------
    TypeError
        If the dtypes differ in another way.
    """
    kinds = set(map(type, column))
    if kinds == {np.ndarray} and len({array.dtype for array in column}) == 1:
        return column
    for array in column:
        if isinstance(array, Nested):
            raise TypeError(
                f"{who}: an element holds a dataset, such as a window; make batches of its "
                "elements: flat_map(lambda window: window.batch(size))"
            )
        unmasked(who, array)
    # an array without values, such as an empty list, has the dtype of the others
    dtypes = {array.dtype for array in column if array.size} or {column[0].dtype}
    if len(dtypes) == 1:
        return [array if array.size else array.astype(*dtypes) for array in column]
    widest = [
        np.dtype(x)
        for x in ("int64", default_dtype(), np.result_type(default_dtype(), "complex64"))
    ]
    if dtypes <= set(widest):
        dtype = max(dtypes, key=widest.index)
        with np.errstate(over="ignore"):
            found = [array.astype(dtype) for array in column]
        if all(np.array_equal(a, b, equal_nan=True) for a, b in zip(column, found)):
            return found
    if {dtype.kind for dtype in dtypes} in ({"U"}, {"S"}):  # of several lengths
        return [array.astype(np.result_type(*dtypes)) for array in column]
    raise TypeError(
        f"{who}: cannot combine elements of different dtypes: "
        f"{', '.join(sorted(map(str, dtypes)))}; {_remedy(column, dtypes)}"
    )


def _remedy(column: Sequence[Any], dtypes: set[Any]) -> str:
    """Return what to do about elements of several dtypes."""
    for array in column:
        if array.dtype.kind == "O" and array.ndim == 0:
            return f"one of them is {array.item()!r:.80}: replace it by a number, or leave it out"
    if any(dtype.kind in "OUSV" for dtype in dtypes):
        return (
            "give each kind of value an array of its own, in a tuple or dictionary, and words "
            "numbers, such as with np.unique(words, return_inverse=True)"
        )
    return (
        "convert them in one place, such as with "
        f"map(lambda x: x.astype({str(np.result_type(*dtypes))!r}))"
    )


def unmasked(who: str, array: Any) -> Any:
    """Return an array as it is.

    Raises
    ------
    TypeError
        If it is a masked array.
    """
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(
            f"{who}: a masked array would lose its mask; fill it first: x.filled(0), for example "
            "with map(lambda x: x.filled(0))"
        )
    return array


def rows_of(batch: Any, count: int) -> Iterator[Any]:
    """Yield copies of the rows of a batch, so that a row does not keep the batch alive."""
    arrays = [unmasked("unbatch", array) for array in flatten(batch)]
    for i in range(count):
        yield pack_like(batch, [np.array(array[i]) for array in arrays])
