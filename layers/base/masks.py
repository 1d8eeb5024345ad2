"""Masks in models, passed from layers that create them to layers that use them."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ...core.extend import flatten, inlining, mask_of, ops, sizes_differ
from .layer import Layer
from .symbolic import returned

__all__ = [
    "along_steps",
    "call_with_mask",
    "in_rank",
    "mask_along",
    "mask_by_call",
    "masking_rows",
    "takes_mask",
]

#: The mask of the rows of a batch, in a model whose rows are the steps of another batch.
_ROWS: ContextVar[Any] = ContextVar("gradtape_layers_masked_rows", default=None)


@contextmanager
def masking_rows(mask: Any) -> Iterator[None]:
    """Run a block in which layers that take a mask and get none receive this mask of rows.

    Unlike a mask of steps, it stays when layers do not pass it on.
    """
    token = _ROWS.set(mask)
    try:
        yield
    finally:
        _ROWS.reset(token)


def along_steps(mask: Any, shape: Any) -> Any:
    """Return a mask of rows for inputs of a shape: ``(rows, steps)`` if they have steps."""
    if len(shape) < 3:
        return mask
    return ops["broadcast_to"](ops["expand_dims"](mask, axis=1), shape=shape[:2])


def _of_rows(layer: Any, x: Any) -> Any:
    """Return the mask of rows for a call of a layer on ``x``; ``None`` if there is none."""
    mask, shape = _ROWS.get(), getattr(getattr(x, "array", None), "shape", None)
    if mask is None or not shape or sizes_differ(shape[0], mask.shape[0]):
        return None
    models = getattr(layer, "hands_masks", False)  # the layers in them get it
    return along_steps(mask, shape) if takes_mask(layer) and not models else None


def mask_by_call(model: Any, x: Any, mask: Any) -> Any:
    """Call a model, and return the mask of the result; a list for several tensors."""
    with inlining():
        y = model(x) if mask is None or not takes_mask(model) else model(x, mask=mask)
    masks = [mask_of(part) for part in flatten(y)]
    return masks[0] if len(masks) == 1 else masks


def call_with_mask(
    run: Callable[..., Any], layer: Any, args: Any, kwargs: dict[str, Any], mask: Any
) -> tuple[Any, list[Any]]:
    """Call a layer, with the mask of its inputs if it takes one.

    Parameters
    ----------
    run
        The function that does the call.
    layer
        The layer, or another callable.
    args, kwargs
        Its arguments.
    mask
        The mask, a list of masks for several inputs, or None. For a layer with
        ``masked_arguments``, a dictionary by the names of these.

    Returns
    -------
    tuple
        The result, and the masks of the tensors in it; an empty list if there are none.
    """
    wanted = getattr(layer, "masked_arguments", None)
    if wanted is not None:
        given = mask if isinstance(mask, dict) else {} if mask is None else {wanted[0]: mask}
        kwargs = {**{f"{name}_mask": m for name, m in given.items()}, **kwargs}
        mask = kwargs.get(f"{wanted[0]}_mask")
    elif mask is not None and "mask" not in kwargs and takes_mask(layer):
        kwargs = {**kwargs, "mask": mask}
    elif mask is None and _ROWS.get() is not None and "mask" not in kwargs:
        rows = _of_rows(layer, args[0])
        if rows is not None:
            return returned(layer, run(*args, **kwargs, mask=rows)), []
    y = returned(layer, run(*args, **kwargs))
    if getattr(layer, "hands_masks", False):
        return y, [mask_of(part) for part in flatten(y)]
    mask = kwargs.get("mask", mask)
    if mask is None and not _makes_mask(layer):
        return y, []
    if mask is None and isinstance(args[0], (list, tuple)):
        mask = [None] * len(args[0])
    return y, [_mask_after(layer, args[0], mask)]


def mask_along(layer: Any, x: Any, mask: Any, axes: Any) -> Any:
    """Return the mask of a layer's inputs; warn if the layer computes along their steps.

    Parameters
    ----------
    layer
        A layer whose results depend on all elements along some axes.
    x
        Its inputs.
    mask
        Their mask, or None.
    axes
        The axis or axes.
    """
    if mask is None:
        return None
    given = axes if isinstance(axes, (list, tuple)) else [axes]
    rank = None if x.shape is None else len(x.shape)
    along = [axis if axis >= 0 or rank is None else axis + rank for axis in given]
    if any(0 < axis < mask.ndim for axis in along):
        warnings.warn(
            f"layer {layer.name!r} ({type(layer).__name__}) computes along the steps, and padding "
            "counts there like any other step",
            stacklevel=3,
        )
    return mask


def takes_mask(layer: Any) -> bool:
    """Return whether calls of a layer take a mask of steps as ``mask=``."""
    own = getattr(layer, "__dict__", {}).get("__call__")
    if own is not None:  # the layer comes from a file
        return "mask" in inspect.signature(own).parameters
    kind: Any = type(layer)  # keeps_mask: the mask of a Softmax is for elements, not for steps
    return isinstance(layer, Layer) and not layer.keeps_mask and _class_takes_mask(kind)


@functools.cache
def _class_takes_mask(kind: Any) -> bool:
    calls = (kind.__call__, getattr(kind, "call", None))  # __call__ may be an adapter's
    return any("mask" in inspect.signature(call).parameters for call in calls if call is not None)


def _mask_after(layer: Any, x: Any, mask: Any) -> Any:
    """Return the mask of a layer's result; warn if the layer ignores the mask of its inputs.

    Parameters
    ----------
    layer
        The layer, or another callable.
    x
        Its inputs.
    mask
        Their mask; a list of them for several inputs.
    """
    if getattr(layer, "batch", None) == "elementwise":  # an op: padding is where all inputs have it
        return functools.reduce(ops["logical_or"], [m for m in mask if m is not None])
    own = isinstance(layer, Layer) or _of_a_file(layer)
    given = isinstance(mask, list) and any(m is not None for m in mask)
    found = _computed(layer, x, mask) if own else None
    lost = mask is not None and (given or not isinstance(mask, list))
    taken = takes_mask(layer) or hasattr(layer, "masked_arguments")
    if lost and found is None and not taken:
        warnings.warn(
            f"layer {getattr(layer, 'name', layer)!r} ({type(layer).__name__}) takes no mask, so "
            "padding counts like any other step from here on",
            stacklevel=3,
        )
    return found


def _computed(layer: Any, x: Any, mask: Any) -> Any:
    """Return what ``compute_mask`` returns; None if it cannot do without a mask."""
    try:
        return layer.compute_mask(x, mask)
    except (TypeError, AttributeError) as error:
        absent = mask is None or (isinstance(mask, list) and all(m is None for m in mask))
        if absent and "NoneType" in str(error):  # it passes masks on, but makes none
            return None
        raise


def _makes_mask(layer: Any) -> bool:
    """Return whether a layer may create a mask for inputs that have none."""
    if not _of_a_file(layer):
        return getattr(layer, "_gradtape_makes_mask", False)
    calls = [x.arguments[0] for x in layer.compute_mask.concrete_functions]
    return any(all(m is None for m in flatten(args[1:])) for args in calls)


def _of_a_file(layer: Any) -> bool:
    """Return whether a layer comes from a file that holds its ``compute_mask``."""
    return "compute_mask" in getattr(layer, "__dict__", ())


def in_rank(value: Any, wanted: Sequence[Any]) -> Any:
    """Return a tensor with or without a last axis of size 1, if it has the shape only then."""
    shape = value.array.shape
    if shape is None or any(map(sizes_differ, shape, wanted)):
        return value
    if len(shape) == len(wanted) - 1 and wanted[-1] == 1:
        return ops["expand_dims"](value, axis=-1)
    if len(shape) == len(wanted) + 1 and shape[-1] == 1:
        return ops["squeeze"](value, axis=-1)
    return value
