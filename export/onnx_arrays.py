"""Arrays that build ONNX: what portable kernels run on when a graph is exported.

They stand in front of ``ndonnx``, whose functions build the nodes, and show what kernels are
written for: NumPy's dtypes and promotion, sizes that compute where they are not known, and
writing in place.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import ndonnx as ndx
import numpy as np

from ..core.extend import Open, Size, broadcast_shapes, known_size, same_size
from .onnx_sizes import Sizes

__all__ = ["Array", "Namespace"]

_SCALARS = (bool, int, float)
# what takes a shape, and at which place
_SHAPED = {"reshape": 1, "broadcast_to": 1, "zeros": 0, "ones": 0, "empty": 0, "full": 0}
# names of the standard that NumPy's ufuncs have not, or that ndonnx calls otherwise
_UFUNCS = {"fabs": "abs"}
# elementwise functions of NumPy's that ndonnx lacks, in others
_COMPOSED: dict[str, Callable[..., Any]] = {}


class Array:
    """An array of a model: its dtype is NumPy's, its sizes are integers or open.

    Parameters
    ----------
    xp
        The namespace that it belongs to.
    inner
        The array of ndonnx.
    """

    __slots__ = ("inner", "xp")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]
    traced = True

    def __init__(self, xp: Namespace, inner: Any) -> None:
        self.xp = xp
        self.inner = inner

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
        return self.xp.wrap(self.inner[self.xp.index(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        value = self.xp.astype(self.xp.asarray(value), self.dtype)
        inner = self.inner.copy()  # others may hold it
        inner[self.xp.index(key)] = value.inner
        self.inner = inner

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
            raise TypeError("its kernel asks Python for a value that only a run has") from None


def _operator(name: str, swapped: bool = False, inplace: bool = False) -> Callable[..., Any]:
    def method(self: Array, *other: Any) -> Any:
        if other and not isinstance(other[0], (*_SCALARS, Open, Array, np.ndarray, np.generic)):
            return NotImplemented
        args = (*other, self) if swapped else (self, *other)
        result = getattr(self.xp, name)(*args)
        if inplace:
            result = self.xp.astype(result, self.dtype)
            self.inner = result.inner
            return self
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

    def __init__(self) -> None:
        self.sizes = Sizes()

    def __getattr__(self, name: str) -> Any:
        if name in np._core.sctypeDict or name == "bool":  # a dtype
            return np.dtype(name)
        if name.startswith("_") or not hasattr(ndx, name):
            raise AttributeError(f"its kernel needs {name!r}, which ndonnx has not")
        function = getattr(ndx, name)
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc) and ufunc.signature is None:
            found = self._elementwise(function, ufunc)
        elif name in _SHAPED:
            found = self._shaped(function, _SHAPED[name], name)
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

    def index(self, key: Any) -> Any:
        """Return an index as ndonnx takes it."""
        parts = key if isinstance(key, tuple) else (key,)
        if not any(part is Ellipsis for part in parts) and not any(_is_mask(p) for p in parts):
            parts = (*parts, Ellipsis)
        found = tuple(
            [
                slice(*[self.inner(x) for x in (part.start, part.stop, part.step)])
                if isinstance(part, slice)
                else self.inner(part)
                for part in parts
            ]
        )
        return found if len(found) > 1 else found[0]

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

    def _shaped(self, function: Callable[..., Any], place: int, name: str) -> Callable[..., Any]:
        plain = self._plain(function)

        def call(*args: Any, **kwargs: Any) -> Any:
            before, rest = args[:place], args[place + 1 :]
            shape = args[place] if len(args) > place else kwargs.pop("shape")
            shape = shape if isinstance(shape, (tuple, list)) else (shape,)
            if all(type(n) is not int or n >= 0 for n in shape) is False and name == "reshape":
                shape = _without_guess(before[0].shape, shape)
            if all(map(known_size, shape)):
                return plain(*before, tuple(map(int, shape)), *rest, **kwargs)
            target = self.sizes.vector(shape)
            if name == "reshape":
                free = [i for i, n in enumerate(shape) if not known_size(n)]
                if len(free) == 1 and same_size(prod(before[0].shape), prod(shape)) and 0 not in shape:
                    target = tuple([-1 if i == free[0] else n for i, n in enumerate(shape)])
            found = plain(*before, Array(self, target) if not isinstance(target, tuple) else target, *rest, **kwargs)
            self.sizes.tell(found.inner, shape)
            return found

        return call

    # -- what ndonnx has otherwise -----------------------------------------------------------------

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


def _without_guess(old: Sequence[Any], new: Sequence[Any]) -> Any:
    """Return a shape with the size that -1 stands for, where it is known or can be said."""
    rest = prod([n for n in new if not (type(n) is int and n == -1)])
    total = prod(old)
    if known_size(total) and known_size(rest):
        return new
    quotient = total // rest if not same_size(rest, total) else 1
    return tuple([quotient if type(n) is int and n == -1 else n for n in new])
