"""The array namespace for kernels: ndonnx's functions with NumPy's promotion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ndonnx as ndx
import numpy as np

from ..core.extend import Backend, Open, broadcast_shapes
from .onnx_arrays import Array
from .onnx_functions import Functions
from .onnx_shapes import Shapes
from .onnx_sizes import Sizes

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
                self.sizes.tell(found.inner, shape)
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
