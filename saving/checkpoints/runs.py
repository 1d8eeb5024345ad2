"""``Keeper``: stores a run of ``fit`` in checkpoints, and finds it again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from ...core.extend import Module, init_scope
from ..container.storage import open_file, storage_of
from ..records.formats import check_format
from .checkpoint import Checkpoint
from .files import Stored, write_checkpoint
from .manager import CheckpointManager
from .restoring import Plan
from .trackables import Trackables, modules_in


class Keeper:
    """Stores a run in a file or in a manager's folder.

    Parameters
    ----------
    where
        A :class:`CheckpointManager`, or the path of a file that is replaced at each save.
    beside
        The objects of the run, by name. A module that the manager's checkpoint has under another
        name is not stored twice.

    Raises
    ------
    TypeError
        If it is neither.
    ValueError
        If the path is a folder's, or a name is taken.
    SaveError, LoadError
        If nothing can be written there, or the file there is not a checkpoint.
    """

    def __init__(self, where: Any, beside: Mapping[str, Any]) -> None:
        self._manager = where if isinstance(where, CheckpointManager) else None
        self._path = ""
        self._checkpoint = Checkpoint() if self._manager is None else self._manager.checkpoint
        if self._manager is None:
            self._path = _file(where)
        held = self._checkpoint._group
        known = {id(module) for value in held.values() for module in modules_in(value)}
        self._beside = {
            name: value
            for name, value in beside.items()
            if not (isinstance(value, Module) and id(value) in known)
        }
        taken = [name for name in self._beside if name in held]
        if taken:
            raise ValueError(
                f"fit: the checkpoint has another object under {taken[0]!r}, a name that fit uses; "
                "rename it"
            )
        if self._manager is not None:
            self._manager._make_folder()  # or training would end at the first save

    @property
    def best(self) -> str | None:
        """The metric that a manager uses to find the best."""
        return None if self._manager is None else self._manager.metric

    def check(self) -> None:
        """Raise the ``SaveError`` that a save of the present state would raise."""
        with init_scope():
            write_checkpoint(None, Trackables(self._checkpoint._group, self._beside), {})

    def save(self, metrics: Mapping[str, float] | None = None) -> None:
        """Save the present state, with an epoch's metrics if it has ended."""
        if self._manager is not None:
            self._manager._save(metrics, self._beside)
        else:
            self._checkpoint._write(self._path, self._beside, {})

    def find(self) -> str | None:
        """Return the path of the state to resume from, None if there is none."""
        if self._manager is not None:
            return self._manager.latest
        return self._path if os.path.exists(self._path) else None

    def plan(self, path: str) -> Plan:
        """Return a checked plan to restore a file, which may be applied more than once."""
        plan = self._checkpoint._plan(path, self._beside)
        plan.check()
        return plan


def _file(where: Any) -> str:
    """Return the path of a checkpoint that exists or can be created."""
    if not isinstance(where, (str, os.PathLike)):
        raise TypeError(
            "fit: checkpoint is a gradtape.training.CheckpointManager or the path of a file, got "
            f"{type(where).__name__}"
        )
    storage = storage_of(where)
    if os.path.isdir(where) and not storage.is_folder:
        raise ValueError(
            f"fit: checkpoint={os.fspath(where)!r} is a folder; give a file in it, or a "
            "gradtape.training.CheckpointManager for several"
        )
    check_format(where, "fit")
    path = storage.target(where)  # raises for what could not be written at the first epoch's end
    if os.path.exists(path):
        with open_file(path) as file:
            Stored(file)  # raises for any other file, which a save must not replace
    return path
