"""The dtypes of arguments for which a trace is correct: Python takes the same steps for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    ConcreteFunction,
    CustomGradient,
    Function,
    Graph,
    Op,
    SharedRule,
    Symbol,
    TensorSpec,
    flatten,
    pack_like,
    to_numpy,
)
from .traces import SavedFunction

# What callers have at hand: NumPy's floats and integers, indices, pictures, masks.
_TRIED = ("float32", "float64", "int64", "int32", "uint8", "bool")


def other_dtypes(function: SavedFunction, concrete: ConcreteFunction) -> list[list[str]]:
    """Return the dtypes of the tensor arguments for which the same graph is correct.

    The Python code is traced for them, and the steps are compared one by one; nothing is computed.
    A function with an ``input_signature`` takes no other dtypes.

    Parameters
    ----------
    function
        The function, and its Python code if there is any.
    concrete
        One of its traces.
    """
    original = function.original
    if function.python is None:
        return [list(dtypes) for dtypes in concrete.also]
    if isinstance(original, Function) and original.input_signature is not None:
        return []
    own = [spec.dtype.name for spec in concrete.specs]
    floats = any(spec.dtype.kind == "f" for spec in concrete.specs)
    kinds = "f" if floats else "iu"
    found = []
    for name in _TRIED:
        dtypes = [name if spec.dtype.kind in kinds else spec.dtype.name for spec in concrete.specs]
        if dtypes == own:
            continue
        if _same_steps(function, concrete, dtypes):
            found.append(dtypes)
        elif name == "int64":  # what casts these does so with the other integers
            break
    return found


def _same_steps(function: SavedFunction, concrete: ConcreteFunction, dtypes: Sequence[str]) -> bool:
    specs = iter(
        [TensorSpec(x.dims, d, x.name) for x, d in zip(concrete.specs, dtypes, strict=True)]
    )
    leaves = [next(specs) if isinstance(x, TensorSpec) else x for x in flatten(concrete.arguments)]
    args, kwargs = pack_like(concrete.arguments, leaves)
    try:
        other = Function(function.python, name=concrete.name).get_concrete_function(*args, **kwargs)
    except Exception:  # what Python refuses, the trace need not take
        return False
    same = _told(other.results) == _told(concrete.results)
    return same and _alike(concrete.graph, other.graph, {})


def _told(results: Any) -> Any:
    leaves = [getattr(leaf, "index", repr(leaf)) for leaf in flatten(results)]
    return repr(pack_like(results, leaves))


def _alike(a: Graph, b: Graph, met: dict[SharedRule, SharedRule]) -> bool:
    """Return whether two graphs are the same steps on the same constants and variables.

    ``met`` holds pairs of rules that are compared already, or are being compared.
    """
    if [len(x) for x in _parts(a)] != [len(x) for x in _parts(b)]:
        return False
    partner: dict[Any, Any] = dict(zip(a.inputs, b.inputs, strict=True))
    for (x, array), (y, other) in zip(a.constants.items(), b.constants.items(), strict=True):
        left, right = np.asarray(to_numpy(array)), np.asarray(to_numpy(other))
        if (
            left.dtype != right.dtype
            or left.shape != right.shape
            or left.tobytes() != right.tobytes()
        ):
            return False
        partner[x] = y

    def match(x: Any, y: Any) -> bool:
        if type(x) is Symbol:
            return partner.get(x) is y
        return type(x) is type(y) and repr(x) == repr(y)

    for node, other_node in zip(a.nodes, b.nodes, strict=True):
        inputs = (node.inputs, other_node.inputs)
        if len(inputs[0]) != len(inputs[1]) or not all(map(match, *inputs)):
            return False
        if not _same_op(node, other_node, met) or len(node.outputs) != len(other_node.outputs):
            return False
        partner.update(zip(node.outputs, other_node.outputs, strict=True))
    ends: list[Any] = [*zip(a.outputs, b.outputs, strict=True)]
    ends += [(x, b.updates.get(variable)) for variable, x in a.updates.items()]
    return all(match(x, y) for x, y in ends)


def _parts(graph: Graph) -> tuple[Any, ...]:
    return graph.inputs, graph.constants, graph.nodes, graph.outputs, graph.updates


def _same_op(a: Any, b: Any, met: dict[SharedRule, SharedRule]) -> bool:
    if type(a.op) is not type(b.op) or a.witnesses != b.witnesses or set(a.params) != set(b.params):
        return False
    if any(isinstance(value, Graph) for value in a.params.values()):
        return False  # a graph inside is made for its dtypes
    if isinstance(a.op, Op):
        return a.op is b.op and all(repr(a.params[key]) == repr(b.params[key]) for key in a.params)
    if isinstance(a.op, CustomGradient):
        shape = [(x.label, x.results, x.arguments, x.connected) for x in (a.op, b.op)]
        backward = (a.op.backward, b.op.backward)
        if isinstance(backward[0], SharedRule) and isinstance(backward[1], SharedRule):
            if backward[0] in met:
                return shape[0] == shape[1] and met[backward[0]] is backward[1]
            met[backward[0]] = backward[1]
            backward = (a.op.rule, b.op.rule)
        both = isinstance(backward[0], Graph) and isinstance(backward[1], Graph)
        return shape[0] == shape[1] and both and _alike(*backward, met)
    return a.op.variable is b.op.variable
