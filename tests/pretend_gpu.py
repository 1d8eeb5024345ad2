"""A pretend GPU library over NumPy, shaped like CuPy, for tests on machines without a GPU.

It has the functions that CuPy has (``cupy_table.json``), and takes the arguments and dtypes that
CuPy takes. Its arrays refuse to turn into NumPy arrays unasked and to meet NumPy arrays or arrays
of another device in one operation, as CuPy's do; copies between host and device are counted. Where
CuPy's results are others than NumPy's, so are those here: indices out of range come in again at the
other end, and of several values assigned to one place it is not the last that stays.
"""

from __future__ import annotations

import contextlib
import math
import operator
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import cupy_rules
import numpy as np
import pytest
from pretend_streams import Timeline

import gradtape as gt
from gradtape.core.extend import Backend, hookimpl
from gradtape.plugins.cupy.devices import guarded
from gradtape.plugins.cupy.names import Namespace

__all__ = ["Plugin", "PretendBackend", "as_cupy", "forget_cupy", "make"]

#: Python's operators, and the ufuncs that they call.
_UFUNCS = dict(
    pair.split(":")
    for pair in (
        "add:add sub:subtract mul:multiply truediv:divide floordiv:floor_divide mod:remainder "
        "pow:power xor:bitwise_xor and:bitwise_and or:bitwise_or lshift:left_shift "
        "rshift:right_shift matmul:matmul lt:less le:less_equal gt:greater ge:greater_equal "
        "eq:equal ne:not_equal neg:negative pos:positive abs:absolute invert:invert"
    ).split()
)
_COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
_UNARY = ("neg", "pos", "abs", "invert")


def make(name: str, devices: int = 2, version: str = "0.0-pretend") -> types.ModuleType:
    """Return a module called ``name`` with ``devices`` pretend devices.

    ``with module.counting() as copies`` counts copies between host and device by what made them;
    ``module.timeline`` is what happens on streams.
    """
    return _Library(name, devices, version).module


@contextlib.contextmanager
def as_cupy(devices: int = 2) -> Iterator[Any]:
    """Let a pretend library be CuPy, for the CuPy backend."""
    library = _Library("cupy", devices, "0.0-pretend")
    names = {
        "cupy": library.module,
        "cupyx": types.ModuleType("cupyx"),
        "cupyx.scipy": types.ModuleType("cupyx.scipy"),
        "cupyx.scipy.special": library.special,
    }
    names["cupyx"].scipy = names["cupyx.scipy"]  # type: ignore[attr-defined]
    names["cupyx.scipy"].special = library.special  # type: ignore[attr-defined]
    gt.random.set_seed(0)  # so that the generator that all share is on the host
    with pytest.MonkeyPatch.context() as patch:
        for name, module in names.items():
            patch.setitem(sys.modules, name, module)
        forget_cupy()
        yield library
    forget_cupy()


def forget_cupy() -> None:
    """Let the CuPy backend look for CuPy again."""
    found = vars(gt.registry().backends["cupy"])
    for name in ("_cupy", "_namespace"):
        found.pop(name, None)


class _OutOfMemoryError(MemoryError):
    """What CuPy raises where its pool gets no memory."""


