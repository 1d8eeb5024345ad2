"""Memory of ``vmap``: random chains of ops that share arrays, compared with batches."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from fuzz.measuring import Case

__all__ = ["Chain", "chain", "memory", "taken"]

#: The largest peak of vmap, as a multiple of the batch's, and in addition.
TIMES, MORE = 3.0, 150_000
EXAMPLES, WIDTH, ROWS = 150, 12, 2500
#: What the rule of a custom gradient may take in addition: one gradient for each example, some
#: times. Blocks of examples are for larger ones, and for first derivatives.
RULED = 4 * EXAMPLES * WIDTH * WIDTH * 8

# what is shared, then a step of one example x (a vector) and of the batch x; both return vectors
_STEPS = {
    "table": [
        ("x * w[i]", "x * w[i]"),
        ("x + w[i, :]", "x + w[i, :]"),
        ("x * gt.take(w, i, axis=0)", "x * gt.take(w, i, axis=0)"),
        ("x + gt.sum(w[gt.stack([i, i // 2])], axis=0)", "x + w[i] + w[i // 2]"),
        ("x * gt.nn.embedding_lookup(w, i)", "x * gt.nn.embedding_lookup(w, i)"),
    ],
    "matrix": [
        ("x @ w", "x @ w"),
        ("w @ x", "x @ w.mT"),
        ("gt.tensordot(x, w, 1)", "gt.tensordot(x, w, 1)"),
        ("gt.einsum('i,ij->j', x, w)", "gt.einsum('bi,ij->bj', x, w)"),
        ("x * gt.einsum('i,ij,j->', x, w, x)", "x * gt.einsum('bi,ij,bj->b', x, w, x)[:, None]"),
        ("gt.linalg.solve(w, x)", "gt.linalg.solve(w, x.mT).mT"),
        ("gt.inner(w, x)", "gt.inner(x, w)"),
        ("gt.recompute_grad(lambda a: gt.tanh(a @ w))(x)", "gt.tanh(x @ w)"),
        ("gt.function(lambda a: gt.tanh(a @ w))(x)", "gt.tanh(x @ w)"),
        (
            "gt.cond(x[0] > 0.1, lambda: x @ w, lambda: gt.sin(x @ w))",
            "gt.where(x[:, :1] > 0.1, x @ w, gt.sin(x @ w))",
        ),
        (
            "gt.while_loop(lambda n, a: n < 2, lambda n, a: (n + 1, gt.tanh(a @ w)), (0, x))[1]",
            "gt.tanh(gt.tanh(x @ w) @ w)",
        ),
        (
            "gt.scan(lambda c, k: (gt.tanh(c @ w + k), c), x, np.array([0.1, 0.2]))[0]",
            "gt.tanh(gt.tanh(x @ w + 0.1) @ w + 0.2)",
        ),
        ("gt.vmap(lambda a: a @ w)(gt.stack([x, -x]))[0]", "x @ w"),
        ("ruled(x, w)", "x @ w"),
        ("gt.function(ruled)(x, w)", "x @ w"),
    ],
    "vector": [
        ("x * w", "x * w"),
        ("gt.where(x > 0.0, x, w)", "gt.where(x > 0.0, x, w)"),
        ("gt.concatenate([x, w])[1:13]", "gt.concatenate([x, w + 0.0 * x], axis=1)[:, 1:13]"),
    ],
}
_SHAPES = {"table": (ROWS, WIDTH), "matrix": (WIDTH, WIDTH), "vector": (WIDTH,)}
_BETWEEN = ["gt.tanh(x)", "gt.sin(x) + x", "x * x", "gt.nn.softplus(x)", "x / gt.cosh(x)"]


@gt.custom_gradient
def ruled(x: Any, w: Any) -> Any:
    """Return ``x @ w``; the rule gives each example a gradient of the matrix."""
    return x @ w, lambda g: (w @ g, gt.outer(x, g))


Derivative = Callable[[Any], Callable[[Any], Any]]


def _second(f: Any) -> Callable[[Any], Any]:
    return gt.grad(lambda w: gt.sum(gt.grad(f)(w) ** 2))


#: The derivatives to take: of vmap, and of the batch. A compiled function keeps its buffers.
DERIVATIVES: dict[str, tuple[Derivative, Derivative]] = {
    "grad": (gt.grad, gt.grad),
    "second order": (_second, _second),
    "jvp of grad": (*(lambda f: lambda w: gt.jvp(gt.grad(f), (w,), (w,))[1],) * 2,),
    "grad of jvp": (*(lambda f: gt.grad(lambda w: gt.jvp(f, (w,), (w,))[1]),) * 2,),
    "grad of function": (lambda f: gt.grad(gt.function(f)), gt.grad),
    "function of grad": (lambda f: gt.function(gt.grad(f)), gt.grad),
}


class Chain(NamedTuple):
    """A chain of steps: what is shared, and the text of one example and of the batch."""

    shared: str
    one: str
    batch: str
    derivative: str
    seed: int

    def losses(self) -> tuple[Callable[[Any], Any], Callable[[Any], Any], Any]:
        """Return the loss by ``vmap``, the loss of the batch, and the shared array."""
        numbers = np.random.default_rng(self.seed)
        x = gt.constant(numbers.uniform(-1.0, 1.0, (EXAMPLES, WIDTH)))
        i = gt.constant(numbers.integers(0, ROWS, EXAMPLES))
        w = numbers.uniform(-0.6, 0.6, _SHAPES[self.shared])
        if self.shared == "matrix":
            w += 2.0 * np.eye(WIDTH)
        scope: dict[str, Any] = {"gt": gt, "np": np, "ruled": ruled}
        one, batch = (eval(f"lambda x, w, i: {text}", scope) for text in (self.one, self.batch))
        run = gt.vmap(one, in_axes=(0, None, 0))
        return (
            lambda w: gt.sum(run(x, w, i) ** 2),
            lambda w: gt.sum(batch(x, w, i) ** 2),
            gt.constant(w),
        )


def chain(seed: int) -> Chain:
    """Return the chain of a seed."""
    rng = random.Random(seed)
    shared = rng.choice(["table", "matrix", "matrix", "vector"])
    one = batch = "x"
    for _ in range(rng.randint(1, 3)):
        step = rng.choice(_STEPS[shared])
        between = rng.choice(_BETWEEN)
        one = _after(between, _after(step[0], one))
        batch = _after(between, _after(step[1], batch))
    return Chain(shared, one, batch, rng.choice(list(DERIVATIVES)), seed)


def _after(step: str, before: str) -> str:
    """Return a step of the result of ``before``."""
    return step if before == "x" else f"(lambda x: {step})({before})"


def taken(run: Callable[[], Any]) -> tuple[int, Any]:
    """Return the largest number of bytes that a second run takes at a time, and its result."""
    run()
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = run()
        return tracemalloc.get_traced_memory()[1] - before, result
    finally:
        if not tracing:
            tracemalloc.stop()


def memory(case: Case) -> Iterator[tuple[Any, ...]]:
    """A chain of the same seed, by ``vmap`` and in a batch: results, and peaks of memory."""
    drawn = chain(case.program.seed)
    by_vmap, by_batch, w = drawn.losses()
    of_vmap, of_batch = DERIVATIVES[drawn.derivative]
    f, g = of_vmap(by_vmap), of_batch(by_batch)
    (most, got), (least, want) = taken(lambda: f(w)), taken(lambda: g(w))
    scale = 100.0 * float(np.abs(want.numpy()).max())
    yield f"{drawn.derivative} of vmap of lambda x, w, i: {drawn.one}", got, want, scale
    if most > TIMES * least + MORE + RULED * drawn.one.count("ruled"):
        raise MemoryError(
            f"{drawn.derivative} of vmap of lambda x, w, i: {drawn.one} takes {most} bytes, "
            f"{least} in a batch"
        )
