"""Executors: which one runs a graph, and what it made of the graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..base.dtypes import numpy_dtype
from ..base.spec import describe
from ..base.table import registry
from ..base.watcher import watcher
from ..errors import PluginError, UnknownOp
from ..ops.collectives import as_group_of_one
from ..tensors.several import exclusive
from ..tensors.tensor import Tensor
from .graph import Graph
from .nodes import Run, Symbol
from .replay import replay

__all__ = ["ENVIRONMENT", "compiled", "executor", "explained", "selected", "telling"]

#: The environment variable that names the executor of a process.
ENVIRONMENT = "GRADTAPE_EXECUTOR"

#: The executor that runs graphs, by name.
selected: ContextVar[str] = ContextVar(
    "gradtape_executor", default=os.environ.get(ENVIRONMENT) or "default"
)
_OF_PROCESS = selected.get()

#: What follows the name of an executor whose runs tell a watcher of their steps.
_TELLING = ", telling"


@contextmanager
def telling() -> Iterator[None]:
    """Run traced functions in a block so that they tell whoever watches of their steps."""
    token = selected.set(selected.get().removesuffix(_TELLING) + _TELLING)
    try:
        yield
    finally:
        selected.reset(token)


@contextmanager
def executor(name: str) -> Iterator[None]:
    """Run traced functions by another executor for a block.

    A function keeps what each executor made of it, so nothing is compiled twice. What an executor
    computes does not depend on it, but for the last digits. ``gt.function(executor=...)`` goes
    before this, and this before the environment variable ``GRADTAPE_EXECUTOR``, which is read when
    gradtape is imported.

    Parameters
    ----------
    name
        ``"default"``: what the backend of the arrays compiles, or ``"plain"`` if it compiles
        nothing. ``"plain"``: one call of a kernel per node. Or one of a plugin
        (``gradtape plugins`` lists them).

    Yields
    ------
    None

    Raises
    ------
    UnknownOp
        If no plugin provides the executor.

    Examples
    --------
    >>> square = gt.function(lambda x: x * x)
    >>> with gt.executor("plain"):
    ...     square(gt.constant(3.0)).item()
    9.0
    """
    registry().executor(name)  # fail here rather than at the first call
    token = selected.set(name if watcher.get() is None else name + _TELLING)
    try:
        yield
    finally:
        selected.reset(token)


def compiled(graph: Graph, name: str | None = None) -> Run:
    """Return what runs a graph, made by an executor (the selected one) when first asked for."""
    name = selected.get() if name is None else name
    run = graph.runs.get(name)
    if run is None:
        own = name.removesuffix(_TELLING)
        if own == name:
            made = graph.made[name] = _made(graph, name)
        else:
            made = _telling(graph, own)
        run = _naming(graph, _checking(graph, own, made))
        graph.runs[name] = run = _alone(graph, run) if graph.updates else run
    return run


def _telling(graph: Graph, name: str) -> Run:
    """Return what runs a graph, and tells whoever watches of its steps if the executor can."""
    compiled(graph, name)
    made = graph.made[name]
    by_steps = getattr(made, "watched", made)

    def run(arrays: Sequence[Any]) -> list[Any]:
        watching = watcher.get()
        if watching is None:  # it has gone, and this is a context that it was copied into
            return made(arrays)
        return watching.graph(graph.name, name, by_steps, arrays)

    return run


def explained(graph: Graph, name: str | None = None) -> str:
    """Return what an executor made of a graph, in words."""
    name = (selected.get() if name is None else name).removesuffix(_TELLING)
    compiled(graph, name)
    explain = getattr(graph.made[name], "explain", None)
    told = "it does not say how it runs graphs" if explain is None else str(explain())
    return f"{graph.name}, by the executor {name!r}:\n{told}"


def _alone(graph: Graph, run: Run) -> Run:
    """Let no other thread change what the graph assigns between its reads and its assignments."""
    held = exclusive(graph.updates)

    def run_alone(arrays: Sequence[Any]) -> list[Any]:
        with held:
            return run(arrays)

    return run_alone


def _made(graph: Graph, name: str) -> Run:
    """Return what an executor makes of a graph."""
    try:
        executor = registry().executor(name)
    except UnknownOp as error:
        if name != _OF_PROCESS:
            raise
        raise UnknownOp(f"environment variable {ENVIRONMENT}: {error}") from None
    made: Run = executor(graph)
    if not callable(made):
        raise PluginError(
            f"executor {name!r}: it made {made!r} of the graph {graph.name!r} instead of a "
            "function from a list of arrays to a list of arrays"
        )
    return made


def _checking(graph: Graph, name: str, execute: Run) -> Run:
    """Look at what somebody else's executor returns, the first time."""
    owner = registry().owner("executor", name)
    if owner is None or owner.ours:
        return execute
    checked = False

    def run(arrays: Sequence[Any]) -> list[Any]:
        nonlocal checked
        found = execute(arrays)
        if not checked:
            wrong = _mistake(graph, arrays, found)
            if wrong is not None:
                raise PluginError(f"executor {name!r}: of {graph.name!r} it returned {wrong}")
            checked = True
        return found

    return run


def _mistake(graph: Graph, arrays: Sequence[Any], found: Any) -> str | None:
    """Say what is wrong with the results of a graph, if anything."""
    if not isinstance(found, (list, tuple)):
        return f"{type(found).__name__} instead of a list of arrays"
    if len(found) != len(graph.outputs):
        return f"{len(found)} results instead of {len(graph.outputs)}"
    as_traced = all(map(_is_as_traced, graph.inputs, arrays))  # vmap gives others
    for i, (symbol, x) in enumerate(zip(graph.outputs, found, strict=True)):
        if isinstance(x, Tensor) or not hasattr(x, "dtype") or not hasattr(x, "shape"):
            return f"{type(x).__name__} instead of an array as result {i}"
        if as_traced and not _is_as_traced(symbol, x):
            wanted = describe(symbol.shape, symbol.dtype)
            return f"{describe(x.shape, x.dtype)} instead of {wanted} as result {i}"
    return None


def _is_as_traced(symbol: Symbol, x: Any) -> bool:
    """Return whether an array has the dtype of a symbol, and its shape as far as it is known."""
    shape = symbol.shape
    if shape is not None:
        if len(shape) != len(x.shape):
            return False
        if any(type(n) is int and n != m for n, m in zip(shape, x.shape, strict=True)):
            return False
    return bool(numpy_dtype(x.dtype) == symbol.dtype)


def _naming(graph: Graph, execute: Run) -> Run:
    def run(arrays: Sequence[Any]) -> list[Any]:
        try:
            return execute(arrays)
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            if "named_op" not in vars(error):
                # one op at a time, the failing one names itself; nothing is assigned on this way,
                # and no other rank of a job waits for what was not yet done
                with as_group_of_one():
                    replay(graph.without_updates(), [Tensor(x) for x in arrays])
            raise

    return run
