"""``vmap``: a function of one example as a function of many."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .convert import as_tensor
from .errors import TraceError
from .table import ops
from .tree import flatten, pack_like, structure

__all__ = ["vmap"]


def vmap(fn: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    """Return a function that applies ``fn`` to every example along an axis, and stacks the results.

    It is differentiable to any order, and works inside tapes and traces.

    Parameters
    ----------
    fn
        A function of tensors (in any nested containers), without the batch axis.
    in_axes
        The axis of each positional argument that counts examples; ``None`` for an argument that all
        examples share. One integer stands for all arguments; a container gives one per leaf.
    out_axes
        Where the results' batch axis goes.

    Returns
    -------
    A function of batched arguments. Keyword arguments are shared by all examples.

    Raises
    ------
    ValueError
        When called, if no argument has a batch axis, or the batch sizes differ.
    TraceError
        When called in a trace in which the batch size is unknown.

    Notes
    -----
    The examples are computed one after another: the cost is that of the loop it replaces.

    Examples
    --------
    >>> gt.vmap(lambda x, w: gt.sum(x * w), in_axes=(0, None))(gt.ones((3, 2)), gt.ones(2)).shape
    (3,)
    """

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        axes = _axes(in_axes, args)
        leaves = [
            leaf if axis is None else as_tensor(leaf)
            for leaf, axis in zip(flatten(args), axes, strict=True)
        ]
        size = _batch_size(leaves, axes)
        results = []
        for i in range(size):
            example = [
                leaf if axis is None else leaf[(slice(None),) * (axis % leaf.ndim) + (i,)]
                for leaf, axis in zip(leaves, axes, strict=True)
            ]
            results.append(fn(*pack_like(args, example), **kwargs))
        columns = zip(*[flatten(result) for result in results], strict=True)
        stacked = [ops["stack"](*map(as_tensor, column), axis=out_axes) for column in columns]
        return pack_like(results[0], stacked)

    return wrapper


def _axes(in_axes: Any, args: tuple[Any, ...]) -> list[int | None]:
    """Return the batch axis of every leaf of the arguments."""
    if in_axes is None or isinstance(in_axes, int):
        return [in_axes] * len(flatten(args))
    if len(in_axes) != len(args):
        raise ValueError(f"vmap: {len(args)} arguments, but in_axes is {in_axes}")
    axes: list[int | None] = []
    for argument, axis in zip(args, in_axes, strict=True):
        if axis is None or isinstance(axis, int):
            axes += [axis] * len(flatten(argument))
        elif structure(axis) == structure(argument):
            axes += flatten(axis)
        else:
            raise ValueError(f"vmap: in_axes {axis} does not have the structure of its argument")
    return axes


def _batch_size(leaves: list[Any], axes: list[int | None]) -> int:
    sizes = {}
    for position, (leaf, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None:
            continue
        shape = leaf.shape
        if shape is None or not -len(shape) <= axis < len(shape):
            raise ValueError(f"vmap: argument {position} of shape {shape} has no axis {axis}")
        if shape[axis] is None:
            raise TraceError(
                f"vmap: the batch size of argument {position} is unknown in this trace"
            )
        sizes[position] = int(shape[axis])
    if not sizes:
        raise ValueError("vmap: no argument has a batch axis; in_axes is None for all of them")
    if len(set(sizes.values())) > 1:
        raise ValueError(f"vmap: the batch sizes of the arguments differ: {sizes}")
    size = next(iter(sizes.values()))
    if size == 0:
        raise ValueError("vmap: the batch is empty, so the results' shapes are unknown")
    return size
