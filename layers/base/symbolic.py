"""Placeholders: the tensors without values that functional models are written with.

An op or a layer that gets one does not run. Its arguments are kept in a node, and its results are
placeholders again. A trace finds their shapes and dtypes. A model runs the nodes.
"""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet, ref

from ...core.errors import TraceError
from ...core.extend import (
    ADDED,
    Output,
    Tensor,
    TensorSpec,
    Variable,
    WeakIdentityDict,
    flatten,
    forget,
    function,
    map_structure,
    numpy_dtype,
    register_array_type,
    without_expressions,
)

__all__ = [
    "Placeholder",
    "SymbolicCall",
    "bare",
    "called",
    "is_placeholder",
    "node_of",
    "note_container",
    "placeholders_in",
    "replaced",
    "returned",
    "wrapped",
]

_NUMBERS = itertools.count()
#: The nodes of each layer's calls, as long as a model or a placeholder needs them.
_CALLS: WeakIdentityDict[WeakSet[SymbolicCall]] = WeakIdentityDict()
#: The ``Sequential`` that each layer is in.
_ROWS: WeakIdentityDict[ref[Any]] = WeakIdentityDict()


class Placeholder:
    """An array with a shape and a dtype, but no value; unknown sizes are ``None``."""

    __slots__ = ("dtype", "name", "node", "shape")

    #: Like a symbol of a trace, it has no value.
    traced = True

    def __init__(
        self, shape: Any, dtype: Any, node: SymbolicCall | None, name: str | None = None
    ) -> None:
        self.shape, self.dtype = shape, numpy_dtype(dtype)
        self.node, self.name = node, name

    @property
    def spec(self) -> TensorSpec:
        """The shape and dtype."""
        return TensorSpec(self.shape, self.dtype)

    def ended(self) -> None:
        """Return None: a placeholder can always be used."""

    def why_unknown(self) -> str:
        """Return the reason why there is no value."""
        return (
            f"while a model is built from placeholders ({self!r}); compute with layers and "
            "gradtape ops, and call the model for values"
        )

    def __repr__(self) -> str:
        sizes = "unknown" if self.shape is None else ", ".join(str(n or "?") for n in self.shape)
        return f"placeholder {self.name or 'of a layer'}: ({sizes}) {self.dtype}"


