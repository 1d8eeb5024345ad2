"""Products of matrices by cuBLAS itself.

CuPy refuses to call cuBLAS while a CUDA graph is captured. So compiled programs call the library
that CuPy has loaded, with their own handle for each thread and device. They do so outside graphs,
too, so that results are the same, bit for bit.

cuBLAS takes scratch memory from its handle, where a graph could not have it to itself. So it gets
scratch memory for each stream instead: products on one stream run one after another, whether or not
a graph launches them.

Sums are in the precision of the dtype, those of ``float16`` in ``float32``. The operands of
products of ``float32`` are rounded to TF32 if ``gradtape.mixed_precision.matmul_precision`` allows
it where the product is computed. CuPy has one precision for all threads, so eager products come
here, too, if CuPy's is another.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ....core.extend import Symbol, get_matmul_precision
from ...planned import PlanStep, StepKind, shape_of, symbol_like
from ..writing.places import Place

#: The names of products of float32 whose operands are rounded to TF32, and of those whose operands
#: are the bits of bfloat16.
TF32, BFLOAT16 = "tf32", "bfloat16"
#: By the dtype's character or such a name: cuBLAS's numbers of the operands' and of the results'
#: dtypes, cuBLAS's number of the type of sums, and that type.
_TYPES: dict[str, tuple[int, int, int, Any]] = {
    "e": (2, 2, 68, ctypes.c_float),
    "f": (0, 0, 68, ctypes.c_float),
    "d": (1, 1, 70, ctypes.c_double),
    "F": (4, 4, 68, ctypes.c_float * 2),
    TF32: (0, 0, 77, ctypes.c_float),
    BFLOAT16: (14, 0, 68, ctypes.c_float),
}
#: The compute capability from which GPUs have TF32 and bfloat16, times 10.
_RECENT = 80
_DEFAULT_ALGORITHM = -1
#: The compute capability from which NVIDIA recommends more scratch memory, and the sizes in bytes.
_SCRATCH = (9, 32 << 20, 4 << 20)
#: The largest number of rows, columns or matrices that cuBLAS takes.
_LARGEST = 2**31 - 1
#: The number of streams for which a handle keeps scratch memory, and that of prepared calls.
_STREAMS, _PREPARED = 8, 4096


class NoLibrary(Exception):
    """cuBLAS cannot be called; the message says why."""


@functools.cache
def _library(major: int) -> Any:
    """Return a version of cuBLAS, which CuPy has loaded before."""
    windows = sys.platform == "win32"
    name = f"cublas64_{major}.dll" if windows else f"libcublas.so.{major}"
    loader = getattr(ctypes, "WinDLL", ctypes.CDLL) if windows else ctypes.CDLL
    try:
        library = loader(name)
    except OSError as error:
        raise NoLibrary(f"{name} cannot be loaded ({error})") from error
    whole, long, address = ctypes.c_int, ctypes.c_longlong, ctypes.c_void_p
    matrix = [address, whole, whole, long]
    sizes = [address, *[whole] * 5]
    for function, types in {
        "cublasCreate_v2": [ctypes.POINTER(address)],
        "cublasDestroy_v2": [address],
        "cublasSetStream_v2": [address, address],
        "cublasSetWorkspace_v2": [address, address, ctypes.c_size_t],
        "cublasGemmStridedBatchedEx": [
            *sizes, address, *matrix, *matrix, address, *matrix, whole, whole, whole,
        ],
    }.items():  # fmt: skip
        try:
            getattr(library, function).argtypes = types
        except AttributeError as error:
            raise NoLibrary(f"{name} has no {function}") from error
    return library


class CublasHandle:
    """A handle of cuBLAS, for one thread and the current device.

    Parameters
    ----------
    xp
        CuPy.

    Attributes
    ----------
    calls
        Functions from :meth:`prepared`, by their keys.

    Raises
    ------
    NoLibrary
        If cuBLAS cannot be called.
    """

    def __init__(self, xp: Any) -> None:
        try:
            version = int(xp.cuda.cublas.getVersion(xp.cuda.device.get_cublas_handle()))
        except Exception as error:  # CuPy has its own error types for failed loading
            raise NoLibrary(f"CuPy cannot use cuBLAS ({type(error).__name__}: {error})") from error
        self._xp, self._library = xp, _library(version // 10000)
        self._handle = ctypes.c_void_p()
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        # destroyed with its thread; those left when Python exits end with the process
        end = weakref.finalize(self, self._library.cublasDestroy_v2, self._handle)
        end.atexit = False
        least, large, small = _SCRATCH
        capability = int(xp.cuda.Device().compute_capability)
        self._bytes = large if capability >= 10 * least else small
        self._scratch: dict[int, tuple[Any, Any]] = {}
        self.calls: dict[object, Callable[[Any, Any, Any], None]] = {}
        self.has_bfloat16 = capability >= _RECENT
        self._types = _TYPES if capability >= _RECENT else {**_TYPES, TF32: _TYPES["f"]}
        self._numbers = {
            kind: (ctypes.byref(kind(1)), ctypes.byref(kind(0))) for *_, kind in _TYPES.values()
        }

    def scratch(self, stream: Any) -> Any:
        """Return the scratch memory for products on a stream."""
        found = self._scratch.get(stream.ptr)
        if found is None:
            while len(self._scratch) >= _STREAMS:
                self._scratch.pop(next(iter(self._scratch)))
            # the stream is kept, too: another one at its address would not wait for its work
            found = self._scratch[stream.ptr] = stream, self._xp.empty(self._bytes, np.uint8)
        return found[1]

    def bind(self, stream: Any, scratch: Any) -> None:
        """Make later products run on a stream, with scratch memory for it."""
        self._call("cublasSetStream_v2", self._handle, stream.ptr)
        self._call("cublasSetWorkspace_v2", self._handle, scratch.data.ptr, scratch.nbytes)

    def multiply(
        self, char: str, turned: tuple[int, int], sizes: tuple[int, int, int], count: int,
        x: tuple[Any, int, int], y: tuple[Any, int, int], out: tuple[Any, int, int],
    ) -> None:  # fmt: skip
        """Compute products of matrices in column-major order.

        Parameters
        ----------
        char
            The dtype's character, :data:`TF32` or :data:`BFLOAT16`.
        turned
            1 for an operand to transpose, 0 for the others.
        sizes
            The rows and columns of the results, and the number of products that each element sums.
        count
            The number of products.
        x, y, out
            An array with a matrix at its first element, the distance between the matrix's columns,
            and the distance between matrices.
        """
        _check_sizes(*sizes, count, x[1], y[1], out[1])
        given, result, sums, kind = self._types[char]
        one, zero = self._numbers[kind]
        self._call(
            "cublasGemmStridedBatchedEx", self._handle, *turned, *sizes,
            one, x[0].data.ptr, given, x[1], x[2], y[0].data.ptr, given, y[1], y[2],
            zero, out[0].data.ptr, result, out[1], out[2], count, sums, _DEFAULT_ALGORITHM,
        )  # fmt: skip

    def prepared(
        self, key: object, char: str, turned: tuple[int, int], sizes: tuple[int, int, int],
        count: int, distances: tuple[tuple[int, int], tuple[int, int], tuple[int, int]],
    ) -> Callable[[Any, Any, Any], None]:  # fmt: skip
        """Return a function of ``x``, ``y`` and ``out`` that does what :meth:`multiply` does.

        It takes half the time on the host.

        Parameters
        ----------
        key
            An object that stands for these arguments in :attr:`calls`.
        char, turned, sizes, count
            As for :meth:`multiply`.
        distances
            The distances between columns and between matrices, of the three arrays.
        """
        _check_sizes(*sizes, count, *(columns for columns, _ in distances))
        given, result, sums, kind = self._types[char]
        one, zero = self._numbers[kind]
        whole, long = ctypes.c_int, ctypes.c_longlong
        before = self._handle, *map(whole, (*turned, *sizes)), one
        x_layout, y_layout, out_layout = (
            (whole(number), whole(columns), long(matrices))
            for number, (columns, matrices) in zip((given, given, result), distances, strict=True)
        )
        after = whole(count), whole(sums), whole(_DEFAULT_ALGORITHM)
        function = self._library.cublasGemmStridedBatchedEx

        def multiply(x: Any, y: Any, out: Any) -> None:
            status = function(
                *before, x.data.ptr, *x_layout, y.data.ptr, *y_layout,
                zero, out.data.ptr, *out_layout, *after,
            )  # fmt: skip
            if status:
                raise RuntimeError(f"cuBLAS: a product failed with status {status}")

        if len(self.calls) >= _PREPARED:
            self.calls.clear()
        self.calls[key] = multiply
        return multiply

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._library, name)(*arguments)
        if status:
            raise RuntimeError(f"cuBLAS: {name} failed with status {status}")


def _check_sizes(*sizes: int) -> None:
    """Raise if cuBLAS, whose sizes have 32 bits, would read other sizes: ctypes cuts them."""
    if max(sizes) > _LARGEST:
        raise ValueError(
            f"a product of matrices has a size of {max(sizes)}, but cuBLAS takes at most {_LARGEST}"
        )


def rounds() -> bool:
    """Return whether the operands of products of float32 are rounded to TF32 now."""
    wanted = get_matmul_precision()
    return cupy_rounds() if wanted == "default" else wanted == "tf32"


def cupy_must_not(dtype: Any) -> bool:
    """Return whether CuPy's own products of a dtype are not as precise, or as fast, as is set."""
    if dtype.char not in "fF" or rounds() == cupy_rounds():
        return False
    return bool(dtype.char == "f" or cupy_rounds())


