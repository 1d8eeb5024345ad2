"""Replacing gradients: ``custom_gradient`` for a function, ``register_gradient`` for an op."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..base.context import active_graph, active_tapes, as_converted, recording_to
from ..base.recorder import Recorder
from ..base.spec import TensorSpec
from ..base.table import registry
from ..base.tree import flatten, pack_like
from ..errors import PluginError
from ..graphs.custom import add_custom
from ..ops.checks import check_rules
from ..tensors.convert import as_tensor
from ..tensors.recording import record_custom
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable

__all__ = ["custom_gradient", "register_gradient"]

Fn = TypeVar("Fn", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")


class VariableWatcher(Recorder):
    """Notes which variables a function reads, and records nothing."""

    def __init__(self) -> None:
        self.variables: dict[int, Variable] = {}
        self.records = {}

    def accessed(self, variable: Variable, read: Tensor) -> None:
        if variable.trainable:
            self.variables.setdefault(variable.id, variable)

    def accessed_by_rule(self, variable: Variable, read: Tensor) -> None:
        """Ignore what the function's result does not depend on."""


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
    callable
        A function that returns only ``result``. Outer tapes record the ops inside ``grad_fn``, so
        gradients of every order exist. Inside :func:`gradtape.function` the gradient function is
        also traced, and is saved with the module.

    Raises
    ------
    TypeError
        When called, if ``f`` reads variables and ``grad_fn`` takes no ``variables`` argument, or if
        ``f`` does not return a pair.
    ValueError
        During the backward pass, if the number or a shape of the gradients is wrong.

    Notes
    -----
    Semantics follow ``tf.custom_gradient``: captured tensors and keyword arguments have no
    gradient.

    Examples
    --------
    >>> @gt.custom_gradient
    ... def clip_gradients(y):
    ...     return y, lambda dy: gt.clip(dy, -0.5, 0.5)
    >>> gt.grad(lambda x: 3.0 * clip_gradients(x))(2.0).item()
    0.5
    """

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = flatten(args)
        leaves = [_argument(leaf) for leaf in given]
        args = pack_like(args, leaves)
        watcher = VariableWatcher()
        with recording_to((*active_tapes.get(), watcher)):
            returned = as_converted(f)(*args, **kwargs)
        if not isinstance(returned, tuple) or len(returned) != 2 or not callable(returned[1]):
            raise TypeError(
                f"custom_gradient: {_name(f)} must return (result, grad_fn), "
                f"got {type(returned).__name__}"
            )
        result, grad_fn = returned
        arguments = {leaf.id for leaf in given if isinstance(leaf, Variable)}
        variables = [v for v in watcher.variables.values() if v.id not in arguments]
        if variables and not _takes_variables(grad_fn):
            raise TypeError(
                f"custom_gradient: {_name(f)} reads the variables "
                f"{[v.name for v in variables]}, so its gradient function must take a 'variables' "
                "argument and return (gradients, variable_gradients)"
            )
        results = [as_tensor(leaf) for leaf in flatten(result)]
        tensors = [leaf for leaf in leaves if type(leaf) is Tensor]
        inputs = [*tensors, *(v.handle() for v in variables)]
        gradients = _Backward(f, grad_fn, leaves, variables, inputs)
        outputs = attach(f, gradients, inputs, results)
        return pack_like(result, list(outputs))

    return wrapper


class _Backward:
    """Calls a user's gradient function, and checks what it returns."""

    def __init__(
        self,
        f: Any,
        grad_fn: Callable[..., Any],
        leaves: list[Any],
        variables: list[Variable],
        inputs: list[Tensor],
    ) -> None:
        self.f = f
        self.grad_fn = grad_fn
        # for each argument, whether it is a tensor; and the places of those that could be one
        self.tensors = [type(leaf) is Tensor for leaf in leaves]
        self.numeric = [
            i for i, leaf in enumerate(leaves) if type(leaf) in (Tensor, float, complex)
        ]
        self.variables = variables
        # not the inputs themselves: grad_fn holds those that it needs
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
                    f"custom_gradient: {_name(self.f)} reads {len(self.variables)} variables, but "
                    f"its gradient function returned {len(variable_grads)} variable gradients"
                )
        else:
            grads, variable_grads = flatten([self.grad_fn(*upstream)]), []
        count = len(self.tensors)
        places: Sequence[int] = range(count)
        if len(grads) != count:
            places = self.numeric  # integers and other Python values need no None
            if len(grads) != len(places):
                raise ValueError(
                    f"custom_gradient: {_name(self.f)} has {count} arguments, but its gradient "
                    f"function returned {len(grads)} gradients"
                )
        grads = [g for g, i in zip(grads, places, strict=True) if self.tensors[i]]
        return [self._checked(i, g) for i, g in enumerate([*grads, *variable_grads])]

    def _checked(self, i: int, g: Any) -> Tensor | None:
        if g is None:
            return None
        g = as_tensor(g)
        shape, dtype = self.specs[i]
        if not TensorSpec(shape, dtype).admits(g.shape):
            what = f"argument {i}" if i < sum(self.tensors) else "a variable"
            raise ValueError(
                f"custom_gradient: {_name(self.f)}: the gradient of {what} has shape {g.shape}, "
                f"but the argument has shape {shape}"
            )
        result: Tensor = g if g.dtype == dtype or dtype.kind not in "fc" else g.astype(dtype)
        return result


def attach(f: Any, backward: Any, inputs: list[Tensor], results: list[Tensor]) -> list[Tensor]:
    """Give a function's results new ids with the gradient ``backward``, on tapes and in traces."""
    graph, name = active_graph.get(), _name(f)
    arrays = [x.array for x in results]
    if graph is not None:
        arrays = add_custom(name, graph, backward, [x.array for x in inputs], arrays)
    outputs = [Tensor(array) for array in arrays]
    record_custom(name, inputs, outputs, backward)
    return outputs


def register_gradient(op_name: str, override: bool = False) -> Callable[[Fn], Fn]:
    """Decorate a function to make it the gradient rule of an op that has none.

    The function takes the upstream gradient first; the names of its other parameters say what it
    needs: the op's inputs, ``out``, or the op's parameters. It returns the gradient of the input,
    or a tuple with one gradient (or ``None``) per input. The registry is global. A module that runs
    the op is saved with the rule, so write the rule with ops.

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
    >>> from gradtape.core.extend import Op
    >>> cube = Op("example::cube", lambda xp, x: x**3)
    >>> plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [cube]))
    >>> gt.register_plugin(plugin, "example")
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
        return fn

    return register


def _argument(leaf: Any) -> Any:
    if isinstance(leaf, (Tensor, Variable, np.ndarray, np.generic)):
        return as_tensor(leaf)
    return leaf


def _takes_variables(grad_fn: Callable[..., Any]) -> bool:
    parameters = inspect.signature(grad_fn).parameters
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def _name(f: Any) -> str:
    return str(getattr(f, "__qualname__", getattr(f, "__name__", repr(f)))).split("<locals>.")[-1]
