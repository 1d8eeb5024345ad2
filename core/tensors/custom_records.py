"""Records that are not of ops: custom gradients, and transfers between devices."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from typing import Any, TypeVar

from ..base.array_types import describe
from ..base.context import active_batches, active_graph, active_tapes, back_in
from ..base.table import F, registry
from ..ops.dispatch import TRACED, backend_of, parse_place, place_of, shape_witness
from ..ops.dispatch import backend as selecting
from .tensor import Tensor, is_raw

Function = TypeVar("Function", bound=Callable[..., Any])


def record_custom(
    name: str,
    inputs: list[Tensor],
    outputs: list[Tensor],
    backward: Callable[[Sequence[Tensor], Collection[int]], Sequence[Tensor | None]],
    lost: Sequence[int] = (),
) -> None:
    """Record a computation with the gradient function ``backward`` on the active tapes.

    ``backward`` takes the upstream gradients, and the levels of batches over whose examples it may
    sum the gradient of what they share. ``lost`` are the places of inputs that the outputs depend
    on and that it leaves out.
    """
    tapes = active_tapes.get()
    if not tapes:
        return
    shapes = [shape_witness(y) for y in outputs]
    batches = active_batches.get()

    def run(gs: list[Any], ended: Collection[int] = ()) -> list[Any]:
        raw = is_raw(gs)
        upstream = [
            Tensor(F.zeros_like(y.array)) if g is None else Tensor(g) if raw else g
            for g, y in zip(gs, shapes, strict=True)
        ]
        with back_in(batches) if batches else nullcontext():
            grads = backward(upstream, ended)
        return [g.array if raw and g is not None else g for g in grads]

    for tape in tapes:
        tape.record_call(name, inputs, outputs, run)
        if lost:
            tape.record_lost(inputs, lost, outputs, left_out(name, inputs, lost))


def left_out(name: str, inputs: Sequence[Any], places: Iterable[int]) -> str:
    """Return the message for inputs of a custom gradient that its rule leaves out."""
    told = ", ".join(describe(inputs[i].shape, inputs[i].dtype) for i in places)
    return (
        f"the custom gradient of {name!r} leaves out a tensor that {name!r} uses ({told}): pass "
        "the tensor as a positional argument, and return a gradient for it"
    )


def record_identity(
    name: str, x: Tensor, array: Any, gradient: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return a tensor of ``array`` whose gradient reaches ``x`` through ``gradient``."""
    output = Tensor(array)
    record_custom(name, [x], [output], lambda gs, ended: [gradient(gs[0])])
    return output


def transfer(tensor: Tensor, backend: str) -> Tensor:
    """Return the tensor on another backend or device; gradients are moved back.

    Parameters
    ----------
    backend
        ``"numpy"``, ``"cupy"``, or with a device: ``"cupy:1"``. In a trace, only the ``device``
        of a value there: nothing is moved.

    Returns
    -------
    Tensor
        A tensor with the same value; the tensor itself if it is already there.

    Raises
    ------
    LookupError
        If no plugin provides the backend.
    BackendUnavailable
        If the backend cannot be used here.
    """
    here = place_of(tensor.array)
    if backend == here or _is_everywhere(backend):
        return tensor
    name, device = parse_place(backend)
    owner = backend_of(tensor.array)
    if owner.name == name and device in (None, owner.device(tensor.array)):
        return tensor
    target = registry().backend(name)
    value = owner.to_numpy(tensor.array) if owner.name != name else tensor.array
    moved = target.asarray(value, device=device)
    return record_identity("to", tensor, moved, lambda g: transfer(g, here))


def _is_everywhere(device: str) -> bool:
    """Return whether a device is that of a trace's values, while one is made: nothing moves."""
    return device == TRACED and active_graph.get() is not None


def placeable(function: Function) -> Function:
    """Give a function that makes tensors the argument ``device``; its body leaves it unread."""

    @functools.wraps(function)
    def make(*args: Any, device: str | None = None, **kwargs: Any) -> Any:
        if device is None or _is_everywhere(device):
            return function(*args, **kwargs)
        with selecting(device):
            made = function(*args, **kwargs)
        # arguments that are tensors may have been elsewhere
        return tuple(x.to(device) for x in made) if isinstance(made, tuple) else made.to(device)

    return make  # type: ignore[return-value]
