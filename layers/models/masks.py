"""Masks on their way through a model: from layers that make them to layers that take them."""

from __future__ import annotations

import functools
import inspect
import warnings
from typing import Any

from ..base.layer import Layer

__all__ = ["mask_after", "takes_mask"]


def takes_mask(layer: Any) -> bool:
    """Return whether calls of a layer take a mask of steps as ``mask=``."""
    kind: Any = type(layer)  # that of a softmax is one of elements
    return isinstance(layer, Layer) and not layer.keeps_mask and _class_takes_mask(kind)


@functools.cache
def _class_takes_mask(kind: Any) -> bool:
    return "mask" in inspect.signature(kind.__call__).parameters


def mask_after(layer: Any, x: Any, mask: Any) -> Any:
    """Return the mask of what a layer gave, and warn where one ends that it did not take.

    Parameters
    ----------
    layer
        The layer, or anything else that is called.
    x
        Its inputs.
    mask
        Their mask; a list of them for several inputs.
    """
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