class _Library:
    """A module, and the state of its devices."""

    def __init__(self, name: str, devices: int, version: str) -> None:
        self.name, self.current, self.version = name, [0], version
        self.copies: Counter[str] = Counter()
        self.most = float("inf")  # bytes that one array may take
        self.left = float("inf")  # arrays until there is no memory
        self.timeline = Timeline()
        self.Device = self._device_type()
        self.ndarray = self._array_type()
        self.module = module = types.ModuleType(name)
        vars(module).update(
            ndarray=self.ndarray,
            array=self.array,
            asarray=self.asarray,
            asnumpy=lambda x: self.copied("asnumpy", np.array(x.data)),
            copies=self.copies,
            counting=self.counting,
            timeline=self.timeline,
            __version__=version,
            __getattr__=self.missing,
            get_default_memory_pool=lambda: types.SimpleNamespace(
                used_bytes=lambda: 3 << 20,
                total_bytes=lambda: 4 << 20,
                free_all_blocks=lambda: None,
            ),
            cuda=types.SimpleNamespace(
                Device=self.Device,
                memory=types.SimpleNamespace(OutOfMemoryError=_OutOfMemoryError),
                runtime=types.SimpleNamespace(
                    getDeviceCount=lambda: devices,
                    getDevice=lambda: self.current[-1],
                    memGetInfo=lambda: (1 << 29, 1 << 34),
                ),
                **self.timeline.names_of_cuda,
            ),
        )
        tricks = types.SimpleNamespace(as_strided=self.as_strided)
        module.lib = types.SimpleNamespace(stride_tricks=tricks)  # type: ignore[attr-defined]
        for room in ("linalg", "fft"):
            setattr(module, room, self.room(f"{room}."))
        self.special = self.room("scipy.special.")

    @contextlib.contextmanager
    def counting(self) -> Iterator[Counter[str]]:
        """Count copies from 0."""
        self.copies.clear()
        yield self.copies

    def copied(self, what: str, value: Any) -> Any:
        """Count a copy between host and device."""
        self.copies[what] += 1
        return value

    def room(self, prefix: str) -> types.ModuleType:
        room = types.ModuleType(f"{self.name}.{prefix.rstrip('.')}")
        room.__getattr__ = lambda attribute: self.missing(attribute, prefix)  # type: ignore[method-assign]
        return room

    def missing(self, attribute: str, prefix: str = "") -> Any:
        """Return what CuPy has under a name, over NumPy's or SciPy's."""
        name = prefix + attribute
        if name not in cupy_rules.NAMES:
            raise AttributeError(f"module {self.name!r} has no attribute {name!r}")
        plain = _plain(name)
        if not cupy_rules.NAMES[name]:
            return plain
        found = self.lift(plain, name)
        if isinstance(plain, np.ufunc) and not prefix:
            found.at = self.at(plain)
        return found

    def lift(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return NumPy's function for pretend arrays, called as CuPy's is."""
        row = cupy_rules.NAMES.get(name, ())
        loops = len(row) > 1

        def lifted(*args: Any, **kwargs: Any) -> Any:
            args, kwargs, device = self.bare(args, kwargs)
            if row:
                given = cupy_rules.check_call(name, args, kwargs)
                cupy_rules.check_values(name, given)
            if name.rpartition(".")[2] in cupy_rules.WAITING:
                self.copied(name, None)
            compute = partial(self.looped, function, name) if loops else _called(function)
            found = compute(args, kwargs)
            self.record(compute, args, kwargs, found)
            return self.wrap(found, device)

        lifted.__name__ = lifted.__qualname__ = name
        return lifted

    def record(self, compute: Any, args: Any, kwargs: Any, found: Any) -> None:
        """Note what a function computed, where a stream is captured."""

    def looped(self, function: Any, name: str, args: Any, kwargs: Any) -> Any:
        """Return what a ufunc gives, computed and given in the types of CuPy's loop."""
        kwargs = dict(kwargs)
        loop = cupy_rules.loop_of(name, args, kwargs.pop("dtype", None))
        if loop is None:
            return function(*args, **kwargs)
        takes, gives = loop
        with np.errstate(all="ignore"):
            cast = [np.asarray(x).astype(t) for x, t in zip(args, takes, strict=True)]
            found = function(*cast, **kwargs)
        if isinstance(found, tuple):
            return tuple(np.asarray(x).astype(t) for x, t in zip(found, gives, strict=True))
        return found if kwargs.get("out") is not None else np.asarray(found).astype(gives)

    def at(self, ufunc: np.ufunc) -> Callable[..., None]:
        def at(array: Any, where: Any, values: Any) -> None:
            if array.dtype.char not in cupy_rules.ATOMIC[ufunc.__name__]:
                raise TypeError(f"{self.name}.{ufunc.__name__}.at: unsupported {array.dtype}")
            (data, place, new), _, _ = self.bare((array, where, values), {})
            ufunc.at(data, _wrapped(data.shape, place), new)

        return at

    def bare(self, args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any], int]:
        """Return arguments with the arrays inside, and their device; raise if it is not one."""
        seen: set[int] = set()

        def bare(value: Any) -> Any:
            if isinstance(value, self.ndarray):
                seen.add(value.device.id)
                return np.asarray(value.data)
            if isinstance(value, np.ndarray):
                raise TypeError(f"{self.name}: Unsupported type {type(value)}")
            if type(value) in (tuple, list):
                return type(value)(bare(x) for x in value)
            return value

        args = tuple(bare(x) for x in args)
        kwargs = {key: bare(x) for key, x in kwargs.items()}
        here = self.current[-1]
        if seen - {here}:
            raise ValueError(
                f"Array device must be same as the current device: array devices = {sorted(seen)} "
                f"while current = {here}"
            )
        return args, kwargs, here

    def wrap(self, value: Any, device: int) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            if isinstance(getattr(value, "base", None), np.ndarray):  # a view takes none
                return self.ndarray(value, device)
            self.take(value.nbytes)
            return self.ndarray(value, device)
        arrays = (np.ndarray, np.generic)
        if isinstance(value, (tuple, list)) and any(isinstance(x, arrays) for x in value):
            kind = type(value) if hasattr(value, "_fields") else None
            found = [self.wrap(x, device) for x in value]
            return kind(*found) if kind else type(value)(found)
        return value

    def take(self, size: int) -> None:
        """Take memory for a new array."""
        self.left -= 1
        if size > self.most or self.left < 0:
            raise _OutOfMemoryError(f"Out of memory allocating {size:,} bytes")

    def array(self, obj: Any, dtype: Any = None, copy: bool = True, **keywords: Any) -> Any:
        """Return a new array, copied from the host unless it is on a device."""
        cupy_rules.check_call("array", (obj, dtype, copy), keywords)
        if isinstance(obj, self.ndarray):
            data = np.array(obj.data, dtype=dtype, copy=True if copy else None)
            return self.ndarray(data, self.current[-1])
        if isinstance(obj, (list, tuple)):
            parts, _, device = self.bare((obj,), {})
            if _some(obj, self.ndarray):  # stacked on the device
                return self.ndarray(np.array(parts[0], dtype=dtype), device)
        return self.ndarray(self.copied("array", np.array(obj, dtype=dtype)), self.current[-1])

    def asarray(self, a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None) -> Any:
        if isinstance(a, self.ndarray) and not copy and dtype in (None, a.dtype):
            return a
        return self.array(a, dtype=dtype)

    def as_strided(self, x: Any, shape: Any = None, strides: Any = None) -> Any:
        """Return a view, as ``cupy.lib.stride_tricks`` does."""
        return self.wrap(np.lib.stride_tricks.as_strided(x.data, shape, strides), x.device.id)

    def _device_type(library) -> type:
        class Device:
            def __init__(self, id: int) -> None:
                self.id = id

            def __enter__(self) -> Device:
                library.current.append(self.id)
                return self

            def __exit__(self, *exception: object) -> None:
                library.current.pop()

            def __eq__(self, other: object) -> bool:
                return isinstance(other, Device) and other.id == self.id

            __hash__ = None  # type: ignore[assignment]

        Device.__module__ = library.name
        return Device

    def _array_type(library) -> type:
        class ndarray(_Array):
            pass

        ndarray.library = library
        ndarray.__module__, ndarray.__qualname__ = library.name, "ndarray"
        for operation, ufunc in _UFUNCS.items():
            call = _operator(library, ufunc, len(operation) and operation in _UNARY)
            setattr(ndarray, f"__{operation}__", call)
            if operation not in (*_COMPARED, *_UNARY):
                setattr(ndarray, f"__r{operation}__", lambda x, y, call=call: call(y, x))
                setattr(ndarray, f"__i{operation}__", _in_place(library, ufunc))
        return ndarray