class SymbolicCall:
    """The call of a layer or an op on placeholders.

    Attributes
    ----------
    number
        The order of the calls: a node needs only nodes with lower numbers.
    layer
        The layer; ``None`` for an op.
    """

    __slots__ = ("__weakref__", "args", "kwargs", "layer", "number", "outputs", "run")

    def __init__(
        self, run: Callable[..., Any], args: Any, kwargs: dict[str, Any], layer: Any = None
    ) -> None:
        self.number = next(_NUMBERS)
        self.run, self.args, self.kwargs, self.layer = run, args, kwargs, layer
        self.outputs: Any = None

    def __getstate__(self) -> dict[str, Any]:
        # run is a wrapper, and tensors pickle their values: keep the layer or op, and placeholders
        run = self.run if self.layer is None else self.layer
        held = (self.args, self.kwargs, self.outputs)
        return {"number": self.number, "run": run, "layer": self.layer, "held": bare(held)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.number, self.run, self.layer = state["number"], state["run"], state["layer"]
        args, kwargs, outputs = state["held"]
        self.args, self.kwargs, self.outputs = wrapped((args, kwargs, outputs))
        if self.layer is not None:
            _CALLS.setdefault(self.layer, WeakSet()).add(self)

    def inputs(self) -> Iterator[Placeholder]:
        """Yield the placeholders that it needs."""
        yield from placeholders_in((self.args, self.kwargs))

    def infer(self) -> Any:
        """Return the results as placeholders, in the structure of the results."""
        found = list(dict.fromkeys(self.inputs()))

        def traced(*values: Any) -> Any:
            args, kwargs = replaced((self.args, self.kwargs), dict(zip(found, values)))
            return self.run(*args, **kwargs)

        specs = [x.spec for x in found]
        concrete = function(traced).get_concrete_function(*specs)

        def result(leaf: Any) -> Any:
            if not isinstance(leaf, Output):
                return leaf
            symbol = concrete.graph.outputs[leaf.index]
            return Tensor(Placeholder(without_expressions(symbol.shape), symbol.dtype, self))

        self.outputs = map_structure(result, concrete.results)
        return self.outputs


def is_placeholder(x: Any) -> bool:
    """Return whether a value is a tensor without a value: a placeholder."""
    return type(x) is Tensor and type(x.array) is Placeholder


def placeholders_in(values: Any) -> Iterator[Placeholder]:
    """Yield the placeholders in nested containers."""
    for x in flatten(values):
        array = x.array if type(x) is Tensor else x
        if type(array) is Placeholder:
            yield array


def bare(values: Any) -> Any:
    """Return nested containers with tensors without values unwrapped to placeholders."""
    return map_structure(lambda x: x.array if is_placeholder(x) else x, values)


def wrapped(values: Any) -> Any:
    """Return nested containers with placeholders wrapped as tensors again."""
    return map_structure(lambda x: Tensor(x) if type(x) is Placeholder else x, values)


def replaced(values: Any, known: dict[Placeholder, Any]) -> Any:
    """Return nested containers with placeholders replaced by their values."""

    def value(x: Any) -> Any:
        array = x.array if type(x) is Tensor else x
        return known[array] if type(array) is Placeholder else x

    return map_structure(value, values)


def returned(layer: Any, result: Any) -> Any:
    """Return the result of a layer's call.

    Raises
    ------
    TypeError
        If it is None, as from a function that does not end with ``return``.
    """
    if result is None:
        raise TypeError(
            f"layer {getattr(layer, 'name', layer)!r} ({type(layer).__name__}): its call returned "
            "None; end it with return and the result"
        )
    return result


def called(layer: Any, call: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Return placeholders for the results of a layer's call, and keep the call as a node."""
    try:
        node = SymbolicCall(call, args, kwargs, layer)
        found = returned(layer, node.infer())
    finally:
        if ADDED:  # its added losses belong to the trace that found the shapes
            forget(layer)
    _CALLS.setdefault(layer, WeakSet()).add(node)
    return found


def note_container(layer: Any, row: Any) -> None:
    """Note the ``Sequential`` that a layer is in; the ``output`` of that calls the layer."""
    _ROWS[layer] = ref(row)


def node_of(layer: Any, what: str) -> SymbolicCall:
    """Return the call of a layer on placeholders.

    Parameters
    ----------
    layer
        The layer.
    what
        The attribute that was read, for messages.

    Raises
    ------
    AttributeError
        If there is no call, or more than one.
    """
    row = _ROWS[layer]() if layer in _ROWS and not _CALLS.get(layer) else None
    if row is not None:
        _ = row.output
    nodes = list(_CALLS.get(layer, ()))
    if len(nodes) == 1:
        return nodes[0]
    if nodes:
        raise AttributeError(
            f"layer {layer.name!r} was called on {len(nodes)} placeholders, so its {what!r} is "
            "ambiguous: keep the result of each call instead"
        )
    raise AttributeError(
        f"layer {layer.name!r} has no {what!r}: it was not called on a gt.Input, or on a tensor "
        "computed from one"
    )


def _recorded(op: Any) -> Any:
    def append(*arrays: Any, **params: Any) -> Any:
        for array in arrays:
            if type(array) is not Placeholder and _is_of_a_variable(array):
                raise TraceError(
                    f"op {op.name!r} got a variable and a placeholder: the model would keep the "
                    "variable's current value; put the variable into a layer"
                )
        wrapped = tuple(x if _is_scalar(x) else Tensor(x) for x in arrays)
        found = SymbolicCall(op, wrapped, params).infer()
        return [x.array for x in found] if isinstance(found, list) else found.array

    return append


def _is_scalar(x: Any) -> bool:
    return isinstance(x, (bool, int, float, complex))


def _is_of_a_variable(array: Any) -> bool:
    # slow, but only runs while a model is built: a variable's value looks like any other array
    return any(isinstance(holder, Variable) for holder in gc.get_referrers(array))


register_array_type(Placeholder, 20, _recorded)
