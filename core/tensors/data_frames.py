"""The numbers in data frames and object arrays, and messages for what is not a number."""

from __future__ import annotations

import datetime
import numbers
from collections import UserList, deque
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import numpy as np

from ..base.dtypes import DTYPES, SCALARS, wider_dtype
from ..base.tree import flatten
from ..errors import GradtapeError
from .methods import Methods


class NotNumbers(TypeError):
    """The value to convert is text, an object or None."""


# users see a TypeError
NotNumbers.__module__, NotNumbers.__qualname__ = "builtins", "TypeError"


_LISTED = SCALARS | {list, tuple}


def read_array(value: Any, dtype: Any = None) -> np.ndarray[Any, Any]:
    """Return NumPy's array of nested lists, a data frame or another library's array.

    Raises
    ------
    ValueError
        If lists are ragged.
    NotNumbers
        If a column of a data frame does not hold numbers, or the other library refuses.
    """
    if type(value) not in _LISTED and hasattr(type(value), "columns"):
        _check_columns(value)
    try:
        return np.asarray(value, dtype)
    except ValueError as error:
        raise ValueError(f"nested lists must be rectangular: {error}") from error
    except TypeError as error:
        if isinstance(error, GradtapeError) or isinstance(value, (list, tuple)):
            raise
        held = getattr(value, "dtype", None)
        kind = f"{type(value).__name__} of dtype {held}" if held else type(value).__name__
        small = any(name in str(held) for name in ("bfloat16", "float8"))
        hint = "; convert it with .float()" if small else ""
        raise NotNumbers(f"NumPy cannot read this {kind}: {error}{hint}") from error


