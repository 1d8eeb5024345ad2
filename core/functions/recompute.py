"""``recompute_grad``: frees a function's intermediate values; the backward pass recomputes them.

``halved`` splits a graph with its gradient into two graphs, one forward and one back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

from ..base.array_types import TensorSpec, next_id
from ..base.context import (
    active_batches,
    active_graph,
    active_tapes,
    as_converted,
    batched_in,
    calling_in,
    muting,
    recording_to,
    strictness,
    tracing_into,
    training_mode,
)
from ..base.dtypes import computing, computing_in, is_differentiable
from ..base.lifetimes import KERNEL_CACHES
from ..base.observers import AllRecords, Recorder
from ..base.sizes import has_unknown_sizes
from ..base.table import ops
from ..base.tree import flatten, pack_like
from ..errors import TraceError
from ..graphs.graph import Graph
from ..graphs.nodes import Symbol
from ..graphs.optimize import prune
from ..graphs.replay import replay
from ..ops.dispatch import is_transformed
from ..tape.missing_gradients import raise_or_warn, severed
from ..tape.outer_tape import summing_over_examples
from ..tape.tape import GradientTape
from ..tensors.assignment import holding
from ..tensors.convert import as_tensor
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .arguments import name_of
from .custom_gradient_inputs import as_argument
from .custom_gradients import attach

Fn = TypeVar("Fn", bound=Callable[..., Any])


class _OuterInputs(Recorder):
    """Replaces the tapes: notes what a function takes from outside, and records nothing."""

    def __init__(self, recorders: tuple[Recorder, ...]) -> None:
        self.recorders = recorders
        self.records = AllRecords()
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
            if type(x) is not Tensor or not 0 < x.id < self._first:
                continue
            # a tensor with a variable's id is the variable, which is followed by its reads
            if x.id not in self.variables and self._matters(x):
                self.tensors.setdefault(x.id, x)

    def followed(self) -> list[Variable]:
        """Return the variables that may have a gradient, besides captured tensors."""
        return [
            v
            for v in self.variables.values()
            if is_differentiable(v.dtype)
            and (v.trainable or self._graph or any(v.id in tape.records for tape in self.recorders))
        ]

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
        outside, run = _OuterInputs(active_tapes.get()), as_converted(f)
        leaves = [as_argument(leaf) for leaf in flatten(args)]
        with recording_to(()):
            places = pack_like(args, [_with_own_id(leaf) for leaf in leaves])
        with recording_to((outside,)):
            returned = run(*places, **kwargs)
        outside.hear(flatten(returned))
        for recorder in active_tapes.get():
            for variable, before in outside.states.values():
                recorder.changing(variable, before.array)
        again = _RecomputedGradient(
            f, lambda leaves: run(*pack_like(args, leaves), **kwargs), leaves, outside
        )
        for variable in outside.variables.values():
            _ = variable.value  # reports the read to recorders
        found = iter(attach(name_of(f), again, again.inputs, _tensors(returned)))
        return pack_like(returned, [None if x is None else next(found) for x in flatten(returned)])

    return wrapper  # type: ignore[return-value]


class _RecomputedGradient:
    """The gradient function: runs a function again, under a tape."""

    #: It leaves nothing out and can be traced. Its function is new in each call, so none is shared.
    lost: Collection[int] = ()
    refusal = function = code = key = None

    def __init__(
        self, f: Any, run: Callable[[list[Any]], Any], leaves: list[Any], outside: _OuterInputs
    ) -> None:
        self.grad_fn = f  # which messages name
        self.given: list[Any] = []
        self.run = run
        self.leaves = leaves
        self.arguments = [leaf for leaf in leaves if type(leaf) is Tensor]
        self.captured = list(outside.tensors.values())
        self.variables = outside.followed()
        self.states = list(outside.states.values())
        self.inputs = [*self.captured, *self.arguments, *(v.handle() for v in self.variables)]
        self.specs = [(x.shape, x.dtype) for x in self.inputs]
        mode = training_mode.get()
        self._training = None if mode is None else mode.training
        self._dtype = computing.get()

    def __call__(
        self, upstream: Sequence[Tensor], ended: Collection[int] = ()
    ) -> list[Tensor | None]:
        """Return the gradient of each captured tensor, argument and variable."""
        leaves = [_with_own_id(leaf) for leaf in self.leaves]
        arguments = [leaf for leaf in leaves if type(leaf) is Tensor]
        sources = [*self.captured, *arguments, *self.variables]
        strict = strictness.get()
        batches = active_batches.get()
        running = [batch for batch in batches if batch.level not in ended]
        # outside the batches that have ended: what their examples share has one gradient
        with (
            batched_in(running),
            GradientTape(watch_accessed_variables=False, strict=strict) as tape,
        ):
            tape.watch(sources)
            with (
                batched_in(batches),
                summing_over_examples() if len(running) < len(batches) else nullcontext(),
                _as_then(self.states),
                muting(),
                calling_in(self._training),
                computing_in(self._dtype),
            ):
                repeated = self.run(leaves)
        targets = _tensors(repeated)
        if not strict:
            raise_or_warn(severed(tape, targets, sources), False)
        grads: list[Tensor | None] = tape.gradient(
            targets, sources, output_gradients=list(upstream)
        )
        return grads

    def again(self, given: list[Tensor]) -> tuple[Any, list[Any]]:
        """Not needed: no shared rule is made of it."""
        raise NotImplementedError


def _as_then(states: Sequence[tuple[Variable, Tensor]]) -> AbstractContextManager[Any]:
    """Run a block with the variables' earlier values, and undo its assignments."""
    graph = active_graph.get()
    arrays = [(variable, then.array) for variable, then in states]
    return holding(arrays) if graph is None else graph.separated(arrays)


