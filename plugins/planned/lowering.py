"""Lowering: the nodes of a program as steps that are smaller than ops.

An op that is one ufunc on NumPy becomes one step. Other ops have a rule here (products, sums,
casts), or their portable kernel is traced and lowered as well. All other ops become calls of their
kernels, as in the plain executor.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import partial
from inspect import Parameter, signature
from itertools import chain
from math import prod
from operator import methodcaller
from types import FunctionType
from typing import Any

import numpy as np

from ...core.extend import (
    SCALARS,
    Backend,
    FirstRun,
    Graph,
    Node,
    Op,
    Read,
    Symbol,
    Variable,
    argument_of,
    broadcast_shapes,
    check_specs,
    folded,
    has_unknown_sizes,
    kernel_of,
    local_constants,
    registry,
)
from .batching import batched
from .hoisting import trimmed
from .steps import PlanStep, Shape, StepKind, shape_of, size_of, symbol_like
from .tracing import kernel_graph


class Lowering:
    """A program in steps.

    Parameters
    ----------
    program
        The graph, as returned by ``forward_only``.
    owner
        The backend that runs it.
    arrays
        The arrays of the first call.

    Attributes
    ----------
    steps
        All steps, in order.
    known
        The values that are the same in every run.
    reads
        The variables whose values on entry the symbols are.
    outputs, updates
        Those of the program, as symbols of the steps.
    calls
        The number of nodes that remained calls, by op and reason.
    """

    #: Whether NumPy runs the steps, so that constants may be laid out for it.
    on_host = True
    #: The targets of lowerings that add steps, the first one that an op has counts; and the target
    #: of those that give an elementwise step's form to compiled loops.
    targets: tuple[str, ...] = ("planned",)
    form = "llvm"
    #: The dtypes with fast products of matrices.
    products = "fd"

    def __init__(self, program: Graph, owner: Backend, arrays: Sequence[Any]) -> None:
        self.program = program
        self.owner = owner
        self.known: dict[Symbol, Any] = dict(local_constants(program, arrays))
        self.reads: dict[Symbol, Variable] = {}
        self.steps: list[PlanStep] = []
        self.calls: dict[tuple[str, str], int] = {}
        #: By an elementwise step's result, the step; and results that may not be needed.
        self.made: dict[Symbol, PlanStep] = {}
        self.optional: set[Symbol] = set()
        #: By a known value with repetitions, the one without them.
        self.repeated: dict[Symbol, Symbol] = {}
        #: Values that rules have added and may use again, by keys of their own.
        self.shared: dict[Any, Symbol] = {}
        self._same: dict[Symbol, Symbol] = {}
        self._equal: dict[Any, Symbol] = {}
        self._sources: dict[Symbol, Symbol] = {}
        #: By a value, the booleans that it was multiplied by, the last ones of them.
        self._masks: dict[Symbol, dict[Symbol, None]] = {}
        for node in program.nodes:
            self._lower(node)
        self.inputs = list(program.inputs)
        self.outputs = [self.look(x) for x in program.outputs]
        self.updates = {v: self.look(x) for v, x in program.updates.items()}
        ends = [*self.outputs, *self.updates.values()]
        needed, kept = set(ends), []
        for step in reversed(self.steps):
            step = trimmed(step, needed) if step.kind is StepKind.LOOP else step
            called = step.kind in (StepKind.CALL, StepKind.KERNEL, StepKind.LOOP)
            called = called and step.outputs[0] not in self.optional
            if called or step.out in needed:
                kept.append(step)
                needed.update(step.symbols)
        self.steps = batched(kept[::-1], ends) if self.on_host else kept[::-1]

    def look(self, x: Any) -> Any:
        """Return the symbol that replaces a value; scalars stay as they are."""
        while type(x) is Symbol and x in self._same:
            x = self._same[x]
        return x

    def kernel(self, node: Node) -> Callable[..., Any]:
        """Return the kernel of a node."""
        return kernel_of(node, self.owner)

    def rule(self, name: str) -> Callable[[Lowering, Node], bool] | None:
        """Return the function that adds the steps of an op, if there is one."""
        found = (registry().lowering(name, x, self.owner.name) for x in self.targets)
        return next((rule for rule in found if rule is not None), None)

    def scalars(self, node: Node, inputs: Sequence[Any]) -> list[Any]:
        """Return the arguments of a node's kernel for the numbers among its inputs."""
        return [argument_of(node, x, self.owner) for x in inputs if type(x) in SCALARS]

    def ufunc(self, op: Op) -> np.ufunc | None:
        """Return the NumPy ufunc of an op, if it is one that computes element by element.

        Plans know ufuncs by their names. A plugin's kernel may be a ufunc of another library.
        """
        kernel = op.kernel_for(self.owner)
        if not isinstance(kernel, np.ufunc) or kernel.signature is not None:
            return None
        return kernel if getattr(np, kernel.__name__, None) is kernel else None

    def viewing(self, node: Node) -> Callable[..., Any]:
        """Return a function that makes a view of a node's first input."""
        if _view_of(node) == "reshape":
            return methodcaller("reshape", shape_of(node.outputs[0]))
        return view_kernel(kernel_of(node, self.owner), node.inputs[1:])

    def same(self, symbol: Symbol, as_this: Symbol) -> None:
        """Replace a symbol by another one with the same value."""
        self._same[symbol] = as_this

    def add(
        self,
        kind: StepKind,
        op: str,
        run: Callable[..., Any],
        inputs: Sequence[Any],
        out: Symbol,
        **params: Any,
    ) -> Symbol:
        """Add a step with one result; return the symbol of an equal step if there is one."""
        return self.append(PlanStep(kind, op, run, inputs, (out,), params))

    def append(self, step: PlanStep) -> Symbol:
        """Add a step, like :meth:`add`."""
        key = (
            step.kind,
            step.op,
            tuple(step.arguments(id, _bits)),
            repr(step.params),
            step.out.shape,
            step.out.dtype,
        )
        known = self._equal.setdefault(key, step.out)
        if known is not step.out:
            self.same(step.out, known)
        else:
            self.steps.append(step)
            self.made[known] = step
        return known

    def inlined(self, graph: Graph, values: Sequence[Any]) -> list[Any]:
        """Add the steps of another graph with given inputs; return its outputs."""
        for x, value in zip(graph.inputs, values, strict=True):
            self.same(x, value)
        self.known.update(local_constants(graph, ()))
        for node in graph.nodes:
            self._lower(node)
        return [self.look(x) for x in graph.outputs]

    def _lower(self, node: Node, inside: bool = False) -> None:
        """Add the steps of a node; nodes ``inside`` a kernel must not become calls."""
        if isinstance(node.op, Read):
            self.reads[node.outputs[0]] = node.op.variable
            return
        inputs = tuple(map(self.look, node.inputs))
        node = Node(node.op, inputs, node.params, node.outputs, node.several, node.witnesses)
        value = folded(node, self.known, self.owner)
        if value is not None:
            self.known[node.outputs[0]] = self._plain(value)
            return
        why = self._reason(node) or self._in_steps(node)
        if why is None or self._view(node):
            return
        if inside and shape_of(node.outputs[0]) != ():
            raise NotImplementedError(why)
        assert isinstance(node.op, Op)
        name, run, view = node.op.name, self._checked_kernel(node), _view_of(node)
        self.calls[name, why] = self.calls.get((name, why), 0) + 1
        scalars = self.scalars(node, inputs)
        kind = StepKind.KERNEL if self._writes(node) else StepKind.CALL
        self.steps.append(
            PlanStep(kind, name, run, inputs, node.outputs, {}, node.several, scalars, view)
        )

    def _writes(self, node: Node) -> bool:
        """Return whether a node's kernel can write its result to an array that it receives."""
        if not self.on_host or self._reason(node) or node.several or len(node.outputs) != 1:
            return False
        kernel: Any = kernel_of(node, self.owner)
        kernel = kernel.func if type(kernel) is partial else kernel
        if type(kernel) is not FunctionType:
            return False
        given = signature(kernel).parameters.get("out")
        return given is not None and given.kind is Parameter.KEYWORD_ONLY

    def _checked_kernel(self, node: Node) -> Callable[..., Any]:
        """Return a node's kernel, whose first results are compared with the trace's."""
        op, run = node.op, kernel_of(node, self.owner)
        assert isinstance(op, Op)
        if self.owner.name in op.original.held:
            return run
        return FirstRun(op.original, self.owner, run, node.outputs)

    def _view(self, node: Node) -> bool:
        """Add a step if a node's result is a view of its first input."""
        assert isinstance(node.op, Op)
        x, *likes = node.inputs
        view = _view_of(node)
        if not view or len(node.outputs) != 1 or node.witnesses or has_unknown_shapes(node):
            return False
        if self._is_replaced(node):
            return False
        if type(x) is not Symbol or any(type(like) is not Symbol for like in likes):
            return False
        (out,) = node.outputs
        if self.owner.name not in node.op.original.held:
            self._check_view(node)
        run = self.viewing(node)
        if x in self.known:
            value = run(self.known[x])
            if size_of(out) <= _SMALL or self.owner.xp.may_share_memory(value, self.known[x]):
                self.known[out] = self._plain(value)
                return True
        added = (1,) * (len(shape_of(out)) - len(shape_of(x)))
        if view == "reshape" and shape_of(out) == added + shape_of(x):
            self.spread(out, x)
        self.append(
            PlanStep(StepKind.VIEW, node.op.name, run, (x,), (out,), node.params, view=view)
        )
        return True

    def _check_view(self, node: Node) -> None:
        """Raise if a view's shape rule is wrong: its kernel may not even be called."""
        assert isinstance(node.op, Op)
        (out,) = node.outputs
        x = node.inputs[0]
        host = registry().host_backend
        given = np.broadcast_to(np.zeros((), x.dtype), shape_of(x))
        try:
            found = view_kernel(kernel_of(node, host), node.inputs[1:])(given)
        except Exception:  # the run raises it, with the op's name
            return
        check_specs(node.op, host, [found], [(out.shape, out.dtype)])

    def _reason(self, node: Node) -> str | None:
        """Return why a node must be a call, whatever its op; None if that depends on the op."""
        if node.witnesses or has_unknown_shapes(node):
            return "a size is unknown"
        if any(0 in shape_of(x) for x in (*_symbols(node.inputs), *node.outputs)):
            return "it has no elements"
        return None

    def _is_replaced(self, node: Node) -> bool:
        """Return whether a plugin replaced the kernel of a node's op, so that it must be called."""
        assert isinstance(node.op, Op)
        return registry().replaced(node.op.original.name, self.owner.name) is not None

    def _grown(self) -> list[Any]:
        return [self.steps, self.made, self.known, self.shared, self._same, self._equal]

    def call_lines(self) -> list[str]:
        """Return a line for each op that runs as a call of its kernel, with the reason."""
        return [
            f"  a call of the kernel of {op}, {times} times: {why}"
            for (op, why), times in self.calls.items()
        ]

    def mark(self) -> list[int]:
        """Return the current position, for :meth:`back`."""
        return list(map(len, self._grown()))

    def back(self, mark: Sequence[int]) -> None:
        """Remove everything that was added since."""
        for entries, count in zip(self._grown(), mark, strict=True):
            while len(entries) > count:  # the last entries, also of dictionaries
                entries.popitem() if isinstance(entries, dict) else entries.pop()

    def _in_steps(self, node: Node) -> str | None:
        """Add the steps of a node; return the reason if it has none."""
        op = node.op
        assert isinstance(op, Op)
        known, name, backend = registry(), op.original.name, self.owner.name
        rule = self.rule(name)
        if node.graphs:
            return None if rule is not None and rule(self, node) else "it runs graphs"
        ufunc = self.ufunc(op)
        if ufunc is not None:
            return None if self._ufunc(node, ufunc) else "its dtype is converted"
        if rule is not None:
            return None if rule(self, node) else "no steps for its shape, dtype or setting"
        if op.batch == "elementwise" and known.lowering(name, self.form, backend) is not None:
            return None if self._formed(node) else "no steps for its shape, dtype or setting"
        if known.replaced(name, backend) is not None:
            return "a plugin replaced its kernel"
        if known.owner("kernel", (name, backend)) is not None and not op.inline:
            return "the backend has its own kernel for it"
        if op.host:
            return "its kernel runs on the host"
        return self.expand(node)

    def expand(self, node: Node) -> str | None:
        """Add the steps of a node's portable kernel; return the reason if it has none."""
        nodes = kernel_graph(node)
        if nodes is None:
            return "its kernel cannot be divided into simpler ops"
        if any(map(self._is_replaced, nodes.nodes)):  # eagerly, NumPy's function computes this part
            return "a plugin replaced the kernel of an op in its formula"
        before = self.mark()
        try:
            for part in nodes.nodes:
                self._lower(part, inside=True)
        except NotImplementedError:
            self.back(before)
            return "its kernel cannot be divided into simpler ops"
        for symbol, result in zip(node.outputs, nodes.outputs, strict=True):
            result = self.look(result)
            if result in self.known:
                self.known[symbol] = self.known[result]
            else:
                self.same(symbol, result)
        return None

    def _formed(self, node: Node) -> bool:
        """Add an elementwise op as one step, since a plugin has its form for compiled loops."""
        if node.params or len(node.outputs) != 1:
            return False
        scalars = self.scalars(node, node.inputs)
        inputs, run = self.sources(node), self._checked_kernel(node)
        self.append(
            PlanStep(StepKind.FRESH, node.op.name, run, inputs, node.outputs, scalars=scalars)
        )
        return True

    def _ufunc(self, node: Node, ufunc: np.ufunc) -> bool:
        (out,) = node.outputs
        inputs = [self._whole(x, out) for x in self.sources(node)]
        given = [x.dtype if type(x) is Symbol else type(x) for x in inputs]
        try:
            natural = ufunc.resolve_dtypes((*given, None))[-1]
        except TypeError:
            return False
        if ufunc.nout != 1 or natural != out.dtype:
            return False
        if self._before_repeating(node, ufunc):
            return True
        assert isinstance(node.op, Op)
        shape: Any = broadcast_shapes(*map(shape_of, _symbols(inputs)), op=node.op.name)
        if shape != shape_of(out):
            found = np.broadcast_to(np.zeros((), natural), shape)
            check_specs(node.op, self.owner, [found], [(out.shape, out.dtype)])
        scalars = self.scalars(node, inputs)
        name = ufunc.__name__
        if self._is_masked(name, inputs, out):
            return True
        quick = _OF_NUMBERS.get(name) if self.on_host else None
        if (
            quick is not None
            and shape_of(out) == ()
            and out.dtype.char in "fd"
            and set(given) <= {out.dtype, float, int}
        ):
            scalars = [x[()] if type(x) is np.ndarray else x for x in scalars]
            self.append(PlanStep(StepKind.FRESH, name, quick, inputs, (out,), scalars=scalars))
            return True
        self.append(PlanStep(StepKind.ELEMENTWISE, name, ufunc, inputs, (out,), scalars=scalars))
        return True

    def _before_repeating(self, node: Node, ufunc: np.ufunc) -> bool:
        """Add a ufunc of values that only repeat others as one of these, repeated afterwards."""
        (out,) = node.outputs
        inputs = [self._sources.get(x, x) if type(x) is Symbol else x for x in node.inputs]
        shape: Any = broadcast_shapes(*map(shape_of, _symbols(inputs)))
        if 2 * prod(shape) > size_of(out):
            return False
        small = symbol_like(out, shape)
        if not self._ufunc(Node(node.op, tuple(inputs), node.params, (small,)), ufunc):
            return False
        small, whole = self.look(small), shape_of(out)
        run = partial(np.broadcast_to, shape=whole)
        self.append(PlanStep(StepKind.VIEW, "broadcast_to", run, (small,), (out,), {"to": whole}))
        self.spread(out, small)
        return True

    def _whole(self, x: Any, out: Symbol) -> Any:
        """Return an operand as large as the result, if it is a constant and small."""
        if x not in self.known or not self.on_host:
            return x
        if x.shape in ((), out.shape) or size_of(out) > _FEW:
            return x
        key = x, shape_of(out)
        whole = self._equal.get(key)
        if whole is None:
            whole = self._equal[key] = symbol_like(out, dtype=x.dtype)
            self.known[whole] = np.broadcast_to(self.known[x], shape_of(out)).copy()
            self.repeated[whole] = x
        return whole

    def _is_masked(self, name: str, inputs: Sequence[Any], out: Symbol) -> bool:
        """Return whether a product with booleans changes nothing: it is 0 or nan where they are 0.

        That holds after one such product, after further multiplications, and for sums of such
        values.
        """
        masks = [
            {x: None} if x.dtype.kind == "b" else self._masks.get(x, {}) for x in _symbols(inputs)
        ]
        if out.dtype.kind != "f" or not masks:
            return False
        if name == "multiply":
            for x, mask in (inputs, inputs[::-1]):
                if not type(x) is type(mask) is Symbol or x.shape != out.shape:
                    continue
                if mask in self._masks.get(x, ()):
                    self.same(out, x)
                    return True
            masks.sort(key=len, reverse=True)
            every = dict.fromkeys(chain.from_iterable(masks))
            self._masks[out] = dict.fromkeys([*every][-_MASKS:])
        elif name in ("add", "subtract") and len(masks) == 2:
            self._masks[out] = dict.fromkeys(mask for mask in masks[0] if mask in masks[1])
        return False

    def _plain(self, value: Any) -> Any:
        """Return a small value as a contiguous array: other strides make products slow."""
        small = self.on_host and np.ndim(value) and value.size <= _SMALL
        return np.ascontiguousarray(value) if small else value

    def spread(self, out: Symbol, source: Symbol) -> None:
        """Record that a view only repeats what NumPy would broadcast by itself."""
        self._sources[out] = source

    def sources(self, node: Node) -> list[Any]:
        """Return inputs without views that only repeat what NumPy would broadcast by itself."""
        inputs = list(node.inputs)
        for i, x in enumerate(inputs):
            source = self._sources.get(x) if type(x) is Symbol else None
            if source is None:
                continue
            tried = [*inputs[:i], source, *inputs[i + 1 :]]
            # the other operands, some of them without their views, decide the shape
            if broadcast_shapes(*map(shape_of, _symbols(tried))) == node.outputs[0].shape:
                inputs = tried
        return inputs


