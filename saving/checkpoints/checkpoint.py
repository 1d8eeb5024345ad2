"""``Checkpoint``: objects whose state is written to a file and restored.

Everything is checked before anything changes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...core.extend import F, Stream, Variable, init_scope, warn_of_hidden
from ...training import Optimizer
from ..container.storage import open_file
from ..errors import LoadError
from ..records.assigned import assign_arrays, beside
from ..records.formats import check_format, warn_of_name
from ..records.loaded import LoadedModule, shadows
from ..records.schema import COUNTS, check_steps, check_stream, is_attribute
from .files import Stored, write_checkpoint
from .trackables import StatefulValue, Trackables


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

    _may_be_unbuilt = False

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
        warn_of_name(path, "Checkpoint")
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
            tracked = Trackables(self._group, beside)
            tracked.may_be_unbuilt = self._may_be_unbuilt
            write_checkpoint(path, tracked, record)
        return os.fspath(path)

    @staticmethod
    def variables_in(
        path: str | os.PathLike[str], max_bytes: int | None = None
    ) -> dict[str, np.ndarray[Any, Any]]:
        """Return the variables in a file by path, without objects to restore them to.

        Parameters
        ----------
        path
            A file that :meth:`save` wrote.
        max_bytes
            As for :meth:`restore`.

        Raises
        ------
        LoadError
            If the file is not a checkpoint, or is damaged.
        """
        with open_file(path, max_bytes) as file:
            stored = Stored(file)
            leaves = stored.leaves(list(stored.attributes), {})
            nodes = {at: node for at, node in leaves.items() if stored.declared(node, at)}
            return stored.arrays(nodes)

    def _plan(
        self,
        path: str | os.PathLike[str],
        beside: dict[str, Any],
        max_bytes: int | None = None,
    ) -> RestorePlan:
        """Return the steps to restore a file, with further objects."""
        with open_file(path, max_bytes) as file, init_scope():
            return RestorePlan(Trackables(self._group, beside), Stored(file))


# -- from a file to live objects -------------------------------------------------------------------


class RestoreReport(NamedTuple):
    """What :meth:`Checkpoint.restore` restored, and what it did not.

    Attributes
    ----------
    restored : tuple of str
        The paths that were restored.
    missing : tuple of str
        Paths of the checkpoint that the file does not have.
    unexpected : tuple of str
        Paths in the file, under names of the checkpoint, that the checkpoint does not have.
    mismatched : dict of str to str
        Entries of another shape, dtype or kind, with both.
    unused : tuple of str
        Names in the file that the checkpoint does not have.

    Examples
    --------
    >>> report = gt.training.RestoreReport(("model/kernel",), ("model/bias",), (), {}, ())
    >>> print(report)
    1 restored
    missing in the file: model/bias
    """

    restored: tuple[str, ...]
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    mismatched: dict[str, str]
    unused: tuple[str, ...]

    def problems(self, most: int = 8) -> list[str]:
        """Return what does not fit, one line for each kind."""
        wrong = [f"{path} ({what})" for path, what in self.mismatched.items()]
        kinds = (
            ("missing in the file", self.missing),
            ("unexpected in the file", self.unexpected),
            ("of another shape, dtype or kind", wrong),
        )
        return [f"{what}: {_listed(found, most)}" for what, found in kinds if found]

    def __repr__(self) -> str:
        unused = [f"not asked for: {', '.join(self.unused)}"] if self.unused else []
        return "\n".join([f"{len(self.restored)} restored", *self.problems(), *unused])


def _listed(names: Any, most: int) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(list(names)[:most]) + more


class RestorePlan:
    """The steps to restore a file, planned without changing anything.

    Parameters
    ----------
    tracked
        What to restore.
    stored
        The file.

    Attributes
    ----------
    report : RestoreReport
        What fits.
    """

    def __init__(self, tracked: Trackables, stored: Stored) -> None:
        for path in tracked.twice:
            raise LoadError(f"{stored.path}: two objects have the path {path}; rename one of them")
        self._tracked, self._stored = tracked, stored
        self._found = stored.leaves(tracked.names, tracked.objects)
        self._nodes: dict[str, Any] = {}
        self._values: list[tuple[str, Variable]] = []
        self._states: list[tuple[str, Optimizer, str, Variable]] = []
        self._zeros: list[Variable] = []
        self._objects: list[tuple[str, StatefulValue, Any]] = []
        self._missing: list[str] = []
        self._mismatched: dict[str, str] = {}
        for path, variable in tracked.variables.items():
            if self._fits(path, variable):
                self._values.append((path, variable))
        for path, optimizer in tracked.optimizers.items():
            self._plan_states(path, optimizer)
        # read in one go, which is quicker
        self._arrays = stored.arrays(self._nodes)
        self._check_counts()
        for path, held in tracked.objects.items():
            node = self._found.pop(path, None)
            if node is None:
                self._missing.append(path)
            else:
                self._objects.append((path, held, stored.value(node, path)))
        self.report = RestoreReport(
            (*self._nodes, *(path for path, _, _ in self._objects)),
            tuple(self._missing),
            tuple(self._found),
            self._mismatched,
            tuple(name for name in stored.attributes if name not in tracked.names),
        )

    def _fits(self, path: str, variable: Variable) -> bool:
        """Return whether the file has an array for a variable; record it, or why not."""
        node = self._found.pop(path, None)
        if node is None:
            self._missing.append(path)
            return False
        wanted = variable.dtype.name, variable.shape
        held = self._stored.declared(node, path)
        # metrics had float32 sums in earlier versions
        wider = held == ("float32", variable.shape) and wanted[0] == "float64"
        if held == wanted or (wider and not variable.trainable):
            self._nodes[path] = node
            return True
        there = "no array" if held is None else f"{held[0]}{list(held[1])}"
        here = f"{wanted[0]}{list(wanted[1])}"
        self._mismatched[path] = f"in the file {there}, here {here}"
        return False

    def _plan_states(self, place: str, optimizer: Optimizer) -> None:
        """Plan the optimizers' states of variables, found by the variables' paths."""
        paths = {
            path.removeprefix(f"{place}/{slot}/"): None
            for slot in (*optimizer.slots, COUNTS)
            for path in self._found
            if path.startswith(f"{place}/{slot}/")
        }
        met = {
            path: self._tracked.variables[path] for path in paths if path in self._tracked.variables
        }
        for path, variable in met.items():
            for slot in optimizer.slots:
                where = f"{place}/{slot}/{path}"
                if self._fits(where, variable):
                    self._states.append((where, optimizer, slot, variable))
            where = f"{place}/{COUNTS}/{path}"  # not there if ``iterations`` counts its steps
            if where in self._found and self._fits(where, optimizer.iterations):
                self._states.append((where, optimizer, COUNTS, variable))
        if f"{place}/iterations" in self._nodes:
            # of the others the optimizer had not heard when the file was written
            known = {variable.id for variable in met.values()}
            states = [x for _, v, x in optimizer.states() if v is not None and v.id not in known]
            self._zeros += states

    def _check_counts(self) -> None:
        """Refuse counters that no optimizer and no generator can have."""
        steps = {f"{path}/iterations" for path in self._tracked.optimizers}
        for path, _, slot, _ in self._states:
            if slot == COUNTS:
                check_steps(self._arrays[path], path)
        for path, variable in self._values:
            if path in steps:
                check_steps(self._arrays[path], path)
            elif isinstance(variable, Stream):
                check_stream(self._arrays[path], path)

    def check(self) -> None:
        """Raise if something does not fit.

        Raises
        ------
        LoadError
            With everything missing, unexpected or mismatched, by name.
        """
        problems = self.report.problems()
        if not problems:
            return
        unbuilt = self._tracked.unbuilt()
        hint = " {} has no weights yet: call the model with a batch first." if unbuilt else ""
        raise LoadError(
            f"{self._stored.path}: nothing was restored: the file does not match the checkpoint's "
            f"objects. {'; '.join(problems)}.{hint.format(*unbuilt)} "
            "strict=False restores what fits"
        )

    def apply(self) -> None:
        """Apply the plan: all of it, or nothing if an object refuses its state."""
        done: list[tuple[StatefulValue, Any]] = []
        try:
            for path, held, value in self._objects:
                done.append((held, held.snapshot()))
                _put(held.put, value, f"{self._stored.path}: {path}")
        except BaseException:
            for held, before in reversed(done):
                held.put(before)
            raise
        with init_scope():
            targets = dict([*self._values, *self._built_states()])
            arrays = [(x, beside(self._arrays[path], x)) for path, x in targets.items()]
            arrays += [(x, F.zeros_like(x.array)) for x in self._zeros]
            assign_arrays(arrays)

    def _built_states(self) -> list[tuple[str, Variable]]:
        """Return the variables of optimizers' states, created if they do not exist."""
        wanted: dict[int, tuple[Optimizer, dict[int, Variable]]] = {}
        for _, optimizer, _, variable in self._states:
            wanted.setdefault(id(optimizer), (optimizer, {}))[1][variable.id] = variable
        for optimizer, variables in wanted.values():
            optimizer.adopt(variables.values())
            if optimizer.unclaimed:  # from another file, and nobody knows for which variables
                for slot in optimizer.slots:
                    setattr(optimizer, slot, [])
                optimizer.step_counts = ()
            optimizer.build(variables.values())
            kinds: dict[Variable, Any] = dict.fromkeys(variables.values())
            kinds |= {
                v: self._own_step_count(path)
                for path, x, slot, v in self._states
                if x is optimizer and slot == COUNTS
            }
            optimizer.share_counts(kinds)
        found = {
            (id(optimizer), slot, variable.id): state
            for optimizer, _ in wanted.values()
            for slot, variable, state in optimizer.states()
            if variable is not None
        }
        # what ``iterations`` counts has no counter of its own
        places = [(path, found.get((id(x), slot, v.id))) for path, x, slot, v in self._states]
        return [(path, state) for path, state in places if state is not None]

    def _own_step_count(self, path: str) -> int | None:
        """Return the count of a variable; None if it is the number of all steps."""
        count = int(self._arrays[path])
        total = self._arrays.get(f"{path.split(f'/{COUNTS}/', 1)[0]}/iterations")
        return None if total is not None and count == int(total) else count


def _put(put: Callable[[Any], None], value: Any, where: str) -> None:
    try:
        put(value)
    except Exception as error:  # whatever the object objects with
        raise LoadError(f"{where}: it refuses its state ({error}); nothing was restored") from error
