"""The arrays of elements: how they enter a pipeline, and how several become one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..core.extend import (
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
    "arrays_of",
    "columns_of",
    "lists_stacked",
    "of_one_dtype",
    "owned",
    "read_only",
    "rows_of",
    "stacked",
]


def arrays_of(value: Any) -> Any:
    """Return nested containers with NumPy arrays instead of tensors, arrays and numbers.

    A list of numbers, nested or not, becomes one array. Python numbers get the dtypes of the
    tensors that ``gt.constant`` makes of them.
    """
    return _each(value, arrays_of) if _is_container(value) else _array_of(value)


def _is_container(value: Any) -> bool:
    return isinstance(value, (tuple, dict)) or (isinstance(value, list) and not _is_array(value))


def _array_of(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value
    if type(value) in (float, complex, list):  # not NumPy scalars, which are subclasses
        value = as_tensor(value)
    if isinstance(value, (Tensor, Variable)):
        return np.asarray(to_numpy(value.array))
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
    value = box.pop()
    if not _is_container(value):
        if not isinstance(value, np.ndarray):
            value, shared = _array_of(value), False  # another object than the container's
        if not shared and _count(value) <= _ALONE and _is_whole(value):
            return value
        return value.copy()
    shared = shared or _count(value) > _ALONE
    kind, names = type(value), tuple(value) if isinstance(value, dict) else None
    parts = list(value if names is None else value.values())
    del value  # a container that nobody else holds ends here
    parts.reverse()
    found = [owned(parts, shared) for _ in range(len(parts))]
    if names is not None:
        return dict(zip(names, found))
    if issubclass(kind, list):
        return found
    return kind(*found) if hasattr(kind, "_fields") else tuple(found)


def _is_whole(array: Any) -> bool:
    """Return whether an array has memory of its own, or is the only view of another's."""
    if array.flags.owndata:
        return True
    return (
        type(array.base) is np.ndarray
        and array.base.flags.owndata
        and _count(array.base) <= _ALONE_BELOW
    )


_count: Callable[[Any], int] = getattr(sys, "getrefcount", lambda value: 0)


def _counts_of_one_holder() -> tuple[int, int]:
    """Return the counts of references to an array that one name holds, and to a view's base."""
    array = np.empty(2)
    view = np.empty(2)[:1]
    return _count(array), _count(view.base)


# other implementations of Python may count no references: there, everything is copied
_ALONE, _ALONE_BELOW = _counts_of_one_holder() if hasattr(sys, "getrefcount") else (-1, -1)


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
    for element in elements:
        if structure(element) != kind:
            raise ValueError(
                f"{who}: elements of different structures do not make one batch: "
                f"{outline(first)} and {outline(element)}, where * is an array"
            )
    return list(zip(*map(flatten, elements), strict=True))


def of_one_dtype(who: str, column: Sequence[Any]) -> Sequence[Any]:
    """Return arrays that are to be one, in its dtype.

    Numbers of Python may be integers in one place and floats in another. Like those of one list,
    they become floats, if that changes no value.

    Raises
    ------
    TypeError
        If the dtypes differ in another way.
    """
    first = column[0].dtype
    if all(array.dtype == first for array in column):
        return column
    dtypes = {array.dtype for array in column}
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
    if all(dtype.kind in "US" for dtype in dtypes):
        return column  # texts of several lengths
    raise TypeError(
        f"{who}: cannot combine elements of different dtypes: "
        f"{', '.join(sorted(map(str, dtypes)))}; convert them in one place, such as with "
        f"map(lambda x: x.astype({str(max(dtypes, key=lambda d: d.itemsize))!r}))"
    )


def rows_of(batch: Any, count: int) -> Iterator[Any]:
    """Yield copies of the rows of a batch, so that a row does not keep the batch alive."""
    for i in range(count):
        yield map_structure(partial(_row_copied, i=i), batch)


def _row_copied(array: Any, i: int) -> Any:
    return np.array(array[i])
