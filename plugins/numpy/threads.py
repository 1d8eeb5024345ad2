"""``limit_threads``: a limit to the threads of the libraries behind NumPy, on request."""

from __future__ import annotations

import operator
from types import TracebackType
from typing import Any, Self

import numpy  # noqa: F401 - threadpoolctl sees only libraries that are loaded

from ...core.errors import BackendUnavailable

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
    """Limit the threads of matrix products and decompositions, from now on or for a block.

    gradtape never changes this setting by itself. By default, BLAS starts a thread for each core,
    which is right for large matrices on a machine with nothing else to do. If several processes
    compute, or the matrices are small, threads wait for each other: ``gradtape doctor`` measures
    how much time that takes.

    The limit applies to the whole process, including all its threads, and to the libraries that are
    loaded. A library that is imported later starts with its own default. The environment variable
    ``OMP_NUM_THREADS``, set before Python starts, applies to all of them.

    Parameters
    ----------
    n
        The number of threads, at least 1.

    Raises
    ------
    BackendUnavailable
        If threadpoolctl is not installed; the message has the ``pip install`` line.
    TypeError
        If ``n`` is not an integer.
    ValueError
        If ``n`` is below 1.
    RuntimeError
        If no loaded library has threads that can be limited, as with Accelerate on macOS.

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
                "limit_threads: threadpoolctl finds no library whose threads it can limit; "
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
