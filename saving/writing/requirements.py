"""Which plugins a file needs, and what of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core.extend import Op, registry
from ..errors import SaveError

__all__ = ["requirements"]


def requirements(ops: Iterable[Op], classes: Iterable[str]) -> list[dict[str, Any]]:
    """Return a record for each plugin that provides some of these ops and classes.

    Parameters
    ----------
    ops
        The ops in a file's graphs.
    classes
        The names of its modules' classes.

    Raises
    ------
    SaveError
        If no plugin provides an op.
    """
    known = registry()
    providers = [(known.owner("op", op.name), "ops", op.name) for op in ops]
    providers += [(known.owner("module", name), "modules", name) for name in classes]
    needed: dict[str, dict[str, Any]] = {}
    for info, kind, name in providers:
        if info is None:
            raise SaveError(f"op {name!r} belongs to no registered plugin, so no file can name it")
        entry = needed.setdefault(
            f"{info.distribution or info.name}:{info.name}",
            {
                "plugin": info.name,
                "distribution": info.distribution,
                "version": info.version,
                "ops": [],
                "modules": [],
            },
        )
        entry[kind].append(name)
    for entry in needed.values():
        entry["ops"].sort()
        entry["modules"].sort()
    return [needed[key] for key in sorted(needed)]
