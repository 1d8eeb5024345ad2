"""``tf.nest``: nested containers of lists, tuples and dictionaries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...core import extend
from .names import adapts, lookup

__all__ = ["assert_same_structure", "map_structure", "pack_sequence_as"]


@adapts("core.extend.pack_like")
def pack_sequence_as(
    structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False
) -> Any:
    """Return the leaves in a container with the given structure."""
    wanted = len(extend.flatten(structure))
    if len(flat_sequence) != wanted:
        raise ValueError(
            f"pack_sequence_as: got {len(flat_sequence)} leaves, but the structure has {wanted}"
        )
    return extend.pack_like(structure, list(flat_sequence))


@adapts("core.extend.map_structure")
def map_structure(func: Callable[..., Any], *structure: Any, **options: Any) -> Any:
    """Apply ``func`` to the leaves of one structure, or to corresponding leaves of several."""
    for other in structure[1:]:
        assert_same_structure(structure[0], other)
    leaves = zip(*map(extend.flatten, structure), strict=True)
    return extend.pack_like(structure[0], [func(*together) for together in leaves])


@adapts("core.extend.structure")
def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True) -> None:
    """Raise ``ValueError`` if the structures differ."""
    if extend.structure(nest1) != extend.structure(nest2):
        raise ValueError(
            f"the structures differ: {extend.structure(nest1)} and {extend.structure(nest2)}"
        )


__getattr__ = lookup(__name__)
