"""Functions, control flow, modules and their gradients, directly under ``tf``."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import gradtape

from ...core.extend import (
    Function,
    active_graph,
    as_size,
    flatten,
    map_structure,
    next_id,
    pack_like,
    snake_case,
)
from ...core.extend import Module as NativeModule
from ...plugins.ops.control.tensor_array import KnownElements
from .dtypes import as_dtype
from .names import adapts
from .runs import functions_run_eagerly, gpus
from .tensors import InstanceMeta, convert_to_tensor, scope
from .values import shown

__all__ = (
    "Module RegisterGradient case cond device executing_eagerly foldl foldr "
    "function map_fn name_scope numpy_function print py_function scan switch_case timestamp "
    "while_loop"
).split()

_print = print


# -- control flow ----------------------------------------------------------------------------------


@adapts("cond")
def cond(
    pred: Any,
    true_fn: Callable[[], Any] | None = None,
    false_fn: Callable[[], Any] | None = None,
    name: str | None = None,
) -> Any:
    """Return ``true_fn()`` if ``pred``, otherwise ``false_fn()``; see :func:`gradtape.cond`."""
    if true_fn is None or false_fn is None:
        raise TypeError("cond: pass both true_fn and false_fn")
    return gradtape.cond(convert_to_tensor(pred), _to_tensors(true_fn), _to_tensors(false_fn))


def _to_tensors(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``fn`` return numbers as TensorFlow's tensors."""

    def wrapped(*args: Any) -> Any:
        return map_structure(lambda x: None if x is None else convert_to_tensor(x), fn(*args))

    return wrapped


