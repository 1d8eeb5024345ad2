"""Helpers for kernels: dtypes of any array library, casts, and functions found by name."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import backend_of, kind_of, numpy_dtype, promoting

__all__ = [
    "all_between",
    "at_hand",
    "cast_to",
    "complex_of",
    "in_float32",
    "kind_of",
    "nan_where",
    "native",
    "reals",
    "renewed",
    "standard",
    "summed",
    "truth",
]

_HALF, _SINGLE = np.dtype(np.float16), np.dtype(np.float32)


def cast_to(xp: Any, x: Any, dtype: Any) -> Any:
    """Return an array cast to ``dtype`` (or its name).

    Complex values lose their imaginary part, except in a cast to booleans: nonzero is true.
    """
    if x.dtype is dtype:
        return x
    dtype = np.dtype(dtype) if isinstance(dtype, (str, type)) else numpy_dtype(dtype)
    if numpy_dtype(x.dtype) == dtype:
        return x
    if kind_of(x.dtype) == "c" and dtype.kind != "c":
        if dtype.kind == "b":
            return x != 0
        x = xp.real(x)
    return x.astype(dtype) if hasattr(x, "astype") else xp.astype(x, getattr(xp, dtype.name))


def in_float32(
    kernel: Callable[..., Any], aside: tuple[str, ...] = ("like",)
) -> Callable[..., Any]:
    """Return a kernel that computes in ``float32`` if its arrays are ``float16``.

    For sums of many numbers or of exponentials: ``float16`` cannot count beyond 2048, and its
    largest number is 65504. Results are rounded once. Arrays named ``aside`` do not affect the
    dtype.
    """
    names = list(inspect.signature(kernel).parameters)[1:]
    places = [i for i, name in enumerate(names) if name in aside]

    @functools.wraps(kernel)
    def wide(xp: Any, *arrays: Any, **params: Any) -> Any:
        dtypes = [numpy_dtype(x.dtype) for x in arrays]
        if _HALF not in dtypes:
            return kernel(xp, *arrays, **params)
        pairs = zip(arrays, dtypes, strict=True)
        given = [cast_to(xp, x, _SINGLE) if dtype == _HALF else x for x, dtype in pairs]
        result = kernel(xp, *given, **params)
        if np.result_type(*[d for i, d in enumerate(dtypes) if i not in places]) != _HALF:
            return result
        if type(result) is tuple:
            return tuple([cast_to(xp, part, _HALF) for part in result])
        return cast_to(xp, result, _HALF)

    return wide


@in_float32
def summed(xp: Any, x: Any, *, axis: Any, keepdims: bool = False) -> Any:
    """Return sums in the dtype of ``x``, where NumPy would widen some dtypes."""
    return xp.sum(x, axis=axis, keepdims=keepdims, dtype=x.dtype)


def truth(condition: Any, unknown: Any) -> Any:
    """Return whether a condition holds, or ``unknown`` where a compiler has no values yet.

    For kernels with a code path for some values only: ``unknown`` selects the path that suits all
    values, or reports that a check is not possible.
    """
    try:
        return bool(condition)
    except TypeError:  # what JAX's tracers raise
        return unknown


def at_hand(condition: Any, unknown: Any) -> Any:
    """Return :func:`truth`, or ``unknown`` also where the host would wait for a device.

    For code paths and checks of steps that run often.
    """
    try:
        waits = type(condition) is not np.bool_ and backend_of(condition).waits
    except TypeError:  # the arrays belong to no backend
        waits = False
    return unknown if waits else truth(condition, unknown)


def all_between(x: Any, least: float, most: float) -> bool:
    """Return whether floats lie between two bounds, as far as NumPy can see at once.

    For the quick path of rules and kernels, which then need no masks; nan lies nowhere.
    """
    if type(x) is not np.ndarray or not x.size or x.dtype.kind != "f":
        return False
    # a third of the cost of a reduction, for few numbers
    return bool(least < x.item(x.argmin()) and x.item(x.argmax()) < most)


def nan_where(xp: Any, wrong: Any, found: Any, checked: Any) -> Any:
    """Return ``found``, with nan where values are wrong that could not be checked before.

    Parameters
    ----------
    wrong
        A function without arguments that returns a mask of the wrong values.
    checked
        What :func:`at_hand` returned; None if the condition was unknown.
    """
    if checked is not None or kind_of(found.dtype) not in "fc":
        return found
    return xp.where(wrong(), xp.asarray(math.nan, dtype=found.dtype), found)


def renewed(xp: Any, where: Any, found: Any, function: Callable[[Any], Any], x: Any) -> Any:
    """Return ``found``, which may be overwritten, with ``function(x)`` in some places."""
    if not at_hand(xp.any(where), unknown=True):
        return found
    if type(found) is np.ndarray and found.ndim:  # compute only what is needed
        found[where] = function(x[where])
        return found
    return xp.where(where, function(xp.where(where, x, xp.zeros_like(x))), found)


def complex_of(xp: Any, real: Any, imag: Any) -> Any:
    """Return the complex array of two parts, even where one is infinite or nan."""
    if not hasattr(real, "view"):  # the array API offers only arithmetic
        return real + imag * 1j
    pairs = xp.stack((real, imag), axis=-1)
    return pairs.view(np.result_type(real.dtype, np.complex64))[..., 0]


def standard(xp: Any, name: str, older: str) -> Callable[..., Any]:
    """Return a function of the array API standard, by its older name in libraries without it."""
    return _standard(xp, name, older)


@functools.cache
def _standard(xp: Any, name: str, older: str) -> Callable[..., Any]:
    return _promoting(xp, older, getattr(xp, name, None) or getattr(xp, older))


def _promoting(xp: Any, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of arrays that promotes dtypes as NumPy's function of that name does."""
    return function if xp is np else promoting(xp, name, function)


def reals(x: Any) -> Any:
    """Return ``x``, for kernels whose formulas hold for real numbers only.

    Raises
    ------
    TypeError
        If ``x`` is complex.
    """
    if kind_of(x.dtype) == "c":
        raise TypeError(f"expected real numbers, got dtype {x.dtype}")
    return x


@functools.cache
def _native(xp: Any, name: str, portable: Callable[..., Any]) -> Callable[..., Any]:
    own = getattr(xp, name, None)
    return _promoting(xp, name, functools.partial(portable, xp) if own is None else own)


def native(name: str, portable: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel of a function that NumPy and CuPy have and the standard lacks."""

    def kernel(xp: Any, *arrays: Any) -> Any:
        return _native(xp, name, portable)(*arrays)

    return kernel
