"""Ops that run graphs (``cond``, ``scan``): ``trace_branch`` and ``Program``.

A branch is a function as a separate, self-contained graph. Every captured variable, and every
captured tensor that is traced, batched or watched by a tape, becomes an input of the branch and of
the op that runs it.

A program is such an op, with gradients of every order from one description. ``forward`` runs it on
tensors. A tape that records ``forward`` computes its gradient. This gradient is the same op with
``order`` one higher. The op and its gradients can therefore be traced, batched and saved like any
other op.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import copy_context
from typing import Any

from ..base.array_types import TensorSpec, next_id
from ..base.context import active_tapes, muting, recording_to, strictness, tracing_into
from ..base.dtypes import SCALARS, is_differentiable
from ..base.observers import Recorder
from ..base.sizes import known_size
from ..base.table import F, ops
from ..base.tree import flatten
from ..batches.batched import (
    HIDE,
    UNHIDE,
    Batched,
    as_batched,
    new_level,
    outermost,
    running_level,
    seen_rows,
)
from ..graphs.capture import Capture
from ..graphs.graph import Graph
from ..graphs.nodes import Node, Symbol
from ..graphs.optimize import prune
from ..graphs.replay import own_shapes, replay
from ..ops.dispatch import is_transformed
from ..ops.rule import Composed
from ..tape.missing_gradients import raise_or_warn, severed
from ..tape.tape import GradientTape
from ..tensors.convert import as_tensor
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable


class Branch(Graph):
    """A graph that takes captured tensors and variables as further inputs.

    Attributes
    ----------
    taken
        The captured tensors, by the symbols of the inputs that come after the explicit ones.
    result
        What the function returned, in its structure; outputs are its leaves that are not None.
    assigned
        The variables that the function assigns.
    """

    def __init__(self, name: str, parent: Graph | None) -> None:
        super().__init__(name, parent)
        self.level = new_level()
        self.taken: dict[Symbol, Tensor] = {}
        self.result: Any = None
        self.assigned: dict[Variable, None] = {}
        self._inside: dict[int, Symbol] = {}  # by the id of a captured array
        self._held: dict[Variable, Symbol] = {}
        self.assignments: set[Node] = set()

    def adopt(self, array: Any) -> Any:
        if type(array) in SCALARS or (type(array) is Symbol and array.graph is self):
            return array
        if not is_transformed(array):
            return self.constant(array)
        known = self._inside.get(id(array))
        if known is None:
            known = self._inside[id(array)] = self.take(Tensor.with_id(array, 0))
        return known

    def take(self, tensor: Tensor) -> Symbol:
        """Add an input for a tensor from outside."""
        array = tensor.array
        symbol = self.input(TensorSpec(array.shape, array.dtype))
        symbol.integers = getattr(array, "integers", None)
        self.taken[symbol] = tensor
        return symbol

    def read(self, variable: Variable) -> Symbol:
        symbol = self._reads.get(variable)
        if symbol is None:
            array = variable.array if self.parent is None else self.parent.read(variable)
            symbol = self._reads[variable] = self.take(Tensor.with_id(array, variable.id))
        return symbol

    def hold(self, variable: Variable) -> None:
        """Add an input for the value of a variable that the function assigns."""
        symbol = self.input(TensorSpec(variable.shape, variable.dtype))
        self._reads[variable] = self._held[variable] = symbol

    def assign(self, variable: Variable, array: Any) -> None:
        # from here on, reads give the new value; gradients go to the variable, not to that value
        self.assigned[variable] = None
        before = self._held.get(variable)
        if before is None:
            self._reads[variable] = self.add(ops["stop_gradient"], (array,), {})
        else:
            self._reads[variable] = self.add(ops["assigned"], (array, before), {})
        self.assignments.add(self.nodes[-1])


class _BranchCapture(Capture[Branch]):
    """Turns tensors from outside into inputs of a branch, if tapes may follow them."""

    def __init__(self, branch: Branch, around: tuple[Recorder, ...]) -> None:
        super().__init__(branch)
        self._around = around
        self._outside = copy_context()
        self._symbols: dict[int, Symbol] = {}  # by a tensor's id: tensors may share an array

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Report to the outer recorders that a variable is read."""
        for recorder in self._around:
            recorder.accessed(variable, read)

    def accessed_by_rule(self, variable: Variable, read: Tensor) -> None:
        for recorder in self._around:
            recorder.accessed_by_rule(variable, read)

    def record_read(self, *read: Any) -> None:
        """Report to the outer recorders that a value is read."""
        for recorder in self._around:
            recorder.record_read(*read)

    def _is_reported(self, node: Node) -> bool:
        return node not in self.graph.assignments

    def _computed(self, method: str, arguments: tuple[Any, ...], inputs: Sequence[Any]) -> bool:
        # from constants only: computed here, once, and reported to the outer recorders, which may
        # compute too (tangents): outside the branch
        for recorder in self._around:
            self._outside.run(getattr(recorder, method), *arguments)
        return True

    def symbol(self, x: Tensor) -> Symbol:
        branch = self.graph
        if not self.is_outside(x) or (type(x.array) is Symbol and x.array.graph is branch):
            own: Symbol = branch.adopt(x.array)
            return own
        symbol = self._symbols.get(x.id)
        if symbol is not None:
            return symbol
        symbol = branch.adopt(x.array)
        if symbol in branch.taken and not branch.taken[symbol].id:
            branch.taken[symbol] = x  # itself: what is known of it may live only as long
        elif symbol in branch.taken or is_differentiable(x.dtype):
            symbol = branch.take(x)
        self._symbols[x.id] = symbol
        return symbol


