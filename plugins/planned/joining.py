"""Joins: what is put side by side is computed there, where that can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.extend import Symbol
from .steps import Kind, Step, bytes_of, shape_of

if TYPE_CHECKING:
    from .emission import Emission

__all__ = ["placed_parts", "write_parts"]

#: Up to how many bytes a result has memory of its own, from before its parts are computed on.
_MOST = 2**18


def placed_parts(emission: Emission, items: Iterable[Any]) -> dict[Symbol, list[str]]:
    """Let parts of results be computed where they are to be; return the names of all such parts.

    Parameters
    ----------
    emission
        What is about to be written.
    items
        The groups and steps that ufuncs run: they write to arrays of any strides.
    """
    steps = [step for x in items for step in ([x] if isinstance(x, Step) else x.steps)]
    made = {step.out for step in steps if step.kind is Kind.ELEMENTWISE}
    found = {}
    for step in steps:
        if step.kind is not Kind.JOIN or step.out in emission.fresh or bytes_of(step.out) > _MOST:
            continue
        free = {x for x, n in Counter(step.inputs).items() if n == 1 and x in made}
        free -= emission.fresh | set(emission.names)
        if free:
            found[step.out] = _parts(emission, step, free)
    return found


def _parts(emission: Emission, step: Step, free: set[Symbol]) -> list[str]:
    """Return the names of the parts of a result, which are those of what is ``free``."""
    out, axis = step.out, step.params["axis"]
    number = None
    if out not in emission.names:
        slot = emission.arena.slot(bytes_of(out))
        number = emission.arena.buffer(slot, shape_of(out), np.dtype(out.dtype))
        emission.names[out] = emission.array(number)
    parts, end = [], 0
    for x in step.inputs:
        start, end = end, end + shape_of(x)[axis]
        index = (*[slice(None)] * axis, slice(start, end))
        if number is None:  # a row of a stack, which is another one at each step
            part = f"{emission.name(out)}_{start}"
            emission.lines.append(f"{part} = {emission.name(out)}[{':, ' * axis}{start}:{end}]")
        else:
            part = emission.array(emission.arena.view(number, itemgetter(index)))
        if x in free:
            emission.names[x] = part
        parts.append(part)
    return parts


def write_parts(emission: Emission, step: Step, placed: Mapping[Symbol, list[str]]) -> bool:
    """Copy the parts of a result that are elsewhere; return False if none of them has its place.

    Parameters
    ----------
    emission
        What is being written.
    step
        What puts them side by side.
    placed
        What :func:`placed_parts` returned.
    """
    parts = placed.get(step.out)
    if parts is None:
        return False
    for x, part in zip(step.inputs, parts, strict=True):
        if emission.name(x) != part:
            emission.lines.append(f"{part}[...] = {emission.name(x)}")
    return True
