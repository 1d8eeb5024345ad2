"""Windows on spatial axes, and examples of a batch as channels: helpers of convolutions.

The windows have positions, and settings with which users describe them. Batched images are more
images, and batched filters are more filters. Where both are batched, each example becomes a group
of channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from ....core.extend import F, Op, as_size, as_tensor, exact_quotient, is_open, largest, rank_of
from ..common.kernels import put

Sizes = tuple[int, ...]
Padding = str | tuple[tuple[int, int], ...]


class Windows:
    """The positions of windows on spatial axes of given sizes.

    Attributes
    ----------
    out
        The number of windows along each axis.
    pads
        The number of padding elements before and after each axis.
    """

    __slots__ = ("dilations", "kernel", "out", "pads", "sizes", "strides")

    def __init__(
        self, sizes: Sizes, kernel: Sizes, strides: Sizes, padding: Padding, dilations: Sizes
    ) -> None:
        self.sizes, self.kernel = sizes, kernel
        self.strides, self.dilations = strides, dilations
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
        self.pads = _pads(sizes, spans, strides, padding)
        self.out = tuple(
            max((n + a + b - span) // s + 1, 0)
            for n, (a, b), span, s in zip(sizes, self.pads, spans, strides, strict=True)
        )

    def parts(self) -> Iterator[tuple[Sizes, tuple[slice, ...]]]:
        """Give each position in a window, and its slices of the padded array for all windows."""
        for place in product(*map(range, self.kernel)):
            starts = [i * d for i, d in zip(place, self.dilations, strict=True)]
            yield (
                place,
                tuple(
                    slice(start, start + (n - 1) * s + 1 if n else start, s)
                    for start, n, s in zip(starts, self.out, self.strides, strict=True)
                ),
            )

    def padded(self, xp: Any, x: Any, value: float = 0.0) -> Any:
        """Return ``x`` (batch, *sizes, ...) with the padding that its windows need."""
        if not any(map(any, self.pads)):
            return x
        rest = x.shape[1 + len(self.sizes) :]
        padded = xp.full((x.shape[0], *self.padded_sizes, *rest), value, dtype=x.dtype)
        return put(padded, self.inside, x)

    def view_layout(self, shape: Sizes, strides: Sizes) -> tuple[Sizes, Sizes]:
        """Return the layout of a view of all windows: ``(images, *windows, *places, channels)``.

        Parameters
        ----------
        shape, strides
            Those of padded images; strides in any unit.
        """
        inner = strides[1:-1]
        steps = [n * s for n, s in zip(inner, self.strides, strict=True)]
        apart = [n * d for n, d in zip(inner, self.dilations, strict=True)]
        viewed = (shape[0], *self.out, *self.kernel, shape[-1])
        return viewed, (strides[0], *steps, *apart, strides[-1])

    @property
    def padded_sizes(self) -> Sizes:
        """The spatial sizes with padding."""
        return tuple(n + a + b for n, (a, b) in zip(self.sizes, self.pads, strict=True))

    @property
    def inside(self) -> tuple[Any, ...]:
        """The index that removes the padding."""
        cuts = (slice(a, a + n) for n, (a, _) in zip(self.sizes, self.pads, strict=True))
        return (slice(None), *cuts, ...)


def _pads(
    sizes: Sequence[int], spans: Sequence[int], strides: Sequence[int], padding: Padding
) -> tuple[tuple[int, int], ...]:
    if padding == "valid":
        return ((0, 0),) * len(sizes)
    if not isinstance(padding, str):
        return padding
    pads = []
    for n, span, s in zip(sizes, spans, strides, strict=True):
        # as many windows as strides fit into the axis; an odd element goes to the end
        missing = max((-(-n // s) - 1) * s + span - n, 0)
        pads.append((missing // 2, missing - missing // 2))
    return tuple(pads)


def window_counts(sizes: Sequence[Any], kernel: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Return the number of windows along each axis, None where it is unknown."""
    result: list[Any] = []
    padding = settings["padding"]
    for i, (n, k) in enumerate(zip(sizes, kernel, strict=True)):
        stride, dilation = settings["strides"][i], settings["dilations"][i]
        if n is None or (k is None and padding != "same"):
            result.append(None)
        elif padding == "same":
            result.append((n + stride - 1) // stride)
        else:
            around = 0 if padding == "valid" else sum(padding[i])
            last = exact_quotient(n + around - (k - 1) * dilation - 1, stride)
            result.append(largest(0, last + 1))
    return tuple(result)


# -- what users give -------------------------------------------------------------------------------


def per_axis(value: Any, count: int, what: str, name: str) -> Sizes:
    """Return one positive number per spatial axis, from one number or a sequence of them."""
    try:
        given = tuple(as_size(n, name) for n in (value if np.ndim(value) else [value]))
    except TypeError:
        raise TypeError(f"{name}: {what} must be integers, got {value!r}") from None
    given = given * count if len(given) == 1 else given
    if len(given) != count or any((n < 1) is True for n in given):
        raise ValueError(f"{name}: {what} must be {count} positive integers, got {value!r}")
    return given


def as_padding(padding: Any, count: int, name: str) -> Padding:
    """Return a user's padding: a name, or a pair of widths per spatial axis."""
    if isinstance(padding, str):
        if padding.lower() in ("same", "valid"):
            return padding.lower()
    else:
        given = np.asarray(padding)
        integers = given.dtype.kind in "iu" or any(map(is_open, given.flat))
        if integers and given.shape in ((), (2,), (count, 2)):
            pairs = np.broadcast_to(given, (count, 2))
            widths = tuple((as_size(a, name), as_size(b, name)) for a, b in pairs)
            if not any((n < 0) is True for pair in widths for n in pair):
                return widths
    raise ValueError(
        f"{name}: padding must be 'same', 'valid', a number, or {count} pairs (before, after), "
        f"got {padding!r}"
    )


_AXES = {3: "(batch, size, channels)", 4: "(batch, height, width, channels)"}


def of_rank(x: Any, rank: int, name: str) -> Any:
    """Return images as a tensor; raise if they have a different number of axes."""
    x = as_tensor(x)
    if x.shape is not None and len(x.shape) != rank:
        raise ValueError(f"{name}: images must be {_AXES[rank]}, got shape {x.shape}")
    return x


# -- examples as channels --------------------------------------------------------------------------


def as_channels(x: Any, op: Op, groups: int = 1) -> Any:
    """Return a batch of ``(..., groups * c)`` as ``(..., groups * batch * c)``."""
    rank_of(x, op)
    size, *rest, c = x.shape
    x = F.reshape(x, shape=(size, *rest, groups, exact_quotient(c, groups)))
    x = F.moveaxis(x, source=(0,), destination=(-2,))
    return F.reshape(x, shape=(*rest, size * c))


def as_examples(x: Any, size: int, groups: int = 1) -> Any:
    """Return ``(..., groups * batch * c)`` as a batch of ``(..., groups * c)``."""
    *rest, total = x.shape
    each = exact_quotient(total, size * groups)
    x = F.reshape(x, shape=(*rest, groups, size, each))
    x = F.moveaxis(x, source=(-2,), destination=(0,))
    return F.reshape(x, shape=(size, *rest, groups * each))


def side_by_side(x: Any, op: Op) -> Any:
    """Return a batch of ``(..., c)`` as ``(..., batch * c)``, examples outermost."""
    rank_of(x, op)
    size, *rest, c = x.shape
    return F.reshape(F.moveaxis(x, source=(0,), destination=(-2,)), shape=(*rest, size * c))


def undo_side_by_side(x: Any, size: int) -> Any:
    """Undo :func:`side_by_side`."""
    *rest, total = x.shape
    x = F.reshape(x, shape=(*rest, size, exact_quotient(total, size)))
    return F.moveaxis(x, source=(-2,), destination=(0,))
