"""Replacing gradients: ``custom_gradient`` for a function, ``register_gradient`` for an op."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..base.context import active_graph, active_tapes, recording_to, tracing_into
from ..base.spec import TensorSpec
from ..base.table import F
from ..base.tree import flatten, pack_like
from ..batches.batched import HIDE, InBatch, outermost
from ..errors import GradientError, PluginError, TraceError
from ..graphs.graph import CustomGradient, Graph, NotSaved, Refusal, Symbol
from ..ops.backend import shape_witness
from ..ops.checks import check_rules
from ..ops.op import SCALARS, Op, unsure
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .closure import Closure

__all__ = ["custom_gradient", "record_custom", "record_identity", "register_gradient"]

Fn = TypeVar("Fn", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class VariableWatcher:
    """Stands among the tapes to learn which variables a function reads; records nothing."""

    def __init__(self) -> None:
        self.variables: dict[int, Variable] = {}
        self.records: dict[int, Any] = {}

    def accessed(self, variable: Variable) -> None:
        self.variables.setdefault(variable.id, variable)

    def record(self, *args: Any) -> None:
        """Ignore an op."""

    record_joint = record_call = record_break = record


def custom_gradient(f: Callable[P, tuple[R, Callable[..., Any]]]) -> Callable[P, R]:
    """Decorate a function to define its gradient.

    Parameters
    ----------
    f
        A function of tensors that returns ``(result, grad_fn)``. ``grad_fn`` takes one upstream
        gradient per result (of the result's shape) and returns one gradient per positional
        argument, ``None`` for one without. If ``f`` reads trainable variables, ``grad_fn`` must
        also take ``variables=`` and return ``(gradients, variable_gradients)``.

    Returns
    -------
    A function returning ``result`` alone. Ops inside ``grad_fn`` are recorded by outer tapes, so
    gradients of every order exist. Inside :func:`gradtape.function` the backward function is traced
    too, and is saved with the module.

    Raises
    ------
    TypeError
        When called, if variables were read and ``grad_fn`` takes no ``variables`` argument, or if
        ``f`` does not return a pair.
    ValueError
        During the backward pass, if the number or a shape of the gradients is wrong.

    Notes
    -----
    Semantics follow ``tf.custom_gradient``: tensors that ``f`` closes over, or takes by keyword,
    get no gradient.

    Examples
    --------
    >>> @gt.custom_gradient
    ... def clip_gradients(y):
    ...     return y, lambda dy: gt.clip_by_norm(dy, 0.5)
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        args = pack_like(args, [_argument(leaf) for leaf in flatten(args)])
        leaves = flatten(args)
        watcher = VariableWatcher()
        with recording_to((*active_tapes.get(), watcher)):
            returned = f(*args, **kwargs)
        if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
            raise TypeError(
                f"custom_gradient: {_name(f)} must return (result, grad_fn), "
                f"got {type(returned).__name__}"
            )
        result, grad_fn = returned
        argument_ids = {leaf.id for leaf in leaves if type(leaf) is Tensor}
        variables = [v for v in watcher.variables.values() if v.id not in argument_ids]
        if variables and not _takes_variables(grad_fn):
            raise TypeError(
                f"custom_gradient: {_name(f)} reads the variables "
                f"{[v.name for v in variables]}, so its gradient function must take a 'variables' "
                "argument and return (gradients, variable_gradients)"
            )
        results = [as_tensor(leaf) for leaf in flatten(result)]
        positions = [i for i, leaf in enumerate(leaves) if type(leaf) is Tensor]
        inputs = [*(leaves[i] for i in positions), *(v.handle() for v in variables)]
        gradients = _Backward(f, grad_fn, len(leaves), positions, variables, inputs)
        outputs = _attach(_name(f), gradients, inputs, results)
        return pack_like(result, list(outputs))

    return wrapper


class _Backward:
    """Call a user's gradient function and check what it returns."""

    def __init__(
        self,
        f: Any,
        grad_fn: Callable[..., Any],
        count: int,
        positions: list[int],
        variables: list[Variable],
        inputs: list[Tensor],
    ) -> None:
        self.f = f
        self.grad_fn = grad_fn
        self.count = count
        self.positions = positions
        self.variables = variables
        # not the inputs themselves: what grad_fn needs of them it holds
        self.specs = [(x.shape, x.dtype) for x in inputs]

    def __call__(self, upstream: Sequence[Tensor]) -> list[Tensor | None]:
        """Return the gradient of each input tensor and of each variable."""
        if self.variables:
            returned = self.grad_fn(*upstream, variables=self.variables)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ValueError(
                    f"custom_gradient: the gradient function of {_name(self.f)} must return "
                    "(gradients, variable_gradients)"
                )
            grads, variable_grads = flatten([returned[0]]), flatten([returned[1]])
            if len(variable_grads) != len(self.variables):
                raise ValueError(
                    f"custom_gradient: {_name(self.f)} reads {len(self.variables)} variables, its "
                    f"gradient function returned {len(variable_grads)} variable gradients"
                )
        else:
            grads, variable_grads = flatten([self.grad_fn(*upstream)]), []
        if len(grads) == self.count:
            grads = [grads[i] for i in self.positions]
        elif len(grads) != len(self.positions):
            raise ValueError(
                f"custom_gradient: {_name(self.f)} has {self.count} arguments, its gradient "
                f"function returned {len(grads)} gradients"
            )
        return [self._checked(i, g) for i, g in enumerate([*grads, *variable_grads])]

    def _checked(self, i: int, g: Any) -> Tensor | None:
        if g is None:
            return None
        g = as_tensor(g)
        shape, dtype = self.specs[i]
        if g.shape != shape and not unsure(g.shape) and not unsure(shape):
            what = f"argument {i}" if i < len(self.positions) else "a variable"
            raise ValueError(
                f"custom_gradient: {_name(self.f)}: the gradient of {what} has shape {g.shape}, "
                f"the argument has shape {shape}"
            )
        result: Tensor = g if g.dtype == dtype or dtype.kind not in "fc" else g.astype(dtype)
        return result


def _attach(
    name: str, backward: _Backward, inputs: list[Tensor], results: list[Tensor]
) -> list[Tensor]:
    """Give results new identities whose gradient is ``backward``, in tapes and in the trace."""
    graph = active_graph.get()
    arrays = [x.array for x in results]
    if graph is not None:
        arrays = _in_trace(name, graph, backward, [x.array for x in inputs], arrays)
    outputs = [Tensor(array) for array in arrays]
    record_custom(name, inputs, outputs, backward)
    return outputs


def _in_trace(
    name: str, graph: Graph, backward: Any, inputs: list[Any], results: list[Any]
) -> list[Any]:
    """Return what stands for results with a gradient of their own in the graph that is traced."""
    level = outermost((*inputs, *results))
    if level < graph.level:  # batches from around a branch: it takes them in as one example
        inputs, results = ([graph.adopt(x) for x in part] for part in (inputs, results))
        level = 0
    if level:  # the node is one for all examples
        lowered = InBatch(backward, inputs, results, level)
        rows = _in_trace(name, graph, lowered, lowered.inputs, lowered.results)
        return [HIDE.raw(array, level=level) for array in rows]
    if not any(type(array) is Symbol for array in (*results, *inputs)):
        return results
    rule, connected, saved = _trace_backward(name, graph, backward, results)
    kind = CustomGradient(name, len(results), len(inputs), rule, connected)
    return list(graph.custom(kind, results, inputs, saved))


def _trace_backward(
    name: str, graph: Graph, backward: Any, results: list[Any]
) -> tuple[Graph | Refusal, tuple[bool, ...], list[Any]]:
    """Trace a gradient function into a graph; say why if that cannot be done."""
    inner = Graph(f"{name}_gradient", parent=graph)
    closure = Closure(inner)
    with tracing_into(inner, closure):
        upstream = [
            Tensor(inner.input(TensorSpec(x.shape, x.dtype, f"g{i}")))
            for i, x in enumerate(results)
        ]
        own = dict.fromkeys(inner.inputs)
        try:
            grads = backward(upstream)
        except TraceError as error:
            code = getattr(backward.grad_fn, "__code__", None)
            line = f"{code.co_filename}:{code.co_firstlineno}" if code else "?"
            return Refusal(name, line, str(error)), (False,) * len(backward.specs), []
        inner.outputs = [closure.symbol(g, inner.adopt(g.array)) for g in grads if g is not None]
    if closure.tensors:
        inner.closure = closure
    inner.inputs = [x for x in inner.inputs if x not in own] + list(own)
    return inner, tuple(g is not None for g in grads), list(inner.captures)


def record_custom(
    name: str,
    inputs: list[Tensor],
    outputs: list[Tensor],
    backward: Callable[[Sequence[Tensor]], Sequence[Tensor | None]],
) -> None:
    """Record a computation with the gradient function ``backward`` on the active tapes."""
    tapes = active_tapes.get()
    if not tapes:
        return
    shapes = [shape_witness(y) for y in outputs]

    def run(gs: list[Any], raw: bool) -> list[Any]:
        upstream = [
            Tensor(F.zeros_like(y.array)) if g is None else Tensor(g) if raw else g
            for g, y in zip(gs, shapes, strict=True)
        ]
        grads = backward(upstream)
        return [g.array if raw and g is not None else g for g in grads]

    for tape in tapes:
        tape.record_call(name, inputs, outputs, run)


def record_identity(
    name: str, x: Tensor, array: Any, gradient: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return a tensor of ``array``, whose gradient goes to ``x`` through ``gradient``."""
    output = Tensor(array)
    record_custom(name, [x], [output], lambda gs: [gradient(gs[0])])
    return output


def replay_custom(kind: CustomGradient, handles: Sequence[Tensor]) -> list[Tensor]:
    """Run a custom gradient node of a graph on tensors."""
    n, m = kind.results, kind.results + kind.arguments
    results, arguments, saved = list(handles[:n]), list(handles[n:m]), list(handles[m:])
    graph = active_graph.get()
    arrays: list[Any] = [x.array for x in results]
    given = [x.array for x in arguments]
    backward = _Replayed(kind, saved, given)
    if graph is not None:
        if outermost((*arrays, *given)):
            arrays = _in_trace(kind.label, graph, backward, given, arrays)
        else:
            arrays = graph.custom(kind, arrays, given, [x.array for x in saved])
    outputs = [Tensor(array) for array in arrays]
    record_custom(kind.label, arguments, outputs, backward)
    return outputs


class _Replayed:
    """The gradient function of a custom gradient node: its graph, run on tensors."""

    grad_fn = None

    def __init__(self, kind: CustomGradient, saved: list[Tensor], arguments: list[Any]) -> None:
        self.kind = kind
        self.saved = saved
        self.specs = [(x.shape, x.dtype) for x in arguments]

    def __call__(self, upstream: Sequence[Tensor]) -> list[Tensor | None]:
        from ..graphs.replay import replay

        rule = self.kind.backward
        if isinstance(rule, Refusal):
            advice = (
                "Save it again with custom_gradients=True"
                if isinstance(rule, NotSaved)
                else "Call the function outside gradtape.function"
            )
            raise GradientError(f"{rule}. {advice}.")
        grads = iter(replay(rule, [*self.saved, *upstream]))
        return [next(grads) if connected else None for connected in self.kind.connected]


def register_gradient(op_name: str, override: bool = False) -> Callable[[Fn], Fn]:
    """Decorate a function to make it the gradient rule of an op that has none.

    The function takes the upstream gradient first; the names of its other parameters say what it
    needs: the op's inputs, ``out``, or the op's parameters. It returns the gradient of the input,
    or a tuple with one gradient (or ``None``) per input. The registry is global.

    Parameters
    ----------
    op_name
        The op, as ``gradtape plugins --ops`` lists it.
    override
        Replace a rule that exists. Without it, that is an error.

    Raises
    ------
    LookupError
        If no plugin provides the op.
    PluginError
        If the op has a rule already, or the function asks for something that the op does not have.

    Examples
    --------
    >>> @gt.register_gradient("sign", override=True)
    ... def straight_through(g, x):
    ...     return g
    """
    from ..ops.registry import registry

    op = registry().op(op_name)

    def register(fn: Fn) -> Fn:
        if op.differentiable and not override:
            raise PluginError(
                f"register_gradient: op {op_name!r} has a gradient rule from "
                f"{op.rules_provider or op.provider}; pass override=True to replace it"
            )
        op.vjp, op.rules = joint_rule(op, fn), None
        check_rules(op)
        op.rules_provider = getattr(fn, "__module__", "?")
        return fn

    return register


def joint_rule(op: Op, fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule written by parameter names as one that takes all inputs and outputs."""
    names = list(inspect.signature(fn).parameters)[1:]
    for name in names:
        if name not in op.inputs and name != "out" and name not in op.defaults:
            raise PluginError(
                f"op {op.name!r}: the gradient rule {fn.__name__!r} asks for {name!r}; it may ask "
                f"for {(*op.inputs, 'out', *op.defaults)}"
            )

    def vjp(
        gs: list[Any], inputs: Sequence[Any], outputs: Sequence[Any], needed: Any, **params: Any
    ) -> list[Any]:
        known = {**dict(zip(op.inputs, inputs, strict=False)), "out": outputs[0], **params}
        # user code is written with public ops, so it is given tensors whatever the pass runs on
        tensors = type(gs[0]) is Tensor
        if not tensors:
            known = {
                k: _wrapped(v) if k in op.inputs or k == "out" else v for k, v in known.items()
            }
        g = gs[0] if tensors else Tensor(gs[0])
        grads = fn(g, **{name: known[name] for name in names})
        listed = list(grads) if isinstance(grads, tuple) else [grads]
        if len(listed) != len(inputs):
            raise GradientError(
                f"op {op.name!r}: its gradient rule {fn.__name__!r} returned {len(listed)} "
                f"gradients for {len(inputs)} inputs"
            )
        found = [x.array if type(x) is Tensor and not tensors else x for x in listed]
        if not op.broadcasts:
            return found
        return [
            F.unbroadcast_like(gx, x) if wanted and gx is not None else gx
            for gx, x, wanted in zip(found, inputs, needed, strict=True)
        ]

    return vjp


def _wrapped(value: Any) -> Any:
    return value if type(value) in SCALARS else Tensor(value)


def _argument(leaf: Any) -> Any:
    if isinstance(leaf, (Variable, np.ndarray, np.generic)):
        return as_tensor(leaf)
    return leaf


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _name(f: Any) -> str:
    return str(getattr(f, "__qualname__", getattr(f, "__name__", repr(f)))).split("<locals>.")[-1]
