"""Traces with unknown sizes, run at several sizes and compared with the shapes that they infer."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.measuring import Case, Found, Refused
from fuzz.program import Array
from gradtape.core.extend import (
    ConcreteFunction,
    plain,
    shape_in_run,
)

__all__ = ["at_other_sizes", "batched", "misinferred", "saved", "traced", "traces"]

SIZES = (0, 1, 2, 3, 7)
LARGEST = 400  # elements of an input, at most
#: The errors by which a trace refuses a program.
REFUSALS = (TypeError, ValueError, gt.errors.TraceError)
Pairs = Iterator[Any]


# -- other sizes -----------------------------------------------------------------------------------


def at_other_sizes(case: Case, sizes: Sequence[int] = SIZES) -> Iterator[Case]:
    """Yield the case at other sizes of its inputs, if an eager run accepts them.

    Axes of the same size keep the same size.
    """
    inputs = case.program.inputs
    drawn = sorted({n for x in inputs.values() for n in x.shape})
    rng, numbers = random.Random(case.program.seed), np.random.default_rng(case.program.seed)
    for size in sizes if drawn else ():
        others = {n: rng.choice((n, n, *SIZES[1:])) for n in drawn}
        others[rng.choice(drawn)] = size
        given = {name: _resized(x, others, numbers) for name, x in inputs.items()}
        if any(x.size > LARGEST for x in given.values()):
            continue
        program = replace(case.program, inputs=given)
        case.reset()
        steps = [line.name for line in program.lines if not line.assigns]
        every = replace(program, outputs=(*program.outputs, *steps)).function(case.variables)
        try:
            values = every(*map(gt.constant, given.values()))
        except Exception:
            continue  # an error in the eager run: anything may happen
        try:
            other = Case(program, case.variables)
        except (ValueError, TypeError, np.linalg.LinAlgError):
            continue  # a gradient that is refused with an error
        # how far nan spreads in the backward pass is unspecified; the mean of nothing is nan
        promised = [*other.want, *values] if size else other.want[len(other.weights) :]
        if all(np.isfinite(y.numpy()).all() for y in promised):
            yield other


def _resized(x: Array, sizes: dict[int, int], numbers: np.random.Generator) -> Array:
    shape = tuple(sizes[n] for n in x.shape)
    made = numbers.uniform(0.15, 1.6, shape) * numbers.choice([-1.0, 1.0], shape)
    if x.dtype.kind == "c":
        made = made * np.exp(1j * numbers.uniform(0, 6.28, shape))
    return np.asarray(made)


# -- shapes and dtypes that a trace infers ---------------------------------------------------------


def misinferred(concrete: ConcreteFunction, tensors: Sequence[Any]) -> str | None:
    """Return a shape or dtype that the trace inferred wrongly for these inputs, or None."""
    graph = concrete.graph.without_updates()
    symbols = [*graph.inputs, *(symbol for node in graph.nodes for symbol in node.outputs)]
    graph.outputs, graph.runs = symbols, {}
    found = plain(graph)([x.array for x in tensors])
    arrays = dict(zip(symbols, found, strict=True))
    for node in graph.nodes:
        for symbol in node.outputs:
            array, name = arrays[symbol], getattr(node.op, "name", "node")
            shape = shape_in_run(symbol, arrays)
            if array.dtype != symbol.dtype:
                return f"inferred dtype of {name}: {symbol.dtype} for {array.dtype}"
            if shape is not None and (
                len(shape) != array.ndim
                or any(n not in (None, m) for n, m in zip(shape, array.shape, strict=True))
            ):
                return f"inferred shape of {name}: {symbol.shape} is {shape} for {array.shape}"
    return None


# -- traces ----------------------------------------------------------------------------------------


def everything(case: Case) -> Callable[..., Any]:
    """Return a function of inputs, weights and directions that gives values and both orders."""
    n, m = len(case.xs), len(case.weights)

    def run(*given: Any) -> Any:
        weights, directions = given[n : n + m], given[n + m :]
        return tuple(case.orders(*given[:n], weights=weights, directions=directions))

    return run


def arguments(case: Case) -> list[Any]:
    """Return the arguments of :func:`everything`."""
    return [*case.xs, *map(gt.constant, (*case.weights, *case.directions))]


def traced(fn: Callable[..., Any], xs: Sequence[Any], unknown: str) -> Any:
    """Return a traced function of ``xs`` in which ``nothing``, ``sizes`` or ``rank`` is unknown.

    Raises
    ------
    Refused
        If the trace refuses the function with an error.
    """
    shapes: list[Any] = [None if unknown == "rank" else [None] * x.ndim for x in xs]
    if unknown == "nothing":
        shapes = [x.shape for x in xs]
    specs = [gt.TensorSpec(s, x.dtype) for s, x in zip(shapes, xs, strict=True)]
    names = ", ".join(f"a{i}" for i in range(len(xs)))
    flat = eval(f"lambda {names}: fn({names})", {"fn": fn})
    made: Any = gt.function(flat, input_signature=specs)
    if unknown != "nothing":
        try:
            made.get_concrete_function()
        except REFUSALS as error:
            raise Refused(str(error)) from error
    return made


def _fits(case: Case, other: Case) -> bool:
    return [w.ndim for w in case.weights] == [w.ndim for w in other.weights]


def _asked(case: Case, whole: Any, alone: Any, kind: str) -> Pairs:
    """Give the results of traces of everything, and of the program alone, at a case's sizes."""
    if whole is not None:
        case.reset()
        yield from case.beside(whole(*arguments(case)), f"{kind}, ")
    case.reset()
    yield from case.beside(case.orders(*case.xs, run=alone), f"{kind}, taped, ")
    case.reset()
    values = case.want[: len(case.weights)]
    for got, want in zip(alone(*case.xs), values, strict=True):
        yield Found(f"{kind}, alone", got, want, case=case)


