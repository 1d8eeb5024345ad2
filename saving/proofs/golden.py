"""Golden vectors: sample inputs with the outputs and gradients that they gave where they were
saved.

A file that carries them can prove, on any later machine and backend, that it still computes what it
computed then, gradients of gradients included.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import GradtapeError
from ...core.extend import (
    ConcreteFunction,
    GradientTape,
    Output,
    Tensor,
    TensorSpec,
    Variable,
    backend_of,
    constant,
    flatten,
    init_scope,
    is_differentiable,
    loop_limit,
    ops,
)
from ...core.extend import (
    backend as select_backend,
)
from .samples import filled_in

__all__ = [
    "Evaluation",
    "evaluate",
    "frozen_state",
    "packed",
    "unpacked",
    "why",
]

# The folders in front of the name of a Python file.
_FOLDERS = re.compile(r"(?:[A-Za-z]:)?[^\s:\"'()]*[/\\](?=[^\s/\\]+\.py\b)")
# Random inputs may never meet the condition that ends a loop.
_MOST_STEPS = 10_000
# Of a larger array, only some elements are stored.
_MOST_ELEMENTS = 2**14


@contextmanager
def frozen_state(variables: Sequence[Variable]) -> Iterator[list[tuple[Variable, Any]]]:
    """Give all variables back the values that they had, whatever a block does to them.

    The block is given the variables with those values.
    """
    before = [(variable, variable.array) for variable in variables]
    try:
        yield before
    finally:
        for variable, array in before:
            variable.set_array(array)


class Evaluation(NamedTuple):
    """What a function gave.

    Attributes
    ----------
    values
        Tensors and gradients, by name.
    plain
        The rest of what it returned: Python values.
    changed
        What it left those variables with that it assigned.
    problem
        Why there are no more gradients.
    """

    values: dict[str, np.ndarray[Any, Any]]
    plain: list[Any]
    changed: dict[str, np.ndarray[Any, Any]]
    problem: Exception | None


def evaluate(
    run: Any,
    concrete: ConcreteFunction,
    inputs: Sequence[np.ndarray[Any, Any]],
    variables: Sequence[Variable],
    names: dict[int, str],
    order: int = 2,
    among: Container[str] | None = None,
) -> Evaluation:
    """Return outputs, gradients and gradients of gradients of ``run`` at ``inputs``, by name.

    The gradient is that of a weighted sum of the floating outputs, the second one that of a
    weighted sum of the first; weights are fixed by position, so that nothing cancels. There are
    gradients up to ``order``; the second one is of those that are ``among`` these names, if names
    are given: a branch of ``cond`` that was not taken gives zeros in a trace, and nothing in
    Python. Variables are as they were afterwards.
    """
    limited = loop_limit.set(_MOST_STEPS)
    try:
        with (
            init_scope(),
            _beside(variables),
            frozen_state(variables) as before,
            np.errstate(all="ignore"),
        ):
            values, plain, problem = _evaluated(
                run, concrete, inputs, variables, names, order, among
            )
            changed = {
                f"variable {names[id(v)]} afterwards": _thinned(v)
                for v, array in before
                if v.array is not array
            }
            return Evaluation(values, plain, changed, problem)
    finally:
        loop_limit.reset(limited)


def _outputs(returned: Any, results: Any) -> tuple[list[Any], list[Any]]:
    """Return the tensors of a result, with the numbers that are outputs in the trace; and the rest.

    Those are sizes.
    """
    leaves, places = flatten(returned), flatten(results)
    if len(leaves) != len(places):
        places = leaves
    outputs: list[Any] = []
    plain: list[Any] = []
    for x, place in zip(leaves, places, strict=True):
        if isinstance(x, (Tensor, Variable)):
            outputs.append(x)
        elif isinstance(place, Output) and x is not None:
            outputs.append(constant(x))
        else:
            plain.append(x)
    return outputs, plain


def _evaluated(
    run: Any,
    concrete: ConcreteFunction,
    inputs: Sequence[np.ndarray[Any, Any]],
    variables: Sequence[Variable],
    names: dict[int, str],
    order: int,
    among: Container[str] | None,
) -> tuple[dict[str, np.ndarray[Any, Any]], list[Any], Exception | None]:
    tensors = [constant(array) for array in inputs]
    args, kwargs = filled_in(concrete, tensors)
    sources: dict[str, Any] = {
        f"input {i}": x for i, x in enumerate(tensors) if is_differentiable(x.dtype)
    }
    used = {id(variable) for variable in concrete.graph.variables}
    for variable in variables:
        if variable.trainable and is_differentiable(variable.dtype) and id(variable) in used:
            sources[f"variable {names[id(variable)]}"] = variable
    outer = GradientTape() if order > 1 else None
    with nullcontext() if outer is None else outer:
        if outer is not None:
            outer.watch(list(sources.values()))
        with GradientTape() as inner:
            inner.watch(list(sources.values()))
            returned = run(*args, **kwargs)
            outputs, plain = _outputs(returned, concrete.results)
            target = _weighted_sum(outputs)
        result = {f"output {i}": _thinned(x) for i, x in enumerate(outputs)}
        try:
            first = {} if target is None else inner.gradient(target, sources)
        except Exception as error:  # a function need not have gradients
            return result, plain, error
        present = {k: g for k, g in first.items() if g is not None}
        result |= {f"gradient of {k}": _thinned(g) for k, g in present.items()}
        weighed = [g for k, g in present.items() if among is None or f"gradient of {k}" in among]
        target = _weighted_sum(weighed)
    if outer is None or target is None:
        return result, plain, None
    try:
        second = outer.gradient(target, sources)
    except Exception as error:
        return result, plain, error
    result |= {f"second gradient of {k}": _thinned(g) for k, g in second.items() if g is not None}
    return result, plain, None


def packed(arrays: Sequence[np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Return arrays as one flat array per dtype: thousands of small datasets are slow to open."""
    flat: dict[str, list[np.ndarray[Any, Any]]] = {}
    for array in arrays:
        flat.setdefault(array.dtype.name, []).append(array.reshape(-1))
    return {dtype: np.concatenate(parts) for dtype, parts in flat.items()}