class _Memory(np.ndarray):
    """An array's data, with the address and the owner of its memory, as in CuPy."""

    @property
    def ptr(self) -> int:
        return self.ctypes.data

    @property
    def mem(self) -> Any:
        owner: Any = self
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        return owner


class _Array:
    """An array on a pretend device."""

    library: _Library

    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 100

    def __init__(self, data: Any, device: Any) -> None:
        if type(data) is tuple:  # a shape with a dtype, as CuPy's own takes
            self.library.take(np.dtype(device).itemsize * math.prod(data))
            data, device = np.empty(data, device), self.library.current[-1]
        self.data = np.asarray(data).view(_Memory)
        self.device = self.library.Device(device)

    @property
    def _c_contiguous(self) -> bool:
        return bool(self.data.flags.c_contiguous)

    def __array__(self, *rest: Any, **keywords: Any) -> Any:
        raise TypeError(
            "Implicit conversion to a NumPy array is not allowed. Please use `.get()` to "
            "construct a NumPy array explicitly."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        if method != "__call__":
            return NotImplemented
        return getattr(self.library.module, ufunc.__name__)(*inputs, **keywords)

    def __array_function__(self, function: Any, kinds: Any, args: Any, keywords: Any) -> Any:
        return getattr(self.library.module, function.__name__)(*args, **keywords)

    def __array_namespace__(self, **keywords: Any) -> Any:
        return self.library.module

    def __dlpack__(self, **keywords: Any) -> Any:
        return self.data.__dlpack__(**keywords)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()

    @property
    def base(self) -> Any:
        """The array that this one is a view of."""
        owner = self.data.mem
        return None if self.data.base is owner else type(self)(owner, self.device.id)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__") or attribute == "data":
            raise AttributeError(attribute)
        name = f"ndarray.{attribute}"
        if name not in cupy_rules.NAMES:
            raise AttributeError(f"'{self.library.name}.ndarray' has no attribute {attribute!r}")
        value = getattr(self.data, attribute)
        if not callable(value):
            return self.library.wrap(value, self.device.id)
        if attribute in ("item", "tolist", "tobytes", "get"):
            self.library.copied(attribute, None)
        own = _OWN.get(attribute)
        method = own or (lambda x, *args, **kwargs: getattr(x, attribute)(*args, **kwargs))
        lifted = self.library.lift(method, name)
        return lambda *args, **kwargs: lifted(self, *args, **kwargs)

    def copy(self) -> Any:
        """Return a copy on the current device."""
        return type(self)(np.array(self.data), self.library.current[-1])

    def get(self) -> Any:
        return self.library.copied("get", np.array(self.data))

    def set(self, arr: Any, stream: Any = None) -> None:
        self.library.timeline.copies(stream)
        self.data[...] = self.library.copied("set", arr)

    def __getitem__(self, index: Any) -> Any:
        where = self.index(index)
        return self.library.wrap(np.asarray(np.asarray(self.data)[where]), self.device.id)

    def __setitem__(self, index: Any, value: Any) -> None:
        (new,), _, _ = self.library.bare((value,), {})
        if getattr(new, "ndim", 0) and not np.can_cast(new.dtype, self.data.dtype, "unsafe"):
            raise TypeError("cannot cast")
        where = self.index(index)
        places = np.arange(self.data.size).reshape(self.data.shape)[where].ravel()
        new = np.broadcast_to(np.asarray(new, self.data.dtype), self.data[where].shape).ravel()
        # in CuPy several threads write, and any may be the last
        flat = self.data.reshape(-1) if self.data.flags.c_contiguous else self.data.flat
        flat[places[::-1]] = new[::-1]

    def index(self, index: Any) -> Any:
        """Return an index as NumPy takes it, counting what is copied to the device or back."""
        (where,), _, _ = self.library.bare((index,), {})
        for part in where if isinstance(where, tuple) else (where,):
            if isinstance(part, list):
                self.library.copied("index from a list", None)
            elif getattr(getattr(part, "dtype", None), "kind", "") == "b":
                self.library.copied("mask", None)
        return _wrapped(self.data.shape, where)

    def __float__(self) -> float:
        return self.library.copied("float", float(self.data))

    def __int__(self) -> int:
        return self.library.copied("int", int(self.data))

    def __complex__(self) -> complex:
        return self.library.copied("complex", complex(self.data))

    def __index__(self) -> int:
        return self.library.copied("index", operator.index(self.data))

    def __bool__(self) -> bool:
        return self.library.copied("bool", bool(self.data))

    def __repr__(self) -> str:
        return self.library.copied("repr", repr(self.data))

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self.data)))

    def __reduce__(self) -> Any:
        raise TypeError("a pretend array is not pickled")


