"""``Continuous``: the draws of a generator from continuous distributions.

Parameters of generators are checked, and the numbers drawn are scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....core.extend import (
    Module,
    Tensor,
    TensorSpec,
    as_dtype,
    as_shape,
    as_tensor,
    default_dtype,
    is_transformed,
    known_size,
    ops,
    same_size,
    sizes_differ,
    to_numpy,
)
from ..common.op_builders import named_in


def negative(x: Any) -> Any:
    """Return where numbers are below 0."""
    return x < 0  # nan passes, as in NumPy


def improbable(x: Any) -> Any:
    """Return where numbers are not probabilities."""
    return (x < 0) | (x > 1) | (x != x)


def no_weight(x: Any) -> Any:
    """Return where numbers are not relative probabilities."""
    return ~((x >= 0) & (x < np.inf))


def refuse(wrong: Callable[[Any], Any], value: Any, words: str) -> None:
    """Raise ``ValueError`` if the values of a parameter are known and some of them are wrong."""
    if type(value) not in (int, float):
        array = as_tensor(value).array
        if is_transformed(array):
            return
        value = to_numpy(array)
    found = wrong(value)
    if found is not False and np.any(found):
        raise ValueError(f"random.{words}, got {np.asarray(value)[found].flat[0]}")


def weights(p: Any, rows: Any) -> Tensor:
    """Return the relative probabilities of rows as a tensor, one for each, checked."""
    refuse(no_weight, p, "choice: a probability must be finite and at least 0")
    p = as_tensor(p)
    if p.shape is not None and (len(p.shape) != 1 or sizes_differ(p.shape[0], rows)):
        raise ValueError(
            f"random.choice: p must have shape ({rows},), one for each row, got {p.shape}"
        )
    if p.shape is not None and same_size(p.shape[0], rows):
        return p
    checked: Tensor = ops["reshape"](p, shape=(rows,))  # a run raises if the size does not match
    return checked


def check_possible(p: Any, wanted: int) -> None:
    """Raise if fewer rows than requested are known to have a probability above 0."""
    array = as_tensor(p).array
    if not is_transformed(array):
        possible = int(np.count_nonzero(to_numpy(array)))
        if (possible < wanted) is True:
            raise ValueError(
                f"random.choice: cannot choose {wanted} rows: {possible} have a probability above 0"
            )


def with_rows(x: Any, name: str) -> tuple[Tensor, Any]:
    """Return a tensor with rows, and the size of its first axis; raise if it has no axes."""
    x = as_tensor(x)
    if x.shape == ():
        raise np.exceptions.AxisError(
            f"random.{name}: expected an integer, or an array with rows (at least one axis); got "
            f"a single {x.dtype}"
        )
    return x, len(x) if x.shape is None else x.shape[0]


def shape_first(name: str, shape: Any, *others: Any) -> None:
    """Raise if the shape is among the other arguments, where NumPy and PyTorch have it."""
    if type(shape) is float or any(type(x) is tuple for x in others):
        raise TypeError(f"random.{name}: the shape comes first: random.{name}(shape, ...)")


def sizes_of(shape: Any, name: str) -> tuple[int, ...]:
    """Return a user's shape as a tuple of sizes, checked."""
    sizes = as_shape(shape, f"random.{name}")
    if any((n < 0) is True for n in sizes):
        raise ValueError(f"random.{name}: sizes must be at least 0, got {sizes}")
    return sizes


def some_wanted(sizes: tuple[Any, ...]) -> bool:
    """Return whether a shape is known to have elements."""
    return all(known_size(n) and n for n in sizes)


def float_dtype(dtype: Any, name: str) -> str:
    """Return the name of a floating dtype, the default one if none is given."""
    wanted = default_dtype() if dtype is None else as_dtype(dtype)
    if wanted.kind != "f":
        raise TypeError(f"random.{name}: the dtype must be floating, got {wanted}")
    return wanted.name


def float_like(x: Any, name: str) -> TensorSpec | Any:
    """Return a tensor that provides a shape and dtype; raise if it is not floating."""
    x = as_tensor(x)
    float_dtype(x.dtype, name)
    return x