def unpacked(
    specs: Sequence[TensorSpec], flat: Mapping[str, np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that :func:`packed` was given.

    Raises
    ------
    ValueError
        If the elements are not as many as the shapes ask for.
    """
    position = dict.fromkeys(flat, 0)
    arrays = []
    for spec in specs:
        dtype, shape = spec.dtype.name, spec.shape or ()
        start = position.get(dtype, 0)
        position[dtype] = start + math.prod(n or 0 for n in shape)
        held = flat.get(dtype, np.empty(0, spec.dtype))
        arrays.append(held[start : position[dtype]].reshape(tuple(n or 0 for n in shape)))
    if position != {dtype: held.size for dtype, held in flat.items()}:
        raise ValueError("the elements are not as many as the shapes ask for")
    return arrays


def _thinned(x: Tensor | Variable) -> np.ndarray[Any, Any]:
    array = np.asarray(x.numpy())
    if array.size <= _MOST_ELEMENTS:
        return array
    return array.reshape(-1)[:: -(-array.size // _MOST_ELEMENTS)].copy()


def _weighted_sum(tensors: Sequence[Any]) -> Tensor | None:
    total: Tensor | None = None
    for i, x in enumerate(tensors):
        if not is_differentiable(x.dtype):
            continue
        size = int(np.prod(x.shape))
        weights = np.cos(np.arange(size) + 1.0 + i).reshape(x.shape)
        real = x
        if x.dtype.kind == "c":
            real = ops["real"](x) + ops["imag"](x)
        term = ops["sum"](real * Tensor(_like(real, weights)), axis=None, keepdims=False)
        total = term if total is None else total + term
    return total


def _beside(variables: Sequence[Variable]) -> AbstractContextManager[Any]:
    """Make new tensors where the variables are."""
    if not variables:
        return nullcontext()
    array = variables[0].array
    owner = backend_of(array)
    return select_backend(f"{owner.name}:{owner.device(array)}")


def _like(x: Tensor | Variable, weights: np.ndarray[Any, Any]) -> Any:
    owner = backend_of(x.array)
    return owner.asarray(weights.astype(x.dtype), device=owner.device(x.array))


def why(error: Exception) -> str:
    """Return an exception as a short reason for strangers: it names no folder of this machine."""
    kind = "" if isinstance(error, GradtapeError) else f"{type(error).__name__}: "
    return _FOLDERS.sub("", f"{kind}{error}")[:300]
