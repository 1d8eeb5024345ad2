"""Runs functions that name their executor inside ``vmap``: traced for all examples together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..base.context import active_batches, active_graph, active_tapes, reducing, tracing_into
from ..base.spec import TensorSpec
from ..base.tree import flatten, map_structure, pack_like
from ..base.user_code import warn_user
from ..batches.batched import HIDE, UNHIDE, has_level, levels_of
from ..errors import TraceError
from ..tensors.tensor import Tensor
from ..transforms.vmap import vmap
from .traces import MAX_TRACES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .function import Function


class Unbatched(Exception):
    """The function has to run op by op, as functions without an executor do in batches."""


def on_batches(function: Function[..., Any], call: Any, key: Any, tensors: Sequence[Tensor]) -> Any:
    """Run a function on batches by its executor.

    Parameters
    ----------
    function
        The function.
    call
        ``(args, kwargs)`` with a spec for each tensor.
    key
        What distinguishes such calls.
    tensors
        The tensors.

    Raises
    ------
    Unbatched
        If no tensor is a batch, if a recorder or an outer trace has to see each op, or if the
        function captures a batch.
    """
    arrays = [x.array for x in tensors]
    met = frozenset().union(*map(levels_of, arrays))
    running = [batch for batch in active_batches.get() if batch.level in met]
    batches = sorted(running, key=lambda batch: batch.level)
    if not met or active_graph.get() or active_tapes.get() or reducing.get():
        raise Unbatched
    axes = []  # from the innermost vmap
    for batch in batches:
        batched = [has_level(x, batch.level) for x in arrays]
        pairs = zip(arrays, batched, strict=True)
        arrays = [UNHIDE.raw(x, x, level=batch.level) if b else x for x, b in pairs]
        axes.append((tuple([0 if b else None for b in batched]), batch.randomness))
    place = key, tuple(axes)
    if len(function.batched) > MAX_TRACES:
        function.batched = {}
    if place not in function.batched:
        function.batched[place] = _for_all(function, call, axes)
    whole = function.batched[place]
    if whole is None:
        raise Unbatched
    try:
        with tracing_into(None):  # outside the batches
            found = whole(*map(Tensor, arrays))
    except TraceError as error:
        function.batched[place] = None
        warn_user(
            f"function {function.name!r}: executor={function.executor!r} has no effect in this "
            f"vmap, which runs the function op by op, because: {error}",
            UserWarning,
        )
        raise Unbatched from None

    def hidden(y: Any) -> Any:
        for batch in reversed(batches):
            y = None if y is None else HIDE(y, level=batch.level)
        return y

    return map_structure(hidden, found)


def _for_all(
    function: Function[..., Any], call: Any, axes: Sequence[tuple[tuple[int | None, ...], str]]
) -> Any:
    """Return the function of all examples, with an argument for each tensor."""

    def whole(*tensors: Any) -> Any:
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, TensorSpec) else leaf for leaf in flatten(call)]
        args, kwargs = pack_like(call, leaves)
        return function.run(*args, **kwargs)

    whole.__name__ = function.name
    for in_axes, randomness in axes:
        whole = vmap(whole, in_axes=in_axes, randomness=randomness)
    return type(function)(whole, executor=function.executor, autograph=False)