@functools.cache
def cupy_rounds() -> bool:
    """Return whether CuPy's own products of float32 are rounded to TF32."""
    return os.environ.get("CUPY_TF32") == "1"


class Products:
    """Multiplies matrices, with a handle for each thread and device.

    Parameters
    ----------
    xp
        The namespace of the CuPy backend.

    Attributes
    ----------
    missing
        Why cuBLAS cannot be called and CuPy multiplies instead; None if it can.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self._device, self._stream = xp.cuda.runtime.getDevice, xp.cuda.get_current_stream
        self._here = threading.local()
        self.missing: str | None = None
        try:
            self._handle()
        except NoLibrary as error:
            self.missing = str(error)

    def _handle(self) -> CublasHandle:
        handles: dict[int, CublasHandle] | None = getattr(self._here, "handles", None)
        if handles is None:
            handles, self._here.bound = {}, {}
            self._here.handles = handles
        device = self._device()
        found = handles.get(device)
        if found is None:
            found = handles[device] = CublasHandle(self.xp)
        return found

    def _bind(self, handle: CublasHandle, stream: Any, scratch: Any) -> None:
        self._here.bound.pop(handle, None)  # if this is interrupted, it is bound to none
        handle.bind(stream, scratch)
        self._here.bound[handle] = stream.ptr

    def current(self) -> CublasHandle:
        """Return the handle of this thread and device, whose products run on the current stream."""
        handle, stream = self._handle(), self._stream()
        if self._here.bound.get(handle) != stream.ptr:
            self._bind(handle, stream, handle.scratch(stream))
        return handle

    def begin(self, stream: Any) -> None:
        """Make this thread's products run on its current stream."""
        if self.missing is None:
            handle = self._handle()
            self._bind(handle, stream, handle.scratch(stream))

    def scratch(self, stream: Any) -> Any:
        """Return the scratch memory for products on a stream; None if CuPy multiplies."""
        return None if self.missing is not None else self._handle().scratch(stream)

    def handle(self) -> Any:
        """Return this thread's handle, to keep it longer than the thread; None if CuPy multiplies.

        What is captured may use memory of the handle, which ends with its last reference.
        """
        return None if self.missing is not None else self._handle()

    def begin_capture(self, stream: Any, scratch: Any) -> None:
        """Make products run on a captured stream, with the memory of their later stream."""
        if self.missing is None:
            self._bind(self._handle(), stream, scratch)

    @property
    def has_bfloat16(self) -> bool:
        """Whether operands may be the bits of bfloat16 on the current device."""
        return self.missing is None and self._handle().has_bfloat16

    def multiply(self, x: Any, y: Any, out: Any) -> None:
        """Multiply matrices, or stacks of them that broadcast, into a C contiguous array.

        Parameters
        ----------
        x, y
            The matrices. Those of ``uint16`` are the bits of bfloat16, if :attr:`has_bfloat16`.
        out
            An array of their dtype; of ``float32`` for bfloat16.
        """
        if self.missing is not None:
            self._check_cupy(out.dtype)
            self.xp.matmul_by_cupy(x, y, out=out)
            return
        count = prod(out.shape[:-2])
        left, right = (self._layout_of(a, out.shape[:-2], count) for a in (x, y))
        (m, n), k = out.shape[-2:], x.shape[-1]
        # row-major matrices are transposed column-major ones, so factors change places
        char = out.dtype.char
        if x.dtype == np.uint16:
            char = BFLOAT16
        elif char == "f" and rounds():
            char = TF32
        self._handle().multiply(
            char, (right[0], left[0]), (n, m, k), count, right[1:], left[1:], (out, n, m * n)
        )

    def matmul(self, x: Any, y: Any) -> Any:
        """Return products of matrices or vectors, as ``cupy.matmul`` does."""
        a = x.reshape(1, -1) if x.ndim == 1 else x
        b = y.reshape(-1, 1) if y.ndim == 1 else y
        if self.missing is not None or not a.size or not b.size or a.shape[-1] != b.shape[-2]:
            self._check_cupy(np.promote_types(x.dtype, y.dtype))
            return self.xp.matmul_by_cupy(x, y)
        dtype = np.promote_types(a.dtype, b.dtype)
        stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        out = self.xp.empty((*stack, a.shape[-2], b.shape[-1]), dtype)
        self.begin(self.xp.cuda.get_current_stream())
        self.multiply(a.astype(dtype, copy=False), b.astype(dtype, copy=False), out)
        return out.reshape((*stack, *a.shape[-2:-1][: x.ndim - 1], *b.shape[-1:][: y.ndim - 1]))

    def _check_cupy(self, dtype: Any) -> None:
        """Raise if CuPy, which rounds to TF32 in all calls or in none, must not multiply."""
        if dtype.char in "fF" and cupy_rounds() and not rounds() and self.missing is not None:
            raise RuntimeError(
                "full precision is set for products of matrices, but CuPy rounds to TF32 because "
                f"of the environment variable CUPY_TF32, and {self.missing}; unset the variable"
            )

    def _layout_of(self, x: Any, shape: tuple[int, ...], count: int) -> tuple[int, Any, int, int]:
        """Return whether matrices are column-major, and their layout; copy them if necessary."""
        if prod(x.shape[:-2]) == 1:
            x = x.reshape(x.shape[-2:]) if x.ndim > 2 else x
        elif x.ndim > 3 or x.shape[:-2] != shape:
            x = self.xp.broadcast_to(x, (*shape, *x.shape[-2:])).reshape(count, *x.shape[-2:])
        size = x.dtype.itemsize
        found = _columns(x, size)
        if found is None or (x.ndim == 3 and x.strides[0] < 0):
            x = self.xp.ascontiguousarray(x)
            found = 0, max(1, x.shape[-1])
        return found[0], x, found[1], x.strides[0] // size if x.ndim == 3 else 0


