"""``vmap``: turns a function of one example into a function of a batch that runs once."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..base.context import as_converted
from ..base.sizes import common_size, has_unknown_sizes, known_size, same_size, sizes_differ
from ..base.table import ops
from ..base.tree import flatten, pack_like, sorted_keys
from ..batches.batched import HIDE, has_level, leave, row_of, running_level
from ..ops.dispatch import check_alive
from ..tape.outer_tape import batching
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor

_RANDOMNESS = ("error", "different", "same")

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fn: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, randomness: str = "error"
) -> Callable[P, R]:
    """Return a function that applies ``fn`` to every example along an axis, and stacks the results.

    ``fn`` runs once, on all examples together: its ops apply their batching rules. The result is
    differentiable to any order and works inside tapes, traces and other ``vmap``s. Tapes inside
    ``fn`` compute per-example gradients.

    Parameters
    ----------
    fn
        A function of tensors (in any nested containers), without the batch axis.
    in_axes
        The batch axis of each positional argument; ``None`` for an argument that all examples
        share. A single integer applies to all arguments. A container has an entry per argument: an
        integer for the whole argument, or a container of its structure.
    out_axes
        The position of the results' batch axis: one integer, or a container with one per result.
        ``None`` for a result that all examples share, which is returned without a batch axis.
    randomness
        The behaviour of ``gt.random`` inside ``fn``: ``"different"`` numbers for each example, the
        ``"same"`` numbers for all, or an ``"error"`` (the default), so that you have to choose.

    Returns
    -------
    callable
        A function of batched arguments. Keyword arguments are shared by all examples.

    Raises
    ------
    ValueError
        When called, if no argument has a batch axis, or the batch sizes differ; or if ``in_axes``
        or ``out_axes`` do not fit.
    TraceError
        When called, if ``fn`` needs a value: ``if x > 0``, ``float(x)``, ``x.numpy()``.
    RuntimeError
        When called, if ``fn`` draws random numbers and ``randomness`` is not given.

    Notes
    -----
    The interface is that of ``jax.vmap`` and ``torch.func.vmap``. A value assigned to a variable in
    ``fn`` must be the same for all examples.

    Examples
    --------
    >>> gt.vmap(lambda x, w: gt.sum(x * w), in_axes=(0, None))(gt.ones((3, 2)), gt.ones(2)).shape
    (3,)
    """
    check_function("vmap", fn)
    if randomness not in _RANDOMNESS:
        raise ValueError(f"vmap: randomness must be one of {_RANDOMNESS}, got {randomness!r}")

    @transform_of(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        axes = _axes(in_axes, args)
        given = flatten(args)
        leaves = [
            _shared_by_all(leaf) if axis is None else _axis_first(as_tensor(leaf), axis, i)
            for i, (leaf, axis) in enumerate(zip(given, axes, strict=True))
        ]
        like = _longest(leaves, axes)
        leaves = _of_one_length(leaves, axes, like)
        with running_level() as level:
            example = [
                leaf if axis is None else HIDE(leaf, level=level)
                for leaf, axis in zip(leaves, axes, strict=True)
            ]
            with batching(level, like, randomness):
                result = as_converted(fn)(*pack_like(args, example), **kwargs)
            places = _spread(out_axes, result, "out_axes")
            outputs = [
                _out(leaf, axis, like, level)
                for leaf, axis in zip(flatten(result), places, strict=True)
            ]
        return pack_like(result, outputs)

    return wrapper


def _out(leaf: Any, axis: int | None, like: Tensor, level: int) -> Tensor | None:
    if leaf is None:  # for example, a missing gradient
        return None
    if axis is None:
        return _shared(as_tensor(leaf), level)
    return _axis_at(leave(leaf, like, level), axis)


def check_function(name: str, fn: Any) -> None:
    """Raise if a transformation does not get a function, but perhaps the result of a call."""
    if not callable(fn):
        raise TypeError(
            f"{name}: expected a function, got {fn!r}; pass the function itself: "
            f"gradtape.{name}(f), not gradtape.{name}(f(x))"
        )


def transform_of(fn: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return ``functools.wraps`` for wrappers to which keyword arguments differ from positional.

    ``function`` then passes arguments on unchanged, and does not fill in the defaults of ``fn``.
    """

    def mark(wrapper: Any) -> Any:
        wrapper = functools.wraps(fn)(wrapper)
        wrapper._as_given = True
        return wrapper

    return mark


