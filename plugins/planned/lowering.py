"""Lowering: a program's nodes as steps that are smaller than ops.

Ops that are one ufunc on NumPy become one step. Others have a rule here (products, sums, casts), or
their portable kernel is traced: what it does with its array namespace is lowered in its turn. What
neither of these serves is a call of its kernel, as the plain executor makes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import numpy as np

from ...core.extend import (
    SCALARS,
    Backend,
    Graph,
    Node,
    Op,
    Read,
    Symbol,
    Variable,
    argument_of,
    folded,
    kernel_of,
    local_constants,
    registry,
    unsure,
)
from . import softmax
from .algebra import one_hot_product
from .steps import Kind, Shape, Step, shape_of, size_of
from .tracing import expanded

__all__ = ["Lowering", "viewed"]


class Lowering:
    """A program in steps.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` gives it.
    owner
        The backend that it runs on.
    arrays
        The arrays of the first call.

    Attributes
    ----------
    steps
        All steps, in order.
    known
        The values that are the same in every run.
    reads
        Which variable's value on entry a symbol is.
    outputs, updates
        As the program's, by symbols of the steps.
    calls
        Why nodes stayed calls: how often by op and reason.
    """

    #: Whether a node that gives one number is a call of its kernel.
    calls_for_numbers = True

    def __init__(self, program: Graph, owner: Backend, arrays: Sequence[Any]) -> None:
        self.owner = owner
        self.known: dict[Symbol, Any] = dict(local_constants(program, arrays))
        self.reads: dict[Symbol, Variable] = {}
        self.steps: list[Step] = []
        self.calls: dict[tuple[str, str], int] = {}
        #: By an elementwise step's result, the step; and results that nobody may want any more.
        self.made: dict[Symbol, Step] = {}
        self.optional: set[Symbol] = set()
        self._same: dict[Symbol, Symbol] = {}
        self._equal: dict[Any, Symbol] = {}
        self._sources: dict[Symbol, Symbol] = {}
        for node in program.nodes:
            self._lower(node)
        self.inputs = list(program.inputs)
        self.outputs = [self.look(x) for x in program.outputs]
        self.updates = {v: self.look(x) for v, x in program.updates.items()}
        needed = {*self.outputs, *self.updates.values()}
        kept = []
        for step in reversed(self.steps):
            optional = step.kind is Kind.VIEW or step.outputs[0] in self.optional
            if not optional or step.out in needed:
                kept.append(step)
                needed.update(x for x in step.inputs if type(x) is Symbol)
        self.steps = kept[::-1]

    def look(self, x: Any) -> Any:
        """Return the symbol that a value goes by; scalars as they are."""
        while type(x) is Symbol and x in self._same:
            x = self._same[x]
        return x

    def kernel(self, node: Node) -> Callable[..., Any]:
        """Return the kernel of a node."""
        return kernel_of(node, self.owner)

    def rule(self, name: str) -> Callable[[Lowering, Node], bool] | None:
        """Return what adds the steps of an op, if there is a rule for it."""
        return _RULES.get(name)

    def ufunc(self, op: Op) -> np.ufunc | None:
        """Return the ufunc of NumPy that an op is, if it is one."""
        kernel = op.kernel_for(self.owner)
        return kernel if isinstance(kernel, np.ufunc) else None

    def viewing(self, node: Node) -> Callable[..., Any]:
        """Return what makes a view of a node's first input."""
        return viewed(kernel_of(node, self.owner), node.inputs[1:])

    def same(self, symbol: Symbol, as_this: Symbol) -> None:
        """Let a symbol be another's value."""
        self._same[symbol] = as_this

    def add(
        self,
        kind: Kind,
        op: str,
        run: Callable[..., Any],
        inputs: Sequence[Any],
        out: Symbol,
        **params: Any,
    ) -> Symbol:
        """Add a step of one result; return the symbol of an equal one if there is one."""
        return self.append(Step(kind, op, run, inputs, (out,), params))

    def append(self, step: Step) -> Symbol:
        """Add a step, as :meth:`add` does."""
        scalars = iter(step.scalars)
        key = (
            step.kind,
            step.op,
            tuple(id(x) if type(x) is Symbol else repr(next(scalars)) for x in step.inputs),
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

    def _lower(self, node: Node, inside: bool = False) -> None:
        """Add the steps of a node; of a kernel's, ``inside``, only such as are no calls."""
        if isinstance(node.op, Read):
            self.reads[node.outputs[0]] = node.op.variable
            return
        inputs = tuple(map(self.look, node.inputs))
        node = Node(node.op, inputs, node.params, node.outputs, node.several, node.witnesses)
        value = folded(node, self.known, self.owner)
        if value is not None:
            self.known[node.outputs[0]] = value
            return
        if node.op.name in _CASTS and not unsure_any(node) and self._cast(node):
            return
        why = self._reason(node) or self._in_steps(node)
        if why is None or self._view(node):
            return
        if inside and shape_of(node.outputs[0]) != ():
            raise NotImplementedError(why)
        assert isinstance(node.op, Op)
        name, run = node.op.name, kernel_of(node, self.owner)
        self.calls[name, why] = self.calls.get((name, why), 0) + 1
        scalars = [argument_of(node, x, self.owner) for x in inputs if type(x) in SCALARS]
        self.steps.append(
            Step(Kind.CALL, name, run, inputs, node.outputs, {}, node.several, scalars)
        )

    def _view(self, node: Node) -> bool:
        """Add a step if what a node gives is a view of its first input, if anything."""
        assert isinstance(node.op, Op)
        x, *likes = node.inputs
        if node.op.name not in _VIEWS or node.witnesses or unsure_any(node):
            return False
        if type(x) is not Symbol or any(type(like) is not Symbol for like in likes):
            return False
        run, (out,) = self.viewing(node), node.outputs
        if x in self.known:
            value = run(self.known[x])
            if size_of(out) <= _SMALL or self.owner.xp.may_share_memory(value, self.known[x]):
                self.known[out] = value
                return True
        added = (1,) * (len(shape_of(out)) - len(shape_of(x)))
        if node.op.name in _RESHAPES and shape_of(out) == added + shape_of(x):
            self.spread(out, x)
        self.add(Kind.VIEW, node.op.name, run, (x,), out, **node.params)
        return True

    def _cast(self, node: Node) -> bool:
        """Add a cast to the dtype that is there, which is nothing, or of one number."""
        x, (out,) = node.inputs[0], node.outputs
        if type(x) is not Symbol or (x.dtype.kind == "c" and x.dtype != out.dtype):
            return False
        if x.dtype == out.dtype:
            self.same(out, x)
        elif shape_of(out) == () and self.calls_for_numbers:
            cast = methodcaller("astype", np.dtype(out.dtype))
            self.steps.append(Step(Kind.CALL, node.op.name, cast, (x,), (out,)))
        else:
            return False
        return True

    def _reason(self, node: Node) -> str | None:
        """Return why a node is a call whatever its op; None if that depends on the op."""
        if node.graphs:
            return "it runs graphs"
        if node.witnesses or unsure_any(node):
            return "a size is not known"
        if any(0 in shape_of(x) for x in (*_symbols(node.inputs), *node.outputs)):
            return "it has no elements"
        if self.calls_for_numbers and all(shape_of(x) == () for x in node.outputs):
            return "it is one number"
        return None

    def _in_steps(self, node: Node) -> str | None:
        """Add the steps of a node; return why it has none."""
        op = node.op
        assert isinstance(op, Op)
        replaced = registry().kernels.get((op.original.name, self.owner.name))
        ufunc = self.ufunc(op)
        if ufunc is not None:
            return None if self._ufunc(node, ufunc) else "its dtype is converted"
        if replaced is not None and not _ours(replaced):
            return "a plugin replaced its kernel"
        rule = self.rule(op.name)
        if rule is not None:
            plain = op.name in _OF_SCALARS or all(type(x) is Symbol for x in node.inputs)
            return None if plain and rule(self, node) else "not of this shape or dtype"
        if replaced is not None and op.name not in _BETTER_PORTABLE:
            return "its kernel is one call"
        nodes = expanded(node)
        if nodes is None:
            return "its kernel is no formula"
        before = len(self.steps), dict(self.known), dict(self._same), dict(self._equal)
        try:
            for part in nodes.nodes:
                self._lower(part, inside=True)
        except NotImplementedError:
            del self.steps[before[0] :]
            _, self.known, self._same, self._equal = before
            return "its kernel is no formula"
        for symbol, result in zip(node.outputs, nodes.outputs, strict=True):
            result = self.look(result)
            if result in self.known:
                self.known[symbol] = self.known[result]
            else:
                self.same(symbol, result)
        return None

    def _ufunc(self, node: Node, ufunc: np.ufunc) -> bool:
        (out,) = node.outputs
        inputs = self.sources(node)
        given = [x.dtype if type(x) is Symbol else type(x) for x in inputs]
        try:
            natural = ufunc.resolve_dtypes((*given, None))[-1]
        except TypeError:
            return False
        if ufunc.nout != 1 or natural != out.dtype:
            return False
        scalars = [argument_of(node, x, self.owner) for x in inputs if type(x) in SCALARS]
        name = ufunc.__name__
        self.append(Step(Kind.ELEMENTWISE, name, ufunc, inputs, (out,), {}, False, scalars))
        return True

    def spread(self, out: Symbol, source: Symbol) -> None:
        """Say that a view repeats what NumPy would broadcast by itself."""
        self._sources[out] = source

    def sources(self, node: Node) -> list[Any]:
        """Return inputs without the views that only repeat what NumPy broadcasts itself."""
        inputs = list(node.inputs)
        for i, x in enumerate(inputs):
            source = self._sources.get(x) if type(x) is Symbol else None
            if source is None:
                continue
            tried = [*inputs[:i], source, *inputs[i + 1 :]]
            # the other operands, of which views may be gone by now, say how far
            if np.broadcast_shapes(*map(shape_of, _symbols(tried))) == node.outputs[0].shape:
                inputs = tried
        return inputs


def unsure_any(node: Node) -> bool:
    """Whether the shape of something that a node takes or gives is not known."""
    return any(unsure(x.shape) for x in (*_symbols(node.inputs), *node.outputs))


def _symbols(values: Sequence[Any]) -> list[Symbol]:
    return [x for x in values if type(x) is Symbol]


def _ours(kernel: Callable[..., Any]) -> bool:
    return kernel is operator.pow or kernel.__module__.startswith(_KERNELS)


_KERNELS = tuple(__name__.replace("planned.lowering", f"{name}.") for name in ("numpy", "cupy"))
#: Ops whose NumPy kernel does at once what the portable one does step by step.
_BETTER_PORTABLE = frozenset({"batch_norm_training", "batch_norm_gradient"})
#: Those of them that keep the order of the elements.
_RESHAPES = frozenset("expand_dims insert_axes reshape reshape_like squeeze".split())
_CASTS = frozenset({"cast", "cast_like"})
#: Up to how many elements a value is kept that is the same in every run.
_SMALL = 2**16
#: Ops whose rule here knows what to do with weak scalars.
_OF_SCALARS = frozenset({"power", "where"})
#: Ops whose result is a view of their first input, or could be; the others say only its shape.
_VIEWS = frozenset(
    "broadcast_like broadcast_to expand_dims flatten_last insert_axes moveaxis reshape "
    "reshape_like split_channels spread_like squeeze swapaxes transpose unreduce_like".split()
)


def viewed(run: Callable[..., Any], likes: Sequence[Any]) -> Callable[..., Any]:
    """Return a kernel with arrays that only have a shape in the place of all inputs but one."""
    if not likes:
        return run
    shapes = [np.broadcast_to(np.zeros((), x.dtype), shape_of(x)) for x in likes]
    return lambda x: run(x, *shapes)


# -- ops with a rule: each adds steps, or returns False --------------------------------------------


def _reduced(lowering: Lowering, node: Node, ufunc: np.ufunc, out: Symbol) -> bool:
    (x,) = node.inputs
    if x.dtype.char not in "fd" or out.dtype != x.dtype:
        return False
    lowering.add(Kind.REDUCTION, ufunc.__name__, ufunc.reduce, (x,), out, **node.params)
    return True


def _reduction(ufunc: np.ufunc) -> Callable[[Lowering, Node], bool]:
    return lambda lowering, node: _reduced(lowering, node, ufunc, node.outputs[0])


def _mean(lowering: Lowering, node: Node) -> bool:
    (x,), (out,) = node.inputs, node.outputs
    total = Symbol(out.graph, out.shape, out.dtype)
    if not _reduced(lowering, node, np.add, total):
        return False
    count = float(size_of(x) // size_of(out))
    scalars = (np.array(count, out.dtype),)
    total = lowering.look(total)
    lowering.append(
        Step(Kind.ELEMENTWISE, "divide", np.divide, (total, count), (out,), {}, False, scalars)
    )
    return True


def _unbroadcast(lowering: Lowering, node: Node) -> bool:
    (x, _), (out,) = node.inputs, node.outputs
    shape, mine = shape_of(out), shape_of(x)
    if x.dtype != out.dtype or x.dtype.char not in "fd":
        return False
    if mine == shape:
        lowering.same(out, x)
        return True
    extra = len(mine) - len(shape)
    axes = [i for i, n in enumerate(mine) if i < extra or (n != 1 and shape[i - extra] == 1)]
    if shape != mine[extra:] and extra:
        return False
    axis = axes[0] if len(axes) == 1 else tuple(axes)
    params = {"axis": axis, "keepdims": not extra}
    lowering.add(Kind.REDUCTION, "add", np.add.reduce, (x,), out, **params)
    return True


def _product(lowering: Lowering, x: Symbol, y: Symbol, out: Symbol, **turned: bool) -> bool:
    """Add a product of matrices; of many matrices by one, as a product of all rows."""
    if {x.dtype, y.dtype} != {out.dtype} or out.dtype.char not in "fd":
        return False
    left, right = shape_of(x), shape_of(y)
    if len(left) < 2 or len(right) < 2:
        return False
    plain = len(right) == 2 and not turned.get("left")
    if plain and one_hot_product(lowering, x, y, out, turned.get("right", False)):
        return True
    if len(left) > 2 and len(right) == 2:
        if turned.get("left"):
            return False
        x = _reshaped(lowering, x, (-1, left[-1]))
        inner = Symbol(out.graph, (shape_of(x)[0], shape_of(out)[-1]), out.dtype)
        inner = lowering.add(Kind.PRODUCT, "matmul", np.matmul, (x, y), inner, **turned)
        _reshaped(lowering, inner, shape_of(out), out)
        return True
    if turned and (len(left) > 2 or len(right) > 2):
        return False
    lowering.add(Kind.PRODUCT, "matmul", np.matmul, (x, y), out, **turned)
    return True


def _reshaped(lowering: Lowering, x: Symbol, shape: Shape, out: Symbol | None = None) -> Symbol:
    if out is None:
        known = np.broadcast_to(np.zeros((), np.int8), shape_of(x)).reshape(shape).shape
        out = Symbol(x.graph, known, x.dtype)
        shape = known
    return lowering.add(Kind.VIEW, "reshape", lambda x: x.reshape(shape), (x,), out)


def _matmul(lowering: Lowering, node: Node) -> bool:
    x, y = node.inputs
    return _product(lowering, x, y, node.outputs[0])


def _adjoint_x(lowering: Lowering, node: Node) -> bool:
    g, y, like = node.inputs
    if len(shape_of(y)) != 2 or len(shape_of(g)) != len(shape_of(like)):
        return False
    return _product(lowering, g, y, node.outputs[0], right=True)


def _adjoint_y(lowering: Lowering, node: Node) -> bool:
    g, x, like = node.inputs
    if len(shape_of(x)) != 2 or len(shape_of(like)) != 2:
        return False
    return _product(lowering, x, g, node.outputs[0], left=True)


def _cast(lowering: Lowering, node: Node) -> bool:
    x, (out,) = node.inputs[0], node.outputs
    if x.dtype.kind == "c":
        return False
    lowering.add(Kind.ELEMENTWISE, "cast", cast_into, (x,), out)
    return True


def cast_into(x: Any, out: Any) -> None:
    """Convert an array to another's dtype."""
    np.copyto(out, x, casting="unsafe")


def _where(lowering: Lowering, node: Node) -> bool:
    condition = node.inputs[0]
    if type(condition) is not Symbol or condition.dtype.kind != "b":
        return False
    inputs = lowering.sources(node)
    run = kernel_of(node, lowering.owner)
    lowering.add(Kind.FRESH, "where", run, inputs, node.outputs[0])
    return True


def _power(lowering: Lowering, node: Node) -> bool:
    (x, exponent), (out,) = node.inputs, node.outputs
    if type(x) is not Symbol or x.dtype.kind != "f" or x.dtype != out.dtype:
        return False
    if type(exponent) in (int, float) and exponent == 2:  # as NumPy's operator does
        lowering.add(Kind.ELEMENTWISE, "square", np.square, (x,), out)
        return True
    scalars = [argument_of(node, y, lowering.owner) for y in node.inputs if type(y) in SCALARS]
    run = kernel_of(node, lowering.owner)
    lowering.append(Step(Kind.FRESH, "power", run, node.inputs, (out,), {}, False, scalars))
    return True


def _repeated(lowering: Lowering, node: Node) -> bool:
    """Note where NumPy would broadcast by itself; the view is there for who needs it."""
    x, (out,) = node.inputs[0], node.outputs
    if x.dtype != out.dtype:
        return False
    aligned = node.op.name != "unreduce_like" or shape_of(x) == ()
    if node.params.get("keepdims"):
        aligned = True
    if aligned:
        lowering.spread(out, x)
    return False  # it is a view all the same


_RULES: dict[str, Callable[[Lowering, Node], bool]] = {
    "sum": _reduction(np.add),
    "max": _reduction(np.maximum),
    "min": _reduction(np.minimum),
    "mean": _mean,
    "unbroadcast_like": _unbroadcast,
    "matmul": _matmul,
    "matmul_adjoint_x": _adjoint_x,
    "matmul_adjoint_y": _adjoint_y,
    **dict.fromkeys(_CASTS, _cast),
    "softmax": softmax.softmax,
    "sparse_softmax_cross_entropy": softmax.cross_entropy,
    "softmax_less_labels": softmax.less_labels,
    "where": _where,
    "power": _power,
    "broadcast_like": _repeated,
    "broadcast_to": _repeated,
    "unreduce_like": _repeated,
}
