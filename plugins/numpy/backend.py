"""The NumPy backend: arrays on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.extend import Backend, hookimpl, late

# the whole package before its parts: threads that import different parts first could deadlock
from .. import ops  # noqa: F401
from . import elementwise, indexing, linalg, network, reductions

_ZERO = bytes(16)


class NumpyBackend(Backend):
    """``numpy.ndarray`` on the CPU; always available."""

    name = "numpy"
    array_module = "numpy"
    host = True
    promotes = True
    scalar_array_type = np.ndarray

    @property
    def xp(self) -> Any:
        """NumPy itself: it implements the array API standard."""
        return np

    @property
    def special(self) -> Any:
        """SciPy's."""
        return import_module("scipy.special")

    def asarray(self, value: Any, dtype: Any = None, device: str | None = None) -> NDArray[Any]:
        """Return a new array."""
        if device not in (None, "cpu"):
            raise ValueError(f"the numpy backend has only the device 'cpu', not {device!r}")
        array = np.array(value, dtype=dtype)
        # one dtype object per type: equal ones from other libraries are slower to compare
        plain = np.dtype(array.dtype.type)
        return array if array.dtype is plain else array.astype(plain)

    def to_numpy(self, array: Any) -> NDArray[Any]:
        """Return ``array`` itself."""
        return np.asarray(array)

    def weak_scalar(self, value: Any, dtype: Any) -> Any:
        """Return ``value`` as an array of ``dtype`` if it is of the same or a lower kind."""
        kinds = {bool: "iufc", int: "iufc", float: "fc", complex: "c"}[type(value)]
        return np.array(value, dtype) if dtype.kind in kinds else value

    def shape_witness(self, array: Any) -> NDArray[Any]:
        """Return a zero of the same shape and dtype that takes no memory."""
        shape = array.shape
        return np.ndarray(shape, array.dtype, _ZERO, 0, (0,) * len(shape))

    def compile(self, program: Any, arrays: Sequence[Any]) -> Callable[..., list[Any]] | None:
        """Plan the program: memory, groups of elementwise steps, packed updates."""
        run: Callable[..., list[Any]] | None
        run = late("plugins.planned").Plans(program)
        return run


@hookimpl(trylast=True)
def gradtape_backends() -> list[Backend]:
    """Provide the NumPy backend."""
    return [NumpyBackend()]


@hookimpl(trylast=True)
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any]]:
    """Provide the kernels that are faster on NumPy than the portable ones."""
    rooms = (elementwise, indexing, linalg, network, reductions)
    return {(op, "numpy"): kernel for room in rooms for op, kernel in room.KERNELS.items()}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List NumPy, and settings of its threads in ``gradtape doctor``."""
    return {
        "numpy": lambda: {
            "packages": {"numpy": "numpy", "threadpoolctl": "threadpoolctl"},
            "variables": ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"],
        }
    }
