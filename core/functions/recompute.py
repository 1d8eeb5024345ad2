"""``recompute_grad``: frees a function's intermediate values; the backward pass recomputes them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from ..base.context import (
    Batching,
    active_batches,
    active_graph,
    active_tapes,
    as_converted,
    calling_in,
    muting,
    recording_to,
    strictness,
    training_mode,
)
from ..base.handle import next_id
from ..base.precision import computing, computing_in
from ..base.recorder import Everything, Recorder
from ..base.table import ops
from ..base.tree import flatten, pack_like
from ..ops.dispatch import is_transformed
from ..tape.broken import severed, tell
from ..tape.tape import GradientTape
from ..tensors.convert import as_tensor
from ..tensors.op import Op
from ..tensors.several import holding
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .custom import custom_gradient

__all__ = ["recompute_grad"]

Fn = TypeVar("Fn", bound=Callable[..., Any])


class _Outside(Recorder):
    """Replaces the tapes: notes what a function takes from outside, and records nothing."""

    def __init__(self, recorders: tuple[Recorder, ...]) -> None:
        self.recorders = recorders
        self.records = Everything()
        self.variables: dict[int, Variable] = {}
        #: What variables held when the function began.
        self.states: dict[int, tuple[Variable, Tensor]] = {}
        self.tensors: dict[int, Tensor] = {}
        # tensors that existed before have smaller ids
        self._first = next_id()
        self._graph = active_graph.get()

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Note a variable that was read."""
        self.variables.setdefault(variable.id, variable)
        self.changing(variable, read.array)

    def changing(self, variable: Variable, before: Any) -> None:
        """Note the array that a variable held."""
        if variable.id in self.states:
            return
        if active_graph.get() is not self._graph:  # for example in a branch, which assigns nothing
            before = self._graph.read(variable) if self._graph else variable.array
        self.states[variable.id] = variable, Tensor(before)

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        self.hear(inputs)

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        self.hear(inputs)

    def record_call(
        self, name: str, inputs: list[Tensor], outputs: list[Tensor], backward: Any
    ) -> None:
        self.hear(inputs)

    def hear(self, inputs: Iterable[Any]) -> None:
        """Note inputs from outside that may have a gradient."""
        for x in inputs:
            if type(x) is Tensor and 0 < x.id < self._first and self._matters(x):
                self.tensors.setdefault(x.id, x)

    def _matters(self, x: Tensor) -> bool:
        # in a trace or a batch, a recorder may come later
        return is_transformed(x.array) or any(x.id in tape.records for tape in self.recorders)


def recompute_grad(f: Fn) -> Fn:
    """Decorate a function so that tapes keep only its arguments, and the backward pass reruns it.

    This saves memory and takes more time: intermediate values of the function are not kept for the
    backward pass, which calls the function a second time. Also known as rematerialisation or
    gradient checkpointing.

    Parameters
    ----------
    f
        A function that takes tensors, in any nested containers, and Python values. It may read and
        assign variables, and draw random numbers. Given the same variables, it must always return
        the same result. The second call reads the values that variables had in the first, and
        assigns nothing.

    Returns
    -------
    callable
        A function with the result and the gradients of ``f``, to any order. It has gradients with
        respect to its arguments, the variables that it reads, captured tensors and keyword
        arguments.

    References
    ----------
    T. Chen, B. Xu, C. Zhang and C. Guestrin, "Training Deep Nets with Sublinear Memory Cost", 2016.

    Examples
    --------
    >>> block = gt.recompute_grad(lambda x: gt.sin(gt.exp(x)))
    >>> gt.grad(block)(0.0).item() == gt.grad(lambda x: gt.sin(gt.exp(x)))(0.0).item()
    True
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        mode, batches, dtype = training_mode.get(), active_batches.get(), computing.get()
        outside, run = _Outside(active_tapes.get()), as_converted(f)
        with recording_to(()):
            places = pack_like(args, [_apart(leaf) for leaf in flatten(args)])
        with recording_to((outside,)):
            returned = run(*places, **kwargs)
        outside.hear(flatten(returned))
        states = list(outside.states.values())
        for recorder in active_tapes.get():
            for variable, before in states:
                recorder.changing(variable, before.array)
        closed = list(outside.tensors.values())

        @custom_gradient
        @functools.wraps(f)
        def forgetting(closed: list[Tensor], *args: Any) -> Any:
            for variable in outside.variables.values():
                _ = variable.value  # reports the read to recorders

            def again(*upstream: Any, variables: Any = ()) -> Any:
                places = pack_like(args, [_apart(leaf) for leaf in flatten(args)])
                sources = [*closed, *(leaf for leaf in flatten(places) if type(leaf) is Tensor)]
                strict = strictness.get()
                with GradientTape(watch_accessed_variables=False, strict=strict) as tape:
                    tape.watch([*sources, *variables])
                    with (
                        _as_then(states, batches),
                        muting(),
                        calling_in(None if mode is None else mode.training),
                        computing_in(dtype),
                    ):
                        repeated = run(*places, **kwargs)
                targets = _tensors(repeated)
                if not strict:
                    tell(severed(tape, targets, [*sources, *variables]), False)
                grads, of_variables = tape.gradient(
                    targets, (sources, list(variables)), output_gradients=list(upstream)
                )
                found = iter(grads)
                leaves = [*closed, *flatten(args)]
                each = [next(found) if type(leaf) is Tensor else None for leaf in leaves]
                return (each, of_variables) if variables else each

            return _tensors(returned), again

        found = iter(forgetting(closed, *args))
        return pack_like(returned, [None if x is None else next(found) for x in flatten(returned)])

    return wrapper  # type: ignore[return-value]


@contextmanager
def _as_then(
    states: Sequence[tuple[Variable, Tensor]], batches: Sequence[Batching]
) -> Iterator[None]:
    """Run a block with the variables' earlier values, in the batches; undo its assignments."""
    levels = {batch.level for batch in batches}
    inside = (batch for batch in active_batches.get() if batch.level not in levels)
    token = active_batches.set((*batches, *inside))
    graph = active_graph.get()
    arrays = [(variable, then.array) for variable, then in states]
    try:
        with holding(arrays) if graph is None else graph.apart(arrays):
            yield
    finally:
        active_batches.reset(token)


def _apart(leaf: Any) -> Any:
    """Return an argument with a separate id, because two arguments may be the same tensor."""
    if isinstance(leaf, (Tensor, Variable, np.ndarray, np.generic)):
        return ops["identity"](leaf)
    return leaf


def _tensors(result: Any) -> list[Any]:
    """Return the leaves of a result as tensors, without those that are None."""
    leaves = [leaf for leaf in flatten(result) if leaf is not None]
    return [leaf.value if isinstance(leaf, Variable) else as_tensor(leaf) for leaf in leaves]
