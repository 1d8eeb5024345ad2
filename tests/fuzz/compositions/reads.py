"""Programs that read a value: the derivative must be right, refused by an error, or warned of."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.measuring import Case, Refused, inner
from fuzz.program import Program, _helpers

__all__ = ["READS", "reads", "with_read"]

#: Expressions equal to ``x`` that read a value, or give NumPy or gradtape a list.
READS = [
    *("np.asarray(x)", "np.array(x)", "np.array([x, x])[1]", "np.array([[x], [x]])[1, 0]"),
    *("np.stack([x, x])[0]", "np.concatenate([x[None], x[None]])[1]", "np.where(True, x, 0.0)"),
    *("np.sum([x, x], axis=0) * 0.5", "np.mean([[x, x], [x, x]], axis=(0, 1))"),
    *("np.max([x, x], axis=0)", "np.add([x, x], 0.0)[0]", "np.multiply(x, 1.0)"),
    *("gt.stack([x, x])[0]", "gt.sum([x, x], axis=0) * 0.5", "gt.mean((x, x), axis=0)"),
    *("gt.maximum([x, x], [x, x])[0]", "gt.concatenate([[x], [x]])[1]"),
    "x - gt.sum(x) + float(gt.sum(x))",
    "x - gt.sum(x) + gt.sum(x).item()",
    "x - gt.sum(x) + sum(float(a) for a in gt.ravel(x))",
    "x - gt.sum(x) + sum(gt.ravel(x).tolist())",
    "x - gt.sin(gt.sum(x)) + math.sin(gt.sum(x))",
    "x - gt.sum(x) + np.full(x.shape, gt.sum(x))",
    "x - gt.sum(x) + np.dot([gt.sum(x), 0.0], [1.0, 2.0])",
    "x - gt.hypot(gt.sum(x), 1.0) + np.linalg.norm([gt.sum(x), 1.0])",
    "x - gt.sum(x) + np.array([gt.sum(x)]).sum()",
    "x - gt.sum(x) + max([gt.sum(x), -1e9])",
    "np.vectorize(lambda a: a)(x)",
    "filled(x)",
]
HELPERS = """import math
def filled(x):
    out = np.zeros(x.shape)
    out[...] = x
    return out
def through(x):
    return READ"""
#: Errors that may refuse a read.
REFUSALS = (
    gt.errors.GradtapeError,
    TypeError,
    ValueError,
)
_number = itertools.count()


def with_read(program: Program) -> tuple[str, Program] | None:
    """Return a read, and a program of the same values that contains it and another path."""
    rng = random.Random(program.seed)
    known = {**program.inputs, **program.values}
    places = [
        (i, j)
        for i, line in enumerate(program.lines)
        for j, name in enumerate(line.operands)
        if not line.stops and name in known and known[name].dtype.kind == "f" and known[name].size
    ]
    if not places:
        return None
    i, j = rng.choice(places)
    line = program.lines[i]
    operands = list(line.operands)
    operands[j] = f"(0.5 * {operands[j]} + 0.5 * through({operands[j]}))"
    lines = list(program.lines)
    lines[i] = replace(line, operands=tuple(operands))
    return rng.choice(READS), replace(program, lines=tuple(lines))


def _function(read: str, program: Program, variables: dict[str, Any]) -> Callable[..., Any]:
    """Return the program, in a file of its own: gradtape warns once for each line."""
    scope: dict[str, Any] = dict(_helpers(), **variables)
    text = HELPERS.replace("READ", read) + "\n" + program.source()
    exec(compile(text, f"<program {next(_number)}>", "exec"), scope)
    made: Callable[..., Any] = scope["program"]
    return made


def reads(case: Case) -> Iterator[tuple[Any, ...]]:
    """With a value that is read: in tapes, traces, ``vmap`` and forward mode."""
    if case.program.stateful:
        raise Refused("it assigns to a variable")
    found = with_read(case.program)
    if found is None:
        return
    read, program = found
    count, n = len(case.weights), len(case.xs) + len(case.sources)
    values, slopes = case.want[:count], case.want[count : count + n]
    for name, run in RUNS.items():
        got, warned = _outcome(run, case, _function(read, program, case.variables))
        if got is None:
            continue
        what = f"{name}, {read}"
        for mine, right in zip(got[:count], values, strict=True):
            yield f"{what}: value", mine, right
        if warned:
            continue
        if name == "jvp":
            slope = inner(case.directions[: len(case.xs)], slopes[: len(case.xs)])
            size = sum(float(np.abs(g.numpy()).sum()) for g in slopes)
            yield f"{what}: tangent", case.loss(got[count:]), slope, 1.0 + 10.0 * size
            continue
        for mine, right in zip(got[count:], slopes, strict=False):
            yield f"{what}: gradient without a warning", mine, right


def _outcome(run: Any, case: Case, program: Callable[..., Any]) -> tuple[list[Any] | None, bool]:
    """Return the results of a run, None if it is refused, and whether it warned."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            got = run(case, program)
        except REFUSALS as error:
            if not str(error):
                raise
            return None, False
    return got, any(issubclass(w.category, gt.errors.BrokenPathWarning) for w in told)


def _by_tape(case: Case, program: Any, strict: bool = False) -> list[Any]:
    sources = [*case.xs, *case.sources]
    with gt.GradientTape(strict=strict) as tape:
        tape.watch(case.xs)
        ys = program(*case.xs)
        loss = case.loss(ys)
    return [*ys, *tape.gradient(loss, sources, unconnected_gradients="zero")]


def _forward(case: Case, program: Any) -> list[Any]:
    steps = tuple(gt.constant(d) for d in case.directions[: len(case.xs)])
    ys, tangents = gt.jvp(program, tuple(case.xs), steps)
    return [*ys, *tangents]


def _batched(case: Case, program: Any) -> list[Any]:
    run = gt.vmap(lambda *xs: tuple(_by_tape_of(case, program, xs)))
    return [y[0] for y in run(*(gt.stack([x, x]) for x in case.xs))]


def _by_tape_of(case: Case, program: Any, xs: Any) -> list[Any]:
    with gt.GradientTape() as tape:
        tape.watch(list(xs))
        ys = program(*xs)
        loss = case.loss(ys)
    return [*ys, *tape.gradient(loss, list(xs), unconnected_gradients="zero")]


#: How a program with a read is run.
RUNS: dict[str, Callable[[Case, Any], list[Any]]] = {
    "tape": _by_tape,
    "strict tape": lambda case, program: _by_tape(case, program, strict=True),
    "function": lambda case, program: _by_tape(case, gt.function(program)),
    "recompute_grad": lambda case, program: _by_tape(case, gt.recompute_grad(program)),
    "vmap": _batched,
    "jvp": _forward,
}
