"""Programs made at random of ``if``, ``while``, ``for``, ``break``, ``continue`` and ``return``."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradtape as gt

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

POINTS = np.array([[0.7, -0.45, 0.2], [-0.8, 0.35, 1.1], [0.15, 0.9, -0.25]])
numbers = itertools.count()


class Writer:
    """Writes a program; what is read has been assigned above, on some way at least."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.lines: list[str] = []
        self.known = ["a", "b"]
        self.loops = 0
        self.budget = 10

    def pick(self, *choices: Any) -> Any:
        return self.draw(st.sampled_from(choices))

    def name(self) -> str:
        return str(self.draw(st.sampled_from(self.known)))

    def value(self) -> str:
        a, b, c = self.name(), self.name(), self.pick("0.5", "1.5", "-0.75", "2.0")
        return str(
            self.pick(
                f"{a} * {c}",
                f"{a} + {b}",
                f"gt.sin({a}) * {b}",
                f"gt.tanh({a} - {c})",
                f"{a} * {b} + {c}",
                f"x[0] * {a}",
                f"({a} if {b} > {c} else {b} * {a})",
                f"helper({a}, {b})",
            )
        )

    def test(self) -> str:
        a, b, c = self.name(), self.name(), self.pick("0.1", "-0.3", "0.6")
        return str(
            self.pick(
                f"{a} > {c}",
                f"{a} < {b}",
                f"not {a} > {b}",
                f"{a} > {c} and {b} < 1.0",
                f"{a} < {c} or {b} > 0.0",
                f"-0.9 < {a} < {c}",
            )
        )

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int) -> None:
        for _ in range(self.draw(st.integers(1, 3))):
            if self.statement(depth):
                return

    def statement(self, depth: int) -> bool:
        """Write a statement; return whether nothing after it runs."""
        self.budget -= 1
        kinds = ["assign", "assign", "assign", "new"]
        if self.budget > 0 and depth < 4:
            kinds += ["if", "if", "while", "for", "leave", "range"]
        kind = self.pick(*kinds)
        if kind == "leave":
            self.line(depth, f"if {self.test()}:")
            leaving = ["return"] + ["break", "continue"] * bool(self.loops)
            kind = self.pick(*leaving)
            self.line(depth + 1, f"return {self.value()}" if kind == "return" else kind)
        elif kind == "if":
            self.branches(depth)
        elif kind in ("while", "for", "range"):
            self.loop(depth, kind)
        else:
            name = self.pick("a", "b") if kind == "assign" else self.pick("c", "d")
            self.line(depth, f"{name} = gt.tanh({self.value()})")
            if name not in self.known:
                self.known = [*self.known, name]
        return False

    def branches(self, depth: int) -> None:
        before, after = self.known, self.known
        for i, head in enumerate(self.pick(("if",), ("if", "else"), ("if", "elif", "else"))):
            self.known = before
            self.line(depth, "else:" if head == "else" else f"{head} {self.test()}:")
            self.block(depth + 1)
            after = sorted({*after, *self.known})
            assert i < 3
        self.known = after

    def loop(self, depth: int, kind: str) -> None:
        n = f"n{len(self.lines)}"
        if kind == "while":
            self.line(depth, f"{n} = 0")
            self.line(depth, f"while {n} < 3 and ({self.test()}):")
            self.line(depth + 1, f"{n} += 1")
        elif kind == "for":
            self.line(depth, f"for {n} in x:")
            self.known = [*self.known, n]
        else:
            self.line(depth, f"for _ in {self.pick('range(2)', 'gt.arange(3)')}:")
        self.loops += 1
        self.block(depth + 1)
        self.loops -= 1


@st.composite
def programs(draw: Any) -> str:
    writer = Writer(draw)
    writer.block(1)
    writer.block(1)
    body = "\n".join(writer.lines)
    return (
        "def helper(v, w):\n    if v > w:\n        return v * 0.5\n    return gt.sin(w) + v\n\n\n"
        f"def f(x):\n    a, b = x[0], x[1] * 1.5\n{body}\n    return a * 2.0 + {writer.name()}\n"
    )


def compiled(text: str) -> Callable[[Any], Any]:
    file = f"<program {next(numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"gt": gt, "__name__": "random_programs"}
    exec(compile(text, file, "exec"), scope)
    return scope["f"]  # type: ignore[no-any-return]


def outcome(f: Callable[[Any], Any], point: Any) -> Any:
    """Return the value and two derivatives, or the kind of error."""
    try:
        with gt.GradientTape() as outer:
            x = gt.constant(point)
            outer.watch(x)
            with gt.GradientTape() as inner:
                inner.watch(x)
                y = f(x)
            slope = inner.gradient(y, x, unconnected_gradients="zero")
            bend = gt.sum(gt.sin(slope))
        found = outer.gradient(bend, x, unconnected_gradients="zero")
    except UnboundLocalError:
        return "unbound"
    return np.concatenate([np.reshape(np.asarray(v), -1) for v in (y, slope, found)])


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(programs())
def test_random_programs_do_what_python_does(text: str) -> None:
    f = compiled(text)
    traced = gt.function(f, autograph=True)
    for point in POINTS:
        wanted, found = outcome(f, point), outcome(traced, point)
        if isinstance(wanted, str) or isinstance(found, str):
            assert isinstance(wanted, str) is isinstance(found, str), text
            continue
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-9, err_msg=text)