def _called(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    return lambda args, kwargs: function(*args, **kwargs)


def _operator(library: _Library, ufunc: str, unary: bool) -> Callable[..., Any]:
    function = library.lift(_plain(ufunc), ufunc)

    def call(x: Any, y: Any) -> Any:
        if not isinstance(y, (_Array, np.ndarray, np.generic, int, float, complex)) or (
            not isinstance(x, (_Array, np.ndarray, np.generic, int, float, complex))
        ):
            return NotImplemented
        return function(x, y)

    return (lambda x: function(x)) if unary else call


def _in_place(library: _Library, ufunc: str) -> Callable[..., Any]:
    function = library.lift(_plain(ufunc), ufunc)

    def call(x: Any, y: Any) -> Any:
        found = function(x, y).data
        if found.shape != x.data.shape:
            raise ValueError(f"{ufunc}: output of shape {found.shape} into {x.data.shape}")
        if not np.can_cast(found.dtype, x.data.dtype, "same_kind"):
            raise TypeError(f"{ufunc}: output (typecode '{found.dtype.char}') could not be coerced")
        x.data[...] = found
        return x

    return call


def _plain(name: str) -> Any:
    """Return what computes as a function of CuPy does, for NumPy's arrays."""
    if name in _OWN:
        return _OWN[name]
    room, _, attribute = name.rpartition(".")
    if room == "scipy.special":
        import scipy.special

        return getattr(scipy.special, attribute)
    return getattr(getattr(np, room) if room else np, attribute)


def _wrapped(shape: tuple[int, ...], where: Any) -> Any:
    """Return an index whose arrays are wrapped around axes, as CuPy's are."""
    parts = list(where) if isinstance(where, tuple) else [where]
    used = sum(_axes(part) for part in parts)
    axis = 0
    for i, part in enumerate(parts):
        if part is Ellipsis:
            axis += len(shape) - used
            continue
        if isinstance(part, (list, np.ndarray)):
            found = np.asarray(part)
            if found.dtype.kind in "iu" and found.ndim and axis < len(shape) and shape[axis]:
                parts[i] = found % shape[axis]
        axis += _axes(part)
    return tuple(parts) if isinstance(where, tuple) else parts[0]


def _axes(part: Any) -> int:
    if part is None or part is Ellipsis:
        return 0
    mask = isinstance(part, (list, np.ndarray)) and np.asarray(part).dtype == bool
    return np.asarray(part).ndim if mask else 1


def _some(values: Any, kind: type) -> bool:
    nested = isinstance(values, (list, tuple))
    return any(_some(x, kind) for x in values) if nested else isinstance(values, kind)


def _take(a: Any, indices: Any, axis: Any = None, out: Any = None) -> Any:
    return np.take(a, indices, axis=axis, out=out, mode="wrap")


def _take_along_axis(a: Any, indices: Any, axis: Any = -1) -> Any:
    size = a.size if axis is None else a.shape[axis]
    return np.take_along_axis(a, indices % max(size, 1), axis)


def _argsort(a: Any, axis: Any = -1, kind: Any = None) -> Any:
    return np.argsort(a, axis=axis, kind="stable")


def _matmul(x1: Any, x2: Any, out: Any = None, **keywords: Any) -> Any:
    """Multiply, but sum the products of a single element in their dtype, as CuPy does."""
    settings = keywords if out is None else {"out": out, **keywords}
    found = np.matmul(x1, x2, **settings)
    if found.size == 1 and found.ndim < 3 and found.dtype == np.float16:
        found = np.asarray(found)
        found[...] = (x1.ravel() * x2.ravel()).cumsum(dtype=np.float16)[-1]
    return found


def _tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    found = np.asarray(np.tensordot(a, b, axes))
    if found.size == 1 and found.dtype == np.float16 and type(axes) is not int:
        pairs = (
            np.moveaxis(x, i, range(len(i))).ravel() for x, i in zip((a, b), axes, strict=True)
        )
        found[...] = np.multiply(*pairs).cumsum(dtype=np.float16)[-1]
    return found


_OWN = {
    "matmul": _matmul,
    "tensordot": _tensordot,
    "argsort": _argsort,
    "take": _take,
    "take_along_axis": _take_along_axis,
}


class Plugin:
    """A gradtape plugin with a backend over a pretend library, and kernels for it if given.

    Attributes
    ----------
    library
        The module that ``make`` returned.
    """

    def __init__(
        self, name: str, kernels: dict[tuple[str, str], Callable[..., Any]] | None = None
    ) -> None:
        self.library = make(name)
        self.backend = PretendBackend(name, self.library)
        self.kernels = kernels or {}

    @hookimpl
    def gradtape_backends(self) -> list[Backend]:
        return [self.backend]

    @hookimpl
    def gradtape_kernels(self) -> dict[tuple[str, str], Callable[..., Any]]:
        return self.kernels


class PretendBackend(Backend):
    """The backend of a pretend library, written as a third party would."""

    def __init__(self, name: str, library: types.ModuleType) -> None:
        self.name = self.array_module = name
        self.library = library
        self.names = Namespace(library)

    @property
    def xp(self) -> Any:
        return self.names

    def scope(self, array: Any) -> Any:
        return array.device

    def guarded(self, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
        return guarded(self.library, kernel, name)

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        with self.library.cuda.Device(int(device or 0)):
            return self.library.array(value, dtype=dtype)

    def to_numpy(self, array: Any) -> Any:
        return self.library.asnumpy(array)

    def device(self, array: Any) -> str:
        return str(array.device.id)
