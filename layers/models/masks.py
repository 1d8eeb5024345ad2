"""Masks on their way through a model: from layers that make them to layers that take them."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from typing import Any

from ...core.extend import Tensor, flatten
from ..base.layer import Layer

__all__ = ["hand_mask", "keep_mask", "mask_after", "mask_of", "may_mask"]

#: The masks of tensors that go into and out of models, by ``id``, as long as the tensors live.
_KEPT: dict[int, tuple[weakref.ref[Any], Any]] = {}


def keep_mask(y: Any, mask: Any) -> None:
    """Note the mask of a tensor that goes into a model, or comes out of one."""
    if mask is not None and type(y) is Tensor:
        key = id(y)
        _KEPT[key] = weakref.ref(y, lambda _: _KEPT.pop(key, None)), mask


def mask_of(y: Any) -> Any:
    """Return the mask of what a model gave; ``None`` if it has none."""
    found = _KEPT.get(id(y))
    return None if found is None or found[0]() is not y else found[1]


def hand_mask(layer: Any, x: Any, mask: Any) -> dict[str, Any]:
    """Return the arguments that tell a layer of a mask; a model learns it from its inputs.

    Parameters
    ----------
    layer
        The layer, or anything else that is called.
    x
        Its inputs: a tensor, or several in a list.
    mask
        Their mask; a list of them for several inputs.
    """
    if mask is None:
        return {}
    if getattr(layer, "hands_masks", False):
        several = isinstance(mask, list)
        for part, own in zip(flatten(x) if several else [x], mask if several else [mask]):
            keep_mask(part, own)
        return {}
    return {"mask": mask} if takes_mask(layer) else {}


def may_mask(layer: Any) -> bool:
    """Return whether what a layer gives may have a mask though its inputs have none."""
    return getattr(layer, "makes_mask", False) or getattr(layer, "hands_masks", False)


def takes_mask(layer: Any) -> bool:
    """Return whether calls of a layer take a mask of steps as ``mask=``."""
    kind: Any = type(layer)  # that of a softmax is one of elements
    return isinstance(layer, Layer) and not layer.keeps_mask and _class_takes_mask(kind)


@functools.cache
def _class_takes_mask(kind: Any) -> bool:
    return "mask" in inspect.signature(kind.__call__).parameters


def mask_after(layer: Any, x: Any, mask: Any, y: Any) -> Any:
    """Return the mask of what a layer gave, and warn where one ends that it did not take.

    Parameters
    ----------
    layer
        The layer, or anything else that is called.
    x
        Its inputs.
    mask
        Their mask; a list of them for several inputs.
    y
        What it gave.
    """
    if getattr(layer, "hands_masks", False):
        return mask_of(y)
    own = isinstance(layer, Layer)
    given = isinstance(mask, list) and any(m is not None for m in mask)
    found = layer.compute_mask(x, mask) if own else None
    lost = mask is not None and (given or not isinstance(mask, list))
    if lost and found is None and not takes_mask(layer):
        warnings.warn(
            f"layer {getattr(layer, 'name', layer)!r} ({type(layer).__name__}) takes no mask, so "
            "padding counts as any other step from here on",
            stacklevel=3,
        )
    return found
