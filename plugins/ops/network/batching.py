"""Batching rules of convolutions and pooling.

Batched images are more images. Batched filters are more filters; where both are batched, each
example is a group of channels of its own.
"""

from __future__ import annotations

from typing import Any

from ....core.errors import TraceError
from ....core.extend import F, Op, Shared, as_batched, row_of
from ..common.batching import merged, split_first, together

__all__ = ["conv_rule", "conv_transpose_rule", "pool_rule", "to_filters_rule", "to_images_rule"]


def pool_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ops that treat every image alike."""
    xs = together(xs, batched)
    return split_first(op.raw(*[merged(x, op) for x in xs], **params), xs[0], op)


def _channels(x: Any, op: Op, groups: int = 1) -> Any:
    """Return a batch of ``(..., groups * c)`` as ``(..., groups * batch * c)``."""
    _sized(x, op)
    size, *rest, c = x.shape
    x = F.reshape(x, shape=(size, *rest, groups, c // groups))
    x = F.moveaxis(x, source=(0,), destination=(-2,))
    return F.reshape(x, shape=(*rest, size * c))


def _examples(x: Any, size: int, groups: int = 1) -> Any:
    """Return ``(..., groups * batch * c)`` as a batch of ``(..., groups * c)``."""
    *rest, total = x.shape
    each = total // (size * groups)
    x = F.reshape(x, shape=(*rest, groups, size, each))
    x = F.moveaxis(x, source=(-2,), destination=(0,))
    return F.reshape(x, shape=(size, *rest, groups * each))


def _side_by_side(x: Any, op: Op) -> Any:
    """Return a batch of ``(..., c)`` as ``(..., batch * c)``, examples outermost."""
    _sized(x, op)
    size, *rest, c = x.shape
    return F.reshape(F.moveaxis(x, source=(0,), destination=(-2,)), shape=(*rest, size * c))


def _apart(x: Any, size: int) -> Any:
    """Undo :func:`_side_by_side`."""
    *rest, total = x.shape
    x = F.reshape(x, shape=(*rest, size, total // size))
    return F.moveaxis(x, source=(-2,), destination=(0,))


def _sized(x: Any, op: Op) -> None:
    if x.shape is None or None in x.shape:
        raise TraceError(f"{op.name}: vmap over filters needs known sizes, got {x.shape}")


def conv_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv``."""
    (x, w), (bx, bw) = xs, batched
    groups = params["groups"]
    if not bw:
        return split_first(op.raw(merged(x, op), w, **params), x, op)
    size = w.shape[0]
    if not bx:
        return _examples(op.raw(x, _channels(w, op, groups), **params), size, groups)
    params["groups"] = size * groups
    return _apart(op.raw(_side_by_side(x, op), _side_by_side(w, op), **params), size)


def to_images_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv_to_images``."""
    (g, w, like), (bg, bw, bl) = xs, batched
    if not bg and not bw:
        return Shared(op.raw(g, w, row_of(like), **params))
    if not bw:
        like = like if bl else as_batched(like, g)
        return split_first(op.raw(merged(g, op), w, merged(like, op), **params), g, op)
    g, like = (x if b else as_batched(x, w) for x, b in ((g, bg), (like, bl)))
    size, params["groups"] = w.shape[0], w.shape[0] * params["groups"]
    sides = [_side_by_side(x, op) for x in (g, w, like)]
    return _apart(op.raw(*sides, **params), size)


def to_filters_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv_to_filters``."""
    (g, x, like), (bg, bx, bl) = xs, batched
    if not bg and not bx:
        return Shared(op.raw(g, x, row_of(like), **params))
    beside = g if bg else x
    like = like if bl else as_batched(like, beside)
    groups, size = params["groups"], beside.shape[0]
    if not bx:
        wide = [_channels(g, op, groups), x, _channels(like, op, groups)]
        return _examples(op.raw(*wide, **params), size, groups)
    g = g if bg else as_batched(g, x)
    params["groups"] = size * groups
    return _apart(
        op.raw(_side_by_side(g, op), _side_by_side(x, op), _side_by_side(like, op), **params), size
    )


def conv_transpose_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Batching rule of ``conv_transpose``: with batched filters, the adjoint of a convolution."""
    (x, w), (bx, bw) = xs, batched
    if not bw:
        return split_first(op.raw(merged(x, op), w, **params), x, op)
    x = x if bx else as_batched(x, w)
    size = w.shape[0]
    row = (0,)
    one = op.raw(F.getitem(x, index=row), F.getitem(w, index=row), **params)
    like = F.zeros_like(as_batched(one, w))
    sides = [_side_by_side(part, op) for part in (x, w, like)]
    return _apart(F.conv_to_images(*sides, **params, groups=size), size)
