"""``vmap``: a function of one example as a function of many, which runs once for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from .batched import HIDE, UNHIDE, has_level, new_level
from .convert import as_tensor
from .outside import Outside
from .state import Batching, active_batches, active_tapes, recording_to
from .table import ops
from .tensor import Tensor
from .tree import flatten, pack_like, structure

__all__ = ["batching", "check_randomness", "key_for_examples", "leave", "vmap"]

_RANDOMNESS = ("error", "different", "same")


@contextmanager
def batching(level: int, like: Tensor, randomness: str = "error") -> Iterator[None]:
    """Run a block for one example of a batch; tapes from outside sum over the examples."""
    tapes = tuple(Outside.of(tape, level) for tape in active_tapes.get())
    token = active_batches.set((*active_batches.get(), Batching(level, like, randomness)))
    try:
        with recording_to(tapes):
            yield
    finally:
        active_batches.reset(token)


def check_randomness() -> None:
    """Raise ``RuntimeError`` if nobody has said what random numbers do in a batch around."""
    if any(batch.randomness == "error" for batch in active_batches.get()):
        raise RuntimeError(
            "random numbers are drawn inside vmap: say whether each example has its own, "
            'vmap(..., randomness="different"), or all have the same, randomness="same"'
        )


def key_for_examples(key: Tensor) -> Tensor:
    """Return a key of random numbers as the batches around want it: for each example, or for all.

    Raises
    ------
    RuntimeError
        If nobody has said which.
    """
    check_randomness()
    for level, like, randomness in active_batches.get():
        if randomness == "different":
            key = HIDE(ops["random_split"](key, like), level=level)
    return key


def leave(x: Any, like: Tensor, level: int) -> Tensor:
    """Return ``x`` with the hidden axis of a level first; repeated, if it has none."""
    x = as_tensor(x)
    if has_level(x.array, level):
        return UNHIDE(x, like, level=level)
    result: Tensor = ops["spread_like"](x, like)
    return result


def vmap(
    fn: Callable[..., Any], in_axes: Any = 0, out_axes: Any = 0, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that applies ``fn`` to every example along an axis, and stacks the results.

    ``fn`` runs once, on all examples together: its ops apply their batching rules. The result is
    differentiable to any order, works inside tapes, traces and other ``vmap``s, and so may tapes
    inside ``fn``: their gradients are those of one example.

    Parameters
    ----------
    fn
        A function of tensors (in any nested containers), without the batch axis.
    in_axes
        The axis of each positional argument that counts examples; ``None`` for an argument that all
        examples share. One integer stands for all arguments; a container gives one per leaf.
    out_axes
        Where the results' batch axis goes: one integer, or a container with one per result.
    randomness
        What ``gt.random`` gives inside ``fn``: ``"different"`` numbers for each example, the
        ``"same"`` for all, or an ``"error"`` (the default), so that the choice is made in words.

    Returns
    -------
    A function of batched arguments. Keyword arguments are shared by all examples.

    Raises
    ------
    ValueError
        When called, if no argument has a batch axis, or the batch sizes differ.
    TraceError
        When called, if ``fn`` asks for a value: ``if x > 0``, ``float(x)``, ``x.numpy()``.
    RuntimeError
        When called, if ``fn`` draws random numbers and ``randomness`` is not given.

    Notes
    -----
    The interface is that of ``jax.vmap`` and ``torch.func.vmap``. An assignment to a variable in
    ``fn`` must be of a value that all examples share.

    Examples
    --------
    >>> gt.vmap(lambda x, w: gt.sum(x * w), in_axes=(0, None))(gt.ones((3, 2)), gt.ones(2)).shape
    (3,)
    """
    if randomness not in _RANDOMNESS:
        raise ValueError(f"vmap: randomness must be one of {_RANDOMNESS}, got {randomness!r}")

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        axes = _axes(in_axes, args)
        given = flatten(args)
        leaves = [
            leaf if axis is None else _axis_first(as_tensor(leaf), axis, i)
            for i, (leaf, axis) in enumerate(zip(given, axes, strict=True))
        ]
        like = _longest(leaves, axes)
        level = new_level()
        example = [
            leaf if axis is None else HIDE(leaf, level=level)
            for leaf, axis in zip(leaves, axes, strict=True)
        ]
        with batching(level, like, randomness):
            result = fn(*pack_like(args, example), **kwargs)
        results = flatten(result)
        places = _out_axes(out_axes, result)
        outputs: list[Tensor | None] = []
        for leaf, axis in zip(results, places, strict=True):
            if leaf is None:  # no gradient, say
                outputs.append(None)
                continue
            y = leave(leaf, like, level)
            outputs.append(y if axis == 0 else ops["moveaxis"](y, source=(0,), destination=(axis,)))
        return pack_like(result, outputs)

    return wrapper


def _axis_first(x: Tensor, axis: int, position: int) -> Tensor:
    shape = x.shape
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise ValueError(f"vmap: argument {position} of shape {shape} has no axis {axis}")
    if axis == 0:
        return x
    result: Tensor = ops["moveaxis"](x, source=(axis,), destination=(0,))
    return result


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


def _out_axes(out_axes: Any, result: Any) -> list[int]:
    """Return where the batch axis of every result goes."""
    if isinstance(out_axes, int):
        return [out_axes] * len(flatten(result))
    if structure(out_axes) != structure(result):
        raise ValueError(f"vmap: out_axes {out_axes} does not have the structure of the results")
    return flatten(out_axes)


def _longest(leaves: list[Any], axes: list[int | None]) -> Tensor:
    """Return an argument with a batch axis, after a look at the sizes of all of them."""
    sizes = {
        i: leaf.shape[0]
        for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
        if axis is not None and leaf.shape is not None
    }
    known = {i: n for i, n in sizes.items() if n is not None}
    if len(set(known.values())) > 1:
        raise ValueError(f"vmap: the batch sizes of the arguments differ: {known}")
    for i in (*known, *range(len(leaves))):
        if axes[i] is not None:
            return Tensor.with_id(leaves[i].array, 0)
    raise ValueError("vmap: no argument has a batch axis; in_axes is None for all of them")
