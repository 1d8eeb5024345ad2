"""Arrays that build ONNX: what portable kernels run on when a graph is exported.

They stand in front of ``ndonnx``, whose functions build the nodes, and show what kernels are
written for: NumPy's dtypes and promotion, sizes that compute where they are not known, and
writing in place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import ndonnx as ndx
import numpy as np

import spox.opset.ai.onnx.v21 as onnx

from ..core.extend import Backend, Open, broadcast_shapes, known_size, same_size
from .onnx_sizes import Sizes

__all__ = ["Array", "Namespace"]

_SCALARS = (bool, int, float)
# of which runtimes have products and extremes
_NUMBERS = frozenset({"float16", "float32", "float64", "int32", "int64"})


class Array:
    """An array of a model: its dtype is NumPy's, its sizes are integers or open.

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

    def __init__(self, xp: Namespace, inner: Any) -> None:
        self.xp = xp
        self.inner = inner
        #: The array of which it is a transpose, and the axes; written to it is none any more.
        self.turned: tuple[Array, list[int]] | None = None

    @property
    def var(self) -> Any:
        """The value of ONNX that it is."""
        return self.inner.unwrap_spox()

    @property
    def at(self) -> _At:
        """What writes into a copy: ``x.at[where].set(values)``, ``.add(values)``."""
        return _At(self, None)

    @property
    def array(self) -> Array:
        """Itself, which is what a size is taken from."""
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
    def mT(self) -> Array:  # noqa: N802 - the standard's name
        return self.xp.matrix_transpose(self)

    @property
    def T(self) -> Array:  # noqa: N802
        return self.xp.permute_dims(self, tuple(range(self.ndim))[::-1])

    def astype(self, dtype: Any, copy: bool = True) -> Array:
        return self.xp.astype(self, dtype)

    def as_size(self, name: str) -> Any:
        """Return the value of an integer as a size."""
        try:
            return int(self.inner.unwrap_numpy())
        except ValueError:
            return self.xp.sizes.value(self.inner)

    def __getitem__(self, key: Any) -> Array:
        found, arrays = self.xp.index(key, self.ndim)
        return gathered(self, found, arrays) if arrays else self.xp.cut(self, found)

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
        if self.xp.answer is not None and not self.inner._tyarray.is_constant:
            return self.xp.answer
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
            raise TypeError("its kernel asks Python for a value that only a run has") from None


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