def trace_branch(
    name: str,
    fn: Callable[..., Any],
    inputs: Sequence[TensorSpec],
    parent: Graph | None,
    held: Sequence[Variable] = (),
) -> Branch:
    """Trace a function of a flat list of tensors; its results are the graph's outputs.

    Each variable in ``held`` has an input after the explicit ones, and an output after the results:
    its assigned value.
    """
    branch = Branch(name, parent)
    taker = _BranchCapture(branch, active_tapes.get())
    with tracing_into(branch, taker):
        given = [Tensor(branch.input(spec)) for spec in inputs]
        for variable in held:
            branch.hold(variable)
        branch.result = fn(*given)
        leaves = [as_tensor(leaf) for leaf in flatten(branch.result) if leaf is not None]
        branch.outputs = [taker.symbol(leaf) for leaf in leaves]
        branch.outputs += [branch.read(variable) for variable in held]
    return prune(branch)  # type: ignore[return-value]


def holding(trace: Callable[[list[Variable]], Sequence[Branch]]) -> tuple[Any, list[Variable]]:
    """Trace branches, and trace them again with the variables that they assign."""
    held: dict[Variable, None] = {}
    again = False
    while True:
        first = next_id()
        branches = trace(list(held))
        # a variable that each trace creates belongs to the branch
        found = {
            v: None for branch in branches for v in branch.assigned if v.id < first or not again
        }
        if found.keys() == held.keys():
            return branches, list(held)
        held, again = found, True


def joined(branches: Sequence[Branch], explicit: int) -> tuple[list[Graph], list[Tensor]]:
    """Give branches the same inputs after the explicit ones; return them and these inputs."""
    taken: dict[tuple[int, int], Tensor] = {}
    for branch in branches:
        for tensor in branch.taken.values():
            taken.setdefault((id(tensor.array), tensor.id), tensor)
    graphs: list[Graph] = []
    for branch in branches:
        graph = Graph(branch.name)
        graph.nodes, graph.outputs, graph.constants = (
            branch.nodes,
            branch.outputs,
            branch.constants,
        )
        graph.homes = branch.homes
        graph.inputs = branch.inputs[:explicit]
        own = {(id(x.array), x.id): symbol for symbol, x in branch.taken.items()}
        for key, tensor in taken.items():
            symbol = own.get(key)
            if symbol is None:
                symbol = Symbol(graph, tensor.array.shape, tensor.array.dtype)
            graph.inputs.append(symbol)
        graphs.append(graph)
    return graphs, list(taken.values())


# -- programs --------------------------------------------------------------------------------------


