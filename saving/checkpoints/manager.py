"""``CheckpointManager``: numbered checkpoints in a folder; ``Keeper``: a run of ``fit`` in them."""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple

from ...core.extend import Module, Text, init_scope
from ..container.storage import open_file, storage_of
from ..errors import LoadError, SaveError, printable
from ..records.formats import check_format, warn_of_name
from .checkpoint import Checkpoint, RestorePlan, RestoreReport
from .files import Stored, write_checkpoint
from .trackables import Trackables, modules_in

#: Parts of names of metrics, by whether more of them is better.
_KINDS = {
    "max": ("acc", "auc", "precision", "recall", "f1", "similarity", "r2", "iou"),
    "min": ("loss", "error", "mse", "mae", "rmse", "entropy", "divergence", "hinge", "perplexity"),
}

#: Numbers have 18 digits at most.
_MOST = 10**18 - 1


class _FolderEntry(NamedTuple):
    """A checkpoint in the folder."""

    number: int
    path: str
    metrics: dict[str, float]


class CheckpointManager:
    """Numbered checkpoints in a folder: the last few, and the best.

    The checkpoints, and which is the best, are read from the files: there is no separate list that
    could disagree. Files that the manager did not write are neither listed nor removed.

    Parameters
    ----------
    checkpoint
        What to save.
    folder
        The folder, which is created if it does not exist.
    keep
        How many of the last checkpoints to keep; None keeps all. The best is kept in addition.
    best
        The metric that determines the best, such as ``"val_loss"``; None for no best.
    mode
        ``"min"`` or ``"max"``: whether a smaller or a larger value is better. The default follows
        from its name (smaller for a loss or an error, larger for an accuracy).
    name
        The prefix of the files' names, before ``-`` and their number. Managers with different names
        can share a folder; use one manager per name at a time.

    Raises
    ------
    ValueError
        If an argument is invalid, or the name of ``best`` does not determine the mode.
    TypeError
        If ``checkpoint`` is not a checkpoint.

    Notes
    -----
    A killed process leaves complete files: perhaps one too many, which the next save removes.

    Examples
    --------
    >>> import tempfile
    >>> checkpoint = gt.training.Checkpoint(step=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manager = gt.training.CheckpointManager(checkpoint, folder, keep=2, best="val_loss")
    ...     for checkpoint.step, loss in enumerate([0.5, 0.2, 0.4, 0.3]):
    ...         path = manager.save({"val_loss": loss})
    ...     print(manager.summary().replace(folder, "FOLDER"))
    ...     report = manager.restore(manager.best)
    FOLDER: 3 checkpoints
    checkpoint-00002.h5  val_loss 0.2  best
    checkpoint-00003.h5  val_loss 0.4
    checkpoint-00004.h5  val_loss 0.3  latest
    >>> checkpoint.step
    1
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        folder: str | os.PathLike[str],
        keep: int | None = 5,
        best: str | None = None,
        mode: str | None = None,
        name: str = "checkpoint",
    ) -> None:
        if not isinstance(checkpoint, Checkpoint):
            raise TypeError(
                "CheckpointManager: expected a gradtape.training.Checkpoint, got "
                f"{type(checkpoint).__name__}"
            )
        if keep is not None and (type(keep) is not int or keep < 1):
            raise ValueError(
                f"CheckpointManager: keep must be a positive integer or None, got {keep!r}"
            )
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
            raise ValueError(f"CheckpointManager: {name!r} cannot be part of a file name")
        self.checkpoint = checkpoint
        self.folder = os.path.abspath(os.fspath(folder))
        self.keep, self.metric, self.name = keep, best, name
        self.mode = _mode(best, mode)
        self._known: dict[str, tuple[Any, _FolderEntry | None]] = {}

    # -- what is there -------------------------------------------------------------------------

    @property
    def checkpoints(self) -> list[str]:
        """The paths of the checkpoints in the folder, the oldest first."""
        return [entry.path for entry in self._entries()]

    @property
    def latest(self) -> str | None:
        """The path of the last checkpoint; None if there is none."""
        return next(iter(self.checkpoints[::-1]), None)

    @property
    def best(self) -> str | None:
        """The path of the best checkpoint, the first if tied; None if there is none."""
        found = self._best(self._entries())
        return None if found is None else found.path

    def summary(self) -> str:
        """Return a list of the checkpoints with their metrics, one line each.

        Returns
        -------
        str
            The list; it marks the latest and the best.
        """
        entries = self._entries()
        best = self._best(entries)
        count = f"{len(entries)} checkpoint{'' if len(entries) == 1 else 's'}"
        lines = [f"{self.folder}: {count}"]
        for entry in entries:
            parts = [os.path.basename(entry.path)]
            parts += [f"{printable(name)} {value:.6g}" for name, value in entry.metrics.items()]
            parts += ["best"] if entry == best else []
            parts += ["latest"] if entry == entries[-1] else []
            lines.append("  ".join(parts))
        return Text("\n".join(lines))

    def __repr__(self) -> str:
        return f"<CheckpointManager of {self.folder}: {len(self._entries())} checkpoints>"

    def _best(self, entries: list[_FolderEntry]) -> _FolderEntry | None:
        def value(entry: _FolderEntry) -> float:
            found = entry.metrics.get(self.metric or "", math.nan)
            return found if self.mode == "min" else -found

        return min((x for x in entries if not math.isnan(value(x))), key=value, default=None)

    def _files(self) -> dict[int, str]:
        """Return the files with the manager's names, by number."""
        pattern = re.compile(re.escape(self.name) + r"-([0-9]{5,18})\.h5\Z")
        names = os.listdir(self.folder) if os.path.isdir(self.folder) else []
        found = [(pattern.match(file), file) for file in names]
        return {int(m[1]): os.path.join(self.folder, file) for m, file in found if m}

    def _entries(self) -> list[_FolderEntry]:
        """Return the checkpoints in the folder by number, read from the files."""
        found = []
        for number, path in sorted(self._files().items()):
            try:
                state = os.stat(path)
            except OSError:  # somebody removed it meanwhile, or a link leads nowhere
                continue
            now = (state.st_ino, state.st_mtime_ns, state.st_size)
            known = self._known.get(path)
            if known is None or known[0] != now:
                known = self._known[path] = now, self._read(number, path)
            if known[1] is not None:
                found.append(known[1])
        return found

    def _read(self, number: int, path: str) -> _FolderEntry | None:
        """Return a file's record, None if the file is not the manager's."""
        try:
            with open_file(path) as file, init_scope():
                record = Stored(file).record
        except LoadError as error:
            warnings.warn(f"ignoring a checkpoint that cannot be read: {error}", stacklevel=2)
            return None
        metrics = record.get("metrics")
        if record.get("series") != self.name or type(metrics) is not dict:
            return None
        numbers = {str(name): x for name, x in metrics.items() if type(x) is float}
        return _FolderEntry(number, path, numbers)

    # -- saving and restoring ------------------------------------------------------------------

    def save(self, metrics: Mapping[str, Any] | None = None) -> str:
        """Save the checkpoint under the next number, then remove checkpoints beyond the limit.

        Parameters
        ----------
        metrics
            Measured values, numbers by name. Without them, the checkpoint cannot be the best.

        Returns
        -------
        str
            The path of the new file.

        Raises
        ------
        ValueError
            If there are metrics, but not the one that determines the best.
        SaveError
            If it cannot be written; nothing is then removed.
        """
        self.checkpoint._warn()
        return self._save(metrics, {})

    def restore(self, path: str | os.PathLike[str] | None = None) -> RestoreReport | None:
        """Restore the latest checkpoint, or another.

        Parameters
        ----------
        path
            One of :attr:`checkpoints`; the latest if not given.

        Returns
        -------
        RestoreReport or None
            The result of :meth:`Checkpoint.restore`; None if there is no checkpoint yet.

        Raises
        ------
        LoadError
            If the file is damaged or does not fit; nothing has then changed.
        """
        path = self.latest if path is None else path
        return None if path is None else self.checkpoint.restore(path)

    def _save(self, metrics: Mapping[str, Any] | None, beside: dict[str, Any]) -> str:
        """Save with further objects in the file."""
        if metrics is not None and self.metric is not None and self.metric not in metrics:
            raise ValueError(
                f"CheckpointManager: best={self.metric!r} was not measured; measured are "
                f"{', '.join(metrics)}"
            )
        self._make_folder()
        number = max(self._files(), default=0) + 1
        if number > _MOST:
            raise SaveError(
                f"{self.folder}: no number is left after that of {self._files()[number - 1]}; "
                "move that file away"
            )
        path = os.path.join(self.folder, f"{self.name}-{number:05d}.h5")
        numbers = {str(name): float(value) for name, value in (metrics or {}).items()}
        self.checkpoint._write(path, beside, {"series": self.name, "metrics": numbers})
        self._remove_old()
        return path

    def _make_folder(self) -> None:
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            raise SaveError(f"{self.folder}: cannot make this folder ({error})") from None

    def _remove_old(self) -> None:
        if self.keep is None:
            return
        entries = self._entries()
        best = self._best(entries)
        for entry in entries[: -self.keep]:
            if entry != best:
                self._known.pop(entry.path, None)
                try:
                    os.unlink(entry.path)
                except FileNotFoundError:
                    continue
                except OSError as error:  # the new one is there all the same
                    warnings.warn(f"a checkpoint cannot be removed: {error}", stacklevel=4)


