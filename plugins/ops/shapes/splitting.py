"""A tensor split into several, along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from ....core.extend import (
    F,
    Tensor,
    TensorSpec,
    as_shape,
    as_tensor,
    is_open,
    known_size,
    largest,
    sizes_differ,
)
from ..common.axes import along, axis_number, axis_of, one_axis
from ..common.dynamic_shapes import fixed, known_rank, needs_axes, place_between
from ..common.op_builders import named, op

_MOST_OUTPUTS = 2**16


def _checked_count(count: int, name: str) -> int:
    """Return a number of outputs, which may come from a file, if a graph may have so many."""
    if not 0 <= count <= _MOST_OUTPUTS:
        raise ValueError(f"{name}: {count} parts are more than a graph may hold ({_MOST_OUTPUTS})")
    return count


def split_kernel(xp: Any, x: Any, *, sections: Any, axis: int = 0) -> tuple[Any, ...]:
    along = axis_number(x.shape, axis, "split")
    before = (slice(None),) * along
    cuts = _cuts(x.shape[along], sections)
    return tuple(x[(*before, slice(a, b), ...)] for a, b in pairwise(cuts))


def _in_order(cuts: Any, size: int) -> list[int]:
    """Return the cut positions of an axis, counted from its start.

    Raises
    ------
    ValueError
        If the positions are not in ascending order.
    """
    found = [n if n >= 0 else max(n + size, 0) for n in cuts]
    if found != sorted(found):
        raise ValueError(f"indices must ascend, got {list(cuts)} for size {size}")
    return found


def _cuts(size: int, sections: int | tuple[int, ...]) -> list[int]:
    """Return where the parts begin and end; indices past the end give empty parts."""
    if isinstance(sections, tuple):
        return [0, *(min(n, size) for n in _in_order(sections, size)), size]
    if size % sections:
        raise ValueError(f"split: size {size} does not divide into {sections} equal parts")
    return list(range(0, size + 1, size // sections)) if size else [0] * (sections + 1)


def _split_spec(x: TensorSpec, *, sections: Any, axis: int) -> list[tuple[Any, Any]]:
    count = len(sections) + 1 if isinstance(sections, tuple) else sections
    _checked_count(count, "split")
    if x.shape is None:
        return [(None, x.dtype)] * count
    along = axis_number(x.shape, axis, "split")
    size = x.shape[along]
    parts = _part_sizes(size, sections, count)
    return [((*x.shape[:along], n, *x.shape[along + 1 :]), x.dtype) for n in parts]


# With more cuts of an unknown size, proofs would take seconds; the parts are then new unknowns.
_MOST_EXPRESSIONS = 256


def _part_sizes(size: Any, sections: Any, count: int) -> list[Any]:
    """Return the sizes of parts, None where they are unknown."""
    if size is None:
        return [None] * count
    if not isinstance(sections, tuple):
        if not is_open(size):
            _cuts(size, sections)
        return [size // count] * count if count else []
    if not any(map(is_open, (size, *sections))):
        return [b - a for a, b in pairwise(_cuts(size, sections))]
    if count > _MOST_EXPRESSIONS:
        return [None] * count
    cuts = [0, *(place_between(0, size, n, size) for n in sections), size]
    return [None if a is None or b is None else b - a for a, b in pairwise(cuts)]


_split = op(
    "split",
    split_kernel,
    vjp=lambda gs, inputs, outputs, needed, sections, axis: [F.concatenate(*gs, axis=axis)],
    shapes_only=("x", "out"),
    infer=_split_spec,
    batch=along("axis"),
    jvp="linear",
    view=True,
    integers="moves",
    doc="Cut an array along an axis into equal parts, or at given indices.",
)


@named
def split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut a tensor along an axis.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    indices_or_sections
        The number of equal parts, or the positions to cut at: ``[2, 5]`` gives
        ``x[:2], x[2:5], x[5:]``. Negative positions count from the end.
    axis
        The axis to cut; the first by default.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If the parts would not be equal, or the indices are not in ascending order.
    TypeError
        If an index is not an integer.

    Examples
    --------
    >>> [part.tolist() for part in gt.split(gt.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in gt.split(gt.arange(6), [1, 4])]
    [[0], [1, 2, 3], [4, 5]]
    """
    sections: Any = as_shape(indices_or_sections, "split")
    if not _several(indices_or_sections):
        sections = fixed(sections[0], "split", "the number of parts")
        if sections < 1:
            raise ValueError(f"split: the number of parts must be at least 1, got {sections}")
    axis = one_axis(axis, "split")
    if isinstance(sections, tuple):
        x = as_tensor(x)
        sections = _from_start(sections, x, axis)
        if any((a > b) is True for a, b in pairwise(sections)):
            raise ValueError(f"split: indices must ascend, got {indices_or_sections}")
    return list(_split(x, sections=sections, axis=axis))