for _python, _name in {
    **{"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "pow"},
    **{"floordiv": "floor_divide", "mod": "remainder", "matmul": "matmul", "and": "bitwise_and"},
    **{"or": "bitwise_or", "xor": "bitwise_xor", "lshift": "bitwise_left_shift"},
    "rshift": "bitwise_right_shift",
}.items():
    setattr(Array, f"__{_python}__", _operator(_name))
    setattr(Array, f"__r{_python}__", _operator(_name, swapped=True))
    setattr(Array, f"__i{_python}__", _operator(_name, inplace=True))
for _python, _name in {
    **{"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater"},
    **{"ge": "greater_equal", "neg": "negative", "pos": "positive", "abs": "abs"},
    "invert": "bitwise_invert",
}.items():
    setattr(Array, f"__{_python}__", _operator(_name))


class Namespace:
    """The array namespace of :class:`Array`: ndonnx's functions, with NumPy's promotion."""

    pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None
    finfo, iinfo, isdtype = staticmethod(np.finfo), staticmethod(np.iinfo), staticmethod(np.isdtype)

    bind = Backend.bind

    def __init__(self) -> None:
        self.sizes = Sizes()
        #: What a kernel is told that asks for the truth of a value; None: it is refused.
        self.answer: bool | None = None
        self.xp = self  # what kernels are bound to

    def __getattr__(self, name: str) -> Any:
        if name in np._core.sctypeDict or name == "bool":  # a dtype
            return np.dtype(name)
        if name.startswith("_") or not hasattr(ndx, name):
            raise AttributeError(f"its kernel needs {name!r}, which ndonnx has not")
        function = getattr(ndx, name)
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            found = self._elementwise(function, ufunc)
        else:
            found = self._plain(function)
        setattr(self, name, found)
        return found

    # -- to and from ndonnx ------------------------------------------------------------------------

    def wrap(self, found: Any) -> Any:
        """Return what ndonnx gave as arrays of this namespace."""
        if isinstance(found, ndx.Array):
            return Array(self, found)
        if isinstance(found, tuple) and hasattr(found, "_fields"):
            return type(found)(*map(self.wrap, found))
        return type(found)(map(self.wrap, found)) if isinstance(found, (tuple, list)) else found

    def inner(self, value: Any) -> Any:
        """Return an argument as ndonnx takes it."""
        if isinstance(value, Array):
            return value.inner
        if isinstance(value, Open):
            return self.sizes.lowered(value)
        if isinstance(value, (np.ndarray, np.generic)):
            return ndx.asarray(np.asarray(value))
        if isinstance(value, np.dtype) or (isinstance(value, type) and value in np._core.sctypeDict):
            return _dtype(value)
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.inner, value))
        return value

    def index(self, key: Any, ndim: int) -> tuple[Any, dict[int, Array]]:
        """Return an index as ndonnx takes it, and the index arrays in it by their axis.

        What has index arrays is whole along their axes.
        """
        parts = key if isinstance(key, tuple) else (key,)
        parts = tuple([self.asarray(x) if isinstance(x, np.ndarray) else x for x in parts])
        if len(parts) == 1 and _is_mask(parts[0]):
            return parts[0].inner, {}
        if not any(part is Ellipsis for part in parts):
            parts = (*parts, Ellipsis)
        taken = sum(part is not None and part is not Ellipsis for part in parts)
        place = next(i for i, part in enumerate(parts) if part is Ellipsis)
        parts = (*parts[:place], *[slice(None)] * (ndim - taken), *parts[place + 1 :])
        found: list[Any] = []
        arrays: dict[int, Array] = {}
        for part in parts:
            if _is_mask(part):
                raise TypeError("an index has a mask beside other parts")
            if isinstance(part, Array) and part.ndim:
                arrays[sum(x is None or isinstance(x, slice) for x in found)] = part
                part = slice(None)
            if isinstance(part, slice):
                part = slice(*[self.inner(x) for x in (part.start, part.stop, part.step)])
            found.append(self.inner(part))
        return tuple(found), arrays

    def _plain(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            settings = {key: self.inner(value) for key, value in kwargs.items()}
            if settings.get("dtype") is not None:
                settings["dtype"] = _dtype(kwargs["dtype"])
            return self.wrap(function(*map(self.inner, args), **settings))

        return call

    def _elementwise(self, function: Callable[..., Any], ufunc: np.ufunc) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            kinds = tuple([x.dtype if hasattr(x, "dtype") else _weak(x) for x in args])
            if not any(isinstance(kind, np.dtype) for kind in kinds):
                kinds = tuple(map(np.dtype, kinds))
            *given, result = ufunc.resolve_dtypes((*kinds, *[None] * ufunc.nout))
            cast = [self.asarray(x, dtype=dtype) for x, dtype in zip(args, given)]
            found = self.wrap(function(*[x.inner for x in cast]))
            if found.dtype != result:
                found = self.astype(found, result)
            if len(cast) > 1 and None in found.inner.shape:
                shape = broadcast_shapes(*[x.shape for x in cast])
                self.sizes.tell(found.inner, shape)
            return found

        return call

    def of(self, var: Any) -> Array:
        """Return a value of ONNX as an array."""
        return Array(self, ndx.asarray(var))

    # -- what ndonnx has otherwise, or not ---------------------------------------------------------

    # -- shapes ------------------------------------------------------------------------------------

    def reshape(self, x: Array, shape: Any, *, copy: Any = None) -> Array:
        """Return an array of another shape, in which -1 stands for one open size if it can."""
        shape = _without_guess(x.shape, _sizes(shape))
        target = shape
        if not all(map(known_size, shape)):
            free = [axis for axis, n in enumerate(shape) if not known_size(n)]
            if len(free) == 1 and 0 not in shape and same_size(prod(x.shape), prod(shape)):
                target = tuple([-1 if axis == free[0] else n for axis, n in enumerate(shape)])
            else:
                target = self.sizes.vector(shape)
        found = Array(self, ndx.reshape(x.inner, target))
        self.sizes.tell(found.inner, [None if type(n) is int and n < 0 else n for n in shape])
        return found

    def broadcast_to(self, x: Any, shape: Any) -> Array:
        x, shape = self.asarray(x), _sizes(shape)
        known = all(map(known_size, shape))
        x = _emptied(x, shape)
        found = ndx.broadcast_to(x.inner, shape if known else self.sizes.vector(shape))
        self.sizes.tell(found, shape)
        return Array(self, found)

    def cut(self, x: Array, parts: Any) -> Array:
        """Return what an index without arrays names: as one Slice, if it says no more than that."""
        if not isinstance(parts, tuple) or not all(map(_plain_part, parts)):
            return Array(self, x.inner[parts])
        axes = [i for i, part in enumerate(parts) if part != slice(None)]
        if not axes:
            return x
        ends = [parts[i] + 1 if type(parts[i]) is int else parts[i].stop for i in axes]
        if not all(end is None or type(end) is int for end in ends):
            return Array(self, x.inner[parts])
        starts = [parts[i] if type(parts[i]) is int else parts[i].start or 0 for i in axes]
        steps = [1 if type(parts[i]) is int else parts[i].step or 1 for i in axes]
        ends = [np.iinfo(np.int64).max if end is None else end for end in ends]
        given = [onnx.const(np.array(v, np.int64)) for v in (starts, ends, axes, steps)]
        found = self.of(onnx.slice(x.var, *given))
        single = tuple(i for i in axes if type(parts[i]) is int)
        return self.squeeze(found, axis=single) if single else found

    def padded(self, x: Array, before: Sequence[Any], after: Sequence[Any]) -> Array:
        """Return an array with zeros around it, or cut where a number is negative."""
        pads = self.sizes.vector((*before, *after)).unwrap_spox()
        found = self.of(onnx.pad(x.var, pads, onnx.const(0, x.dtype)))
        shape = [a + n + b for n, a, b in zip(x.shape, before, after, strict=True)]
        self.sizes.tell(found.inner, shape)
        return found

    def broadcast_arrays(self, *xs: Any) -> list[Array]:
        arrays = [self.asarray(x) for x in xs]
        shape = broadcast_shapes(*[x.shape for x in arrays])
        return [self.broadcast_to(x, shape) for x in arrays]

    def full(self, shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Array:
        return self.broadcast_to(self.asarray(value, dtype=dtype), shape)

    def zeros(self, shape: Any, *, dtype: Any = np.float64, device: Any = None) -> Array:
        return self.full(shape, 0, dtype=dtype)

    def ones(self, shape: Any, *, dtype: Any = np.float64, device: Any = None) -> Array:
        return self.full(shape, 1, dtype=dtype)

    empty = zeros

    def full_like(self, x: Array, value: Any, *, dtype: Any = None, device: Any = None) -> Array:
        return self.full(x.shape, value, dtype=x.dtype if dtype is None else dtype)

    def zeros_like(self, x: Array, *, dtype: Any = None, device: Any = None) -> Array:
        return self.full_like(x, 0, dtype=dtype)

    def ones_like(self, x: Array, *, dtype: Any = None, device: Any = None) -> Array:
        return self.full_like(x, 1, dtype=dtype)

    empty_like = zeros_like

    def eye(self, rows: Any, columns: Any = None, *, k: int = 0, dtype: Any = np.float64, device: Any = None) -> Array:
        columns = rows if columns is None else columns
        if known_size(rows) and known_size(columns):
            return self.asarray(np.eye(int(rows), int(columns), k, dtype=dtype))
        down, right = self.arange(rows), self.arange(columns)
        return self.astype(self.expand_dims(down, axis=1) + k == right, dtype)

    def take(self, x: Array, indices: Any, *, axis: int | None = None) -> Array:
        if axis is None:
            x, axis = self.reshape(x, (-1,)), 0
        places = self.astype(self.asarray(indices), np.int64)
        return self.of(onnx.gather(x.var, places.var, axis=axis))

    def permute_dims(self, x: Array, axes: Sequence[int]) -> Array:
        """Turn an array; what was turned before is turned once, or not at all."""
        axes = [axis % x.ndim for axis in axes]
        if x.turned is not None:
            x, before = x.turned
            axes = [before[axis] for axis in axes]
        if axes == sorted(axes):
            return x
        found = self.of(onnx.transpose(x.var, perm=axes))
        found.turned = Array(self, x.inner), axes  # which nobody writes to
        return found

    def matmul(self, x: Any, y: Any) -> Array:
        x, y = self._alike(x, y)
        if x.dtype.name in _NUMBERS and _never_empty(x) and _never_empty(y):
            if x.ndim > 1 and y.ndim > 1:
                return self.of(onnx.matmul(x.var, y.var))
            # onnxruntime takes a transposed matrix beside a vector for one that is not
            row = self.expand_dims(x, axis=0) if x.ndim == 1 else x
            column = self.expand_dims(y, axis=-1) if y.ndim == 1 else y
            flat = (-2,) * (x.ndim == 1) + (-1,) * (y.ndim == 1)
            return self.squeeze(self.of(onnx.matmul(row.var, column.var)), axis=flat)
        return Array(self, ndx.matmul(x.inner, y.inner))  # with a case for no elements

    def max(self, x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._extreme(x, onnx.reduce_max, ndx.max, axis, keepdims)

    def min(self, x: Array, *, axis: Any = None, keepdims: bool = False) -> Array:
        return self._extreme(x, onnx.reduce_min, ndx.min, axis, keepdims)

    def _extreme(self, x: Array, node: Any, function: Any, axis: Any, keepdims: bool) -> Array:
        if x.dtype.name not in _NUMBERS or not _never_empty(x):
            return Array(self, function(x.inner, axis=axis, keepdims=keepdims))
        if axis == ():
            return x
        axes = None if axis is None else onnx.const(np.atleast_1d(np.asarray(axis, np.int64)))
        return self.of(node(x.var, axes, keepdims=int(keepdims)))

    @property
    def linalg(self) -> _Linalg:
        return _Linalg(self)

    def einsum(self, subscripts: str, *arrays: Array, optimize: Any = None) -> Array:
        dtype = self.result_type(*arrays)
        found = onnx.einsum([self.astype(x, dtype).var for x in arrays], equation=subscripts)
        return self.of(found)

    def cumulative_prod(self, x: Array, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
        """Return running products, of which ndonnx makes those of positive numbers alone."""
        if include_initial or axis is None or not known_size(x.shape[axis]):
            raise TypeError("a running product over an axis of an unknown size")
        x = x if dtype is None else self.astype(x, dtype)
        x, step = self.moveaxis(x, axis, 0), 1
        while step < x.shape[0]:
            x = self.concat([x[:step], x[step:] * x[:-step]], axis=0)
            step *= 2
        return self.moveaxis(x, 0, axis)

    def signbit(self, x: Array) -> Array:
        return (x < 0) | ((x == 0) & (1 / x < 0)) if x.dtype.kind == "f" else x < 0

    def copysign(self, x: Any, y: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        size = self.abs(self.asarray(x, dtype=dtype))
        return self.where(self.signbit(self.asarray(y, dtype=dtype)), -size, size)

    def hypot(self, x: Any, y: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        x, y = (self.abs(self.asarray(v, dtype=dtype)) for v in (x, y))
        large, small = self.maximum(x, y), self.minimum(x, y)
        ratio = small / self.where((large > 0) & self.isfinite(large), large, self.ones_like(large))
        found = large * self.sqrt(1 + ratio * ratio)
        return self.where(self.isinf(x) | self.isinf(y), np.inf, found)

    def atan2(self, y: Any, x: Any) -> Array:
        dtype = np.result_type(self.result_type(x, y), np.float16)
        x, y = (self.asarray(v, dtype=dtype) for v in (x, y))
        both = self.isinf(x) & self.isinf(y)
        x, y = (self.where(both, self.copysign(self.ones_like(v), v), v) for v in (x, y))
        none = (x == 0) & (y == 0)
        # the smaller by the larger: no quotient overflows
        steep = self.abs(y) > self.abs(x)
        top, bottom = self.where(steep, x, y), self.where(steep, y, x)
        angle = self.atan(self.abs(top) / self.where(none, self.ones_like(x), self.abs(bottom)))
        angle = self.where(steep, np.pi / 2 - angle, angle)
        angle = self.where(self.signbit(x), np.pi - angle, angle)
        return self.copysign(angle, y)

    def where(self, condition: Any, x: Any, y: Any) -> Array:
        a, b = self._alike(x, y)
        return Array(self, ndx.where(self.asarray(condition).inner, a.inner, b.inner))

    def bitwise_right_shift(self, x: Any, y: Any) -> Array:
        """Shift the bits themselves: ndonnx divides, by powers of two that may overflow."""
        x, y = self._alike(x, y)
        if x.dtype.kind == "u":
            found = self._shifted(x, y, "RIGHT")
            return found
        flipped = self._shifted(self.where(x < 0, ~x, x), y, "RIGHT")
        return self.where(x < 0, ~flipped, flipped)

    def bitwise_left_shift(self, x: Any, y: Any) -> Array:
        return self._shifted(*self._alike(x, y), "LEFT")

    def _alike(self, *xs: Any) -> list[Array]:
        dtype = self.result_type(*xs)
        return [self.asarray(x, dtype=dtype) for x in xs]

    def _shifted(self, x: Array, y: Array, direction: str) -> Array:
        unsigned = np.dtype(f"uint{8 * x.dtype.itemsize}")
        width = 8 * x.dtype.itemsize
        inside = (y >= 0) & (y < width)
        count = self.astype(self.where(inside, y, self.zeros_like(y)), unsigned)
        found = onnx.bit_shift(self.astype(x, unsigned).var, count.var, direction=direction)
        return self.where(inside, self.astype(self.of(found), x.dtype), self.zeros_like(x))

    def logical_not(self, x: Any) -> Array:
        return Array(self, ndx.logical_not(self._truth(x).inner))

    def logical_and(self, x: Any, y: Any) -> Array:
        return Array(self, ndx.logical_and(self._truth(x).inner, self._truth(y).inner))

    def logical_or(self, x: Any, y: Any) -> Array:
        return Array(self, ndx.logical_or(self._truth(x).inner, self._truth(y).inner))

    def logical_xor(self, x: Any, y: Any) -> Array:
        return Array(self, ndx.logical_xor(self._truth(x).inner, self._truth(y).inner))

    def _truth(self, x: Any) -> Array:
        x = self.asarray(x)
        return x if x.dtype.kind == "b" else x != 0

    def asarray(self, value: Any, dtype: Any = None, copy: Any = None, device: Any = None) -> Array:
        """Return an array of a number, an array of NumPy's, or an array."""
        if isinstance(value, Array):
            return value if dtype is None else self.astype(value, dtype)
        if isinstance(value, Open):
            found = Array(self, self.sizes.lowered(value))
            return found if dtype is None else self.astype(found, dtype)
        array = np.asarray(value)
        return Array(self, ndx.asarray(array if dtype is None else array.astype(dtype)))

    def astype(self, x: Array, dtype: Any, copy: bool = True) -> Array:
        """Return an array of another dtype."""
        return x if x.dtype == np.dtype(dtype) else Array(self, ndx.astype(x.inner, _dtype(dtype)))

    def result_type(self, *args: Any) -> np.dtype[Any]:
        """Return NumPy's result dtype; Python's numbers are weak."""
        return np.result_type(*[x.dtype if isinstance(x, Array) else x for x in args])


def _never_empty(x: Array) -> bool:
    """Return whether no size is 0, as far as can be proved."""
    return all((n == 0) is False for n in x.shape)


class _Linalg:
    """The functions of linear algebra that ONNX has nodes for."""

    def __init__(self, xp: Namespace) -> None:
        self._xp = xp

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"its kernel needs 'linalg.{name}', which ONNX has not")

    def matrix_transpose(self, x: Array) -> Array:
        return x.mT

    def diagonal(self, x: Array, *, offset: int = 0) -> Array:
        rows, columns = x.shape[-2:]
        count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
        places = np.arange(count)
        return x[..., places + max(-offset, 0), places + max(offset, 0)]


class _At:
    """Places in an array, in which a copy of it is written."""

    __slots__ = ("key", "x")

    def __init__(self, x: Array, key: Any) -> None:
        self.x, self.key = x, key

    def __getitem__(self, key: Any) -> _At:
        return _At(self.x, key)

    def set(self, values: Any) -> Array:
        return self._written(values, "none")

    def add(self, values: Any) -> Array:
        return self._written(values, "add")

    def _written(self, values: Any, reduction: str) -> Array:
        x, xp = self.x, self.x.xp
        values = xp.astype(xp.asarray(values), x.dtype)
        found, arrays = xp.index(self.key, x.ndim)
        if arrays:
            return scattered(x, found, arrays, values, reduction)
        if isinstance(found, tuple) and all(map(_plain_part, found)):
            seen = xp.cut(x, found)
            spread = partial(_spread, parts=found, shape=x.shape)
            values = spread(xp.broadcast_to(values, seen.shape))
            if reduction == "add":
                return x + values
            return xp.where(spread(xp.ones(seen.shape, dtype=np.float32)) > 0, values, x)
        inner = x.inner.copy()
        if reduction == "add":
            values = Array(xp, inner[found]) + values
        inner[found] = values.inner
        return Array(xp, inner)


def _plain_part(part: Any) -> bool:
    """Return whether an index counts forward from the first element."""
    if type(part) is int:
        return part >= 0
    if not isinstance(part, slice):
        return False
    known = all(x is None or type(x) is int for x in (part.start, part.step))
    return known and (part.start or 0) >= 0 and (part.step or 1) >= 1


def _spread(values: Array, parts: Sequence[Any], shape: Sequence[Any]) -> Array:
    """Return zeros of a shape with values where slices say: a Pad, and no indices."""
    xp, before, after = values.xp, [], []
    for axis, (part, size) in enumerate(zip(parts, shape, strict=True)):
        start, step = (part, 1) if type(part) is int else (part.start or 0, part.step or 1)
        if type(part) is int:
            values = xp.expand_dims(values, axis=axis)
        count = values.shape[axis]
        if step > 1:  # zeros between them; those after the last may be cut off again
            values = xp.expand_dims(values, axis=axis + 1)
            around = [0] * values.ndim
            values = xp.padded(values, around, [(step - 1) * (i == axis + 1) for i in range(values.ndim)])
            values = xp.reshape(values, (*values.shape[:axis], count * step, *values.shape[axis + 2 :]))
        before.append(start)
        after.append(size - start - count * step)
    return xp.padded(values, before, after) if any(map(_not_zero, (*before, *after))) else values


def _not_zero(n: Any) -> bool:
    return (n == 0) is not True


def _picked(x: Array, found: Any, arrays: dict[int, Array]) -> tuple[Array, list[int], Array]:
    """Return what slices leave of ``x``, with the axes of index arrays first, and their places."""
    xp = x.xp
    whole = xp.cut(x, found)
    axes = [*arrays, *[i for i in range(whole.ndim) if i not in arrays]]
    places = xp.stack(xp.broadcast_arrays(*[xp.astype(a, np.int64) for a in arrays.values()]), axis=-1)
    return xp.permute_dims(whole, axes), axes, places


def gathered(x: Array, found: Any, arrays: dict[int, Array]) -> Array:
    """Return the elements that index arrays name, beside slices."""
    xp = x.xp
    whole, axes, places = _picked(x, found, arrays)
    result = xp.of(onnx.gather_nd(whole.var, places.var))
    count, first = places.ndim - 1, next(iter(arrays))
    if list(arrays) != list(range(first, first + len(arrays))) or first == 0:
        return result  # as in NumPy, they come first if they do not stand side by side
    return xp.moveaxis(result, tuple(range(count)), tuple(range(first, first + count)))


def scattered(x: Array, found: Any, arrays: dict[int, Array], values: Array, reduction: str) -> Array:
    """Return ``x`` with values in, or added to, what index arrays and slices name."""
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


def _weak(x: Any) -> Any:
    kind = x.stands_for if isinstance(x, Open) else type(x)
    return np.dtype(bool) if kind is bool else kind


def _dtype(dtype: Any) -> Any:
    name = np.dtype(dtype).name
    if np.dtype(dtype).kind not in "biuf" or not hasattr(ndx, name):
        raise TypeError(f"ONNX arrays have no dtype {name}")
    return getattr(ndx, name)


def _is_mask(part: Any) -> bool:
    return isinstance(part, Array) and part.dtype.kind == "b"


def _sizes(shape: Any) -> tuple[Any, ...]:
    """Return a shape of integers and open sizes."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple([n if isinstance(n, Open) else operator.index(n) for n in given])


def _emptied(x: Array, shape: Sequence[Any]) -> Array:
    """Return an array without elements where it is to be broadcast to none.

    Runtimes fold an Expand of one element to none wrongly.
    """
    for axis, n in enumerate(shape[len(shape) - x.ndim :]):
        if type(n) is int and n == 0 and x.shape[axis] == 1:
            x = x[(*[slice(None)] * axis, slice(0, 0), ...)]
    return x


def _without_guess(old: Sequence[Any], new: Sequence[Any]) -> Any:
    """Return a shape with the size that -1 stands for, where it is known or can be said."""
    if not any(type(n) is int and n < 0 for n in new):
        return new
    rest = prod([n for n in new if not (type(n) is int and n == -1)])
    total = prod(old)
    if known_size(total) and known_size(rest):
        return new
    quotient = total // rest if not same_size(rest, total) else 1
    return tuple([quotient if type(n) is int and n == -1 else n for n in new])
