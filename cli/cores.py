"""The number of cores that a process may use."""

from __future__ import annotations

import os
from pathlib import Path


def cores(process: int = 0) -> list[int]:
    """Return which of the machine's cores a process may use; process 0 is the current one."""
    try:
        return sorted(os.sched_getaffinity(process))
    except (AttributeError, OSError):
        return list(range(os.cpu_count() or 1))


def quota(path: str = "/sys/fs/cgroup/cpu.max") -> float | None:
    """Return the container's limit of processor time in cores; None if there is no limit."""
    try:
        limit, period = Path(path).read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        return None
