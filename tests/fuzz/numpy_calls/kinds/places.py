"""Kinds of axes, shapes and indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fuzz.numpy_calls.arguments import Array
from fuzz.numpy_calls.draw import Draw
from fuzz.numpy_calls.kinds.base import kind

__all__: list[str] = []  # they are found in the table of kinds


# -- axes, shapes, indices -------------------------------------------------------------------------


@kind
def axis(d: Draw) -> Any:
    return d.axis()


@kind
def axis_or_none(d: Draw) -> Any:
    return None if d.chance(0.2) else d.axis()


@kind
def axes(d: Draw) -> Any:
    return None if d.chance(0.1) else d.axes()


@kind
def new_axes(d: Draw) -> Any:
    return d.axes(d.x.ndim + 1) if d.chance(0.6) else d.axis(d.x.ndim + 1)


@kind
def size_one_axes(d: Draw) -> Any:
    ones = [i for i, n in enumerate(d.x.shape) if n == 1]
    return d.axes() if d.mistake() or not ones else d.pick(ones)


@kind
def permutation(d: Draw) -> Any:
    if d.mistake():
        return d.pick(((0,), (0, 0), (5, 1)))
    order = list(range(d.x.ndim))
    d.rng.shuffle(order)
    return tuple(a - d.x.ndim if d.chance(0.2) else a for a in order)


@kind
def two_axes(d: Draw) -> Any:
    if d.x.ndim < 2 or d.mistake():
        return d.pick(((0, 0), (0, 1), (0, 5)))
    return tuple(d.rng.sample(range(d.x.ndim), 2))


@kind
def other_axis(d: Draw) -> Any:
    """An axis different from ``axis1``, or from axis 0."""
    first = d.given.get("axis1", 0)
    rest = [
        a
        for a in range(d.x.ndim)
        if a not in (first, (first if type(first) is int else 0) + d.x.ndim)
    ]
    return d.pick(rest) if rest and not d.mistake() else d.axis()


@kind
def moved(d: Draw) -> Any:
    """Axes to move, or a destination for each of the axes before."""
    source = d.given.get("source")
    if source is None:
        return d.axes()
    if isinstance(source, tuple):
        return tuple(d.rng.sample(range(d.x.ndim), len(source)))[: len(source) - d.mistake()]
    return d.axis()


@kind
def shape(d: Draw) -> Any:
    if d.mistake():
        return d.pick(((-1, 2), (1.5,), "a", -1))
    return d.integer(0, 4) if d.chance(0.2) else d.shape(0, 3)


@kind
def wide(d: Draw) -> Any:
    """A shape to which the first array can be broadcast."""
    if d.mistake():
        return d.pick(((7,), (-1,), 1.5))
    shape_ = [d.integer(0, 3) if n == 1 and d.chance(0.6) else n for n in d.x.shape]
    lead = d.shape(0, 1) if len(shape_) < 4 else ()
    return (*lead, *shape_)


@kind
def reshaped(d: Draw) -> Any:
    """A shape with the same number of elements."""
    size = d.x.size
    if d.mistake():
        return d.pick(((-1, -1), (size + 1,), (2.0, -1), (-2,)))
    if size == 0 or d.chance(0.2):
        return d.pick((-1, (-1,), (size,), d.x.shape[::-1], size))
    divisor = d.pick([n for n in range(1, size + 1) if size % n == 0])
    made = [divisor, size // divisor]
    if d.chance(0.4):
        made[d.integer(0, 1)] = -1
    if d.chance(0.3):
        made.insert(d.integer(0, 2), 1)
    return tuple(made)


@kind
def index_first(d: Draw) -> Any:
    """Indices that choose between three arrays."""
    low, high = (-1, 3) if d.mistake() else (0, 1)
    values = np.array([d.integer(low, high) for _ in range(6)])
    made = values[: d.integer(1, 6)] if d.chance(0.6) else values.reshape(2, 3)
    return d.wrap(made.astype(d.pick(("int64", "int8", "uint8", "int32"))))


@kind
def chosen_from(d: Draw) -> Any:
    made = [d.array(d.beside(d.x.shape)) for _ in range(d.integer(2, 3))]
    return [*made[1:], d.scalar("iif")] if d.chance(0.1) else made


def size_along(d: Draw) -> int:
    """Return the size of the axis of the call."""
    named = d.given.get("axis")
    if named is None:
        return d.x.size
    try:
        return d.x.shape[named]
    except (IndexError, TypeError):
        return 2


@kind
def indices(d: Draw) -> Any:
    """Indices along the axis drawn before."""
    n = size_along(d)
    if d.mistake():
        return d.pick((n, -n - 1, 1.5, [0.5]))
    if n == 0:
        return d.wrap(np.zeros(d.pick(((0,), (0, 2))), "int64"))
    if d.chance(0.3):
        return d.integer(-n, n - 1)
    shape_ = d.shape(0, 2)
    size = math.prod(shape_)
    made = np.array([d.integer(-n, n - 1) for _ in range(size)], "int64").reshape(shape_)
    return d.wrap(made.astype(d.pick(("int64", "int64", "int32", "int16"))))


@kind
def indices_along(d: Draw) -> Any:
    """Indices with the first array's rank, along the axis drawn before."""
    n = size_along(d)
    named = d.given.get("axis")
    if named is None:
        return indices_vector(d, n)
    sizes = list(d.x.shape)
    if type(named) is int and -len(sizes) <= named < len(sizes):
        sizes[named] = d.integer(1, 3)
    if n == 0:
        return d.wrap(np.zeros(d.x.shape, "int64"))
    low, high = (n, n + 1) if d.mistake() else (-n, n - 1)
    made = [d.integer(low, high) for _ in range(math.prod(sizes))]
    return d.wrap(np.array(made, "int64").reshape(sizes))


