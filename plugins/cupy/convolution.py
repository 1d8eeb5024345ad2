"""Convolutions on CuPy: the elements of each window are copied to a row of one matrix product.

The portable kernels compute a product for each position in a window, and between them a GPU waits
for Python. Where the rows would take too much memory, a part of the batch is processed at a time.
Groups of channels use the portable kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

from ...core.extend import registry
from ..ops.common.kernels import in_float32
from ..ops.network.windows import Windows

#: The maximum size of the rows at a time, in bytes.
_MOST = 2**28


def _portable(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = registry().op(name).kernel  # type: ignore[assignment]
    return found


def _windows(x: Any, w: Any, params: dict[str, Any]) -> Windows:
    return Windows(
        x.shape[1:-1], w.shape[:-2], params["strides"], params["padding"], params["dilations"]
    )


def _parts(x: Any, where: Windows) -> Iterator[slice]:
    """Give parts of a batch whose rows fit into the maximum memory."""
    each = prod(where.out) * prod(where.kernel) * x.shape[-1] * x.dtype.itemsize
    count = max(1, _MOST // max(1, each))
    return (slice(a, a + count) for a in range(0, x.shape[0], count))


def _rows(xp: Any, x: Any, where: Windows) -> Any:
    """Return a matrix with a row for each window on padded images."""
    rank = len(where.kernel)
    inside = x.strides[1 : 1 + rank]
    steps = [n * s for n, s in zip(inside, where.strides, strict=True)]
    places = [n * d for n, d in zip(inside, where.dilations, strict=True)]
    shape = (x.shape[0], *where.out, *where.kernel, x.shape[-1])
    strides = (x.strides[0], *steps, *places, x.strides[-1])
    seen = xp.lib.stride_tricks.as_strided(x, shape, strides)
    return seen.reshape(x.shape[0] * prod(where.out), prod(where.kernel) * x.shape[-1])


def _is_plain(groups: int, *shapes: tuple[int, ...]) -> bool:
    return groups == 1 and all(map(prod, shapes))


def _convolved(xp: Any, x: Any, w: Any, where: Windows) -> Any:
    filters = xp.reshape(w, (-1, w.shape[-1]))
    found = [
        xp.matmul(_rows(xp, x[part], where), filters).reshape(-1, *where.out, w.shape[-1])
        for part in _parts(x, where)
    ]
    return found[0] if len(found) == 1 else xp.concatenate(found)


def _conv(xp: Any, x: Any, w: Any, **params: Any) -> Any:
    where = _windows(x, w, params) if x.ndim == w.ndim == len(params["strides"]) + 2 else None
    plain = where is not None and _is_plain(params.get("groups", 1), x.shape, w.shape, where.out)
    if where is None or not plain or x.shape[-1] != w.shape[-2]:
        return _portable("conv")(xp, x, w, **params)
    return _convolved(xp, where.padded(xp, x), w, where)


def _conv_to_filters(xp: Any, g: Any, x: Any, like: Any, **params: Any) -> Any:
    where = _windows(x, like, params)
    if not _is_plain(params.get("groups", 1), g.shape, x.shape, like.shape):
        return _portable("conv_to_filters")(xp, g, x, like, **params)
    x, total = where.padded(xp, x), None
    for part in _parts(x, where):
        slopes = xp.reshape(g[part], (-1, g.shape[-1]))
        share = xp.matmul(_rows(xp, x[part], where).T, slopes)
        total = share if total is None else total + share
    return xp.reshape(total, like.shape)


def _conv_to_images(xp: Any, g: Any, w: Any, like: Any, **params: Any) -> Any:
    """Convolve gradients, spaced apart by the strides, with flipped filters."""
    if not _is_plain(params.get("groups", 1), g.shape, w.shape, like.shape):
        return _portable("conv_to_images")(xp, g, w, like, **params)
    where, window = _windows(like, w, params), w.shape[:-2]
    spans = [(k - 1) * d for k, d in zip(window, where.dilations, strict=True)]
    sizes = tuple(n + span for n, span in zip(where.sizes, spans, strict=True))
    into, of = [], []
    axes = zip(spans, where.pads, where.strides, sizes, g.shape[1:-1], strict=True)
    for span, (before, _), stride, size, count in axes:
        first = span - before  # the position of the first gradient, which may be outside
        a = max(0, -(first // stride)) if first < 0 else 0
        b = max(a, min(count, (size - 1 - first) // stride + 1))
        into.append(slice(first + a * stride, max(0, first + (b - 1) * stride + 1), stride))
        of.append(slice(a, b))
    apart = xp.zeros((g.shape[0], *sizes, g.shape[-1]), dtype=g.dtype)
    if all(part.stop > part.start for part in of):
        apart[(slice(None), *into, slice(None))] = g[(slice(None), *of, slice(None))]
    turned = w[(*(slice(None, None, -1) for _ in window), ...)].swapaxes(-1, -2)
    there = Windows(sizes, window, (1,) * len(window), "valid", where.dilations)
    return _convolved(xp, apart, turned, there)


KERNELS: dict[str, Callable[..., Any]] = {
    "conv": in_float32(_conv),
    "conv_to_filters": in_float32(_conv_to_filters),
    "conv_to_images": in_float32(_conv_to_images),
}
