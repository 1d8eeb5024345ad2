"""CuPy's names for kernels, with functions of the array API standard that it lacks or limits."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ...core.extend import SCALARS, get_matmul_precision, kind_of, lazy_module

#: The dtypes that CUDA adds atomically, by kind and size; others are added in a wider dtype.
_ATOMIC = frozenset(("i4", "u4", "u8", "f2", "f4", "f8"))
_PRODUCTS = "plugins.cupy.compiled.products"


class _Names:
    """The names of a module, cached once found."""

    def __init__(self, names: Any) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._names, name)
        if not name.startswith("_"):
            setattr(self, name, found)
        return found


class Namespace(_Names):
    """The module ``cupy``, with the arguments from NumPy and the standard that kernels use.

    Attributes
    ----------
    witnesses
        Arrays that stand for the shapes of others, by dtype, shape and device.
    """

    def __init__(self, names: Any) -> None:
        super().__init__(names)
        self.witnesses: dict[Any, Any] = {}
        self.linalg = _Linalg(names)
        self.add = _Add(names)

    def array(self, x: Any, dtype: Any = None) -> Any:
        """Return a new array; a single number is written on the device instead of copied there.

        An array without strides, which NumPy has broadcast from one number, is also written there.
        """
        if type(x) in SCALARS:
            return self._names.full((), x, dtype)
        if isinstance(x, (np.ndarray, np.generic)) and (x.size == 1 or not any(x.strides)):
            dtype = x.dtype if dtype is None else dtype
            if not x.size:
                return self._names.empty(x.shape, dtype)
            return self._names.full(x.shape, x.flat[0].item(), dtype)
        if isinstance(x, self._names.ndarray):
            copied = x.copy()  # on the current device, whatever its own is
            return copied if dtype is None else copied.astype(dtype, copy=False)
        return self._names.array(x, dtype=dtype)

    def asarray(self, x: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return an array, unchanged if it has the dtype and need not be copied."""
        if isinstance(x, self._names.ndarray) and not copy:
            return self._names.asarray(x, dtype=dtype)
        return self.array(x, dtype)

    def matmul(self, x: Any, y: Any) -> Any:
        """Return products of matrices, those of ``float32`` in the precision that is set."""
        if _is_set_for(x, y):
            return lazy_module(_PRODUCTS).products(self).matmul(x, y)
        if x.shape[-1:] == (x.size,) and _is_one_half(x, y, x.size):
            return _in_single(self._names.matmul, x, y)
        return self._names.matmul(x, y)

    def matmul_by_cupy(self, x: Any, y: Any, out: Any = None) -> Any:
        """Return the same in the precision of CuPy."""
        return self._names.matmul(x, y) if out is None else self._names.matmul(x, y, out=out)

    def tensordot(self, x: Any, y: Any, axes: Any = 2) -> Any:
        """Return a product summed over pairs of axes, in the same precision."""
        if isinstance(axes, int):
            axes = range(x.ndim - axes, x.ndim), range(axes)
        of_x, of_y = (
            [i % a.ndim for i in ((part,) if isinstance(part, int) else part)]
            for a, part in zip((x, y), axes, strict=True)
        )
        size = prod(x.shape[i] for i in of_x)
        if not _is_set_for(x, y):
            if _is_one_half(x, y, size):
                return _in_single(self._names.tensordot, x, y, axes=(of_x, of_y))
            return self._names.tensordot(x, y, axes=(of_x, of_y))
        rest_x = [i for i in range(x.ndim) if i not in of_x]
        rest_y = [i for i in range(y.ndim) if i not in of_y]
        shape = [*(x.shape[i] for i in rest_x), *(y.shape[i] for i in rest_y)]
        rows, columns = (prod(a.shape[i] for i in r) for a, r in ((x, rest_x), (y, rest_y)))
        left = self._names.transpose(x, (*rest_x, *of_x)).reshape(rows, size)
        right = self._names.transpose(y, (*of_y, *rest_y)).reshape(size, columns)
        return self.matmul(left, right).reshape(shape)

    def argsort(self, x: Any, axis: int = -1, stable: bool = True) -> Any:
        """Return the order of the elements; CuPy's is always stable."""
        return self._names.argsort(x, axis=axis)

    def logical_and(self, x: Any, y: Any) -> Any:
        """Return whether both are true; CuPy's function refuses complex numbers."""
        return self._names.logical_and(_real(x), _real(y))

    def logical_or(self, x: Any, y: Any) -> Any:
        """Return whether one is true."""
        return self._names.logical_or(_real(x), _real(y))

    def logical_xor(self, x: Any, y: Any) -> Any:
        """Return whether exactly one is true."""
        return self._names.logical_xor(_real(x), _real(y))

    def logical_not(self, x: Any) -> Any:
        """Return whether something is false."""
        return self._names.logical_not(_real(x))

    def sinc(self, x: Any) -> Any:
        """Return ``sin(pi x) / (pi x)``, in double precision for integers."""
        return self._names.sinc(x if kind_of(x.dtype) in "fc" else x.astype(np.float64))

    def count_nonzero(self, x: Any, axis: Any = None, keepdims: bool = False) -> Any:
        """Count the elements that are not 0."""
        return self._names.sum(x != 0, axis=axis, keepdims=keepdims, dtype=np.intp)


