"""A pretend GPU library over NumPy, shaped like CuPy, for tests on machines without a GPU.

Its arrays refuse to turn into NumPy arrays unasked and to meet NumPy arrays or arrays of another
device in one operation, as CuPy's do; so a framework that copies behind the user's back is caught.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from gradtape.core.extend import Backend, hookimpl


def make(name: str, devices: int = 2, version: str = "0.0-pretend") -> types.ModuleType:
    """Return a module called ``name`` with ``devices`` pretend devices."""
    module = types.ModuleType(name)
    current = [0]

    class Device:
        def __init__(self, id: int) -> None:
            self.id = id

        def __enter__(self) -> Device:
            current.append(self.id)
            return self

        def __exit__(self, *exception: object) -> None:
            current.pop()

    class ndarray:
        """An array on a pretend device."""

        def __init__(self, data: Any, device: int) -> None:
            self.data, self.device = np.asarray(data), Device(device)

        def __array__(self, *rest: Any, **keywords: Any) -> Any:
            raise TypeError("implicit conversion to a NumPy array is not allowed")

        def __array_namespace__(self, **keywords: Any) -> Any:
            return module

        def __dlpack__(self, **keywords: Any) -> Any:
            return self.data.__dlpack__(**keywords)

        def __dlpack_device__(self) -> Any:
            return self.data.__dlpack_device__()

        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("__") or attribute == "data":
                raise AttributeError(attribute)
            value = getattr(self.data, attribute)
            return lift(value) if callable(value) else wrap(value, self.device.id)

        def __getitem__(self, index: Any) -> Any:
            return lift(operator.getitem)(self, index)

        def __setitem__(self, index: Any, value: Any) -> None:
            lift(operator.setitem)(self, index, value)

        def __float__(self) -> float:
            return float(self.data)

        def __int__(self) -> int:
            return int(self.data)

        def __bool__(self) -> bool:
            return bool(self.data)

        def __len__(self) -> int:
            return len(self.data)

        __hash__ = None  # type: ignore[assignment]

    def wrap(value: Any, device: int) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            return ndarray(value, device)
        if isinstance(value, (tuple, list)) and any(isinstance(x, np.ndarray) for x in value):
            return tuple(wrap(x, device) for x in value)
        return value

    def lift(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return NumPy's function for pretend arrays."""

        def lifted(*args: Any, **kwargs: Any) -> Any:
            seen: set[int] = set()

            def bare(value: Any) -> Any:
                if isinstance(value, ndarray):
                    seen.add(value.device.id)
                    return value.data
                if isinstance(value, np.ndarray):
                    raise TypeError(f"{name}: unsupported type numpy.ndarray")
                if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
                    return type(value)(bare(x) for x in value)
                return value

            args = tuple(bare(x) for x in args)
            kwargs = {key: bare(x) for key, x in kwargs.items()}
            if len(seen) > 1:
                raise ValueError(f"{name}: arrays are on different devices: {sorted(seen)}")
            return wrap(function(*args, **kwargs), seen.pop() if seen else current[-1])

        return lifted

    binary = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
    for operation in binary:
        plain = getattr(operator, f"__{operation}__")
        setattr(ndarray, f"__{operation}__", lift(plain))
        setattr(ndarray, f"__r{operation}__", lift(lambda x, y, plain=plain: plain(y, x)))
    for operation in "lt le gt ge eq ne neg pos abs invert".split():
        setattr(ndarray, f"__{operation}__", lift(getattr(operator, f"__{operation}__")))
    for cls in (ndarray, Device):
        cls.__module__ = name
    ndarray.__qualname__ = "ndarray"

    def array(value: Any, dtype: Any = None, **keywords: Any) -> Any:
        data = value.data if isinstance(value, ndarray) else value
        return ndarray(np.array(data, dtype=dtype), current[-1])

    def missing(attribute: str) -> Any:
        value = getattr(np, attribute)
        if isinstance(value, (type, np.dtype)) or not callable(value):
            return value
        return lift(value)

    module.ndarray = ndarray  # type: ignore[attr-defined]
    module.array = module.asarray = array  # type: ignore[attr-defined]
    module.asnumpy = lambda x: np.array(x.data)  # type: ignore[attr-defined]
    module.__version__ = version  # type: ignore[attr-defined]
    module.__getattr__ = missing  # type: ignore[method-assign]
    linalg = types.SimpleNamespace()
    for function in ("solve", "inv", "det", "slogdet", "cholesky", "svd"):
        setattr(linalg, function, lift(getattr(np.linalg, function)))
    module.linalg = linalg  # type: ignore[attr-defined]
    runtime = types.SimpleNamespace(getDeviceCount=lambda: devices)
    module.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
        Device=Device, runtime=runtime
    )
    return module


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

    @property
    def xp(self) -> Any:
        return self.library

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        with self.library.cuda.Device(int(device or 0)):
            return self.library.array(value, dtype=dtype)

    def to_numpy(self, array: Any) -> Any:
        return self.library.asnumpy(array)

    def device(self, array: Any) -> str:
        return str(array.device.id)
