"""Masks on their way through a model: from layers that make them to layers that take them."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from collections.abc import Callable
from typing import Any

from ...core.extend import Tensor, flatten, ops
from .layer import Layer

__all__ = ["call_with_mask", "keep_mask", "mask_by_call", "mask_of", "takes_mask"]

#: The masks of tensors that came out of models, by ``id``, as long as the tensors live.
_KEPT: dict[int, tuple[weakref.ref[Any], Any]] = {}


def keep_mask(y: Any, mask: Any) -> None:
    """Note the mask of a tensor that comes out of a model."""
    if mask is not None and type(y) is Tensor:
        key = id(y)
        _KEPT[key] = weakref.ref(y, lambda _: _KEPT.pop(key, None)), mask


def mask_of(y: Any) -> Any:
    """Return the mask of what a model gave; ``None`` if it has none."""
    found = _KEPT.get(id(y))
    return None if found is None or found[0]() is not y else found[1]


def mask_by_call(model: Any, x: Any, mask: Any) -> Any:
    """Return the mask of a model's result, by a call; a list for several tensors."""
    y = model(x) if mask is None or not takes_mask(model) else model(x, mask=mask)
    masks = [mask_of(part) for part in flatten(y)]
    return masks[0] if len(masks) == 1 else masks


def call_with_mask(
    run: Callable[..., Any], layer: Any, args: Any, kwargs: dict[str, Any], mask: Any
) -> tuple[Any, list[Any]]:
    """Call a layer, with the mask of its inputs if it takes it.

    Parameters
    ----------
    run
        What does the call.
    layer
        The layer, or anything else that is called.
    args, kwargs
        What it is called with.
    mask
        The mask; a list of them for several inputs; None if there is none. By the names of
        arguments for a layer that has ``masked_arguments``.

    Returns
    -------
    tuple
        The result, and the masks of the tensors in it, as far as there are any.
    """
    wanted = getattr(layer, "masked_arguments", None)
    if wanted is not None:
        given = mask if isinstance(mask, dict) else {} if mask is None else {wanted[0]: mask}
        kwargs = {**{f"{name}_mask": m for name, m in given.items()}, **kwargs}
        mask = kwargs.get(f"{wanted[0]}_mask")
    elif mask is not None and "mask" not in kwargs and takes_mask(layer):
        kwargs = {**kwargs, "mask": mask}
    y = run(*args, **kwargs)
    if getattr(layer, "hands_masks", False):
        return y, [mask_of(part) for part in flatten(y)]
    mask = kwargs.get("mask", mask)
    if mask is None and not _makes_mask(layer):
        return y, []
    return y, [_mask_after(layer, args[0], mask)]


def takes_mask(layer: Any) -> bool:
    """Return whether calls of a layer take a mask of steps as ``mask=``."""
    own = getattr(layer, "__dict__", {}).get("__call__")
    if own is not None:  # of a file
        return "mask" in inspect.signature(own).parameters
    kind: Any = type(layer)  # that of a softmax is one of elements
    return isinstance(layer, Layer) and not layer.keeps_mask and _class_takes_mask(kind)


@functools.cache
def _class_takes_mask(kind: Any) -> bool:
    calls = (kind.__call__, getattr(kind, "call", None))  # the former may be an adapter's
    return any("mask" in inspect.signature(call).parameters for call in calls if call is not None)


def _mask_after(layer: Any, x: Any, mask: Any) -> Any:
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
    if getattr(layer, "batch", None) == "elementwise":  # an op: as for sums, padding of all is
        return functools.reduce(ops["logical_or"], [m for m in mask if m is not None])
    own = isinstance(layer, Layer) or _of_a_file(layer)
    given = isinstance(mask, list) and any(m is not None for m in mask)
    found = layer.compute_mask(x, mask) if own else None
    lost = mask is not None and (given or not isinstance(mask, list))
    taken = takes_mask(layer) or hasattr(layer, "masked_arguments")
    if lost and found is None and not taken:
        warnings.warn(
            f"layer {getattr(layer, 'name', layer)!r} ({type(layer).__name__}) takes no mask, so "
            "padding counts as any other step from here on",
            stacklevel=3,
        )
    return found


def _makes_mask(layer: Any) -> bool:
    """Return whether :meth:`Layer.compute_mask` is asked where there is no mask yet."""
    if not _of_a_file(layer):
        return bool(getattr(layer, "makes_mask", False))
    calls = [x.arguments[0] for x in layer.compute_mask.concrete_functions]
    return any(len(args) < 2 or args[1] is None for args in calls)


def _of_a_file(layer: Any) -> bool:
    """Return whether a layer of an unknown class came with what it does to masks."""
    return "compute_mask" in getattr(layer, "__dict__", ())