def scaled(draws: Any, offset: Any, scale: Any) -> Any:
    """Return ``offset + scale * draws``, without ops for an offset or scale that has no effect."""
    if not (isinstance(scale, (int, float)) and scale == 1):
        draws = draws * scale
    if not (isinstance(offset, (int, float)) and offset == 0):
        draws = draws + offset
    return draws


# -- draws -----------------------------------------------------------------------------------------


class Continuous(Module):
    """Draws from continuous distributions, with keys that a subclass provides."""

    _gradtape_internal = "next_key"

    def next_key(self) -> Tensor:
        """Return a key that was not used before."""
        raise NotImplementedError

    def _draw(self, name: str, shape: Any, dtype: Any) -> Any:
        return ops[f"random_{name}"](
            self.next_key(), shape=sizes_of(shape, name), dtype=float_dtype(dtype, name)
        )

    @named_in("random")
    def normal(
        self, shape: int | Sequence[int], mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None
    ) -> Tensor:
        """Return normally distributed numbers.

        Parameters
        ----------
        shape
            One size or a sequence of them.
        mean, stddev
            Numbers or tensors that broadcast with ``shape``, 0 and 1 by default; gradients reach
            them.
        dtype
            A floating dtype; the default dtype if not given.

        Returns
        -------
        A tensor of shape ``shape``, broadcast with the parameters.

        Raises
        ------
        TypeError
            If ``dtype`` is not floating, or ``shape`` does not hold integers.
        ValueError
            If ``stddev`` is known (not in a trace) and has values below 0, a size is negative, or
            shapes do not broadcast.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> generator.normal((2, 3)).shape
        (2, 3)
        >>> generator.normal(2, mean=5.0, stddev=0.0).tolist()
        [5.0, 5.0]
        """
        shape_first("normal", shape, mean, stddev)
        refuse(negative, stddev, "normal: stddev must be at least 0")
        return scaled(self._draw("normal", shape, dtype), mean, stddev)

    @named_in("random")
    def uniform(
        self, shape: int | Sequence[int], low: Any = 0.0, high: Any = 1.0, dtype: Any = None
    ) -> Tensor:
        """Return numbers uniformly distributed over ``[low, high)``.

        As in NumPy, rounding may give ``high`` itself where ``low`` is not 0 or ``high`` not 1.

        Parameters
        ----------
        shape
            One size or a sequence of them.
        low, high
            Numbers or tensors that broadcast with ``shape``, 0 and 1 by default; gradients reach
            them.
        dtype
            A floating dtype; the default dtype if not given.

        Returns
        -------
        A tensor of shape ``shape``, broadcast with the bounds.

        Raises
        ------
        TypeError
            If ``dtype`` is not floating, or ``shape`` does not hold integers.
        ValueError
            If ``low`` and ``high`` are known (not in a trace) and ``low`` is above ``high``, a size
            is negative, or shapes do not broadcast.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> x = generator.uniform((2, 3))
        >>> ((x >= 0.0) & (x < 1.0)).all().item()
        True
        """
        shape_first("uniform", shape, low, high)
        width = high - low
        refuse(negative, width, "uniform: high - low must be at least 0")
        return scaled(self._draw("uniform", shape, dtype), low, width)

    @named_in("random")
    def truncated_normal(
        self, shape: int | Sequence[int], mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = None
    ) -> Tensor:
        """Return normally distributed numbers; those beyond two standard deviations are redrawn.

        Parameters
        ----------
        shape
            One size or a sequence of them.
        mean, stddev
            Numbers or tensors that broadcast with ``shape``, 0 and 1 by default: those of the
            distribution before it is cut off. Gradients reach them.
        dtype
            A floating dtype; the default dtype if not given.

        Returns
        -------
        A tensor of shape ``shape``, broadcast with the parameters.

        Raises
        ------
        TypeError
            If ``dtype`` is not floating, or ``shape`` does not hold integers.
        ValueError
            If ``stddev`` is known (not in a trace) and has values below 0, a size is negative, or
            shapes do not broadcast.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> (abs(generator.truncated_normal(100)) <= 2.0).all().item()
        True
        """
        shape_first("truncated_normal", shape, mean, stddev)
        refuse(negative, stddev, "truncated_normal: stddev must be at least 0")
        return scaled(self._draw("truncated_normal", shape, dtype), mean, stddev)

    @named_in("random")
    def exponential(
        self, shape: int | Sequence[int], scale: Any = 1.0, dtype: Any = None
    ) -> Tensor:
        """Return exponentially distributed numbers.

        Parameters
        ----------
        shape
            One size or a sequence of them.
        scale
            The mean, 1 by default: a number or a tensor that broadcasts with ``shape``; gradients
            reach it.
        dtype
            A floating dtype; the default dtype if not given.

        Returns
        -------
        A tensor of shape ``shape``, broadcast with the scale.

        Raises
        ------
        TypeError
            If ``dtype`` is not floating, or ``shape`` does not hold integers.
        ValueError
            If ``scale`` is known (not in a trace) and has values below 0, a size is negative, or
            shapes do not broadcast.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> (generator.exponential((2, 3), scale=2.0) >= 0.0).all().item()
        True
        """
        refuse(negative, scale, "exponential: scale must be at least 0")
        return scaled(self._draw("exponential", shape, dtype), 0, scale)

    @named_in("random")
    def gamma(
        self,
        shape: int | Sequence[int],
        concentration: Any,
        scale: Any = 1.0,
        dtype: Any = None,
    ) -> Tensor:
        """Return gamma-distributed numbers.

        Parameters
        ----------
        shape
            One size or a sequence of them.
        concentration, scale
            Numbers or tensors above 0 that broadcast to ``shape``; the scale is 1 by default.
            Gradients reach both. The gradient of the concentration is the implicit
            reparameterization gradient.
        dtype
            A floating dtype; that of the concentration if not given.

        Returns
        -------
        A tensor of shape ``shape``.

        Raises
        ------
        TypeError
            If ``dtype`` is not floating, or ``shape`` does not hold integers.
        ValueError
            If a concentration is not above 0, or does not broadcast to ``shape``, or a scale is
            below 0.

        References
        ----------
        Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018.

        Examples
        --------
        >>> generator = gt.random.Generator(7)
        >>> (generator.gamma((2, 3), concentration=2.0) > 0.0).all().item()
        True
        """
        refuse(negative, scale, "gamma: scale must be at least 0")
        a = as_tensor(concentration)
        if dtype is not None or a.dtype.kind != "f":
            a = a.astype(float_dtype(dtype, "gamma"))
        a = ops["broadcast_to"](a, shape=sizes_of(shape, "gamma"))
        return scaled(ops["random_gamma"](self.next_key(), a), 0, scale)

    @named_in("random")
    def normal_like(self, x: Any) -> Tensor:
        """Return standard normal numbers with the shape and dtype of ``x``.

        Parameters
        ----------
        x
            A floating tensor; its shape may be unknown in a trace.

        Returns
        -------
        A tensor of the shape and dtype of ``x``, without a gradient connection to it.

        Raises
        ------
        TypeError
            If ``x`` is not floating.

        Examples
        --------
        >>> gt.random.Generator(7).normal_like(gt.zeros((2, 3))).shape
        (2, 3)
        """
        return ops["random_normal_like"](self.next_key(), float_like(x, "normal_like"))

    @named_in("random")
    def uniform_like(self, x: Any) -> Tensor:
        """Return numbers in [0, 1) with the shape and dtype of ``x``.

        Parameters
        ----------
        x
            A floating tensor; its shape may be unknown in a trace.

        Returns
        -------
        A tensor of the shape and dtype of ``x``, without a gradient connection to it.

        Raises
        ------
        TypeError
            If ``x`` is not floating.

        Examples
        --------
        >>> gt.random.Generator(7).uniform_like(gt.zeros((2, 3))).shape
        (2, 3)
        """
        return ops["random_uniform_like"](self.next_key(), float_like(x, "uniform_like"))
