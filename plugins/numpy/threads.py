"""``limit_threads``: how many threads the libraries behind NumPy may use, on request."""

from __future__ import annotations

import operator
from types import TracebackType
from typing import Any, Self

import numpy  # noqa: F401 - the libraries that are asked are those that are loaded

from ...core.errors import BackendUnavailable

__all__ = ["limit_threads", "pools"]

NEEDED = 'threadpoolctl is not installed: pip install "gradtape[threads]"'


def pools() -> list[dict[str, Any]]:
    """Return what threadpoolctl tells of each pool of threads that is loaded: BLAS, OpenMP.

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
    """Let matrix products and decompositions use so many threads, from now on or for a block.

    gradtape changes no such setting by itself. By default BLAS starts a thread for each core, which
    is right for large matrices on a machine that has nothing else to do. Where several processes
    compute, or the matrices are small, threads wait for each other: ``gradtape doctor`` measures
    what that costs.

    The limit holds for the whole process, all its threads included, and for the libraries that are
    loaded: one that is imported later begins with its own default. The environment variable
    ``OMP_NUM_THREADS``, set before Python starts, holds for all of them.

    Parameters
    ----------
    n
        The number of threads, at least 1.

    Raises
    ------
    BackendUnavailable
        If threadpoolctl is not installed; the message has the ``pip install`` line.
    TypeError
        If ``n`` is no integer.
    ValueError
        If ``n`` is below 1.
    RuntimeError
        If no loaded library has threads that can be limited so, as Accelerate on macOS.

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
        if not pools():
            raise RuntimeError(
                "limit_threads: threadpoolctl finds no library here whose threads it can limit; "
                "set the library's own environment variable before Python starts "
                "(VECLIB_MAXIMUM_THREADS for Accelerate)"
            )
        self.n = count
        self._limits = _threadpoolctl().threadpool_limits(count)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._limits.restore_original_limits()

    def __repr__(self) -> str:
        return f"limit_threads({self.n})"
