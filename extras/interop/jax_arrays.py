"""Arrays of gradtape as arrays of JAX, and the other way, by sharing memory.

Neither library writes to its arrays, so memory can be shared. JAX shares NumPy's if it is aligned
to 64 bytes. Without ``jax_enable_x64``, integers of 64 bits that are state (the seeds and counts of
random numbers) travel as pairs of ``uint32``.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import jax
import numpy as np

from ..core.extend import backend_of


def checked(x: Any) -> Any:
    """Return an array of JAX, if gradtape has its dtype."""
    if getattr(x.dtype, "kind", "V") not in "biufc":  # JAX's own are V, or have no kind
        raise TypeError(
            f"gradtape has no tensors of {x.dtype}: convert it first, as in x.astype('float32')"
        )
    return x


def to_jax(x: Any) -> Any:
    """Return an array of NumPy or JAX as one of JAX."""
    return checked(x) if isinstance(x, jax.Array) else jax.device_put(x)


def array_in_jax(array: Any) -> Any:
    """Return an array of gradtape as one of JAX, with its dtype: inside :func:`wide_enough`."""
    owner = backend_of(array).name
    if owner not in ("numpy", "jax"):
        raise TypeError(
            f"JAX cannot share arrays of the backend {owner!r}: use x.to('numpy') or x.to('jax')"
        )
    return array if owner == "jax" else jax.device_put(array)


def conjugate(x: Any) -> Any:
    """Return the conjugate: JAX's gradients of complex numbers are those of gradtape's."""
    return x.conj() if x.dtype.kind == "c" else x


def wide_enough(dtypes: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return a context in which JAX keeps 64 bits, if any dtype has them."""
    wide = any(np.dtype(x).itemsize == (16 if np.dtype(x).kind == "c" else 8) for x in dtypes)
    context: AbstractContextManager[Any] = jax.enable_x64(True) if wide else nullcontext()
    return context


def packed_dtype(dtype: Any) -> Any:
    """Return the dtype in which JAX holds state."""
    if jax.dtypes.canonicalize_dtype(dtype) == dtype or dtype.kind not in "iu":
        return dtype
    return np.dtype("uint32")


def packed(x: Any, dtype: Any) -> Any:
    """Return 64-bit integers as pairs of ``uint32``, if that is the dtype in which JAX holds them.

    Parameters
    ----------
    x
        An array of NumPy or JAX.
    dtype
        The dtype in which JAX holds it.
    """
    if x.dtype.itemsize != 8 or x.dtype.kind not in "iu" or dtype != np.uint32:
        return x
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x)[..., None].view(np.uint32)
    return jax.lax.bitcast_convert_type(x, np.uint32)


def unpacked(x: Any, dtype: Any) -> Any:
    """Return 64-bit integers from the pairs of :func:`packed`; the dtype is theirs."""
    if x.dtype != np.uint32 or dtype.itemsize != 8 or dtype.kind not in "iu":
        return x
    if isinstance(x, np.ndarray):
        return np.ascontiguousarray(x).view(dtype)[..., 0]
    return jax.lax.bitcast_convert_type(x, dtype)
