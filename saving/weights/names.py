"""The names of a model's weights, in gradtape and in other frameworks.

A path of the model has "/" between its parts (``layers/0/kernel``). A framework's name for it
follows from the model's classes (``names_elsewhere``) and from how the framework names the parts of
models (:class:`.layouts.Layout`): by attributes (``0.weight``), or by class and number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.extend import Module, Variable, is_unbuilt
from .layouts import Layout


class WeightSlot:
    """The target of an array: a variable, or the future variable of a layer that is not built.

    Attributes
    ----------
    path
        Its path in the model.
    module, attribute
        Its owner; the attribute is given only for a layer that is not built.
    variable
        The variable, if it exists.
    axes, convert
        The order that turns a file's axes into those of the variable, or a function from a file's
        array and one to it.
    state
        What the class says of its name in the framework: ``"named"``, ``"absent"`` if the framework
        has no such variable, or ``""``.
    paths, elsewhere
        All its paths in the model, if it is shared, and the framework's names for them.
    """

    def __init__(self, path: str, module: Module, attribute: str, variable: Any) -> None:
        self.path = path
        self.module = module
        self.attribute = attribute
        self.variable: Variable | None = variable
        self.axes: tuple[int, ...] | None = None
        self.convert: Any = None
        self.state = ""
        self.paths: list[str] = []
        self.elsewhere: list[str] = []

    @property
    def converts(self) -> bool:
        """Whether the framework has other axes or values."""
        return self.axes is not None or self.convert is not None

    def of_images(self, axes: Any = None) -> bool:
        """Return whether spatial axes are first here and last there, as in kernels of images."""
        rank = 0 if self.variable is None else len(self.variable.shape)
        axes = self.axes if axes is None else axes
        if rank < 3 or axes is None:
            return rank > 2 and self.convert is not None
        return tuple(axes[:-2]) == tuple(range(2, rank))


class Joint:
    """Variables that correspond to arrays of a framework together, not one to one.

    Attributes
    ----------
    module
        The layer that says so.
    slots
        The targets.
    load, save
        The functions from a list of the framework's arrays to one of the variables', and back.
    elsewhere
        The framework's names for the arrays, for each path of the layer.
    """

    def __init__(self, module: Module, slots: Sequence[WeightSlot], convert: Any) -> None:
        self.module = module
        self.slots = tuple(slots)
        self.load, self.save = convert
        self.elsewhere: list[tuple[str, ...]] = []


class JointPart(NamedTuple):
    """The target of one of the arrays of a :class:`Joint`."""

    joint: Joint
    place: int

    @property
    def path(self) -> str:
        """The paths of its variables."""
        return ", ".join(slot.path for slot in self.joint.slots)


class _PathSpelling(NamedTuple):
    """A spelling of a module's path: what comes before and after the names of its contents."""

    before: str = ""
    after: str = ""

    def of(self, name: str) -> str:
        return _joined(self.before, name) + self.after

    def inside(self, form: str) -> _PathSpelling:
        """Return the place of a part whose contents are named by a form, as ``"{}_l0"``."""
        before, _, after = form.partition("{}")
        return _PathSpelling(_joined(self.before, before.rstrip("./")), after + self.after)

    def part(self, name: str) -> _PathSpelling:
        """Return the place of a part by its own name, which may hold any characters."""
        return _PathSpelling(_joined(self.before, name), self.after)