def layout_of(
    shape: tuple[int, ...], strides: tuple[int, ...], stack: tuple[int, ...]
) -> tuple[int, int, int] | None:
    """Return the layout of matrices for cuBLAS; None if they would have to be copied.

    Parameters
    ----------
    shape, strides
        Those of the matrices, with strides in elements.
    stack
        The shape of the products, without the axes of a product.

    Returns
    -------
    turned, apart, between
        1 if matrices are column-major, the distance of their columns (or rows), and their distance.
    """
    if prod(shape[:-2]) == 1:
        between = 0
    elif len(shape) == 3 and shape[:-2] == stack and strides[0] >= 0:
        between = strides[0]
    else:
        return None
    found = _columns(_Matrix(shape[-2:], strides[-2:]), 1)
    return None if found is None else (*found, between)


def with_dense_operands(
    steps: Sequence[PlanStep], place: Callable[[Symbol], Place]
) -> list[PlanStep]:
    """Return steps that copy the operands of products whose layout cuBLAS does not take.

    A copy that a product makes itself has memory of its own, which a CUDA graph does not keep.

    Parameters
    ----------
    steps
        The steps of a program, in order.
    place
        A function that returns the memory of a value.
    """
    found: list[PlanStep] = []
    for step in steps:
        if step.kind is StepKind.PRODUCT:
            copies = {
                x: PlanStep(StepKind.ELEMENTWISE, "positive", np.positive, (x,), (symbol_like(x),))
                for x in step.inputs
                if not _is_dense(shape_of(x), place(x)[2])
            }
            found += copies.values()
            given = [copies[x].out if x in copies else x for x in step.inputs]
            step = PlanStep(step.kind, step.op, step.run, given, step.outputs, step.params)
        found.append(step)
    return found


def _is_dense(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Return whether cuBLAS takes matrices as they lie; strides are in elements."""
    forward = all(step >= 0 for step in strides[:-2])
    return forward and _columns(_Matrix(shape[-2:], strides[-2:]), 1) is not None


class _Matrix(NamedTuple):
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def _columns(x: Any, size: int) -> tuple[int, int] | None:
    """Return 0 and the distance of rows, or 1 and that of columns; None if neither is dense."""
    (m, n), (down, along) = x.shape[-2:], x.strides[-2:]
    if (along == size or n == 1) and (m == 1 or (down % size == 0 and down >= n * size)):
        return 0, max(n, 1) if m == 1 else down // size
    if (down == size or m == 1) and (n == 1 or (along % size == 0 and along >= m * size)):
        return 1, max(m, 1) if n == 1 else along // size
    return None


@functools.lru_cache(maxsize=8)
def products(xp: Any) -> Products:
    """Return the object that multiplies matrices of the CuPy backend, of which this is ``xp``."""
    return Products(xp)
