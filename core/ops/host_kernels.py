"""Kernels on host memory: functions of NumPy arrays, for arrays of any backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.dtypes import SCALARS
from .backends.backend import Backend
from .record import inferred

if TYPE_CHECKING:
    from .primitive import Primitive


def native_kernel(op: Primitive, backend: Backend) -> Callable[..., Any] | None:
    """Return the kernel that a backend itself has for an op whose own kernel is for the host."""
    return op.host(backend) if callable(op.host) else None


def runs_on_host(op: Primitive, backend: Backend) -> bool:
    """Return whether an op's own kernel copies a backend's arrays to host memory.

    Parameters
    ----------
    op
        An op. A kernel that a plugin provides for the backend is another matter.
    backend
        The backend.
    """
    return bool(op.host) and backend.xp is not np and native_kernel(op, backend) is None


def host_kernel(op: Primitive, backend: Backend) -> Callable[..., Any]:
    """Return the kernel of an op that computes on host memory, for arrays of a backend."""
    native = native_kernel(op, backend)

    def kernel(xp: Any, *arrays: Any, **params: Any) -> Any:
        if native is not None:
            return native(*arrays, **params)
        return _on_host(op, backend, arrays, params)

    bound: Callable[..., Any] = backend.bind(kernel)
    return bound


def _on_host(op: Primitive, backend: Backend, given: Any, params: dict[str, Any]) -> Any:
    """Call an op's kernel on copies of its arrays; numbers stay as they are."""
    run: Any = op.kernel
    found = inferred(op, given, params)
    several = isinstance(found, list)

    def function(*values: Any) -> tuple[Any, ...]:
        rest = iter(values)
        result = run(np, *[x if type(x) in SCALARS else next(rest) for x in given], **params)
        return tuple(map(np.asarray, result if type(result) in (tuple, list) else (result,)))

    arrays = [x for x in given if type(x) not in SCALARS]
    results = [(shape, np.dtype(dtype)) for shape, dtype in (found if several else [found])]
    parts = backend.on_host(function, arrays, results)
    return tuple(parts) if several else parts[0]
