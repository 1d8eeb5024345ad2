"""How pickle stores arrays and traced functions: as the bytes of a file, and the rest.

``core`` finds these functions by name, because it is a lower package. Pickles name those of
:mod:`.restored`.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np

from ...core.extend import ConcreteFunction, NotSaved, RestoredFunction, Tensor, Variable, to_numpy
from ..container.hdf5.write import to_bytes
from ..records.schema import dump, encode_signature
from ..writing.graphs import GraphWriter
from ..writing.save import ATTRIBUTES
from ..writing.traces import plain_signature
from . import restored

# What an object's __reduce_ex__ returns.
Reduced = tuple[Any, ...]


def tensor(x: Tensor, protocol: int) -> Reduced:
    """Return the function and arguments that create a tensor of this value, on no tape."""
    return restored.tensor, (_array(x.array, protocol),)


def variable(x: Variable, protocol: int) -> Reduced:
    """Return the function and arguments that create a variable."""
    arguments = (type(x), _array(x.array, protocol), x.trainable, x.name)
    return restored.variable, arguments, getattr(x, "__dict__", None) or None


def function(x: RestoredFunction, protocol: int) -> Reduced:
    """Return the function and arguments that create a function with these traces and variables."""
    variables: dict[Variable, int] = {}
    arrays: dict[str, np.ndarray[Any, Any]] = {}

    def number(variable: Variable) -> int:
        return variables.setdefault(variable, len(variables))

    def add(array: np.ndarray[Any, Any]) -> str:
        path = f"/constants/{len(arrays)}"
        arrays[path] = np.array(array)
        return path

    graphs = [concrete.graph for concrete in x.concrete_functions]
    absent = any(isinstance(c.rule, NotSaved) for g in graphs for c in g.custom_gradients)
    writer = GraphWriter(number, add, custom_gradients=not absent)
    record = {
        "name": x.name,
        "parameters": encode_signature(x.signature),
        "sizes": x.sizes,
        "converts": x.converts,
        "dtypes": [[list(names) for names in concrete.also] for concrete in x.concrete_functions],
        "traces": [writer.function(concrete) for concrete in x.concrete_functions],
    }
    record["rules"] = [writer.rule(*kept) for kept in writer.rules.kept()]
    texts = {restored.FUNCTION: dump(record, f"function {x.name!r}")}
    return restored.function, (_bytes(texts, arrays, protocol), tuple(variables))


def concrete_function(x: ConcreteFunction, protocol: int) -> Reduced:
    """Return the function and arguments that create this trace, with the pickled variables."""
    alone = RestoredFunction(x.name, plain_signature(x), [x])
    return restored.concrete_function, function(alone, protocol)[1]


def _array(array: Any, protocol: int) -> Any:
    return _bytes({}, {restored.VALUE: to_numpy(array)}, protocol)


def _bytes(texts: dict[str, str], arrays: dict[str, np.ndarray[Any, Any]], protocol: int) -> Any:
    """Return the bytes of a file, as an out-of-band buffer if the pickler takes those."""
    held = to_bytes(ATTRIBUTES, texts, arrays)
    return pickle.PickleBuffer(held) if protocol >= 5 else bytes(held)
