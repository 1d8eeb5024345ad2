"""The CuPy backend: arrays on NVIDIA GPUs. CuPy is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...core.extend import Backend, BackendUnavailable, hookimpl, lazy_entry, lazy_module
from .devices import GpuSender, GpuStopwatch, Scope, guarded
from .names import Namespace

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The modules that are imported with the first program that runs on CuPy, and with the first op.
_PROGRAMS = "plugins.cupy.compiled.programs"
_LAUNCHERS = "plugins.cupy.eager.launchers"
#: The maximum of arrays that stand for the shapes of others.
_WITNESSES = 256
INSTALL = (
    "install the CuPy that fits the driver's CUDA: "
    'for CUDA 12, pip install "gradtape[cupy]" (the wheel cupy-cuda12x); '
    'for CUDA 13, pip install "gradtape[cupy-cuda13]" (the wheel cupy-cuda13x)'
)


class CupyBackend(Backend):
    """``cupy.ndarray`` on an NVIDIA GPU.

    Devices have CuPy's numbers: ``tensor.to("cupy:1")``. Without a number, new arrays are made on
    CuPy's current device. Ops run on the device of their arrays, whatever the current device is.
    They refuse arrays of different devices.

    The host waits for the GPU only to read a value. So an index out of range is not an error: it
    gives nan, the lowest integer, the highest unsigned integer, or true. A label out of range gives
    a loss of nan.

    Ops run on CuPy's current stream, and each thread has its own. On the default stream, arrays of
    one thread can be used in any other. With your own streams, the thread that uses an array must
    wait for the one that makes it (``stream.synchronize()`` or ``stream.wait_event``), as always
    with CuPy.
    """

    name = "cupy"
    array_module = "cupy"
    promotes = True
    waits = True

    @property
    def xp(self) -> Any:
        """CuPy's namespace, with the names of the array API standard that it lacks.

        Raises
        ------
        BackendUnavailable
            If CuPy is not installed, or finds no driver or GPU; the message says what to install.
        """
        return self._namespace

    # like _cupy, kept once it has succeeded
    @cached_property
    def _namespace(self) -> Any:
        return Namespace(self._cupy)

    @property
    def special(self) -> Any:
        """CuPy's counterpart of SciPy's."""
        import cupyx.scipy.special

        return cupyx.scipy.special

    # kept once it has succeeded; a failure is retried, because the cause may have been fixed
    @cached_property
    def _cupy(self) -> Any:
        try:
            import cupy
        except ImportError as error:
            if isinstance(error, ModuleNotFoundError) and error.name == "cupy":
                reason = "CuPy is not installed"
            else:
                reason = f"CuPy cannot be imported ({_line(error)})"
            raise BackendUnavailable(f"backend 'cupy': {reason}; {INSTALL}") from error
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy's own error type is known only if CuPy is installed
            raise BackendUnavailable(
                f"backend 'cupy': CuPy {cupy.__version__} cannot reach a GPU ({_line(error)}); it "
                f"needs an NVIDIA GPU and its driver. If they are there, {INSTALL}"
            ) from error
        if count == 0:
            raise BackendUnavailable(
                f"backend 'cupy': CuPy {cupy.__version__} finds no GPU; check that 'nvidia-smi' "
                "lists one and that CUDA_VISIBLE_DEVICES does not hide it"
            )
        return cupy

    def scope(self, array: Any) -> Any:
        """Return a context in which operators run on the GPU of ``array``."""
        return Scope(self._cupy, array)

    def guarded(self, kernel: Callable[..., Any], name: str) -> Callable[..., Any]:
        """Return a kernel that runs on the GPU of its arrays, and reports a lack of memory there.

        Parameters
        ----------
        kernel
            A function of CuPy arrays.
        name
            The op's name.
        """
        if getattr(kernel, "guarded", False):
            return kernel
        return guarded(self._cupy, kernel, name)

    def kernel(self, op: Any, portable: Callable[..., Any]) -> Callable[..., Any]:
        """Return what computes an op by few prepared launches, where its steps have kernels.

        Parameters
        ----------
        op
            The op.
        portable
            The op's own kernel as a function of CuPy arrays, for all other arrays.
        """
        found: Callable[..., Any] = lazy_module(_LAUNCHERS).kernel_of(op, self, self.xp, portable)
        return found

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array on a GPU.

        Parameters
        ----------
        value
            An array of NumPy or CuPy, a number, or nested lists of numbers.
        dtype
            The dtype; that of ``value`` by default.
        device
            The number of the GPU, as in ``"cupy:1"``; by default that of ``value`` if it is on
            one, or the current one.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        make = guarded(self._cupy, lambda: self.xp.array(value, dtype=dtype), "a new array")
        if device is None and isinstance(value, self._cupy.ndarray):
            device = self.device(value)
        if device is None:
            return make()
        with self._cupy.cuda.Device(self._number(device)):
            return make()

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return a copy of ``array`` in host memory."""
        result: NDArray[Any] = self._cupy.asnumpy(array)
        return result

    def device(self, array: Any) -> str:
        """Return the number of the GPU that holds ``array``."""
        return str(array.device.id)

    def sender(self, device: str | None = None) -> GpuSender:
        """Return a sender that copies arrays to a GPU on its own stream."""
        return GpuSender(self, self._cupy, device)

    def stopwatch(self) -> GpuStopwatch:
        """Return a stopwatch that measures steps with GPU events and adds NVTX ranges."""
        return GpuStopwatch(self._cupy)

    def diagnosis(self) -> dict[str, Any]:
        """Return a report on drivers, GPUs, CuPy and its libraries, with advice."""
        found: dict[str, Any] = lazy_module("plugins.cupy.diagnosis").diagnosis()
        return found

    def shape_witness(self, array: Any) -> Any:
        """Return a zero of the same shape and dtype, with the memory of one element."""
        if array.nbytes <= 512:  # the smallest block of CuPy's memory pool
            return array
        key = array.dtype, array.shape, array.device.id
        known = self._namespace.witnesses
        found = known.get(key)
        if found is None:
            cupy = self._cupy
            try:
                with array.device:
                    found = cupy.broadcast_to(cupy.zeros((), array.dtype), array.shape)
            except cupy.cuda.memory.OutOfMemoryError:
                return array
            if len(known) >= _WITNESSES:
                known.clear()
            known[key] = found
        return found

    def compile(self, program: Any, arrays: Sequence[Any]) -> Callable[..., list[Any]] | None:
        """Return a function that runs a traced program as kernels made for its inputs' shapes.

        Parameters
        ----------
        program
            A graph.
        arrays
            The arrays of the first call.
        """
        run: Callable[..., list[Any]] = lazy_module(_PROGRAMS).Programs(program, self)
        return run

    def updating(self, formula: Any) -> Callable[..., Sequence[Any] | None] | None:
        """Return a function that updates many variables by one kernel.

        Parameters
        ----------
        formula
            An optimizer's formula.
        """
        found: Callable[..., Any] | None = lazy_module("plugins.cupy.fused.updates").updating(
            self.xp, formula
        )
        return found

    def _number(self, device: str) -> int:
        count = self._cupy.cuda.runtime.getDeviceCount()
        if device.isdecimal() and int(device) < count:
            return int(device)
        raise ValueError(
            f"backend 'cupy': no device {device!r}; there are 0 to {count - 1}, as in 'cupy:0'"
        )


