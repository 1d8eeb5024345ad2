"""Functions that call themselves: a Python value may end the recursion, a tensor may not."""

from __future__ import annotations

from typing import Any

import pytest

import gradtape as gt


@gt.function
def power(n: int, x: Any) -> Any:
    return x if n == 0 else x * power(n - 1, x)


@gt.function
def even(n: int, x: Any) -> Any:
    return x if n == 0 else 2.0 * odd(n - 1, x)


@gt.function
def odd(n: int, x: Any) -> Any:
    return x if n == 0 else 3.0 * even(n - 1, x)


@gt.function
def countdown(x: Any) -> Any:
    return gt.cond(x > 0, lambda: countdown(x - 1), lambda: x)


@gt.function
def down(x: Any) -> Any:
    return gt.cond(x > 0, lambda: further_down(x - 1), lambda: x)


@gt.function
def further_down(x: Any) -> Any:
    return gt.cond(x > 0, lambda: down(x - 1), lambda: x)


class Layer:
    @gt.function
    def apply(self, x: Any) -> Any:
        return gt.where(x > 0, self.apply(x - 1), x)


@gt.function(autograph=True)
def branching(x: Any) -> Any:
    if x > 0:
        return branching(x - 1)
    return x


def test_a_python_value_ends_the_recursion() -> None:
    x = gt.constant(2.0)
    assert power(5, x).item() == 64.0
    assert even(5, x).item() == 2.0 * 3 * 2 * 3 * 2 * 2
    assert gt.grad(lambda x: power(5, x))(2.0).item() == 6 * 2.0**5


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (countdown, "countdown calls itself"),
        (down, "further_down and down call each other"),
        (Layer().apply, "apply calls itself"),
        (branching, "branching calls itself"),
    ],
)
def test_a_tensor_cannot_end_it(function: Any, words: str) -> None:
    for _ in range(2):
        with pytest.raises(gt.errors.TraceError, match="the trace does not end") as caught:
            function(gt.constant(3.0))
        assert words in str(caught.value)
        assert "gradtape.while_loop" in str(caught.value)
