"""The names of a model's weights, in gradtape, Keras and PyTorch.

A path of the model has "/" between its parts (``layers/0/kernel``). A framework's name for it
follows from the model's classes (``names_elsewhere``) and from how the framework names the parts of
models: PyTorch by attributes (``0.weight``), Keras by class and number (``layers/dense/vars/0``).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.extend import Module, Variable, frozen_variables, snake_case
from ..errors import printable

__all__ = ["LAYOUTS", "Names", "Renamed", "Slot", "is_unbuilt", "layout_of", "rename"]

LAYOUTS = ("gradtape", "keras", "pytorch")

# A dictionary, a function, or pairs of a regular expression and a replacement.
Mapped = str | tuple[str, tuple[int, ...]] | None
NameMapping = Mapping[str, Mapped] | Callable[[str], Mapped] | Sequence[tuple[Any, str]] | None


class Slot:
    """The target of an array: a variable, or the future variable of a layer that is not built.

    Attributes
    ----------
    path
        Its path in the model.
    module, attribute
        Its owner; the attribute is given only for a layer that is not built.
    variable
        The variable, if it exists.
    axes
        The order that turns a file's axes into those of the variable.
    paths, elsewhere
        All its paths in the model, if it is shared, and the framework's names for them.
    """

    def __init__(
        self, path: str, module: Module, attribute: str, variable: Variable | None, axes: Any
    ) -> None:
        self.path = path
        self.module = module
        self.attribute = attribute
        self.variable = variable
        self.axes = axes
        self.paths: list[str] = []
        self.elsewhere: list[str] = []


class Names:
    """All targets for arrays in a model, under all their names.

    Attributes
    ----------
    slots
        The targets, in the model's order.
    waiting
        The layers that are not built and do not know their future weights, by path.
    """

    def __init__(self, model: Module, layout: str) -> None:
        self.slots: list[Slot] = []
        self.waiting: dict[str, Module] = {}
        self._layout = layout
        self._known: dict[Any, Slot] = {}
        # what a name stands for, and how likely: 0 for the model's own path
        self._spelled: dict[str, dict[int, list[Slot]]] = {}
        self._prefixes: dict[str, Module] = {}
        self._paths: dict[Any, str] = {id(leaf): path for path, leaf in model.named_leaves()}
        self._paths[id(model)] = ""
        self._walk(model, ("", ""), {"": 0}, frozenset())
        order = {id(leaf): i for i, (_, leaf) in enumerate(model.named_leaves())}

        def place(slot: Slot) -> int:
            return order.get(id(slot.module if slot.variable is None else slot.variable), 0)

        self.slots.sort(key=place)

    def find(self, name: str) -> list[Slot]:
        """Return the targets of a name; several, if it is ambiguous."""
        for spelling in dict.fromkeys((name, _plain(name))):
            ranks = self._spelled.get(spelling)
            if ranks is not None:
                return ranks[min(ranks)]
        return []

    def waiting_for(self, name: str) -> tuple[Module, str] | None:
        """Return the layer with unknown weights that a name belongs to, and the name's rest."""
        spelling = _plain(name)
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
        path: tuple[str, str],
        spellings: dict[str, int],
        above: frozenset[int],
    ) -> None:
        """Record the contents of a module under each spelling of its path, with ranks.

        ``path`` is the model's spelling and the framework's.
        """
        if id(module) in above:
            return
        above |= {id(module)}
        if self._layout == "keras" and path[0]:  # old files have the names of layers
            spellings = {module.name: 3, **spellings}
        if is_unbuilt(module):
            self._note_unbuilt(module, path, spellings)
        declared = _declared(module, self._layout)
        leaves = list(module.own_leaves())
        numbers = _numbers(module, leaves) if self._layout == "keras" else {}
        for name, leaf in leaves:
            further = numbers.get(id(leaf), {})
            if isinstance(leaf, Variable):
                self._note(id(leaf), module, leaf, (name, further), path, spellings)
                continue
            head, _, tail = name.partition("/")
            elsewhere = _joined(declared[head][0], tail) if head in declared else name
            below = {_joined(prefix, name): rank for prefix, rank in spellings.items()}
            for spelling, rank in {elsewhere: 1, **further}.items():
                for prefix, before in spellings.items():
                    below.setdefault(_joined(prefix, spelling), max(before, rank))
            both = _joined(path[0], name), _joined(path[1], elsewhere)
            self._walk(leaf, both, below, above)

    def _note_unbuilt(
        self, layer: Module, path: tuple[str, str], spellings: dict[str, int]
    ) -> None:
        names: tuple[str, ...] | None = getattr(layer, "weight_names", None)
        if names is None:
            self.waiting[self._paths[id(layer)]] = layer
            self._prefixes.update(dict.fromkeys(spellings, layer))
        for i, name in enumerate(names or ()):
            further = {f"vars/{i}": 1} if self._layout == "keras" else {}
            self._note((id(layer), name), layer, None, (name, further), path, spellings)
        for name in getattr(layer, "state_names", ()):
            self._note((id(layer), name), layer, None, (name, {}), path, spellings)

    def _note(
        self,
        key: Any,
        module: Module,
        variable: Variable | None,
        named: tuple[str, dict[str, int]],
        path: tuple[str, str],
        spellings: dict[str, int],
    ) -> None:
        """Record a target under the names of its module, each followed by each of its own names."""
        name, further = named
        elsewhere, axes = _declared(module, self._layout).get(name, (name, None))
        slot = self._known.get(key)
        if slot is None:
            first = self._paths.get(key) or _joined(self._paths[id(module)], name)
            slot = self._known[key] = Slot(first, module, name, variable, axes)
            self.slots.append(slot)
        slot.paths.append(_joined(path[0], name))
        slot.elsewhere.append(_joined(path[1], elsewhere))
        own = {name: 0, elsewhere: 0 if elsewhere == name else 1, **further}
        for spelling, rank in own.items():
            for prefix, before in spellings.items():
                ranks = self._spelled.setdefault(_joined(prefix, spelling), {})
                found = ranks.setdefault(max(before, rank), [])
                if slot not in found:
                    found.append(slot)


