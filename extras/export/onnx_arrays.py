"""Arrays that build ONNX: portable kernels run on them when a graph is exported.

They wrap the arrays of ``ndonnx``, whose functions build the nodes, and add what kernels expect:
NumPy's dtypes and promotion, arithmetic with unknown sizes, and assignment to elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import spox.opset.ai.onnx.v21 as onnx

from ..core.extend import BINARY, COMPARISONS, UNARY, Open

_SCALARS = (bool, int, float)


class Array:
    """An array of a model, with a NumPy dtype; its sizes are integers or unknown.

    Parameters
    ----------
    xp
        The namespace that it belongs to.
    inner
        The array of ndonnx.
    """

    __slots__ = ("inner", "turned", "xp")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    traced = True

    if TYPE_CHECKING:  # they are set below
        __add__: Any
        __and__: Any
        __eq__: Any
        __ge__: Any
        __gt__: Any
        __invert__: Any
        __le__: Any
        __lt__: Any
        __matmul__: Any
        __mul__: Any
        __neg__: Any
        __or__: Any
        __radd__: Any
        __rmul__: Any
        __rsub__: Any
        __rtruediv__: Any
        __sub__: Any
        __truediv__: Any

    def __init__(self, xp: Any, inner: Any) -> None:
        self.xp = xp
        self.inner = inner
        #: If this is a transpose: the original array and the axes. An assignment resets it.
        self.turned: tuple[Array, list[int]] | None = None

    @property
    def var(self) -> Any:
        """The ONNX value of this array."""
        return self.inner.unwrap_spox()

    @property
    def at(self) -> At:
        """Writes into a copy: ``x.at[where].set(values)``, ``x.at[where].add(values)``."""
        return At(self, None)

    @property
    def array(self) -> Array:
        """The array itself, for code that reads sizes from tensors."""
        return self

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.inner.dtype.unwrap_numpy()

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.xp.sizes.shape(self.inner)

    @property
    def ndim(self) -> int:
        return len(self.inner.shape)

    @property
    def size(self) -> Any:
        return prod(self.shape)

    @property
    def mT(self) -> Array:
        return self.xp.matrix_transpose(self)

    @property
    def T(self) -> Array:
        return self.xp.permute_dims(self, tuple(range(self.ndim))[::-1])

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        return self.xp.astype(self, dtype)

    def as_size(self, name: str) -> Any:
        """Return the value of an integer array as a size."""
        try:
            return int(self.inner.unwrap_numpy())
        except ValueError:
            return self.xp.sizes.value(self.inner)

    def __getitem__(self, key: Any) -> Array:
        found, arrays = parsed(self, key)
        return gathered(self, found, arrays) if arrays else cut(self, found)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._become(self.at[key].set(value))

    def _become(self, other: Array) -> Array:
        self.inner, self.turned = other.inner, None
        return self

    def __len__(self) -> int:
        return operator.index(self.shape[0])

    def __iter__(self) -> Any:
        return (self[i, ...] for i in range(self.shape[0]))

    def __bool__(self) -> bool:
        return bool(self._value())

    def __int__(self) -> int:
        return int(self._value())

    __index__ = __int__

    def __float__(self) -> float:
        return float(self._value())

    def _value(self) -> Any:
        try:
            return self.inner.unwrap_numpy()
        except ValueError:
            raise TypeError("its kernel needs a value in Python that only a run has") from None


def _operator(name: str, swapped: bool = False, inplace: bool = False) -> Callable[..., Any]:
    def method(self: Array, *other: Any) -> Any:
        if other and not isinstance(other[0], (*_SCALARS, Open, Array, np.ndarray, np.generic)):
            return NotImplemented
        args = (*other, self) if swapped else (self, *other)
        result = getattr(self.xp, name)(*args)
        if inplace:
            return self._become(self.xp.astype(result, self.dtype))
        return result

    return method


# the array API's name for powers
for _python, _name in {**BINARY, "pow": "pow"}.items():
    setattr(Array, f"__{_python}__", _operator(_name))
    setattr(Array, f"__r{_python}__", _operator(_name, swapped=True))
    setattr(Array, f"__i{_python}__", _operator(_name, inplace=True))
for _python, _name in (COMPARISONS | UNARY).items():
    setattr(Array, f"__{_python}__", _operator(_name))


# -- indexing: reading and writing parts of arrays -------------------------------------------------


def parsed(x: Any, key: Any) -> tuple[Any, dict[int, Any]]:
    """Return an index in ndonnx's form, and the index arrays in it by axis.

    The returned index has full slices at the axes of index arrays.
    """
    xp, ndim = x.xp, x.ndim
    parts = key if isinstance(key, tuple) else (key,)
    parts = tuple([xp.asarray(part) if isinstance(part, np.ndarray) else part for part in parts])
    if len(parts) == 1 and _is_mask(parts[0]):
        return parts[0].inner, {}
    if not any(part is Ellipsis for part in parts):
        parts = (*parts, Ellipsis)
    taken = sum(part is not None and part is not Ellipsis for part in parts)
    place = next(i for i, part in enumerate(parts) if part is Ellipsis)
    parts = (*parts[:place], *[slice(None)] * (ndim - taken), *parts[place + 1 :])
    found: list[Any] = []
    arrays: dict[int, Any] = {}
    for part in parts:
        if _is_mask(part):
            raise TypeError("an index combines a mask with other parts")
        if hasattr(part, "var") and part.ndim:
            arrays[sum(v is None or isinstance(v, slice) for v in found)] = part
            part = slice(None)
        if isinstance(part, slice):
            part = slice(*[xp.inner(v) for v in (part.start, part.stop, part.step)])
        found.append(xp.inner(part))
    return tuple(found), arrays


def cut(x: Any, parts: Any) -> Any:
    """Return the elements of an index without arrays, by a single Slice node if possible."""
    xp = x.xp
    if not isinstance(parts, tuple) or not all(map(_plain_part, parts)):
        return xp.wrap(x.inner[parts])
    axes = [i for i, part in enumerate(parts) if part != slice(None)]
    if not axes:
        return x
    ends = [parts[i] + 1 if type(parts[i]) is int else parts[i].stop for i in axes]
    if not all(end is None or type(end) is int for end in ends):
        return xp.wrap(x.inner[parts])
    starts = [parts[i] if type(parts[i]) is int else parts[i].start or 0 for i in axes]
    steps = [1 if type(parts[i]) is int else parts[i].step or 1 for i in axes]
    ends = [np.iinfo(np.int64).max if end is None else end for end in ends]
    given = [onnx.const(np.array(v, np.int64)) for v in (starts, ends, axes, steps)]
    found = xp.of(onnx.slice(x.var, *given))
    single = tuple(i for i in axes if type(parts[i]) is int)
    return xp.squeeze(found, axis=single) if single else found


class At:
    """Places in an array: ``set`` and ``add`` write to them in a copy."""

    __slots__ = ("key", "x")

    def __init__(self, x: Any, key: Any) -> None:
        self.x, self.key = x, key

    def __getitem__(self, key: Any) -> At:
        return At(self.x, key)

    def set(self, values: Any) -> Any:
        return self._written(values, "none")

    def add(self, values: Any) -> Any:
        return self._written(values, "add")

    def _written(self, values: Any, reduction: str) -> Any:
        x, xp = self.x, self.x.xp
        values = xp.astype(xp.asarray(values), x.dtype)
        found, arrays = parsed(x, self.key)
        if arrays:
            return scattered(x, found, arrays, values, reduction)
        if isinstance(found, tuple) and any(part is None for part in found):
            found, values = _without_new_axes(x, found, values)
        if isinstance(found, tuple) and all(map(_plain_part, found)):
            seen = cut(x, found)
            spread = partial(_spread, parts=found, shape=x.shape)
            values = spread(xp.broadcast_to(values, seen.shape))
            if reduction == "add":
                return x + values
            return xp.where(spread(xp.ones(seen.shape, dtype=np.float32)) > 0, values, x)
        inner = x.inner.copy()
        if reduction == "add":
            values = xp.wrap(inner[found]) + values
        inner[found] = values.inner
        return xp.wrap(inner)


def _without_new_axes(x: Any, parts: Any, values: Any) -> tuple[Any, Any]:
    """Return an index without its new axes, and values without these axes."""
    xp, left = x.xp, tuple(part for part in parts if part is not None)
    kept = [part for part in parts if type(part) is not int]
    new = tuple(axis for axis, part in enumerate(kept) if part is None)
    shape = list(cut(x, left).shape)
    for axis in new:
        shape.insert(axis, 1)
    return left, xp.squeeze(xp.broadcast_to(values, tuple(shape)), axis=new)


def _plain_part(part: Any) -> bool:
    """Return whether an index has known, non-negative starts and positive steps."""
    if type(part) is int:
        return part >= 0
    if not isinstance(part, slice):
        return False
    known = all(x is None or type(x) is int for x in (part.start, part.step))
    return known and (part.start or 0) >= 0 and (part.step or 1) >= 1


def _spread(values: Any, parts: Sequence[Any], shape: Sequence[Any]) -> Any:
    """Return zeros of a shape with values at the places of slices, by a Pad node."""
    xp, before, after = values.xp, [], []
    for axis, (part, size) in enumerate(zip(parts, shape, strict=True)):
        start, step = (part, 1) if type(part) is int else (part.start or 0, part.step or 1)
        if type(part) is int:
            values = xp.expand_dims(values, axis=axis)
        count = values.shape[axis]
        if step > 1:  # zeros between values; those after the last may be cut off again
            values = xp.expand_dims(values, axis=axis + 1)
            around = [0] * values.ndim
            values = xp.padded(
                values, around, [(step - 1) * (i == axis + 1) for i in range(values.ndim)]
            )
            values = xp.reshape(
                values, (*values.shape[:axis], count * step, *values.shape[axis + 2 :])
            )
        before.append(start)
        after.append(size - start - count * step)
    return xp.padded(values, before, after) if any(map(_not_zero, (*before, *after))) else values


def _not_zero(n: Any) -> bool:
    return (n == 0) is not True


def gathered(x: Any, found: Any, arrays: dict[int, Any]) -> Any:
    """Return the elements at index arrays, which may be combined with slices."""
    xp = x.xp
    whole = cut(x, found)
    first = [*arrays, *[i for i in range(whole.ndim) if i not in arrays]]
    places = [xp.astype(places, np.int64) for places in arrays.values()]
    where = xp.stack(xp.broadcast_arrays(*places), axis=-1)
    result = xp.of(onnx.gather_nd(xp.permute_dims(whole, first).var, where.var))
    count, start = where.ndim - 1, first[0]
    if list(arrays) != list(range(start, start + len(arrays))) or start == 0:
        return result  # as in NumPy, their axes come first if they are not adjacent
    return xp.moveaxis(result, tuple(range(count)), tuple(range(start, start + count)))


def scattered(x: Any, found: Any, arrays: dict[int, Any], values: Any, reduction: str) -> Any:
    """Return ``x`` with values written or added at the places of index arrays and slices."""
    xp = x.xp
    numbers = xp.reshape(xp.arange(x.size), x.shape)
    places = gathered(numbers, found, arrays)
    values = xp.broadcast_to(values, places.shape)
    flat = onnx.scatter_nd(
        xp.reshape(x, (-1,)).var,
        xp.expand_dims(xp.reshape(places, (-1,)), axis=-1).var,
        xp.reshape(values, (-1,)).var,
        reduction=reduction,
    )
    return xp.reshape(xp.of(flat), x.shape)


def _is_mask(part: Any) -> bool:
    return hasattr(part, "var") and part.dtype.kind == "b"
