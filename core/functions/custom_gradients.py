"""Replacing gradients: ``custom_gradient`` for a function, ``register_gradient`` for an op."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any, ParamSpec, TypeVar

from ..base.array_types import TensorSpec
from ..base.context import active_graph, active_tapes, as_converted, recording_to, strictness
from ..base.dtypes import is_differentiable
from ..base.lifetimes import KERNEL_CACHES
from ..base.table import registry
from ..base.tree import flatten, pack_like
from ..batches.batched import of_each_example
from ..errors import PluginError, TraceError
from ..graphs.custom_gradients import GradientFunction, add_custom
from ..ops.checks import check_rules, shaped_like
from ..tape.missing_gradients import raise_or_warn
from ..tensors.convert import as_tensor
from ..tensors.custom_records import left_out, record_custom
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .arguments import identity_of, name_of
from .custom_gradient_inputs import ArgumentLayout, Arguments, Parameters, Uses

Fn = TypeVar("Fn", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


def custom_gradient(f: Callable[P, tuple[R, Callable[..., Any]]]) -> Callable[P, R]:
    """Decorate a function to define its gradient.

    Parameters
    ----------
    f
        A function of tensors that returns ``(result, grad_fn)``. ``grad_fn`` takes one upstream
        gradient per result (of the result's shape) and returns one gradient per argument, ``None``
        for one without. Gradients are in the order of ``f``'s parameters, also for arguments that
        are passed by keyword. ``grad_fn`` may leave out keyword-only arguments, defaults, and
        Python values. If ``f`` reads trainable variables, ``grad_fn`` must also take
        ``variables=`` and return ``(gradients, variable_gradients)``.

    Returns
    -------
    callable
        A function that returns only ``result``. Outer tapes record the ops inside ``grad_fn``, so
        gradients of every order exist. Inside :func:`gradtape.function` the gradient function is
        also traced, and is saved with the module. It may call ``f``, directly or through others.

    Raises
    ------
    TypeError
        When called, if the arguments do not fit ``f``, if ``f`` reads variables and ``grad_fn``
        takes no ``variables`` argument, or if ``f`` does not return a pair.
    ValueError
        During the backward pass, if the number or a shape of the gradients is wrong.

    Warns
    -----
    BrokenPathWarning
        When a derivative is computed, if it lacks a part because ``f`` captures a tensor, or takes
        one as an argument that ``grad_fn`` leaves out. With ``strict=True`` this is an error.

    Notes
    -----
    Semantics are those of ``tf.custom_gradient`` where that has them. TensorFlow gives captured
    tensors and keyword arguments no gradient, and does not warn.

    In :func:`gradtape.vmap`, the gradient function is written for one example. It runs for all
    examples at once. If their gradients of what they share take megabytes, it runs for one block of
    them after another, except in compiled functions and in derivatives of derivatives.

    Examples
    --------
    >>> @gt.custom_gradient
    ... def clip_gradients(y):
    ...     return y, lambda dy: gt.clip(dy, -0.5, 0.5)
    >>> gt.grad(lambda x: 3.0 * clip_gradients(x))(2.0).item()
    0.5
    """

    parameters = Parameters(f)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _Call(f, parameters.bind(args, kwargs))
        if call.backward is None:
            outputs = [Tensor(x.array) for x in call.results]
        else:
            outputs = attach(name_of(f), call.backward, call.inputs, call.results)
        return pack_like(call.result, outputs)

    return wrapper


class _Call:
    """A run of a function with a custom gradient.

    Attributes
    ----------
    result, results
        What it returned, and the leaves as tensors.
    inputs
        What its results depend on: arguments, variables, and captured tensors.
    backward
        The gradient function; None outside tapes and traces.
    """

    backward: _Backward | None = None

    def __init__(self, f: Callable[..., Any], arguments: Arguments) -> None:
        recorders, tensors = active_tapes.get(), arguments.tensors
        uses = Uses(tensors, recorders)
        with recording_to((*recorders, uses)):
            returned = as_converted(f)(*arguments.args, **arguments.kwargs)
            if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
                raise TypeError(
                    f"custom_gradient: {name_of(f)} must return (result, grad_fn), "
                    f"got {type(returned).__name__}"
                )
            self.f, (self.result, grad_fn) = f, returned
            self.results = [as_tensor(leaf) for leaf in flatten(self.result)]
        variables = [v for v in uses.variables.values() if v.id not in arguments.variables]
        if variables and not _takes_variables(grad_fn):
            raise TypeError(
                f"custom_gradient: {name_of(f)} reads the variables "
                f"{[v.name for v in variables]}, so its gradient function must take a 'variables' "
                "argument and return (gradients, variable_gradients)"
            )
        traced = active_graph.get() is not None
        if not (recorders or traced):
            return
        captured = uses.captured(self.results)
        self.inputs = [*tensors, *(v.handle() for v in variables), *captured]
        self.backward = _Backward(self, grad_fn, arguments.layout, variables, len(captured))
        if traced:
            self.backward.keep(arguments, self.inputs)


class _Backward:
    """Calls a user's gradient function, and checks what it returns."""

    refusal = None

    def __init__(
        self,
        call: _Call,
        grad_fn: Callable[..., Any],
        arguments: ArgumentLayout,
        variables: list[Variable],
        captured: int,
    ) -> None:
        self.f = call.f
        self.grad_fn = grad_fn
        self.variables = variables
        # not the inputs themselves: grad_fn holds those that it needs
        self.specs = [(x.shape, x.dtype) for x in call.inputs]
        self._arguments = arguments
        self._captured = captured
        self.lost: Collection[int] = ()
        if captured:
            self.lost = range(len(self.specs) - captured, len(self.specs))
        #: Inputs that recorders follow, as far as a rule may leave them out.
        self._followed: list[int] = []
        if arguments.may_leave_out:
            recorders = active_tapes.get()
            followed = [any(x.id in tape.records for tape in recorders) for x in call.inputs]
            self._followed = [i for i, x in enumerate(followed) if x]
        self._traced = False

    def keep(self, arguments: Arguments, inputs: list[Tensor]) -> None:
        """Keep what a trace needs to find calls of the same function, and to run it again."""
        self._traced = True
        self.function = identity_of(self.f)
        self.code = _code_of(self.f)
        self.key = arguments.key
        self.inputs = [x.array for x in inputs]
        self.given = self.inputs[: len(arguments.tensors)]
        self._call = arguments

    def again(self, given: list[Tensor]) -> tuple[_Backward, list[Any]]:
        """Run the function on other tensors; return its gradient function and results."""
        call = _Call(self.f, self._call.with_tensors(given))
        assert call.backward is not None
        if len(call.inputs) != len(self.specs):
            raise TraceError(
                f"{name_of(self.f)} uses {len(self.specs)} tensors and variables in one call, and "
                f"{len(call.inputs)} in another"
            )
        return call.backward, [x.array for x in call.results]

    def __call__(
        self, upstream: Sequence[Tensor], ended: Collection[int] = ()
    ) -> list[Tensor | None]:
        """Return the gradient of each input: arguments, variables, captured tensors."""
        if self.variables:
            returned = self.grad_fn(*upstream, variables=self.variables)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise ValueError(
                    f"custom_gradient: the gradient function of {name_of(self.f)} must return "
                    "(gradients, variable_gradients)"
                )
            grads, variable_grads = flatten([returned[0]]), flatten([returned[1]])
            if len(variable_grads) != len(self.variables):
                raise ValueError(
                    f"custom_gradient: {name_of(self.f)} reads {len(self.variables)} variables, "
                    f"but its gradient function returned {len(variable_grads)} variable gradients"
                )
        else:
            grads, variable_grads = flatten([self.grad_fn(*upstream)]), []
        grads = [*self._of_tensors(grads), *variable_grads]
        found = of_each_example([self._checked(i, g) for i, g in enumerate(grads)], upstream)
        return found + [None] * self._captured

    def _of_tensors(self, grads: list[Any]) -> list[Any]:
        """Return the gradients of the tensors among the arguments."""
        places = self._arguments.places(len(grads))
        if places is None:
            raise ValueError(
                f"custom_gradient: {name_of(self.f)} has {self._arguments.count} arguments, but "
                f"its gradient function returned {len(grads)} gradients"
            )
        found = dict(zip(places, grads, strict=True))
        tensors = self._arguments.tensors
        missing = [
            i
            for i, place in enumerate(tensors)
            if place not in found and is_differentiable(self.specs[i][1])
        ]
        if missing:  # keyword-only, and the rule is of positional arguments
            self.lost = {*self.lost, *missing}
            if not (self._traced or set(missing).isdisjoint(self._followed)):
                given = [TensorSpec(*spec) for spec in self.specs]
                reason = left_out(name_of(self.f), given, missing)
                raise_or_warn([reason], strictness.get())
        return [found.get(place) for place in tensors]

    def _checked(self, i: int, g: Any) -> Tensor | None:
        if g is None:
            return None
        g = as_tensor(g)
        shape, dtype = self.specs[i]
        what = f"argument {i}" if i < len(self._arguments.tensors) else "a variable"
        what = f"custom_gradient: {name_of(self.f)}: the gradient of {what}"
        if not TensorSpec(shape, dtype).admits(g.shape):
            raise ValueError(f"{what} has shape {g.shape}, but the argument has shape {shape}")
        if self._traced:
            g = shaped_like(g, Tensor(self.inputs[i]), what)
        result: Tensor = g if g.dtype == dtype or dtype.kind not in "fc" else g.astype(dtype)
        return result


def attach(
    name: str, backward: GradientFunction, inputs: list[Tensor], results: list[Tensor]
) -> list[Tensor]:
    """Give a function's results new ids with the gradient ``backward``, on tapes and in traces."""
    graph = active_graph.get()
    arrays = [x.array for x in results]
    if graph is not None:
        arrays = add_custom(name, graph, backward, [x.array for x in inputs], arrays)
    outputs = [Tensor(array) for array in arrays]
    record_custom(name, inputs, outputs, backward, sorted(backward.lost))
    return outputs


def _code_of(f: Any) -> Any:
    f = inspect.unwrap(f)
    while not hasattr(f, "__code__") and hasattr(f, "func"):
        f = f.func
    return getattr(f, "__code__", f)


def register_gradient(op_name: str, override: bool = False) -> Callable[[Fn], Fn]:
    """Decorate a function to make it the gradient rule of an op that has none.

    The function takes the upstream gradient first; the names of its other parameters say what it
    needs: the op's inputs, ``out``, or the op's parameters. It returns the gradient of the input,
    or a tuple with one gradient (or ``None``) per input. A function with the parameters ``gs``,
    ``inputs``, ``outputs`` and ``needed``, then those of the op, is for ops with several outputs or
    any number of inputs: it returns a list, as ``vjp`` of :class:`gradtape.plugin.Op`. The registry
    is global. A module that runs the op is saved with the rule, so write the rule with ops. Forward
    mode follows the rule, unless the op has a rule of :func:`register_jvp`.

    Parameters
    ----------
    op_name
        The op, as ``gradtape plugins --ops`` lists it.
    override
        Replace an existing rule. If false (the default), an existing rule is an error.

    Returns
    -------
    callable
        A decorator that returns the function unchanged.

    Raises
    ------
    LookupError
        If no plugin provides the op.
    PluginError
        If the op already has a rule, or if the function has a parameter that the op does not
        provide.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from gradtape.plugin import Op
    >>> cube = Op("example::cube", lambda xp, x: x**3)
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [cube]))
    >>> registered = gt.register_plugin(plugin, "example")
    >>> @gt.register_gradient("example::cube")
    ... def slope(g, x):
    ...     return 3.0 * g * x * x
    >>> gt.grad(cube)(2.0).item()
    12.0
    >>> gt.unregister_plugin("example")
    """
    op = registry().op(op_name)

    def register(fn: Fn) -> Fn:
        if op.differentiable and not override:
            raise PluginError(
                f"register_gradient: op {op_name!r} has a gradient rule from "
                f"{op.rules_provider or op.provider}; pass override=True to replace it"
            )
        op.replace_rules(fn)
        check_rules(op)
        op.rules_provider = getattr(fn, "__module__", "?")
        KERNEL_CACHES.meaning_changed()
        return fn

    return register


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
