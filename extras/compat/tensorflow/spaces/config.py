"""``tf.config``: the available devices. Settings of TensorFlow's runtime are ignored."""

from __future__ import annotations

from typing import Any, NamedTuple

import gradtape

from ....core.errors import BackendUnavailable
from ..names import adapts

__all__ = (
    "LogicalDevice LogicalDeviceConfiguration PhysicalDevice functions_run_eagerly "
    "get_soft_device_placement get_visible_devices gpu_device_name is_built_with_cuda "
    "is_built_with_gpu_support is_gpu_available list_logical_devices list_physical_devices "
    "nothing run_functions_eagerly"
).split()

_eager = False


class PhysicalDevice(NamedTuple):
    """A device of this machine."""

    name: str
    device_type: str


LogicalDevice = PhysicalDevice


class LogicalDeviceConfiguration(NamedTuple):
    """The settings of a part of a device, which are ignored."""

    memory_limit: int | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


def gpus() -> int:
    """Return the number of GPUs that CuPy can use."""
    try:
        return int(gradtape.registry().backend("cupy").xp.cuda.runtime.getDeviceCount())
    except (BackendUnavailable, LookupError, RuntimeError):
        return 0


@adapts("backend")
def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of a type, ``"CPU"`` or ``"GPU"``, or all."""
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    if device_type != "CPU":
        found += [PhysicalDevice(f"/physical_device:GPU:{i}", "GPU") for i in range(gpus())]
    return [device for device in found if device_type in (None, device.device_type)]


@adapts("backend")
def list_logical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the devices of a type, with the names that ``tf.device`` takes."""
    found = list_physical_devices(device_type)
    return [PhysicalDevice(x.name.replace("physical_", ""), x.device_type) for x in found]


get_visible_devices = list_physical_devices


def nothing(*args: Any, **options: Any) -> None:
    """Do nothing: settings of TensorFlow's runtime have no effect here."""


def get_soft_device_placement() -> bool:
    """Return True: without a GPU, ``tf.device`` uses the CPU."""
    return True


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Choose whether each ``tf.function`` runs its Python function instead of a trace."""
    global _eager
    _eager = bool(run_eagerly)


def functions_run_eagerly() -> bool:
    """Return whether each ``tf.function`` runs its Python function."""
    return _eager


def is_gpu_available(cuda_only: bool = False, min_cuda_compute_capability: Any = None) -> bool:
    """Return whether CuPy can use a GPU."""
    return gpus() > 0


def gpu_device_name() -> str:
    """Return the name of the first GPU, or ``""`` without one."""
    return "/device:GPU:0" if gpus() else ""


is_built_with_cuda = is_built_with_gpu_support = is_gpu_available
