"""``tf.dtypes``: NumPy's dtypes; ``tf.string`` is for text, which no op computes with.

And ``tf.TensorShape``.
"""

from __future__ import annotations

import builtins
import operator
from typing import Any

import numpy as np

import gradtape

from ...core.extend import Size, Tensor, known_size, ops, without_expressions
from .names import adapts, lookup

__all__ = (
    "DType as_dtype bool cast complex complex64 complex128 double float16 float32 float64 "
    "half int8 int16 int32 int64 saturate_cast string uint8 uint16 uint32 uint64"
).split()

DType = np.dtype
float16 = half = np.dtype("float16")
float32 = np.dtype("float32")
float64 = double = np.dtype("float64")
complex64 = np.dtype("complex64")
complex128 = np.dtype("complex128")
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
bool = np.dtype("bool")
string = np.dtype(object)

#: TensorFlow's dtypes of Python's types, which have 64 bits in NumPy, and of text.
_PYTHON: dict[Any, Any] = {"string": string, str: string, bytes: string, float: float32, int: int32}
_NUMBERS: tuple[Any, ...] = (bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64)
_NUMBERS += (float16, float32, float64, complex64, complex128)
#: Dtype names by dtype, type and name: NumPy takes longer to make one than to run a small op.
_NAMES: dict[Any, str] = {x.name: x.name for x in _NUMBERS}
_NAMES |= {key: x.name for x in _NUMBERS for key in (x, x.type)} | {float: "float32", int: "int32"}
#: The classes of these dtypes: looking one up is quicker than ``isinstance``.
CLASSES = frozenset(map(type, _NUMBERS))


def as_dtype(type_value: Any) -> np.dtype[Any]:
    """Return a dtype for a name, a NumPy or Python type, or a dtype."""
    if type(type_value) in CLASSES or isinstance(type_value, np.dtype):
        return type_value
    return np.dtype(_PYTHON.get(type_value, type_value))


@adapts("cast")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Return ``x`` in another dtype; the imaginary part of a complex tensor is dropped."""
    x = x if type(x) is Tensor else gradtape.as_tensor(x)
    own = x.array.dtype
    if own is dtype:
        return x
    if dtype is None:
        raise TypeError("cast: dtype is None: pass a dtype, for example tf.float32")
    wanted = _NAMES.get(dtype) or _NAMES.get(as_dtype(dtype))
    if wanted is None:
        return gradtape.cast(x, as_dtype(dtype))
    if wanted == _NAMES.get(own):
        return x
    return ops["cast"](
        gradtape.real(x) if wanted == "bool" and own.kind == "c" else x, dtype=wanted
    )


@adapts("cast")
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """Return ``value`` in another dtype, with values out of range clipped to its limits."""
    value, dtype = gradtape.as_tensor(value), as_dtype(dtype)
    own = value.dtype
    if own.kind in "iuf" and dtype.kind in "iuf":
        number = float if own.kind == "f" else int
        (low, high), (least, most) = _limits(own), _limits(dtype)
        low, high = number(max(low, least)), number(min(high, most))
        top = own.type(high).item()
        if top > most:  # rounded up, like 2**31 - 1 in float32
            high = number(np.nextafter(own.type(top), own.type(0)))
        value = gradtape.clip(value, low, high)
    return cast(value, dtype)


def _limits(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Return the least and the largest finite number of a dtype."""
    limits: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    number = int if dtype.kind in "iu" else float
    return number(limits.min), number(limits.max)


@adapts("add")
def complex(real: Any, imag: Any, name: str | None = None) -> Any:
    """Return ``real + 1j * imag``, complex64 for two float32 tensors."""
    return gradtape.as_tensor(real) + gradtape.as_tensor(imag) * 1j


# -- shapes ----------------------------------------------------------------------------------------


class TensorShape(tuple[Any, ...]):
    """The shape of a tensor: a tuple that also equals a list of the same sizes."""

    def __new__(cls, dims: Any = ()) -> TensorShape:
        """Make a shape from one size or a sequence of sizes."""
        if dims is None:
            raise ValueError("TensorShape: an unknown rank is not supported: pass sizes as dims")
        several = not (isinstance(dims, Size) or hasattr(dims, "__index__"))
        sizes = dims if several else (dims,)
        return super().__new__(cls, (None if n is None else _dimension(n) for n in sizes))

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self)

    ndims = rank

    def as_list(self) -> list[int | None]:
        """Return the sizes as a list, None for unknown ones."""
        return list(without_expressions(self))

    def num_elements(self) -> int | None:
        """Return the number of elements, None if a size is unknown."""
        return int(np.prod(self)) if self.is_fully_defined() else None

    def is_fully_defined(self) -> builtins.bool:
        """Return whether every size is known."""
        return all(map(known_size, self))

    def is_compatible_with(self, other: Any) -> builtins.bool:
        """Return whether a tensor could have both shapes; unknown sizes match any size."""
        return other is None or gradtape.TensorSpec(self).admits(TensorShape(other))

    def assert_is_compatible_with(self, other: Any) -> None:
        """Raise ``ValueError`` if no tensor has both shapes."""
        if not self.is_compatible_with(other):
            raise ValueError(f"shapes {tuple(self)} and {tuple(TensorShape(other))} do not agree")

    def assert_has_rank(self, rank: int) -> None:
        """Raise ``ValueError`` if the number of axes differs from ``rank``."""
        if len(self) != rank:
            raise ValueError(f"shape {tuple(self)} has {len(self)} axes, expected {rank}")

    def concatenate(self, other: Any) -> TensorShape:
        """Return this shape's sizes followed by another's."""
        return TensorShape((*self, *TensorShape(other)))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return TensorShape(found) if isinstance(index, slice) else found

    def __add__(self, other: Any) -> TensorShape:
        return self.concatenate(other)

    def __radd__(self, other: Any) -> Any:
        try:
            return TensorShape(other).concatenate(self)
        except TypeError:  # a list of other things, which += extends
            return NotImplemented

    def __eq__(self, other: object) -> Any:
        return tuple.__eq__(self, tuple(other) if type(other) is list else other)

    def __ne__(self, other: object) -> Any:
        return tuple.__ne__(self, tuple(other) if type(other) is list else other)

    __hash__ = tuple.__hash__

    def __repr__(self) -> str:
        return f"TensorShape({list(self)})"

    __str__ = tuple.__repr__


class OwnShape(TensorShape):
    """A tensor's own shape. It prints as a tuple, because native code prints it too."""

    __repr__ = tuple.__repr__


def _dimension(n: Any) -> Any:
    return n if isinstance(n, Size) else operator.index(n)


__getattr__ = lookup(__name__)