def _with_own_id(leaf: Any) -> Any:
    """Return an argument with a separate id, because two arguments may be the same tensor."""
    return ops["identity"](leaf) if type(leaf) is Tensor else leaf


def _tensors(result: Any) -> list[Any]:
    """Return the leaves of a result as tensors, without those that are None."""
    leaves = [leaf for leaf in flatten(result) if leaf is not None]
    return [leaf.value if isinstance(leaf, Variable) else as_tensor(leaf) for leaf in leaves]


class Halves(NamedTuple):
    """The forward and backward graphs of one graph.

    Attributes
    ----------
    forward : Graph
        Takes the graph's inputs. Returns its outputs, followed by the values that ``back`` needs.
    back : Graph
        Takes these values, and the gradients of the differentiable outputs. Returns the gradients
        of the differentiable inputs, zeros for an input that nothing depends on.
    """

    forward: Graph
    back: Graph


def halved(graph: Graph, arrays: Sequence[Any]) -> Halves | None:
    """Return the halves of a graph for inputs like these, made once for their shapes and dtypes.

    None if the graph assigns variables, or if a part of its gradient is lost. The run on tensors
    that follows then reports the loss.

    Parameters
    ----------
    graph
        A graph as it was traced.
    arrays
        The inputs of the graph.
    """
    if graph.updates or strictness.get() or active_batches.get():
        return None
    key = tuple([(x.shape, x.dtype) for x in arrays])
    if key in graph.halves:
        found: Halves | None = graph.halves[key]
    else:
        specs = [TensorSpec(*spec) for spec in key]
        found = KERNEL_CACHES.keep(graph, graph.halves, key, lambda: _halved(graph, specs))
    return found


def _halved(graph: Graph, specs: Sequence[TensorSpec]) -> Halves | None:
    whole = Graph(graph.name)
    try:
        with recording_to(()), tracing_into(whole):
            inputs = [Tensor(whole.input(spec)) for spec in specs]
            sources = [x for x in inputs if is_differentiable(x.dtype)]
            with GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(sources)
                found = replay(graph, inputs)
            targets = [y for y in found if is_differentiable(y.dtype)]
            if any(has_unknown_sizes(y.shape) for y in targets) or severed(tape, found, sources):
                return None
            upstream = [whole.input(TensorSpec(y.shape, y.dtype)) for y in targets]
            gradients = tape.gradient(
                targets,
                sources,
                output_gradients=[Tensor(g) for g in upstream],
                unconnected_gradients="zero",
            )
    except TraceError:  # it cannot be traced
        return None
    given = whole.inputs[: len(specs)]
    forward = _part(whole, whole.nodes, given, [whole.adopt(y.array) for y in found])
    done = {id(node) for node in forward.nodes}
    rest = [node for node in whole.nodes if id(node) not in done]
    back = _part(whole, rest, list(upstream), [whole.adopt(g.array) for g in gradients])
    known = {*given, *(y for node in forward.nodes for y in node.outputs)}
    used = [x for node in back.nodes for x in node.inputs if type(x) is Symbol]
    kept = dict.fromkeys(x for x in [*used, *back.outputs] if x in known)
    for node in reversed(forward.nodes):
        # a view of a kept value is not kept in addition to it
        views = getattr(node.op, "view", None) and all(x in kept for x in node.inputs)
        if views and any(y in kept for y in node.outputs):
            back.nodes.insert(0, node)
            for y in node.outputs:
                kept.pop(y, None)
    forward.outputs, back.inputs = [*forward.outputs, *kept], [*kept, *back.inputs]
    return Halves(forward, back)


def _part(whole: Graph, nodes: Any, inputs: list[Symbol], outputs: list[Symbol]) -> Graph:
    part = Graph(whole.name)
    part.inputs, part.nodes, part.outputs = inputs, list(nodes), outputs
    part.constants = dict(whole.constants)
    return prune(part)
