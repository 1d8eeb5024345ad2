"""The CuPy backend: arrays on NVIDIA GPUs. CuPy is imported when the backend is first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from ...core.extend import Backend, BackendUnavailable, hookimpl
from .diagnosis import diagnosis
from .sender import GpuSender
from .stopwatch import GpuStopwatch

__all__ = ["CupyBackend", "gradtape_backends", "gradtape_kernels"]

INSTALL = (
    "install the CuPy that fits the driver's CUDA: "
    'for CUDA 12, pip install "gradtape[cupy]" (the wheel cupy-cuda12x); '
    'for CUDA 13, pip install "gradtape[cupy-cuda13]" (the wheel cupy-cuda13x)'
)


class CupyBackend(Backend):
    """``cupy.ndarray`` on an NVIDIA GPU.

    A device is the number that CuPy gives it: ``tensor.to("cupy:1")``. Without a number, new arrays
    are made on CuPy's current device.
    """

    name = "cupy"
    array_module = "cupy"

    @property
    def xp(self) -> Any:
        """CuPy itself.

        Raises
        ------
        BackendUnavailable
            If CuPy is not installed, or finds no driver or no GPU, with what to install.
        """
        return self._cupy

    @property
    def special(self) -> Any:
        """CuPy's counterpart of SciPy's."""
        import cupyx.scipy.special

        return cupyx.scipy.special

    # kept once it has succeeded; a failure is tried again, since it may be mended meanwhile
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
        except Exception as error:  # CuPy's own type of error is known only where CuPy is
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

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> Any:
        """Return a new array on a GPU.

        Parameters
        ----------
        value
            An array of NumPy or CuPy, a number, or nested lists of numbers.
        dtype
            The dtype; that of ``value`` by default.
        device
            The number of the GPU, as in ``"cupy:1"``; the current one by default.

        Raises
        ------
        ValueError
            If there is no such device.
        """
        cupy = self.xp
        if device is None:
            return cupy.array(value, dtype=dtype)
        with cupy.cuda.Device(self._number(device)):
            return cupy.array(value, dtype=dtype)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return a copy of ``array`` in host memory."""
        result: NDArray[Any] = self.xp.asnumpy(array)
        return result

    def device(self, array: Any) -> str:
        """Return the number of the GPU that holds ``array``."""
        return str(array.device.id)

    def sender(self, device: str | None = None) -> GpuSender:
        """Return what copies arrays to a GPU on a stream of their own."""
        return GpuSender(self, device)

    def stopwatch(self) -> GpuStopwatch:
        """Return what measures steps by the GPU's events, and makes NVTX ranges of them."""
        return GpuStopwatch(self.xp)

    def diagnosis(self) -> dict[str, Any]:
        """Return what is known of drivers, GPUs, CuPy and its libraries, and what to do."""
        return diagnosis()

    def shape_witness(self, array: Any) -> Any:
        """Return a zero of the same shape and dtype, with the memory of one element."""
        shape = array.shape
        if array.nbytes <= 512:  # the least that CuPy's memory pool gives out
            return array
        cupy = self.xp
        with array.device:
            return cupy.broadcast_to(cupy.zeros((), array.dtype), shape)

    def _number(self, device: str) -> int:
        count = self.xp.cuda.runtime.getDeviceCount()
        if device.isdecimal() and int(device) < count:
            return int(device)
        raise ValueError(
            f"backend 'cupy': no device {device!r}; there are 0 to {count - 1}, as in 'cupy:0'"
        )


def _line(error: Exception) -> str:
    """Return an error as one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


@hookimpl
def gradtape_backends() -> list[Backend]:
    """Provide the CuPy backend, whether it can be used here or not."""
    return [CupyBackend()]


@hookimpl
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the kernels where CuPy lacks, or bests, the portable ones."""
    return {}
