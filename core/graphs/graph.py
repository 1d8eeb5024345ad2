"""``Graph``: what a trace builds.

A graph is a pure function. It takes inputs and the variables' values on entry, and returns outputs
and the variables' values on exit. Its nodes are in the order in which Python ran them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..base.array_types import InputSpec, TensorSpec
from ..base.context import active_graph
from ..base.dtypes import SCALARS
from ..base.sizes import (
    Dim,
    Open,
    OpenSize,
    Size,
    contains_instance,
    dims_of,
    lowered,
    size_of_atom,
    without_expressions,
)
from ..base.table import ops
from ..base.user_code import user_line
from ..errors import TraceError
from ..ops.dispatch import is_transformed, register_array_type, to_numpy
from ..ops.rule import checked_form
from ..tensors.op import Op
from .nodes import (
    BaseGraph,
    CustomGradient,
    Node,
    Read,
    Run,
    Symbol,
    Written,
    graph_text,
    nodes_within,
)
from .sizes import known_integers

if TYPE_CHECKING:
    from ..tensors.variable import Variable
    from .capture import Closure


class Graph(BaseGraph):
    """A traced program.

    Parameters
    ----------
    name
        The traced function's name.
    parent
        The enclosing graph, if an op or a gradient of that graph runs this one.
    own_names
        Whether names of unknown sizes are not those of the enclosing graph.

    Attributes
    ----------
    name
        The traced function's name.
    inputs
        Symbols of the inputs. In a nested graph, captured values (``captures``) come first.
    nodes
        The steps, in order; an input of a node is a symbol or a weak Python scalar.
    outputs
        Symbols of the results.
    constants
        Symbol -> array, for arrays that Python code used.
    captured
        Value of an enclosing graph -> the symbol of the input that captures it.
    updates
        Variable -> symbol of the value that it has on exit.
    closure
        The tensors of constants that tapes may follow; ``None`` if there are none.
    runs, made
        The functions that run it on arrays, and what executors made for them, by the executor's
        name. They refer to the graph, so they are kept here and not in a table of weak references.
    halves
        Its forward and backward graphs, by the shapes and dtypes of inputs.

    Examples
    --------
    >>> square = gt.function(lambda x: x * x)
    >>> graph = square.get_concrete_function(gt.TensorSpec([2])).graph
    >>> [node.op.name for node in graph.nodes]
    ['multiply']
    """

    _gradtape_internal = "adopt another_constant forget_made level number separated without_updates"

    #: Batches of lower levels are values from outside, which a branch captures as inputs.
    level = 0

    def __init__(
        self, name: str = "graph", parent: Graph | None = None, own_names: bool = False
    ) -> None:
        self.name = name
        self.parent = parent
        if parent is not None:
            self.level = parent.level
        self.inputs: list[Symbol] = []
        self.nodes: list[Node] = []
        self.outputs: list[Symbol] = []
        self.constants: dict[Symbol, Any] = {}
        self.captures: list[Symbol] = []
        self.updates: dict[Variable, Symbol] = {}
        self.closure: Closure | None = None
        self.runs: dict[str, Run] = {}
        self.made: dict[str, Run] = {}
        self.halves: dict[Any, Any] = {}
        self.captured: dict[Any, Symbol] = {}
        self._constant_of: dict[int, Symbol] = {}
        self._reads: dict[Variable, Symbol] = {}
        #: Gradient rules that all nodes of a trace may refer to, by function and arguments.
        self.rules: dict[Any, Any] = {} if parent is None else parent.rules
        self._apart = False
        self.homes: dict[Dim, tuple[Symbol, int | None]] = {}
        # the number of names, in a list that all graphs of a trace share
        self._names: list[int] = [0] if parent is None else parent._names
        self._named: dict[str, Size] = {} if parent is None or own_names else parent._named

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a graph has no attribute {name!r}: print(graph) shows it, and its inputs, nodes and "
            "outputs are its parts; gradtape has no protocol buffers, and gradtape.save writes "
            "functions to files",
            name=name,
            obj=self,
        )

    # -- building --------------------------------------------------------------------------------

    def input(self, spec: TensorSpec) -> Symbol:
        """Add an input.

        Parameters
        ----------
        spec
            Its :class:`TensorSpec`.

        Returns
        -------
        Symbol
            Its symbol.
        """
        symbol = Symbol(self, spec.dims, spec.dtype, spec.name)
        self.inputs.append(symbol)
        if spec.names is not None and symbol.shape is not None:
            sizes = zip(symbol.shape, spec.names, strict=True)
            symbol.shape = tuple([self._size_called(size, name) for size, name in sizes])
        return symbol

    def _size_called(self, size: Any, name: str | None) -> Any:
        """Return the one size with a name; each call checks that sizes with this name are equal."""
        if name is None:
            return size
        if name not in self._named:
            size.dim.name = name
            self._named[name] = size
        return self._named[name]

    def adopt(self, array: Any) -> Any:
        """Return ``array`` as a value of this graph: its own symbol, a capture or a constant.

        Parameters
        ----------
        array
            An array of a backend, a symbol of this graph or of an enclosing one, or a weak Python
            scalar.

        Returns
        -------
        Symbol or scalar
            A symbol of this graph; a scalar is returned unchanged.

        Raises
        ------
        TraceError
            If it is a symbol of a trace that has ended, or a value that differs between examples.
        """
        if type(array) in SCALARS:
            return array
        if type(array) is Symbol and array.graph is self:
            return array
        if type(array) is Symbol or (self.level and is_transformed(array)):
            if array not in self.captured:
                if self.parent is None:
                    raise TraceError(f"{user_line()}: {array.used_after()}")
                self.captures.append(self.parent.adopt(array))
                name = getattr(array, "name", None)
                taken = self.input(TensorSpec(array.shape, array.dtype, name))
                taken.integers = getattr(array, "integers", None)
                self.captured[array] = taken
            return self.captured[array]
        return self.constant(array)

    def constant(self, array: Any) -> Symbol:
        """Add an array as a constant.

        Parameters
        ----------
        array
            An array of a backend.

        Returns
        -------
        Symbol
            Its symbol, the same each time.

        Raises
        ------
        TraceError
            If it is a value that differs from example to example.
        """
        known = self._constant_of.get(id(array))
        if known is None:
            known = self._constant_of[id(array)] = self.another_constant(array)
        return known

    def another_constant(self, array: Any) -> Symbol:
        """Add an array as a new constant, even if it is one already.

        Parameters
        ----------
        array
            An array of a backend.

        Returns
        -------
        Symbol
            A new symbol.

        Raises
        ------
        TraceError
            If it is a value that differs from example to example.
        """
        if is_transformed(array):
            raise TraceError(
                f"{user_line()}: the traced function {self.name!r} uses {array!r} from outside "
                "it, which differs from example to example; pass it as an argument"
            )
        symbol = Symbol(self, tuple(array.shape), array.dtype)
        self.constants[symbol] = array
        return symbol

    def add(self, op: Op, arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """Append a run of ``op``; return its output symbol, or a list of them.

        Parameters
        ----------
        op
            The op.
        arrays
            Symbols, arrays of a backend, and weak Python scalars.
        params
            The op's parameters.

        Returns
        -------
        Symbol or list of Symbol
            The op's outputs, with the shapes and dtypes from its shape rule.

        Raises
        ------
        TraceError
            If the op has no shape rule.
        TypeError, ValueError
            If the shape rule refuses the inputs.
        """
        inputs = tuple(map(self.adopt, arrays))
        settings = {**op.defaults, **params}
        inferred = _inferred(op, inputs, settings)
        several = isinstance(inferred, list)
        held, witnesses = settings, dict[Symbol, int]()
        # before the outputs, which may also determine sizes
        if settings and contains_instance(settings, Open):
            held = lowered(settings, lambda dim: self._placed(dim, witnesses))
        outputs = tuple(
            [Symbol(self, shape, dtype) for shape, dtype in (inferred if several else [inferred])]
        )
        if outputs and outputs[0].dtype.kind == "i":
            known = known_integers(op, inputs, settings, outputs, self.constants)
            for symbol, integers in zip(outputs, known, strict=True):
                symbol.integers = integers
        given = (*inputs, *witnesses)
        self.nodes.append(Node(op, given, held, outputs, several, len(witnesses)))
        return list(outputs) if several else outputs[0]

    def _placed(self, dim: Dim, witnesses: dict[Symbol, int]) -> tuple[Any, ...]:
        """Return an unknown's form in formulas; add the symbol that determines it to witnesses."""
        symbol, axis = self._source_of_unknown(dim)
        place = witnesses.setdefault(symbol, len(witnesses))
        return ("value", place) if axis is None else ("size", place, axis)

    def _source_of_unknown(self, dim: Dim) -> tuple[Symbol, int | None]:
        """Return the symbol of this graph that determines an unknown, and the axis."""
        if dim not in self.homes:
            self.homes[dim] = (self.adopt(dim.symbol), dim.axis)
        return self.homes[dim]

    def number(self, value: Open, dtype: Any) -> Symbol:
        """Return an unknown size, number or comparison as a symbol without axes.

        Parameters
        ----------
        value
            The unknown number.
        dtype
            The dtype of the result.

        Returns
        -------
        Symbol
            The symbol, which each run computes.

        Raises
        ------
        TraceError
            If it belongs to a trace that has ended.
        """
        like, _ = self._source_of_unknown(next(dims_of(value)))
        settings = {"value": value, "dtype": np.dtype(dtype).name}
        symbol: Symbol = self.add(ops["size_value"], (like,), settings)
        if symbol.dtype.kind in "iu":
            symbol.integers = np.array(value, object)
        return symbol

    def size_of(self, symbol: Symbol, axis: int, name: str | None) -> Size:
        """Return the size of a symbol: a new unknown, or the one with a user's name."""
        if name is None:
            return size_of_atom(Dim(self.new_name(), symbol, axis))
        if name not in self._named:
            for dim in self.homes:
                if dim.name == name:  # it was generated, and another will do
                    dim.name = self.new_name()
            self._named[name] = size_of_atom(Dim(name, symbol, axis))
        return self._named[name]

    def new_name(self) -> str:
        """Return a name for a new unknown size: n, m, k and so on."""
        while True:
            count = self._names[0]
            self._names[0] += 1
            letter = "nmkpqrstuvw"[count % 11]
            name = letter if count < 11 else f"{letter}{count // 11}"
            if name not in self._named:
                return name

    def read(self, variable: Variable) -> Symbol:
        """Return the variable's value at this point of the program.

        Parameters
        ----------
        variable
            The variable.

        Returns
        -------
        Symbol
            Its value on entry, or the last assigned value.
        """
        symbol = self._reads.get(variable)
        if symbol is None and self.level and self.parent is not None:
            # in a branch, which runs as one op: gradients reach only its inputs
            symbol = self._reads[variable] = self.adopt(self.parent.read(variable))
        elif symbol is None:
            symbol = Symbol(self, variable.shape, variable.dtype)
            self.nodes.append(Node(Read(variable), (), {}, (symbol,)))
            self._reads[variable] = symbol
        return symbol

    def assign(self, variable: Variable, array: Any) -> None:
        """Give the variable a new value from this point on.

        Parameters
        ----------
        variable
            The variable.
        array
            Its value, as :meth:`adopt` accepts it.

        Raises
        ------
        TraceError
            Inside a gradient function or another nested graph.
        """
        if self._apart:  # gradients go to the variable, not to the value
            before = self.read(variable)
            self._reads[variable] = self.add(ops["assigned"], (array, before), {})
            return
        if self.parent is not None:
            raise TraceError(
                f"{user_line()}: variable {variable.name!r} is assigned inside a gradient "
                "function; assign it in the function itself"
            )
        value = self.adopt(array)
        symbol = Symbol(self, variable.shape, variable.dtype)
        self.nodes.append(Node(Written(variable), (value,), {}, (symbol,)))
        self._reads[variable] = symbol
        self.updates[variable] = symbol

    @contextmanager
    def separated(self, values: Iterable[tuple[Variable, Any]]) -> Iterator[None]:
        """Run a block in which variables start with other values, and discard its assignments.

        Parameters
        ----------
        values
            Variables, and arrays as :meth:`adopt` accepts them.

        Yields
        ------
        None
            What the block computes is part of the program.
        """
        before = self._reads.copy(), self._apart
        self._reads.update((variable, self.adopt(array)) for variable, array in values)
        self._apart = True
        try:
            yield
        finally:
            self._reads, self._apart = before

    def custom(
        self,
        kind: CustomGradient,
        results: Sequence[Any],
        arguments: Sequence[Any],
        saved: Sequence[Any],
    ) -> list[Symbol]:
        """Append a custom gradient around ``results``; return their new symbols.

        Parameters
        ----------
        kind
            The custom gradient.
        results
            The computed results.
        arguments
            The values that the gradient is with respect to.
        saved
            The inputs of the backward graph besides upstream gradients.

        Returns
        -------
        list of Symbol
            A symbol per result, with the custom gradient.
        """
        inputs = tuple(self.adopt(x) for x in (*results, *arguments, *saved))
        outputs = tuple(Symbol(self, x.shape, x.dtype) for x in inputs[: kind.results])
        self.nodes.append(Node(kind, inputs, {}, outputs))
        return list(outputs)

    def without_updates(self) -> Graph:
        """Return the same program without its assignments to variables.

        Returns
        -------
        Graph
            A copy, which shares nodes and constants.
        """
        twin = copy.copy(self)
        twin.updates = {}
        return twin

    def forget_made(self) -> None:
        """Forget what executors made of it, and its gradients, since the plugins changed."""
        self.runs, self.made, self.halves = {}, {}, {}

    def __getstate__(self) -> dict[str, Any]:
        # a copy has other variables, or assigns none
        return {**vars(self), "runs": {}, "made": {}, "halves": {}, "rules": {}}

    # -- looking ---------------------------------------------------------------------------------

    @property
    def variables(self) -> list[Variable]:
        """The variables read or assigned, in the order of first use; nested graphs included."""
        reads = (node.op for node in nodes_within(self) if isinstance(node.op, Read))
        return list(dict.fromkeys(read.variable for read in reads))

    @property
    def custom_gradients(self) -> list[CustomGradient]:
        """The custom gradients, nested ones included."""
        return [node.op for node in nodes_within(self) if isinstance(node.op, CustomGradient)]

    def __str__(self) -> str:
        return graph_text(self)

    def __repr__(self) -> str:
        return f"<Graph {self.name!r}: {len(self.inputs)} inputs, {len(self.nodes)} nodes>"