def indices_vector(d: Draw, n: int) -> Array:
    """Return a vector of indices into a flattened array."""
    made = [d.integer(-n, n - 1) for _ in range(d.integer(1, 4))] if n else []
    return d.wrap(np.array(made, "int64"))


@kind
def put_values(d: Draw) -> Any:
    return d.scalar("i") if d.chance(0.5) else d.array((1,) * max(1, d.x.ndim))


@kind
def nth(d: Draw) -> Any:
    """Positions in the order along the axis of the call."""
    n = size_along(d)
    if d.mistake() or not n:
        return d.pick((n, -n - 1, 1.5))
    return d.integer(-n, n - 1) if d.chance(0.7) else [d.integer(0, n - 1) for _ in range(2)]


@kind
def sorted_vector(d: Draw) -> Any:
    values = d.values((d.integer(0, 5),), d.dtype)
    return d.wrap(np.sort(values))


@kind
def sorter(d: Draw) -> Any:
    return d.wrap(np.argsort(d.x))


@kind
def edited(d: Draw) -> Any:
    """Positions to delete or insert at."""
    n = size_along(d)
    if d.mistake():
        return d.pick((n + 1, -n - 2, 1.5))
    made = d.integer(0, 3)
    if not n or made == 0:
        return 0 if d.chance(0.5) else slice(0, n, 2)
    if made == 1:
        return d.integer(-n, n - 1)
    if made == 2:
        return [d.integer(-n, n - 1) for _ in range(d.integer(0, 3))]
    return slice(d.integer(0, n), d.integer(0, n), d.pick((1, 2, -1, None)))


@kind
def sections(d: Draw) -> Any:
    n = size_along(d) if d.given.get("axis") is not None else (d.x.shape[0] if d.x.ndim else 1)
    if d.mistake():
        return d.pick((0, -1, 1.5, n + 1))
    if d.chance(0.5):
        return d.pick([k for k in range(1, n + 1) if n % k == 0] or [1])
    return sorted(d.integer(-1, n + 1) for _ in range(d.integer(0, 3)))


@kind
def repeats(d: Draw) -> Any:
    n = size_along(d)
    if d.mistake():
        return d.pick((-1, 1.5, [1] * (n + 1)))
    if d.chance(0.6):
        return d.integer(0, 3)
    return [d.integer(0, 2) for _ in range(n)]


@kind
def reps(d: Draw) -> Any:
    if d.mistake():
        return d.pick((-1, 1.5, (1, -1)))
    return (
        d.integer(0, 3) if d.chance(0.5) else tuple(d.integer(0, 2) for _ in range(d.integer(0, 4)))
    )


@kind
def shifts(d: Draw) -> Any:
    """Distances to roll by, one for each axis."""
    named = d.given.get("axis")
    if isinstance(named, tuple) and named and d.chance(0.7):
        return tuple(d.integer(-4, 4) for _ in range(len(named) + d.mistake()))
    return 1.5 if d.mistake() else d.integer(-5, 5)


@kind
def widths(d: Draw) -> Any:
    """Widths of padding."""
    if d.mistake():
        return d.pick((-1, 1.5, ((1, 2), (3, 4), (5, 6), (7, 8), (1, 1))))
    if d.chance(0.4):
        return d.integer(0, 3)
    if d.chance(0.3):
        return (d.integer(0, 2), d.integer(0, 3))
    return tuple((d.integer(0, 2), d.integer(0, 3)) for _ in range(d.x.ndim)) or 0


