"""The NumPy backend: arrays on the CPU; and ``limit_threads`` for the libraries behind NumPy."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ...core.errors import BackendUnavailable
from ...core.extend import NUMPY, Backend, hookimpl, lazy_module, limit_pool

# the whole package before its parts: threads that import different parts first could deadlock
from .. import ops  # noqa: F401
from . import indexing, reductions

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The ops that are one function elsewhere.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arccos": np.arccos,
    "arccosh": np.arccosh,
    "arcsin": np.arcsin,
    "arcsinh": np.arcsinh,
    "arctan": np.arctan,
    "arctan2": np.arctan2,
    "arctanh": np.arctanh,
    "exp2": np.exp2,
    "power": operator.pow,
}
#: By module, the ops with a kernel ``<op>_on_numpy`` there. It is imported when one of them first
#: runs, since most are late ops.
_LATE = {
    "convolution": "conv conv_to_filters conv_to_images conv_transpose",
    "elementwise": "gelu gelu_slope hypot_slope sigmoid_slope silu_slope tanh_slope",
    "linalg": "cofactor matmul matmul_adjoint_x matmul_adjoint_y norm solve_triangular",
    "lstm": "lstm_gates lstm_gates_gradient",
    "network": (
        "batch_norm_gradient batch_norm_training relu sigmoid softmax softmax_cross_entropy "
        "softmax_less_labels softmax_less_shares sparse_softmax_cross_entropy"
    ),
    "pooling": "avg_pool avg_pool_scatter max_pool max_pool_scatter",
}
_ZERO = bytes(16)
# Every step of a training loop asks for the same shapes.
_WITNESSES: dict[tuple[tuple[int, ...], np.dtype[Any]], NDArray[Any]] = {}


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
        return NUMPY

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
        shape, dtype = array.shape, array.dtype
        found = _WITNESSES.get((shape, dtype))
        if found is None:
            found = np.ndarray(shape, dtype, _ZERO, 0, (0,) * len(shape))
            if len(_WITNESSES) >= 1024:
                _WITNESSES.clear()
            _WITNESSES[shape, dtype] = found
        return found

    def compile(self, program: Any, arrays: Sequence[Any]) -> Callable[..., list[Any]] | None:
        """Plan the program, with loops of a plugin once it has run for long enough."""
        run: Callable[..., list[Any]] | None
        run = lazy_module("plugins.planned").Plans(program, tiered=True)
        return run


@hookimpl(trylast=True)
def gradtape_backends() -> list[Backend]:
    """Provide the NumPy backend."""
    return [NumpyBackend()]


@hookimpl(trylast=True)
def gradtape_kernels() -> dict[tuple[str, str], Callable[..., Any] | str]:
    """Provide the kernels that are faster on NumPy than the portable ones."""
    found: dict[str, Any] = {**_FUNCTIONS, **indexing.KERNELS, **reductions.KERNELS}
    for name, ops_there in _LATE.items():
        found |= {op: f"{__package__}.{name}:{op}_on_numpy" for op in ops_there.split()}
    return {(op, "numpy"): kernel for op, kernel in found.items()}


@hookimpl(trylast=True)
def gradtape_diagnoses() -> dict[str, Callable[[], dict[str, Any]]]:
    """List NumPy, and the settings of its BLAS, in ``gradtape doctor``."""
    return {"numpy": _diagnosis}


#: The variable that makes OpenBLAS use the instructions of another processor.
_CORE = "OPENBLAS_CORETYPE"


def _diagnosis() -> dict[str, Any]:
    found: dict[str, Any] = {
        "packages": {"numpy": "numpy", "threadpoolctl": "threadpoolctl"},
        "variables": ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", _CORE],
    }
    core = os.environ.get(_CORE)
    if core:
        found["advice"] = [
            f"{_CORE}={core} makes OpenBLAS compute as on a processor of that type. If this one "
            "has wider vectors, products may take twice as long. Unset the variable, unless "
            "results must have the same bits on different processors."
        ]
    return found


# -- threads ---------------------------------------------------------------------------------------


NEEDED = 'threadpoolctl is not installed: pip install "gradtape[threads]"'


def pools() -> list[dict[str, Any]]:
    """Return threadpoolctl's report on each loaded pool of threads: BLAS, OpenMP.

    Raises
    ------
    BackendUnavailable
        If threadpoolctl is not installed.
    """
    found: list[dict[str, Any]] = _threadpoolctl().threadpool_info()
    return found


def _threadpoolctl() -> Any:
    try:
        import threadpoolctl
    except ImportError as error:
        raise BackendUnavailable(NEEDED) from error
    return threadpoolctl


class limit_threads:
    """Limit the threads of products, decompositions and large arrays, from now on or for a block.

    By default, BLAS starts a thread for each core, and gradtape spreads work on large arrays over
    them. This is right on a machine with nothing else to do. If several processes compute, or the
    matrices are small, BLAS's threads wait for each other: ``gradtape doctor`` measures how much
    time that takes.

    The limit applies to the whole process, including all its threads, and to the libraries that are
    loaded. A library that is imported later starts with its own default. The environment variable
    ``OMP_NUM_THREADS``, set before Python starts, applies to all of them, and to gradtape. gradtape
    uses no more threads than cores, whatever the limit. Results do not depend on its threads.

    Without threadpoolctl, and if no loaded library has threads that can be limited (Accelerate on
    macOS), the limit applies only to gradtape's own threads, and a warning says so.

    Parameters
    ----------
    n
        The number of threads, at least 1.

    Raises
    ------
    TypeError
        If ``n`` is not an integer.
    ValueError
        If ``n`` is below 1.

    Examples
    --------
    >>> a = gt.ones((200, 200))
    >>> with gt.limit_threads(1):
    ...     b = a @ a
    """

    def __init__(self, n: int) -> None:
        if isinstance(n, bool):
            raise TypeError(f"limit_threads: n must be an integer, got {n!r}")
        try:
            count = operator.index(n)
        except TypeError:
            raise TypeError(
                f"limit_threads: n must be an integer, got {type(n).__name__}"
            ) from None
        if count < 1:
            raise ValueError(f"limit_threads: n must be at least 1, got {count}")
        self.n = count
        self._limits = _limits_of_libraries(count)
        self._before = limit_pool(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        limit_pool(self._before)
        if self._limits is not None:
            self._limits.restore_original_limits()

    def __repr__(self) -> str:
        return f"limit_threads({self.n})"


def _limits_of_libraries(count: int) -> Any:
    """Limit the threads of loaded libraries; warn and return None if that is not possible."""
    try:
        if pools():
            return _threadpoolctl().threadpool_limits(count)
        problem = (
            "threadpoolctl finds no library whose threads it can limit; set the library's own "
            "environment variable before Python starts (VECLIB_MAXIMUM_THREADS for Accelerate)"
        )
    except BackendUnavailable as error:
        problem = str(error)
    warnings.warn(
        f"limit_threads limits only gradtape's own threads: {problem}", RuntimeWarning, stacklevel=3
    )
    return None