def _spec_of(symbol: Symbol) -> InputSpec:
    trues = None
    if symbol.dtype.kind == "b" and symbol in symbol.graph.constants:
        trues = int(to_numpy(symbol.graph.constants[symbol]).sum())
    return InputSpec(symbol, trues)


def _inferred(op: Op, inputs: Sequence[Any], settings: dict[str, Any]) -> Any:
    """Apply an op's shape rule to unknown sizes, or to None for them if it must know sizes."""
    if op.infer is None:
        raise TraceError(f"op {op.name!r} has no shape rule (infer=), so it cannot be traced")
    specs = [x if type(x) in SCALARS else _spec_of(x) for x in inputs]
    try:
        return checked_form(op, op.infer(*specs, **settings))
    except OpenSize:
        for spec in specs:
            if isinstance(spec, InputSpec):
                spec.shape = without_expressions(spec.shape)
        return checked_form(op, op.infer(*specs, **settings))
    except AttributeError as error:
        numbers = [x for x in inputs if type(x) in SCALARS]
        if not numbers or not str(error).startswith(f"{type(numbers[0]).__name__!r} object"):
            raise
        raise TraceError(
            f"{op.name}: its shape rule receives the Python number {numbers[0]!r} as it is, "
            f"and fails ({error}); a number has the shape (): getattr(x, 'shape', ())"
        ) from error
    except TypeError as error:
        ranked = [getattr(spec, "shape", ()) is not None for spec in specs]
        if all(ranked) or "NoneType" not in str(error):
            raise
        names = ", ".join(op.inputs[i] for i, known in enumerate(ranked) if not known)
        raise TraceError(
            f"{op.name}: its shape rule needs the rank of {names}, which is unknown in this trace: "
            "give the TensorSpec a shape, or let the rule return None as its shape"
        ) from error


def _trace(op: Op) -> Any:
    def append(*arrays: Any, **params: Any) -> Any:
        graph = active_graph.get()
        if graph is None:
            symbol = next(x for x in arrays if type(x) is Symbol)
            raise TraceError(f"{user_line()}: {symbol.used_after()}")
        return graph.add(op, arrays, params)

    return append


register_array_type(Symbol, 10, _trace)