def _mode(best: str | None, mode: str | None) -> str:
    """Return whether a smaller or a larger metric is better."""
    if mode is not None:
        if mode not in _KINDS:
            raise ValueError(f'CheckpointManager: mode must be "min" or "max", got {mode!r}')
        return mode
    found = [
        kind for kind, parts in _KINDS.items() if any(x in (best or "").lower() for x in parts)
    ]
    if best is not None and len(found) != 1:
        raise ValueError(
            f"CheckpointManager: the name {best!r} does not show whether lower or higher is "
            'better; pass mode="min" or mode="max"'
        )
    return found[0] if found else "min"


# -- runs of fit -----------------------------------------------------------------------------------


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
        self._own_state = {
            name: value
            for name, value in beside.items()
            if not (isinstance(value, Module) and id(value) in known)
        }
        taken = [name for name in self._own_state if name in held]
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
            write_checkpoint(None, Trackables(self._checkpoint._group, self._own_state), {})

    def save(self, metrics: Mapping[str, float] | None = None) -> None:
        """Save the present state, with an epoch's metrics if it has ended."""
        if self._manager is not None:
            self._manager._save(metrics, self._own_state)
        else:
            self._checkpoint._write(self._path, self._own_state, {})

    def find(self) -> str | None:
        """Return the path of the state to resume from, None if there is none."""
        if self._manager is not None:
            return self._manager.latest
        return self._path if os.path.exists(self._path) else None

    def plan(self, path: str) -> RestorePlan:
        """Return a checked plan to restore a file, which may be applied more than once."""
        plan = self._checkpoint._plan(path, self._own_state)
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
    warn_of_name(where, "fit")
    path = storage.target(where)  # raises for what could not be written at the first epoch's end
    if os.path.exists(path):
        with open_file(path) as file:
            Stored(file)  # raises for any other file, which a save must not replace
    return path
