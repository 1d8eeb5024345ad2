"""The batching rule of ``convolve``."""

from __future__ import annotations

from typing import Any

from ....core.errors import TraceError
from ....core.extend import F, Op

__all__ = ["convolve_rule"]


def convolve_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``convolve``: a convolution of images of one line."""
    (x, v), (bx, bv) = xs, batched
    taps = (v.shape or (None,))[-1]
    if taps is None:
        raise TraceError("convolve: vmap needs to know the sizes of the vectors")
    v = F.flip(v, axis=-1)
    around = taps - 1 if params["whole"] else 0
    groups = 1
    if bx and bv:
        groups = x.shape[0]
        if not groups:  # unknown, or none at all
            return _shifted_products(x, v, taps, around)
        x, v = (F.swapaxes(part, axis1=0, axis2=1) for part in (x, v))
        x, v = F.expand_dims(x, axis=0), F.expand_dims(v, axis=1)
    elif bx:
        x, v = F.expand_dims(x, axis=2), F.expand_dims(v, axis=(1, 2))
    else:
        x, v = F.expand_dims(x, axis=(0, 2)), F.expand_dims(F.swapaxes(v, axis1=0, axis2=1), axis=1)
    result = F.conv(x, v, strides=(1,), padding=((around, around),), dilations=(1,), groups=groups)
    if bv:
        return F.swapaxes(F.squeeze(result, axis=0), axis1=0, axis2=1)
    return F.squeeze(result, axis=2)


def _shifted_products(x: Any, v: Any, taps: int, around: int) -> Any:
    """Return the convolutions of the rows of two matrices, tap by tap."""
    x = F.pad(x, pad_width=((0, 0), (around, around)))
    total: Any = None
    for tap in range(taps):
        stop = tap + 1 - taps or None
        product = F.getitem(x, index=(("slice", None, None, None), ("slice", tap, stop, None)))
        product = product * F.getitem(
            v, index=(("slice", None, None, None), ("slice", tap, tap + 1, None))
        )
        total = product if total is None else total + product
    return total
