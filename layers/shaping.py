"""Layers that rearrange elements, and layers that merge several inputs."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from functools import reduce
from math import prod
from typing import Any, ClassVar, Unpack

from ..core.extend import as_tensor, exact_quotient, ops
from .base.configured import Configured, positive
from .base.weights import Rules

__all__ = [
    "Add",
    "Average",
    "Concatenate",
    "Dot",
    "Maximum",
    "Minimum",
    "Multiply",
    "Permute",
    "RepeatVector",
    "Reshape",
    "Subtract",
]


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


# -- several inputs -------------------------------------------------------------------------------


class _Merge(Configured):
    """A layer with at least two inputs, in a list or a tuple."""

    _gradtape_internal = "* op"

    #: :meth:`compute_mask` passes masks on and makes none.
    makes_mask: ClassVar[bool] = False

    takes_one = False
    least: ClassVar[int] = 2
    most: ClassVar[int | None] = None

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the result: true where any input is not padding."""
        there = [m for m in mask or () if m is not None]
        return reduce(ops["logical_or"], there) if there else None

    def several(self, xs: Any) -> list[Any]:
        """Return the inputs.

        Raises
        ------
        ValueError
            If there are too few or too many, or they are not in a list or a tuple.
        """
        count = len(xs) if isinstance(xs, (list, tuple)) else 1
        if count < self.least or (self.most is not None and count > self.most):
            exactly = "two" if self.most == 2 else "at least two"
            raise ValueError(
                f"layer {self.name!r} ({type(self).__name__}): expected {exactly} inputs in a "
                f"list, got {'one' if count == 1 else count}"
            )
        return list(xs)


class _Elementwise(_Merge):
    _family = """
    Raises
    ------
    ValueError
        At the call, if there are fewer than two inputs, or they do not broadcast.
    """
    op: ClassVar[str]

    def __init__(self, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]) -> None:
        super().__init__(name, dtype, **rules)

    def call(self, xs: Any) -> Any:
        """Merge the inputs, from left to right."""
        return reduce(ops[self.op], self.several(xs))


class Add(_Elementwise, saved_as="layers.Add"):
    """The sum of the inputs, which broadcast.

    Examples
    --------
    >>> gt.layers.Add()([gt.ones(2), gt.ones(2), gt.ones(2)]).tolist()
    [3.0, 3.0]
    """

    op = "add"


class Subtract(_Elementwise, saved_as="layers.Subtract"):
    """The first of two inputs minus the second; they broadcast.

    Raises
    ------
    ValueError
        At the call, if there are not two inputs, or they do not broadcast.

    Examples
    --------
    >>> gt.layers.Subtract()([gt.ones(2), gt.constant([1.0, 3.0])]).tolist()
    [0.0, -2.0]
    """

    op = "subtract"
    most = 2


class Multiply(_Elementwise, saved_as="layers.Multiply"):
    """The product of the inputs, element by element; they broadcast.

    Examples
    --------
    >>> gt.layers.Multiply()([gt.constant([1.0, 2.0]), gt.constant([3.0, 4.0])]).tolist()
    [3.0, 8.0]
    """

    op = "multiply"


class Maximum(_Elementwise, saved_as="layers.Maximum"):
    """The largest of the inputs, element by element; they broadcast.

    Examples
    --------
    >>> gt.layers.Maximum()([gt.constant([1.0, 5.0]), gt.constant([3.0, 4.0])]).tolist()
    [3.0, 5.0]
    """

    takes_integers = True
    op = "maximum"


class Minimum(_Elementwise, saved_as="layers.Minimum"):
    """The smallest of the inputs, element by element; they broadcast.

    Examples
    --------
    >>> gt.layers.Minimum()([gt.constant([1.0, 5.0]), gt.constant([3.0, 4.0])]).tolist()
    [1.0, 4.0]
    """

    takes_integers = True
    op = "minimum"


class Average(_Elementwise, saved_as="layers.Average"):
    """The mean of the inputs, element by element; they broadcast.

    Examples
    --------
    >>> gt.layers.Average()([gt.constant([1.0, 5.0]), gt.constant([3.0, 4.0])]).tolist()
    [2.0, 4.5]
    """

    op = "add"
    computes_in_float32 = True

    def call(self, xs: Any) -> Any:
        """Return the mean."""
        return super().call(xs) / len(xs)


