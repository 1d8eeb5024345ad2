"""Arrays that build ONNX: portable kernels run on them when a graph is exported.

They wrap the arrays of ``ndonnx``, whose functions build the nodes, and add what kernels expect:
NumPy's dtypes and promotion, arithmetic with unknown sizes, and assignment to elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.extend import BINARY, COMPARISONS, UNARY, Open
from .onnx_indexing import At, cut, gathered, parsed

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
