"""``Checkpoint``: objects whose state is written to a file and restored."""

from __future__ import annotations

import os
from typing import Any

from ...core.extend import init_scope, warn_of_hidden
from ..container.storage import open_file
from ..records.formats import check_format
from ..records.loaded import LoadedModule, shadows
from ..records.schema import is_attribute
from .files import Stored, write_checkpoint
from .restoring import Plan, RestoreReport
from .trackables import Trackables


class Checkpoint:
    """The state of objects, to be written to a file and restored.

    A file holds values by path (``model/layers/0/kernel``), and no graphs or Python code: the
    program creates the objects before it restores them. An optimizer's state for a variable is
    stored by that variable's path, so the order of a model's variables does not matter.
    :func:`gradtape.save` stores a model that others can use without its code.

    Parameters
    ----------
    unnamed
        Nothing: an object without a name is an error.
    trackables
        Objects by name: modules, optimizers, variables; random generators of gradtape, NumPy or
        Python, and the modules ``gt.random``, ``np.random`` and ``random`` themselves; objects with
        ``state_dict()`` and ``load_state_dict(state)``; lists and dictionaries of these. A plain
        value (None, a number, a string, a list of them) becomes an attribute of the checkpoint:
        ``checkpoint.step``. The states of objects are plain values and arrays, in dictionaries,
        lists, tuples and sets, and are restored exactly. Variables in them become tensors.

    Raises
    ------
    TypeError
        If an object has no state that can be stored, or a name cannot be used.

    Notes
    -----
    For a module, only its variables are stored. Your program sets its other attributes (numbers,
    lists, whether it trains).

    Examples
    --------
    >>> import os, tempfile
    >>> model, optimizer = gt.layers.Dense(1), gt.training.Adam(0.1)
    >>> shape = model(gt.ones((1, 2))).shape
    >>> checkpoint = gt.training.Checkpoint(model=model, optimizer=optimizer, step=0)
    >>> before = model.kernel.tolist()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = checkpoint.save(os.path.join(folder, "now.h5"))
    ...     model.kernel.assign([[0.0], [0.0]])
    ...     report = checkpoint.restore(path)
    <Variable 'kernel' shape=(2, 1) dtype=float32 value=
    [[0.],
     [0.]]>
    >>> model.kernel.tolist() == before
    True
    >>> report.restored
    ('model/kernel', 'model/bias', 'optimizer/iterations', 'optimizer/learning_rate', 'step')
    """

    def __init__(self, *unnamed: Any, **trackables: Any) -> None:
        if unnamed:
            raise TypeError("Checkpoint: give each object a name: Checkpoint(model=model)")
        vars(self)["_group"], vars(self)["_saved"] = {}, False
        for name, value in trackables.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        taken = shadows(LoadedModule, name) or hasattr(type(self), name)
        if not is_attribute(name) or name.startswith("_") or taken:
            raise TypeError(f"Checkpoint: {name!r} cannot be a name in a file; rename it")
        Trackables({name: value})  # raises for what cannot be kept
        self._group[name] = value

    def __getattr__(self, name: str) -> Any:
        group = vars(self).get("_group", {})
        if name not in group:
            raise AttributeError(f"the checkpoint has no {name!r}, but {', '.join(group)}")
        return group[name]

    def __repr__(self) -> str:
        return f"<Checkpoint of {', '.join(self._group) or 'nothing'}>"

    def save(self, path: str | os.PathLike[str]) -> str:
        """Write the present state to a file, which is replaced atomically.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        str
            The path.

        Raises
        ------
        SaveError
            If something cannot be written, such as an optimizer's state for a variable that is not
            in the checkpoint, a model that has no weights yet, or a state that would not come back
            as it is. The file is then unchanged.
        """
        self._warn()
        return self._write(path, {}, {})

    def restore(
        self, path: str | os.PathLike[str], *, strict: bool = True, max_bytes: int | None = None
    ) -> RestoreReport:
        """Restore the state in a file: all of it, or nothing after an error.

        Names in the file that the checkpoint does not have are ignored:
        ``Checkpoint(model=model).restore(path)`` restores only the model.

        Parameters
        ----------
        path
            A file that :meth:`save` wrote.
        strict
            Whether to refuse a file with missing or unexpected entries under these names, or with
            entries of another shape, dtype or kind. If false, entries that fit are restored.
        max_bytes
            The maximum memory of the file's arrays, as for :func:`gradtape.load`.

        Returns
        -------
        RestoreReport
            What was restored and what was not, by path.

        Raises
        ------
        LoadError
            If the file is not a checkpoint, is damaged or does not fit; nothing has then changed.
        """
        plan = self._plan(path, {}, max_bytes)
        if strict:
            plan.check()
        plan.apply()
        return plan.report

    def _warn(self) -> None:
        """Warn about variables that the file will not hold, before the first is written."""
        for module in () if self._saved else Trackables(self._group).modules.values():
            warn_of_hidden(module, "Checkpoint")
        vars(self)["_saved"] = True

    def _write(
        self, path: str | os.PathLike[str], beside: dict[str, Any], record: dict[str, Any]
    ) -> str:
        """Write a file with further objects in it, and with a record that describes it."""
        check_format(path, "Checkpoint")
        with init_scope():
            write_checkpoint(path, Trackables(self._group, beside), record)
        return os.fspath(path)

    def _plan(
        self,
        path: str | os.PathLike[str],
        beside: dict[str, Any],
        max_bytes: int | None = None,
    ) -> Plan:
        """Return the steps to restore a file, with further objects."""
        with open_file(path, max_bytes) as file, init_scope():
            return Plan(Trackables(self._group, beside), Stored(file))
