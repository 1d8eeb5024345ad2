"""Shapes whose sizes may be unknown: conversion, comparison and broadcasting."""

from __future__ import annotations

import operator
from typing import Any

from ...errors import TraceError
from .arithmetic import same_size
from .open_values import OpenSize, is_open, known_size
from .unknowns import Size

# Each size is an integer, None if it is unknown, or a Size in a trace; None alone is an unknown
# rank.
Shape = tuple[Any, ...] | None


# -- comparison ------------------------------------------------------------------------------------


def sizes_differ(n: Any, m: Any) -> bool:
    """Return whether two sizes can be proved to differ; ``None`` may be any size.

    Parameters
    ----------
    n, m
        Integers, unknown sizes or ``None``.

    Returns
    -------
    bool
        False if they are equal, or equal in some runs.

    Examples
    --------
    >>> from gradtape.plugin import sizes_differ
    >>> sizes_differ(2, 3), sizes_differ(2, None)
    (True, False)
    """
    if n is m:
        return False
    if known_size(n) and known_size(m):
        return bool(n != m)
    if n is None or m is None:
        return False
    return (n == m if is_open(n) else m == n) is False  # a NumPy integer would compare tensors


def same_shape(a: Any, b: Any) -> bool:
    """Return whether two shapes are equal in every run, as far as a trace can prove it.

    Parameters
    ----------
    a, b
        Tuples of sizes, or ``None`` for an unknown rank.

    Returns
    -------
    bool
        False if a trace cannot prove it.

    Examples
    --------
    >>> from gradtape.plugin import same_shape
    >>> same_shape((2, 3), (2, 3)), same_shape(None, (2, 3))
    (True, False)
    """
    try:
        return a is not None and bool(a == b)
    except OpenSize:
        return False


def common_size(*sizes: Any) -> Any:
    """Return one of several sizes that must be equal, preferably a known one."""
    given = [n for n in sizes if n is not None]
    return next(filter(known_size, given), given[0] if given else None)


def shapes_differ(a: Any, b: Any) -> bool:
    """Return whether two shapes can be proved to differ; ``None`` may be any shape or size.

    Parameters
    ----------
    a, b
        Tuples of sizes, or ``None`` for an unknown rank.

    Returns
    -------
    bool
        False if they are equal, or equal in some runs.

    Examples
    --------
    >>> from gradtape.plugin import shapes_differ
    >>> shapes_differ((2, 3), (2, None)), shapes_differ((2,), (2, None))
    (False, True)
    """
    if a is None or b is None:
        return False
    return len(a) != len(b) or any(map(sizes_differ, a, b))


def has_unknown_sizes(shape: Any) -> bool:
    """Return whether a symbol's shape is not fully known."""
    return shape is None or None in shape


def without_expressions(shape: Any) -> Any:
    """Return a shape with ``None`` instead of each expression."""
    return None if shape is None else tuple(n if known_size(n) else None for n in shape)


# -- conversion ------------------------------------------------------------------------------------


def as_size(n: Any, name: str) -> Any:
    """Return a user's size, count or bound as an int, or as an expression if it is unknown.

    Parameters
    ----------
    n
        An integer of any type; in a trace also an unknown size, or a tensor of one integer.
    name
        The op's name, for the message.

    Returns
    -------
    int or Size
        The size.

    Raises
    ------
    TypeError
        If it is not an integer.

    Examples
    --------
    >>> from gradtape.plugin import as_size
    >>> as_size(np.int64(3), "acme::tiles")
    3
    """
    if type(n) is int:
        return n
    if isinstance(n, Size):
        return n.as_plain()
    if getattr(getattr(n, "array", None), "traced", False):
        return n.array.as_size(name)
    try:
        return operator.index(n)
    except TypeError:
        if is_open(n):
            raise
        raise TypeError(f"{name}: expected an integer, got {n!r}") from None


