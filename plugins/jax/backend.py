"""The JAX backend: arrays on the devices of XLA. JAX is imported when it is first used."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import (
    Backend,
    BackendUnavailable,
    Engine,
    Stopwatch,
    get_matmul_precision,
    hookimpl,
    lazy_entry,
    numpy_dtype,
)
from .engine import JaxEngine, gradtape_launchers

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "JaxBackend",
    "gradtape_backends",
    "gradtape_collectives",
    "gradtape_diagnoses",
    "gradtape_kernels",
    "gradtape_launchers",
]


class JaxStopwatch(Stopwatch):
    """Waits for each step, because XLA does not report when a step began.

    Parameters
    ----------
    jax
        JAX.
    """

    def __init__(self, jax: Any) -> None:
        self._jax = jax

    def stop(self, result: Any) -> Any:
        """Wait for a step's results, and return the time."""
        self._jax.block_until_ready(result)
        return perf_counter_ns()


INSTALL = 'pip install "gradtape[jax]"'


@contextmanager
def _precise(jax: Any, precision: str) -> Iterator[None]:
    """Use 64-bit numbers, and products of matrices in a precision, in a block of this thread."""
    with jax.enable_x64(True), jax.default_matmul_precision(precision):
        yield


class JaxBackend(Backend):
    """``jax.Array`` on the devices that JAX finds.

    Devices have JAX's names: ``tensor.to("jax:cpu:0")``. Without a name, new arrays are made on
    JAX's default device. The backend uses 64-bit numbers whether JAX's own flag allows them or not,
    and does not change the flag.
    """

    name = "jax"
    array_module = ("jax", "jaxlib")  # arrays belong to jaxlib, tracers to jax

    @property
    def xp(self) -> Any:
        """``jax.numpy``.

        Raises
        ------
        BackendUnavailable
            If JAX is not installed or cannot be imported; the message says what to install.
        """
        return self._namespace

    @cached_property
    def _namespace(self) -> Any:
        jax = self._jax  # raises and says what to install, before the next line needs it
        from .kernels import Namespace

        return Namespace(jax.numpy)

    # kept once it has succeeded; a failure is retried, because the cause may have been fixed
    @cached_property
    def _jax(self) -> Any:
        try:
            import jax
        except ImportError as error:
            if isinstance(error, ModuleNotFoundError) and error.name == "jax":
                reason = "JAX is not installed"
            else:
                reason = f"JAX cannot be imported ({type(error).__name__}: {error})"
            raise BackendUnavailable(f"backend 'jax': {reason}; {INSTALL}") from error
        return jax

    @property
    def special(self) -> Any:
        """JAX's counterpart of SciPy's."""
        import jax.scipy.special

        return jax.scipy.special

    @cached_property
    def scalar_array_type(self) -> Any:  # type: ignore[override]
        """The type of arrays that are not traced."""
        return type(self.xp.zeros(()))

    def scope(self, array: Any = None) -> Any:
        """Return a context of this thread with 64-bit numbers, and the precision that is set."""
        wanted = get_matmul_precision()
        if wanted == "default":
            return self._jax.enable_x64(True)
        return _precise(self._jax, {"tf32": "tensorfloat32"}.get(wanted, wanted))

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array.

        Parameters
        ----------
        value
            An array of NumPy or JAX, a number, or nested lists of numbers.
        dtype
            The dtype; that of ``value`` by default.
        device
            The device, as in ``"jax:cpu:0"``; JAX's default device if not given.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        jax = self._jax
        with self.scope():
            array = jax.numpy.array(value, dtype=dtype)
            if not device or isinstance(array, jax.core.Tracer):
                return array
            return jax.device_put(array, self._device(device))

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return the value of ``array`` in host memory, without a copy if it is there."""
        return np.asarray(array)

    def device(self, array: Any) -> str:
        """Return the platform and number of the device that holds ``array``."""
        if isinstance(array, self._jax.core.Tracer):
            return ""
        return ",".join(sorted(f"{d.platform}:{d.id}" for d in array.devices()))

    def _device(self, name: str) -> Any:
        platform, _, number = name.rpartition(":")
        if not number.isdecimal():
            platform, number = number, "0"
        try:
            return next(d for d in self._jax.devices(platform or None) if d.id == int(number))
        except (RuntimeError, StopIteration):
            known = ", ".join(f"'jax:{d.platform}:{d.id}'" for d in self._jax.devices())
            raise ValueError(f"backend 'jax': no device {name!r}; there are: {known}") from None

    def weak_scalar(self, value: Any, dtype: Any) -> Any:
        """Return ``value`` as an array of ``dtype`` if it is of the same or a lower kind."""
        kinds = {bool: "iufc", int: "iufc", float: "fc", complex: "c"}[type(value)]
        dtype = numpy_dtype(dtype)
        return self.asarray(np.array(value, dtype)) if dtype.kind in kinds else value

    def bind(self, kernel: Any) -> Any:
        """Return a portable kernel as a function of JAX arrays, with NumPy's rules for dtypes."""
        return self.typed(super().bind(kernel))

    def guarded(self, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a plugin's kernel with 64-bit numbers, and results as arrays of strong dtypes."""
        return kernel if hasattr(kernel, "_typed") else self.typed(kernel)

    def typed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a kernel that uses 64-bit numbers, and whose results have strong dtypes."""
        scope, strong = self.scope, self._strong

        @functools.wraps(function)
        def run(*arrays: Any, **params: Any) -> Any:
            with scope():
                found = function(*arrays, **params)
                if isinstance(found, (list, tuple)):
                    return [strong(x) for x in found]
                return strong(found)

        run._typed = True  # type: ignore[attr-defined]
        return run

    def _strong(self, x: Any) -> Any:
        """Return an array that promotes as in NumPy; JAX's scalars have weak dtypes.

        Numbers and NumPy's arrays become arrays of JAX. Anything else is left to the caller's
        check of results, which names the op.
        """
        if isinstance(x, self._jax.Array):
            return x.astype(x.dtype) if getattr(x, "weak_type", False) else x
        if isinstance(x, (np.ndarray, np.generic, bool, int, float, complex)):
            return self._jax.numpy.asarray(np.asarray(x))
        return x

    def on_host(
        self,
        function: Callable[..., tuple[NDArray[Any], ...]],
        arrays: Sequence[Any],
        results: Sequence[tuple[Any, Any]],
    ) -> list[Any]:
        """Call a function of NumPy arrays; compiled programs call back to the host."""
        if not any(isinstance(x, self._jax.core.Tracer) for x in arrays):
            return super().on_host(function, arrays, results)
        shapes = tuple([self._jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results])

        def call(*values: Any) -> tuple[NDArray[Any], ...]:
            return function(*map(np.asarray, values))

        return list(self._jax.pure_callback(call, shapes, *arrays))

    def stopwatch(self) -> JaxStopwatch:
        """Return a stopwatch that waits for each step and reads the host's clock."""
        return JaxStopwatch(self._jax)

    def compile(self, program: Any, arrays: Sequence[Any]) -> Callable[..., list[Any]] | None:
        """Return a traced program as one function of ``jax.jit``."""
        from .compiling import compiled_by_xla

        return compiled_by_xla(self, program, arrays)


@hookimpl(trylast=True)
def gradtape_backends() -> list[Backend]:
    """Provide the JAX backend, whether or not it can be used here."""
    return [JaxBackend()]


@hookimpl(trylast=True)
def gradtape_collectives() -> list[Engine]:
    """Provide the engine ``"jax"``, whether or not it can be used here."""
    return [JaxEngine()]


@hookimpl(trylast=True)
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide kernels for ops whose portable ones read values, which are unknown to XLA."""
    return {(op, "jax"): lazy_entry("plugins.jax.kernels", "KERNELS", op) for op in _KERNELS}


#: The ops with a kernel in ``kernels``, which imports JAX, and so is imported late.
_KERNELS = (
    *("cond", "scan", "while_loop"),
    *("getitem", "index_add_like", "index_set"),
    *("random_integers", "random_permutation", "random_split", "random_gamma"),
    *(
        f"random_{kind}{like}"
        for kind in ("exponential", "gumbel", "normal", "truncated_normal", "uniform")
        for like in ("", "_like")
    ),
)


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List JAX in ``gradtape doctor``."""
    return {"jax": lambda: {"packages": {"jax": "jax"}}}
