"""``ConcreteFunction``: one trace of a function. ``RestoredFunction``: traces without code."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, ClassVar, Self

import numpy as np

from ..base.array_types import TensorSpec, describe
from ..base.context import active_graph, active_tapes, tracing_into
from ..base.dtypes import SCALARS
from ..base.lifetimes import KERNEL_CACHES, REPLACED
from ..base.sizes import Open, contains_instance, is_open
from ..base.table import registry, services
from ..base.tree import flatten, map_structure, pack_like, structure
from ..errors import TraceError
from ..graphs.capture import Closure
from ..graphs.executors import compiled, executor, explained, selected
from ..graphs.graph import Graph
from ..graphs.optimize import prune
from ..graphs.replay import replay
from ..ops.dispatch import check_alive, is_transformed
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.value_holder import ValueHolder
from ..tensors.variable import Variable
from .arguments import (
    argument_dtype,
    as_declared,
    as_inputs,
    call_text,
    check_result,
    conflicting_sizes,
    fit,
    fits_surely,
    same_value,
    with_checked_specs,
)

#: The results of a call, the terms that it adds to the loss, and the masks of the leaves of the
#: results: one for each, or an empty list.
Asides = tuple[Any, list[Tensor], list[Tensor | None]]


class _PickledAsFile:
    """Base of functions that pickle saves as the bytes of a file; copies copy each attribute."""

    #: The service that reduces it for pickle.
    _kept_by: ClassVar[str]

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = services[self._kept_by](self, protocol)
        return reduced

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        twin = memo[id(self)] = type(self).__new__(type(self))
        vars(twin).update(copy.deepcopy(vars(self), memo))
        return twin


class ConcreteFunction(_PickledAsFile):
    """One trace of a function: a graph with the structure of its arguments and results.

    Parameters
    ----------
    name
        The function's name.
    graph
        The traced graph.
    arguments
        ``(args, kwargs)`` with a :class:`TensorSpec` for each tensor and the value itself for each
        Python argument that the trace depends on.
    results
        The structure of the results, with an :class:`Output` for each tensor and any other value
        unchanged.

    Attributes
    ----------
    specs
        The :class:`TensorSpec` of each tensor among the arguments, in order.

    Examples
    --------
    >>> square = gt.function(lambda x: x * x)
    >>> square.get_concrete_function(gt.TensorSpec([2])).graph.outputs[0].shape
    (2,)
    """

    _kept_by = "saving.pickle_concrete_function"

    #: Whether a function called it again since it last looked for a trace to drop.
    called_again = False
    #: Whether a module in it was called without ``training``, and whether it then trained.
    asks_mode = False
    while_training = False
    #: The shapes of the first call that it served.
    met: tuple[Any, ...] | None = None
    #: Whether ``reduce_retracing`` failed to trace it with unknown sizes.
    closed = False
    #: Other dtypes of its tensor arguments for which its Python code runs the same steps.
    also: tuple[tuple[str, ...], ...] = ()
    #: The name of its executor, if this is not the selected one.
    executor: str | None = None
    #: The names of its positional arguments, as far as they are known.
    names: tuple[str, ...] = ()
    #: The outputs of its graph that the call adds to the loss; they are not among its results.
    added: tuple[int, ...] = ()
    #: For each leaf of its results, the output that masks the padding in it; empty without masks.
    masks: tuple[int | None, ...] = ()
    #: The objects whose attributes the trace read, such as ``trainable``; their names and values.
    trained: tuple[tuple[Any, str, Any], ...] = ()
    #: How many replacements of variables the trace, or a later look at its variables, has seen.
    seen_replaced = 0
    #: How often ops and rules had changed when it was traced, and plugins when last compared.
    meanings = seen_plugins = 0

    def __init__(self, name: str, graph: Graph, arguments: Any, results: Any) -> None:
        self.name = name
        self.graph = graph
        self.arguments = arguments
        self.results = results
        self.specs = [leaf for leaf in flatten(arguments) if isinstance(leaf, TensorSpec)]
        registry().meanings.compare()
        self.meanings, self.seen_plugins = KERNEL_CACHES.meanings, KERNEL_CACHES.count
        self._retyped: dict[tuple[str, ...], ConcreteFunction] = {}
        self._named = [
            (i, f"argument {symbol.name or i!r}", spec.names)
            for i, (symbol, spec) in enumerate(zip(graph.inputs, self.specs, strict=False))
            if spec.names is not None
        ]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on arguments of the traced structure."""
        tensors = self.fitted(args, kwargs)
        if active_graph.get() is not None:  # it may not know the sizes that this trace needs
            tensors = with_checked_specs(tensors, self.specs)
        return self.call_flat(tensors)

    def with_losses_and_masks(self, *args: Any, **kwargs: Any) -> Asides:
        """Return the results of a call, the terms that it adds to the loss, and the masks."""
        if not (self.added or self.masks):
            return self(*args, **kwargs), [], []
        found: Asides = self.whole(*args, **kwargs)
        return found

    @property
    def whole(self) -> ConcreteFunction:
        """The same trace with the losses that it adds, and the masks, as further results."""
        whole = copy.copy(self)
        masks = [None if i is None else Output(i) for i in self.masks]
        whole.results = self.results, [Output(i) for i in self.added], masks
        whole.added = whole.masks = ()
        return whole

    def fitted(self, args: Any, kwargs: Any, bound: bool = False) -> list[Tensor]:
        """Return the tensors among the arguments, or raise if these do not fit this trace.

        Parameters
        ----------
        args, kwargs
            The arguments of a call: a tuple and a dict.
        bound
            Whether these are all arguments. If not, Python values that the trace has and the call
            leaves out are those of the trace.

        Returns
        -------
        list of Tensor
            The tensors in order.

        Raises
        ------
        TypeError
            If the structure, a dtype or a Python value differs from what was traced.
        ValueError
            If a shape does not fit, or sizes with the same name differ.
        """
        given = (tuple(args), kwargs) if bound else self._completed(tuple(args), kwargs)
        args, kwargs = as_declared(given, self.arguments)
        leaves = flatten((args, kwargs))
        specs = flatten(self.arguments)
        if structure((args, kwargs)) != structure(self.arguments):
            raise TypeError(
                f"{self.name}: expected arguments {call_text(*self.arguments)}, got "
                f"{call_text(args, kwargs)}"
            )
        tensors = []
        for i, (leaf, spec) in enumerate(zip(leaves, specs, strict=True)):
            if isinstance(spec, TensorSpec):
                tensors.append(fit(leaf, spec, self.name, i))
            elif not same_value(leaf, spec):
                raise TypeError(f"{self.name}: argument {i} was traced as {spec!r}, got {leaf!r}")
        apart = self._clash(tensors)
        if apart is not None:
            raise ValueError(f"{self.name}: {apart}")
        return tensors

    def _completed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        """Return the arguments in order, with traced Python values for those left out."""
        declared, named = self.arguments
        if len(args) == len(declared) and kwargs.keys() == named.keys():
            return args, kwargs
        kwargs, rest, found = dict(kwargs), list(args), []
        by_name = [name for name in self.names if name in kwargs and name not in named]
        constants = [not contains_instance(flatten(x), TensorSpec) for x in declared]
        whole = len(args) + len(by_name) == len(declared)
        for i, (x, constant) in enumerate(zip(declared, constants)):
            if i < len(self.names) and self.names[i] in by_name:
                found.append(kwargs.pop(self.names[i]))
            elif constant and not whole:
                if rest and type(rest[0]) is type(x) and same_value(rest[0], x):
                    rest.pop(0)  # passed nevertheless
                found.append(x)
            elif rest:
                found.append(rest.pop(0))
        for name, x in named.items():
            if name not in kwargs and not contains_instance(flatten(x), TensorSpec):
                kwargs[name] = x
        return (*found, *rest), kwargs

    def keeps_numbers(self, args: Any, kwargs: Any) -> bool:
        """Return whether no Python number, or list of them, would become a tensor of this trace.

        Parameters
        ----------
        args, kwargs
            The arguments of a call: a tuple and a dict.
        """
        given = tuple(args), kwargs
        if structure(given) != structure(self.arguments):
            return False
        pairs = zip(flatten(given), flatten(self.arguments), strict=True)
        return not any(type(x) in SCALARS and isinstance(spec, TensorSpec) for x, spec in pairs)

    def of_dtypes(self, args: Any, kwargs: Any) -> ConcreteFunction | None:
        """Return the same steps for the dtypes of these arguments, if ``also`` has them.

        Parameters
        ----------
        args, kwargs
            The arguments of a call: a tuple and a dict.
        """
        given = as_declared((tuple(args), kwargs), self.arguments)
        if not self.also or structure(given) != structure(self.arguments):
            return None
        pairs = zip(flatten(given), flatten(self.arguments), strict=True)
        tensors = [(x, spec) for x, spec in pairs if isinstance(spec, TensorSpec)]
        try:
            dtypes = tuple([argument_dtype(x, spec) for x, spec in tensors])
        except (TypeError, ValueError):  # not a tensor
            return None
        if dtypes not in self.also:
            return None
        if dtypes not in self._retyped:
            self._retyped[dtypes] = self._steps_on(dtypes)
        return self._retyped[dtypes]

    def _steps_on(self, dtypes: Sequence[str]) -> ConcreteFunction:
        """Trace the steps of this trace for arguments of other dtypes."""
        graph = Graph(self.name)
        places = zip(self.specs, dtypes, strict=True)
        specs = [TensorSpec(spec.dims, dtype, spec.name) for spec, dtype in places]
        with tracing_into(graph):
            inputs = [Tensor(graph.input(spec)) for spec in specs]
            graph.outputs = [graph.adopt(x.array) for x in replay(self.graph, inputs)]
        rest = iter(specs)
        leaves = [
            next(rest) if isinstance(leaf, TensorSpec) else leaf for leaf in flatten(self.arguments)
        ]
        arguments = pack_like(self.arguments, leaves)
        made = ConcreteFunction(self.name, prune(graph), arguments, self.results)
        made.added, made.masks = self.added, self.masks
        return made

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        """Return whether tensors of the right dtypes, one per spec, fit by shape.

        Parameters
        ----------
        tensors
            The tensors among the arguments of a call, in order.

        Returns
        -------
        bool
            False if a shape does not fit, or sizes with the same name differ.
        """
        fitting = (spec.admits(x.shape) for spec, x in zip(self.specs, tensors, strict=True))
        return all(fitting) and self._clash(tensors) is None

    def _clash(self, tensors: Sequence[Tensor]) -> str | None:
        return conflicting_sizes(
            (label, names, tensors[i].shape) for i, label, names in self._named
        )

    @property
    def outdated(self) -> bool:
        """Whether its variables or the plugins changed, or something was frozen or thawed."""
        count = REPLACED.count  # before looking: another thread may replace something meanwhile
        if self.seen_replaced != count:
            if self.of_other_plugins:
                return True
            if REPLACED.since(self.seen_replaced, self.graph.variables):
                return True
            self.seen_replaced = count
        return any(getattr(x, name) is not answer for x, name, answer in self.trained)

    @property
    def of_other_plugins(self) -> bool:
        """Whether an op, a kernel or a gradient rule has changed since it was traced."""
        if self.seen_plugins != KERNEL_CACHES.count:
            registry().meanings.compare()
            if self.meanings != KERNEL_CACHES.meanings:
                return True
            self.seen_plugins = KERNEL_CACHES.count
        return False

    def call_flat(self, tensors: Sequence[Tensor]) -> Any:
        """Run on the flat list of input tensors.

        Parameters
        ----------
        tensors
            The tensors that :meth:`fitted` returns.

        Returns
        -------
        object
            The results, in the structure that the function returned.
        """
        direct = active_graph.get() is None and not active_tapes.get()
        if direct and not any(is_transformed(x.array) for x in tensors):
            arrays = [x.array for x in tensors]
            if self.executor is None:
                run = self.graph.runs.get(selected.get()) or compiled(self.graph)
                outputs = [Tensor(array) for array in run(arrays)]
            else:
                with executor(self.executor):  # the graphs inside it too
                    outputs = [Tensor(array) for array in compiled(self.graph)(arrays)]
        else:
            for x in tensors:
                check_alive(x.array)
            outputs = replay(self.graph, tensors)
        if type(self.results) is Output:
            return outputs[self.results.index]
        return map_structure(
            lambda leaf: outputs[leaf.index] if isinstance(leaf, Output) else leaf, self.results
        )

    def explain(self) -> str:
        """Describe how the selected executor runs it: what it fused, and what it did not.

        Returns
        -------
        str
            Lines to print. The executor makes the plan on the first call, because it depends on the
            arrays.
        """
        return explained(self.graph, self.executor)

    def __repr__(self) -> str:
        return f"<ConcreteFunction {self.name}({', '.join(str(spec) for spec in self.specs)})>"


