"""What each kind of parameter is given: functions of the call's ``Draw``, by name."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .arguments import Array, Code
from .draw import DTYPES, Draw

__all__ = ["BY_NAME", "KINDS", "OTHERS", "Kind", "words"]

Kind = Callable[[Draw], Any]

#: Kinds by name.
KINDS: dict[str, Kind] = {}


def kind(function: Kind) -> Kind:
    """Register a kind by the name of its function."""
    KINDS[function.__name__.rstrip("_")] = function
    return function


# -- arrays ----------------------------------------------------------------------------------------


@kind
def array(d: Draw) -> Any:
    """Any array; the first is in few calls a Python number."""
    if d.first is None and not d.tensor_first and d.chance(0.03):
        return d.scalar("ifcb")
    return d.array()


@kind
def like(d: Draw) -> Any:
    """What broadcasts with the first array: an array or a Python number."""
    if d.chance(0.15):
        return d.scalar("iifcb")
    return d.array(d.beside(d.x.shape))


@kind
def small_integers(d: Draw) -> Any:
    """Integers that broadcast with the first array."""
    if d.chance(0.2):
        return d.integer(-3, 8)
    values = d.values(d.beside(d.x.shape), d.pick(("int64", "int32", "int8")), plain=True)
    return d.wrap(np.clip(values, -5, 8))


@kind
def same(d: Draw) -> Any:
    """An array of the first one's shape."""
    return d.array((*d.x.shape, 2) if d.mistake() else d.x.shape)


@kind
def vector(d: Draw) -> Any:
    return d.array(d.shape(1, 1))


@kind
def filled_vector(d: Draw) -> Any:
    return d.array((d.integer(1, 5),) if not d.mistake() else d.shape())


@kind
def points(d: Draw) -> Any:
    """Real numbers on a line, different from one another."""
    count = d.integer(1, 5)
    values = np.cumsum([d.pick((0.25, 0.5, 1.0, 2.0)) for _ in range(count)]) - 1.0
    return d.wrap(values.astype(d.pick(("float64", "float32"))))


@kind
def points_too(d: Draw) -> Any:
    """As many real numbers as the points that came before."""
    count = d.given["xp"].values.shape[0] + d.mistake()
    return d.array((count,), kinds="iuf")


@kind
def real(d: Draw) -> Any:
    return d.array(kinds="biuf")


@kind
def at_least_one(d: Draw) -> Any:
    return d.array(d.shape(1))


@kind
def at_least_two(d: Draw) -> Any:
    return d.array(d.shape(2))


@kind
def at_least_three(d: Draw) -> Any:
    return d.array(d.shape(3))


@kind
def at_most_two(d: Draw) -> Any:
    return d.array(d.shape(1, 2))


@kind
def mask(d: Draw) -> Any:
    """Truth values that broadcast to the first array."""
    shape = d.x.shape
    cut = d.integer(0, len(shape)) if d.chance(0.4) else 0
    shape = tuple(1 if d.chance(0.2) else n for n in shape[cut:])
    return d.wrap(d.values((*shape, 7) if d.mistake() else shape, "bool"))


@kind
def mask_first(d: Draw) -> Any:
    return d.array(dtype="bool" if d.chance(0.8) else d.dtype)


@kind
def flags_along(d: Draw) -> Any:
    """Truth values along the axis that was drawn before (of the flattened array if none)."""
    axis = d.given.get("axis")
    try:
        size = d.x.size if axis is None else d.x.shape[axis]
    except (IndexError, TypeError):
        size = 2
    return d.wrap(d.values((max(0, size - d.integer(0, 1)) + 3 * d.mistake(),), "bool"))


@kind
def masks(d: Draw) -> Any:
    """A list of conditions."""
    d.first = np.zeros(d.shape())
    return [d.wrap(d.values(d.x.shape, "bool")) for _ in range(d.integer(1, 3))]


