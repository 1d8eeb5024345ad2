"""The array namespace for kernels: ndonnx's functions with NumPy's promotion.

Sizes of arrays may be known only in a run of the model.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ndonnx as ndx
import numpy as np
import spox.opset.ai.onnx.v21 as onnx
from spox import Tensor

from ..core.extend import (
    Backend,
    Dim,
    Open,
    broadcast_shapes,
    evaluated,
    known_size,
    lowered,
    same_size,
    size_of_atom,
)
from .onnx_arrays import Array
from .onnx_functions import Functions

# -- sizes that are known only in a run ------------------------------------------------------------


class Sizes:
    """Unknown sizes by name.

    ONNX's shape inference passes names from node to node. Each name is mapped to a size that
    supports arithmetic and comparison as in a trace, and raises if Python needs its value.
    """

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._homes: dict[str, tuple[Any, int | None, int]] = {}
        self._lowered: dict[str, Any] = {}
        self._numbers = itertools.count()

    def shape(self, inner: Any) -> tuple[Any, ...]:
        """Return the shape of an array of ndonnx."""
        sizes = _type(inner).shape
        if None in sizes:
            sizes = tuple([self._new_name() if n is None else n for n in sizes])
            _set_shape(inner, sizes)
        for axis, n in enumerate(sizes):
            if type(n) is str and n not in self._named:
                self._new(n, inner, axis)
        return tuple([n if type(n) is int else self._named[n] for n in sizes])

    def value(self, inner: Any) -> Any:
        """Return the value of an array of one integer as a size."""
        return self._new(self._new_name(), inner, None)

    def argument(self, inner: Any) -> None:
        """Add the sizes of an input; each is at least 1."""
        for axis, name in enumerate(_type(inner).shape):
            if type(name) is str and name not in self._named:
                self._new(name, inner, axis, least=1)

    def _new(self, name: str, inner: Any, axis: int | None, least: int = 0) -> Any:
        dim = Dim(name, inner, axis)
        self._homes[dim.key] = (inner, axis, least)
        # written as 1 plus a non-negative number, a size is known to differ from 0
        size: Any = size_of_atom(dim)
        size = self._named[name] = size + least
        self._names[size.key] = name
        return size

    def _new_name(self) -> str:
        names = (f"size_{number}" for number in self._numbers)
        return next(name for name in names if name not in self._named)

    def set_shape(self, inner: Any, shape: Sequence[Any]) -> None:
        """Set the shape of an array of ndonnx; None leaves a size unchanged."""
        names = list(_type(inner).shape)
        for axis, n in enumerate(shape):
            if n is None or type(names[axis]) is int:
                continue
            if type(n) is not int and n.key not in self._names:
                name = self._names[n.key] = self._new_name()
                self._named[name] = n
            names[axis] = n if type(n) is int else self._names[n.key]
        _set_shape(inner, names)

    def vector(self, shape: Sequence[Any]) -> Any:
        """Return a shape as an array of ndonnx."""
        if all(type(n) is int for n in shape):
            return ndx.asarray(np.asarray(shape, np.int64))
        parts = [
            ndx.asarray(n, dtype=ndx.int64) if type(n) is int else self.lowered(n) for n in shape
        ]
        return ndx.stack(parts)

    def lowered(self, value: Any) -> Any:
        """Return an array of ndonnx that computes an unknown value in each run."""
        if value.key not in self._lowered:
            homes: list[tuple[Any, int | None, int]] = []

            def place(dim: Dim) -> tuple[str, int]:
                homes.append(self._homes[dim.key])
                return "value", len(homes) - 1

            formula = lowered(value, place)
            self._lowered[value.key] = evaluated(formula, (), lambda k: _counted(*homes[k]))
        return self._lowered[value.key]


def _counted(inner: Any, axis: int | None, least: int) -> Any:
    found = ndx.astype(inner, ndx.int64) if axis is None else inner.dynamic_shape[axis]
    return found - least if least else found


def _type(inner: Any) -> Any:
    return inner.unwrap_spox().unwrap_tensor()


def _set_shape(inner: Any, names: Sequence[Any]) -> None:
    info = inner.unwrap_spox()._var_info
    info.type = Tensor(info.type.dtype, tuple(names))


# -- functions that take shapes, in which sizes may be unknown -------------------------------------


class Shapes:
    """The functions of a namespace that take a shape."""

    asarray: Any
    astype: Any
    arange: Any
    expand_dims: Any
    of: Any
    sizes: Any

    def reshape(self, x: Array, shape: Any, *, copy: Any = None) -> Array:
        """Return an array of another shape; use -1 for a single unknown size if possible."""
        shape = _without_guess(x.shape, _sizes(shape))
        target = shape
        if not all(map(known_size, shape)):
            free = [axis for axis, n in enumerate(shape) if not known_size(n)]
            if len(free) == 1 and 0 not in shape and same_size(prod(x.shape), prod(shape)):
                target = tuple([-1 if axis == free[0] else n for axis, n in enumerate(shape)])
            else:
                target = self.sizes.vector(shape)
        found = Array(self, ndx.reshape(x.inner, target))
        self.sizes.set_shape(found.inner, [None if type(n) is int and n < 0 else n for n in shape])
        return found

    def broadcast_to(self, x: Any, shape: Any) -> Array:
        x, shape = self.asarray(x), _sizes(shape)
        known = all(map(known_size, shape))
        x = _emptied(x, shape)
        found = ndx.broadcast_to(x.inner, shape if known else self.sizes.vector(shape))
        self.sizes.set_shape(found, shape)
        return Array(self, found)

    def padded(self, x: Array, before: Sequence[Any], after: Sequence[Any]) -> Array:
        """Return an array padded with zeros; a negative number cuts instead."""
        if x.dtype.name in ("int16", "uint16"):  # for which runtimes have no padding
            wide = self.padded(self.astype(x, np.int32), before, after)
            return self.astype(wide, x.dtype)
        pads = self.sizes.vector((*before, *after)).unwrap_spox()
        found = self.of(onnx.pad(x.var, pads, onnx.const(0, x.dtype)))
        shape = [a + n + b for n, a, b in zip(x.shape, before, after, strict=True)]
        self.sizes.set_shape(found.inner, shape)
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

    def eye(
        self,
        rows: Any,
        columns: Any = None,
        *,
        k: int = 0,
        dtype: Any = np.float64,
        device: Any = None,
    ) -> Array:
        columns = rows if columns is None else columns
        if known_size(rows) and known_size(columns):
            return self.asarray(np.eye(int(rows), int(columns), k, dtype=dtype))
        down, right = self.arange(rows), self.arange(columns)
        return self.astype(self.expand_dims(down, axis=1) + k == right, dtype)


def _sizes(shape: Any) -> tuple[Any, ...]:
    """Return a shape of integers and unknown sizes."""
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple([n if isinstance(n, Open) else operator.index(n) for n in given])


def _emptied(x: Array, shape: Sequence[Any]) -> Array:
    """Return an empty array if the result of broadcasting will be empty.

    Runtimes wrongly fold an Expand of one element to an empty array.
    """
    for axis, n in enumerate(shape[len(shape) - x.ndim :]):
        if type(n) is int and n == 0 and x.shape[axis] == 1:
            x = x[(*[slice(None)] * axis, slice(0, 0), ...)]
    return x


def _without_guess(old: Sequence[Any], new: Sequence[Any]) -> Any:
    """Return a shape with -1 replaced by an expression, if some sizes are unknown."""
    if not any(type(n) is int and n < 0 for n in new):
        return new
    rest = prod([n for n in new if not (type(n) is int and n == -1)])
    total = prod(old)
    if known_size(total) and known_size(rest):
        return new
    quotient = total // rest if not same_size(rest, total) else 1
    return tuple([quotient if type(n) is int and n == -1 else n for n in new])


# -- the namespace ---------------------------------------------------------------------------------


_DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
)


class Namespace(Shapes, Functions):
    """The array namespace of :class:`Array`: ndonnx's functions with NumPy's promotion."""

    pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None
    promotes = True
    finfo, iinfo, isdtype = staticmethod(np.finfo), staticmethod(np.iinfo), staticmethod(np.isdtype)

    def __init__(self) -> None:
        self.sizes = Sizes()
        self.xp = self  # kernels are bound to this attribute
        #: Runs a nested graph, for ops that have one: a function of the graph and its arrays.
        self.outputs: Callable[[Any, Sequence[Any]], list[Any]]

    def __getattr__(self, name: str) -> Any:
        if name in _DTYPES:
            return np.dtype(name)
        if name.startswith("_") or not hasattr(ndx, name):
            raise AttributeError(f"its kernel needs {name!r}, which ndonnx lacks")
        function = getattr(ndx, name)
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            found = self._elementwise(function, ufunc)
        else:
            found = self._plain(function)
        setattr(self, name, found)
        return found

    def bind(self, kernel: Any) -> Any:
        """Return a portable kernel as a function of arrays of this namespace."""
        owner: Any = self
        return Backend.bind(owner, kernel)

    # -- to and from ndonnx ------------------------------------------------------------------------

    def wrap(self, found: Any) -> Any:
        """Return a result of ndonnx with arrays of this namespace."""
        if isinstance(found, ndx.Array):
            return Array(self, found)
        if isinstance(found, tuple) and hasattr(found, "_fields"):
            return type(found)(*map(self.wrap, found))
        return type(found)(map(self.wrap, found)) if isinstance(found, (tuple, list)) else found

    def inner(self, value: Any) -> Any:
        """Return an argument in ndonnx's form."""
        if isinstance(value, Array):
            return value.inner
        if isinstance(value, Open):
            return self.sizes.lowered(value)
        if isinstance(value, (np.ndarray, np.generic)):
            return ndx.asarray(np.asarray(value))
        if isinstance(value, (np.dtype, type)):
            return _dtype(value)
        if isinstance(value, (tuple, list)):
            return type(value)(map(self.inner, value))
        return value

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
                self.sizes.set_shape(found.inner, shape)
            return found

        return call

    def of(self, var: Any) -> Array:
        """Return an ONNX value as an array."""
        return Array(self, ndx.asarray(var))

    # -- functions that ndonnx lacks or defines differently ----------------------------------------

    def asarray(self, value: Any, dtype: Any = None, copy: Any = None, device: Any = None) -> Array:
        """Return a number, a NumPy array or an array as an array of this namespace."""
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
        """Return NumPy's result dtype; Python numbers are weak."""
        return np.result_type(*[x.dtype if isinstance(x, Array) else x for x in args])


def _weak(x: Any) -> Any:
    kind = x.stands_for if isinstance(x, Open) else type(x)
    return np.dtype(bool) if kind is bool else kind


def _dtype(dtype: Any) -> Any:
    name = np.dtype(dtype).name
    if np.dtype(dtype).kind not in "biuf" or not hasattr(ndx, name):
        raise TypeError(f"ONNX does not support dtype {name}")
    return getattr(ndx, name)