def _steps_of(x: Any, mask: Any, count: int) -> Any:
    """Return the mask of an input along its first axes; all true if it has none."""
    there = ops["ones_like"](x).astype("bool")
    if x.ndim > count:  # of steps without elements, too
        there = ops["all"](there, axis=tuple(range(count, x.ndim)))
    if mask is None:
        return there
    mask = as_tensor(mask).astype("bool")
    while mask.ndim < count:
        mask = ops["expand_dims"](mask, axis=-1)
    return ops["logical_and"](there, mask)


class Concatenate(_Merge, saved_as="layers.Concatenate"):
    """The inputs, joined along an axis.

    Parameters
    ----------
    axis
        The axis, the last by default; axis 0 is the batch.

    Raises
    ------
    ValueError
        At the call, if there are fewer than two inputs, or their other axes differ.

    Examples
    --------
    >>> gt.layers.Concatenate()([gt.ones((2, 3)), gt.ones((2, 4))]).shape
    (2, 7)
    """

    takes_integers = True

    def __init__(
        self, axis: int = -1, name: str | None = None, dtype: Any = None, **rules: Unpack[Rules]
    ) -> None:
        super().__init__(name, dtype, **rules)
        self.axis = operator.index(axis)

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        """Return the mask of the result, joined like the inputs if they are joined along steps.

        Steps of an input without a mask are no padding.
        """
        there = [m for m in mask or () if m is not None]
        rank = next((len(part.shape) for part in x if part.shape is not None), None)
        steps = max([m.ndim for m in there], default=0)
        axis = self.axis if self.axis >= 0 or rank is None else self.axis + rank
        if not 0 <= axis < steps:
            return super().compute_mask(x, mask)
        pairs = zip(x, mask, strict=True)
        return ops["concatenate"](*(_steps_of(part, m, steps) for part, m in pairs), axis=axis)

    def call(self, xs: Any) -> Any:
        """Concatenate the inputs."""
        return ops["concatenate"](*self.several(xs), axis=self.axis)


class Dot(_Merge, saved_as="layers.Dot"):
    """The dot products of two inputs along one axis of each, example by example.

    Parameters
    ----------
    axes
        The axis of both inputs, or a pair of axes; axis 0 is the batch.
    normalize
        Whether to divide vectors by their norms, so that results are cosines.

    Raises
    ------
    ValueError
        If ``axes`` is neither one axis nor two, or is the batch's. At the call, if there are not
        two inputs, or the sizes along the axes differ.

    Examples
    --------
    >>> gt.layers.Dot(1)([gt.ones((2, 3)), gt.ones((2, 3))]).tolist()
    [[3.0], [3.0]]
    >>> gt.layers.Dot((2, 1))([gt.ones((5, 3, 4)), gt.ones((5, 4, 6))]).shape
    (5, 3, 6)
    """

    most = 2
    computes_in_float32 = True

    def __init__(
        self,
        axes: Any,
        normalize: bool = False,
        name: str | None = None,
        dtype: Any = None,
        **rules: Unpack[Rules],
    ) -> None:
        super().__init__(name, dtype, **rules)
        given = tuple(axes) if isinstance(axes, Sequence) else (axes, axes)
        if len(given) != 2 or not all(hasattr(n, "__index__") and n != 0 for n in given):
            raise ValueError(f"Dot: axes must be one or two axes, and not the batch, got {axes!r}")
        self.axes = (operator.index(given[0]), operator.index(given[1]))
        self.normalize = bool(normalize)

    def compute_mask(self, x: Any, mask: Any = None) -> None:
        """Return ``None``: the axes of the result are other ones, and sums contain padding."""

    def call(self, xs: Any) -> Any:
        """Multiply the inputs."""
        sides = []
        for x, axis in zip(self.several(xs), self.axes):
            if self.normalize:
                x = x / ops["maximum"](ops["norm"](x, axis=axis, keepdims=True), 1e-6)
            rest = x.ndim - 2
            x = ops["moveaxis"](x, source=axis, destination=-1)
            # (batch, rest, along): one matrix for each example
            merged = ops["reshape"](x, shape=(x.shape[0], -1, x.shape[-1])) if rest != 1 else x
            sides.append((merged, x.shape[1:-1]))
        (a, before), (b, after) = sides
        y = ops["matmul"](a, ops["swapaxes"](b, axis1=-2, axis2=-1))
        return ops["reshape"](y, shape=(y.shape[0], *(before + after or (1,))))
