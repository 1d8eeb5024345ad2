"""Pairs of transformations, one around the other, compared with loops over plain tapes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

import gradtape as gt
from fuzz.measuring import Case, Refused

__all__ = ["PAIRS", "TRANSFORMATIONS", "pair", "pairs"]

Function = Callable[[Any], Any]

#: Pairs for each program.
DRAWN = 4
#: Elements of the input, for derivatives up to this order in all.
LARGEST = {1: 6, 2: 4, 3: 3, 4: 2}
#: The scale of differences that rounding explains, as a multiple of the result's.
ROUNDING = 100.0


def _total(y: Any) -> Any:
    """Return a weighted sum."""
    return gt.sum(y * gt.cos(gt.cumsum(gt.ones_like(gt.reshape(y, (-1,))))).reshape(y.shape))


def _direction(x: Any) -> Any:
    return gt.constant(np.cos(1.0 + np.arange(float(np.prod(x.shape)))).reshape(x.shape))


def _two(x: Any) -> Any:
    return gt.stack([x, x * (1.0 + 2.0**-9)])


#: The transformations, and the order of each one's derivative.
TRANSFORMATIONS: dict[str, tuple[Callable[[Function], Function], int]] = {
    "grad": (lambda f: gt.grad(lambda x: _total(f(x))), 1),
    "jvp": (lambda f: lambda x: gt.jvp(f, (x,), (_direction(x),))[1], 1),
    "vmap": (lambda f: lambda x: gt.vmap(f)(_two(x)), 0),
    "jacfwd": (gt.jacfwd, 1),
    "jacrev": (gt.jacrev, 1),
    "function": (gt.function, 0),
    "recompute_grad": (gt.recompute_grad, 0),
    "hessian": (lambda f: gt.hessian(lambda x: _total(f(x))), 2),
}
PAIRS = tuple(product(TRANSFORMATIONS, repeat=2))


def _slope(f: Function) -> Function:
    """Return the gradient of the weighted sum, by one tape."""

    def run(x: Any) -> Any:
        x = gt.copy(x)
        with gt.GradientTape() as tape:
            tape.watch(x)
            total = _total(f(x))
        return tape.gradient(total, x, unconnected_gradients="zero")

    return run


def _rows(f: Function) -> Function:
    """Return the Jacobian, by one backward pass for each element of the result."""

    def run(x: Any) -> Any:
        x = gt.copy(x)
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = f(x)
            elements = gt.unstack(gt.reshape(y, (-1,)))
        found = [tape.gradient(e, x, unconnected_gradients="zero") for e in elements]
        return gt.reshape(gt.stack(found), (*y.shape, *x.shape))

    return run


def _along(f: Function) -> Function:
    rows = _rows(f)
    return lambda x: gt.tensordot(rows(x), _direction(x), axes=len(x.shape))


#: The same, in loops over plain tapes.
PLAIN: dict[str, Callable[[Function], Function]] = {
    "grad": _slope,
    "jvp": _along,
    "vmap": lambda f: lambda x: gt.stack([f(row) for row in gt.unstack(_two(x))]),
    "jacfwd": _rows,
    "jacrev": _rows,
    "function": lambda f: f,
    "recompute_grad": lambda f: f,
    "hessian": lambda f: _rows(_slope(f)),
}


def pairs(case: Case) -> Iterator[tuple[Any, ...]]:
    """A few pairs of transformations of the first result, and the gradients of the outcome."""
    if case.program.stateful:
        raise Refused("it assigns to a variable")
    for outer, inner in random.Random(case.program.seed).sample(PAIRS, DRAWN):
        yield from pair(case, outer, inner)


def pair(case: Case, outer: str, inner: str) -> Iterator[tuple[Any, ...]]:
    """One transformation of another of the first result, and the gradients of the outcome."""
    x, y = case.xs[0], case.want[0]
    order = TRANSFORMATIONS[outer][1] + TRANSFORMATIONS[inner][1]
    if x.dtype.kind != "f" or y.dtype.kind != "f" or not 0 < y.size <= 6:
        return
    if not 0 < x.size <= LARGEST[max(order, 1)]:
        return

    def first(x: Any) -> Any:
        return case.run(x, *case.xs[1:])[0]

    try:
        changed = TRANSFORMATIONS[outer][0](TRANSFORMATIONS[inner][0](first))
        got = _with_gradients(changed, case, x, order)
    except gt.errors.TraceError:
        if _refused(first, outer, x) or _refused(first, inner, x):
            return
        raise
    want = _with_gradients(PLAIN[outer](PLAIN[inner](first)), case, x, order)
    for i, (mine, right) in enumerate(zip(got, want, strict=True)):
        scale = ROUNDING * float(np.abs(right.numpy()).max(initial=0.0))
        what = f"gradient {i}" if i else "value"
        yield f"{outer} of {inner}, {what}", mine, right, scale


def _refused(f: Function, name: str, x: Any) -> bool:
    """Return whether a transformation alone refuses the program."""
    try:
        TRANSFORMATIONS[name][0](f)(x)
    except gt.errors.TraceError:
        return True
    return False


def _with_gradients(f: Function, case: Case, x: Any, order: int) -> list[Any]:
    """Return the result and, below the highest order, its gradients."""
    if order > 2:
        return [f(x)]
    sources = [x, *case.sources]
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
        total = _total(y)
    return [y, *tape.gradient(total, sources, unconnected_gradients="zero")]
