"""Executors: selects the one that runs a graph, and keeps what it made for the graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from ..base.array_types import describe
from ..base.context import Setting, muting
from ..base.dtypes import numpy_dtype
from ..base.lifetimes import KERNEL_CACHES
from ..base.observers import stage, watcher
from ..base.table import registry
from ..base.user_code import warn_user
from ..errors import ExecutorWarning, PluginError, UnknownOp
from ..ops.collectives import as_group_of_one, communicator
from ..ops.unchanged import Unchanged
from ..tensors.assignment import Stream, exclusive
from ..tensors.notebooks import Text
from ..tensors.op import Op
from ..tensors.tensor import Tensor
from .graph import Graph
from .nodes import Run, Symbol
from .plain import NotCompiled, compiling, plain
from .replay import move_shared_stream, replay

#: The environment variable that names the executor of a process.
ENVIRONMENT = "GRADTAPE_EXECUTOR"

#: The name of the executor that runs graphs.
selected: ContextVar[str] = ContextVar(
    "gradtape_executor", default=os.environ.get(ENVIRONMENT) or "default"
)
_OF_PROCESS = selected.get()

#: The suffix of an executor's name if its runs report their steps to a watcher.
_TELLING = ", telling"


def reporting_steps() -> Setting[str]:
    """Make traced functions in a block report their steps to the watcher."""
    return Setting(selected, selected.get().removesuffix(_TELLING) + _TELLING)


@contextmanager
def executor(name: str) -> Iterator[None]:
    """Run traced functions with another executor in a block.

    A function keeps what each executor compiled for it, so nothing is compiled twice. Results do
    not depend on the executor, except for the last digits. ``gt.function(executor=...)`` takes
    precedence over this block, and this block over the environment variable ``GRADTAPE_EXECUTOR``,
    which is read when gradtape is imported.

    Parameters
    ----------
    name
        ``"default"`` runs what the backend of the arrays compiles, or ``"plain"`` if it compiles
        nothing; functions of NumPy that run often change to compiled loops if llvmlite is there.
        ``"plain"`` calls one kernel per node. Plugins can provide others:
        ``gradtape plugins`` lists them.

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
    with Setting(selected, name if watcher.get() is None else name + _TELLING):
        yield


def compiled(graph: Graph, name: str | None = None) -> Run:
    """Return the function that runs a graph, made once by an executor (the selected one)."""
    name = selected.get() if name is None else name
    run = graph.runs.get(name)
    if run is None:
        run = KERNEL_CACHES.keep(graph, graph.runs, name, lambda: _run(graph, name))
    return run


def _run(graph: Graph, name: str) -> Run:
    """Return the function that runs a graph by an executor, which reports its steps if asked."""
    own = name.removesuffix(_TELLING)
    run = _guarded(graph, own, own != name)
    return _with_locks(graph, run) if graph.updates else run


def _by_executor(graph: Graph, name: str) -> Any:
    """Return what an executor made for a graph, once."""
    made = graph.made.get(name)
    if made is None:
        with stage(f"planning {graph.name}"):
            made = KERNEL_CACHES.keep(graph, graph.made, name, lambda: _made(graph, name))
    return made


def _reporting_run(graph: Graph, name: str) -> Run:
    """Return a function that runs a graph, and reports its steps if the executor can."""

    def run(arrays: Sequence[Any]) -> list[Any]:
        watching, made = watcher.get(), _by_executor(graph, name)
        if watching is None:  # it ended after this context was copied
            found: list[Any] = made(arrays)
            return found
        return watching.graph(graph.name, name, getattr(made, "watched", made), arrays)

    return run


def explained(graph: Graph, name: str | None = None) -> str:
    """Describe how an executor runs a graph."""
    name = (selected.get() if name is None else name).removesuffix(_TELLING)
    explain = getattr(_by_executor(graph, name), "explain", None)
    told = "it does not say how it runs graphs" if explain is None else str(explain())
    contests = registry().contested({node.op.name for node in _nodes(graph)})
    lines = [f"{graph.name}, by the executor {name!r}:", told, *map(str, contests)]
    return Text("\n".join(lines))


def _nodes(graph: Graph) -> Iterator[Any]:
    """Yield the nodes of a graph and of those in it whose op has a name."""
    for node in graph.nodes:
        if isinstance(node.op, Op):
            yield node
        for inner in node.graphs:
            yield from _nodes(inner)


