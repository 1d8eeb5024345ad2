"""Ops that depend on an array's rank, so that traces of unknown rank can contain them."""

from __future__ import annotations

from typing import Any

from ....core.errors import TraceError
from ....core.extend import NONDIFF, F, Op, as_tensor, ops, rank_of
from .batching import together
from .op_builders import op

Places = tuple[tuple[int, ...], ...]


def _inserted(shape: Any, places: Places) -> Any:
    if len(shape) >= len(places):
        return shape
    new, sizes = places[len(shape)], iter(shape)
    return tuple(1 if i in new else next(sizes) for i in range(len(shape) + len(new)))


def _insert_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    (x,), places = xs, params["places"]
    rank = rank_of(x, op) - 1
    new = places[rank] if rank < len(places) else ()
    return F.expand_dims(x, axis=tuple(n + 1 for n in new)) if new else x


_insert_axes = op(
    "insert_axes",
    lambda xp, x, *, places: xp.reshape(x, _inserted(x.shape, places)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like)},
    infer=lambda x, places: (None if x.shape is None else _inserted(x.shape, places), x.dtype),
    holomorphic=True,
    batch=_insert_rule,
    jvp="linear",
    view="reshape",
    doc="Insert axes of size 1: ``places[n]`` are their positions if ``x`` has n axes.",
)


def _drop_rule(op: Op, xs: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    x, like = together(xs, batched)
    return F.squeeze(x, axis=-1) if rank_of(like, op) == 2 else x


_drop_column = op(
    "drop_column_like",
    lambda xp, x, like: xp.reshape(x, _dropped(x.shape, like.shape)),
    gradients={"x": lambda g, x_like: F.reshape_like(g, x_like), "like": NONDIFF},
    infer=lambda x, like: (_dropped(x.shape, like.shape), x.dtype),
    holomorphic=True,
    batch=_drop_rule,
    jvp="linear",
    doc="Remove the last axis, of size 1, from ``x`` if ``like`` is a vector.",
)


def _dropped(shape: Any, like: Any) -> Any:
    if shape is None or like is None:
        return None
    return shape[:-1] if len(like) == 1 else shape


def with_axes(x: Any, places: Places) -> Any:
    """Return a tensor with axes of size 1 inserted: at ``places[n]`` if it has n axes."""
    if x.shape is None:
        return _insert_axes(x, places=places)
    new = places[len(x.shape)] if len(x.shape) < len(places) else ()
    return ops["expand_dims"](x, axis=new) if new else x


def as_vector(x: Any) -> Any:
    """Return a tensor unchanged, or a number as a vector of size 1."""
    return with_axes(x, ((0,),))


def as_columns(b: Any) -> Any:
    """Return the right-hand sides of systems as columns; a vector becomes one column."""
    return with_axes(b, ((), (1,)))


def like_columns(x: Any, b: Any) -> Any:
    """Return the solutions of systems in the form of the right-hand sides ``b``."""
    if b.shape is None:
        return _drop_column(x, b)
    return ops["squeeze"](x, axis=-1) if len(b.shape) == 1 else x


def known_rank(x: Any, name: str) -> int:
    """Return a tensor's rank.

    Raises
    ------
    TraceError
        If it is unknown in a trace.
    """
    if x.shape is None:
        raise TraceError(
            f"{name}: the rank is unknown in this trace; give the argument's TensorSpec a shape, "
            "None for each size that may vary"
        )
    return len(x.shape)


def needs_axes(x: Any, count: int, name: str) -> Any:
    """Return ``x`` as a tensor; raise if it is known to have fewer axes than ``count``."""
    x = as_tensor(x)
    if x.shape is not None and len(x.shape) < count:
        least = "one axis is" if count == 1 else f"{count} axes are"
        raise ValueError(f"{name}: at least {least} needed, got shape {x.shape}")
    return x