class Names:
    """All targets for arrays in a model, under all their names.

    Attributes
    ----------
    layout
        The framework.
    slots
        The targets, in the model's order.
    joints
        Those of them that a framework stores together.
    waiting
        The layers that are not built and do not know their future weights, by path.
    """

    def __init__(self, model: Module, layout: Layout) -> None:
        self.slots: list[WeightSlot] = []
        self.waiting: dict[str, Module] = {}
        self.layout = layout
        self._known: dict[Any, WeightSlot] = {}
        self._joints: dict[Any, Joint] = {}
        self._dropped: list[tuple[Module, tuple[str, ...], list[str], list[WeightSlot]]] = []
        # what a name stands for, and how likely: 0 for the model's own path
        self._spelled: dict[str, dict[int, list[WeightSlot | JointPart]]] = {}
        self._by_dotted_key: dict[str, list[WeightSlot | JointPart]] = {}  # of keys with a dot
        self._prefixes: dict[str, Module] = {}
        self._paths: dict[Any, str] = {id(leaf): path for path, leaf in model.named_leaves()}
        self._paths[id(model)] = ""
        self._walk(model, (_PathSpelling(), _PathSpelling()), {_PathSpelling(): 0}, frozenset())
        self.joints = list(self._joints.values())
        order = {id(leaf): i for i, (_, leaf) in enumerate(model.named_leaves())}

        def place(slot: WeightSlot) -> int:
            return order.get(id(slot.module if slot.variable is None else slot.variable), 0)

        self.slots.sort(key=place)

    def dropped(self) -> Iterator[str]:
        """Yield a text for each class whose names of several variables do not apply."""
        for module, ours, lacking, known in self._dropped:
            if not any(slot.state for slot in known):  # no other key applies either
                where = f"{type(module).__name__}.names_elsewhere[{self.layout.name!r}][{ours!r}]"
                yield (
                    f"{where} does not apply to {self.path_of(module) or module.name!r}, which "
                    f"has no attribute {' or '.join(map(repr, lacking))}"
                )

    def find(self, name: str) -> list[WeightSlot | JointPart]:
        """Return the targets of a name; several, if it is ambiguous."""
        for spelling in dict.fromkeys((name, self.layout.plain(name))):
            ranks = self._spelled.get(spelling)
            if ranks is not None:
                return ranks[min(ranks)]
        return self._by_dotted_key.get(self.layout.plain(name), [])

    def is_own(self, name: str) -> bool:
        """Return whether a name is a path of the model."""
        return any(0 in self._spelled.get(x, ()) for x in (name, self.layout.plain(name)))

    def waiting_for(self, name: str) -> tuple[Module, str] | None:
        """Return the layer with unknown weights that a name belongs to, and the name's rest."""
        spelling = self.layout.plain(name)
        found = [x for x in self._prefixes if spelling.startswith(f"{x}/" if x else "")]
        if not found:
            return None
        longest = max(found, key=len)
        return self._prefixes[longest], spelling[len(longest) :].lstrip("/")

    def path_of(self, module: Module) -> str:
        """Return the path of a module in the model."""
        return self._paths[id(module)]

    def _walk(
        self,
        module: Module,
        path: tuple[_PathSpelling, _PathSpelling],
        spellings: dict[_PathSpelling, int],
        above: frozenset[int],
    ) -> None:
        """Record the contents of a module under each spelling of its path, with ranks.

        ``path`` is the model's spelling and the framework's.
        """
        if id(module) in above:
            return
        above |= {id(module)}
        if self.layout.names_modules and path[0].before:
            spellings = {_PathSpelling(module.name): 3, **spellings}
        if is_unbuilt(module):
            self._note_unbuilt(module, path, spellings)
        declared = declared_names(module, self.layout.name)
        leaves = list(module.own_leaves())
        numbers = self.layout.further_names(module, leaves)
        for name, leaf in leaves:
            further = numbers.get(id(leaf), {})
            if isinstance(leaf, Variable):
                self._note(id(leaf), module, leaf, (name, further), path, spellings)
                continue
            form = _form(declared, name)
            below = {prefix.part(name): rank for prefix, rank in spellings.items()}
            for spelling, rank in {form: 1, **further}.items():
                for prefix, before in spellings.items():
                    below.setdefault(prefix.inside(spelling), max(before, rank))
            if self.layout.names_modules:  # also models in groups of their names
                groups = [prefix for prefix, rank in spellings.items() if rank == 3]
                below.update(
                    {x.inside(leaf.name): 3 for x in groups if x.inside(leaf.name) not in below}
                )
            theirs = path[1].part(name) if form == name else path[1].inside(form)
            self._walk(leaf, (path[0].part(name), theirs), below, above)
        for ours, listed in declared.items():
            if isinstance(ours, tuple):
                self._note_joint(module, ours, listed, path, spellings)

    def _note_unbuilt(
        self,
        layer: Module,
        path: tuple[_PathSpelling, _PathSpelling],
        spellings: dict[_PathSpelling, int],
    ) -> None:
        names: tuple[str, ...] | None = getattr(layer, "weight_names", None)
        if names is None:
            self.waiting[self._paths[id(layer)]] = layer
            self._prefixes.update({place.before: layer for place in spellings})
        for i, name in enumerate(names or ()):
            number = self.layout.numbered(i)
            further = {number: 1} if number else {}
            self._note((id(layer), name), layer, None, (name, further), path, spellings)
        for name in getattr(layer, "state_names", ()):
            self._note((id(layer), name), layer, None, (name, {}), path, spellings)

    def _note(
        self,
        key: Any,
        module: Module,
        variable: Variable | None,
        named: tuple[str, Mapping[str, int]],
        path: tuple[_PathSpelling, _PathSpelling],
        spellings: dict[_PathSpelling, int],
    ) -> None:
        """Record a target under the names of its module, each followed by each of its own names."""
        name, further = named
        declared = declared_names(module, self.layout.name)
        listed = declared.get(name, declared.get(name.partition("/")[0], (name, None)))
        elsewhere, how = (name, None) if listed is None else listed
        slot = self._known.get(key)
        if slot is None:
            first = self._paths.get(key) or _joined(self._paths[id(module)], name)
            slot = self._known[key] = WeightSlot(first, module, name, variable)
            if how and callable(how[0]):
                slot.convert = how
            else:
                slot.axes = how
            slot.state = "absent" if listed is None else "named" if name in declared else ""
            self.slots.append(slot)
        slot.paths.append(path[0].of(name))
        slot.elsewhere.append(path[1].of(elsewhere))
        own = {name: 0, elsewhere: 0 if elsewhere == name else 1, **further}
        for spelling, rank in own.items():
            self._spell(spelling, rank, slot, spellings)

    def _note_joint(
        self,
        module: Module,
        ours: tuple[str, ...],
        listed: Any,
        path: tuple[_PathSpelling, _PathSpelling],
        spellings: dict[_PathSpelling, int],
    ) -> None:
        """Record what a module says of several of its variables together."""
        theirs, convert = listed
        found = [self._spelled.get(path[0].of(name), {}).get(0, []) for name in ours]
        known = [x for targets in found for x in targets[:1] if isinstance(x, WeightSlot)]
        if len(known) < len(ours):  # an inner layer that is not built does not know its weights
            lacking = [x for x in ours if not hasattr(module, x.partition("/")[0])]
            if known and lacking and not is_unbuilt(module):
                self._dropped.append((module, ours, lacking, known))
            return
        joint = self._joints.setdefault((id(module), ours, theirs), Joint(module, known, convert))
        joint.elsewhere.append(tuple(path[1].of(name) for name in theirs))
        for i, name in enumerate(theirs):
            self._spell(name, 1, JointPart(joint, i), spellings)
        for slot in known:
            slot.state = "named"

    def _spell(
        self, name: str, rank: int, target: Any, spellings: dict[_PathSpelling, int]
    ) -> None:
        for prefix, before in spellings.items():
            spelling = prefix.of(name)
            ranks = self._spelled.setdefault(spelling, {})
            for found in (
                ranks.setdefault(max(before, rank), []),
                *(
                    [self._by_dotted_key.setdefault(self.layout.plain(spelling), [])]
                    if "." in spelling
                    else []
                ),
            ):
                if target not in found:
                    found.append(target)


