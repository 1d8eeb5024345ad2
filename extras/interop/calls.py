"""Calls of another library's functions: their records on tapes, and their place in traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ..core.extend import (
    Batched,
    Tensor,
    TensorSpec,
    Variable,
    active_graph,
    as_batched,
    custom_gradient,
    exclusive,
    has_unknown_sizes,
    known_size,
    public_package,
    set_arrays,
)
from .trees import Parts

#: What a bridge says where it would convert a tensor inside ``vmap``.
IN_VMAP = "it cannot be called inside gradtape.vmap: call it with the whole batch instead"

Pull = Callable[..., list[Any]]


def name_of(fn: Any) -> str:
    """Return the name of a function or module for messages."""
    return str(getattr(fn, "__name__", type(fn).__name__))


def recorded(
    name: str, inputs: Sequence[Tensor], arrays: Sequence[Any], pull: Pull
) -> list[Tensor]:
    """Return arrays as tensors that tapes follow to the inputs.

    Parameters
    ----------
    name
        The function's name, for messages.
    inputs
        The tensors that the arrays depend on.
    arrays
        What was computed.
    pull
        A function of the upstream gradients that returns the gradients of the inputs.
    """

    found: list[Tensor] = _recording(name)(_Done(arrays, pull), *inputs)
    return found


class _Done:
    """What was computed, and its gradient function."""

    __slots__ = ("arrays", "pull")

    def __init__(self, arrays: Sequence[Any], pull: Pull) -> None:
        self.arrays, self.pull = arrays, pull


@lru_cache(maxsize=256)
def _recording(name: str) -> Callable[..., list[Tensor]]:
    """Return the function with a custom gradient that gives what was computed; kept for speed."""

    def call(done: _Done, *inputs: Tensor) -> Any:
        return [Tensor(array) for array in done.arrays], done.pull

    call.__name__ = call.__qualname__ = name
    return custom_gradient(call)


def pulled_in_trace(
    inputs: Sequence[Tensor],
    pulled: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Any]],
    upstream: Sequence[Tensor],
) -> list[Any]:
    """Return what ``pulled`` returns for inputs and upstream gradients.

    In a trace, each run calls it. The inputs have the values that the call had; they are arguments
    so that tapes follow the gradient to them.
    """
    if active_graph.get() is None:
        return pulled(inputs, upstream)
    package, count = public_package(), len(inputs)

    def run(*values: Tensor) -> list[Tensor]:
        grads = pulled(values[:count], values[count:])
        return [package.zeros_like(x) if g is None else g for x, g in zip(inputs, grads)]

    specs = [TensorSpec(x.shape, x.dtype) for x in inputs]
    found: list[Any] = package.host_call(run, *inputs, *upstream, results=specs)
    return found


def rows_of(arrays: Sequence[Any]) -> list[Any]:
    """Return the upstream gradients that have many rows, as those of a Jacobian."""
    rows = [x for x in arrays if isinstance(x, Batched)]
    if any(isinstance(x.array, Batched) or x.level != rows[0].level for x in rows):
        raise NotImplementedError(
            "a Jacobian of a Jacobian has several axes of rows at once, and the other library "
            "takes one: compute one of them row by row, with experimental_use_pfor=False"
        )
    return rows


def with_rows(array: Any, rows: Sequence[Any]) -> Any:
    """Return an upstream gradient with the axis of the rows, if there is one."""
    if isinstance(array, Batched):
        return array.array
    return as_batched(array, rows[0].array) if rows else array


def specs_of(
    bridge: str,
    name: str,
    parts: Callable[[Sequence[Sequence[int]]], Parts],
    xs: Sequence[Tensor],
) -> tuple[Parts, list[TensorSpec]]:
    """Return the structure of a function's result for a trace, and a spec for each tensor in it.

    Parameters
    ----------
    bridge, name
        The names of the bridge and the function, for messages.
    parts
        Returns the result for arguments of given shapes, with shapes and dtypes of tensors.
    xs
        The arguments. If some of their sizes are unknown, two guesses show which sizes of the
        results depend on them.
    """

    def guessed(size: int) -> Parts:
        return parts([[int(n) if known_size(n) else size for n in x.shape] for x in xs])

    try:
        if any(x.shape is None for x in xs):
            raise TypeError("an argument has an unknown number of axes")
        first = guessed(5)
        second = guessed(7) if any(has_unknown_sizes(x.shape) for x in xs) else first
        if second is not first and first.key() != second.key():
            raise TypeError("more than shapes depends on a size that is unknown")
    except Exception as error:
        raise TypeError(
            f"{bridge}: a trace cannot find out the shapes of the results of {name} ({error}): "
            "pass results= with a TensorSpec for each"
        ) from error
    specs = [
        TensorSpec(
            [n if n == m else None for n, m in zip(a.shape, b.shape, strict=True)],
            str(a.dtype).removeprefix("torch."),
        )
        for a, b in zip(first.tensors, second.tensors, strict=True)
    ]
    return first, specs


@contextmanager
def values_of(variables: Sequence[Variable], arrays: Sequence[Any]) -> Iterator[None]:
    """Run a block with other arrays in variables, then restore theirs."""
    with exclusive(variables):
        before = [v.array for v in variables]
        set_arrays(variables, arrays)
        try:
            yield
        finally:
            set_arrays(variables, before)