def has_unknown_shapes(node: Node) -> bool:
    """Return whether the shape of an input or output of a node is unknown."""
    return any(has_unknown_sizes(x.shape) for x in (*_symbols(node.inputs), *node.outputs))


def _bits(scalar: Any) -> Any:
    """Return a key that distinguishes numbers: 0 differs from -0, and nan equals itself."""
    return (scalar.dtype.char, scalar.tobytes()) if type(scalar) is np.ndarray else repr(scalar)


def _symbols(values: Sequence[Any]) -> list[Symbol]:
    return [x for x in values if type(x) is Symbol]


#: Functions that take a tenth of a ufunc's time for two floating-point numbers.
_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "divide": operator.truediv,
    "multiply": operator.mul,
    "subtract": operator.sub,
}
#: The maximum of elements of a constant that is kept, and of one with repetitions.
_SMALL, _FEW = 2**16, 2**12
#: The maximum number of booleans to remember for a value.
_MASKS = 8


def _view_of(node: Node) -> bool | str | None:
    """Return what the record of a node's op says of views."""
    view: bool | str | None = getattr(node.op, "view", None)
    return view


def view_kernel(run: Callable[..., Any], likes: Sequence[Any]) -> Callable[..., Any]:
    """Return a kernel whose inputs after the first are replaced by arrays of the same shape."""
    if not likes:
        return run
    shapes = [np.broadcast_to(np.zeros((), x.dtype), shape_of(x)) for x in likes]
    return lambda x: run(x, *shapes)


def reshaped(lowering: Lowering, x: Symbol, shape: Shape, out: Symbol | None = None) -> Symbol:
    """Add a view of a value with another shape, of which one size may be -1.

    Parameters
    ----------
    lowering
        The lowering to which the step is added.
    x
        The value.
    shape
        The other shape.
    out
        The symbol of the view; a new one by default.
    """
    if out is None:
        shape = np.broadcast_to(np.zeros((), np.int8), shape_of(x)).reshape(shape).shape
        if shape == shape_of(x):
            return x
        out = symbol_like(x, shape)
    step = PlanStep(
        StepKind.VIEW, "reshape", lambda x: x.reshape(shape), (x,), (out,), view="reshape"
    )
    return lowering.append(step)
