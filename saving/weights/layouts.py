"""Which framework's names and axes arrays have, as far as the model and the file say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core.extend import Module
from ..errors import printable
from .arrays import Arrays
from .mapping import Renamed
from .names import Names, Part, Slot, plain

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
