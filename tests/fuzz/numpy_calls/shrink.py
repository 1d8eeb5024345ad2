"""Reduction of failures: fewer arguments, smaller arrays, simpler values."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from fuzz.numpy_calls.arguments import Array
from fuzz.numpy_calls.targets import Call

__all__ = ["reduced"]


def reduced(call: Call, fails: Callable[[Call], bool], seconds: float = 2.0) -> Call:
    """Return the smallest call found that still ``fails``, within some seconds."""
    end = time.monotonic() + seconds
    progress = True
    while progress:
        progress = False
        for smaller in _smaller(call):
            if time.monotonic() > end:
                return call
            if fails(smaller):
                call, progress = smaller, True
                break
    return call


def _smaller(call: Call) -> Iterator[Call]:
    """Give slightly simpler calls, the largest simplifications first."""
    for place, argument in reversed(list(enumerate(call.arguments))):
        if not argument.required:
            yield call.without(place)
    for place, argument in enumerate(call.arguments):
        if type(argument.value) in (list, tuple) and len(argument.value) > 1:
            for i in range(len(argument.value)):
                yield call.with_value(place, argument.value[:i] + argument.value[i + 1 :])
    for place, array in enumerate(call.arrays):
        for simpler in _simpler(array):
            yield call.with_array(place, simpler)
    for place, argument in enumerate(call.arguments):
        if type(argument.value) in (int, float) and argument.value not in (0, 1):
            for value in (0, 1):
                yield call.with_value(place, type(argument.value)(value))


def _simpler(array: Array) -> Iterator[Array]:
    """Give simpler arrays."""
    if array.layout != "plain":
        yield replace(array, layout="plain")
    values = array.values
    for axis, size in enumerate(values.shape):
        yield array.with_values(
            np.take(values, 0, axis=axis) if size else values.sum(axis, values.dtype)
        )
        if size > 1:
            for i in range(size):
                yield array.with_values(np.delete(values, i, axis=axis))
    if array.form == "list":
        yield replace(array, form="ndarray")
    flat = values.reshape(-1)
    for i in range(flat.size):
        for value in (0, 1):
            if flat[i] != value and not (value == 1 and flat[i] == 0):
                other = flat.copy()
                other[i] = value
                yield array.with_values(other.reshape(values.shape))
    plain = {"f": "float64", "i": "int64", "u": "int64", "c": "complex128"}.get(values.dtype.kind)
    if plain and values.dtype != plain:
        with np.errstate(all="ignore"):
            yield array.with_values(values.astype(plain))