@adapts("while_loop")
def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Any,
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Repeat ``loop_vars = body(*loop_vars)`` while ``cond(*loop_vars)`` holds."""
    start = map_structure(_variable, loop_vars)
    kinds = [x.dtype for x in flatten(start)]

    def step(*args: Any) -> Any:
        found = flatten(body(*args))
        if len(found) != len(kinds):
            raise ValueError(
                f"while_loop: body returns {len(found)} values for {len(kinds)} loop_vars"
            )
        return pack_like(start, [_in_dtype(x, kind) for x, kind in zip(found, kinds)])

    limit = None if maximum_iterations is None else as_size(maximum_iterations, "while_loop")
    result = gradtape.while_loop(cond, step, start, limit)
    return result if back_prop else map_structure(gradtape.stop_gradient, result)


def _variable(x: Any) -> Any:
    """Return a loop variable as a tensor, the contents of a ``TensorArray`` unchanged."""
    return x if isinstance(x, KnownElements) else convert_to_tensor(x)


def _in_dtype(value: Any, dtype: Any) -> Any:
    """Return a number in the dtype of its loop variable; a tensor keeps its own."""
    return value if hasattr(value, "dtype") else convert_to_tensor(value, dtype)


@adapts("scan")
def scan(
    fn: Callable[[Any, Any], Any],
    elems: Any,
    initializer: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    reverse: bool = False,
    name: str | None = None,
) -> Any:
    """Return all values of ``a = fn(a, elem)`` along the first axis of ``elems``."""
    elems = map_structure(convert_to_tensor, elems)
    first = None
    if initializer is None:
        first = map_structure(lambda x: x[-1] if reverse else x[0], elems)
        elems = map_structure(lambda x: x[:-1] if reverse else x[1:], elems)
        initializer = first
    start = map_structure(convert_to_tensor, initializer)

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        kinds = [c.dtype for c in flatten(start)]
        found = flatten(fn(carry, x))
        new = pack_like(start, [_in_dtype(v, kind) for v, kind in zip(found, kinds)])
        return new, new

    _, result = gradtape.scan(step, start, elems, reverse=reverse)
    if first is not None:
        parts = zip(flatten(first), flatten(result))
        result = pack_like(
            start, [_joined(gradtape.expand_dims(a, 0), b, reverse) for a, b in parts]
        )
    return result if back_prop else map_structure(gradtape.stop_gradient, result)


def _joined(first: Any, others: Any, reverse: bool) -> Any:
    return gradtape.concatenate([others, first] if reverse else [first, others])


@adapts("map")
def map_fn(
    fn: Callable[[Any], Any],
    elems: Any,
    dtype: Any = None,
    parallel_iterations: int | None = None,
    back_prop: bool = True,
    swap_memory: bool = False,
    infer_shape: bool = True,
    name: str | None = None,
    fn_output_signature: Any = None,
) -> Any:
    """Apply ``fn`` to each element along the first axis of ``elems``; stack the results."""
    result = gradtape.map(_to_tensors(fn), map_structure(convert_to_tensor, elems))
    return result if back_prop else map_structure(gradtape.stop_gradient, result)


def _fold(reverse: bool, what: str) -> Callable[..., Any]:
    def fold(fn: Any, elems: Any, initializer: Any = None, *options: Any, name: Any = None) -> Any:
        found = scan(fn, elems, initializer, reverse=reverse)
        return map_structure(lambda x: x[0 if reverse else -1], found)

    fold.__name__ = fold.__qualname__ = what
    fold.__doc__ = f"Return the last value of :func:`scan`{', which starts at the end' * reverse}."
    return adapts("scan")(fold)


foldl, foldr = _fold(False, "foldl"), _fold(True, "foldr")


@adapts("cond")
def case(
    pred_fn_pairs: Any,
    default: Any = None,
    exclusive: bool = False,
    strict: bool = False,
    name: Any = None,
) -> Any:
    """Call the function of the first true condition, or ``default``, and return its result."""
    (pred, fn), *others = pred_fn_pairs
    if not others and default is None:  # the last function, whatever its condition
        return fn()
    return cond(pred, fn, default if not others else lambda: case(others, default))


@adapts("cond")
def switch_case(branch_index: Any, branch_fns: Any, default: Any = None, name: Any = None) -> Any:
    """Call the function at an index and return its result; by default, ``default`` or the last."""
    keyed = isinstance(branch_fns, dict) or isinstance(branch_fns[0], (tuple, list))
    branches = dict(branch_fns if keyed else enumerate(branch_fns))
    default = branches[max(branches)] if default is None else default
    index = convert_to_tensor(branch_index)
    return case([(gradtape.equal(index, i), fn) for i, fn in branches.items()], default)


# -- Python code in a trace's runs -----------------------------------------------------------------


@adapts("host_call")
def py_function(func: Any = None, inp: Any = None, Tout: Any = None, name: Any = None) -> Any:
    """Call a Python function of tensors in each run; gradients flow through it."""
    several = isinstance(Tout, (list, tuple))
    kinds = list(Tout) if several else [] if Tout is None else [Tout]
    specs: Any = [
        x if isinstance(x, gradtape.TensorSpec) else gradtape.TensorSpec(None, as_dtype(x))
        for x in kinds
    ]
    wanted = specs if several else specs[0] if specs else None
    given = map(convert_to_tensor, inp)
    return gradtape.host_call(lambda *args: _typed(func(*args), kinds), *given, results=wanted)


def _typed(found: Any, kinds: Any) -> Any:
    """Return the numbers that a function returned as tensors of the given dtypes."""
    several = isinstance(found, (list, tuple))
    parts = zip(found if several else [found], kinds)
    typed = [x if hasattr(x, "dtype") else convert_to_tensor(x, dtype) for x, dtype in parts]
    return typed if several else typed[0] if typed else None


@adapts("host_call")
def numpy_function(
    func: Any = None, inp: Any = None, Tout: Any = None, stateful: bool = True, name: Any = None
) -> Any:
    """Call a Python function of arrays in each run; no gradient flows through it."""
    return py_function(lambda *args: func(*(np.array(x.numpy()) for x in args)), inp, Tout)


@adapts("host_call")
def print(
    *inputs: Any,
    output_stream: Any = None,
    summarize: int | None = 3,
    sep: str = " ",
    end: str = "\n",
    name: Any = None,
) -> None:
    """Print values to ``sys.stderr`` in each run."""
    leaves = flatten(inputs)
    symbols = [
        i for i, x in enumerate(leaves) if isinstance(x, (gradtape.Tensor, gradtape.Variable))
    ]

    def run(*tensors: Any) -> None:
        filled = list(leaves)
        for i, x in zip(symbols, tensors):
            filled[i] = x
        texts = [shown(x, summarize) for x in pack_like(inputs, filled)]
        stream = getattr(sys, str(output_stream).rpartition(".")[2], output_stream)
        _print(*texts, sep=sep, end=end, file=stream or sys.stderr)

    gradtape.host_call(run, *(leaves[i] for i in symbols))


@adapts("host_call")
def timestamp(name: str | None = None) -> Any:
    """Return the time in seconds as a float64 tensor, read in each run of a trace."""
    return gradtape.host_call(time.time, results=gradtape.TensorSpec((), "float64"))


@adapts("backend")
def device(device_name: Any) -> Any:
    """Return a context that makes tensors on a device: ``"/GPU:0"``, or the CPU without one."""
    kind, _, number = str(device_name or "").rpartition("device:")[2].strip("/").partition(":")
    if kind.upper() != "GPU":
        return gradtape.backend("numpy") if kind else contextlib.nullcontext()
    return gradtape.backend(f"cupy:{number or 0}" if gpus() else "numpy")


# -- functions, modules, and registered gradients --------------------------------------------------


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
        if functions_run_eagerly():
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
class Module(NativeModule, metaclass=InstanceMeta):
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
