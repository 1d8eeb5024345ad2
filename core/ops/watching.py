"""Kernels wrapped by a watcher while one is active, and not wrapped at other times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..base.table import registry
from ..base.watcher import Watcher, watcher
from .backends.backend import Backend

if TYPE_CHECKING:
    from .primitive import Primitive

_LOCK = Lock()
#: How many watchers there are, in all threads.
_watchers = 0


@contextmanager
def watching(who: Watcher) -> Iterator[None]:
    """Report the kernels that run in a block to a watcher.

    Ops cache their kernels, so this clears all caches before and after the block. Other threads get
    the same wrapped kernels, which find no watcher there and run as usual.
    """
    other = watcher.get()
    if other is not None and not other.over:
        raise RuntimeError(
            "gradtape.profile() is already active here, and profiles cannot be nested: the outer "
            "one measures this block too, and lists it by line and by layer"
        )
    _count(1)
    watcher.set(who)
    try:
        yield
    finally:
        watcher.set(None)
        _count(-1)


def _count(change: int) -> None:
    global _watchers
    with _LOCK:
        before = _watchers
        _watchers += change
        if not (before and _watchers):
            for op in registry().ops.values():
                op.forget_made()


def watched(op: Primitive, backend: Backend, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel that an op found, wrapped in a call of the watcher if there is one."""
    if not _watchers:
        return kernel
    telling = told(op.name, backend, kernel)

    def run(*arrays: Any, **params: Any) -> Any:
        if not _watchers:  # another thread found it just before the watcher ended
            op.forget_made()
        return telling(*arrays, **params)

    return run


def told(name: str, backend: Backend, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that reports to the watcher, if there is one when it runs."""

    def run(*arrays: Any, **params: Any) -> Any:
        who = watcher.get()
        if who is None:
            return kernel(*arrays, **params)
        return who.kernel(name, backend, kernel, arrays, params)

    return run
