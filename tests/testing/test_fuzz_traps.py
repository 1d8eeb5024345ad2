"""The fuzzer of hard points, and the table of kinks that is its page."""

from __future__ import annotations

import itertools
import math
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fuzz import trap_checks, traps
from fuzz.commands import main
from fuzz.kinks import Interval

import gradtape as gt

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE: dict[str, Any] = runpy.run_path(str(DOCS / "make_kinks.py"))
KINKS, OURS = PAGE["KINKS"], PAGE["ours"]()


def test_a_short_run_finds_nothing(capsys) -> None:
    code = main(["traps", "--seed", "4", "--points", "80", "--keep-going"])
    assert code == 0, capsys.readouterr().out


def test_the_same_seed_gives_the_same_points() -> None:
    one, other = (list(itertools.islice(traps.points(5), 20)) for _ in range(2))
    assert [call for call, _ in one] == [call for call, _ in other]
    for (_, xs), (_, ys) in zip(one, other, strict=True):
        np.testing.assert_equal(xs, ys)


@gt.custom_gradient
def halved(x: gt.Tensor) -> Any:
    return x * 1.0, lambda g: g * 0.5


@gt.custom_gradient
def lost(x: gt.Tensor) -> Any:
    return gt.abs(x), lambda g: g * gt.square(x) / gt.square(x)


@pytest.mark.parametrize(
    ("wrong", "at", "said"),
    [
        (halved, 2.0, "the gradient at element"),
        (halved, 1e200, "the gradient at element"),
        (lost, 1e200, "nan"),
    ],
)
def test_a_rule_that_breaks_at_a_hard_point_is_caught(monkeypatch, wrong, at, said) -> None:
    monkeypatch.setattr(gt, "wrong", wrong, raising=False)
    assert said in traps.found("gt.wrong(x)", [np.array(at)])
    assert next(trap_checks.trapped("gt.sin(x)", [np.array(at)]), "") == ""


def is_right(value: Any, right: Any) -> bool:
    if right is None:
        return True
    if isinstance(value, list):
        rows = right if isinstance(right, list) else [right] * len(value)
        return all(map(is_right, value, rows))
    if isinstance(right, Interval):
        return bool(right.low <= value <= right.high)
    return bool(value == right or (math.isfinite(right) and math.isclose(value, right)))


@pytest.mark.parametrize(
    ("kink", "row"), list(zip(KINKS, OURS, strict=True)), ids=lambda x: getattr(x, "call", "")
)
def test_gradients_at_kinks_are_right_or_on_purpose(kink: Any, row: list[Any]) -> None:
    right = is_right(row[1], kink.first) and is_right(row[2], kink.second)
    assert right != kink.on_purpose, f"{kink.call} at {kink.at} gives {row}"


def test_the_page_of_kinks_is_up_to_date() -> None:
    assert PAGE["main"](["--check"]) == 0, "run python docs/make_kinks.py"


@pytest.mark.parametrize("command", ["programs", "traps"])
def test_a_missing_scipy_is_told_with_the_line_that_installs_it(command, monkeypatch, capsys):
    monkeypatch.setattr("fuzz.commands.find_spec", lambda name: None)
    assert main([command, "--seconds", "1"]) == 2
    assert 'pip install "gradtape[scipy]"' in capsys.readouterr().err