def _with_locks(graph: Graph, run: Run) -> Run:
    """Lock the variables that a graph assigns, from its reads to its assignments."""
    held = exclusive(graph.updates)
    draws = Stream.shared in graph.updates

    def run_alone(arrays: Sequence[Any]) -> list[Any]:
        with held:
            if draws:
                move_shared_stream(graph, arrays)
            return run(arrays)

    return run_alone


def _made(graph: Graph, name: str) -> Run:
    """Return the function that an executor makes for a graph."""
    try:
        executor = registry().executor(name)
    except UnknownOp as error:
        if name != _OF_PROCESS or not os.environ.get(ENVIRONMENT):
            raise
        raise UnknownOp(f"environment variable {ENVIRONMENT}: {error}") from None
    if _acts(graph):
        executor = plain  # effects happen in order, and on arrays that hold values
    try:
        with compiling():
            made: Run = executor(graph)
    except NotCompiled as failed:
        return _raising(failed)
    if not callable(made):
        raise PluginError(
            f"executor {name!r}: it made {made!r} for the graph {graph.name!r} instead of a "
            "function from a list of arrays to a list of arrays"
        )
    return made


def _acts(graph: Graph) -> bool:
    return any(node.acts for node in graph.nodes)


def _raising(error: Exception) -> Run:
    def run(arrays: Sequence[Any]) -> list[Any]:
        raise error

    return run


def _checking(graph: Graph, name: str, execute: Run) -> Run:
    """Check the first results of an executor."""
    checked = False

    def run(arrays: Sequence[Any]) -> list[Any]:
        nonlocal checked
        if checked:
            return execute(arrays)
        # it may compile only now; another run must not repeat what is seen outside the program
        repeatable = not graph.updates and not _acts(graph) and communicator().size == 1
        before = Unchanged(() if graph.updates else arrays)
        with compiling() if repeatable else nullcontext():
            found = execute(arrays)
        wrong = _mistake(graph, arrays, found)
        if not before.holds():
            raise PluginError(
                f"executor {name!r}: for {graph.name!r} it wrote into an argument, which a tensor "
                "holds; write into arrays of your own"
            )
        if wrong is not None:
            raise PluginError(f"executor {name!r}: for {graph.name!r} it returned {wrong}")
        checked = True
        return found

    return run


def _mistake(graph: Graph, arrays: Sequence[Any], found: Any) -> str | None:
    """Describe what is wrong with the results of a graph; None if they are right."""
    if not isinstance(found, (list, tuple)):
        return f"{type(found).__name__} instead of a list of arrays"
    if len(found) != len(graph.outputs):
        return f"{len(found)} results instead of {len(graph.outputs)}"
    as_traced = all(map(_is_as_traced, graph.inputs, arrays))  # vmap passes other shapes
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


def _guarded(graph: Graph, name: str, reporting: bool) -> Run:
    """Run a graph by what an executor made; by the plain executor if it cannot be compiled."""
    made = _reporting_run(graph, name) if reporting else _by_executor(graph, name)
    execute = _checking(graph, name, made)

    def run(arrays: Sequence[Any]) -> list[Any]:
        nonlocal execute
        try:
            return execute(arrays)
        except NotCompiled as failed:
            cause = failed.__cause__
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            _name_op(graph, error, arrays)
            raise
        instead = plain(graph)
        try:
            found = instead(arrays)
        except (ArithmeticError, IndexError, TypeError, ValueError) as error:
            _name_op(graph, error, arrays)  # the program itself is wrong
            raise
        graph.made[name] = _explaining(instead, cause)
        execute = _reporting_run(graph, name) if reporting else instead
        warn_user(
            f"executor {name!r} failed for {graph.name!r} ({_in_words(cause)}); the plain executor "
            'runs it instead, one kernel call per node. executor="plain" selects that without a '
            "warning",
            ExecutorWarning,
        )
        return found

    return run


def _name_op(graph: Graph, error: Exception, arrays: Sequence[Any]) -> None:
    """Run one op at a time, so that a failing op names itself, unless an error names it."""
    if "named_op" not in vars(error):
        # assign nothing, and make no other rank of a job wait
        with as_group_of_one(), muting():
            replay(graph.without_updates(), [Tensor(x) for x in arrays])


def _explaining(plainly: Any, cause: BaseException | None) -> Any:
    """Return what the plain executor made, with an explanation that says why it runs a graph."""
    told = f"by the executor 'plain', because this one failed ({_in_words(cause)})"
    explain = plainly.explain
    plainly.explain = lambda: f"{told}\n{explain()}"
    return plainly


def _in_words(error: BaseException | None) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
