"""Layers that change only the shape of their input."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any, Unpack

from ...core.extend import exact_quotient, ops
from ..base.configured import Configured, positive
from ..base.losses import Rules

__all__ = ["Permute", "RepeatVector", "Reshape"]


class Reshape(Configured, saved_as="layers.Reshape"):
    """Change the shape of each example.

    Parameters
    ----------
    target_shape
        The new shape without the batch. One size may be -1: it follows from the others.

    Raises
    ------
    ValueError
        If a size is not an integer, or several are -1. At the call, if the elements do not fit.

    Examples
    --------
    >>> gt.layers.Reshape((3, 4))(gt.ones((2, 12))).shape
    (2, 3, 4)
    >>> gt.layers.Reshape((-1, 2))(gt.ones((2, 3, 4))).shape
    (2, 6, 2)
    """

    takes_integers = True

    def __init__(
        self,
        target_shape: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        given = target_shape if isinstance(target_shape, Sequence) else (target_shape,)
        sizes = tuple(operator.index(n) for n in given if hasattr(n, "__index__"))
        if len(sizes) != len(given) or sizes.count(-1) > 1 or min(sizes, default=0) < -1:
            raise ValueError(
                f"Reshape: target_shape must be sizes without the batch, at most one of them -1, "
                f"got {target_shape!r}"
            )
        self.target_shape = sizes

    def call(self, x: Any) -> Any:
        """Reshape ``x``."""
        shape = x.array.shape
        if not shape:
            raise ValueError(
                f"layer {self.name!r} (Reshape): its input needs a batch axis, got shape {shape}"
            )
        sizes: list[Any] = list(self.target_shape)
        if -1 in sizes and None not in shape[1:]:  # without the batch: any size fits an empty one
            rest = prod(n for n in sizes if n != -1)
            sizes[sizes.index(-1)] = exact_quotient(prod(shape[1:]), rest) if rest else 0
        return ops["reshape"](x, shape=(shape[0], *sizes))


class Permute(Configured, saved_as="layers.Permute"):
    """Reorder the axes of each example.

    Parameters
    ----------
    dims
        The axes in their new order, counted from 1. The batch is axis 0, and does not move.

    Raises
    ------
    ValueError
        If these are not the integers from 1 to the number of axes, each once. At the call, if ``x``
        has another number of axes.

    Examples
    --------
    >>> gt.layers.Permute((2, 1))(gt.ones((5, 3, 4))).shape
    (5, 4, 3)
    """

    takes_integers = True

    def __init__(
        self,
        dims: Sequence[int],
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.dims = tuple(dims)
        if sorted(self.dims) != list(range(1, len(self.dims) + 1)):
            raise ValueError(f"Permute: dims must be axes from 1 on, each once, got {dims!r}")

    def call(self, x: Any) -> Any:
        """Transpose ``x``."""
        shape = x.array.shape
        if shape is not None and len(shape) != len(self.dims) + 1:
            raise ValueError(
                f"layer {self.name!r} (Permute): expected {len(self.dims)} axes besides the batch, "
                f"got shape {shape}"
            )
        return ops["transpose"](x, axes=(0, *self.dims))


class RepeatVector(Configured, saved_as="layers.RepeatVector"):
    """Repeat each example: ``(batch, features)`` becomes ``(batch, n, features)``.

    Parameters
    ----------
    n
        The number of repetitions.

    Raises
    ------
    ValueError
        If ``n`` is not positive. At the call, if ``x`` does not have two axes.

    Examples
    --------
    >>> gt.layers.RepeatVector(3)(gt.ones((2, 4))).shape
    (2, 3, 4)
    """

    takes_integers = True

    def __init__(
        self, n: int, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        (self.n,) = positive(self, n=n)

    def call(self, x: Any) -> Any:
        """Repeat ``x`` along a new axis."""
        shape = x.array.shape
        if shape is not None and len(shape) != 2:
            raise ValueError(
                f"layer {self.name!r} (RepeatVector): expected shape (batch, features), got {shape}"
            )
        return ops["repeat"](ops["expand_dims"](x, axis=1), repeats=self.n, axis=1)