def numbers_of(value: Any, array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Return the numbers of a value whose array is ``array``, which has no dtype of tensors.

    Such values are data frames of several dtypes, whose columns are stacked, and series with
    missing values, which become NaN. Arrays of ``bfloat16`` and other small dtypes become what
    the user asked for with ``dtype``.

    Raises
    ------
    NotNumbers
        If there are none, or a column holds something else.
    """
    if dtype is not None and wider_dtype(array.dtype) is not None:
        return array.astype(dtype)
    if np.ndim(value) == 1:
        found = _numbers(value)
        if found is not None:
            return found
    columns = [_column_numbers(name, column, value) for name, column in _named_columns(value)]
    if columns:
        return np.stack(columns, axis=1)
    name = getattr(value, "name", None)
    of = f"{type(value).__name__} {name!r}: " if name and isinstance(name, str) else ""
    raise NotNumbers(of + why_no_numbers(value, array))


def _named_columns(value: Any) -> Iterable[tuple[Any, Any]]:
    if hasattr(value, "column_names"):  # pyarrow
        return zip(value.column_names, value.columns, strict=True)
    if hasattr(value, "iter_columns"):  # polars
        return zip(value.columns, value.iter_columns(), strict=True)
    if np.ndim(value) != 2 or not hasattr(value, "columns"):
        return ()
    return value.items() if hasattr(value, "items") else ()


def float_columns(value: Any) -> list[np.ndarray[Any, Any]]:
    """Return the first columns of floats of a data frame, series or array of xarray, in memory.

    Other values have none, such as arrays of NumPy, and those that would first have to be read or
    computed.
    """
    kind = type(value)
    if not hasattr(kind, "to_numpy") or hasattr(kind, "__dlpack__"):
        return []
    if hasattr(kind, "compute") and not getattr(
        getattr(value, "variable", value), "_in_memory", False
    ):
        return []
    columns = [column for _, column in islice(_named_columns(value), _COLUMNS)] or [value]
    return [np.asarray(column) for column in columns if _is_floating(column)]


#: How many columns are compared with those that code had before, and how many elements of those
#: of pandas that are not arrays of NumPy, and are copied.
_COLUMNS, _COPIED = 64, 2**16


def _is_floating(column: Any) -> bool:
    dtype = getattr(column, "dtype", None)
    if getattr(dtype, "kind", "") in ("f", "c"):
        return isinstance(dtype, np.dtype) or len(column) <= _COPIED
    return bool(getattr(dtype, "is_float", bool)())


def _check_columns(table: Any) -> None:
    """Raise for dates in a table whose library turns them into numbers when it joins columns."""
    if not hasattr(table, "iter_columns") and not hasattr(table, "column_names"):
        return
    for name, column in _named_columns(table):
        temporal = getattr(getattr(column, "dtype", None), "is_temporal", None)
        if temporal() if temporal else np.asarray(column[:0]).dtype.kind in "Mm":
            _column_numbers(name, column, table)


def _column_numbers(name: Any, column: Any, table: Any) -> np.ndarray[Any, Any]:
    found = _numbers(column)
    if found is None:
        raise NotNumbers(
            f"column {name!r} of the {type(table).__name__} holds {_kind(np.asarray(column))}, and "
            "a tensor holds numbers; convert the column to numbers, or drop it"
        )
    return found


def _numbers(column: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a column, missing ones as NaN; None if it holds something else."""
    array = np.asarray(column)
    dtype = getattr(column, "dtype", array.dtype)
    if array.dtype.kind == "O" and getattr(dtype, "kind", "O") in "biuf":
        array = column.to_numpy("float64", na_value=np.nan)
    elif array.dtype.kind == "O" and _is_typed(column) and _only(array, (bool, type(None))):
        array = array.astype("float64")  # None becomes NaN
    return array if type(array.dtype) in DTYPES else None


def _is_typed(column: Any) -> bool:
    """Return whether a library, and not a user, chose the column's dtype."""
    dtype = getattr(column, "dtype", None)
    return hasattr(column, "to_numpy") and not isinstance(dtype, np.dtype)


def _only(array: np.ndarray[Any, Any], kinds: Any) -> bool:
    return bool(array.size) and all(isinstance(x, kinds) for x in array.flat)


def _kind(array: np.ndarray[Any, Any]) -> str:
    """Return a description of an array's elements, with the first one."""
    if array.dtype.kind in "Mm":
        return "dates" if array.dtype.kind == "M" else "times"
    first = next((x for x in array.flat if x is not None), None)
    kind = "words" if isinstance(first, str) else f"objects of {type(first).__name__}"
    return f"{kind} ({str(first)[:20]!r})"


def why_no_numbers(value: Any, array: np.ndarray[Any, Any]) -> str:
    """Return the message for an array without numbers: its contents, and what to do."""
    dtype = getattr(value, "dtype", array.dtype)
    message = f"a tensor holds numbers, not {type(value).__name__} values of dtype {dtype}"
    return message + numbers_instead(value, array)


def numbers_instead(value: Any, array: np.ndarray[Any, Any]) -> str:
    """Return the end of a message about an array without numbers: what to do; or no text."""
    hint = _by_type(value) or _by_dtype(array) or _by_elements(value, array)
    return f"; {hint}" if hint else ""


_DATES = "to get days, divide a difference of dates by np.timedelta64(1, 'D')"
_AS_FLOATS = "convert them with .astype('float32')"


def _by_type(value: Any) -> str:
    if hasattr(value, "collect"):
        return "pass the result of .collect()"
    if hasattr(value, "toarray"):
        return "pass x.toarray(), with the zeros that a sparse array leaves out"
    if hasattr(value, "cat") and hasattr(value.cat, "codes"):
        return "the numbers of its categories are x.cat.codes"
    return walked_instead(value)


def walked_instead(value: Any) -> str:
    """Return what to pass instead of an object that holds tensors under names, or no text."""
    if isinstance(value, Mapping):
        return "convert each of its values; gradtape walks plain dictionaries, lists and tuples"
    if any(hasattr(type(value), name) for name in ("__dataclass_fields__", "__attrs_attrs__")):
        return (
            "gradtape walks dictionaries, lists, tuples and named tuples: instead of a dataclass, "
            "pass vars(x), or make it a typing.NamedTuple"
        )
    return ""


def _by_dtype(array: np.ndarray[Any, Any]) -> str:
    wide = wider_dtype(array.dtype)
    if wide is not None:
        return f"convert it with .astype({wide.name!r}), which holds all values of {array.dtype}"
    if array.dtype.names:
        return "stack its fields with np.stack([x[name] for name in x.dtype.names], axis=-1)"
    if array.dtype.kind == "V":
        name = {1: "float8_e4m3fn", 2: "bfloat16"}.get(array.dtype.itemsize, "name")
        return (
            "these are raw bytes, as which NumPy's files keep bfloat16 and float8; to read them, "
            f"name their dtype: x.view(ml_dtypes.{name}).astype('float32')"
        )
    return _DATES if array.dtype.kind in "Mm" else ""


def _are_numbers(texts: Any) -> bool:
    """Return whether all texts are numbers."""
    try:
        return bool([float(text) for text in texts])
    except ValueError:
        return False


def _by_elements(value: Any, array: np.ndarray[Any, Any]) -> str:
    leaves = list(array.flat[:100]) if array.dtype.kind == "O" else []
    known = [x for x in leaves if x is not None]
    if array.dtype.kind in "US" or (known and all(isinstance(x, str) for x in known)):
        if _are_numbers(known or array.flat[:100]):
            return "these are numbers as text: pass np.asarray(x, 'float64')"
        return "encode words as numbers with np.unique(x, return_inverse=True)"
    if known and all(isinstance(x, (datetime.date, datetime.timedelta)) for x in known):
        return _DATES
    if known and all(isinstance(x, (np.ndarray, list)) for x in known):
        return "its elements are arrays: np.stack(x) joins those of one shape"
    if not known or not all(isinstance(x, (numbers.Number, np.bool_)) for x in known):
        return ""
    if not hasattr(value, "astype"):
        if isinstance(value, (list, tuple)):
            return "replace None by nan, and others by float(x)"
        return "convert it with " + (".cast(float)" if hasattr(value, "cast") else "float(x)")
    if len(known) < len(leaves):
        return "convert them with .astype('float64'), which makes NaN of None"
    return f"they are numbers: {_AS_FLOATS}"


# -- tensors in other libraries' containers --------------------------------------------------------


def may_hold_tensors(kind: type) -> bool:
    """Return whether the arrays of a class may hold tensors, as those of xarray do."""
    return hasattr(kind, "data") and not issubclass(kind, (np.ndarray, np.generic))


def held_tensor(value: Any) -> Any:
    """Return the tensor that an array of xarray holds, and anything else unchanged."""
    held = value.data if may_hold_tensors(type(value)) else None
    return held if isinstance(held, Methods) else value


def holds_tensors(value: Any) -> bool:
    """Return whether a value that is not walked holds tensors: a series, a deque, objects."""
    if isinstance(value, Methods):
        return False
    if held_tensor(value) is not value:
        return True
    if isinstance(value, (deque, UserList)):
        return any(isinstance(item, Methods) for item in flatten(list(value)))
    if type(value) is not np.ndarray and not hasattr(value, "to_numpy"):
        return False
    array = np.asarray(value)
    return array.dtype.kind == "O" and any(isinstance(item, Methods) for item in array.flat)
