"""Traced programs as functions that JAX traces, to be compiled by ``jax.jit`` or exported."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from contextvars import ContextVar
from itertools import chain
from math import prod
from typing import TYPE_CHECKING, Any

import jax

from ...core.extend import (
    BinaryOp,
    Op,
    Read,
    Symbol,
    forward_only,
    has_unknown_sizes,
    local_constants,
    registry,
    set_arrays,
)

if TYPE_CHECKING:
    from .backend import JaxBackend

#: Whether JAX compiles for an export, which cannot call back to this process.
exporting: ContextVar[bool] = ContextVar("exporting", default=False)

# Larger constants are passed to the compiled function instead of being written into it.
_LARGEST_WRITTEN = 2**12


class Refused(TypeError):
    """An op that XLA cannot compile; the message has its name."""


def pure(program: Any, owner: JaxBackend, arrays: Sequence[Any] = ()) -> Callable[..., Any]:
    """Return a traced program as a pure function that JAX can trace, transform and export.

    Parameters
    ----------
    program
        A graph after ``forward_only``, as ``Backend.compile`` receives it, or any graph.
    owner
        The JAX backend.
    arrays
        Some arrays of a call, which decide the device of constants.

    Returns
    -------
    callable
        ``step(read, inputs) -> (outputs, updates)`` on lists of arrays. Its attribute ``reads``
        lists the variables whose arrays are ``read``, in order, and ``writes`` those whose new
        arrays are ``updates``. It runs inside ``with owner.scope():``.
    """
    program = forward_only(program)
    constants = local_constants(program, arrays)
    reads = _read_by(program)

    def step(read: Sequence[Any], inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return _results(program, owner, constants, dict(zip(reads, read, strict=True)), inputs)

    step.reads, step.writes = reads, list(program.updates)  # type: ignore[attr-defined]
    return step


def _results(
    program: Any,
    owner: JaxBackend,
    constants: Mapping[Symbol, Any],
    variables: Mapping[Any, Any],
    inputs: Sequence[Any],
) -> tuple[list[Any], list[Any]]:
    """Return the outputs of a program, and the new values of its variables."""
    known = {**constants, **dict(zip(program.inputs, inputs, strict=True))}
    values = _run(program, owner, known, variables)
    return (
        [values[symbol] for symbol in program.outputs],
        [values[symbol] for symbol in program.updates.values()],
    )


def traced(graph: Any, owner: JaxBackend) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a graph inside an op as a function of arrays for JAX to trace."""
    step = pure(graph, owner)
    if step.reads or step.writes:  # type: ignore[attr-defined]
        raise Refused(f"{graph.name}: variables are read inside a graph")
    return lambda arrays: list(step([], arrays)[0])


def portable(name: str) -> Callable[..., Any]:
    """Return the portable kernel of an op, for JAX arrays."""
    found: Callable[..., Any] = registry().backend("jax").bind(registry().op(name).kernel)
    return found


def _read_by(program: Any) -> list[Any]:
    nodes = [node for node in program.nodes if isinstance(node.op, Read)]
    return list(dict.fromkeys(node.op.variable for node in nodes))


def _run(
    program: Any, owner: JaxBackend, values: dict[Symbol, Any], variables: Mapping[Any, Any]
) -> dict[Symbol, Any]:
    """Run the kernels of a program in order."""
    for node in program.nodes:
        if isinstance(node.op, Read):
            values[node.outputs[0]] = variables[node.op.variable]
            continue
        op: Op = node.op
        given = [values[x] if type(x) is Symbol else x for x in node.inputs]
        if isinstance(op, BinaryOp):
            given = _weak(owner, given)
        try:
            with _when_known(given):
                given, params = node.settled(given)
                found = _kernel(op, owner)(*given, **params)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            raise Refused(f"op {op.name!r} needs values, which a compiler lacks") from error
        values.update(zip(node.outputs, found if node.several else [found], strict=True))
    return values


def _kernel(op: Op, owner: JaxBackend) -> Callable[..., Any]:
    """Return what computes an op: in an export, the way to express it there, if there is one."""
    lowering = None
    if exporting.get():
        lowering = registry().lowering(op.original.name, "stablehlo", owner.name)
    return op.kernel_for(owner) if lowering is None else lowering


def _weak(owner: JaxBackend, given: list[Any]) -> list[Any]:
    dtype = next((x.dtype for x in given if hasattr(x, "dtype")), None)
    if dtype is None:
        return given
    return [x if hasattr(x, "dtype") else owner.weak_scalar(x, dtype) for x in given]


def _when_known(given: Sequence[Any]) -> Any:
    """Return a context in which values that are the same in every run are computed at once."""
    arrays = [x for x in given if hasattr(x, "dtype")]
    known = arrays and not any(isinstance(x, jax.core.Tracer) for x in arrays)
    if known and all(prod(x.shape) <= _LARGEST_WRITTEN for x in arrays):
        return jax.ensure_compile_time_eval()
    return nullcontext()


# -- compiled --------------------------------------------------------------------------------------


