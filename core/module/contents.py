"""What a module contains, kept until something in it changes.

Training steps ask for a model's variables again and again. What a walk through the model found
serves until an attribute of a module inside is set or deleted, or a container changes. A module
replaces its *stamp* when an attribute changes that may hold variables or modules. Lists and dicts
do not report changes. Code that writes into ``vars(module)`` or calls ``object.__setattr__`` does
not either. So each use compares what the walk saw with what is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from operator import is_, itemgetter
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..tensors.variable import TOGGLED, Variable
from .calls import PLAIN

if TYPE_CHECKING:
    from .module import Module

__all__ = ["STAMP", "Contents", "known_contents", "leaves_in", "note_change"]

#: The attribute that holds a module's stamp.
STAMP = "_gradtape_stamp"

_stamp_of, _first = itemgetter(STAMP), itemgetter(0)
_CONTAINERS = (list, tuple, dict)
# A stamp forgets contents that are no longer in use when it knows so many.
_MANY = 16


class Stamp:
    """Stands for a state of a module's attributes; another one takes its place when they change.

    Attributes
    ----------
    contents
        What a walk found that began at the module.
    holders
        The stamps of modules whose contents include this module.
    """

    __slots__ = ("__weakref__", "contents", "holders")

    def __init__(self) -> None:
        self.contents: Contents | None = None
        self.holders: list[ref[Stamp]] = []

    def __reduce__(self) -> Any:
        return Stamp, ()  # a copy of a module has contents of its own


class Contents:
    """What one walk found, with all that shows whether another walk would find the same.

    Parameters
    ----------
    root
        The module at which the walk begins.

    Attributes
    ----------
    variables, submodules
        What :attr:`Module.variables` and :attr:`Module.submodules` return.
    parameters
        What :func:`parameters` yields, once somebody asked for it.
    cacheable
        Whether every module was searched by the methods of :class:`Module` itself.
    """

    __slots__ = (
        "_containers", "_holder", "_root", "_seen", "_stamps", "_states", "_trainable",
        "cacheable", "parameters", "submodules", "variables",
    )  # fmt: skip

    def __init__(self, root: Module) -> None:
        self.variables: tuple[Variable, ...] = ()
        self.submodules: tuple[Module, ...] = ()
        self.parameters: tuple[Variable, ...] | None = None
        self.cacheable = True
        self._trainable: tuple[Any, tuple[Variable, ...]] = (None, ())
        # weakly: the root holds this, and its memory should not wait for the garbage collector
        self._root = ref(root)
        self._holder: ref[Stamp] = ref(_stamp_in(vars(root)))
        self._states: list[dict[str, Any]] = []
        self._stamps: list[Stamp] = []
        self._seen = _Attributes([vars(root)])
        self._containers: list[_Seen] = []

    def enter(self, module: Module) -> None:
        """Note a module below the root, before its attributes are read."""
        state = vars(module)
        stamp = _stamp_in(state)
        self._states.append(state)
        self._stamps.append(stamp)
        self._seen.add(state)
        if self._holder not in stamp.holders:
            if len(stamp.holders) >= _MANY:
                stamp.holders = [x for x in stamp.holders if x() is not None]
            stamp.holders.append(self._holder)

    def note(self, container: Any, items: Sequence[Any]) -> None:
        """Note what was read from a container: a list's items, or a dict's pairs."""
        if type(container) is not tuple:
            self._containers.append(_Seen(container, items))

    def keep(self) -> None:
        """Keep this for the next use, now that the walk is complete."""
        stamp = self._holder()  # None if the root has changed meanwhile
        if self.cacheable and stamp is not None:
            stamp.contents = self

    def belongs_to(self, module: Module) -> bool:
        """Return whether it was found from a module whose stamp holds it, and is still there."""
        states = self._states
        try:
            return (
                self._root() is module  # not a copy, with its attributes
                and [*map(_stamp_of, states)] == self._stamps
                # direct writes into vars(module) leave the stamp as it is
                and self._are_same([vars(module), *states])
                and all(seen.is_same() for seen in self._containers)
            )
        except (KeyError, RuntimeError):  # all attributes were replaced, or other threads add some
            return False

    def _are_same(self, states: list[dict[str, Any]]) -> bool:
        """Return whether the modules' attributes hold what the walk saw, wherever that matters."""
        if self._seen.are_in(states):
            return True
        now = _Attributes(states)
        if len(now.kept) != len(self._seen.kept) or not all(map(is_, now.kept, self._seen.kept)):
            return False
        self._seen = now  # only plain values have come, or others than before
        return True

    def trainable(self) -> tuple[Variable, ...]:
        """Return the variables that train, whether or not the modules are frozen."""
        toggled, found = self._trainable
        now = TOGGLED[0]
        if toggled is not now:
            found = tuple([v for v in self.variables if v.trainable])
            if all(type(v).trainable is Variable.trainable for v in self.variables):
                self._trainable = now, found
        return found