class Output:
    """An output of the graph in the structure of a function's results."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class RestoredFunction(_PickledAsFile):
    """A function without its Python code: it runs the trace that fits its arguments.

    Parameters
    ----------
    name
        The function's name.
    signature
        The original parameters, to bind keyword arguments and defaults.
    concrete_functions
        Its traces.
    sizes
        ``"seen"`` if it was saved only for the sizes that it had been called with.
    converts
        Whether the first argument becomes a tensor (or a container of tensors), as in a layer.
    """

    _kept_by = "saving.pickle_function"

    #: What each call runs first, such as a check of the module that the function belongs to.
    before_call: Callable[[], None] | None = None

    def __init__(
        self,
        name: str,
        signature: inspect.Signature,
        concrete_functions: Sequence[ConcreteFunction],
        sizes: str = "",
        converts: bool = False,
    ) -> None:
        self.converts = converts
        self.name = self.__name__ = name
        self.signature = self.__signature__ = signature
        self.concrete_functions = list(concrete_functions)
        self.sizes = sizes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._bound(args, kwargs)
        return self.select(bound.args, bound.kwargs)(*bound.args, **bound.kwargs)

    def with_losses_and_masks(self, *args: Any, **kwargs: Any) -> Asides:
        """Return the results of a call, the terms that it adds to the loss, and the masks."""
        bound = self._bound(args, kwargs)
        return self.select(bound.args, bound.kwargs).with_losses_and_masks(
            *bound.args, **bound.kwargs
        )

    def _bound(self, args: Any, kwargs: Any) -> inspect.BoundArguments:
        """Return the arguments by parameter, with defaults, and the first one as tensors."""
        if self.before_call is not None:
            self.before_call()
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None
        bound.apply_defaults()
        if self.converts and bound.args:
            first = next(iter(bound.arguments))
            bound.arguments[first] = as_inputs(bound.arguments[first])
        return bound

    def select(self, args: Any, kwargs: Any) -> ConcreteFunction:
        """Return the first trace that fits the arguments.

        Raises
        ------
        TypeError
            If none fits; the message lists the traces. In a trace that does not know the sizes, if
            several may fit.
        ValueError
            If only sizes do not fit, and there is one trace or the function was saved for the sizes
            seen.
        """
        reason: Exception | None = None
        misfits: list[ConcreteFunction] = []
        possible: list[ConcreteFunction] = []
        for group in self._candidates(args, kwargs):
            for concrete in group:
                try:
                    # what *args or **kwargs lack was not passed, whatever a trace has there
                    tensors = concrete.fitted(args, kwargs, bound=True)
                except (TypeError, ValueError) as error:
                    reason = error
                    if self.sizes == "seen" and isinstance(error, ValueError):
                        misfits.append(concrete)
                    continue
                if active_graph.get() is None or all(map(fits_surely, concrete.specs, tensors)):
                    return concrete
                possible.append(concrete)
            if possible:
                break
        if len(possible) > 1:
            raise TypeError(
                f"{self.name}: several saved traces may take {call_text(args, kwargs)}, whose "
                "sizes the current trace does not know: "
                f"{'; '.join(str(x.arguments) for x in possible)}"
            )
        if possible:
            return possible[0]
        if misfits:
            raise ValueError(self._other_sizes(args, kwargs, misfits)) from reason
        if len(self.concrete_functions) == 1 and reason is not None:
            raise reason
        traces = "; ".join(str(concrete.arguments) for concrete in self.concrete_functions)
        raise TypeError(
            f"{self.name}: no saved trace takes {call_text(args, kwargs)}; the traces are: {traces}"
        )

    def _candidates(self, args: Any, kwargs: Any) -> Iterator[Iterable[ConcreteFunction]]:
        """Yield the traces in groups: any of a group is tried before those of the next one.

        Python numbers fit tensors, but first come the traces that were made for Python numbers,
        since the live function runs those.
        """
        traces = self.concrete_functions
        groups = [traces]
        if len(traces) > 1 and any(type(x) in SCALARS for x in flatten((args, kwargs))):
            kept = [x for x in traces if x.keeps_numbers(args, kwargs)]
            groups = [kept, [x for x in traces if x not in kept]]
        for group in groups:
            wider = (concrete.of_dtypes(args, kwargs) for concrete in group)
            yield chain(group, filter(None, wider))

    def _other_sizes(self, args: Any, kwargs: Any, misfits: Sequence[ConcreteFunction]) -> str:
        """Return the message for a call with sizes that the function was not saved for."""
        got = [x for x in flatten((args, kwargs)) if isinstance(x, (Tensor, Variable, np.ndarray))]
        takes = dict.fromkeys(", ".join(map(str, x.specs)) for x in misfits)
        return (
            f"{self.name}: got {', '.join(describe(x.shape, x.dtype) for x in got)}, but was saved "
            f'for the sizes seen (sizes="seen"): {" or ".join(takes)}. Call it with these, or save '
            "the model again, either after a call with the sizes that you need, or for any size "
            'with gradtape.save(..., sizes="open")'
        )

    def __repr__(self) -> str:
        return f"<restored function {self.name}{self.signature}>"


def output_of(leaf: Any, closure: Closure) -> Any:
    """Return a part of a trace's result as an ``Output`` of its graph, or as the value itself."""
    if isinstance(leaf, ValueHolder) or is_open(leaf):  # its value differs between runs
        leaf = as_tensor(leaf)
    if not isinstance(leaf, Tensor):
        if contains_instance(_parts(leaf), Open):
            raise TraceError(
                f"{closure.graph.name}: it returns {leaf!r}, with a size that is unknown while "
                "tracing; return the size itself, or a tensor of sizes (gradtape.stack)"
            )
        check_result(leaf, closure.graph.name)
        return leaf
    graph = closure.graph
    graph.outputs.append(closure.symbol(leaf))
    return Output(len(graph.outputs) - 1)


def _parts(leaf: Any) -> Any:
    """Return the parts of a Python value that may hold sizes."""
    if isinstance(leaf, slice):
        return leaf.start, leaf.stop, leaf.step
    return leaf.shape if isinstance(leaf, TensorSpec) else ()
