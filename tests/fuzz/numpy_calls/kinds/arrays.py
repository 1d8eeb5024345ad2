"""Kinds of arrays and of numbers."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fuzz.numpy_calls.arguments import Code
from fuzz.numpy_calls.draw import DTYPES, Draw
from fuzz.numpy_calls.kinds.base import kind

__all__: list[str] = []  # they are found in the table of kinds


# -- arrays ----------------------------------------------------------------------------------------


@kind
def array(d: Draw) -> Any:
    """Any array; in few calls the first one is a Python number."""
    if d.first is None and not d.tensor_first and d.chance(0.03):
        return d.scalar("ifcb")
    return d.array()


@kind
def like(d: Draw) -> Any:
    """An array or a Python number that broadcasts with the first array."""
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
    """An array with the shape of the first one."""
    return d.array((*d.x.shape, 2) if d.mistake() else d.x.shape)


@kind
def vector(d: Draw) -> Any:
    return d.array(d.shape(1, 1))


@kind
def filled_vector(d: Draw) -> Any:
    return d.array((d.integer(1, 5),) if not d.mistake() else d.shape())


@kind
def points(d: Draw) -> Any:
    """Distinct real numbers."""
    count = d.integer(1, 5)
    values = np.cumsum([d.pick((0.25, 0.5, 1.0, 2.0)) for _ in range(count)]) - 1.0
    return d.wrap(values.astype(d.pick(("float64", "float32"))))


@kind
def points_too(d: Draw) -> Any:
    """As many real numbers as there are points before."""
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
    """Booleans that broadcast to the first array."""
    shape = d.x.shape
    cut = d.integer(0, len(shape)) if d.chance(0.4) else 0
    shape = tuple(1 if d.chance(0.2) else n for n in shape[cut:])
    return d.wrap(d.values((*shape, 7) if d.mistake() else shape, "bool"))


@kind
def mask_first(d: Draw) -> Any:
    return d.array(dtype="bool" if d.chance(0.8) else d.dtype)


@kind
def flags_along(d: Draw) -> Any:
    """Booleans along the axis drawn before (of the flattened array if there is none)."""
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
    return [d.scalar("iif") if d.chance(0.15) else d.array(d.x.shape) for _ in range(count)]


@kind
def arrays(d: Draw) -> Any:
    """Several arrays of one shape."""
    shape = d.shape(1)
    made = [d.array(shape)]
    more = d.integer(0, 2)
    made.extend(d.array((*shape, 2) if d.mistake() else shape) for _ in range(more))
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
    """Arrays of one shape, for functions such as column_stack."""
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
    """Arrays that broadcast with each other, as separate arguments."""
    made = [d.array()]
    made.extend(d.array(d.beside(d.x.shape)) for _ in range(d.integer(0, 2)))
    return made


@kind
def edges(d: Draw) -> Any:
    """Ascending or descending numbers."""
    values = np.sort(d.values((d.integer(1, 4),), "float64", plain=True))
    return d.array((3, 2)) if d.mistake() else d.wrap(values[:: d.pick((1, -1))].copy())


@kind
def keys(d: Draw) -> Any:
    """Several arrays of one shape, or one of at least two axes."""
    return d.array(d.shape(1, 3)) if d.chance(0.4) else arrays(d)


@kind
def filling(d: Draw) -> Any:
    """The values for a diagonal: a number, or several."""
    return d.scalar("iif") if d.chance(0.5) else d.array((d.integer(0, 3),), d.x.dtype.name)


@kind
def vectors(d: Draw) -> Any:
    return [d.array(d.shape(0, 1)) for _ in range(d.integer(1, 3))]


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
    """A Python number, or an array without axes."""
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
    """A singular value that is small compared with the largest."""
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
    """The mean for a variance: that of the first array, along the axis of the call."""
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


# -- functions and lists ---------------------------------------------------------------------------


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
def device(d: Draw) -> Any:
    return "cpu" if d.chance(0.1) else None


@kind
def out(d: Draw) -> Any:
    """The array for a result: none, or a tensor, which is refused."""
    # never without axes: np.cumsum(1.0, -1, out=np.zeros(())) crashes Python (NumPy 2.4)
    return Code(f"xp.zeros({d.x.shape or (1,)})") if d.chance(0.5) else None


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
