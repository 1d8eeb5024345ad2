"""Layers that change the size of images: pooling, padding, cropping, upsampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ...core.extend import as_tensor, in_precision, ops
from ...nn import avg_pool, max_pool
from ..base.calls import in_floats
from ..base.configured import sizes_of
from ..base.weights import Rules
from .spatial import Spatial

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "Cropping1D",
    "Cropping2D",
    "Cropping3D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
    "UpSampling1D",
    "UpSampling2D",
    "UpSampling3D",
    "ZeroPadding1D",
    "ZeroPadding2D",
    "ZeroPadding3D",
]


class _Pooling(Spatial):
    _gradtape_internal = "pool"

    _family = """
    Parameters
    ----------
    pool_size
        The size of the windows, 2 by default: a number, or one for each spatial axis.
    strides
        The distance between windows; their size by default.
    padding
        ``"valid"``, the default: windows lie within the input. ``"same"``: as many windows as
        strides fit into an axis; elements outside do not count.

    Raises
    ------
    ValueError
        If a setting is out of range. At the call, if the input has a different number of axes.
    """

    pool: Any

    def __init__(
        self,
        pool_size: Any = 2,
        strides: Any = None,
        padding: str = "valid",
        data_format: str | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.pool_size = sizes_of(self, "pool_size", pool_size, self.rank)
        given = self.pool_size if strides is None else strides
        self.strides = sizes_of(self, "strides", given, self.rank)
        if str(padding).lower() not in ("valid", "same"):
            raise ValueError(
                f"{type(self).__name__}: padding must be 'valid' or 'same', got {padding!r}"
            )
        self.padding = str(padding).lower()
        self.set_data_format(data_format)

    def call(self, x: Any) -> Any:
        """Pool images."""
        pool, x = type(self).pool, self.images(x)
        if self.padding == "valid":
            self.wide_enough(x, self.pool_size)
        return self.as_given(pool(x, self.pool_size, self.strides, self.padding))


class _MaxPooling(_Pooling):
    takes_integers = True
    _member = """The largest element of each window of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {4}, 3)
    """
    pool = max_pool


class MaxPooling1D(_MaxPooling, rank=1, saved_as="layers.MaxPooling1D"): ...


class MaxPooling2D(_MaxPooling, rank=2, saved_as="layers.MaxPooling2D"): ...


class MaxPooling3D(_MaxPooling, rank=3, saved_as="layers.MaxPooling3D"): ...


class _AveragePooling(_Pooling):
    _member = """The mean of each window of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {4}, 3)
    """
    pool = avg_pool


class AveragePooling1D(_AveragePooling, rank=1, saved_as="layers.AveragePooling1D"): ...


class AveragePooling2D(_AveragePooling, rank=2, saved_as="layers.AveragePooling2D"): ...


class AveragePooling3D(_AveragePooling, rank=3, saved_as="layers.AveragePooling3D"): ...


# -- pooling of whole images -----------------------------------------------------------------------


class _Global(Spatial):
    _gradtape_internal = "reduction"

    _family = """
    Parameters
    ----------
    keepdims
        Whether to keep the spatial axes with size 1; false by default.

    Raises
    ------
    ValueError
        If ``data_format`` is unknown. At the call, if the input has a different number of axes.
    """

    reduction: str

    def __init__(
        self,
        data_format: str | None = None,
        keepdims: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.set_data_format(data_format)
        self.keepdims = bool(keepdims)

    def call(self, x: Any) -> Any:
        """Pool images."""
        self.images(x)
        first = 1 if self.data_format == "channels_last" else 2
        axes = tuple(range(first, first + self.rank))
        return ops[self.reduction](x, axis=axes, keepdims=self.keepdims)


class _GlobalMax(_Global):
    takes_integers = True
    _member = """The largest element of each channel of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, 3)
    """
    reduction = "max"


class GlobalMaxPooling1D(_GlobalMax, rank=1, saved_as="layers.GlobalMaxPooling1D"): ...


class GlobalMaxPooling2D(_GlobalMax, rank=2, saved_as="layers.GlobalMaxPooling2D"): ...


class GlobalMaxPooling3D(_GlobalMax, rank=3, saved_as="layers.GlobalMaxPooling3D"): ...


class _GlobalAverage(_Global):
    _member = """The mean of each channel of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, 3)
    """
    reduction = "mean"


class GlobalAveragePooling1D(_GlobalAverage, rank=1, saved_as="layers.GlobalAveragePooling1D"):
    def call(self, x: Any, mask: Any = None) -> Any:
        """Pool images; ``mask`` of shape ``(batch, steps)`` is false for steps to leave out."""
        if mask is None:
            return super().call(x)
        self.images(x)
        axis = 1 if self.data_format == "channels_last" else 2
        given, x = x, in_precision(x, "float32")
        seen = ops["expand_dims"](as_tensor(mask).astype("bool"), axis=3 - axis)
        total = ops["sum"](ops["where"](seen, x, 0.0), axis=axis, keepdims=self.keepdims)
        count = ops["sum"](seen.astype(x.dtype), axis=axis, keepdims=self.keepdims)
        return (total / ops["maximum"](count, 1.0)).astype(given.dtype)


class GlobalAveragePooling2D(_GlobalAverage, rank=2, saved_as="layers.GlobalAveragePooling2D"): ...


class GlobalAveragePooling3D(_GlobalAverage, rank=3, saved_as="layers.GlobalAveragePooling3D"): ...


# -- padding, cropping and upsampling -------------------------------------------------------------


class _Edged(Spatial):
    """A layer with a width before and after each spatial axis."""

    _gradtape_internal = "widths"

    takes_integers = True

    def widths(self, name: str, value: Any) -> tuple[tuple[int, int], ...]:
        """Return a pair ``(before, after)`` for each spatial axis.

        Raises
        ------
        ValueError
            If they are not integers from 0, or not as many as there are axes.
        """
        given = list(value) if isinstance(value, Sequence) else [value] * self.rank
        if self.rank == 1 and len(given) == 2:
            given = [given]
        pairs = [tuple(part) if isinstance(part, Sequence) else (part, part) for part in given]
        right = len(pairs) == self.rank and all(len(pair) == 2 for pair in pairs)
        if not right or not all(hasattr(n, "__index__") and n >= 0 for p in pairs for n in p):
            axes = "(before, after)" if self.rank == 1 else f"{self.rank} pairs (before, after)"
            raise ValueError(
                f"{type(self).__name__}: {name} must be a number of at least 0, one for each "
                f"spatial axis, or {axes}, got {value!r}"
            )
        return tuple((int(before), int(after)) for before, after in pairs)


class _ZeroPadding(_Edged):
    _member = """Put zeros around images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {10}, 3)
    """
    _family = """
    Parameters
    ----------
    padding
        The number of zeros, 1 by default: a number, one for each spatial axis, or a pair
        ``(before, after)`` for each.

    Raises
    ------
    ValueError
        If a width is negative. At the call, if the input has a different number of axes.
    """

    def __init__(
        self,
        padding: Any = 1,
        data_format: str | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.padding = self.widths("padding", padding)
        self.set_data_format(data_format)

    def call(self, x: Any) -> Any:
        """Put zeros around images."""
        return self.as_given(ops["pad"](self.images(x), pad_width=((0, 0), *self.padding, (0, 0))))


class _Cropping(_Edged):
    _member = """Cut off the edges of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {6}, 3)
    """
    _family = """
    Parameters
    ----------
    cropping
        The number of elements to cut off: a number, one for each spatial axis, or a pair
        ``(before, after)`` for each; 1 by default.

    Raises
    ------
    ValueError
        If a width is negative. At the call, if nothing is left of an axis, or the input has a
        different number of axes.
    """

    def __init__(
        self,
        cropping: Any = 1,
        data_format: str | None = None,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.cropping = self.widths("cropping", cropping)
        self.set_data_format(data_format)

    def call(self, x: Any) -> Any:
        """Cut off the edges of images."""
        x = self.images(x)
        for n, (before, after) in zip((x.array.shape or ())[1:-1], self.cropping):
            if (n is not None) and (n <= before + after) is True:
                raise ValueError(
                    f"layer {self.name!r} ({type(self).__name__}): nothing is left of an axis of "
                    f"{n} when {before} and {after} are cut off"
                )
        cuts = (slice(before, -after if after else None) for before, after in self.cropping)
        return self.as_given(x[(slice(None), *cuts, slice(None))])


class _UpSampling(Spatial):
    takes_integers = True
    _member = """Enlarge images ``(batch, {axes}, channels)`` by whole numbers.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {16}, 3)
    """
    _family = """
    Parameters
    ----------
    size
        The factor, 2 by default: a number, or one for each spatial axis.
    interpolation
        ``"nearest"``, the default: each element is repeated. ``"bilinear"``: linear between the
        elements' centres, along each axis.

    Raises
    ------
    ValueError
        If a setting is out of its range; at the call, if the input has another number of axes.
    """

    def __init__(
        self,
        size: Any = 2,
        data_format: str | None = None,
        interpolation: str = "nearest",
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.size = sizes_of(self, "size", size, self.rank)
        self.set_data_format(data_format)
        if interpolation not in ("nearest", "bilinear"):
            raise ValueError(
                f"{type(self).__name__}: interpolation must be 'nearest' or 'bilinear', got "
                f"{interpolation!r}"
            )
        self.interpolation = interpolation

    def call(self, x: Any) -> Any:
        """Enlarge images."""
        x = self.images(x)
        self.known_rank(x)
        for axis, factor in enumerate(self.size, 1):
            if factor > 1 and self.interpolation == "nearest":
                x = ops["repeat"](x, repeats=factor, axis=axis)
            elif factor > 1:
                x = _linear(in_floats(self, x), axis, factor)
        return self.as_given(x)


def _linear(x: Any, axis: int, factor: int) -> Any:
    """Enlarge an axis by linear interpolation between the centres of its elements."""
    at: tuple[Any, ...] = (slice(None),) * axis
    first, last = x[(*at, slice(None, 1))], x[(*at, slice(-1, None))]
    before = ops["concatenate"](first, x[(*at, slice(None, -1))], axis=axis)
    after = ops["concatenate"](x[(*at, slice(1, None))], last, axis=axis)
    rows = []
    for i in range(factor):
        place = (i + 0.5) / factor - 0.5  # of the new centre, from that of the element
        beside = before if place < 0 else after
        rows.append(x * (1.0 - abs(place)) + beside * abs(place))
    shape = x.array.shape
    larger = (*shape[:axis], shape[axis] * factor, *shape[axis + 1 :])
    return ops["reshape"](ops["stack"](*rows, axis=axis + 1), shape=larger)


class ZeroPadding1D(_ZeroPadding, rank=1, saved_as="layers.ZeroPadding1D"): ...


class ZeroPadding2D(_ZeroPadding, rank=2, saved_as="layers.ZeroPadding2D"): ...


class ZeroPadding3D(_ZeroPadding, rank=3, saved_as="layers.ZeroPadding3D"): ...


class Cropping1D(_Cropping, rank=1, saved_as="layers.Cropping1D"): ...


class Cropping2D(_Cropping, rank=2, saved_as="layers.Cropping2D"): ...


class Cropping3D(_Cropping, rank=3, saved_as="layers.Cropping3D"): ...


class UpSampling1D(_UpSampling, rank=1, saved_as="layers.UpSampling1D"): ...


class UpSampling2D(_UpSampling, rank=2, saved_as="layers.UpSampling2D"): ...


class UpSampling3D(_UpSampling, rank=3, saved_as="layers.UpSampling3D"): ...