@kind
def choices(d: Draw) -> Any:
    """As many arrays as there are conditions."""
    count = len(d.given["condlist"]) + d.mistake()
    return [d.array(d.x.shape) for _ in range(count)]


@kind
def arrays(d: Draw) -> Any:
    """Several arrays of one shape."""
    shape = d.shape(1)
    made = [d.array(shape)]
    for _ in range(d.integer(0, 2)):
        made.append(d.array((*shape, 2) if d.mistake() else shape))
    return made if d.chance(0.5) else tuple(made)


@kind
def arrays_but_one_axis(d: Draw) -> Any:
    """Several arrays whose shapes differ along the axis of the call."""
    shape = d.shape(1)
    made = [d.array(shape)]
    axis = d.axis()
    d.given["axis"] = axis
    for _ in range(d.integer(0, 2)):
        sizes = list(shape)
        if type(axis) is int and -len(shape) <= axis < len(shape):
            sizes[axis] = d.integer(0, 3)
        if d.mistake():
            sizes.append(2)
        made.append(d.array(sizes))
    return made


@kind
def axis_of_arrays(d: Draw) -> Any:
    """The axis along which those shapes differ."""
    return d.given["axis"]


@kind
def columns(d: Draw) -> Any:
    """Arrays for column_stack and its kin: of one shape."""
    shape = d.shape(0, 3)
    return [d.array(shape) for _ in range(d.integer(1, 3))]


@kind
def nested(d: Draw) -> Any:
    """Blocks: rows of arrays of one shape."""
    shape = d.shape(0, 2)
    rows = d.integer(1, 2)
    made = [[d.array(shape) for _ in range(2)] for _ in range(rows)]
    return made if d.chance(0.7) else made[0]


@kind
def several(d: Draw) -> Any:
    """Arrays that broadcast with each other, given one by one."""
    made = [d.array()]
    for _ in range(d.integer(0, 2)):
        made.append(d.array(d.beside(d.x.shape)))
    return made


@kind
def vectors(d: Draw) -> Any:
    return [d.array(d.shape(0, 1)) for _ in range(d.integer(1, 3))]


# -- matrices --------------------------------------------------------------------------------------


def well(d: Draw, shape: tuple[int, ...], dtype: str) -> Any:
    """Return matrices whose inverse is no large one."""
    values = d.values(shape, dtype, plain=True)
    if values.dtype.kind in "fciu" and shape[-1] == shape[-2]:
        values = values % 3 if values.dtype.kind in "iu" else np.clip(values.real, -3, 3)
        values = (values + 6 * np.eye(shape[-1])).astype(dtype)
    return values


def matrix_dtype(d: Draw) -> str:
    """Return a dtype of linear algebra."""
    common = ("float64", "float64", "float32", "complex128", "complex64", "int64")
    chosen: str = d.pick(DTYPES) if d.chance(0.1) else d.pick(common)
    return chosen


@kind
def square(d: Draw) -> Any:
    """Square matrices, in few calls singular ones or none."""
    n = d.integer(1, 4) if d.chance(0.95) else 0
    shape = (*d.shape(0, 2)[: d.integer(0, 2)], n, n)
    if d.mistake():
        shape = d.pick(((n + 1, n), (n,), ()))
    dtype = matrix_dtype(d)
    if len(shape) < 2 or d.chance(0.05):
        return d.wrap(np.zeros(shape, dtype))
    return d.wrap(well(d, shape, dtype))


