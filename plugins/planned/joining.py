"""Joins: the parts of a joined array are computed in place where possible."""

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

#: The maximum size in bytes of a result whose memory exists before its parts are computed.
_MOST = 2**18


def placed_parts(emission: Emission, items: Iterable[Any]) -> dict[Symbol, list[str]]:
    """Make parts of results be computed in place; return the names of the parts.

    Parameters
    ----------
    emission
        The emission, before the items are written.
    items
        The groups and steps that run as ufuncs, which write to arrays of any strides.
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
    """Return the names of a result's parts; they become the names of the ``free`` values."""
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
        if number is None:  # a row of a stack, different at each step
            part = f"{emission.name(out)}_{start}"
            emission.lines.append(f"{part} = {emission.name(out)}[{':, ' * axis}{start}:{end}]")
        else:
            part = emission.array(emission.arena.view(number, itemgetter(index)))
        if x in free:
            emission.names[x] = part
        parts.append(part)
    return parts


def write_parts(emission: Emission, step: Step, placed: Mapping[Symbol, list[str]]) -> bool:
    """Copy the parts of a result that are elsewhere; return False if it has no places for them.

    Parameters
    ----------
    emission
        The emission that is being written.
    step
        The step that joins the parts.
    placed
        The result of :func:`placed_parts`.
    """
    parts = placed.get(step.out)
    if parts is None:
        return False
    for x, part in zip(step.inputs, parts, strict=True):
        if emission.name(x) != part:
            emission.lines.append(f"{part}[...] = {emission.name(x)}")
    return True
