"""Random graphs of few functions, so that what a planner combines meets itself: each is eager's.

Steps that do the same are stacked, packed, joined or share memory. A graph of few functions and
few shapes has many such steps, in chains, beside each other, of views and of assigned variables.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from executing import OFTEN, all_close, differences, each_executor

import gradtape as gt

#: How many graphs each executor runs, in lists of as many as one test runs.
GRAPHS, EACH = 160, 20
UNARY: dict[str, Callable[[Any], Any]] = {
    "tanh": gt.tanh,
    "sin": gt.sin,
    "negative": gt.negative,
    "scaled": lambda x: 0.5 * x,
    "shifted": lambda x: x + 1.0,
    "transposed": gt.transpose,
    "flipped": lambda x: x[::-1],
    "flat": lambda x: gt.reshape(gt.ravel(x), x.shape),
    "shares": lambda x: x / (1.0 + gt.sum(gt.abs(x), axis=-1, keepdims=True)),
    "spread": lambda x: gt.broadcast_to(gt.mean(x, axis=0, keepdims=True), x.shape),
    "product": lambda x: x @ (0.1 * x),
}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": gt.add,
    "subtract": gt.subtract,
    "multiply": gt.multiply,
    "larger": gt.maximum,
    "matmul": lambda x, y: 0.1 * (x @ y),
}
VARIABLES = 2


def drawn(draw: random.Random) -> list[tuple[str, tuple[int, ...]]]:
    """Return lines: a function, and the places of its arguments among the values before it."""
    # many of one function: they are what can be combined
    unary = ["tanh", *draw.sample(sorted(UNARY), draw.choice((0, 0, 1, 3)))]
    binary = draw.sample(sorted(BINARY), draw.randint(1, 2))
    assigns = draw.random() < 0.5
    lines: list[tuple[str, tuple[int, ...]]] = []
    for i in range(1 + VARIABLES, 1 + VARIABLES + draw.randint(4, 24)):
        recent = [draw.choice((i - 1, draw.randrange(i), draw.randrange(i))) for _ in range(2)]
        kind = draw.random()
        if assigns and kind < 0.15:
            lines.append((f"assign {draw.randrange(VARIABLES)}", (recent[0],)))
        elif assigns and kind < 0.25:
            lines.append((f"read {draw.randrange(VARIABLES)}", ()))
        elif kind < 0.65:
            lines.append((draw.choice(unary), (recent[0],)))
        else:
            lines.append((draw.choice(binary), (recent[0], recent[1])))
    return lines


def run(
    lines: Sequence[tuple[str, tuple[int, ...]]], kept: Sequence[int], x: Any, variables: Any
) -> list[Any]:
    """Run the lines on a matrix; return some of the values."""
    values = [x, *(v * 1.0 for v in variables)]
    for what, places in lines:
        given = [values[i] for i in places]
        if what.startswith("assign"):
            variables[int(what[-1])].assign(given[0])
            values.append(given[0])
        elif what.startswith("read"):
            values.append(variables[int(what[-1])] + 0.0)
        else:
            values.append((UNARY.get(what) or BINARY[what])(*given))
    return [values[i] for i in kept]


def with_gradient(fn: Callable[[Any], list[Any]]) -> Callable[[Any], list[Any]]:
    """Return a function that gives results of ``fn`` and the gradient of their sum."""

    def both(x: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch(x)
            found = fn(x)
            total = sum(gt.sum(y * y) for y in found)
        gradient = tape.gradient(total, x, unconnected_gradients="zero")
        return [*found, gradient]

    return both


def wrong(seed: int, name: str) -> str | None:
    """Describe how an executor's results differ from the eager ones; None if they do not."""
    draw = random.Random(seed)
    lines = drawn(draw)
    n, dtype = draw.choice((2, 3, 3, 40)), draw.choice(("float32", "float64"))
    kept = sorted(draw.sample(range(1, 1 + VARIABLES + len(lines)), draw.randint(1, 3)))
    numbers = np.random.default_rng(seed)
    starts = [numbers.normal(size=(n, n)).astype(dtype) for _ in range(VARIABLES)]
    variables = [gt.Variable(start) for start in starts]
    program: Any = lambda x: run(lines, kept, x, variables)  # noqa: E731
    if draw.random() < 0.5:
        program = with_gradient(program)
    traced = gt.function(program)
    with gt.executor(name):
        for _ in range(OFTEN):
            x = gt.constant(numbers.normal(size=(n, n)).astype(dtype))
            found = []
            for f in (traced, program):
                for variable, start in zip(variables, starts, strict=True):
                    variable.assign(start)
                found.append([*f(x), *(v.numpy() for v in variables)])
            got, want = ([np.array(y) for y in ys] for ys in found)
            if differ := differences(got, want, all_close):
                return f"seed {seed}, {n} by {n}, {dtype}: {lines}, kept {kept}: {differ}"
    return None


@each_executor
@pytest.mark.parametrize("start", range(0, GRAPHS, EACH))
def test_a_random_graph_gives_what_it_gives_eagerly(name: str, start: int) -> None:
    assert [why for seed in range(start, start + EACH) if (why := wrong(seed, name))] == []