@kind
def symmetric(d: Draw) -> Any:
    """Symmetric (Hermitian) matrices with positive eigenvalues."""
    made = square(d)
    values = made.values
    if values.ndim < 2 or values.shape[-1] != values.shape[-2]:
        return made
    other = np.conj(np.swapaxes(values, -1, -2))
    kind_ = values.dtype.kind
    values = (values // 2 + other // 2) if kind_ in "iu" else values if kind_ == "b" else None
    if values is None:
        values = ((made.values + other) / 2).astype(made.values.dtype)
    d.first = values
    return made.with_values(values)


@kind
def matrix(d: Draw) -> Any:
    """Matrices of full rank."""
    shape = (*d.shape(0, 1), d.integer(1, 4), d.integer(1, 4))
    if d.mistake():
        shape = d.pick(((2,), (), (0, 3), (2, 0)))
    dtype = matrix_dtype(d)
    values = d.values(shape, dtype, plain=True)
    if values.ndim >= 2 and values.dtype.kind != "b":
        values = (values % 4 if values.dtype.kind in "iu" else values) + 5 * np.eye(*shape[-2:])
    return d.wrap(values.astype(dtype))


@kind
def right_side(d: Draw) -> Any:
    """What equations with the first matrices are solved for."""
    n = d.x.shape[-1] if d.x.ndim else 2
    if d.mistake():
        n += 1
    dtype = d.x.dtype.name if d.chance(0.6) else matrix_dtype(d)
    shape = (*d.x.shape[:-2], n, d.integer(1, 3)) if d.chance(0.6) else (n,)
    return d.wrap(d.values(shape, dtype, plain=True))


@kind
def right_side_rows(d: Draw) -> Any:
    """What an overdetermined system is solved for."""
    n = d.x.shape[0] if d.x.ndim else 2
    shape = (n + d.mistake(), d.integer(1, 3)) if d.chance(0.5) else (n,)
    return d.wrap(d.values(shape, d.x.dtype.name, plain=True))


@kind
def plain_matrix(d: Draw) -> Any:
    shape = (d.integer(1, 4), d.integer(1, 4)) if not d.mistake() else (2, 2, 2)
    values = d.values(shape, matrix_dtype(d), plain=True)
    return d.wrap(values)


@kind
def factor(d: Draw) -> Any:
    """What is multiplied with the first array by ``matmul``."""
    x = d.x.shape
    if not x:
        return d.array(d.shape(1, 2) if not d.mistake() else ())
    inner = x[-1] + d.mistake()
    if d.chance(0.3):
        return d.array((inner,))
    batch = x[:-2] if d.chance(0.5) else ()
    return d.array((*batch, inner, d.pick(SIZES_OF_PRODUCTS)))


SIZES_OF_PRODUCTS = (0, 1, 2, 3, 3)


@kind
def dotted(d: Draw) -> Any:
    """What is multiplied with the first array by ``dot``."""
    x = d.x.shape
    if not x or d.chance(0.1):
        return d.array(d.shape()) if d.chance(0.5) else d.scalar()
    inner = x[-1] + d.mistake()
    return d.array((inner,) if d.chance(0.4) else (*d.shape(0, 1), inner, d.integer(1, 3)))


@kind
def inner_(d: Draw) -> Any:
    """An array with the same last axis."""
    x = d.x.shape
    if not x:
        return d.array(())
    return d.array((*d.shape(0, 2), x[-1] + d.mistake()))


@kind
def same_vector(d: Draw) -> Any:
    """For ``matvec``: a vector, or several, as long as the matrix is wide."""
    width = (d.x.shape[-1] if d.x.ndim else 1) + d.mistake()
    return d.array((*d.x.shape[:-2], width) if d.chance(0.5) else (width,))


@kind
def vecmat_matrix(d: Draw) -> Any:
    height = (d.x.shape[-1] if d.x.ndim else 1) + d.mistake()
    return d.array((*d.x.shape[:-1], height, d.integer(1, 3)) if d.chance(0.3) else (height, 2))


@kind
def of_threes(d: Draw) -> Any:
    """Vectors of three (in few calls two) numbers."""
    shape = (*d.shape(0, 2), d.pick((3, 3, 3, 2)))
    return d.array((*shape[:-1], 4) if d.mistake() else shape)


@kind
def of_threes_too(d: Draw) -> Any:
    last = d.x.shape[-1] if d.x.ndim and d.x.shape[-1] in (2, 3) else 3
    batch = d.x.shape[:-1] if d.chance(0.7) else ()
    return d.array((*batch, d.pick((last, last, 3))))


@kind
def tensordot_axes(d: Draw) -> Any:
    """The axes of the second array, drawn with the whole of the call."""
    return d.given.pop("_axes", 1)


@kind
def tensordot_other(d: Draw) -> Any:
    x = d.x.shape
    count = d.integer(0, min(2, len(x)))
    rest = d.shape(0, 1)
    if d.chance(0.5):
        d.given["_axes"] = count
        shape = (*x[len(x) - count :], *rest)
    else:
        mine = d.rng.sample(range(len(x)), count)
        d.given["_axes"] = (mine, list(range(count)))
        shape = (*(x[a] for a in mine), *rest)
    if d.mistake():
        shape = (*shape, 2)[::-1]
    return d.array(shape)


@kind
def chain(d: Draw) -> Any:
    """Matrices that are multiplied with each other."""
    sizes = [d.integer(1, 4) for _ in range(d.integer(3, 5))]
    made = [d.array((m, n + d.mistake())) for m, n in zip(sizes, sizes[1:])]
    return made


# -- numbers ---------------------------------------------------------------------------------------


@kind
def flag(d: Draw) -> Any:
    return d.pick((True, False, True))


@kind
def scalar(d: Draw) -> Any:
    if d.mistake():
        return d.pick(("a", None))
    return d.scalar()


@kind
def zero_d(d: Draw) -> Any:
    """A number, a Python one or an array."""
    return d.array(()) if d.chance(0.3) else d.scalar("iifc")


@kind
def bound(d: Draw) -> Any:
    return None if d.chance(0.2) else like(d)


@kind
def small(d: Draw) -> Any:
    return d.pick((1.5, "1")) if d.mistake() else d.integer(-3, 3)


@kind
def order(d: Draw) -> Any:
    return d.pick((-1, 1.5)) if d.mistake() else d.integer(0, 3)


@kind
def count(d: Draw) -> Any:
    return d.pick((-1, 2.5)) if d.mistake() else d.integer(0, 6)


@kind
def positive(d: Draw) -> Any:
    return d.pick((0, -1, 1.5)) if d.mistake() else d.integer(1, 6)


@kind
def decimals(d: Draw) -> Any:
    return d.pick((1.5, "2")) if d.mistake() else d.integer(-2, 3)


@kind
def tolerance(d: Draw) -> Any:
    return d.pick((0.0, 1e-5, 0.1, 1, 1e-8))


@kind
def cutoff(d: Draw) -> Any:
    """A singular value that is small beside the largest."""
    return d.pick((1e-8, 1e-5, 0.1, 0.5))


@kind
def step(d: Draw) -> Any:
    return d.pick((0.5, 1, 2.0, 0.1))


@kind
def period(d: Draw) -> Any:
    return 0 if d.mistake() else d.pick((2.0, 6.283185307179586, 4, 1.5))


@kind
def ddof(d: Draw) -> Any:
    return d.pick((0, 1, 1, 2, 0.5, 5))


@kind
def mean(d: Draw) -> Any:
    """The mean that a variance is taken about: of the first array, along the axis of the call."""
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return d.wrap(np.asarray(np.mean(d.x, axis=d.given.get("axis"), keepdims=True)))
    except (TypeError, ValueError):
        return d.wrap(np.zeros(()))


@kind
def probability(d: Draw) -> Any:
    """Quantiles."""
    if d.mistake():
        return d.pick((-0.1, 1.5, [0.5, 2.0]))
    if d.chance(0.5):
        return d.pick((0, 0.25, 0.5, 0.9, 1))
    return d.wrap(np.array([d.pick((0.0, 0.3, 0.5, 1.0)) for _ in range(d.integer(0, 3))]))


@kind
def percent(d: Draw) -> Any:
    if d.mistake():
        return d.pick((-1, 101))
    return d.pick((0, 25, 50.0, 90, 100, [10, 90.0]))


@kind
def dtype(d: Draw) -> Any:
    if d.mistake():
        return d.pick(("no such", "object"))
    return d.pick(DTYPES)


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
    rest = [a for a in range(d.x.ndim) if a not in (first, (first if type(first) is int else 0) + d.x.ndim)]
    return d.pick(rest) if rest and not d.mistake() else d.axis()


@kind
def moved(d: Draw) -> Any:
    """Axes to move, or a place for each of those that came before."""
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
    """A shape that the first array is broadcast to."""
    if d.mistake():
        return d.pick(((7,), (-1,), 1.5))
    shape_ = [d.integer(0, 3) if n == 1 and d.chance(0.6) else n for n in d.x.shape]
    lead = d.shape(0, 1) if len(shape_) < 4 else ()
    return (*lead, *shape_)


@kind
def reshaped(d: Draw) -> Any:
    """A shape of as many elements."""
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
    """Indices that choose among three arrays."""
    low, high = (-1, 3) if d.mistake() else (0, 1)
    values = np.array([d.integer(low, high) for _ in range(6)])
    made = values[: d.integer(1, 6)] if d.chance(0.6) else values.reshape(2, 3)
    return d.wrap(made.astype(d.pick(("int64", "int8", "uint8", "int32"))))


@kind
def chosen_from(d: Draw) -> Any:
    return [d.array(d.beside(d.x.shape)) for _ in range(d.integer(2, 3))]


def size_along(d: Draw) -> int:
    """Return how long the axis of the call is."""
    named = d.given.get("axis")
    if named is None:
        return d.x.size
    try:
        return d.x.shape[named]
    except (IndexError, TypeError):
        return 2


@kind
def indices(d: Draw) -> Any:
    """Indices along the axis that was drawn before."""
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
    """Indices of the first array's rank, along the axis that was drawn before."""
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
    """Places in the order along the axis of the call."""
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
    """Where to delete or insert."""
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
    return d.integer(0, 3) if d.chance(0.5) else tuple(d.integer(0, 2) for _ in range(d.integer(0, 4)))


@kind
def shifts(d: Draw) -> Any:
    """How far to roll: as many numbers as there are axes."""
    named = d.given.get("axis")
    if isinstance(named, tuple) and named and d.chance(0.7):
        return tuple(d.integer(-4, 4) for _ in range(len(named) + d.mistake()))
    return 1.5 if d.mistake() else d.integer(-5, 5)


@kind
def widths(d: Draw) -> Any:
    """How much to pad."""
    if d.mistake():
        return d.pick((-1, 1.5, ((1, 2), (3, 4), (5, 6), (7, 8), (1, 1))))
    if d.chance(0.4):
        return d.integer(0, 3)
    if d.chance(0.3):
        return (d.integer(0, 2), d.integer(0, 3))
    return tuple((d.integer(0, 2), d.integer(0, 3)) for _ in range(d.x.ndim)) or 0


@kind
def spacings(d: Draw) -> Any:
    """How far the points of ``gradient`` are from each other."""
    rank = d.x.ndim if d.given.get("axis") is None else 1
    if d.chance(0.4):
        return []
    if d.chance(0.6) or rank != 1:
        return [d.pick((0.5, 1, 2.0))] * d.pick((1, rank))
    n = size_along(d)
    return [d.wrap(np.cumsum([d.pick((0.5, 1.0, 2.0)) for _ in range(n + d.mistake())]))]


@kind
def dx_points(d: Draw) -> Any:
    """Where the values of ``trapezoid`` stand, along the axis of the call."""
    named = d.given.get("axis", -1)
    try:
        n = d.x.shape[named]
    except (IndexError, TypeError):
        n = 2
    return d.wrap(np.cumsum([d.pick((0.5, 1.0, 2.0)) for _ in range(n + d.mistake())]))


@kind
def weights(d: Draw) -> Any:
    """Weights of the first array's shape, or along the axis of the call."""
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
    """Integers from 0."""
    values = [d.integer(-1 if d.mistake() else 0, 5) for _ in range(d.integer(0, 6))]
    return d.wrap(np.array(values, d.pick(("int64", "int32", "int8")) if not d.mistake() else "float64"))


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


# -- words and functions ---------------------------------------------------------------------------


def words(*known: Any) -> Kind:
    """Return a kind that gives one of several words."""

    def word(d: Draw) -> Any:
        return d.pick(("no such", 7)) if d.mistake() else d.pick(known)

    return word


@kind
def function_along(d: Draw) -> Any:
    return Code(d.pick(("lambda v: xp.sum(v)", "lambda v: xp.cumsum(v)", "lambda v: v * 2")))


@kind
def function_list(d: Draw) -> Any:
    """Functions and numbers, one for each condition or one more."""
    count_ = len(d.given["condlist"]) + d.integer(0, 1) + 2 * d.mistake()
    some = (Code("lambda v: v * 2"), Code("lambda v: -v"), 1, 0)
    return [d.pick(some) for _ in range(count_)]


@kind
def conditions(d: Draw) -> Any:
    return [d.wrap(d.values(d.x.shape, "bool")) for _ in range(d.integer(1, 3))]


@kind
def no_device(d: Draw) -> Any:
    return None


@kind
def nothing(d: Draw) -> Any:
    """No further arguments."""
    return []


@kind
def lengths(d: Draw) -> Any:
    """Sizes of a transform along the axes of the call."""
    return tuple(d.integer(1, 5) for _ in range(d.integer(1, max(1, min(2, d.x.ndim)))))


@kind
def transformed(d: Draw) -> Any:
    values = d.values(d.shape(1), d.dtype, plain=d.chance(0.9))
    return d.wrap(values)


@kind
def transformed_two(d: Draw) -> Any:
    return d.wrap(d.values(d.shape(2), d.dtype, plain=d.chance(0.9)))


@kind
def norm_order(d: Draw) -> Any:
    return d.pick((None, 1, 2, -1, -2, np.inf, -np.inf, "fro", "nuc", 0, 3, 0.5))


@kind
def matrix_order(d: Draw) -> Any:
    return d.pick((None, 1, 2, -1, -2, np.inf, -np.inf, "fro"))


@kind
def vector_order(d: Draw) -> Any:
    return d.pick((1, 2, -1, -2, np.inf, -np.inf, 0, 3, 0.5))


@kind
def shapes(d: Draw) -> Any:
    made = [d.shape()]
    for _ in range(d.integer(0, 2)):
        made.append(d.beside(made[0]))
    return made


@kind
def points_of_fit(d: Draw) -> Any:
    """As many numbers as the first array has."""
    values = d.values((d.x.size + d.mistake(),), d.x.dtype.name, plain=True)
    return d.wrap(np.abs(values) + 0.5)


EINSUM = (
    ("ij,jk->ik", (2, 3), (3, 2)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("ij->ji", (2, 3)),
    ("i,i", (3,), (3,)),
    ("i,j->ij", (2,), (3,)),
    ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
    ("ij,jk,kl", (2, 3), (3, 2), (2, 2)),
    ("bij,bjk->bik", (2, 2, 3), (2, 3, 1)),
    ("ijk->", (2, 1, 3)),
    ("ij,ij->i", (2, 3), (2, 3)),
    ("ij,jk->ijk", (2, 0), (0, 2)),
    ("...->", (2, 3)),
    ("...i,i...->...", (2, 3), (3, 2)),
)


@kind
def einsum_call(d: Draw) -> Any:
    """Subscripts, beside which the shapes of the operands are noted."""
    subscripts, *shapes_ = d.pick(EINSUM)
    d.given["_shapes"] = shapes_
    return d.pick(("i->j", "ij,,", "i$")) if d.mistake() else subscripts


@kind
def einsum_operands(d: Draw) -> Any:
    return [d.array((*shape_, 2) if d.mistake() else shape_) for shape_ in d.given.pop("_shapes")]


@kind
def tensor_to_invert(d: Draw) -> Any:
    shape_ = d.pick(((2, 3, 6), (4, 2, 2), (2, 2, 2, 2), (3, 3), (6, 2, 3)))
    n = shape_[0] if shape_[0] in (4, 6) else int(np.sqrt(np.prod(shape_)))
    values = d.values((n, n), "float64", plain=True) + 8 * np.eye(n)
    return d.wrap(values.reshape(shape_).astype(d.pick(("float64", "float32", "complex128"))))


@kind
def halves(d: Draw) -> Any:
    return d.pick((0, -1)) if d.mistake() else d.pick((1, 2))


@kind
def tensor_side(d: Draw) -> Any:
    return d.array(d.x.shape[: 1 + (d.x.ndim == 4)], plain=True)


@kind
def index(d: Draw) -> Any:
    """What stands between brackets."""
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
            ends = [d.pick((None, d.integer(-n - 1, n + 1))) for _ in range(2)]
            parts.append(slice(*ends, 0 if d.mistake() else d.pick((None, None, 1, 2, -1, -2))))
        elif made == 5 and n:
            shape_ = d.pick(((2,), (1,), (3,), (2, 1)))
            listed = np.array([d.integer(-n, n - 1) for _ in range(math.prod(shape_))])
            value = listed.reshape(shape_).astype(d.pick(("int64", "int64", "int8", "uint8")) if n < 100 and listed.min() >= 0 else "int64")
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


#: The kind of a parameter that has such a name, unless the table of functions says another.
BY_NAME: dict[str, Kind] = {
    **{name: KINDS["array"] for name in "x a m v p z obj".split()},
    **{name: KINDS["like"] for name in "y b x2 values".split()},
    **{
        name: KINDS["flag"]
        for name in (
            "keepdims copy equal_nan rowvar bias density returned include_initial full_matrices "
            "hermitian compute_uv upper increasing endpoint return_index return_inverse "
            "return_counts return_indices assume_unique invert deg sparse retstep"
        ).split()
    },
    "N": KINDS["count"],
    "M": KINDS["count"],
    "a1": KINDS["vector"],
    "a2": KINDS["vector"],
    "arrays": KINDS["arrays"],
    "axes": KINDS["axes"],
    "axis": KINDS["axes"],
    "axis1": KINDS["axis"],
    "axis2": KINDS["other_axis"],
    "device": KINDS["no_device"],
    "casting": words("safe", "same_kind", "unsafe", "no", "equiv"),
    "mean": KINDS["mean"],
    "correction": KINDS["ddof"],
    "ddof": KINDS["ddof"],
    "decimals": KINDS["decimals"],
    "dtype": KINDS["dtype"],
    "initial": KINDS["scalar"],
    "k": KINDS["small"],
    "kind": words("quicksort", "stable", "mergesort", "heapsort"),
    "max": KINDS["bound"],
    "min": KINDS["bound"],
    "n": KINDS["positive"],
    "norm": words("ortho", "forward", "backward"),
    "num": KINDS["count"],
    "offset": KINDS["small"],
    "order": words("C", "F", "A", "K"),
    "rtol": KINDS["tolerance"],
    "atol": KINDS["tolerance"],
    "shape": KINDS["shape"],
    "stable": KINDS["flag"],
    "where": KINDS["mask"],
    "x1": KINDS["array"],
}

#: Kinds of arguments that NumPy's functions have and ours have not.
OTHERS: dict[str, Kind] = {
    **{name: BY_NAME[name] for name in "casting copy dtype stable where".split()},
    "order": lambda d: d.pick("CFAK"),
    "kind": lambda d: d.pick(("quicksort", "stable", "mergesort", "heapsort")),
    "like": KINDS["no_device"],
    "out": KINDS["no_device"],
    "overwrite_input": KINDS["flag"],
    "retstep": KINDS["flag"],
    "subok": KINDS["flag"],
}
