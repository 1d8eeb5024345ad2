"""What else the machine did."""

from __future__ import annotations

import os


def track_load() -> float:
    """Return how many processes wanted a core in the last five minutes, on average."""
    if not hasattr(os, "getloadavg"):
        raise NotImplementedError("this system counts no load")
    return os.getloadavg()[1]


track_load.unit = "processes"  # type: ignore[attr-defined]
track_load.version = "1"  # type: ignore[attr-defined]