def _line(error: Exception) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


_backend = CupyBackend()
#: By module of this package, the ops with a kernel there.
_KERNELS = {
    "kernels": (
        "conv conv_to_filters conv_to_images getitem index_add_like index_set size_table take "
        "take_along_axis"
    ),
    "fused.columns": "batch_norm_training batch_norm_gradient",
    "fused.gates": "lstm_gates lstm_gates_gradient",
    "fused.rows": (
        "softmax log_softmax softmax_cross_entropy softmax_less_shares "
        "sparse_softmax_cross_entropy softmax_less_labels"
    ),
    "random.kernels": (
        "random_exponential random_exponential_like random_gumbel random_gumbel_like "
        "random_integers random_normal random_normal_like random_split random_truncated_normal "
        "random_truncated_normal_like random_uniform random_uniform_like"
    ),
}


@hookimpl(trylast=True)
def gradtape_backends() -> list[Backend]:
    """Provide the CuPy backend, whether or not it can be used here."""
    return [_backend]


@hookimpl(trylast=True)
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide kernels for ops that CuPy lacks, or that are faster here than the portable ones."""
    return {
        (op, "cupy"): _lazy_kernel(module, op)
        for module, names in _KERNELS.items()
        for op in names.split()
    }


def _lazy_kernel(module: str, op: str) -> Callable[..., Any]:
    """Return a kernel whose module is imported on its first run."""
    kernel = lazy_entry(f"plugins.cupy.{module}", "KERNELS", op)
    return lambda *arrays, **params: kernel(_backend.xp, *arrays, **params)


@hookimpl(trylast=True)
def gradtape_executors() -> dict[str, Callable[..., Any]]:
    """Provide executors that capture programs in CUDA graphs at once, and never."""
    return {"cuda_graphs": _cuda_graphs, "kernels": _only_kernels}


def _cuda_graphs(graph: Any) -> Any:
    return lazy_module(_PROGRAMS).cuda_graphs(graph)


def _only_kernels(graph: Any) -> Any:
    return lazy_module(_PROGRAMS).kernels(graph)


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List CuPy, of which each CUDA has a distribution, and its settings."""
    return {
        "cupy": lambda: {
            "packages": {"cupy": ["cupy", "cupy-cuda12x", "cupy-cuda13x"]},
            "variables": ["CUDA_VISIBLE_DEVICES", "CUPY_CACHE_DIR"],
        }
    }
