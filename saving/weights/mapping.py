"""The model's names for the names of a file: those of ``mapping=``, or of a known layout."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ...core.extend import Module
from ..errors import printable
from .arrays import Arrays
from .names import Names, Part, Slot, plain

# A dictionary, a function, or pairs of a regular expression and a replacement.
Mapped = str | tuple[str, tuple[int, ...]] | None
NameMapping = Mapping[str, Mapped] | Callable[[str], Mapped] | Sequence[tuple[Any, str]] | None


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


# -- layouts: whose names and axes arrays have, as far as the model and the file say ---------------

_KERAS = re.compile(r"(^|/)vars/\d+$")
# Only for messages about names of which the model has none.
_PYTORCH = re.compile(r"(^|[./])(weight|running_mean|running_var|num_batches_tracked)$")


def recognised(
    model: Module, arrays: Arrays, renamed: Mapping[str, Renamed]
) -> tuple[Names, frozenset[str]]:
    """Return the model's names in the layout of arrays, and which arrays have the model's axes.

    A name that is a path of the model means that variable, with its axes. Only other names, and
    what the file says of itself, tell that arrays are PyTorch's.

    Raises
    ------
    ValueError
        If a name is a path of the model and PyTorch's name for an array of other axes, and its
        shape fits both.
    """
    if any(map(_KERAS.search, arrays.entries)):
        return Names(model, "keras"), frozenset()
    there = Names(model, "pytorch")
    theirs = {plain(name): slot for slot in there.slots for name in slot.elsewhere}
    kept, both, found = set(), [], False
    foreign = arrays.layout == "pytorch"
    for name in arrays.entries:
        target, axes = renamed[name]
        if target is None:
            continue
        if not there.is_own(target):
            foreign = foreign or bool(there.find(target))
            continue
        found = True
        slot = there.find(target)[0]
        namesake = theirs.get(plain(name))
        if plain(name) != plain(target):
            # a mapping to the model's paths; the file's name tells whose axes these are
            if _last(name) == _last(target):
                kept.add(name)
            elif axes is None and _last(name) in _names_there(slot):
                foreign = True
        elif namesake is None:
            kept.add(name)
        elif namesake is not slot or namesake.converts:
            both.append((name, slot, namesake))
    if not foreign and both:
        foreign = _by_shapes(both, arrays)
    if not foreign:
        unknown = not found and any(map(_PYTORCH.search, arrays.entries))
        return there if unknown else Names(model, "gradtape"), frozenset()
    return there, frozenset(kept)


def _by_shapes(both: list[tuple[str, Any, Slot]], arrays: Arrays) -> bool:
    """Return whether only PyTorch's axes give arrays the shapes of their variables."""
    ours = theirs = True
    for name, slot, namesake in both:
        shape = arrays.entries[name].shape
        ours = ours and _fits(slot, shape)
        if namesake.axes is not None and len(namesake.axes) == len(shape):
            shape = tuple(shape[axis] for axis in namesake.axes)
        theirs = theirs and _fits(namesake, shape)
    if ours and theirs:
        name, _, namesake = both[0]
        raise ValueError(
            f"load_weights: {arrays.path}: {printable(name)!r} is a path of the model, and also "
            f"PyTorch's name for {namesake.path}, which has other axes there; its shape fits both. "
            'Pass layout="gradtape" or layout="pytorch"'
        )
    return theirs


def _fits(slot: Slot, shape: tuple[int, ...]) -> bool:
    return slot.variable is None or slot.convert is not None or slot.variable.shape == shape


def _names_there(target: Slot | Part) -> set[str]:
    if isinstance(target, Part) or not target.converts:
        return set()
    return {_last(name) for name in target.elsewhere}


def _last(name: str) -> str:
    return plain(name).rpartition("/")[2]
