"""The fuzzer of nested functions: a short run of it, and that it finds what is wrong."""

from __future__ import annotations

import pytest
from fuzz import nestings
from fuzz.commands import main
from fuzz.nestings import Nest, drawn, wrong

#: What earlier runs found, reduced.
FOUND = {
    "a stopped tensor of one array, beside a variable that a branch reads": (
        "gt.cond(w > 0.0, lambda b: b * gt.stop_gradient(c) + c, lambda b: b * v, x)"
    ),
    "a stopped tensor of one array, in an op of a batch": (
        "gt.vmap(lambda b: gt.where(b > 0.0, c, gt.stop_gradient(c)))(x)[0]"
    ),
    "a stopped tensor of one array, in a custom gradient of a batch": (
        "gt.vmap(lambda b: custom(lambda q, a, c: q * a * c)(b, gt.stop_gradient(c), c))(x)[0]"
    ),
    "a rule in a branch that uses a value of the trace around it": (
        "gt.cond(gt.sum(c) > 0.0, lambda: untrue_of_captured(x), lambda: x)"
    ),
    "a rule in a branch in a branch": (
        "gt.cond(w > 0.0, lambda: gt.cond(gt.sum(x) > -9.0, lambda: act(x * c), lambda: x), "
        "lambda: x)"
    ),
    "a rule of a batch that runs a traced function": (
        "custom(lambda b, c, d: function(lambda a: act(a) * b)(b + c))(x, c, d)"
    ),
    "a rule of a batch that runs a batch": (
        "recompute(lambda b: gt.sum(gt.vmap(lambda a: gt.tanh(a * w))(gt.stack([b, b * 0.5])), "
        "axis=0) + b * w)(x)"
    ),
    "a rule of a batch that uses its result, in a loop": (
        "gt.sum(gt.map(lambda b: recompute(lambda a: gt.sum(gt.vmap(lambda q: act_of_result(q))"
        "(gt.stack([a + c, a])), axis=0))(b), gt.stack([x, x * 0.5])), axis=0)"
    ),
}


@pytest.mark.parametrize("seeds", [range(i, i + 5) for i in range(0, 40, 5)], ids=str)
def test_a_random_nesting_is_right_in_every_mode(seeds: range) -> None:
    assert {seed: list(wrong(drawn(seed))) for seed in seeds} == {seed: [] for seed in seeds}


@pytest.mark.parametrize("text", FOUND.values(), ids=FOUND)
def test_what_was_wrong_once_is_right_in_every_mode(text: str) -> None:
    assert list(wrong(Nest(text))) == []


def test_the_same_seed_draws_the_same_program() -> None:
    assert drawn(7) == drawn(7)
    assert drawn(7) != drawn(8)


def test_everything_is_drawn() -> None:
    said = " ".join(drawn(seed).text for seed in range(300))
    for name in "recompute custom function act act_of_result untrue untrue_of_captured".split():
        assert f"{name}(" in said
    for name in "cond while_loop scan map vmap grad stop_gradient".split():
        assert f"gt.{name}(" in said


def test_a_wrong_wrapper_is_found_and_printed(monkeypatch, capsys) -> None:
    right = nestings.WRAPPED["recompute"]

    def doubled(f):
        return lambda *xs, **named: 2.0 * right(f)(*xs, **named)

    monkeypatch.setitem(nestings.WRAPPED, "recompute", doubled)
    seed = next(seed for seed in range(99) if "recompute(" in drawn(seed).text)
    assert main(["nestings", "--seed", str(seed), "--programs", "1", "--mode", "wrappers"]) == 1
    said = capsys.readouterr().out
    assert drawn(seed).text in said
    assert "without wrappers, value is" in said