class Program(Op):
    """An op whose parameters are graphs; subclasses define what it does.

    Parameters
    ----------
    name, doc
        As for :class:`Op`.
    params
        The parameters with their defaults; ``inspect.Parameter.empty`` for a required one.
    """

    __slots__ = ()

    def __init__(self, name: str, params: dict[str, Any], doc: str) -> None:
        defaults = {k: v for k, v in params.items() if v is not inspect.Parameter.empty}

        def kernel(xp: Any, *arrays: Any, order: int = 0, **given: Any) -> list[Any]:
            settings = {**defaults, **given}
            if order == 0:
                return self.quick_run(xp, arrays, **settings)
            with muting() if order else nullcontext():  # effects happened in the first run
                quick = self.quick_pull(xp, arrays, **settings) if order == 1 else None
                if quick is not None:
                    return quick
                with recording_to(()):
                    found = self.eager([Tensor(x) for x in arrays], order, settings)
                return [y.array for y in found]

        keyword = inspect.Parameter.KEYWORD_ONLY
        kernel.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter("xp", inspect.Parameter.POSITIONAL_OR_KEYWORD),
                inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL),
                *(inspect.Parameter(key, keyword, default=v) for key, v in params.items()),
                inspect.Parameter("order", keyword, default=0),
            ]
        )
        super().__init__(
            name,
            kernel,
            vjp=self._pull,
            infer=self._infer,
            batch=Composed(self._batch),
            doc=doc,
        )

    # -- what a subclass defines -----------------------------------------------------------------

    def quick_run(self, xp: Any, arrays: Sequence[Any], **params: Any) -> list[Any]:
        """Run on raw arrays."""
        raise NotImplementedError

    def quick_pull(self, xp: Any, arrays: Sequence[Any], **params: Any) -> list[Any] | None:
        """Return the gradients of first order on raw arrays; None if a tape should compute them."""
        return None

    def joint(self, run: Node, pull: Node) -> list[Node] | None:
        """Return the nodes that replace a node of this op and its gradient's node.

        The first replaces ``run``, and the others replace ``pull``. None keeps both.
        """
        return None

    def forward(self, tensors: Sequence[Tensor], **params: Any) -> list[Tensor]:
        """Run on tensors, as other ops do."""
        raise NotImplementedError

    def results(self, specs: Sequence[Any], **params: Any) -> list[tuple[Any, Any]]:
        """Return the shapes and dtypes of the results; raise if inputs do not fit the graphs."""
        raise NotImplementedError

    def layout(self, **params: Any) -> tuple[list[bool], list[bool]]:
        """Return for each input, and each result, whether its first axis counts steps."""
        raise NotImplementedError

    def result_dtypes(self, **params: Any) -> list[Any]:
        """Return the dtypes of the results."""
        raise NotImplementedError

    def in_batch(
        self, arrays: Sequence[Any], level: int, batched: list[bool], **params: Any
    ) -> dict[str, Any] | None:
        """Return the parameters for inputs of which those in ``batched`` have a batch axis first.

        None if values that differ between examples decide what runs. ``forward`` then runs on
        batches.
        """
        raise NotImplementedError

    def carried(self, **params: Any) -> int:
        """Return the number of inputs, from the first, that a step replaces by its results."""
        return 0

    #: The number of inputs, from the first, that never have a batch axis.
    fixed = 0
    #: Whether it ends for any inputs.
    ends = True

    # -- orders ----------------------------------------------------------------------------------

    def _orders(
        self, specs: Sequence[Any], order: int, params: dict[str, Any]
    ) -> list[tuple[list[bool], list[int], list[bool]]]:
        """Return input layouts, differentiable results and result layouts of orders to ``order``.

        The inputs of an order are those of the order before, and the gradients of its
        differentiable results. The results of an order are the gradients of the differentiable
        inputs of the order before.
        """
        inputs, results = self.layout(**params)
        followed = [i for i, t in enumerate(self.result_dtypes(**params)) if is_differentiable(t)]
        steps = [(inputs, followed, results)]
        for _ in range(order):
            before, followed, results = steps[-1]
            wanted = [i for i in range(len(before)) if is_differentiable(specs[i].dtype)]
            steps.append(
                (
                    [*before, *(results[i] for i in followed)],
                    list(range(len(wanted))),
                    [before[i] for i in wanted],
                )
            )
            if len(steps[-1][0]) > len(specs):
                break
        if len(steps) <= order or len(steps[order][0]) != len(specs):
            raise ValueError(f"{self.name}: {len(specs)} inputs do not fit its graphs")
        return steps

    def eager(self, tensors: list[Tensor], order: int, params: dict[str, Any]) -> list[Tensor]:
        """Run the gradient of an order on tensors, each with a separate id."""
        if order == 0:
            return self.forward(tensors, **params)
        followed = self._orders(tensors, order, params)[order - 1][1]
        count = len(tensors) - len(followed)
        xs, gs = tensors[:count], tensors[count:]
        sources = [x for x in xs if is_differentiable(x.dtype)]
        strict = strictness.get()
        with GradientTape(watch_accessed_variables=False, strict=strict) as tape:
            tape.watch(sources)
            ys = self.eager(xs, order - 1, params)
        if not strict:
            raise_or_warn(severed(tape, ys, sources), False)
        found: list[Tensor] = tape.gradient(
            [ys[i] for i in followed],
            sources,
            output_gradients=gs,
            unconnected_gradients="zero",
        )
        return found

    def _pull(
        self, gs: Any, inputs: Any, outputs: Any, needed: Any, order: int = 0, **params: Any
    ) -> list[Any]:
        given = [g for g, y in zip(gs, outputs, strict=True) if is_differentiable(y.dtype)]
        found = iter(F[self.name](*inputs, *given, order=order + 1, **params))
        return [next(found) if is_differentiable(x.dtype) else None for x in inputs]

    def _infer(self, *specs: Any, order: int = 0, **params: Any) -> list[tuple[Any, Any]]:
        count = len(self.layout(**params)[0])
        if len(specs) < count or type(order) is not int or not 0 <= order <= 8:
            raise ValueError(f"{self.name}: {len(specs)} inputs do not fit its graphs")
        results = self.results(specs[:count], **params)
        if order == 0 and len(specs) == count:
            return results
        before = len(self._orders(specs, order, params)[order - 1][0])
        return [(x.shape, x.dtype) for x in specs[:before] if is_differentiable(x.dtype)]

    # -- batches ---------------------------------------------------------------------------------

    def _batch(self, *inputs: Any, order: int = 0, **params: Any) -> list[Any]:
        """Run on batches: on arrays, or on tensors that the active recorders follow."""
        followed = any(type(x) is Tensor for x in inputs)
        arrays = [x.array if type(x) is Tensor else x for x in inputs]
        level = outermost(arrays)
        decides = arrays[: len(self.layout(**params)[0])]
        # the same steps run for all examples if only upstream gradients differ
        alike = not any(map(is_transformed, decides))
        batched = [type(x) is Batched and x.level == level for x in arrays]
        # what examples share stays one array; a gradient of it differs from example to example
        start, stop = (0, self.carried(**params)) if order == 0 else (self.fixed, len(arrays))
        whole = [b or start <= i < stop for i, b in enumerate(batched)]
        inside = None if alike else self.in_batch(arrays, level, whole, **params)
        if inside is None:
            with muting() if order else nullcontext():
                if followed:
                    return self.eager([_with_own_id(x) for x in inputs], order, params)
                with recording_to(()):
                    found = self.eager([Tensor(x) for x in arrays], order, params)
                return [y.array for y in found]
        steps = self._orders(arrays, order, params)
        leave, enter = _OF_TENSORS if followed else _OF_ARRAYS
        inner = [leave(x, level) if b else x for x, b in zip(inputs, batched, strict=True)]
        like = inner[batched.index(True)]
        given = []
        for x, b, w, counts in zip(inner, batched, whole, steps[order][0], strict=True):
            x = as_batched(x, like) if w and not b else x
            given.append(F.swapaxes(x, axis1=0, axis2=1) if w and counts else x)
        return [
            enter(F.swapaxes(y, axis1=0, axis2=1) if counts else y, level)
            for y, counts in zip(
                self.raw(*given, order=order, **inside), steps[order][2], strict=True
            )
        ]


