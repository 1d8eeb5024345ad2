"""Helpers for kernels and rules: dtypes, casts, functions by name, access by index."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ....core.extend import F, as_tensor, backend_of, kind_of, numpy_dtype, ops, promoting

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
    kernel: Callable[..., Any], ignored: tuple[str, ...] = ("like",)
) -> Callable[..., Any]:
    """Return a kernel that computes in ``float32`` if its arrays are ``float16``.

    For sums of many numbers or of exponentials: ``float16`` cannot count beyond 2048, and its
    largest number is 65504. Results are rounded once. Arrays named ``ignored`` do not affect the
    dtype.
    """
    names = list(inspect.signature(kernel).parameters)[1:]
    places = [i for i, name in enumerate(names) if name in ignored]

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


# -- dtypes ----------------------------------------------------------------------------------------

SCALARS = (bool, int, float, complex)


def inexact(dtype: Any) -> Any:
    """Return the floating or complex dtype for computations with numbers of ``dtype``."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float64)


def real_of(dtype: Any) -> Any:
    """Return the real dtype of the same precision."""
    return np.empty(0, inexact(dtype)).real.dtype


def as_floating(x: Any) -> Any:
    """Return ``x`` as a tensor of floating or complex numbers; others become ``float64``."""
    x = as_tensor(x)
    return x if x.dtype.kind in "fc" else ops["cast"](x, dtype="float64")


def as_like(g: Any, like: Any) -> Any:
    """Return a gradient in the dtype of ``like``; its shape matches already."""
    return g if g.dtype == like.dtype else F.cast_like(g, like)


# -- reading by index ------------------------------------------------------------------------------


def picked(xp: Any, x: Any, where: tuple[Any, ...]) -> Any:
    """Return ``x[where]`` for an index with arrays, as NumPy defines it.

    The array API takes arrays for all axes or for none, and some libraries take one array. What a
    library does not take is gathered from the flattened ``x``.

    Parameters
    ----------
    xp
        The array namespace.
    x
        An array.
    where
        An index of integers, slices, ``None``, ``...``, integer arrays and masks.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    """
    try:
        return x[where]
    except (IndexError, NotImplementedError):
        if writes_by_arrays(xp, x):  # the library takes all indices: this one is wrong
            raise
    axes, groups = _axes_and_groups(xp, x, where)
    joined = np.broadcast_shapes(*[tuple(part.shape) for part, _ in groups])
    alone = [i for i, (part, _) in enumerate(axes) if part is _GROUP]
    adjacent = bool(alone) and alone == list(range(alone[0], alone[-1] + 1))
    front = alone[0] if adjacent else 0
    outer = [(part, axis) for part, axis in axes if part is not _GROUP]
    shape = [1 if part is None else part.shape[0] for part, _ in outer]
    shape[front:front] = joined
    strides = [prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]
    places: Any = xp.zeros((1,) * len(shape), dtype=xp.int64)
    after = len(outer) - front
    for part, axis in groups:
        aligned = (1,) * (len(joined) - part.ndim) + tuple(part.shape)
        line = xp.reshape(part, (1,) * front + aligned + (1,) * after)
        places = places + line * strides[axis]
    for i, (part, axis) in enumerate(outer):
        if part is not None:
            place = i if i < front else i + len(joined)
            line = xp.reshape(part, (1,) * place + (-1,) + (1,) * (len(shape) - place - 1))
            places = places + line * strides[axis]
    places = xp.reshape(xp.broadcast_to(places, tuple(shape)), (-1,))
    return xp.reshape(xp.take(xp.reshape(x, (-1,)), places, axis=0), tuple(shape))