def differing(modules: Iterable[Module], layout: Layout) -> Iterator[str]:
    """Yield a text for each setting that weight files lack and that has another default there."""
    for module in modules:
        defaults: Any = getattr(type(module), "defaults_elsewhere", {})
        for setting, value in defaults.get(layout.name, {}).items():
            own = getattr(module, setting, value)
            own = getattr(own, "name", own)  # of an activation
            if own != value:
                yield (
                    f"{type(module).__name__} {module.name!r} has {setting}={own!r}; its default "
                    f"in {layout.name} is {value!r}, and files of weights do not say which it was"
                )


def declared_names(module: Module, layout: str) -> Mapping[Any, Any]:
    """Return what a module's class says of names in a framework.

    Raises
    ------
    TypeError
        If it does not have the form that the guide shows.
    """
    names: Any = getattr(module, "names_elsewhere", None) or {}
    where = f"{type(module).__name__}.names_elsewhere"
    if not isinstance(names, Mapping):
        raise TypeError(f"{where} must be a dictionary by framework, got {names!r}")
    found: Any = names.get(layout, {})
    if not isinstance(found, Mapping):
        raise TypeError(f"{where}[{layout!r}] must be a dictionary by attribute, got {found!r}")
    for ours, listed in found.items():
        together = isinstance(ours, tuple)
        if (listed is None and not together) or _has_valid_form(listed, together):
            continue
        form = (
            '(("name", ...), (load, save)): a tuple of names, and two functions'
            if together
            else '("name", how): how is None, an order of axes, or (load, save), two functions'
        )
        raise TypeError(f"{where}[{layout!r}][{ours!r}] must be {form}; got {listed!r}")
    return found


def _has_valid_form(listed: Any, together: bool) -> bool:
    """Return whether a value of ``names_elsewhere`` has the form for one or several variables."""
    if not isinstance(listed, (tuple, list)) or len(listed) != 2:
        return False
    theirs, how = listed
    pair = isinstance(how, (tuple, list)) and len(how) == 2 and all(map(callable, how))
    if together:
        return pair and isinstance(theirs, tuple) and all(isinstance(x, str) for x in theirs)
    axes = isinstance(how, (tuple, list)) and all(i in how for i in range(len(how)))
    return isinstance(theirs, str) and (how is None or pair or axes)


def _form(declared: Mapping[Any, Any], name: str) -> str:
    """Return the framework's name of a part, with ``{}`` for names in it if they have an ending."""
    if declared.get(name) is not None:
        found: str = declared[name][0]
        return found
    head, _, tail = name.partition("/")
    return name if declared.get(head) is None else _joined(declared[head][0], tail)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix and name else prefix or name