#: How arrays, and tensors, leave a batch and enter it.
_OF_ARRAYS: Any = (lambda x, level: seen_rows(x), Batched)
_OF_TENSORS: Any = (
    lambda x, level: UNHIDE(x, x, level=level),
    lambda y, level: Op.__call__(HIDE, y, level=level),
)


def _with_own_id(x: Any) -> Tensor:
    """Return an input as a tensor with a separate id."""
    result: Tensor = ops["identity"](x) if type(x) is Tensor else Tensor(x)
    return result


def batched_graph(
    graph: Graph,
    size: Any,
    batched: Sequence[bool],
    run: Callable[[list[Tensor]], list[Tensor]] | None = None,
) -> Graph:
    """Return a graph whose outputs have a leading axis for examples, as have some of its inputs.

    ``batched`` says which inputs. ``run(inputs)`` computes one example; by default, it runs the
    graph.
    """
    result = Graph(graph.name)
    size = size if known_size(size) else None
    with running_level() as level, tracing_into(result):
        inputs: list[Symbol] = []
        for x, shape, b in zip(graph.inputs, own_shapes(graph.inputs), batched, strict=True):
            whole = shape if shape is None or not b else (size, *shape)
            symbol = result.input(TensorSpec(whole, x.dtype))
            if b and size is None and symbol.shape is not None:
                size = symbol.shape[0]  # the same unknown size for all inputs
            inputs.append(symbol)
        given = [
            Tensor(HIDE.raw(x, level=level) if b else x)
            for x, b in zip(inputs, batched, strict=True)
        ]
        found = replay(graph, given) if run is None else run(given)
        like = inputs[list(batched).index(True)]
        result.outputs = [result.adopt(UNHIDE.raw(y.array, like, level=level)) for y in found]
    return result
