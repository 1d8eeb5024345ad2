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

from ..base.lifetimes import REPLACED
from ..tensors.variable import TOGGLED, Variable
from .attributes import is_frozen
from .calls import PLAIN

if TYPE_CHECKING:
    from .module import Module

__all__ = ["STAMP", "Contents", "held_by", "known_contents", "leaves_in", "note_change"]

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
    containers
        What the walk saw in each list or dict.
    cacheable
        Whether every module was searched by the methods of :class:`Module` itself.
    """

    __slots__ = (
        "_holder", "_root", "_seen", "_stamps", "_states", "_trainable",
        "cacheable", "containers", "parameters", "submodules", "variables",
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
        self.containers: list[_Seen] = []

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
            self.containers.append(_Seen(container, items))

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
                and all(seen.is_same() for seen in self.containers)
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
        """Return the variables that train, unless the root is frozen."""
        toggled, found = self._trainable
        now = TOGGLED[0]
        if toggled is not now:
            found = thawed(self.variables, self.submodules, self._root())
            if all(type(v).trainable is Variable.trainable for v in self.variables):
                self._trainable = now, found
        return found


def thawed(
    variables: Sequence[Variable], submodules: Sequence[Module], root: Any
) -> tuple[Variable, ...]:
    """Return the variables in a module that train, and are not only in frozen modules inside it.

    Parameters
    ----------
    variables, submodules
        What is in the module.
    root
        The module.
    """
    found = tuple([v for v in variables if v.trainable])
    # ``trainable`` of each is read, for traces to note: any may be frozen or thawed later
    closed = [x for x in submodules if not x.trainable and any(v._trainable for v in x.variables)]
    if not closed:
        return found
    open_: set[int] = set()
    waiting, met = [root], {id(root)}
    while waiting:
        for _, leaf in waiting.pop().own_leaves():
            if isinstance(leaf, Variable):
                open_.add(id(leaf))
            elif id(leaf) not in met and not is_frozen(leaf):
                met.add(id(leaf))
                waiting.append(leaf)
    return tuple([v for v in found if id(v) in open_])


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


#: The length of the longest list or dict in which None may be the place of a module.
_PLACES = 1000


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

    def holds_same(self) -> bool:
        """Return whether the container holds the same variables, modules and containers.

        They are in the same places: code may look there, and plain values may come before them.
        """
        if self.is_same():
            return True
        items = enumerate(self._container) if self._keys is None else self._container.items()
        now = [(place, x) for place, x in list(items) if _is_relevant(x)]
        kept = self._kept if self._kinds is not None else enumerate(self._kept)
        before = [(i if self._keys is None else self._keys[i], x) for i, x in kept]
        return len(now) == len(before) and all(
            x is y and place == other for (place, x), (other, y) in zip(now, before, strict=True)
        )

    @property
    def may_hold(self) -> bool:
        """Whether it holds variables, modules or containers, or has room for some."""
        if self._kept or not self._container:
            return True
        # a long one is data, and would be compared before each call
        held = self._container.values() if self._keys is not None else self._container
        return len(held) <= _PLACES and any(x is None for x in held)


def note_change(state: dict[str, Any], *values: Any) -> None:
    """Replace a module's stamp if a value that came to its attributes, or left, matters to walks.

    What was traced with the module then compares what the module holds.

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
        REPLACED.note(())
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


def held_by(module: Module) -> Iterator[tuple[str, Any]]:
    """Yield where a module's attributes hold variables and modules, and which.

    If two walks yield the same, code that reads the attributes finds the same: also the order of a
    dict's items counts, and which lists are the same list.
    """
    first: dict[int, str] = {}  # where a container came first
    for name in module._attribute_order():
        above = [] if name.startswith("_gradtape") else [(name, vars(module)[name])]
        while above:
            path, value = above.pop()
            if type(value) in PLAIN or not _is_relevant(value):
                continue
            if not isinstance(value, _CONTAINERS):
                yield path, value
            elif first.setdefault(id(value), path) != path:
                yield f"{path} is {first[id(value)]}", None
            else:
                items = value.items() if isinstance(value, dict) else enumerate(value)
                above += [(f"{path}/{key}", item) for key, item in items][::-1]


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
