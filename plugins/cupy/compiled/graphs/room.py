"""The memory that CUDA graphs may take: a share of what is free, and the oldest make room."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Any, Protocol
from weakref import WeakSet, ref

from ....planned import bytes_of
from ..plan import DevicePlan
from .captured import Captured
from .memory import NotCaptured

#: The share that graphs may take of the memory that is free on a device or that they have.
_SHARE = 0.5


class Holder(Protocol):
    """An object that keeps graphs."""

    def drop(self, key: Any) -> None:
        """Release the graph that is kept by a key, to make room for another."""


_lock = Lock()
#: By device, all graphs.
_graphs: dict[int, WeakSet[Captured]] = {}


def estimate(plan: DevicePlan) -> int:
    """Return how much memory a graph of a plan will take, in bytes.

    Parameters
    ----------
    plan
        The plan.
    """
    lowered = plan.lowered
    copied = {*lowered.inputs, *lowered.outputs, *lowered.updates.values()}
    return plan.bytes + sum(map(bytes_of, copied))


def make_room(xp: Any, device: int, needed: int) -> None:
    """Release the graphs that ran least recently, until there is room for another.

    Parameters
    ----------
    xp
        CuPy.
    device
        The device.
    needed
        The size of the new graph in bytes.

    Raises
    ------
    NotCaptured
        If there cannot be enough.
    """
    free, _ = xp.cuda.runtime.memGetInfo()
    pool = xp.get_default_memory_pool()
    free += pool.total_bytes() - pool.used_bytes()
    with _lock:
        graphs = sorted(_graphs.get(device, ()), key=lambda x: x.used)
        held = _size(graphs)
        most = int((free + held) * _SHARE)
        if needed > most:
            raise NotCaptured(f"it would take {needed} bytes; graphs may take {most} here")
        for graph in graphs:
            if held + needed <= most:
                break
            held -= graph.bytes
            _graphs[device].discard(graph)
            graph.release()


def keep(device: int, graph: Captured, holder: Holder, key: Any) -> None:
    """Count a graph, and remember who keeps it.

    Parameters
    ----------
    device
        The device.
    graph
        The graph.
    holder
        The object that keeps it.
    key
        What it is kept by.
    """
    kept_by = ref(holder)

    def release() -> None:
        found = kept_by()
        if found is not None:
            found.drop(key)

    graph.release = release
    with _lock:
        _graphs.setdefault(device, WeakSet()).add(graph)


def _size(graphs: Iterable[Captured]) -> int:
    return sum(graph.bytes for graph in graphs)