def _plain(name: str) -> str:
    """Return a name with "/" between its parts, and Keras's present name for a list of layers."""
    return re.sub(r"[.\\]", "/", name).replace("_layer_checkpoint_dependencies/", "layers/")


def is_unbuilt(module: Module) -> bool:
    """Return whether a module is a layer that has not been called and creates its weights then."""
    return getattr(module, "built", True) is False


def _declared(module: Module, layout: str) -> Mapping[str, tuple[str, Any]]:
    names: Any = getattr(type(module), "names_elsewhere", {})
    found: Mapping[str, tuple[str, Any]] = names.get(layout, {})
    return found


def _numbers(
    module: Module, leaves: Sequence[tuple[str, Variable | Module]]
) -> dict[int, dict[str, int]]:
    """Return Keras's names of the variables and modules directly in a module, by identity.

    Variables are numbered, trainable ones first. Modules in a container are named by their class
    and a number. The same holds for all modules of a model, in a list ``layers``, which contains
    those that come after it in the alphabet.
    """
    # in the order in which they were set
    places = {name: i for i, name in enumerate(vars(module))}
    ordered = sorted(leaves, key=lambda leaf: places[leaf[0].partition("/")[0]])
    variables = [leaf for _, leaf in ordered if isinstance(leaf, Variable)]
    frozen = frozen_variables(module)
    trained = [v for v in variables if v.trainable or any(v is x for x in frozen)]
    others = [v for v in variables if all(v is not x for x in trained)]
    found = {id(v): {f"vars/{i}": 1} for i, v in enumerate([*trained, *others])}
    counts: Counter[tuple[str, str]] = Counter()
    for path, leaf in ordered:
        if not isinstance(leaf, Module):
            continue
        kind = _declared(leaf, "keras").get("", (snake_case(type(leaf).__name__),))[0]
        names = found[id(leaf)] = {}
        containers = {"layers": 2}
        if "/" in path:
            containers[path.rpartition("/")[0]] = 1
        for container, rank in containers.items():
            count = counts[container if rank == 1 else "", kind]
            counts[container if rank == 1 else "", kind] += 1
            names.setdefault(
                f"{container}/{kind}_{count}" if count else f"{container}/{kind}", rank
            )
    return found


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}/{name}" if prefix and name else prefix or name


