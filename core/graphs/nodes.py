"""The parts of graphs: symbols for values, and nodes, the steps between them; and their text."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..base.array_types import ArrayOperators, describe
from ..base.context import active_graph
from ..base.dtypes import numpy_dtype
from ..base.sizes import Dim, Shape, Size, as_size, planned, size_of_atom
from ..ops.dispatch import to_numpy
from ..tensors.op import Op
from .sizes import Integers

if TYPE_CHECKING:
    from ..tensors.variable import Variable

#: A function that runs a graph: it takes arrays and returns arrays.
Run: TypeAlias = Callable[[Sequence[Any]], list[Any]]


class BaseGraph:
    """The interface of a graph that its symbols and nodes use; nodes may hold nested graphs."""

    _gradtape_internal = "new_name size_of"

    name: str
    inputs: list[Symbol]
    nodes: list[Node]
    outputs: list[Symbol]
    constants: dict[Symbol, Any]
    #: For each unknown, the symbol of this graph that determines it, and the axis.
    homes: dict[Dim, tuple[Symbol, int | None]]

    def new_name(self) -> str:
        """Return a name for a new unknown."""
        raise NotImplementedError

    def size_of(self, symbol: Symbol, axis: int, name: str | None) -> Any:
        """Return the unknown size of a symbol along an axis, which may have a name."""
        raise NotImplementedError


# NumPy's limit.
_MOST_AXES = 64


class Symbol(ArrayOperators):
    """One value of a graph: an array type whose ops append nodes instead of computing.

    Parameters
    ----------
    graph
        The graph that it belongs to.
    shape
        A tuple of sizes, ``None`` or a name for an unknown one; or ``None`` for unknown rank.
    dtype
        The dtype.
    name
        Its name in the printed graph.

    Attributes
    ----------
    shape
        Its sizes: ints and unknown sizes; ``None`` for unknown rank.
    integers
        Its values, if the trace knows them: ints and unknown sizes, in an array of its shape.

    Raises
    ------
    ValueError
        If it has more axes than NumPy's arrays can have.

    Examples
    --------
    >>> square = gt.function(lambda x: x * x)
    >>> graph = square.get_concrete_function(gt.TensorSpec([2])).graph
    >>> graph.outputs[0].shape, graph.outputs[0].dtype
    ((2,), dtype('float32'))
    """

    _gradtape_internal = "ended used_after"

    __slots__ = ("__weakref__", "dtype", "graph", "integers", "name", "shape")
    traced = True

    def __init__(self, graph: BaseGraph, shape: Shape, dtype: Any, name: str | None = None) -> None:
        self.graph = graph
        self.dtype = numpy_dtype(dtype)
        self.name = name
        self.integers: Integers | None = None
        self.shape = shape
        for n in shape or ():
            if type(n) is not int:
                if len(shape or ()) > _MOST_AXES:  # check before making a size for each
                    raise ValueError(
                        f"an array has at most {_MOST_AXES} axes, got {len(shape or ())}"
                    )
                self.shape = tuple(map(self._size, shape, itertools.count()))  # type: ignore[arg-type]
                break

    def _size(self, size: Any, axis: int) -> Any:
        """Return one of the sizes; an unknown if it is None or a name."""
        if size is None or type(size) is str:
            size = self.graph.size_of(self, axis, size)
        if type(size) is Size and size.dim is not None:
            self.graph.homes.setdefault(size.dim, (self, axis))
        return size

    def as_size(self, name: str) -> Any:
        """Return the value of an integer as a size: the known value, or an unknown."""
        if self.dtype.kind not in "iu" or self.shape not in ((), None):
            raise TypeError(f"{name}: a size is one integer, got {self!r}")
        if self.integers is None:
            dim = Dim(self.name or self.graph.new_name(), self, None)
            self.graph.homes[dim] = (self, None)
            self.integers = np.array(size_of_atom(dim), object)
        return self.integers[()]

    def ended(self) -> str | None:
        """Return a message if the trace has ended; None while it runs."""
        graph: Any = active_graph.get()
        while graph is not None and graph is not self.graph:
            graph = graph.parent
        return self.used_after() if graph is None else None

    def used_after(self) -> str:
        """Return the message for a use after the trace."""
        return (
            f"{self!r} was made while {self.graph.name!r} was traced and is used after it; return "
            "it from the function instead"
        )

    def why_unknown(self) -> str:
        ended = self.ended()
        if ended is not None:
            return f"any more: {ended}"
        return (
            f"while a function is traced ({self!r}). "
            "Compute with gradtape ops instead (gradtape.where or gradtape.cond for a choice, "
            "gradtape.while_loop to repeat, gradtape.stop_gradient to stop gradients), or call "
            "this outside gradtape.function."
        )

    def __repr__(self) -> str:
        name = f" {self.name!r}" if self.name else ""
        return f"traced tensor{name}: {describe(self.shape, self.dtype)}"


class Read:
    """The kind of node that reads a variable's value on entry to the graph.

    Its node has no inputs, and one output.

    Parameters
    ----------
    variable
        The variable; ``variable.array`` is its raw array when the graph runs.

    Examples
    --------
    >>> from gradtape.plugin import Read
    >>> v = gt.Variable(2.0)
    >>> graph = gt.function(lambda: v * v).get_concrete_function().graph
    >>> [isinstance(node.op, Read) for node in graph.nodes]
    [True, False]
    """

    __slots__ = ("variable",)
    #: What graphs show as the name of its op.
    name = "read"

    def __init__(self, variable: Variable) -> None:
        self.variable = variable


class Written(Read):
    """The node kind for a variable read after an assignment: its input is the value assigned."""

    __slots__ = ()
    name = "written"


class Refusal:
    """Why a backward function could not be traced."""

    __slots__ = ("function", "line", "reason")

    def __init__(self, function: str, line: str, reason: str) -> None:
        self.function = function
        self.line = line
        self.reason = reason

    def __str__(self) -> str:
        reason = self.reason.rstrip(".")  # what to do follows, in a sentence of its own
        return f"the gradient of {self.function!r} ({self.line}) cannot be traced: {reason}"


class NotSaved(Refusal):
    """The backward function is missing: the file was saved without custom gradients."""

    __slots__ = ()

    def __init__(self, function: str) -> None:
        super().__init__(function, "", "")

    def __str__(self) -> str:
        return f"no gradient is defined for {self.function!r}: its file was saved without it"


class BeyondOrder(Refusal):
    """The backward function is missing: it calls its function with other arguments every time."""

    __slots__ = ()

    def __init__(self, function: str) -> None:
        super().__init__(function, "", "")

    def __str__(self) -> str:
        return (
            f"the gradient of {self.function!r} calls the function itself, each time with other "
            "arguments, and the trace does not keep it to this order"
        )


class SharedRule:
    """The gradient rule of a function that the rule itself calls.

    Nodes refer to it, those of its own graph too. It therefore holds for every order.

    Attributes
    ----------
    label
        The name of the function.
    graph
        A graph from saved values and upstream gradients to gradients, or why there is none. None
        until it is traced.
    """

    __slots__ = ("graph", "label")

    def __init__(self, label: str) -> None:
        self.label = label
        self.graph: Any = None


class CustomGradient:
    """The node kind that replaces a gradient.

    Inputs are ``results + arguments + saved``. Outputs are the results, unchanged; gradients reach
    the arguments through ``backward``, a graph from ``saved + upstream`` to a gradient for each
    argument that has one (``connected`` says which).

    Attributes
    ----------
    backward
        The graph, a ``SharedRule`` that has it, or a ``Refusal`` that says why there is none.
    lost
        The places of arguments that the results depend on and that the rule leaves out.
    """

    __slots__ = ("arguments", "backward", "connected", "label", "lost", "results")
    name = "custom_gradient"

    def __init__(
        self,
        label: str,
        results: int,
        arguments: int,
        backward: Any,
        connected: tuple[bool, ...],
        lost: tuple[int, ...] = (),
    ) -> None:
        self.label = label
        self.results = results
        self.arguments = arguments
        self.backward = backward
        self.connected = connected
        self.lost = lost

    @property
    def rule(self) -> Any:
        """The graph of the gradient, or a ``Refusal``."""
        return self.backward.graph if type(self.backward) is SharedRule else self.backward


class Node:
    """One step of a graph: an op (or node kind), its inputs and its outputs.

    Parameters
    ----------
    op
        An :class:`Op`, a :class:`Read`, or the kind of a custom gradient, which executors do not
        meet.
    inputs
        Symbols and Python numbers, which are weak.
    params
        The op's parameters, by name.
    outputs
        A symbol for each result.
    several
        Whether the kernel returns a sequence, which may have a single item.
    witnesses
        The number of inputs, at the end, that only provide the sizes in formulas among the
        parameters.

    Examples
    --------
    >>> head = gt.function(lambda x: gt.sum(x, axis=0))
    >>> node = head.get_concrete_function(gt.TensorSpec([2, 3])).graph.nodes[0]
    >>> node.op.name, node.params["axis"], len(node.inputs), len(node.outputs)
    ('sum', 0, 1, 1)
    """

    _gradtape_internal = "settled settling"

    __slots__ = ("inputs", "op", "outputs", "params", "several", "witnesses")

    def __init__(
        self,
        op: Op | Read | CustomGradient,
        inputs: tuple[Any, ...],
        params: dict[str, Any],
        outputs: tuple[Symbol, ...],
        several: bool = False,
        witnesses: int = 0,
    ) -> None:
        self.witnesses = witnesses
        self.op = op
        self.inputs = inputs
        self.params = params
        self.outputs = outputs
        # whether the kernel returns a sequence, which may have a single item
        self.several = several

    def settled(self, values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
        """Return the op's arguments and parameters, from the values of the inputs.

        Parameters
        ----------
        values
            An array or a tensor for each input.
        """
        return self.settling()(values) if self.witnesses else (values, self.params)

    def settling(self) -> Callable[[Sequence[Any]], tuple[Sequence[Any], dict[str, Any]]]:
        """Return :meth:`settled` as a function, made once for many runs."""
        count = len(self.inputs) - self.witnesses
        plan = planned(self.params)
        name = getattr(self.op, "name", "graph")

        def settle(values: Sequence[Any]) -> tuple[Sequence[Any], dict[str, Any]]:
            shapes = [x.shape for x in values[count:]]
            return values[:count], plan(shapes, lambda k: as_size(values[count + k], name))

        return settle

    @property
    def acts(self) -> bool:
        """Whether it has an effect besides its outputs, also inside nested graphs."""
        op: Any = self.op
        if getattr(op, "effect", False):
            return True
        inside = () if isinstance(op, CustomGradient) or self.params.get("order") else self.graphs
        return any(node.acts for graph in inside for node in graph.nodes)

    @property
    def graphs(self) -> list[Any]:
        """The nested graphs: a custom gradient's backward, or those that an op runs.

        The graph of a shared rule is not nested, because it may contain this node.
        """
        if isinstance(self.op, CustomGradient):
            return [self.op.backward] if isinstance(self.op.backward, BaseGraph) else []
        return [value for value in self.params.values() if isinstance(value, BaseGraph)]


def nodes_within(graph: BaseGraph) -> Iterator[Node]:
    """Yield the nodes of a graph, of those nested in it, and of shared rules, each rule once.

    Parameters
    ----------
    graph
        The graph. The nodes of a nested graph follow the node that has it.
    """
    met: set[SharedRule] = set()
    waiting: list[Iterator[Node]] = [iter(graph.nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        yield node
        inner = node.graphs
        rule = getattr(node.op, "backward", None)
        if type(rule) is SharedRule and rule not in met:
            met.add(rule)
            inner = [rule.graph] if isinstance(rule.graph, BaseGraph) else []
        if inner:
            waiting.append(itertools.chain.from_iterable([x.nodes for x in inner]))


def graph_text(graph: BaseGraph) -> str:
    """Return the graph as text, one line per node, with nested graphs indented below it.

    The rules that nodes share follow.
    """
    ops: list[Any] = [node.op for node in nodes_within(graph)]
    shared = dict.fromkeys(
        x for op in ops if type(x := getattr(op, "backward", None)) is SharedRule
    )
    rules = {rule: f"rule {i}" for i, rule in enumerate(shared)}
    text = _text(graph, "", rules)
    for rule, name in rules.items():
        found = rule.graph
        text += f"\n{name}, the gradient of {rule.label}:\n"
        text += _text(found, "  ", rules) if isinstance(found, BaseGraph) else f"  {found}"
    return text


def _text(graph: BaseGraph, indent: str, rules: Mapping[SharedRule, str]) -> str:
    names: dict[Symbol, str] = {}
    arguments = []
    for i, symbol in enumerate(graph.inputs):
        names[symbol] = f"%{symbol.name or f'arg{i}'}"
        arguments.append(f"{names[symbol]}: {describe(symbol.shape, symbol.dtype)}")
    lines = [f"{indent}graph {graph.name}({', '.join(arguments)}):"]

    def show(x: Any) -> str:
        return names[x] if type(x) is Symbol else repr(x)

    for symbol, array in graph.constants.items():
        names[symbol] = f"%c{len(names)}"
        lines.append(f"{indent}  {_typed(names[symbol], symbol)} = constant {_short(array)}")
    for node in graph.nodes:
        for symbol in node.outputs:
            names[symbol] = f"%{len(names)}"
        left = ", ".join(_typed(names[symbol], symbol) for symbol in node.outputs)
        inputs = [show(x) for x in node.inputs]
        op = node.op
        if isinstance(op, CustomGradient):
            n, m = op.results, op.results + op.arguments
            right = (
                f"custom_gradient {op.label}({', '.join(inputs[:n])}; of {', '.join(inputs[n:m])}"
                + (f"; saved {', '.join(inputs[m:])})" if inputs[m:] else ")")
            )
        elif isinstance(op, Written):
            right = f"assign {op.variable.name!r}, {inputs[0]}"
        elif isinstance(op, Read):
            right = f"read {op.variable.name!r}"
        else:
            plain = {k: v for k, v in node.params.items() if not isinstance(v, BaseGraph)}
            settings = [f"{key}={value!r}" for key, value in plain.items()]
            right = f"{op.name}({', '.join(inputs + settings)})"
            if op.stored is not None:
                right += ", with a stored gradient rule"
        lines.append(f"{indent}  {left} = {right}")
        if isinstance(op, CustomGradient) and not isinstance(op.backward, BaseGraph):
            lines.append(f"{indent}    {rules.get(op.backward, op.backward)}")
        lines += [_text(inner, indent + "    ", rules) for inner in node.graphs]
    lines.append(f"{indent}  return {', '.join(show(x) for x in graph.outputs)}")
    return "\n".join(lines)


def _typed(name: str, symbol: Symbol) -> str:
    return f"{name}: {describe(symbol.shape, symbol.dtype)}"


def _short(array: Any) -> str:
    if int(np.prod(array.shape)) > 6:
        return "..."
    return np.array2string(to_numpy(array), separator=", ").replace("\n", "")
