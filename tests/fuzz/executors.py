"""Programs with every executor: repeated calls, nan and infinities, and training steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.measuring import Case, Found
from fuzz.open_sizes import traced
from fuzz.program import Array

__all__ = ["CHOSEN", "by_executors", "others"]

#: The number of calls after which an executor that compiles late has done so.
OFTEN = 4
NEEDED = {"fused": "llvmlite"}
# executors that run the same as the plain one, or are for other backends
REFERENCE, SAME = "plain", ("default", "plain")
#: The executors chosen by the user; all if there are none.
CHOSEN: list[str] = []
SPECIAL = (np.nan, -np.inf, -0.0, np.inf, 0.0)


def others() -> list[str]:
    """Return the executors to compare with the plain one, those that run here."""
    return [
        name
        for name in CHOSEN or gt.registry().executors
        if name not in SAME and find_spec(NEEDED.get(name, "numpy"))
    ]


def by_executors(case: Case) -> Iterator[Found]:
    """Yield the results of each executor with those of an eager run and of the plain executor."""
    graph = traced(lambda *xs: tuple(case.orders(*xs)), case.xs, "nothing")
    case.reset()
    case.orders(*case.xs)
    assigned = [gt.constant(v.numpy()) for v in case.sources]
    for name in others():
        with gt.executor(name):
            case.reset()
            held = graph(*case.xs)
            copies = [gt.constant(np.array(y.numpy())) for y in held]
            for _ in range(OFTEN):
                case.reset()
                found = graph(*case.xs)
        yield from case.beside(found, f"{name}, ")
        for mine, right in zip(case.sources, assigned, strict=True):
            yield Found(f"{name}, assigned", mine, right)
        for mine, copy in zip(held, copies, strict=True):
            yield Found(f"{name}, held", mine, copy)
    yield from _beside_plain(case, "nan and infinities", lambda: _special(case, graph))
    yield from _beside_plain(case, "training", lambda: _trained(case))


def _beside_plain(case: Case, what: str, run: Callable[[], Sequence[Any]]) -> Iterator[Found]:
    """Yield the results of a run by each executor with those of the plain one; both may raise."""
    wanted: Any
    with gt.executor(REFERENCE):
        try:
            wanted = run()
        except Exception as error:
            wanted = error
    for name in others():
        with gt.executor(name):
            try:
                found = run()
            except Exception as error:
                if type(error) is type(wanted):
                    continue
                raise
        if isinstance(wanted, Exception):
            raise AssertionError(f"{name}, {what}: nothing was raised, instead of {wanted!r}")
        for mine, right in zip(found, wanted, strict=True):
            yield Found(f"{name}, {what}", mine, right)


def _special(case: Case, graph: Callable[..., Any]) -> list[Any]:
    given = [gt.constant(_laced(np.asarray(x.numpy()), i)) for i, x in enumerate(case.xs)]
    for _ in range(OFTEN):
        case.reset()
        found = list(graph(*given))
    case.reset()
    return found


def _laced(x: Array, start: int) -> Array:
    made = np.array(x)
    flat = made.reshape(-1)
    flat[start % 2 :: 3] = [SPECIAL[(start + i) % 5] for i in range(flat[start % 2 :: 3].size)]
    return made


def _trained(case: Case) -> list[Any]:
    """Return all variables after some training steps; the inputs are variables, too."""
    if any(x.dtype.kind == "c" for x in [*case.xs, *case.sources]):
        return []
    case.reset()
    weights = [gt.Variable(x.numpy()) for x in case.xs]
    variables = [*weights, *case.sources]
    # a large epsilon, so that a gradient caused by rounding does not become a step
    optimizer = gt.training.Adam(1e-3, epsilon=1.0)

    @gt.function
    def step() -> Any:
        with gt.GradientTape() as tape:
            loss = case.loss(case.run(*[w.value for w in weights]))
        grads = tape.gradient(loss, variables, unconnected_gradients="zero")
        optimizer.apply_gradients(zip(grads, variables, strict=True))
        return loss

    first = step()
    losses = [first, *(step() for _ in range(OFTEN - 1))]
    found = [gt.constant(v.numpy()) for v in [*variables, *optimizer.variables]]
    case.reset()
    return [*losses, *found]