def _of_one_length(leaves: list[Any], axes: list[int | None], like: Tensor) -> list[Any]:
    """Make a run raise if batch sizes differ that the trace does not know."""
    batched = [x for x, axis in zip(leaves, axes, strict=True) if axis is not None]
    if len(batched) < 2 or not any(has_unknown_sizes(x.shape) for x in batched):
        return leaves
    checked = []
    for x, axis in zip(leaves, axes, strict=True):
        if axis is not None and x.shape is not None and not _as_long(x, like):
            as_long = ops["spread_like"](Tensor(row_of(x.array)), like)
            x = ops["reshape_like"](x, as_long)
        checked.append(x)
    return checked


def _as_long(x: Tensor, like: Tensor) -> bool:
    """Return whether a trace can prove that the first axes have equal sizes in every run."""
    return like.shape is not None and same_size(x.shape[0], like.shape[0])


def _shared_by_all(leaf: Any) -> Any:
    if type(leaf) is Tensor:
        check_alive(leaf.array)
    return leaf


def _shared(x: Tensor, level: int) -> Tensor:
    if has_level(x.array, level):
        raise ValueError(
            "vmap: out_axes is None for a result that differs from example to example; set it to "
            "the position of the batch axis"
        )
    return x


def _axis_first(x: Tensor, axis: int, position: int) -> Tensor:
    shape = x.shape
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise ValueError(f"vmap: argument {position} of shape {shape} has no axis {axis}")
    if axis == 0:
        return x
    result: Tensor = ops["moveaxis"](x, source=(axis,), destination=(0,))
    return result


def _axis_at(y: Tensor, axis: int) -> Tensor:
    shape = y.shape
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise ValueError(
            f"vmap: out_axes={axis} is out of range for a result with {len(shape)} axes, including "
            "the batch axis"
        )
    if axis == 0:
        return y
    result: Tensor = ops["moveaxis"](y, source=(0,), destination=(axis,))
    return result


def _spread(axes: Any, tree: Any, what: str) -> list[int | None]:
    """Return an axis per leaf: an integer is for a whole container, a container for its items."""
    if axes is None:
        return [None] * len(flatten(tree))
    if not isinstance(axes, (list, tuple, dict)):
        try:
            if isinstance(axes, bool):
                raise TypeError
            axis = operator.index(axes)
        except TypeError:
            raise TypeError(
                f"vmap: {what} must hold integers and None in lists, tuples and dicts, got {axes!r}"
            ) from None
        return [None if leaf is None else axis for leaf in flatten(tree)]
    if isinstance(axes, dict):
        if not isinstance(tree, dict) or set(axes) != set(tree):
            raise ValueError(f"vmap: {what} {axes} does not match the arguments or results")
        parts = [_spread(axes[key], tree[key], what) for key in sorted_keys(tree)]
    else:
        if not isinstance(tree, (list, tuple)) or len(axes) != len(tree):
            raise ValueError(f"vmap: {what} {axes} does not match the arguments or results")
        parts = [_spread(a, t, what) for a, t in zip(axes, tree, strict=True)]
    return [axis for part in parts for axis in part]


def _axes(in_axes: Any, args: tuple[Any, ...]) -> list[int | None]:
    """Return the batch axis of every leaf of the arguments."""
    if isinstance(in_axes, (list, tuple)) and len(in_axes) != len(args):
        raise ValueError(f"vmap: {len(args)} arguments, but in_axes is {in_axes}")
    return _spread(in_axes, args, "in_axes")


def _longest(leaves: list[Any], axes: list[int | None]) -> Tensor:
    """Check the batch sizes, and return a batched argument, of known size if possible."""
    sizes = {
        i: leaf.shape[0]
        for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
        if axis is not None and leaf.shape is not None
    }
    best = common_size(*sizes.values())
    if any(sizes_differ(n, best) for n in sizes.values()):
        raise ValueError(f"vmap: the batch sizes of the arguments differ: {sizes}")
    known = [i for i, n in sizes.items() if known_size(n)]
    for i in (*known, *range(len(leaves))):
        if axes[i] is not None:
            return Tensor.with_id(leaves[i].array, 0)
    raise ValueError(
        "vmap: no argument has a batch axis; set in_axes to an axis for at least one argument"
    )