class _Attributes:
    """What attributes of modules hold: the values that matter to walks, and the types of all.

    Parameters
    ----------
    states
        The attributes of each module.
    """

    __slots__ = ("kept", "kinds", "places")

    def __init__(self, states: Sequence[dict[str, Any]]) -> None:
        self.kinds: list[type] = []
        self.places: list[int] = []
        self.kept: list[Any] = []
        for state in states:
            self.add(state)

    def add(self, state: dict[str, Any]) -> None:
        """Note the attributes of another module."""
        for i, (name, x) in enumerate(list(state.items()), len(self.kinds)):
            self.kinds.append(type(x))
            if not name.startswith("_gradtape") and _is_relevant(x) and not _is_plain(x):
                self.places.append(i)
                self.kept.append(x)

    def are_in(self, states: Sequence[dict[str, Any]]) -> bool:
        """Return whether attributes hold the same values, and others of the same types."""
        values = [*chain.from_iterable(map(dict.values, states))]
        return [*map(type, values)] == self.kinds and all(
            map(is_, map(values.__getitem__, self.places), self.kept)
        )


class _Seen:
    """What a walk saw in a container.

    It keeps containers, variables and modules alive, but no other values: a list may be a buffer of
    large arrays. These it knows by their types, which say that nothing is to be found in them.
    """

    __slots__ = ("_container", "_kept", "_keys", "_kinds")

    def __init__(self, container: Any, items: Sequence[Any]) -> None:
        self._container = container
        self._keys = [key for key, _ in items] if isinstance(container, dict) else None
        values = items if self._keys is None else [value for _, value in items]
        kept = [(i, x) for i, x in enumerate(values) if _is_relevant(x)]
        # a list of layers, as most are, is compared as a whole
        self._kinds = None if len(kept) == len(values) else [*map(type, values)]
        self._kept: list[Any] = [x for _, x in kept] if self._kinds is None else kept

    def is_same(self) -> bool:
        """Return whether the container holds the same again."""
        container, keys = self._container, self._keys
        if keys is not None:
            pairs = list(container.items())
            if len(pairs) != len(keys) or not all(map(is_, map(_first, pairs), keys)):
                return False
            container = [value for _, value in pairs]
        elif type(container) is not list:
            container = list(container)
        if self._kinds is None:
            return len(container) == len(self._kept) and all(map(is_, container, self._kept))
        return [*map(type, container)] == self._kinds and all(
            container[i] is x for i, x in self._kept
        )


def note_change(state: dict[str, Any], *values: Any) -> None:
    """Replace a module's stamp if a value that came to its attributes, or left, matters to walks.

    Parameters
    ----------
    state
        The attributes.
    values
        What an attribute held, and what it holds now.
    """
    stamp: Stamp | None = state.get(STAMP)
    if stamp is not None and any(_is_relevant(x) and not _is_plain(x) for x in values):
        state[STAMP] = Stamp()
        for holder in stamp.holders:  # do not keep alive what is no longer in use
            found = holder()
            if found is not None:
                found.contents = None


def known_contents(module: Module) -> Contents | None:
    """Return what is known to be in a module, or None if a walk has to find it."""
    stamp: Stamp | None = vars(module).get(STAMP)
    found = None if stamp is None else stamp.contents
    return found if found is not None and found.belongs_to(module) else None


def _stamp_in(state: dict[str, Any]) -> Stamp:
    found: Stamp = state.get(STAMP) or state.setdefault(STAMP, Stamp())
    return found


def leaves_in(
    path: str, value: Any, kinds: tuple[type, ...], contents: Contents | None
) -> Iterator[tuple[str, Any]]:
    """Yield the variables and modules in an attribute's value, with their paths.

    Each container comes once, so that lists that share lists stay fast.

    Parameters
    ----------
    path
        The attribute.
    value
        What it holds.
    kinds
        The types to look for.
    contents
        What notes the containers.
    """
    if not isinstance(value, _CONTAINERS):
        return
    seen = {id(value)}
    above = [(path, _items(value, contents))]  # no recursion, which would end in deep containers
    while above:
        path, items = above[-1]
        for key, item in items:
            if isinstance(item, kinds):
                yield f"{path}/{key}", item
            if type(item) in PLAIN or not isinstance(item, _CONTAINERS):
                continue
            if id(item) not in seen:
                seen.add(id(item))
                above.append((f"{path}/{key}", _items(item, contents)))
                break
        else:
            above.pop()


def _items(value: Any, contents: Contents | None) -> Iterator[tuple[Any, Any]]:
    items = list(value.items() if isinstance(value, dict) else value)
    if contents is not None:
        contents.note(value, items)
    if isinstance(value, dict):
        return iter(sorted(items, key=lambda item: str(item[0])))
    return enumerate(items)


def _is_relevant(value: Any) -> bool:
    """Return whether a walk finds a value, or looks into it."""
    return type(value) not in PLAIN and (
        isinstance(value, (Variable, *_CONTAINERS)) or hasattr(type(value), "own_leaves")
    )


def _is_plain(value: Any) -> bool:
    """Return whether a value is a tuple of plain values, such as a shape."""
    return type(value) is tuple and PLAIN.issuperset(map(type, value))
