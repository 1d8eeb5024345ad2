"""What data frames and arrays of objects hold: columns of numbers, or what they are instead."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["numbers_of", "why_no_numbers"]


def numbers_of(value: Any) -> np.ndarray[Any, Any] | None:
    """Return the numbers of what NumPy takes for objects; None if it is of another kind.

    Those are the columns of a data frame of pandas or polars, side by side, and a series with
    missing values, which become NaN.

    Raises
    ------
    TypeError
        If a column holds no numbers.
    """
    if np.ndim(value) == 1:
        return _numbers(value)
    found = []
    for name, column in _named_columns(value):
        array = _numbers(column)
        if array is None:
            raise TypeError(
                f"column {name!r} of the {type(value).__name__} holds "
                f"{_kind(np.asarray(column))}, and a tensor holds numbers; turn it into numbers, "
                "or leave it out"
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
    """Return what an array holds, in words, with the first of it."""
    if array.dtype.kind in "Mm":
        return "dates" if array.dtype.kind == "M" else "times"
    first = next((x for x in array.flat if x is not None), None)
    kind = "words" if isinstance(first, str) else f"objects of {type(first).__name__}"
    return f"{kind} ({str(first)[:20]!r})"


def why_no_numbers(value: Any, array: np.ndarray[Any, Any]) -> str:
    """Return what an array without numbers holds, and what to do about it."""
    message = f"a tensor holds numbers, not {type(value).__name__} values of dtype {array.dtype}"
    if hasattr(value, "collect"):
        return f"{message}; give .collect() of it"
    leaves = list(array.flat[:100]) if array.dtype.kind == "O" else []
    if array.dtype.kind in "US" or (leaves and all(isinstance(x, str) for x in leaves)):
        hint = "np.unique(x, return_inverse=True) numbers words"
    elif array.dtype.kind in "Mm":
        hint = "a difference of dates, divided by np.timedelta64(1, 'D'), is a number"
    elif array.dtype.names:
        hint = "np.stack([x[name] for name in x.dtype.names], axis=-1) makes columns of its fields"
    elif leaves and all(isinstance(x, (bool, int, float, np.number, np.bool_)) for x in leaves):
        hint = "they are numbers: convert them with .astype('float32')"
    else:
        return message
    return f"{message}; {hint}"