@kind
def spacings(d: Draw) -> Any:
    """The distances between the points of ``gradient``."""
    rank = d.x.ndim if d.given.get("axis") is None else 1
    if d.chance(0.4):
        return []
    if d.chance(0.6) or rank != 1:
        return [d.pick((0.5, 1, 2.0))] * d.pick((1, rank))
    n = size_along(d)
    return [d.wrap(np.cumsum([d.pick((0.5, 1.0, 2.0)) for _ in range(n + d.mistake())]))]


@kind
def dx_points(d: Draw) -> Any:
    """The coordinates of the values of ``trapezoid``, along the axis of the call."""
    named = d.given.get("axis", -1)
    try:
        n = d.x.shape[named]
    except (IndexError, TypeError):
        n = 2
    return d.wrap(np.cumsum([d.pick((0.5, 1.0, 2.0)) for _ in range(n + d.mistake())]))


@kind
def weights(d: Draw) -> Any:
    """Weights with the first array's shape, or along the axis of the call."""
    named = d.given.get("axis")
    shape_ = d.x.shape
    if type(named) is int and -len(shape_) <= named < len(shape_) and d.chance(0.6):
        shape_ = (shape_[named],)
    values = np.abs(d.values((*shape_, 2) if d.mistake() else shape_, "float64", plain=True))
    return d.wrap(values + 0.5)


@kind
def frequency_weights(d: Draw) -> Any:
    n = d.x.shape[-1] if d.x.ndim else 1
    return d.wrap(np.array([d.integer(1, 3) for _ in range(n + d.mistake())]))


@kind
def analytic_weights(d: Draw) -> Any:
    n = d.x.shape[-1] if d.x.ndim else 1
    return d.wrap(np.array([d.pick((0.5, 1.0, 2.0)) for _ in range(n + d.mistake())]))


@kind
def counts(d: Draw) -> Any:
    """Integers of at least 0."""
    values = [d.integer(-1 if d.mistake() else 0, 5) for _ in range(d.integer(0, 6))]
    return d.wrap(
        np.array(values, d.pick(("int64", "int32", "int8")) if not d.mistake() else "float64")
    )


@kind
def count_weights(d: Draw) -> Any:
    return d.array((d.x.size + d.mistake(),), kinds="biuf")


@kind
def bins(d: Draw) -> Any:
    if d.mistake():
        return d.pick((0, -1, [3, 1], "none"))
    if d.chance(0.4):
        return d.integer(1, 6)
    if d.chance(0.3):
        return d.pick(("auto", "fd", "sturges", "sqrt", "rice", "scott", "doane"))
    return sorted(d.pick((-3, -1.0, 0, 0.5, 1, 2.0, 4)) for _ in range(d.integer(2, 4)))


@kind
def range_(d: Draw) -> Any:
    return d.pick(((2, 1), (0, np.inf))) if d.mistake() else d.pick(((0, 1), (-2.0, 3), (1, 1)))


@kind
def finite_real(d: Draw) -> Any:
    shape_ = d.shape()
    values = d.values(shape_, d.dtype, plain=not d.chance(0.05))
    return d.wrap(values)


@kind
def index(d: Draw) -> Any:
    """An index for square brackets."""
    rank = d.x.ndim
    if rank and d.chance(0.12):
        return d.wrap(d.values(d.x.shape[: d.integer(1, rank)], "bool"))
    parts: list[Any] = []
    used = 0
    while used < rank and d.chance(0.75):
        n = d.x.shape[used]
        made = d.integer(0, 7)
        if made <= 1:
            parts.append(d.integer(-n, n - 1) if n and not d.mistake() else n)
        elif made <= 4:
            start, stop = (d.pick((None, d.integer(-n - 1, n + 1))) for _ in range(2))
            parts.append(
                slice(start, stop, 0 if d.mistake() else d.pick((None, None, 1, 2, -1, -2)))
            )
        elif made == 5 and n:
            shape_ = d.pick(((2,), (1,), (3,), (2, 1)))
            listed = np.array([d.integer(-n, n - 1) for _ in range(math.prod(shape_))])
            value = listed.reshape(shape_).astype(
                d.pick(("int64", "int64", "int8", "uint8"))
                if n < 100 and listed.min() >= 0
                else "int64"
            )
            parts.append(d.pick((d.wrap(value), value.tolist())))
        elif made == 6:
            parts.append(None)
            used -= 1
        else:
            parts.append(slice(None))
        used += 1
    if Ellipsis not in parts and d.chance(0.1):
        parts.append(Ellipsis)
    if d.mistake():
        return d.pick((1.5, "a", (0,) * (rank + 1), (Ellipsis, Ellipsis), [0.5]))
    return parts[0] if len(parts) == 1 and d.chance(0.8) else tuple(parts)


@kind
def item_index(d: Draw) -> Any:
    return [d.integer(-n, max(0, n - 1)) for n in d.x.shape] if d.chance(0.6) else []
