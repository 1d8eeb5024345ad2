"""Custom gradients as nodes: traces a gradient function into a separate graph.

A gradient function may call the function whose gradient it is, directly or through others. Such a
call does not trace the gradient function again. Its node refers to a ``SharedRule``: a graph that
takes the function's arguments, runs the function again, and contains nodes that refer to itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextvars import Context, ContextVar, copy_context
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..base.array_types import TensorSpec
from ..base.context import Setting, active_tapes, recording_to, tracing_into
from ..base.dtypes import is_differentiable
from ..base.observers import Recorder
from ..batches.batched import HIDE, InBatch, outermost
from ..errors import TraceError
from ..tensors.tensor import Tensor
from .capture import Capture, Closure
from .graph import Graph
from .nodes import BeyondOrder, CustomGradient, Refusal, SharedRule, Symbol
from .optimize import prune

# How many shared rules one function may have: one for each kind of arguments.
_MOST_RULES = 32
# How many functions of the same code may call each other in rules, each a new function.
_DEEPEST = 32
# How often a rule is traced until it is known which values from outside it uses.
_PASSES = 8


class GradientFunction(Protocol):
    """A gradient function, called with upstream gradients while it is traced.

    Attributes
    ----------
    grad_fn
        The user's function, for messages.
    specs
        The shape and dtype of each argument.
    lost
        The places of arguments that results depend on and that it leaves out.
    refusal
        Why it cannot run, if that is known; otherwise None.
    function
        A key that is equal for calls of the same function; None if it cannot call itself.
    code
        The function's code, which functions with other keys may share.
    key
        The rest of what selects a shared rule: Python values among the arguments.
    given
        The arrays that a shared rule receives, from which ``again`` makes it.
    """

    grad_fn: Any
    specs: list[Any]
    refusal: Any
    function: Any
    code: Any
    key: Any
    given: list[Any]

    @property
    def lost(self) -> Collection[int]:
        """The places of arguments that results depend on and that it leaves out."""

    def __call__(
        self, upstream: Sequence[Tensor], ended: Collection[int] = ()
    ) -> list[Tensor | None]:
        """Return the gradient of each argument.

        Parameters
        ----------
        upstream
            One gradient per result.
        ended
            Levels of batches over whose examples it may sum the gradient of what they share, as if
            these batches had ended.
        """

    def again(self, given: list[Tensor]) -> tuple[Any, list[Any]]:
        """Run the function on other tensors; return its gradient function and results."""


#: What starts a trace of a rule: returns the gradient function, its results, and the symbols of
#: inputs besides the upstream gradients.
_Start: TypeAlias = Callable[[Graph], "tuple[GradientFunction, list[Any], list[Symbol]]"]


def add_custom(
    name: str, graph: Graph, backward: GradientFunction, inputs: list[Any], results: list[Any]
) -> list[Any]:
    """Return results with a custom gradient, as values of the traced graph."""
    level = outermost((*inputs, *results))
    if level < graph.level:  # batches from outside a branch: it captures one example's value
        inputs, results = ([graph.adopt(x) for x in part] for part in (inputs, results))
        level = 0
    if level:  # one node serves all examples
        lowered = InBatch(backward, inputs, results, level)
        rows = add_custom(name, graph, lowered, lowered.inputs, lowered.results)
        return [HIDE.raw(array, level=level) for array in rows]
    if not any(type(array) is Symbol for array in (*results, *inputs)):
        return results
    rule, connected, saved = _rule(name, graph, backward, results)
    lost = tuple(sorted(backward.lost))
    kind = CustomGradient(name, len(results), len(inputs), rule, connected, lost)
    return list(graph.custom(kind, results, inputs, saved))


_Found: TypeAlias = "tuple[Graph | SharedRule | Refusal, tuple[bool, ...], list[Any]]"


def _rule(name: str, graph: Graph, backward: GradientFunction, results: list[Any]) -> _Found:
    """Trace a gradient function, or refer to a rule that is being traced."""

    def start(inner: Graph) -> tuple[GradientFunction, list[Any], list[Symbol]]:
        return backward, results, []

    if backward.refusal is not None:
        return backward.refusal, (False,) * len(backward.specs), []
    if backward.function is None:
        return _traced(name, Graph(f"{name}_gradient", graph), start)
    around = _tracing.get()
    for tracing in around:
        if tracing.has(backward.function):
            return tracing.refer(name, graph, backward)
    alike = [tracing for tracing in around if tracing.code is backward.code]
    if len(alike) >= _DEEPEST:
        raise _Endless(backward.code, name)
    tracing = _Tracing(backward, graph)
    with tracing.going_on():
        try:
            for _ in range(_PASSES):
                found = _traced(name, Graph(f"{name}_gradient", graph), start)
                tracing.trace_shared()
                if tracing.is_settled():
                    if not around:
                        tracing.keep_rules()
                    return found
        except _Endless as error:
            if alike or error.code is not backward.code:
                raise
            return _refused(name, backward, error)
    why = "each time that it is traced, it uses other values from outside"
    return _refused(name, backward, TraceError(why))


class _Endless(TraceError):
    """A gradient function calls a new function of the same code, which does so too."""

    def __init__(self, code: Any, name: str) -> None:
        super().__init__(
            f"it calls {name!r} as a new function each time, which has a gradient of its own; "
            "define the function once, outside, and pass what differs as arguments"
        )
        self.code = code


class _Waiting(NamedTuple):
    """A shared rule that nodes refer to and that is not traced yet."""

    key: Any
    rule: SharedRule
    backward: GradientFunction
    specs: list[TensorSpec]
    context: Context


class _Tracing:
    """A function whose gradient function is being traced, and the shared rules of its calls.

    A rule is traced after the nodes that refer to it. Which values of the enclosing graph it
    captures, and which gradients it returns, is therefore assumed, and everything is traced again
    if this was wrong.
    """

    def __init__(self, backward: GradientFunction, graph: Graph) -> None:
        self.function, self.code = backward.function, backward.code
        self._held = backward  # keys contain ids of what it holds
        self._graph = graph
        self._recorders: tuple[Recorder, ...] = active_tapes.get()
        self._around = (*_tracing.get(), self)
        self._rules: dict[Any, SharedRule] = {}
        self._waiting: list[_Waiting] = []
        self._traced: list[_Waiting] = []
        self._assumed: dict[Any, tuple[list[Symbol], tuple[bool, ...] | None]] = {}
        self._found: dict[Any, tuple[list[Symbol], tuple[bool, ...] | None]] = {}

    def has(self, function: Any) -> bool:
        """Return whether calls of a function refer to shared rules of this one."""
        rules = (("rule", id(rule)) for rule in self._rules.values())
        return function == self.function or function in rules

    def going_on(self) -> Setting[Any]:
        """Run a block in which calls of the function refer to shared rules."""
        return Setting(_tracing, self._around)

    def refer(self, name: str, graph: Graph, backward: GradientFunction) -> _Found:
        """Return the shared rule of a call, and what a node that refers to it needs."""
        names: dict[Any, str] = {}
        specs = [_spec(x, names) for x in backward.given]
        key = backward.function, backward.key, tuple((x.names, x.shape, x.dtype) for x in specs)
        known = self._graph.rules.get(key)
        if known is not None:
            rule, connected, _ = known
            return rule, connected, [graph.adopt(x) for x in backward.given]
        rule = self._rules.get(key)
        if rule is None:
            if len(self._rules) >= _MOST_RULES:
                return BeyondOrder(name), (False,) * len(backward.specs), []
            rule = self._rules[key] = SharedRule(name)
            self._waiting.append(_Waiting(key, rule, backward, specs, copy_context()))
        captures, connected = self._assumed.get(key, ([], None))
        if connected is None:
            connected = tuple(is_differentiable(dtype) for _, dtype in backward.specs)
        connected = tuple(c and i not in backward.lost for i, c in enumerate(connected))
        return rule, connected, [graph.adopt(x) for x in (*captures, *backward.given)]

    def trace_shared(self) -> None:
        """Trace the rules that nodes refer to, those of lower orders first."""
        self._traced = []
        while self._waiting:
            waiting = self._waiting.pop(0)
            self._traced.append(waiting)
            waiting.context.run(self._trace, waiting)

    def _trace(self, waiting: _Waiting) -> None:
        _tracing.set(self._around)  # in a context of its own
        assumed, _ = self._assumed.get(waiting.key, ([], None))
        inner = Graph(f"{waiting.rule.label}_gradient", self._graph, own_names=True)

        def start(inner: Graph) -> tuple[GradientFunction, list[Any], list[Symbol]]:
            for symbol in assumed:
                inner.adopt(symbol)
            given = [inner.input(spec) for spec in waiting.specs]
            return (*waiting.backward.again([Tensor(x) for x in given]), given)

        with recording_to(self._recorders):
            graph, connected, captures = _traced(waiting.rule.label, inner, start)
        waiting.rule.graph = prune(graph) if isinstance(graph, Graph) else graph
        self._found[waiting.key] = captures, connected

    def keep_rules(self) -> None:
        """Let later calls of the trace refer to rules that capture nothing."""
        for waiting in self._traced:
            captures, connected = self._assumed[waiting.key]
            graph = waiting.rule.graph
            if isinstance(graph, Graph) and graph.closure is None and not captures:
                kept = waiting.rule, connected, waiting.backward
                self._graph.rules.setdefault(waiting.key, kept)

    def is_settled(self) -> bool:
        """Return whether the assumptions were right; otherwise, prepare another pass."""
        settled = all(
            captures == self._assumed.get(key, ([], None))[0]
            and connected == (self._assumed[key][1] if key in self._assumed else connected)
            for key, (captures, connected) in self._found.items()
        )
        self._assumed, self._found, self._rules = self._found, {}, {}
        return settled


#: The functions whose gradient functions are being traced, the outermost first.
_tracing: ContextVar[tuple[_Tracing, ...]] = ContextVar("gradtape_tracing_rules", default=())


def _traced(name: str, inner: Graph, start: _Start) -> Any:
    """Trace a gradient function into a new graph, or return a ``Refusal`` that says why not."""
    around = _branch_capture(inner.parent)
    closure = Closure(inner, around)
    with tracing_into(inner, closure):
        backward: Any = None
        try:
            backward, results, given = start(inner)
            upstream = [
                Tensor(inner.input(TensorSpec(x.shape, x.dtype, f"g{i}")))
                for i, x in enumerate(results)
            ]
            own = dict.fromkeys([*given, *(x.array for x in upstream)])
            grads = backward(upstream)
        except _Endless:
            raise
        except TraceError as error:
            return _refused(name, backward, error)
        inner.outputs = [closure.symbol(g) for g in grads if g is not None]
    if closure.tensors and around is not None:
        _pass_on(closure, around)
    elif closure.tensors:
        inner.closure = closure
    inner.inputs = [x for x in inner.inputs if x not in own] + list(own)
    return inner, tuple(g is not None for g in grads), list(inner.captures)


def _refused(name: str, backward: Any, error: TraceError) -> _Found:
    code = getattr(getattr(backward, "grad_fn", None), "__code__", None)
    line = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
    return Refusal(name, line, str(error)), (False,) * len(getattr(backward, "specs", ())), []


def _spec(x: Any, names: dict[Any, str]) -> TensorSpec:
    """Return a spec in which equal unknown sizes have one name."""
    if x.shape is None:
        return TensorSpec(None, x.dtype)
    sizes = [
        n if type(n) is int else names.setdefault(getattr(n, "key", id(n)), f"n{len(names)}")
        for n in x.shape
    ]
    return TensorSpec(sizes, x.dtype)


def _branch_capture(graph: Graph | None) -> Capture[Any] | None:
    """Return what captures outer tensors for a graph that is, or is inside, a branch."""
    scope: Graph | None = graph
    while scope is not None and not scope.level:
        scope = scope.parent
    if scope is None:
        return None
    captures = (x for x in active_tapes.get() if isinstance(x, Capture) and x.graph is graph)
    return next(captures, None)


def _pass_on(closure: Closure, around: Capture[Any]) -> None:
    """Make the tensors that only a gradient function uses values of the enclosing graph.

    A branch runs as one op, and gradients reach only its inputs.
    """
    inner = closure.graph
    closure.report_constants((around,))
    for symbol, tensor in closure.tensors.items():
        outer = around.symbol(tensor)
        del inner.constants[symbol]
        known = inner.captured.setdefault(outer, symbol)
        if known is symbol:
            inner.inputs.append(symbol)
            inner.captures.append(outer)
            continue
        for node in inner.nodes:
            node.inputs = tuple(known if x is symbol else x for x in node.inputs)
        inner.outputs = [known if x is symbol else x for x in inner.outputs]
