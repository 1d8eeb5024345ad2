"""``v += x`` in a function that changes its caller's array, as code for NumPy does."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt


def bump(u: Any) -> None:
    u += 1.0


def in_a_loop(u: Any) -> None:
    for _ in range(3):
        u *= 2.0


def until(u: Any, n: int = 3) -> int:
    while n > 0:
        n -= 1
        if n == 2:
            continue
        u -= 1.0
    return n


def second(u: Any, v: Any = 1.0) -> Any:
    v = u + v
    u /= 2.0
    return v


def crossed(u: Any, v: Any = 1.0) -> None:
    u **= v
    v += u


def forgotten(u: Any) -> None:
    u @= np.eye(2)
    del u


class Body:
    def kick(self, u: Any) -> None:
        u += self.__class__.__name__ == "Body"
        self.kicked = True


@pytest.mark.parametrize(
    "function", [bump, in_a_loop, until, second, forgotten, Body().kick], ids=lambda f: f.__name__
)
def test_an_update_that_nothing_uses_warns(function: Callable[..., Any]) -> None:
    x = gt.constant([1.0, 2.0])
    name = function.__name__
    with pytest.warns(UserWarning, match=rf"{name}: u .*= \.\.\. made a new tensor") as found:
        function(x)
    assert "writable" in str(found[0].message)
    assert found[0].filename == __file__
    assert x.tolist() == [1.0, 2.0]


def test_an_update_warns_in_derivatives_and_traces() -> None:
    def total(x: Any) -> Any:
        y = np.copy(x)
        bump(y)
        return np.sum(y * x)

    x = gt.constant([1.0, 2.0])
    for run in (gt.grad(total), gt.function(total), gt.vmap(total)):
        with pytest.warns(UserWarning, match="bump: u"):
            run(x[None] if run is not gt.grad else x)


def test_it_warns_as_often_as_the_filters_ask() -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        in_a_loop(gt.ones(2))
        bump(gt.ones(2))
        bump(gt.ones(2))
    assert len(found) == 5
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="bump"):
                bump(gt.ones(2))


def returned(u: Any) -> Any:
    u += 1.0
    return u


def read_in_the_next_round(u: Any) -> Any:
    total = 0.0
    for _ in range(3):
        total = total + u
        u *= 2.0
    return total


def read_in_an_outer_round(u: Any) -> Any:
    total = 0.0
    for _ in range(2):
        total = total + u
        for _ in range(2):
            u += 1.0
    return total


def read_if_it_fails(u: Any) -> Any:
    try:
        u += 1.0
        raise KeyError
    except KeyError:
        return u


def read_at_last(u: Any) -> Any:
    try:
        u += 1.0
    finally:
        print(u.shape)


def captured(u: Any) -> Any:
    u += 1.0
    return lambda: u


def given_to_other_code(u: Any) -> dict[str, Any]:
    u += 1.0
    return locals()


def generated(u: Any) -> Iterator[Any]:
    u += 1.0
    yield u


def a_variable_of_its_own(u: Any) -> Any:
    v = u * 2.0
    v += 1.0


def called(u: Any) -> Any:
    return operator.iadd(u, 1.0)


@pytest.mark.parametrize(
    "function",
    [
        returned,
        read_in_the_next_round,
        read_in_an_outer_round,
        read_if_it_fails,
        read_at_last,
        captured,
        given_to_other_code,
        lambda u: list(generated(u)),
        a_variable_of_its_own,
        called,
    ],
    ids=lambda f: f.__name__,
)
def test_an_update_that_is_used_says_nothing(function: Callable[..., Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        function(gt.constant([1.0, 2.0]))


def test_both_names_of_a_pair() -> None:
    with pytest.warns(UserWarning, match=r"crossed: v \+="):
        crossed(gt.constant([1.0, 2.0]), gt.constant([1.0, 2.0]))


def test_writable_arrays_change() -> None:
    x = gt.writable(gt.constant([1.0, 2.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bump(x)
    assert x.tolist() == [2.0, 3.0]


def test_results_are_those_of_the_operator() -> None:
    names = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split()
    for name in names:
        whole = name in ("and", "or", "xor", "lshift", "rshift")
        kind = "int64" if whole else "float64"
        x, y = gt.constant([[3, 2], [1, 5]], kind), gt.constant([[1, 2], [2, 1]], kind)
        plain, in_place = (getattr(operator, f"{p}{name}{s}") for p, s in _forms(name))
        np.testing.assert_array_equal(in_place(x, y), plain(x, y))


def _forms(name: str) -> list[tuple[str, str]]:
    return [("", "_" if name in ("and", "or") else ""), ("i", "")]


def test_what_has_no_operator_is_still_refused() -> None:
    x = gt.constant([1.0, 2.0])
    with pytest.raises(TypeError):
        x += "text"  # type: ignore[operator]