def traces(unknown: str) -> Callable[[Case], Pairs]:
    """Return a mode: a trace of everything, then of the program alone, with tapes outside."""

    def mode(case: Case) -> Pairs:
        case.reset()
        alone = traced(case.run, case.xs, unknown)
        case.reset()
        whole = traced(everything(case), arguments(case), unknown)
        yield from _asked(case, whole, alone, "compiled")
        if unknown == "nothing":
            return
        _hold(case, whole)
        # without a rank, rules cannot handle empty axes
        for other in at_other_sizes(case, SIZES[1:] if unknown == "rank" else SIZES):
            fits = unknown == "rank" or _fits(case, other)
            at = f"traced at {_shapes(case)}, run at {_shapes(other)}"
            with suppress(np.linalg.LinAlgError):  # singular, or nearly so
                yield from _asked(other, whole if fits else None, alone, at)
                if fits:
                    _hold(other, whole)

    return mode


def _hold(case: Case, whole: Any) -> None:
    """Raise an error if a trace infers a wrong shape or dtype at the sizes of a case."""
    if not case.program.stateful:
        said = misinferred(whole.get_concrete_function(), arguments(case))
        if said:
            raise AssertionError(said)


def _shapes(case: Case) -> str:
    return " ".join(str(x.shape) for x in case.xs)


def saved(case: Case) -> Pairs:
    """Saved and loaded, the program alone and with its gradients."""
    if case.sources:
        return  # the loaded program has its own variables
    unknown = ("nothing", "sizes")[case.program.seed % 2]
    made = {
        "alone": traced(case.run, case.xs, unknown),
        "whole": traced(everything(case), arguments(case), unknown),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.h5"
        try:
            gt.save(gt.Module(), path, made, golden=False)
        except REFUSALS as error:
            raise Refused(str(error)) from error
        loaded = gt.load(path).signatures
    yield from _asked(case, loaded["whole"], loaded["alone"], "loaded")
    for other in at_other_sizes(case) if unknown == "sizes" else ():
        whole = loaded["whole"] if _fits(case, other) else None
        with suppress(np.linalg.LinAlgError):
            yield from _asked(other, whole, loaded["alone"], f"loaded, run at {_shapes(other)}")


def batched(case: Case) -> Pairs:
    """A trace of ``vmap`` with unknown sizes, compared with a loop."""
    if case.program.stateful:
        raise Refused("it assigns to a variable")
    stacked = [gt.stack([x, x]) for x in arguments(case)]
    whole = traced(gt.vmap(everything(case)), stacked, "sizes")
    for other in (case, *at_other_sizes(case)):
        if _fits(case, other):
            with suppress(np.linalg.LinAlgError):
                yield from _batch_asked(other, everything(case), whole)


def _batch_asked(case: Case, eager: Callable[..., Any], whole: Any) -> Pairs:
    """Give the results of a trace of ``vmap`` for two examples at the sizes of a case."""
    inputs = {k: x * (1.0 + 2.0**-9) for k, x in case.program.inputs.items()}
    rows = [case, Case(replace(case.program, inputs=inputs), case.variables)]
    pairs = zip(*(arguments(row) for row in rows), strict=True)
    together = [gt.stack(list(pair)) for pair in pairs]
    try:
        got = whole(*together)
    except Exception:
        try:
            gt.vmap(eager)(*together)
        except Exception:
            return  # a program that runs in a loop need not work in a batch
        raise
    want = [gt.stack(list(column)) for column in zip(*(row.want for row in rows), strict=True)]
    yield from case.beside(got, f"traced vmap at {_shapes(case)}, ", want)
