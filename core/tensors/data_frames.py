"""The numbers in data frames and object arrays, and messages for what is not a number."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np


def numbers_of(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of a value that NumPy reads as objects; None if there are none.

    Such values are data frames of pandas or polars, whose columns are stacked, and series with
    missing values, which become NaN.

    Raises
    ------
    TypeError
        If a column does not hold numbers.
    """
    if np.ndim(value) == 1:
        return _numbers(value)
    found = []
    for name, column in _named_columns(value):
        array = _numbers(column)
        if array is None:
            raise TypeError(
                f"column {name!r} of the {type(value).__name__} holds "
                f"{_kind(np.asarray(column))}, and a tensor holds numbers; convert the column to "
                "numbers, or drop it"
            )
        found.append(array)
    return np.stack(found, axis=1) if found else None


def _named_columns(value: Any) -> Iterable[tuple[Any, Any]]:
    if np.ndim(value) != 2 or not hasattr(value, "columns"):
        return ()
    if hasattr(value, "iter_columns"):
        return zip(value.columns, value.iter_columns(), strict=True)
    return value.items() if hasattr(value, "items") else ()


def _numbers(column: Any) -> np.ndarray[Any, Any] | None:
    array = np.asarray(column)
    dtype = getattr(column, "dtype", array.dtype)
    if array.dtype.kind == "O" and getattr(dtype, "kind", "O") in "biuf":
        array = column.to_numpy("float64", na_value=np.nan)
    return array if array.dtype.kind in "biuf" else None


def _kind(array: np.ndarray[Any, Any]) -> str:
    """Return a description of an array's elements, with the first one."""
    if array.dtype.kind in "Mm":
        return "dates" if array.dtype.kind == "M" else "times"
    first = next((x for x in array.flat if x is not None), None)
    kind = "words" if isinstance(first, str) else f"objects of {type(first).__name__}"
    return f"{kind} ({str(first)[:20]!r})"


def why_no_numbers(value: Any, array: np.ndarray[Any, Any]) -> str:
    """Return the message for an array without numbers: its contents, and what to do."""
    message = f"a tensor holds numbers, not {type(value).__name__} values of dtype {array.dtype}"
    if hasattr(value, "collect"):
        return f"{message}; pass the result of .collect()"
    leaves = list(array.flat[:100]) if array.dtype.kind == "O" else []
    if array.dtype.kind in "US" or (leaves and all(isinstance(x, str) for x in leaves)):
        hint = "encode words as numbers with np.unique(x, return_inverse=True)"
    elif array.dtype.kind in "Mm":
        hint = "to get days, divide a difference of dates by np.timedelta64(1, 'D')"
    elif array.dtype.names:
        hint = "stack its fields with np.stack([x[name] for name in x.dtype.names], axis=-1)"
    elif leaves and all(isinstance(x, (bool, int, float, np.number, np.bool_)) for x in leaves):
        hint = "they are numbers: convert them with .astype('float32')"
    else:
        return message
    return f"{message}; {hint}"
