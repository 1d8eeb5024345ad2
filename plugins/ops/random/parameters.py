"""Checks of generators' parameters, and scaling of the numbers drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.extend import (
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

__all__: list[str] = []


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