def layout_of(names: Sequence[str]) -> str:
    """Return which framework's names these are, as far as they show it."""
    ends = {re.split(r"[./]", name)[-1] for name in names}
    if ends & {"weight", "running_mean", "running_var", "num_batches_tracked"}:
        return "pytorch"
    if any(re.search(r"(^|/)vars/\d+$", name) for name in names):
        return "keras"
    return "gradtape"


# -- mapping ---------------------------------------------------------------------------------------


class Renamed(NamedTuple):
    """The model's name for a name of a file (``None`` for nothing), and the order of axes."""

    name: str | None
    axes: tuple[int, ...] | None = None


def rename(names: Sequence[str], mapping: NameMapping) -> dict[str, Renamed]:
    """Return the new name of each name of a file.

    Raises
    ------
    ValueError
        If a key or a pattern of the mapping matches no name.
    TypeError
        If the mapping, or a result of it, is of another type.
    """
    if mapping is None:
        return {name: Renamed(name) for name in names}
    if isinstance(mapping, Mapping):
        return _by_keys(names, mapping)
    if callable(mapping):
        return {name: _renamed(mapping(name), name) for name in names}
    if isinstance(mapping, (str, bytes)):
        raise TypeError(
            "load_weights: mapping must be a dictionary, a function or a list of pairs, "
            f"got {mapping!r}"
        )
    return _by_patterns(names, mapping)


def _renamed(value: Any, name: str, rest: str = "") -> Renamed:
    axes = None
    if isinstance(value, (tuple, list)) and len(value) == 2:
        value, axes = value[0], tuple(value[1])
    if value is None:
        return Renamed(None)
    if not isinstance(value, str):
        raise TypeError(
            f"load_weights: the mapping gives {value!r} for {name!r}; it must give a name, None, "
            "or a pair of a name and the order of axes"
        )
    return Renamed(f"{value}{rest}" if value else rest[1:], axes)


def _by_keys(names: Sequence[str], mapping: Mapping[str, Any]) -> dict[str, Renamed]:
    """Rename names that are keys, or are below one; of several keys the longest applies."""
    unused = set(mapping)
    found = {}
    for name in names:
        key = next((key for key in _above(name) if key in mapping), None)
        if key is None:
            found[name] = Renamed(name)
        else:
            unused.discard(key)
            found[name] = _renamed(mapping[key], name, name[len(key) :])
    _refuse_unused(sorted(unused), names)
    return found


def _above(name: str) -> Iterator[str]:
    """Yield a name, and the parts of the file that contain it, innermost first."""
    yield name
    for i in range(len(name) - 1, 0, -1):
        if name[i] in "./":
            yield name[:i]


def _by_patterns(names: Sequence[str], pairs: Any) -> dict[str, Renamed]:
    unused = []
    found = {name: name for name in names}
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise TypeError(
                f"load_weights: {pair!r} is not a pair of a regular expression and a replacement"
            )
        pattern, replacement = pair
        matched = False
        for name, current in found.items():
            found[name], count = re.subn(pattern, replacement, current)
            matched = matched or count > 0
        if not matched:
            unused.append(getattr(pattern, "pattern", pattern))
    _refuse_unused(unused, names)
    return {name: Renamed(current) for name, current in found.items()}


def _refuse_unused(unused: Sequence[Any], names: Sequence[str]) -> None:
    if unused:
        listed = ", ".join(map(repr, unused))
        there = ", ".join(map(printable, sorted(names)[:8])) + (", ..." if len(names) > 8 else "")
        raise ValueError(
            f"load_weights: the mapping's {listed} match no name; the file has {there}"
        )
