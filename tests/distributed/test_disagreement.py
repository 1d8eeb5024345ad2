"""Ranks that run different code, and a loss that is not finite on one of them: all are told."""

from __future__ import annotations

from typing import Any

import pytest

import gradtape as gt
from gradtape.distributed.agreement import lines_of


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("uneven", "nothing"),
        ("nan", "FloatingPointError: data_parallel: the loss is not finite on rank 1 of 4"),
        ("op", "ranks 0, 2-3 traced relu(%6) -> %7: float32[4, 8]; rank 1 traced tanh(%6) -> "),
        (
            "number",
            "ranks 0, 2-3 traced greater_equal(%11, 0.1) -> %12: bool[4, 8]; rank 1 traced ",
        ),
        ("factor", "rank 1 traced multiply(2.0, "),
        (
            "collective",
            "ranks disagree: ranks 0, 2-3 called all_reduce of float32[2]; rank 1 called all_g",
        ),
        (
            "shape",
            "ranks 0, 2-3 called all_reduce of float32[2]; rank 1 called all_reduce of float32[3]",
        ),
        (
            "large",
            "ranks 0, 2-3 called all_reduce of float32[2]; rank 1 called all_reduce of float32[30",
        ),
        ("step", "; rank 1 called all_reduce of float32[2]"),
        ("two steps", "); rank 1 called step (data-parallel function "),
        (
            "method",
            "rank 1 called distributed.broadcast_variables, which compares variables",
        ),
        ("inside", "ranks 0, 2-3 called all_reduce of float32[2, 3]; rank 1 called all_reduce of"),
        ("last", "nothing"),
    ],
)
def test_every_rank_names_the_one_that_differs(found_by: Any, case: str, said: str) -> None:
    told = found_by(4)["disagreeing"][case]
    assert len(told) == 4
    assert all(said in text for text in told), told


def traced(function, *specs: gt.TensorSpec):
    return gt.function(function).get_concrete_function(*specs).graph


def test_sizes_and_numbers_are_told_only_where_they_may_be_compared() -> None:
    def function(x):
        return gt.reshape(x, (2, -1)) * 0.5

    four, six = (traced(function, gt.TensorSpec([n])) for n in (4, 6))
    assert [*lines_of(four, sizes=False)] == [*lines_of(six, sizes=False)]
    assert [*lines_of(four, sizes=True)] != [*lines_of(six, sizes=True)]


@pytest.mark.parametrize(
    "other",
    [
        lambda x: gt.cond(gt.sum(x) > 0, lambda: x + 1, lambda: gt.sin(x)),
        lambda x: gt.cond(gt.sum(x) > 0, lambda: x + 1, lambda: x * x),
        lambda x: gt.cond(gt.sum(x) > 0, lambda: x, lambda: gt.cos(x)),
    ],
)
def test_branches_are_compared(other) -> None:
    def function(x):
        return gt.cond(gt.sum(x) > 0, lambda: x + 1, lambda: gt.cos(x))

    spec = gt.TensorSpec([3])
    assert [*lines_of(traced(function, spec), True)] == [*lines_of(traced(function, spec), True)]
    assert [*lines_of(traced(function, spec), False)] != [*lines_of(traced(other, spec), False)]
