"""Loops in choices in loops, in batches: each example gets what it gets alone.

The loops end only for the examples that their choices let in, and checks hold only for these.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import loop_limit

#: An integer and a float, changed by each statement.
State = tuple[Any, Any]
Statement = Callable[[Any, Any], State]
#: More steps than a loop takes: one that does not end raises an error.
MOST = 200


@pytest.fixture(autouse=True)
def _limited() -> Iterator[None]:
    token = loop_limit.set(MOST)
    yield
    loop_limit.reset(token)


def pair(state: Any) -> State:
    return state[0], state[1]


def run(statements: list[Statement], a: Any, x: Any) -> State:
    for statement in statements:
        a, x = statement(a, x)
    return a, x


def arithmetic(r: random.Random) -> Statement:
    k, c = r.randint(-2, 2), r.uniform(-1, 1)
    return r.choice(
        [
            lambda a, x: (a + k, x),
            lambda a, x: (a * k, x * c),
            lambda a, x: (gt.clip(a, -6, 6), gt.sin(x) + c),
            lambda a, x: (-a, x * x * 0.5),
            lambda a, x: (a, x + gt.cast(a, "float64") * 0.1),
        ]
    )


def choice(r: random.Random, depth: int) -> Statement:
    true, false, k = block(r, depth), block(r, depth), r.randint(-2, 2)
    test = r.choice([lambda a, x: a > k, lambda a, x: a % 2 == 0, lambda a, x: x > 0.1 * k])
    return lambda a, x: gt.cond(test(a, x), lambda: run(true, a, x), lambda: run(false, a, x))


def guarded(r: random.Random, depth: int) -> Statement:
    """Return a loop that would not end without the choice around it."""
    inner, kind = block(r, depth), r.randrange(3)

    def halve(a: Any, x: Any) -> State:
        loop = lambda a, x: (a // 2, run(inner, a, x)[1])  # noqa: E731
        return pair(gt.while_loop(lambda a, x: a % 2 == 0, loop, (a, x)))

    def count_down(a: Any, x: Any) -> State:
        loop = lambda a, x: (a - 1, run(inner, a, x)[1])  # noqa: E731
        return pair(gt.while_loop(lambda a, x: a != 0, loop, (a, x)))

    def grow(a: Any, x: Any) -> State:
        loop = lambda a, x: (run(inner, a, x)[0], x * 2.0)  # noqa: E731
        return pair(gt.while_loop(lambda a, x: x < 3.0, loop, (a, x)))

    small = lambda a: gt.clip(a, -50, 50)  # noqa: E731
    return [
        lambda a, x: gt.cond(a == 0, lambda: (a, x), lambda: halve(a, x)),
        lambda a, x: gt.cond(a >= 0, lambda: count_down(small(a), x), lambda: (a, x * 0.5)),
        lambda a, x: gt.cond(x > 0.01, lambda: grow(a, x), lambda: (a + 1, x)),
    ][kind]


def steps(r: random.Random, depth: int) -> Statement:
    inner, count = block(r, depth), r.randint(0, 3)
    if r.random() < 0.5:
        return lambda a, x: gt.scan(lambda s, _: (run(inner, *s), None), (a, x), length=count)[0]
    first = r.randint(0, 2)
    return lambda a, x: gt.while_loop(
        lambda i, a, x: i + gt.cast(a > first, "int64") < count,
        lambda i, a, x: (i + 1, *run(inner, a, x)),
        (gt.constant(0), a, x),
    )[1:]


def block(r: random.Random, depth: int) -> list[Statement]:
    kinds = [arithmetic] if depth == 0 else [arithmetic, choice, guarded, guarded, steps]
    made = [r.choice(kinds) for _ in range(r.randint(1, 2))]
    return [kind(r) if kind is arithmetic else kind(r, depth - 1) for kind in made]


INTEGERS = np.array([0, 0, 3, -4, 12, 1])
FLOATS = np.array([0.0, 0.7, -0.3, 1.5, -2.0, 0.2])


def program(seed: int) -> Callable[[Any, Any], State]:
    r = random.Random(seed)
    statements = [statement for _ in range(2) for statement in block(r, 2)]

    def f(a: Any, x: Any) -> State:
        a, x = run(statements, a, x)
        return gt.clip(a, -(10**6), 10**6), gt.tanh(x)

    return f


def slope(f: Callable[[Any, Any], State]) -> Callable[[Any, Any], Any]:
    return gt.grad(lambda a, x: f(a, x)[1], argnums=1)


def alone(f: Callable[[Any, Any], Any], rows: Any) -> list[Any]:
    """Return the results for each example, run by itself."""
    found = [f(gt.constant(INTEGERS[i]), gt.constant(FLOATS[i])) for i in rows]
    return [np.stack(x) for x in zip(*map(leaves, found), strict=True)]


def leaves(found: Any) -> list[Any]:
    return [np.asarray(x) for x in (found if isinstance(found, (tuple, list)) else [found])]


WAYS: dict[str, Callable[[Any], Any]] = {
    "eager": gt.vmap,
    "function around": lambda f: gt.function(gt.vmap(f)),
    "function inside": lambda f: gt.vmap(gt.function(f)),
    "fused": lambda f: gt.function(gt.vmap(f), executor="fused"),
}


def compare(f: Any, way: str, rows: Any) -> None:
    want = alone(f, rows)
    found = leaves(WAYS[way](f)(gt.constant(INTEGERS[rows]), gt.constant(FLOATS[rows])))
    for x, y in zip(found, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_each_example_its_own(seed: int) -> None:
    f = program(seed)
    for rows in ([0, 1, 2, 3, 4, 5], [0], [3, 5]):
        for way in ("eager", "function around") if seed % 3 else WAYS:
            compare(f, way, rows)


@pytest.mark.parametrize("seed", [1, 4, 5])
def test_gradients_of_random_programs(seed: int) -> None:
    f = slope(program(seed))
    for way in ("eager", "function around"):
        for rows in ([0, 1, 2, 3, 4, 5], [0]):
            compare(f, way, rows)


def odd_part(n: Any) -> Any:
    halved = lambda: gt.while_loop(lambda m: m % 2 == 0, lambda m: m // 2, n)  # noqa: E731
    return gt.cond(n == 0, lambda: n * 0, halved)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_loop_ends_if_its_choice_lets_no_example_in(compiled: bool) -> None:
    wrap = gt.function if compiled else lambda f: f
    for rows in ([12, 0, 7], [0, 0], [0]):
        want = [odd_part(gt.constant(n)).item() for n in rows]
        assert wrap(gt.vmap(odd_part))(gt.constant(rows)).tolist() == want
        twice = wrap(gt.vmap(gt.vmap(odd_part)))(gt.constant([rows, [0] * len(rows), rows]))
        assert twice.tolist() == [want, [0] * len(rows), want]


def test_nothing_is_computed_for_examples_if_none_is_chosen() -> None:
    guarded = lambda n: gt.cond(n == 0, lambda: n, lambda: 12 // n)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert gt.vmap(guarded)(gt.constant([0, 0])).tolist() == [0, 0]
        assert gt.vmap(guarded)(gt.constant([0, 5])).tolist() == [0, 2]


def checked(n: Any) -> Any:
    if n > 0:
        while n % 2 == 0:
            assert n > 0, f"not positive: {n}"
            print("halves", n)
            n = n // 2
    return n


def checked_in_loops(n: Any) -> Any:
    while n > 3:
        if n % 2 == 0:
            while n % 2 == 0:
                assert n > 3, f"small: {n}"
                n = n // 2
        else:
            for _ in range(2):
                assert n % 2 == 1 or n % 2 == 0
                n = n - 1 if n > 4 else n
            n = n - 1
    return n


def shared_checks(n: Any, shared: Any) -> Any:
    if n > 0:
        while shared < 3:
            assert shared >= 0, "negative"
            shared = shared + 1
        n = n + shared
    return n


AROUND: dict[str, Callable[[Any], Any]] = {
    "vmap of function": lambda f: gt.vmap(gt.function(f, autograph=True)),
    "function of vmap": lambda f: gt.function(lambda xs: gt.vmap(f)(xs), autograph=True),
    "both": lambda f: gt.function(gt.vmap(gt.function(f, autograph=True))),
}


@pytest.mark.parametrize("around", AROUND)
def test_effects_in_loops_are_those_of_the_examples_inside(around: str, capsys: Any) -> None:
    for f in (checked, checked_in_loops):
        for rows in ([12, 0, 7], [0, 0], [-2, 8], [40, 5, 6, -1]):
            with np.errstate(all="raise"):
                expected, failed = [], None
                try:
                    expected = [f(n) for n in rows]
                except AssertionError as error:
                    failed = error
            told = capsys.readouterr().out
            if failed is None:
                assert AROUND[around](f)(gt.constant(rows)).tolist() == expected
                assert bool(capsys.readouterr().out) == bool(told)
            else:
                with pytest.raises(AssertionError, match=str(failed).split(":")[0]):
                    AROUND[around](f)(gt.constant(rows))


def test_a_check_on_shared_values_holds_for_the_chosen_examples() -> None:
    for shared, rows in ((-1, [0, -5]), (0, [0, 4]), (-1, [0, 4])):
        for wrap in (lambda f: f, gt.function):
            f = gt.function(shared_checks, autograph=True)
            run = wrap(lambda xs, y, f=f: gt.vmap(lambda x: f(x, y))(xs))
            given = gt.constant(rows), gt.constant(shared)
            if shared < 0 and max(rows) > 0:
                with pytest.raises(AssertionError, match="negative"):
                    run(*given)
            else:
                assert run(*given).tolist() == [n + 3 if n > 0 else n for n in rows]
