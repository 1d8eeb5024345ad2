"""The ways to run a program, each of which must give the results of an eager run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.compositions.memory import memory
from fuzz.compositions.pairs import pairs
from fuzz.compositions.reads import reads
from fuzz.executors import by_executors
from fuzz.measuring import Case, Refused, inner
from fuzz.open_sizes import batched, saved, traced, traces
from fuzz.program import Array

__all__ = ["MODES", "off"]

SAME = 1e-9
#: The results of a mode: the fields of ``Found``.
Pairs = Iterator[tuple[Any, ...]]


def again(case: Case) -> Pairs:
    """The same again, with one persistent tape for each order."""
    xs, sources = case.xs, [*case.xs, *case.sources]
    with gt.GradientTape(persistent=True) as second:
        second.watch(xs)
        with gt.GradientTape(persistent=True) as first:
            first.watch(xs)
            ys = case.run(*xs)
            loss = case.loss(ys)
        slopes = first.gradient(loss, sources, unconnected_gradients="zero")
        along = inner(case.directions, slopes)
    curves = second.gradient(along, sources, unconnected_gradients="zero")
    yield from case.beside([*ys, *slopes, *curves])
    once_more = first.gradient(loss, sources, unconnected_gradients="zero")
    yield from case.beside([*ys, *once_more, *curves], "asked twice, ")


def inside(case: Case) -> Pairs:
    """One persistent tape, whose gradients are taken inside its own context."""
    xs, sources = case.xs, [*case.xs, *case.sources]
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(xs)
        ys = case.run(*xs)
        slopes = tape.gradient(case.loss(ys), sources, unconnected_gradients="zero")
        along = inner(case.directions, slopes)
        curves = tape.gradient(along, sources, unconnected_gradients="zero")
    yield from case.beside([*ys, *slopes, *curves])


def transforms(case: Case) -> Pairs:
    """``grad``, ``hvp``, ``jvp`` and ``jvp`` of ``grad``, with respect to the inputs only."""
    n, count = len(case.xs), len(case.weights)
    slopes = case.want[count : count + n]
    curves = case.want[count + len(case.directions) :][:n]
    steps = [gt.constant(d) for d in case.directions[:n]]

    def loss(*xs: Any) -> Any:
        case.reset()
        return case.loss(case.run(*xs))

    def results(*xs: Any) -> Any:
        case.reset()
        return case.run(*xs)

    every = tuple(range(n))
    for mine, right in zip(gt.grad(loss, argnums=every)(*case.xs), slopes, strict=True):
        yield "gt.grad", mine, right
    ys, tangents = gt.jvp(results, tuple(case.xs), tuple(steps))
    slope = inner(case.directions[:n], slopes)
    yield from (("gt.jvp, value", y, w) for y, w in zip(ys, case.want, strict=False))
    yield "gt.jvp", case.loss(tangents), slope, _size(case.directions, slopes)
    if case.sources:
        return  # the curves depend on the directions of variables
    for mine, right in zip(gt.hvp(loss, tuple(case.xs), tuple(steps)), curves, strict=True):
        yield "gt.hvp", mine, right
    if any(x.dtype.kind == "c" for x in case.xs):
        return
    _, ahead = gt.jvp(gt.grad(loss, argnums=every), tuple(case.xs), tuple(steps))
    for mine, right in zip(ahead, curves, strict=True):
        yield "jvp of grad", mine, right


def jacobians(case: Case) -> Pairs:
    """``jacrev`` and ``jacfwd`` of the first result and the first input, and ``hessian``."""
    x, rest = case.xs[0], case.xs[1:]
    kinds = {y.dtype.kind for y in case.want}
    if "c" in kinds or x.size > 12 or case.weights[0].size > 12:
        return

    def first(x: Any) -> Any:
        case.reset()
        return case.run(x, *rest)[0]

    reverse, forward = gt.jacrev(first)(x), gt.jacfwd(first)(x)
    yield "jacfwd beside jacrev", forward, reverse
    if len(case.weights) == 1:
        weights = gt.constant(case.weights[0])
        slope = gt.tensordot(weights, reverse, axes=weights.ndim)
        yield "jacrev", slope, case.want[1]
    if x.size > 6 or case.sources or rest:
        return
    hessian = gt.hessian(lambda x: case.loss(case.run(x)))(x)
    curve = gt.tensordot(hessian, gt.constant(case.directions[0]), axes=x.ndim)
    yield "hessian", curve, case.want[-1]


def _stateless(case: Case) -> None:
    if case.program.stateful:
        raise Refused("it assigns to a variable")


def batches(case: Case) -> Pairs:
    """``vmap`` of all orders compared with a loop, and a tape outside ``vmap``."""
    _stateless(case)
    stacked = [gt.stack([x, _other(x)]) for x in case.xs]
    rows = [[x[i] for x in stacked] for i in range(2)]
    try:
        loop = [case.orders(*row) for row in rows]
    except (ValueError, np.linalg.LinAlgError):
        return  # the other example is outside the program's domain
    want = [gt.stack(column) for column in zip(*loop, strict=True)]
    got = gt.vmap(lambda *xs: tuple(case.orders(*xs)))(*stacked)
    yield from case.beside(got, "vmap, ", want)
    if case.sources:
        return
    with gt.GradientTape() as tape:
        tape.watch(stacked)
        ys = gt.vmap(case.run)(*stacked)
        loss = inner([np.stack([w, w]) for w in case.weights], ys)
    slopes = tape.gradient(loss, stacked, unconnected_gradients="zero")
    count = len(case.weights)
    for mine, right in zip(slopes, want[count : count + len(stacked)], strict=True):
        yield "a tape outside vmap, gradient", mine, right


def _other(x: Any) -> Any:
    return x * (1.0 + 2.0**-9)


def in_branch(case: Case) -> Pairs:
    """In a branch of a traced ``cond`` whose predicate is unknown."""
    _stateless(case)

    def run(*xs: Any) -> Any:
        taken = gt.sum(gt.abs(xs[0])) >= 0.0
        return gt.cond(taken, case.run, lambda *xs: tuple(y * 0.5 for y in case.run(*xs)), *xs)

    graph = traced(lambda *xs: tuple(case.orders(*xs, run=run)), case.xs, "nothing")
    yield from case.beside(graph(*case.xs), "cond, ")
    yield from case.beside(case.orders(*case.xs, run=run), "eager cond, ")


def in_scan(case: Case) -> Pairs:
    """In the body of a ``scan`` of one step, eager and traced."""
    _stateless(case)

    def run(*xs: Any) -> Any:
        ones = [x[None] for x in xs]
        _, ys = gt.scan(lambda c, xs: (c + 1.0, case.run(*xs)), 0.0, ones)
        return tuple(y[0] for y in ys)

    graph = traced(run, case.xs, "nothing")
    yield from case.beside(case.orders(*case.xs, run=run), "scan, ")
    yield from case.beside(case.orders(*case.xs, run=graph), "traced scan, ")


def in_while(case: Case) -> Pairs:
    """In the body of a ``while_loop`` of one round."""
    _stateless(case)
    zeros = [gt.zeros_like(y) for y in case.want[: len(case.weights)]]

    def run(*xs: Any) -> Any:
        return gt.while_loop(
            lambda i, ys: i < 1, lambda i, ys: (i + 1, list(case.run(*xs))), (0, zeros)
        )[1]

    graph = traced(run, case.xs, "nothing")
    yield from case.beside(case.orders(*case.xs, run=graph), "traced while_loop, ")


def recomputed(case: Case) -> Pairs:
    """Recomputed in the backward pass, eagerly and in a trace."""
    _stateless(case)
    run = gt.recompute_grad(case.run)
    yield from case.beside(case.orders(*case.xs, run=run), "recompute_grad, ")
    graph = traced(lambda *xs: tuple(case.orders(*xs, run=run)), case.xs, "nothing")
    yield from case.beside(graph(*case.xs), "traced recompute_grad, ")


#: From the simplest mode on.
MODES: dict[str, Callable[[Case], Pairs]] = {
    "persistent tapes": again,
    "asked inside": inside,
    "transforms": transforms,
    "jacobians": jacobians,
    "recompute_grad": recomputed,
    "vmap": batches,
    "vmap of unknown sizes": batched,
    "traced": traces("nothing"),
    "unknown sizes": traces("sizes"),
    "unknown rank": traces("rank"),
    "cond": in_branch,
    "scan": in_scan,
    "while_loop": in_while,
    "saved": saved,
    "executors": by_executors,
    "pairs": pairs,
    "reads": reads,
    "memory": memory,
}
#: The text in a trace's refusal of a program that selects elements by values.
UNKNOWN = "unknown in this trace"
#: The texts of errors about shapes: of a loop in a batch whose examples would have different ones,
#: and of a rule that does not sum what was broadcast, where the eager run does not need its result.
SHAPES = ("examples of a vmap take different paths", "but it must have shape")
# errors of vmap where a result depends on values
IN_WORDS = {"vmap": gt.errors.TraceError}


def _size(weights: list[Array], values: Any) -> float:
    parts = zip(weights, values, strict=False)
    return float(sum(np.sum(np.abs(w) * np.abs(np.asarray(y.numpy()))) for w, y in parts))


def off(case: Case, mode: str, refusals: Counter[str] | None = None) -> tuple[str | None, bool]:
    """Return how a mode differs from the eager run, if it does, and whether it ran.

    Refusals are counted in ``refusals``, by their text.
    """
    case.reset()
    try:
        ran = False
        for found in MODES[mode](case):
            ran = True
            said = _different(case, *found)
            if said:
                return said, True
    except Exception as error:
        refused = isinstance(error, (Refused, IN_WORDS.get(mode, Refused)))
        if refused or any(text in str(error) for text in (UNKNOWN, *SHAPES)):
            if refusals is not None:
                refusals[f"{mode}: {_kind(str(error))}"] += 1
            return None, False
        return f"{type(error).__name__}: {error}", True
    return None, ran


def _kind(text: str) -> str:
    """Return a message without the parts that differ between programs."""
    text = re.sub(r"<program>:\d+|[^\s]*\.py:\d+", "LINE", text)
    return re.sub(r"\d+|\b[kmnv]\d*\b", "#", text)[:150]


def _different(
    case: Case, what: str, got: Any, want: Any, scale: float = 0.0, at: Case | None = None
) -> str | None:
    mine, right = np.asarray(got.numpy()), np.asarray(want.numpy())
    if mine.shape != right.shape or mine.dtype != right.dtype:
        return f"{what}: {mine.dtype}{list(mine.shape)} for {right.dtype}{list(right.shape)}"
    if not right.size:
        return None
    finite = np.abs(right[np.isfinite(right)])
    scale = max(scale, float(finite.max()) if finite.size else 0.0, 1e-3)
    if np.allclose(mine, right, rtol=0.0, atol=SAME * scale, equal_nan=True):
        return None
    if np.allclose(
        mine, right, rtol=0.0, atol=SAME * scale + _unsteady(at or case), equal_nan=True
    ):
        return None
    return f"{what} is {mine.tolist()}, in the eager run {right.tolist()}"


def _unsteady(case: Case) -> float:
    """Return how much rounding of the inputs changes the results of an eager run."""
    case.reset()
    near = [gt.constant(np.asarray(x.numpy()) * (1.0 + 1e-12)) for x in case.xs]
    try:
        got = case.orders(*near)
    except np.linalg.LinAlgError:  # nearly singular
        return float("inf")
    case.reset()
    changes = [np.abs(a.numpy() - b.numpy()).max(initial=0.0) for a, b in zip(got, case.want)]
    return 10.0 * float(np.nan_to_num(np.max(changes, initial=0.0)))