class CompilerInputs:
    """A program as a function of a compiler's inputs: variables, large constants, arguments.

    Called with the arrays of ``donated`` and ``kept``, ``large`` and the inputs, it returns the
    outputs and the updates.

    Parameters
    ----------
    owner
        The JAX backend.
    program
        A graph after ``forward_only``.
    constants
        The arrays of its constants.

    Attributes
    ----------
    donated, kept
        The variables that it reads: those that it also writes, and the others.
    writes
        The variables whose new arrays are the updates.
    large
        The constants that are arguments of the compiled function, not part of it.
    """

    def __init__(self, owner: JaxBackend, program: Any, constants: Mapping[Symbol, Any]) -> None:
        self._owner, self._program = owner, program
        self._large = [x for x, array in constants.items() if prod(array.shape) > _LARGEST_WRITTEN]
        self._written = {x: a for x, a in constants.items() if x not in self._large}
        self.large = [constants[symbol] for symbol in self._large]
        reads, self.writes = _read_by(program), list(program.updates)
        self.donated = [variable for variable in reads if variable in program.updates]
        self.kept = [variable for variable in reads if variable not in program.updates]

    def __call__(
        self, old: Sequence[Any], rest: Sequence[Any], more: Sequence[Any], inputs: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        variables = dict(zip([*self.donated, *self.kept], [*old, *rest], strict=True))
        known = {**self._written, **dict(zip(self._large, more, strict=True))}
        return _results(self._program, self._owner, known, variables, inputs)


def compiled_by_xla(
    owner: JaxBackend, program: Any, arrays: Sequence[Any]
) -> Callable[[Sequence[Any]], list[Any]]:
    """Return a function that runs a program as one call of its ``jax.jit`` function.

    If XLA cannot compile the program, its ops run one by one; ``explain()`` says why.
    """
    parts = CompilerInputs(owner, program, local_constants(program, arrays))
    donated, writes = parts.donated, parts.writes
    open_updates = [v for v, symbol in program.updates.items() if has_unknown_sizes(symbol.shape)]

    def ordered(*given: Any) -> list[Any]:
        outputs, updates = parts(*given)
        return [*updates, *outputs]

    compiled = jax.jit(ordered)
    donating = jax.jit(ordered, donate_argnums=0)
    refusal: list[str] = []

    def call(*given: Any) -> list[Any]:
        """Run, assign the variables, and return the outputs."""
        found: Iterator[Any]
        if open_updates or not free(donated, given[0]):
            found = iter(compiled(*given))
        else:
            # It runs when the first array is taken. By then the old arrays are gone, and until all
            # variables have new ones there is no Python step at which a signal could stop it.
            found = chain.from_iterable(map(donating, *([x] for x in given)))
        return finish(found)

    def finish(found: Iterator[Any]) -> list[Any]:
        if open_updates:
            found = iter(arrays := list(found))
            for variable, array in zip(writes, arrays, strict=False):
                variable.check_shape(array.shape)
        set_arrays(writes, found)
        return list(found)

    def run(arrays: Sequence[Any]) -> list[Any]:
        with owner.scope():
            given = (
                [variable.array for variable in donated],
                [variable.array for variable in parts.kept],
                parts.large,
                list(arrays),
            )
            if not refusal:
                try:
                    return call(*given)
                except Refused as error:
                    refusal.append(str(error))
            return finish(iter(ordered(*given)))

    def explain() -> str:
        if refusal:
            return f"one op at a time: {refusal[0]}"
        return f"{len(program.nodes)} nodes as one function of jax.jit"

    run.explain = explain  # type: ignore[attr-defined]
    return run


# -- references to an array ------------------------------------------------------------------------


class _CountedVariable:
    """A variable, for counting references only."""

    array: Any


def _counts(variables: Sequence[Any], arrays: Sequence[Any]) -> list[int]:
    return [sys.getrefcount(array) for array in arrays]


def free(variables: Sequence[Any], arrays: Sequence[Any], alone: int | None = None) -> bool:
    """Return whether only variables hold their arrays, so that XLA may write into them.

    ``alone`` is the number of references in that case, as counted by :func:`references`. There must
    be no other thread that could take a reference between this check and the call.
    """
    alone = _ALONE if alone is None else alone
    return (
        bool(arrays)
        and (threading.active_count() == 1 or _others_read_nothing())
        and getattr(sys, "_is_gil_enabled", lambda: True)()
        and all(count <= alone for count in _counts(variables, arrays))
        and not any(_seen_on_host(array) for array in arrays)
    )


def _others_read_nothing() -> bool:
    """Return whether all other threads declare that they read no variables."""
    here = threading.current_thread()
    others = [thread for thread in threading.enumerate() if thread is not here]
    return all(getattr(thread, "harmless", False) for thread in others)


def _seen_on_host(array: Any) -> bool:
    """Return whether NumPy may share an array's memory."""
    return getattr(array, "_npy_value", None) is not None


def references(array: Any) -> int:
    """Return the number of references to an array that one variable holds, and its callers."""
    held = [_CountedVariable()]
    held[0].array, array = array, None
    return max(_counts(held, [variable.array for variable in held]))


_ALONE = references(object())
