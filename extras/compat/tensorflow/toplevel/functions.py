"""Functions, modules and gradient registration, with TensorFlow's arguments."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import gradtape

from ....core.extend import Function, active_graph, next_id, snake_case
from ....core.extend import Module as NativeModule
from ..names import adapts
from ..spaces import config
from ..tensors import Standing, scope

__all__ = (
    "Module RegisterGradient enable_eager_execution executing_eagerly function name_scope"
).split()


@adapts("function")
def function(
    func: Callable[..., Any] | None = None,
    input_signature: Sequence[Any] | None = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
) -> Any:
    """Trace a Python function into a graph; see :func:`gradtape.function`.

    ``autograph`` converts ``if``, ``while`` and ``for`` on tensors into ops; without its extra,
    functions are traced as they are. With ``reduce_retracing``, a size that differs between calls
    becomes unknown. The other options are ignored.
    """
    reduce = bool(reduce_retracing or experimental_relax_shapes)
    if func is None:
        return functools.partial(
            function,
            input_signature=input_signature,
            autograph=autograph,
            reduce_retracing=reduce,
        )
    return TracedOnce(func, input_signature, reduce_retracing=reduce, autograph=bool(autograph))


_ONCE = (
    "tf.function only supports singleton tf.Variables created on the first call: {name!r} made "
    "{variable!r} in {when}. Make variables, layers and optimizers outside the function, or only "
    "if they do not exist yet; use a separate tf.function for each optimizer"
)


class TracedOnce(Function[Any, Any]):
    """A function that may make variables only in its first trace, as in TensorFlow."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if config.functions_run_eagerly():
            return self.python_function(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def _trace(self, args: Any, kwargs: Any) -> Any:
        before = next_id()
        concrete = super()._trace(args, kwargs)
        made = self._made_since(before, concrete)
        if made and self.concrete_functions:
            raise ValueError(_ONCE.format(name=self.name, variable=made[0], when="a later trace"))
        if made:
            again = next_id()
            concrete = super()._trace(args, kwargs)
            for variable in self._made_since(again, concrete)[:1]:
                raise ValueError(_ONCE.format(name=self.name, variable=variable, when="each call"))
        return concrete

    def _made_since(self, start: int, concrete: Any) -> list[str]:
        """Return the names of a trace's variables with ids above ``start``."""
        found = concrete.graph.variables
        return [v.name for v in found if v.id > start and v.name != "host_calls"]

    def experimental_get_tracing_count(self) -> int:
        """Return the number of traces."""
        return len(self.concrete_functions)


@adapts("Module")
class Module(NativeModule, metaclass=Standing):
    """A :class:`gradtape.Module` with name scopes; variables come in tuples."""

    stands_for = NativeModule

    @property
    def non_trainable_variables(self) -> tuple[Any, ...]:
        """The variables that do not train."""
        return tuple(v for v in self.variables if not v.trainable)

    @property
    def name_scope(self) -> Any:
        """A context that prefixes the names of variables made in it with the module's name."""
        return scope(self.name)

    @classmethod
    def with_name_scope(cls, method: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a method to run in the module's :attr:`name_scope`."""

        @functools.wraps(method)
        def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return wrapper


@adapts()
def name_scope(name: str) -> Any:
    """Return a context that prefixes the names of variables made in it with ``name/``."""
    return scope(name)


class _Called:
    """The op's call, as a gradient function of ``tf.RegisterGradient`` receives it."""

    def __init__(self, op: Any, known: dict[str, Any]) -> None:
        self.type = self.name = op.name
        self.inputs = [known[name] for name in op.inputs]
        self.outputs = [known["out"]]
        self._params = {name: known[name] for name in op.defaults}

    def get_attr(self, name: str) -> Any:
        """Return a parameter of the op."""
        if name not in self._params:
            raise ValueError(
                f"op {self.name!r} has no attribute {name!r}; it has {list(self._params)}"
            )
        return self._params[name]


@adapts("register_gradient")
class RegisterGradient:
    """Register the decorated ``f(op, grad)`` as the gradient rule of an op that has none.

    ``op.inputs``, ``op.outputs`` and ``op.get_attr(name)`` describe the call; ``f`` returns a
    gradient (or None) per input. The registry is global.
    """

    def __init__(self, op_type: str) -> None:
        known = gradtape.registry()
        self._op = known.op(op_type if op_type in known.ops else snake_case(op_type))

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """Register ``f``."""
        op = self._op

        def rule(g: Any, **known: Any) -> Any:
            grads = f(_Called(op, known), g)
            return tuple(grads) if isinstance(grads, (list, tuple)) else grads

        # a rule's parameters say what it needs: here, everything
        names = ["g", *op.inputs, "out", *op.defaults]
        rule.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        )
        gradtape.register_gradient(op.name)(rule)
        return f


@adapts()
def executing_eagerly() -> bool:
    """Return whether ops run immediately, which they do except in a trace."""
    return active_graph.get() is None


@adapts()
def enable_eager_execution() -> None:
    """Do nothing: execution is always eager."""
