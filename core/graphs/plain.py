"""Graphs on raw arrays: compiled by the backend, or as one straight-line function."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..base.generated import function_from
from ..base.observers import excluded
from ..base.sizes import has_unknown_sizes
from ..errors import BackendUnavailable, DistributedError, PluginError
from ..ops.backend import Backend
from ..ops.dispatch import backend_for_type, current_backend, scope_of, settled
from ..ops.kernels import FirstRun, reporting_kernel
from ..tensors.assignment import set_arrays
from ..tensors.op import BinaryOp, Op
from .graph import Graph
from .nodes import Node, Read, Run, Symbol
from .optimize import folded, forward_only, joined_pulls, local_constants


class NotCompiled(Exception):
    """A program could not be compiled, for the reason in ``__cause__``; nothing of it has run."""


@contextmanager
def compiling() -> Iterator[None]:
    """Let the plain executor run a program if the block that compiles it raises an error.

    An executor that compiles a program when it first runs does so in this block.

    Yields
    ------
    None

    Raises
    ------
    NotCompiled
        For any error but a missing library, a failed rank or a plugin that breaks its contract. The
        caller of the executor handles it.

    Examples
    --------
    >>> from gradtape.plugin import compiling
    >>> with compiling():
    ...     program = compile("x * x", "<acme>", "eval")
    """
    try:
        yield
    except (BackendUnavailable, DistributedError, NotCompiled, PluginError):
        raise
    except Exception as error:
        raise NotCompiled from error


def default(graph: Graph) -> Run:
    """Return a function that runs a graph: compiled by the arrays' backend, or plain.

    Parameters
    ----------
    graph
        A graph as it was traced.

    Returns
    -------
    callable
        ``run(arrays) -> list of arrays``, as executors return.

    Examples
    --------
    >>> from gradtape.plugin import default
    >>> square = gt.function(lambda x: x * x)
    >>> graph = square.get_concrete_function(gt.TensorSpec([2])).graph
    >>> default(graph)([np.array([2.0, 3.0], "float32")])[0].tolist()
    [4.0, 9.0]
    """
    return by_backend(graph, lambda program, owner, arrays: owner.compile(program, arrays))


def plain(graph: Graph) -> Run:
    """Return a Python function that runs a graph with one kernel call per node.

    It reads variables when it runs, and changes them together after the last node. It looks up
    kernels once per backend of the arrays.

    Parameters
    ----------
    graph
        A graph as it was traced.

    Returns
    -------
    callable
        ``run(arrays) -> list of arrays``, as executors return, with the attributes ``explain`` and
        ``watched``.

    Examples
    --------
    >>> from gradtape.plugin import plain
    >>> square = gt.function(lambda x: x * x)
    >>> graph = square.get_concrete_function(gt.TensorSpec([2])).graph
    >>> plain(graph)([np.array([2.0, 3.0], "float32")])[0].tolist()
    [4.0, 9.0]
    """
    return by_backend(graph, lambda program, owner, arrays: None)


def by_backend(graph: Graph, compiler: Callable[..., Run | None]) -> Run:
    """Return a function that runs a graph on any backend's arrays: compiled, or node by node.

    Parameters
    ----------
    graph
        A graph as it was traced.
    compiler
        ``compiler(program, owner, arrays)`` returns a function that runs the program on arrays of
        the backend ``owner``, or None to use the plain executor, which also runs the program if an
        error is raised. The program is the graph without the parts that only tapes need.

    Returns
    -------
    callable
        ``run(arrays) -> list of arrays``, as executors return. It calls the compiler once for each
        backend, and for each device of a backend that waits.

    Examples
    --------
    >>> from gradtape.plugin import by_backend
    >>> square = gt.function(lambda x: x * x)
    >>> graph = square.get_concrete_function(gt.TensorSpec([2])).graph
    >>> run = by_backend(graph, lambda program, owner, arrays: lambda arrays: [arrays[0] ** 2])
    >>> run([np.array([2.0, 3.0], "float32")])[0].tolist()
    [4.0, 9.0]
    """
    program = joined_pulls(forward_only(graph))
    variables = program.variables
    runs: dict[str, Run] = {}

    def run(arrays: Sequence[Any], reporting: bool = False) -> list[Any]:
        some = arrays[0] if arrays else variables[0].array if variables else None
        owner = current_backend() if some is None else backend_for_type(type(some))
        if not owner.waits or some is None:
            return run_at(owner.name, owner, arrays, reporting)
        place, scope = f"{owner.name}:{owner.device(some)}", scope_of((some,))
        some = None  # it may be a variable's, and code that counts references must not find it
        with scope:  # results and constants go to the arrays' device
            return run_at(place, owner, arrays, reporting)

    def run_at(place: str, owner: Backend, arrays: Sequence[Any], reporting: bool) -> list[Any]:
        found = runs.get(place)
        if found is None:
            with compiling():
                found = compiler(program, owner, arrays)
            if found is None:
                found = node_by_node(program, owner, arrays)
            runs[place] = found
        return getattr(found, "watched", found)(arrays) if reporting else found(arrays)

    def explain() -> str:
        told = [f"on {name}: {_plan_text(program, found)}" for name, found in runs.items()]
        return "\n".join(told) or "it has not run yet; how it is compiled depends on the arrays"

    run.explain = explain  # type: ignore[attr-defined]
    run.watched = functools.partial(run, reporting=True)  # type: ignore[attr-defined]
    return run


def _plan_text(program: Graph, run: Run) -> str:
    explain = getattr(run, "explain", None)
    if explain is None:
        return f"plain, one kernel call for each of {len(program.nodes)} nodes"
    return str(explain())


def node_by_node(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Run:
    """Return a function that runs a program with one kernel call per node.

    Parameters
    ----------
    program
        The graph, as ``forward_only`` returns it.
    owner
        The backend that the arrays are on.
    arrays
        The arrays of the first call.
    """
    function = _compile(program, owner, arrays)
    made: list[Callable[..., list[Any]]] = []

    def watched(arrays: Sequence[Any]) -> list[Any]:
        if not made:
            with excluded():
                made.append(_compile(program, owner, arrays, reporting=True))
        return made[0](*arrays)

    def run(arrays: Sequence[Any]) -> list[Any]:
        return function(*arrays)

    run.watched = watched  # type: ignore[attr-defined]
    return run


def _compile(
    program: Graph, owner: Backend, arrays: Sequence[Any], reporting: bool = False
) -> Callable[..., list[Any]]:
    """Write the program as Python source with numbered names only, and compile it.

    If ``reporting`` is true, each kernel reports to the watcher.
    """
    scope: dict[str, Any] = {"__name__": __name__}  # no user's code, for the lines of messages
    names: dict[Symbol, str] = {}
    for symbol, array in local_constants(program, arrays).items():
        names[symbol] = _bind(scope, "c", array)
    for symbol in program.inputs:
        names[symbol] = f"x{len(names)}"
    lines = [f"def run({', '.join(names[symbol] for symbol in program.inputs)}):"]
    kept = {*program.outputs, *program.updates.values(), *program.constants}
    last_use: dict[Symbol, int] = {}
    for i, node in enumerate(program.nodes):
        used = [x for x in (*node.inputs, *node.outputs) if type(x) is Symbol and x not in kept]
        last_use.update(dict.fromkeys(used, i))
    known = local_constants(program, arrays)
    for i, node in enumerate(program.nodes):
        value = folded(node, known, owner)
        if value is not None:
            (symbol,) = node.outputs
            known[symbol] = value
            names[symbol] = _bind(scope, "c", value)
            continue
        for symbol in node.outputs:
            names[symbol] = f"v{len(names)}"
        targets = ", ".join(names[symbol] for symbol in node.outputs)
        targets += "," if node.several else ""
        lines.append(f"    {targets} = {_expression(node, names, scope, owner, reporting)}")
        here = dict.fromkeys((*node.inputs, *node.outputs))
        free = [names[x] for x in here if last_use.get(x) == i and x not in known]
        if free:
            lines.append(f"    del {', '.join(free)}")
    if program.updates and owner.settles:
        lasting = dict.fromkeys(names[x] for x in (*program.updates.values(), *program.outputs))
        lines.append(
            f"    {', '.join(lasting)}, = {_bind(scope, 'a', settled)}(({', '.join(lasting)},))"
        )
    for variable, symbol in program.updates.items():
        if has_unknown_sizes(symbol.shape):
            lines.append(f"    {_bind(scope, 'a', variable.check_shape)}({names[symbol]}.shape)")
    if program.updates:
        new = "".join(f"{names[symbol]}, " for symbol in program.updates.values())
        written = _bind(scope, "w", tuple(program.updates))
        lines.append(f"    {_bind(scope, 'a', set_arrays)}({written}, ({new}))")
    lines.append(f"    return [{', '.join(names[symbol] for symbol in program.outputs)}]")
    return function_from("\n".join(lines), "run", f"<{program.name!r}>", scope)


def _expression(
    node: Node, names: dict[Symbol, str], scope: dict[str, Any], owner: Backend, reporting: bool
) -> str:
    if isinstance(node.op, Read):
        return f"{_bind(scope, 'r', node.op.variable)}.array"
    arguments = [
        names[x] if type(x) is Symbol else _bind(scope, "s", argument_of(node, x, owner))
        for x in node.inputs
    ]
    kernel = kernel_of(node, owner)
    if reporting:
        kernel = reporting_kernel(node.op.name, owner, kernel)
    elif (
        isinstance(node.op, Op) and not node.op.verified and owner.name not in node.op.original.held
    ):
        kernel = FirstRun(node.op.original, owner, kernel, node.outputs)
    name = _bind(scope, "k", kernel)
    if type(kernel) is FirstRun:
        kernel.note_lookup(scope, name)
    return f"{name}({', '.join(arguments)})"


def kernel_of(node: Node, owner: Backend) -> Callable[..., Any]:
    """Return a function that computes an op's node from the arrays of all its inputs.

    Parameters
    ----------
    node
        A step of a program whose ``op`` is an :class:`Op`.
    owner
        The backend that the program runs on.

    Returns
    -------
    callable
        ``kernel(*arrays)``, with the node's parameters. It returns an array, or a sequence if
        ``node.several``.

    Raises
    ------
    UnknownOp
        If the backend has no kernel for the op.

    Examples
    --------
    >>> from gradtape.plugin import kernel_of
    >>> square = gt.function(lambda x: x * x)
    >>> graph = square.get_concrete_function(gt.TensorSpec([2])).graph
    >>> x = np.array([2.0, 3.0], "float32")
    >>> kernel_of(graph.nodes[0], gt.registry().backend("numpy"))(x, x).tolist()
    [4.0, 9.0]
    """
    assert isinstance(node.op, Op)
    kernel = node.op.kernel_for(owner)
    if node.witnesses:
        return _settling(node, kernel)
    return functools.partial(kernel, **node.params) if node.params else kernel


def argument_of(node: Node, scalar: Any, owner: Backend) -> Any:
    """Return the value that a kernel receives for a Python number among a node's inputs.

    Parameters
    ----------
    node
        A step of a program.
    scalar
        The Python number, which is weak: it takes the dtype of the arrays.
    owner
        The backend that the program runs on.

    Returns
    -------
    number or array
        The number; an array without axes if the op makes one when it runs eagerly.

    Examples
    --------
    >>> from gradtape.plugin import argument_of
    >>> twice = gt.function(lambda x: x * 2.0)
    >>> node = twice.get_concrete_function(gt.TensorSpec([2])).graph.nodes[0]
    >>> float(argument_of(node, 2.0, gt.registry().backend("numpy")))
    2.0
    """
    if not isinstance(node.op, BinaryOp):
        return scalar
    # an array, made once, if the op makes one when it runs eagerly
    return owner.weak_scalar(scalar, next(x.dtype for x in node.inputs if type(x) is Symbol))


def _settling(node: Node, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return a kernel that also takes the witnesses, and computes its parameters from them."""
    settle = node.settling()

    def run(*arrays: Any) -> Any:
        given, params = settle(arrays)
        return kernel(*given, **params)

    return run


def _bind(scope: dict[str, Any], letter: str, value: Any) -> str:
    name = f"{letter}{len(scope)}"
    scope[name] = value
    return name
