"""From a checkpoint's file to live objects; everything is checked before anything changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.extend import F, Stream, Variable, init_scope
from ...training import Optimizer
from ..errors import LoadError
from ..records.assigned import assign_arrays, beside
from ..records.schema import COUNTS, check_steps, check_stream
from .files import Stored
from .trackables import Held, Trackables


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


class Plan:
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
        self._objects: list[tuple[str, Held, Any]] = []
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
        done: list[tuple[Held, Any]] = []
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
                v: self._steps_apart(path)
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

    def _steps_apart(self, path: str) -> int | None:
        """Return the count of a variable; None if it is the number of all steps."""
        count = int(self._arrays[path])
        total = self._arrays.get(f"{path.split(f'/{COUNTS}/', 1)[0]}/iterations")
        return None if total is not None and count == int(total) else count


def _put(put: Callable[[Any], None], value: Any, where: str) -> None:
    try:
        put(value)
    except Exception as error:  # whatever the object objects with
        raise LoadError(f"{where}: it refuses its state ({error}); nothing was restored") from error