def _is_set_for(x: Any, y: Any) -> bool:
    """Return whether a precision is set that is not CuPy's own for a product of these arrays."""
    if get_matmul_precision() == "default":
        return False
    dtype = np.promote_types(x.dtype, y.dtype)
    return bool(lazy_module(_PRODUCTS).cupy_must_not(dtype))


def _is_one_half(x: Any, y: Any, count: int) -> bool:
    """Return whether a product of ``float16`` has one element, the sum of ``count`` products.

    CuPy then sums in ``float16``; otherwise cuBLAS sums in ``float32``.
    """
    return bool(x.size == y.size == count and np.promote_types(x.dtype, y.dtype) == np.float16)


def _in_single(function: Callable[..., Any], x: Any, y: Any, **settings: Any) -> Any:
    """Return a function's result in ``float16``, computed in ``float32``."""
    return function(x.astype(np.float32), y.astype(np.float32), **settings).astype(np.float16)


def _real(x: Any) -> Any:
    return x != 0 if hasattr(x, "dtype") and kind_of(x.dtype) == "c" else x


class _Linalg(_Names):
    def __init__(self, names: Any) -> None:
        super().__init__(names.linalg)
        self._diagonal, self._broadcast_to = names.diagonal, names.broadcast_to

    def diagonal(self, x: Any, offset: int = 0) -> Any:
        """Return the diagonals of matrices."""
        return self._diagonal(x, offset=offset, axis1=-2, axis2=-1)

    def solve(self, a: Any, b: Any) -> Any:
        """Solve systems of equations; CuPy's function needs as many right sides as matrices."""
        if b.ndim > 1 and a.shape[:-2] != b.shape[:-2]:
            stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
            a, b = (self._broadcast_to(x, (*stack, *x.shape[-2:])).copy() for x in (a, b))
        return self._names.solve(a, b)

    def svdvals(self, x: Any) -> Any:
        """Return singular values."""
        return self._names.svd(x, compute_uv=False)


class _Add(_Names):
    """``cupy.add``, whose ``at`` takes every dtype."""

    def __init__(self, names: Any) -> None:
        super().__init__(names.add)
        self._call = names.add

    def __call__(self, *args: Any, **settings: Any) -> Any:
        return self._call(*args, **settings)

    def at(self, out: Any, where: Any, values: Any) -> None:
        """Add values at an index, which may repeat positions."""
        kind = kind_of(out.dtype)
        if kind == "c":
            self.at(out.real, where, values.real)
            self.at(out.imag, where, values.imag)
        elif f"{kind}{out.dtype.itemsize}" in _ATOMIC:
            self._call.at(out, where, values)
        elif out.dtype == np.int64:  # as sums of two's complements
            self._call.at(out.view(np.uint64), where, values.astype(out.dtype).view(np.uint64))
        else:
            wide = out.astype(np.int32)
            self._call.at(wide, where, values.astype(np.int32))
            out[...] = wide.astype(out.dtype)