def index_along_axis(xp: Any, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index arrays for ``x[...]`` that correspond to take_along_axis."""
    along, rank = axis % len(shape), len(shape)
    grid = [xp.reshape(xp.arange(n), (-1, *(1,) * (rank - i - 1))) for i, n in enumerate(shape)]
    grid[along] = indices
    return tuple(grid)


def along_axis(xp: Any, x: Any, indices: Any, axis: int) -> Any:
    """Return ``xp.take_along_axis``, which libraries of the standard before 2024 lack."""
    own = getattr(xp, "take_along_axis", None)
    if own is not None:
        return own(x, indices, axis=axis)
    return picked(xp, x, index_along_axis(xp, x.shape, indices, axis))


def writes_by_arrays(xp: Any, x: Any) -> bool:
    """Return whether a library can assign at index arrays; the array API cannot."""
    return hasattr(x, "at") or hasattr(getattr(xp, "add", None), "at")


#: Where arrays and integers stand, which together give one group of axes.
_GROUP = object()


def _axes_and_groups(xp: Any, x: Any, where: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Return the parts of an index in order, and its arrays, each with the axis that it reads.

    A slice is given as the positions that it selects, without signs.
    """
    used = sum(_used(part) for part in where)
    rest = [slice(None)] * (x.ndim - used)
    at = next((i for i, part in enumerate(where) if part is Ellipsis), len(where))
    axes: list[Any] = []
    groups: list[Any] = []
    axis = 0
    for part in (*where[:at], *rest, *where[at + 1 :]):
        if part is None:
            axes.append((None, axis))
        elif isinstance(part, slice):
            line = np.arange(x.shape[axis])[part]
            axes.append((xp.asarray(line), axis))
        else:
            mask = not isinstance(part, int) and kind_of(part.dtype) == "b"
            for found in xp.nonzero(part) if mask else (part,):
                groups.append((_counted(xp, found, x.shape[axis], axis), axis))
                axis += 1
            axes.append((_GROUP, axis))
            continue
        axis += _used(part)
    return axes, groups


def _used(part: Any) -> int:
    """Return the number of axes that a part of an index reads."""
    if part is None or part is Ellipsis:
        return 0
    if isinstance(part, (int, slice)) or kind_of(part.dtype) != "b":
        return 1
    return int(part.ndim)


def _counted(xp: Any, places: Any, size: int, axis: int) -> Any:
    """Return positions counted from the start; raise if they are known not to exist."""
    places = xp.astype(xp.asarray(places), xp.int64)
    wrong = xp.any((places < -size) | (places >= size))
    if at_hand(wrong, unknown=False):
        raise IndexError(f"an index is out of bounds for axis {axis} with size {size}")
    return xp.where(places < 0, places + size, places)


# -- writing by index ------------------------------------------------------------------------------


def complete(where: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with an entry for every axis, as the array API requires."""
    return where if any(part is Ellipsis for part in where) else (*where, Ellipsis)


def put(out: Any, where: Any, values: Any, add: bool = False) -> Any:
    """Return ``out`` with ``values`` in, or added to, ``out[where]``, in place if possible.

    ``where`` selects no element twice. Immutable arrays use JAX's ``out.at[where].set``.

    Parameters
    ----------
    out
        An array that the kernel made and that no other code uses.
    where
        An index of slices, integers, or one mask.
    values
        Values that broadcast to ``out[where]``.
    add
        Whether to add the values to the elements instead of replacing them.
    """
    places = getattr(out, "at", None)
    if places is not None:
        return places[where].add(values) if add else places[where].set(values)
    if add:
        out[where] += values
    else:
        out[where] = values
    return out


def scatter_add(
    xp: Any, out: Any, where: Any, values: Any, pick: Callable[[Any], Any] | None = None
) -> Any:
    """Return ``out`` with ``values`` added at ``where``, in place if possible.

    Values at repeated positions add up, those in ``float16`` in ``float32``. ``pick(x)`` is
    ``x[where]``, where there is a shorter way than :func:`picked`.
    """
    return _scatter_add(xp, out, values, where=where, pick=pick)


@in_float32
def _scatter_add(xp: Any, out: Any, values: Any, *, where: Any, pick: Any) -> Any:
    places = getattr(out, "at", None)
    if places is not None:
        return places[where].add(values)
    add_at = getattr(getattr(xp, "add", None), "at", None)
    if add_at is not None:
        add_at(out, where, values)
        return out
    # The array API has no such function: a matrix product adds every value at its position.
    size = prod(out.shape)
    numbers = xp.reshape(xp.arange(size), out.shape)
    places = picked(xp, numbers, where) if pick is None else pick(numbers)
    hits = xp.reshape(places, (1, -1)) == xp.reshape(xp.arange(size), (-1, 1))
    added = xp.astype(hits, values.dtype) @ xp.reshape(values, (-1,))
    return out + xp.reshape(added, out.shape)
