"""Assign arrays to variables; everything is decided and read before a variable changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.extend import (
    Module,
    Stream,
    Variable,
    WeakIdentityDict,
    default_dtype,
    init_scope,
    warn_user,
)
from ..errors import LoadError, printable
from ..records.assigned import assign_arrays, beside
from .arrays import Arrays, Entry, of_arrays
from .layouts import NO_FEATURES, RESTORE, Features, layouts
from .mapping import recognised, rename
from .names import Joint, Names, WeightSlot, differing
from .report import WeightsMismatch, WeightsReport

_WAITING = "_gradtape_waiting"
#: Why an array is left out that a mapping maps to None.
_ASKED = "the mapping says so"


class LoadPlan:
    """The steps for the arrays of a file.

    Parameters
    ----------
    model
        The model.
    arrays
        The contents of the file.
    mapping
        The model's names for its names.
    layout
        The framework of its names and axes; ``None`` if the names and the file tell.
    strict
        Whether everything must fit.
    """

    def __init__(
        self, model: Module, arrays: Arrays, mapping: Any, layout: str | None, strict: bool
    ) -> None:
        names = [*arrays.entries, *arrays.aliases]
        if not callable(mapping):  # a function is asked for these only where they are needed
            names += [x for others in arrays.spellings.values() for x in others]
        self._mapping = mapping
        self._renamed = rename(names, mapping)
        self._stated = layout
        self._kept: frozenset[str] = frozenset()  # names whose arrays have the model's axes
        if layout is None:
            self._names, self._kept = recognised(model, arrays, self._renamed)
        else:
            self._names = Names(model, layouts()[layout])
        self._layout = self._names.layout
        self.report = WeightsReport(arrays.path, self._layout.name, left_out=dict(arrays.left_out))
        self._model = model
        self._arrays = arrays
        self._strict = strict
        self._chosen: dict[
            WeightSlot, tuple[str, Any]
        ] = {}  # the name in the file, the order of axes
        self._converted: dict[
            WeightSlot, np.ndarray[Any, Any]
        ] = {}  # whose values differ in the file
        self._ordered: set[str] = set()  # names to which the mapping gives an order of axes
        self._waiting: WeakIdentityDict[dict[str, tuple[str, Any]]] = WeakIdentityDict()
        # of layers that are built here
        self._before: WeakIdentityDict[dict[str, Any]] = WeakIdentityDict()
        self._hints: list[str] = []
        self._features = NO_FEATURES
        self._later: list[str] = []  # arrays of flattened images, perhaps, that wait for a layer
        self._choose()

    # -- names ---------------------------------------------------------------------------------

    def _choose(self) -> None:
        """Find the target of each array."""
        report, arrays = self.report, self._arrays
        parts: dict[Joint, dict[int, str]] = {}
        for name in arrays.entries:
            target, axes = self._renamed[name]
            if target is None:
                report.left_out[name] = _ASKED
                continue
            found = self._names.find(target)
            for other in () if found else arrays.spellings.get(name, ()):
                renamed = self._renamed.get(other) or rename([other], self._mapping)[other]
                if renamed.name is not None and not found:
                    found, axes = self._names.find(renamed.name), renamed.axes
            if len(found) > 1:
                places = " and ".join(x.path for x in found)
                raise ValueError(
                    f"load_weights: {printable(name)!r} may be {places}; choose one by mapping"
                )
            if not found:
                self._leave(name, target, axes)
            elif isinstance(found[0], WeightSlot):
                self._take(found[0], name, axes)
            elif axes is None:
                other = parts.setdefault(found[0].joint, {}).setdefault(found[0].place, name)
                if other != name:
                    self._leave_equal(name, other, f"a part of {found[0].path}")
            else:
                raise ValueError(
                    f"load_weights: {printable(name)!r} is a part of {found[0].path}; map it to "
                    "one of them to give axes"
                )
        for joint, names in parts.items():
            self._take_joint(joint, names)
        self._choose_again()

    def _choose_again(self) -> None:
        """Find the targets of further names of arrays, which have no others."""
        parts: dict[Joint, dict[int, str]] = {}
        for alias, name in self._arrays.aliases.items():
            target, axes = self._renamed[alias]
            for found in self._names.find(target or ""):
                if not isinstance(found, WeightSlot):
                    parts.setdefault(found.joint, {})[found.place] = name
                elif found not in self._chosen:
                    self._take(found, name, axes)
        for joint, names in parts.items():
            whole = len(names) == len(joint.elsewhere[0])
            if whole and not any(slot in self._chosen for slot in joint.slots):
                self._take_joint(joint, names)

    def _leave(self, name: str, target: str, axes: Any) -> None:
        """Record an array without a target."""
        waiting = self._names.waiting_for(target)
        if waiting is not None:
            self._waiting.setdefault(waiting[0], {})[waiting[1]] = name, axes
        elif why := next(filter(None, (x.leaves_out(name) for x in layouts().values())), ""):
            self.report.left_out[name] = why
        else:
            self.report.unexpected.append(name)

    def _take(self, slot: WeightSlot, name: str, axes: Any) -> None:
        if slot in self._chosen:
            self._leave_equal(name, self._chosen[slot][0], slot.path)
            return
        if axes is not None:
            self._ordered.add(name)
        elif name not in self._kept:
            if slot.convert is not None:
                load = slot.convert[0]
                if not self._convert(
                    slot.module, (slot,), [name], lambda own, x: [load(own, x[0])]
                ):
                    return
            axes = slot.axes
        rank = len(self._arrays.entries[name].shape)
        if axes is not None and sorted(axes) != list(range(rank)):
            if axes is not slot.axes:
                raise ValueError(
                    f"load_weights: {axes} is not an order of the {rank} axes of "
                    f"{printable(name)!r}"
                )
            axes = None  # the shapes will not fit, and the message says so
        self._chosen[slot] = name, axes

    def _leave_equal(self, name: str, other: str, path: str) -> None:
        """Leave out an array for what has one already; raise if they differ."""
        first, second = (self._arrays.look_at(x) for x in (other, name))
        if not np.array_equal(first, second, equal_nan=first.dtype.kind in "fc"):
            raise ValueError(
                f"load_weights: {printable(other)!r} and {printable(name)!r} are both {path}, and "
                "differ; leave one out by mapping it to None"
            )
        self.report.left_out[name] = f"the same as {printable(other)}"

    def _take_joint(self, joint: Joint, names: dict[int, str]) -> None:
        """Choose the arrays that are several variables together, if all are there."""
        given = [names[i] for i in sorted(names)]
        if len(given) < len(joint.elsewhere[0]):
            self.report.unexpected += given
            lacking = [x for i, x in enumerate(joint.elsewhere[0]) if i not in names]
            self._hints.append(
                f"{printable(given[0])} goes with {', '.join(lacking)}, which the file lacks"
            )
            return
        label = " + ".join(given)
        for slot in joint.slots:
            if slot in self._chosen:
                raise ValueError(
                    f"load_weights: {printable(self._chosen[slot][0])!r} and {printable(label)!r} "
                    f"are both {slot.path}; leave one out by mapping it to None"
                )
        if self._convert(joint.module, joint.slots, given, joint.load):
            self._chosen.update(dict.fromkeys(joint.slots, (label, None)))

    def _convert(self, module: Module, slots: Any, names: list[str], load: Any) -> bool:
        """Convert arrays of a framework to variables of a module; return whether they can be."""
        arrays = [self._arrays.look_at(name) for name in names]
        try:
            self._converted.update(zip(slots, map(np.asarray, load(module, arrays)), strict=True))
        except (ValueError, IndexError) as error:
            shapes = ", ".join(f"{printable(name)} {x.shape}" for name, x in zip(names, arrays))
            self._hints.append(
                f"{self._names.path_of(module) or module.name} cannot take {shapes}: {error}"
            )
            self.report.unexpected += names
            return False
        except Exception as error:
            raise LoadError(
                f"load_weights: {type(module).__name__} cannot convert "
                f"{', '.join(map(printable, names))}: its function in names_elsewhere raised "
                f"{type(error).__name__}: {error}"
            ) from error
        return True

    # -- everything ----------------------------------------------------------------------------

    def carry_out(self) -> WeightsReport:
        """Check and read everything; then change the model, or raise and leave it unchanged.

        Raises
        ------
        WeightsMismatch
            If it does not fit.
        """
        report = self.report
        shared = Stream.shared
        drawn = None if shared is None else shared.array
        try:
            self._build()
            values = self._values()
            self._unbuild_what_does_not_fit(values)
            waiting = self._read_waiting()
            nothing = not values and not waiting and (self._arrays.entries or self._names.slots)
            if (self._strict and not report.ok) or nothing:
                raise self._mismatch()
        except BaseException:
            for module, state in self._before.items():
                vars(module).clear()
                vars(module).update(state)
            if shared is not None:  # what building has drawn
                shared.set_array(drawn)
            raise
        assign_arrays(list(values.values()))
        for module, held in waiting.items():
            vars(module)[_WAITING] = held
        return report

    def _mismatch(self) -> WeightsMismatch:
        lines = list(self.report.problems())
        if not lines:
            lines = ["nothing in the file is for this model"]
        hints = [*self._hints, *dict.fromkeys(self._names.dropped()), *self._pairs()]
        stated = self._arrays.layout
        if stated and stated not in layouts():
            hints.append(f"the file is of {stated!r}, whose plugin is missing: {RESTORE}")
        listed = "".join(f"\n  {line}" for line in (*lines, *hints))
        counts = self.report.counts()
        return WeightsMismatch(
            f"{self.report.path}: its weights do not fit module {self._model.name!r}, which is as "
            f"it was ({counts.replace(' loaded', ' would fit')}):{listed}",
            self.report,
        )

    def _pairs(self) -> list[str]:
        """Return how to map names, by a part of the file and one of the model that may agree."""
        own = [path.partition(" (")[0].rpartition("/") for path in self.report.missing]
        for name in self.report.unexpected:
            part, _, last = name.rpartition("/")
            found = next((place for place, _, kind in own if kind == last and place), None)
            if part and found:
                pair = f"{printable(part)!r}: {found!r}"
                return [f"if parts have other names in the file: mapping={{{pair}, ...}}"]
        return []

    def warn(self) -> None:
        """Warn about what was not loaded, and about settings that weights files do not hold."""
        for text in self._remarks():
            warn_user(text, UserWarning)

    def _remarks(self) -> list[str]:
        report = self.report
        told = []
        loaded = {slot.path: slot.variable for slot in self._chosen if slot.path in report.loaded}
        given = self._kept | self._ordered
        kept = {path for path, name in report.loaded.items() if name in given}
        theirs = {path: v for path, v in loaded.items() if v is not None and path not in kept}
        doubtful = [path for path, v in theirs.items() if id(v) in self._features.unsure]
        if doubts := self._layout.in_doubt([*doubtful, *self._later]):
            as_it_is = {report.loaded[path]: (path, (1, 0)) for path in doubtful[:1]}
            told.append(
                f"{report.path}: {doubts}"
                + (f"; to load it as it is, give its axes: mapping={as_it_is}" if as_it_is else "")
            )
        problems = list(report.problems())
        if problems:
            listed = "".join(f"\n  {line}" for line in (*problems, *self._hints))
            told.append(f"{report.path}: not all was loaded ({report.counts()}):{listed}")
        modules = (slot.module for slot in self._chosen)
        texts = dict.fromkeys(differing(modules, self._layout))
        return [*told, *(f"{report.path}: {text}" for text in texts)]

    # -- layers that are not built -------------------------------------------------------------

    def _build(self) -> None:
        """Build the layers that know for which inputs their weights would have these shapes."""
        unbuilt: WeakIdentityDict[list[WeightSlot]] = WeakIdentityDict()
        for slot in self._names.slots:
            if slot.variable is None:
                unbuilt.setdefault(slot.module, []).append(slot)
        for module, slots in unbuilt.items():
            there = {slot.attribute: self._entry(slot) for slot in slots if slot in self._chosen}
            if not there:
                continue
            layer: Any = module
            shapes = {name: shape for name, (shape, _) in there.items()}
            floats = [dtype for _, (_, dtype) in there.items() if dtype.kind == "f"]
            # half precision in a file is to save space; a wider dtype is kept
            dtype = np.result_type(default_dtype(), *floats)
            self._before[module] = dict(vars(module))
            with init_scope():
                if layer.build_for_weights(shapes, dtype):
                    for slot in slots:
                        slot.variable = getattr(module, slot.attribute)
                    continue
            for slot in slots:
                if slot.attribute in there:
                    self.report.wrong_shape[slot.path] = "not known yet", there[slot.attribute][0]
        for path, module in self._names.waiting.items():
            alone = not any(isinstance(leaf, Module) for _, leaf in module.own_leaves())
            if module not in self._waiting and alone:
                self.report.missing.append(
                    f"{path or module.name} (not built: call the model once)"
                )

    def _unbuild_what_does_not_fit(self, values: dict[WeightSlot, Any]) -> None:
        """Unbuild layers that were built for a weight of a wrong shape."""
        report = self.report
        for module in [x.module for x in self._chosen if x.path in report.wrong_shape]:
            before = self._before.pop(module, None)
            if before is None:
                continue
            vars(module).clear()
            vars(module).update(before)
            for slot in [x for x in values if x.module is module]:
                del values[slot], report.loaded[slot.path]
                report.missing.append(f"{slot.path} (not built)")

    def _entry(self, slot: WeightSlot) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Return the shape, with its axes in the model's order, and the dtype of an array."""
        if slot in self._converted:
            return self._converted[slot].shape, self._converted[slot].dtype
        name, axes = self._chosen[slot]
        entry = self._arrays.entries[name]
        return _ordered(entry.shape, axes), entry.dtype

    def _read_waiting(self) -> WeakIdentityDict[Waiting]:
        found: WeakIdentityDict[Waiting] = WeakIdentityDict()
        for module, names in self._waiting.items():
            path = self._names.path_of(module)
            values = {}
            for relative, (name, axes) in names.items():
                array = self._arrays.entries[name].read()
                values[relative] = array if axes is None else array.transpose(axes)
                self.report.pending[name] = path or module.name
            found[module] = Waiting(values, self._arrays, self._stated, self._strict)
        return found

    # -- values --------------------------------------------------------------------------------

    def _values(self) -> dict[WeightSlot, tuple[Variable, Any]]:
        """Return the variables that take an array, with the array; record why others do not."""
        fitting = [
            (slot, v) for slot in self._names.slots if (v := self._fitting(slot)) is not None
        ]
        self._features = self._in_order()
        read = self._arrays.read(
            self._chosen[slot][0] for slot, _ in fitting if slot not in self._converted
        )
        found = {}
        for slot, variable in fitting:
            name, axes = self._chosen[slot]
            array = self._converted[slot] if slot in self._converted else read[name]
            if axes is not None:
                array = array.transpose(axes)
            moves = id(variable) in self._features.channels
            if moves and name not in self._kept | self._ordered:
                array = self._features.to_model_order(variable, array)
                self.report.reordered.append(slot.path)
            array = np.ascontiguousarray(array).reshape(array.shape)
            stored = self._stored(name) or array.dtype.name
            converted = _converted(array, variable.dtype)
            if converted is None:
                told = f"{stored} with numbers that it cannot hold"
                self.report.wrong_dtype[slot.path] = variable.dtype.name, told
                continue
            found[slot] = variable, beside(converted, variable)
            self.report.loaded[slot.path] = name
            if stored != variable.dtype.name:
                self.report.cast[slot.path] = stored, variable.dtype.name
        return found

    def _in_order(self) -> Features:
        """Return the features that the framework of the arrays has in another order."""
        slots = self._names.slots
        images = [x for x in slots if x.of_images(self._chosen.get(x, ("", None))[1])]
        kernels = [x.variable for x in images if x.variable is not None]
        waiting = [x for names in self._waiting.values() for x, axes in names.values() if not axes]
        shapes = {name: self._arrays.entries[name].shape for name in waiting}
        widths = {name: shape[1] for name, shape in shapes.items() if len(shape) == 2}
        if widths:
            found = self._layout.suspected(widths.values(), kernels, self._model.variables)
            self._later = [name for name, width in widths.items() if width in found]
        return self._layout.features(self._model, kernels)

    def _stored(self, name: str) -> str:
        """Return how the numbers of an array are stored, if not in its dtype."""
        entry = self._arrays.entries.get(name.partition(" + ")[0])
        return "" if entry is None else entry.stored

    def _fitting(self, slot: WeightSlot) -> Variable | None:
        """Return the variable of a target if the array has its shape and kind."""
        report, variable = self.report, slot.variable
        if slot not in self._chosen:
            unbuilt = getattr(slot.module, "state_names", ()) if variable is None else ()
            optional = isinstance(variable, Stream) or slot.state == "absent"
            asked = report.left_out.get(slot.path) == _ASKED  # it keeps its value, as the user said
            if not optional and not asked and slot.attribute not in unbuilt:
                report.missing.append(slot.path + (" (not built)" if variable is None else ""))
            return None
        if variable is None:
            return None
        name = self._chosen[slot][0]
        shape, dtype = self._entry(slot)
        if shape != variable.shape:
            report.wrong_shape[slot.path] = variable.shape, shape
            if slot not in self._converted:
                self._hint_at_axes(slot, self._arrays.entries[name])
            return None
        if not np.can_cast(dtype, variable.dtype, "same_kind"):
            report.wrong_dtype[slot.path] = variable.dtype.name, self._stored(name) or dtype.name
            return None
        return variable

    def _hint_at_axes(self, slot: WeightSlot, entry: Entry) -> None:
        variable = slot.variable
        other = next((x.name for x in layouts().values() if x.transposes), None)
        if variable is None or len(entry.shape) < 2:
            return
        if slot.axes is not None and entry.shape == variable.shape:
            hint = (
                f"{slot.path} fits as it is in the file: if its matrices are (inputs, outputs), "
                'pass layout="gradtape" or map it to a pair of its name and the axes (0, 1)'
            )
        elif other and slot.axes is None and entry.shape[::-1] == variable.shape:
            now = self._layout.name
            hint = f'{slot.path} fits transposed: layout="{other}" transposes (now "{now}")'
        else:
            return
        if not self._hints:
            self._hints.append(hint)


class Waiting:
    """Arrays that wait for a layer to be built, by their names below the layer in the file."""

    def __init__(
        self,
        values: Mapping[str, np.ndarray[Any, Any]],
        file: Arrays,
        layout: str | None,
        strict: bool,
    ) -> None:
        self._arrays = dict(values)
        self._path, self._says = file.path, file.layout
        self._layout = layout
        self._strict = strict

    def __call__(self, layer: Module) -> None:
        """Load them, now that the layer is built."""
        arrays = of_arrays(self._arrays)
        arrays.path, arrays.layout = self._path, self._says
        plan = LoadPlan(layer, arrays, None, self._layout, self._strict)
        plan.carry_out()
        plan.warn()


def _ordered(shape: tuple[int, ...], axes: Any) -> tuple[int, ...]:
    return shape if axes is None else tuple(shape[axis] for axis in axes)


def _converted(array: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> np.ndarray[Any, Any] | None:
    """Return an array in another dtype; None if a number does not fit into it."""
    if array.dtype == dtype:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        found = array.astype(dtype)
    if array.dtype.kind in "biu":
        return found if np.array_equal(found, array) else None
    return found if np.array_equal(np.isfinite(found), np.isfinite(array)) else None