def _listed(shape: Any, name: str) -> Any:
    """Return the sizes in a vector, which may be traced; anything else as the only size."""
    array = getattr(shape, "array", shape)
    axes: Any = getattr(array, "shape", ())
    if axes is None or len(axes) != 1:
        return (shape,)
    if not getattr(array, "traced", False):
        return shape.tolist()
    if not known_size(axes[0]):
        raise TraceError(
            f"{name}: {array!r} cannot be a shape: its number of elements is unknown while a "
            "function is traced"
        )
    return [shape[i] for i in range(axes[0])]


def as_shape(shape: Any, name: str) -> tuple[Any, ...]:
    """Return a user's shape (one size, a sequence or a vector) as a tuple of sizes.

    Parameters
    ----------
    shape
        An integer, a sequence of them or a vector. In a trace, unknown sizes stay expressions, and
        tensors of one integer become sizes.
    name
        The op's name, for the message.

    Returns
    -------
    tuple
        Integers and unknown sizes.

    Raises
    ------
    TypeError
        If a size is not an integer; ``None`` is a size that a trace does not know.

    Examples
    --------
    >>> from gradtape.plugin import as_shape
    >>> as_shape([2, np.int64(3)], "acme::tiles"), as_shape(4, "acme::tiles")
    ((2, 3), (4,))
    """
    sizes = shape if isinstance(shape, (tuple, list)) else _listed(shape, name)
    try:
        return tuple([n if type(n) is int else as_size(n, name) for n in sizes])
    except TypeError as error:
        if isinstance(error, TraceError):
            raise
        hint = ""
        if any(n is None for n in sizes):
            hint = (
                "; None means that a size is unknown: pass x.shape[i], which works in a trace too, "
                "or -1 for the remaining size in reshape"
            )
        raise TypeError(
            f"{name}: a shape is an integer or a sequence of integers, got {shape!r}{hint}"
        ) from None


# -- broadcasting ---------------------------------------------------------------------------------


def broadcast_shapes(*shapes: Shape, op: str = "broadcast") -> Shape:
    """Broadcast shapes by NumPy's rule, unknown sizes included.

    Parameters
    ----------
    shapes
        Tuples of sizes, ``None`` for an unknown size; or ``None`` for an unknown rank.
    op
        The name at the start of the message if they do not broadcast.

    Returns
    -------
    tuple or None
        The common shape; ``None`` if a rank is unknown. A known size above 1 takes precedence over
        an unknown one.

    Raises
    ------
    ValueError
        If two known sizes disagree.

    Examples
    --------
    >>> from gradtape.plugin import broadcast_shapes
    >>> broadcast_shapes((2, None), (3,))
    (2, 3)
    """
    if None in shapes:
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max((len(shape) for shape in known), default=0)
    result: list[int | None] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in known if len(shape) >= -axis]
        sizes = [n for n in sizes if type(n) is not int or n != 1]
        size, fits = (sizes[0] if sizes else 1), True
        if len(sizes) > 1:
            size, fits = _broadcast_size(sizes)
        if not fits:
            raise ValueError(
                f"{op}: shapes {' and '.join(str(shape) for shape in known)} do not broadcast"
            )
        result.append(size)
    return tuple(result)


def _broadcast_size(sizes: list[Any]) -> tuple[Any, bool]:
    """Return the common size of several sizes, and whether they may broadcast at all."""
    fixed = {n for n in sizes if known_size(n)}
    unknown = [n for n in sizes if not known_size(n)]
    if len(fixed) > 1:
        return None, False
    if fixed:
        # a known size above 1 takes precedence: at run time the unknown one must equal it or 1
        (size,) = fixed
        return size, not any(_clash(n, size) for n in unknown)
    first = unknown[0]
    if all(n is first or same_size(n, first) for n in unknown[1:]):
        return first, True
    pairs = [(a, b) for i, a in enumerate(unknown) for b in unknown[:i]]
    return None, not any(_clash(a, b) for a, b in pairs)


def _clash(a: Any, b: Any) -> bool:
    """Return whether two sizes can be proved not to broadcast."""
    return sizes_differ(a, b) and sizes_differ(a, 1) and sizes_differ(b, 1)