def _several(given: Any) -> bool:
    """Return whether positions are given, not a number of parts."""
    return isinstance(given, (list, tuple)) or bool(getattr(given, "ndim", 0))


def _from_start(cuts: tuple[int, ...], x: Any, axis: int) -> tuple[int, ...]:
    """Return the cut positions, counted from the start of an axis."""
    if all((n >= 0) is True for n in cuts) or x.shape is None:
        return cuts  # of an unknown rank, each run counts
    size = x.shape[axis_number(x.shape, axis, "split")]
    return tuple(n if is_open(n < 0) else _from_end(n, size) for n in cuts)


def _from_end(cut: Any, size: Any) -> Any:
    return largest(cut + size, 0) if cut < 0 else cut


@named
def array_split(x: Any, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Tensor]:
    """Cut a tensor along an axis into parts whose sizes may differ by one.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    indices_or_sections
        The number of parts, of which the first are the larger, or the positions to cut at.
    axis
        The axis to cut; the first by default.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If the number of parts is below 1.

    Examples
    --------
    >>> [part.tolist() for part in gt.array_split(gt.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    x = as_tensor(x)
    if _several(indices_or_sections):
        return split(x, indices_or_sections, axis)
    count = fixed(indices_or_sections, "array_split", "the number of parts")
    if count < 1:
        raise ValueError(f"array_split: the number of parts must be at least 1, got {count}")
    along = axis_of(x, axis, "array_split")
    size = None if x.shape is None else x.shape[along]
    if not known_size(size):
        return list(_array_split(x, count=count, axis=along))
    return split(x, list(accumulate(_nearly_equal(size, count)[:-1])), axis)


def _arraysplit_kernel(xp: Any, x: Any, *, count: int, axis: int) -> tuple[Any, ...]:
    sizes = _nearly_equal(x.shape[axis_number(x.shape, axis, "array_split")], count)
    return split_kernel(xp, x, sections=tuple(accumulate(sizes[:-1])), axis=axis)


def _nearly_equal(size: Any, count: int) -> list[Any]:
    """Return the sizes of parts; the first ones may be larger by one."""
    return [(size + count - 1 - i) // count for i in range(count)]


def _array_split_spec(x: TensorSpec, *, count: int, axis: int) -> list[tuple[Any, Any]]:
    if _checked_count(count, "array_split") < 1:
        raise ValueError(f"array_split: the number of parts must be at least 1, got {count}")
    if x.shape is None:
        return [(None, x.dtype)] * count
    along = axis_number(x.shape, axis, "array_split")
    size = x.shape[along]
    parts = [None] * count if size is None else _nearly_equal(size, count)
    return [((*x.shape[:along], n, *x.shape[along + 1 :]), x.dtype) for n in parts]


_array_split = op(
    "split_unevenly",
    _arraysplit_kernel,
    vjp=lambda gs, inputs, outputs, needed, count, axis: [F.concatenate(*gs, axis=axis)],
    shapes_only=("x", "out"),
    infer=_array_split_spec,
    batch=along("axis"),
    jvp="linear",
    doc="Cut an array of any size along an axis into parts whose sizes may differ by one.",
)


@named
def hsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut a tensor along axis 1, a vector along its only axis; as :func:`gradtape.split`.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    indices_or_sections
        The number of equal parts, or the positions to cut at.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has no axes, the parts would not be equal, or the indices do not ascend.

    Examples
    --------
    >>> [part.tolist() for part in gt.hsplit(gt.constant([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    x = needs_axes(x, 1, "hsplit")
    return split(x, indices_or_sections, axis=0 if known_rank(x, "hsplit") == 1 else 1)


@named
def vsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut a tensor of at least two axes along axis 0; as :func:`gradtape.split`.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices_or_sections
        The number of equal parts, or where to cut.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than two axes, the parts would not be equal, or the indices do not
        ascend.

    Examples
    --------
    >>> [part.tolist() for part in gt.vsplit(gt.constant([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return split(needs_axes(x, 2, "vsplit"), indices_or_sections, axis=0)


@named
def dsplit(x: Any, indices_or_sections: int | Sequence[int]) -> list[Tensor]:
    """Cut a tensor of at least three axes along axis 2; as :func:`gradtape.split`.

    Parameters
    ----------
    x
        A tensor of any dtype.
    indices_or_sections
        The number of equal parts, or where to cut.

    Returns
    -------
    list of Tensor
        The parts in order, of the dtype of ``x``.

    Raises
    ------
    ValueError
        If ``x`` has fewer than three axes, the parts would not be equal, or the indices do not
        ascend.

    Examples
    --------
    >>> [part.shape for part in gt.dsplit(gt.ones((2, 3, 4)), [1])]
    [(2, 3, 1), (2, 3, 3)]
    """
    return split(needs_axes(x, 3, "dsplit"), indices_or_sections, axis=2)


def _unstack_kernel(xp: Any, x: Any, *, axis: int, num: int) -> tuple[Any, ...]:
    along = axis_number(x.shape, axis, "unstack")
    if x.shape[along] != num:
        raise ValueError(f"axis {axis} has size {x.shape[along]}, not {num}")
    before = (slice(None),) * along
    return tuple(x[(*before, i, ...)] for i in range(num))


def _unstack_spec(x: TensorSpec, *, axis: int, num: int) -> list[tuple[Any, Any]]:
    _checked_count(num, "unstack")
    if x.shape is None:
        return [(None, x.dtype)] * num
    along = axis_number(x.shape, axis, "unstack")
    if x.shape[along] is not None and sizes_differ(x.shape[along], num):
        raise ValueError(f"unstack: axis {axis} of shape {x.shape} does not have size {num}")
    return [((*x.shape[:along], *x.shape[along + 1 :]), x.dtype)] * num


_unstack = op(
    "unstack",
    _unstack_kernel,
    vjp=lambda gs, inputs, outputs, needed, axis, num: [F.stack(*gs, axis=axis)],
    shapes_only=("x", "out"),
    infer=_unstack_spec,
    batch=along("axis"),
    jvp="linear",
    integers="moves",
    doc="Cut an array into ``num`` arrays, one per index of an axis, without that axis.",
)


@named
def unstack(x: Any, axis: int = 0, num: int | None = None) -> tuple[Tensor, ...]:
    """Return a tuple of tensors, one per index of ``axis``, without that axis.

    Parameters
    ----------
    x
        A tensor of any dtype, with at least one axis.
    axis
        The axis to unstack; the first by default.
    num
        The size of the axis; needed only if a trace does not know it.

    Returns
    -------
    tuple of Tensor
        Tensors of the dtype of ``x``, with one axis less.

    Raises
    ------
    ValueError
        If ``num`` is not the size of the axis, or is missing where the size is unknown.

    Examples
    --------
    >>> a, b = gt.unstack(gt.constant([[1, 2], [3, 4]]))
    >>> b.tolist()
    [3, 4]
    """
    x = as_tensor(x)
    axis = one_axis(axis, "unstack")
    if num is None:
        num = None if x.shape is None else x.shape[axis_number(x.shape, axis, "unstack")]
        if not known_size(num):
            raise ValueError(
                f"unstack: the size of axis {axis} is unknown in this trace; pass num, or compute "
                "with the tensor itself (gradtape.scan goes along its first axis)"
            )
    num = fixed(num, "unstack", "the number of tensors")
    return tuple(_unstack(x, axis=axis, num=num)) if num else ()
