"""Golden vectors: sample inputs, and their outputs and gradients on the machine that saved them.

With them, a file can be verified on any later machine and backend: it must still compute the same
values, including gradients of gradients.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
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
    muting,
    to_numpy,
)
from ...core.extend import (
    backend as select_backend,
)
from ..records.assigned import assign_arrays
from .samples import filled_in

# A larger array is stored in part: one in _PART elements, within these limits.
_LEAST, _PART, _MOST = 2**8, 64, 2**14
# Weights of larger arrays are made piece by piece, and not kept.
_PIECE = 2**16


def spread(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array, or evenly spread elements of it, as section 8 of the format says."""
    size = array.size
    count = min(max(_LEAST, size // _PART), _MOST)
    if size <= count:
        return array
    step = -(-size * 46368 // 75025)  # near the golden ratio, which no shape is in step with
    while math.gcd(step, size) > 1:
        step += 1
    places = np.unravel_index(np.arange(count) * step % size, array.shape)
    return np.asarray(array[places])


def weights(dtype: str, shape: tuple[int, ...], i: int) -> np.ndarray[Any, Any]:
    """Return the weights of the elements of output or gradient ``i`` of a dtype and shape."""
    size = math.prod(shape)
    if size <= _PIECE:
        return _kept_weights(dtype, size, i).reshape(shape)
    return _weights(dtype, size, i).reshape(shape)


def _weights(dtype: str, size: int, i: int) -> np.ndarray[Any, Any]:
    found = np.empty(size, dtype)
    real = found.real.dtype
    for start in range(0, size, _PIECE):
        stop = min(start + _PIECE, size)
        piece = np.cos(np.arange(start, stop) + (1.0 + i)).astype(real)
        found[start:stop] = piece * (1 + 1j) if found.dtype.kind == "c" else piece
    return found


@lru_cache(maxsize=64)
def _kept_weights(dtype: str, size: int, i: int) -> np.ndarray[Any, Any]:
    found = _weights(dtype, size, i)
    found.flags.writeable = False
    return found


def packed(arrays: Sequence[np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
    """Return arrays as one flat array per dtype: thousands of small datasets are slow to open."""
    flat: dict[str, list[np.ndarray[Any, Any]]] = {}
    for array in arrays:
        flat.setdefault(array.dtype.name, []).append(array.reshape(-1))
    return {dtype: np.concatenate(parts) for dtype, parts in flat.items()}


def unpacked(
    specs: Sequence[TensorSpec], flat: Mapping[str, np.ndarray[Any, Any]]
) -> list[np.ndarray[Any, Any]]:
    """Return the arrays that :func:`packed` received.

    Raises
    ------
    ValueError
        If the number of elements is not that of the shapes, or they have several axes.
    """
    if any(array.ndim != 1 for array in flat.values()):
        raise ValueError("a dataset is not flat")
    position = dict.fromkeys(flat, 0)
    arrays = []
    for spec in specs:
        dtype, shape = spec.dtype.name, spec.shape or ()
        start = position.get(dtype, 0)
        position[dtype] = start + math.prod(n or 0 for n in shape)
        elements = flat.get(dtype, np.empty(0, spec.dtype))
        arrays.append(elements[start : position[dtype]].reshape(tuple(n or 0 for n in shape)))
    if position != {dtype: array.size for dtype, array in flat.items()}:
        raise ValueError("the elements are not as many as the shapes ask for")
    return arrays


# The folders in front of the name of a Python file.
_FOLDERS = re.compile(r"(?:[A-Za-z]:)?[^\s:\"'()]*[/\\](?=[^\s/\\]+\.py\b)")
# Random inputs may never meet the condition that ends a loop.
_MOST_STEPS = 10_000


@contextmanager
def frozen_state(variables: Sequence[Variable]) -> Iterator[list[tuple[Variable, Any]]]:
    """Restore the values of all variables after a block, whatever it changes.

    The block receives the variables with those values.
    """
    before = [(variable, variable.array) for variable in variables]
    try:
        yield before
    finally:
        assign_arrays([(x, array) for x, array in before if x.array is not array])


class Evaluation(NamedTuple):
    """The results of a function.

    Attributes
    ----------
    values
        Tensors and gradients, by name.
    plain
        The other results: Python values.
    changed
        The final values of the variables that it assigned.
    problem
        Why there are no further gradients.
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
    only: Container[str] | None = None,
) -> Evaluation:
    """Return outputs, gradients and gradients of gradients of ``run`` at ``inputs``, by name.

    The gradient is that of a weighted sum of the floating outputs; the second gradient is that of a
    weighted sum of the first. The weights depend only on the position, so that nothing cancels.
    There are gradients up to ``order``. With ``only``, second gradients are limited to these
    names: a branch of ``cond`` that was not taken gives zeros in a trace, and nothing in Python.
    Of large arrays, evenly spread elements are kept. Variables are restored afterwards.
    """
    limited = loop_limit.set(_MOST_STEPS)
    try:
        with (
            init_scope(),
            _on_device_of(variables),
            frozen_state(variables) as before,
            muting(),
            np.errstate(all="ignore"),
            warnings.catch_warnings(action="ignore", category=UserWarning),  # samples are no data
        ):
            values, plain, problem = _evaluated(
                run, concrete, inputs, _sources(concrete, variables, names), order, only
            )
            changed = {
                f"variable {names[id(v)]} afterwards": _part(v)
                for v, array in before
                if v.array is not array
            }
            return Evaluation(values, plain, changed, problem)
    finally:
        loop_limit.reset(limited)


def _outputs(returned: Any, results: Any) -> tuple[list[Any], list[Any]]:
    """Return the tensors of a result, with numbers that are outputs in the trace, and the rest.

    Such numbers are sizes.
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


def _sources(
    concrete: ConcreteFunction, variables: Sequence[Variable], names: dict[int, str]
) -> dict[str, Variable]:
    """Return the variables to differentiate with respect to, by name."""
    used = {id(variable) for variable in concrete.graph.variables}
    return {
        f"variable {names[id(variable)]}": variable
        for variable in variables
        if variable.trainable and is_differentiable(variable.dtype) and id(variable) in used
    }


def _evaluated(
    run: Any,
    concrete: ConcreteFunction,
    inputs: Sequence[np.ndarray[Any, Any]],
    trained: Mapping[str, Variable],
    order: int,
    only: Container[str] | None,
) -> tuple[dict[str, np.ndarray[Any, Any]], list[Any], Exception | None]:
    tensors = [constant(array) for array in inputs]
    args, kwargs = filled_in(concrete, tensors)
    sources: dict[str, Any] = {
        f"input {i}": x for i, x in enumerate(tensors) if is_differentiable(x.dtype)
    }
    sources |= trained
    outer = GradientTape() if order > 1 else None
    inner = GradientTape() if order > 0 else None
    with outer or nullcontext():
        with inner or nullcontext():
            for tape in (outer, inner):
                if tape is not None:
                    tape.watch(list(sources.values()))
            returned = run(*args, **kwargs)
        outputs, plain = _outputs(returned, concrete.results)
        result = {f"output {i}": _part(x) for i, x in enumerate(outputs)}
        if inner is None:
            return result, plain, None
        try:
            first = _gradients(inner, outputs, sources)
        except Exception as error:  # a function need not have gradients
            return result, plain, error
        result |= {f"gradient of {k}": _part(g) for k, g in first.items()}
        weighed = [g for k, g in first.items() if only is None or f"gradient of {k}" in only]
    if outer is None:
        return result, plain, None
    try:
        second = _gradients(outer, weighed, sources)
    except Exception as error:
        return result, plain, error
    result |= {f"second gradient of {k}": _part(g) for k, g in second.items()}
    return result, plain, None


def _gradients(
    tape: GradientTape, tensors: Sequence[Any], sources: Mapping[str, Any]
) -> dict[str, Tensor]:
    """Return the gradients of a weighted sum of existing tensors.

    The sum itself is not computed: its weights are the upstream gradients.
    """
    weighed = [(i, x) for i, x in enumerate(tensors) if is_differentiable(x.dtype)]
    if not weighed:
        return {}
    seeds = [_weights_of(x, i) for i, x in weighed]
    found = tape.gradient([x for _, x in weighed], dict(sources), seeds)
    return {k: g for k, g in found.items() if g is not None}


def _weights_of(x: Tensor | Variable, i: int) -> Tensor:
    """Return the weights of a tensor's elements on its device; if complex, of both parts."""
    array = weights(x.dtype.name, x.shape, i)
    owner = backend_of(x.array)
    return Tensor(owner.asarray(array, device=owner.device(x.array)))


def _part(x: Tensor | Variable) -> np.ndarray[Any, Any]:
    return np.asarray(spread(np.asarray(to_numpy(x.array))))


def _on_device_of(variables: Sequence[Variable]) -> AbstractContextManager[Any]:
    """Create new tensors on the device of the variables."""
    if not variables:
        return nullcontext()
    array = variables[0].array
    owner = backend_of(array)
    return select_backend(f"{owner.name}:{owner.device(array)}")


def why(error: Exception) -> str:
    """Return an exception as a short reason that is safe to share: it names no local folder."""
    kind = "" if isinstance(error, GradtapeError) else f"{type(error).__name__}: "
    return _FOLDERS.sub("", f"{kind}{error}")[:300]
