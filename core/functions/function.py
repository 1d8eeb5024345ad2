"""``function``: a Python function traced into a graph, once per signature of its arguments."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

import numpy as np

from ..base.array_types import TensorSpec
from ..base.context import (
    INLINING,
    active_batches,
    active_graph,
    calling_in,
    converting,
    inlined,
    noting_answers,
    reducing,
    tracing_into,
    training_mode,
)
from ..base.dtypes import computing_in
from ..base.lifetimes import REPLACED
from ..base.observers import stage
from ..base.table import registry, services
from ..base.tree import flatten, map_structure, pack_like, structure
from ..graphs.capture import Closure
from ..graphs.graph import Graph
from ..graphs.optimize import prune
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.value_holder import ValueHolder
from .arguments import (
    as_declared,
    conflicting_sizes,
    fit,
    found_by_name,
    pickled_as_code,
    signatures_of,
    static_key,
    with_checked_specs,
)
from .called import answers
from .concrete import ConcreteFunction, output_of
from .traces import (
    MAX_TRACES,
    Traces,
    Unbatched,
    checked_trace,
    leaf_names,
    on_batches,
    sets_training,
)

#: The attribute in which an object keeps the traces of its methods.
STORE = "_gradtape_functions"

P = ParamSpec("P")
Rest = ParamSpec("Rest")
R = TypeVar("R")


class Function(Generic[P, R]):
    """A callable that traces a Python function into a graph, once per signature.

    :func:`gradtape.function` makes it.

    Parameters
    ----------
    python_function
        The function to trace.
    input_signature
        A :class:`TensorSpec` per positional tensor argument, in the arguments' structure.
    name
        The name of its graphs; by default that of the Python function.
    max_traces
        How many of the traces that calls make it keeps, 128 by default; ``None`` for all of them.
    reduce_retracing
        Whether a call that differs from earlier ones only in sizes is traced with these sizes
        unknown. False by default.
    executor
        The executor of its traces; by default the one that is selected when you call it.
    autograph
        Whether Python's control flow becomes a part of its graphs; by default the setting of the
        function that calls it.

    Raises
    ------
    TypeError
        If ``input_signature`` holds anything else, if the function's parameters are unknown, or if
        it is a generator or a coroutine.
    ValueError
        If ``max_traces`` is below 1.

    Examples
    --------
    >>> square = gt.function(lambda x: x * x)
    >>> square(gt.constant(3.0)).item(), len(square.concrete_functions)
    (9.0, 1)
    """

    def __init__(
        self,
        python_function: Callable[P, R],
        input_signature: Sequence[Any] | None = None,
        name: str | None = None,
        max_traces: int | None = MAX_TRACES,
        reduce_retracing: bool = False,
        executor: str | None = None,
        autograph: bool | None = None,
    ) -> None:
        functools.update_wrapper(self, python_function, updated=())
        self.python_function = python_function
        self.input_signature = None if input_signature is None else tuple(input_signature)
        self.name = name or str(getattr(python_function, "__name__", "function"))
        if max_traces is not None and max_traces < 1:
            raise ValueError(
                f"function {self.name!r}: max_traces must be at least 1 or None, got {max_traces}"
            )
        self.autograph = autograph
        self.executor = executor
        if executor is not None:
            registry().executor(executor)
        self._traces = Traces(self.name, max_traces, bool(reduce_retracing))
        #: For an executor of its own: the functions of all examples of batches.
        self.batched: dict[Any, Any] = {}
        named, self.signature = signatures_of(python_function, self.name)
        self._positional = [
            p.name
            for p in named.parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        for leaf in flatten(self.input_signature or ()):
            if not isinstance(leaf, TensorSpec):
                raise TypeError(
                    f"function {self.name!r}: input_signature holds TensorSpecs, got {leaf!r}"
                )
        declared = self.input_signature or ()
        labels = leaf_names((declared, {}), self._positional)
        self._named = {
            i: (f"argument {name or i!r}", spec.names)
            for i, (name, spec) in enumerate(zip(labels, flatten(declared), strict=True))
            if spec.names is not None
        }

    @property
    def concrete_functions(self) -> list[ConcreteFunction]:
        """The traces that it keeps. It never drops those from :meth:`get_concrete_function`."""
        return list(self._traces.by_key.values())

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Function[P, R]: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Rest], R], instance: object, owner: type | None = None
    ) -> Function[Rest, R]: ...

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        if isinstance(instance, type) or not hasattr(instance, "__dict__"):
            # the instance cannot keep traces, so it becomes one more Python argument
            return functools.partial(self, instance)
        # by descriptor, not by name: a method and the one that it overrides are two functions
        store: tuple[int, dict[Any, Any]] = vars(instance).get(STORE, (0, {}))
        if store[0] != id(instance):  # none yet, or those that copy.copy copied
            store = vars(instance)[STORE] = (id(instance), {})
        bound = store[1]
        if self not in bound:
            method = self.python_function.__get__(instance)
            bound[self] = type(self)(method, *self._settings)
        return bound[self]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = args
        named: Any = kwargs
        quick = None
        if not named and not any(type(x) is not Tensor for x in given):
            quick = tuple([(x.array.shape, x.array.dtype) for x in given])
            known = self._traces.quick.get(quick)
            if (
                known is not None
                and not INLINING
                and active_graph.get() is None
                and not active_batches.get()
                and reducing.get() is None
                and not (known.trained and known.outdated)
                and (known.seen_replaced == REPLACED.count or not known.outdated)
                and not (known.asks_mode and sets_training())
            ):
                known.called_again = True
                return known.call_flat(given)
        given, named, tensors, key = self._canonical(given, named)
        alone = active_graph.get() is None and not active_batches.get() and reducing.get() is None
        if not alone or inlined.get():  # part of an outer trace, batch or distributed step
            leaves = flatten((given, named))
            if self.input_signature is not None:  # its code may rely on it
                tensors = with_checked_specs(
                    tensors, [leaf for leaf in leaves if isinstance(leaf, TensorSpec)]
                )
            if self.executor is not None:
                with suppress(Unbatched):
                    return on_batches(self, (given, named), key, tensors)
            rest = iter(tensors)
            leaves = [next(rest) if isinstance(leaf, TensorSpec) else leaf for leaf in leaves]
            given, named = pack_like((given, named), leaves)
            with computing_in(None):  # not in that of the layer that calls it
                return self.run(*given, **named)
        concrete = self._traces.known(key)
        if concrete is None:
            concrete = self._found_or_made(key, (given, named), tensors)
        else:
            concrete.called_again = True
        if concrete.met is None:
            concrete.met = tuple([x.shape for x in tensors])
        if quick is not None and len(quick) == len(tensors) and not concrete.while_training:
            self._traces.remember(quick, concrete)
        return concrete.call_flat(tensors)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle it by name as any function, as a method, or by its constructor's arguments."""
        method: Any = self.python_function
        if isinstance(method, MethodType):
            whole = getattr(type(method.__self__), method.__name__, None)
            if isinstance(whole, Function) and whole.python_function is method.__func__:
                return getattr, (method.__self__, method.__name__)
        if found_by_name(self) and not (self.__module__ == "__main__" and pickled_as_code()):
            return vars(self)["__qualname__"]
        return type(self), (method, *self._settings)

    @property
    def _settings(self) -> tuple[Any, ...]:
        kept = self._traces
        return (
            self.input_signature,
            self.name,
            kept.limit,
            kept.reduce,
            self.executor,
            self.autograph,
        )

    @property
    def run(self) -> Callable[..., Any]:
        """The function to trace: the Python function, or what AutoGraph converts it to."""
        around = converting.get()
        if self.autograph or (self.autograph is None and around is not None):
            run: Callable[..., Any] = services["autograph.running"](self.python_function)
            return run
        if around is not None:
            kept: Callable[..., Any] = services["autograph.do_not_convert"](self.python_function)
            return kept
        return self.python_function

    def __copy__(self) -> Function[P, R]:
        return self  # as any function

    def __deepcopy__(self, memo: dict[int, Any]) -> Function[P, R]:
        if found_by_name(self):
            return self
        twin: Function[P, R] = type(self).__new__(type(self))
        memo[id(self)] = twin
        vars(twin).update(copy.deepcopy(vars(self), memo))
        return twin

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> ConcreteFunction:
        """Return the trace for these arguments (tensors or TensorSpecs) without running it.

        With an ``input_signature``, you need not pass arguments. The function never drops this
        trace.

        Parameters
        ----------
        args, kwargs
            The arguments of the function; for a tensor, you can pass its :class:`TensorSpec`.

        Returns
        -------
        ConcreteFunction
            The new or existing trace; you can print its ``graph``.

        Raises
        ------
        TypeError
            If the arguments do not fit the function's parameters or its ``input_signature``.
        TraceError
            If Python code reads a value that is unknown while tracing.
        """
        if self.input_signature is not None and not args and not kwargs:
            args = self.input_signature
        args, kwargs, _, key = self._canonical(args, kwargs)
        concrete = self._traces.known(key)
        if concrete is None:
            concrete = self._trace(args, kwargs)
        self._traces.ask_for(key, concrete)
        return concrete

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Describe how an executor runs the trace for these arguments.

        Parameters
        ----------
        args, kwargs
            The arguments of the function, as :meth:`get_concrete_function` takes them.

        Returns
        -------
        str
            Lines to print: what the executor fused and what it did not. The executor makes the plan
            on the first call, because it depends on the arrays.

        Examples
        --------
        >>> square = gt.function(lambda x: x * x, executor="plain")
        >>> y = square(gt.constant(3.0))
        >>> print(square.explain(gt.constant(3.0)))
        <lambda>, by the executor 'plain':
        on numpy: plain, one kernel call for each of 1 nodes
        """
        return self.get_concrete_function(*args, **kwargs).explain()

    def _found_or_made(self, key: Any, call: Any, tensors: Sequence[Tensor]) -> ConcreteFunction:
        """Return a trace for a call that has none: one with unknown sizes, or a new one."""
        traces, names = self._traces, self._positional
        wide = traces.fitting(key, tensors) if traces.open else None
        if wide is None and traces.reduce:
            wide = traces.opened(key, call)
        refused: Exception | None = None
        if wide is not None:
            concrete = traces.known(wide.key)
            if concrete is not None:
                concrete.called_again = True
                return concrete
            try:
                concrete = self._trace(*wide.call)
            except Exception as error:  # not for every size: trace these sizes
                refused = error
            else:
                traces.add(wide.key, concrete, call, names)
                return concrete
        concrete = self._trace(*call)
        if wide is not None and refused is not None:
            concrete.closed = True
            traces.refused(wide, call, refused, names)
        traces.add(key, concrete, call, names)
        return concrete

    def _canonical(self, args: Any, kwargs: Any) -> tuple[Any, Any, list[Tensor], Any]:
        """Return arguments with a TensorSpec per tensor, the tensors, and the key of the trace."""
        # defaults are filled in, so that a call with them and one without share a trace
        if kwargs or len(args) != len(self.signature.parameters):
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.name}: {error}") from None
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        signature = self.input_signature
        declared: list[Any] = []
        if signature is not None:
            matched = as_declared(args[: len(signature)], signature)
            if structure(matched) != structure(signature):
                raise TypeError(
                    f"{self.name}: the arguments do not have the structure of input_signature "
                    f"{signature}"
                )
            args = (*matched, *args[len(signature) :])
            declared = flatten(signature)
        tensors: list[Tensor] = []
        leaves: list[Any] = []
        key: list[Any] = []
        sized: list[Any] = []
        for i, leaf in enumerate(flatten((args, kwargs))):
            if i < len(declared):
                spec = declared[i]
                if not isinstance(leaf, TensorSpec):
                    tensors.append(fit(leaf, spec, self.name, i))
                    if i in self._named:
                        sized.append((*self._named[i], tensors[-1].shape))
                leaves.append(spec)
                key.append(None)
            elif isinstance(leaf, (Tensor, np.ndarray, np.generic)) or (
                isinstance(leaf, ValueHolder) and leaf._by_value
            ):
                tensor = as_tensor(leaf)
                shape, dtype = tensor.array.shape, tensor.array.dtype
                tensors.append(tensor)
                leaves.append(TensorSpec(shape, dtype))
                key.append((shape, dtype))
            elif isinstance(leaf, TensorSpec):
                leaves.append(leaf)
                names = () if leaf.names is None else (leaf.names,)
                key.append((leaf.shape, leaf.dtype, *names))
            else:
                leaves.append(leaf)
                key.append(static_key(leaf, f"{self.name}: argument {i}"))
        apart = conflicting_sizes(sized) if sized else None
        if apart is not None:
            raise ValueError(f"{self.name}: {apart}")
        tree = (args, kwargs)
        args, kwargs = pack_like(tree, leaves)
        return args, kwargs, tensors, (structure(tree), tuple(key))

    def _trace(self, args: Any, kwargs: Any) -> ConcreteFunction:
        graph = Graph(self.name)
        closure = Closure(graph)
        names = leaf_names((args, kwargs), self._positional)
        around = training_mode.get()
        with (
            stage(f"tracing {self.name}"),
            calling_in(None if around is None else around.training) as mode,
            tracing_into(graph, closure),
            noting_answers() as asked,
            computing_in(None),
        ):
            symbolic = []
            for i, leaf in enumerate(flatten((args, kwargs))):
                if isinstance(leaf, TensorSpec):
                    spec = TensorSpec(leaf.dims, leaf.dtype, leaf.name or names[i])
                    leaf = Tensor(graph.input(spec))
                symbolic.append(leaf)
            traced_args, traced_kwargs = pack_like((args, kwargs), symbolic)
            with checked_trace(self.name, not self._traces.by_key):
                returned = self.run(*traced_args, **traced_kwargs)
            results = map_structure(lambda leaf: output_of(leaf, closure), returned)
        if closure.matters:
            graph.closure = closure
        concrete = ConcreteFunction(self.name, prune(graph), (args, kwargs), results)
        concrete.names = tuple(self._positional[: len(args)])
        concrete.executor = self.executor
        concrete.asks_mode, concrete.while_training = mode.asked, mode.asked and bool(mode.training)
        concrete.trained = answers(asked.values(), self.python_function)
        concrete.seen_replaced = REPLACED.count
        return concrete

    def __repr__(self) -> str:
        return f"<function {self.name}, {len(self._traces.by_key)} traces>"


@overload
def function(
    fn: Callable[P, R],
    *,
    input_signature: Sequence[Any] | None = None,
    max_traces: int | None = ...,
    reduce_retracing: bool = ...,
    executor: str | None = ...,
    autograph: bool | None = ...,
) -> Function[P, R]: ...
@overload
def function(
    fn: None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    max_traces: int | None = ...,
    reduce_retracing: bool = ...,
    executor: str | None = ...,
    autograph: bool | None = ...,
) -> Callable[[Callable[P, R]], Function[P, R]]: ...


def function(
    fn: Callable[..., Any] | None = None,
    *,
    input_signature: Sequence[Any] | None = None,
    max_traces: int | None = MAX_TRACES,
    reduce_retracing: bool = False,
    executor: str | None = None,
    autograph: bool | None = None,
) -> Any:
    """Trace a Python function into a graph, once per signature.

    Parameters
    ----------
    fn
        A function or method that takes tensors, in any nested containers, and Python values. Each
        distinct Python value makes a separate trace; without ``input_signature``, so does each
        shape and dtype. A trace with unknown sizes that you requested by ``get_concrete_function``
        serves all calls that fit. Python side effects happen only while tracing; assignments to
        variables happen on every call.
    input_signature
        A :class:`TensorSpec` per positional tensor argument, in the arguments' structure. One trace
        then serves all calls. Further arguments are Python values. In each call, sizes with the
        same name must be equal.
    max_traces
        How many of the traces that calls make are kept, 128 by default; ``None`` keeps all. A
        dropped trace is made again when it is needed. :func:`gradtape.save` saves the traces that
        are kept, which include all those from ``get_concrete_function``.
    reduce_retracing
        Whether a call that differs from earlier ones only in sizes is traced with these sizes
        unknown (``None``), so that further sizes make no new trace. False by default. If this
        tracing fails, each size makes a separate trace.
    executor
        The executor of its traces: ``"plain"``, ``"default"`` or one that a plugin provides. By
        default the one that is selected when you call the function (see :func:`gradtape.executor`).
        Inside :func:`gradtape.vmap` it runs all examples together. Files do not store it.
    autograph
        Whether Python's ``if``, ``while``, ``for``, ``and``, ``or``, ``not``, ``assert`` and
        ``print`` on traced tensors become a part of the graph, in ``fn`` and in those of your
        functions that it calls (see :mod:`gradtape.autograph`; it needs
        ``pip install "gradtape[autograph]"``). By default the setting of the function that calls
        it; False at the top.

    Returns
    -------
    Function
        A callable like ``fn``. Tapes can record calls of it, to any order. Without ``fn``, a
        decorator that returns one.

    Raises
    ------
    TypeError
        If ``input_signature`` holds anything other than a :class:`TensorSpec`. When called, if a
        dtype or the structure of the arguments differs from ``input_signature``.
    ValueError
        If ``max_traces`` is below 1. When called, if a shape does not fit ``input_signature``, or
        sizes with the same name differ.
    TraceError
        On the first call, if Python code reads a value that is unknown while tracing.

    Warns
    -----
    UserWarning
        Once, after 32 traces: the warning names the argument that causes them, and what to write
        instead. Once, if ``reduce_retracing`` has no effect: the warning names the argument and the
        reason. Once, if ``executor`` has no effect inside a :func:`gradtape.vmap`, because the
        function captures a batch.

    Examples
    --------
    >>> @gt.function(input_signature=[gt.TensorSpec([None])])
    ... def mean_square(x):
    ...     return gt.mean(x * x)
    >>> mean_square(gt.constant([1.0, 3.0])).item()
    5.0
    """
    if fn is None:
        return lambda f: function(
            f,
            input_signature=input_signature,
            max_traces=max_traces,
            reduce_retracing=reduce_retracing,
            executor=executor,
            autograph=autograph,
        )
    return Function(fn, input_signature, None, max_traces, reduce_retracing, executor, autograph)
