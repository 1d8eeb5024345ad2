"""``tf.dtypes``: dtypes are NumPy's own; ``tf.string`` is the dtype of what only passes through."""

from __future__ import annotations

from typing import Any

import numpy as np

import gradtape

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


def as_dtype(type_value: Any) -> np.dtype[Any]:
    """Return a dtype for a name, a NumPy or Python type, or a dtype."""
    if isinstance(type_value, np.dtype):
        return type_value
    known: dict[Any, Any] = {"string": string, str: string, bytes: string}
    known |= {float: float32, int: int32}  # Python's own; NumPy has 64 bits for them
    return np.dtype(known.get(type_value, type_value))


@adapts("cast")
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Return ``x`` in another dtype; a complex tensor loses its imaginary part."""
    x = x if type(x) is gradtape.Tensor else gradtape.as_tensor(x)
    dtype = dtype if isinstance(dtype, np.dtype) else as_dtype(dtype)
    own = x.array.dtype
    if own is dtype or own == dtype:
        return x
    return gradtape.cast(gradtape.real(x) if own.kind == "c" != dtype.kind else x, dtype)


@adapts("cast")
def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Any:
    """Return ``value`` in another dtype, what does not fit as the nearest value that does."""
    value, dtype = gradtape.as_tensor(value), as_dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        own = np.iinfo(value.dtype) if value.dtype.kind in "iu" else None
        low = limits.min if own is None else max(limits.min, own.min)
        high = limits.max if own is None else min(limits.max, own.max)
        value = gradtape.clip(value, low, high)
    return cast(value, dtype)


@adapts("add")
def complex(real: Any, imag: Any, name: str | None = None) -> Any:
    """Return ``real + 1j * imag``, complex64 for two float32 tensors."""
    return gradtape.as_tensor(real) + gradtape.as_tensor(imag) * 1j


__getattr__ = lookup(__name__)
