"""Pooling over one to three spatial axes, by windows or over whole images."""

from __future__ import annotations

from typing import Any, Unpack

from ...core.extend import as_tensor, in_precision, ops
from ...nn import avg_pool, max_pool
from ..base.configured import sizes_of
from ..base.losses import Rules
from ..base.precision import floating
from .spatial import Spatial

__all__ = [
    "AveragePooling1D",
    "AveragePooling2D",
    "AveragePooling3D",
    "GlobalAveragePooling1D",
    "GlobalAveragePooling2D",
    "GlobalAveragePooling3D",
    "GlobalMaxPooling1D",
    "GlobalMaxPooling2D",
    "GlobalMaxPooling3D",
    "MaxPooling1D",
    "MaxPooling2D",
    "MaxPooling3D",
]


class _Pooling(Spatial):
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
        x = floating(x) if pool is avg_pool else x
        return self.as_given(pool(x, self.pool_size, self.strides, self.padding))


class _MaxPooling(_Pooling):
    _member = """The largest element of each window of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {4}, 3)
    """
    pool = max_pool


class MaxPooling1D(_MaxPooling, saved_as="layers.MaxPooling1D"):
    rank = 1


class MaxPooling2D(_MaxPooling, saved_as="layers.MaxPooling2D"):
    rank = 2


class MaxPooling3D(_MaxPooling, saved_as="layers.MaxPooling3D"):
    rank = 3


class _AveragePooling(_Pooling):
    _member = """The mean of each window of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, {4}, 3)
    """
    pool = avg_pool


class AveragePooling1D(_AveragePooling, saved_as="layers.AveragePooling1D"):
    rank = 1


class AveragePooling2D(_AveragePooling, saved_as="layers.AveragePooling2D"):
    rank = 2


class AveragePooling3D(_AveragePooling, saved_as="layers.AveragePooling3D"):
    rank = 3


# -- of whole images -------------------------------------------------------------------------------


class _Global(Spatial):
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
        x = floating(x) if self.reduction == "mean" else x
        first = 1 if self.data_format == "channels_last" else 2
        axes = tuple(range(first, first + self.rank))
        return ops[self.reduction](x, axis=axes, keepdims=self.keepdims)


class _GlobalMax(_Global):
    _member = """The largest element of each channel of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, 3)
    """
    reduction = "max"


class GlobalMaxPooling1D(_GlobalMax, saved_as="layers.GlobalMaxPooling1D"):
    rank = 1


class GlobalMaxPooling2D(_GlobalMax, saved_as="layers.GlobalMaxPooling2D"):
    rank = 2


class GlobalMaxPooling3D(_GlobalMax, saved_as="layers.GlobalMaxPooling3D"):
    rank = 3


class _GlobalAverage(_Global):
    _member = """The mean of each channel of images ``(batch, {axes}, channels)``.

    Examples
    --------
    >>> gt.layers.{name}()(gt.ones((2, {8}, 3))).shape
    (2, 3)
    """
    reduction = "mean"


class GlobalAveragePooling1D(_GlobalAverage, saved_as="layers.GlobalAveragePooling1D"):
    rank = 1

    def call(self, x: Any, mask: Any = None) -> Any:
        """Pool images; ``mask`` of shape ``(batch, steps)`` is false for steps to leave out."""
        if mask is None:
            return super().call(x)
        self.images(x)
        axis = 1 if self.data_format == "channels_last" else 2
        x = floating(x)
        given, x = x, in_precision(x, "float32")
        seen = ops["expand_dims"](as_tensor(mask).astype("bool"), axis=3 - axis)
        total = ops["sum"](ops["where"](seen, x, 0.0), axis=axis, keepdims=self.keepdims)
        count = ops["sum"](seen.astype(x.dtype), axis=axis, keepdims=self.keepdims)
        return (total / ops["maximum"](count, 1.0)).astype(given.dtype)


class GlobalAveragePooling2D(_GlobalAverage, saved_as="layers.GlobalAveragePooling2D"):
    rank = 2


class GlobalAveragePooling3D(_GlobalAverage, saved_as="layers.GlobalAveragePooling3D"):
    rank = 3
