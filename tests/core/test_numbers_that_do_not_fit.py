"""Python's integers beyond a dtype are an error wherever they meet it: a cast would wrap them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

SMALL = gt.constant(np.array([1, 2], "int8"))
SQUARE = gt.constant(np.array([[1, 2], [3, 4]], "int8"))
MASK = gt.constant([True, False])


def variable() -> gt.Variable:
    return gt.Variable(np.array([1, 2], "int8"))


REFUSED: dict[str, Callable[[], Any]] = {
    "assign": lambda: variable().assign([300, 1]),
    "assign: array": lambda: variable().assign(np.array([300, 1])),
    "assign: tensor": lambda: variable().assign(gt.constant([300, 1])),
    "assign_add": lambda: variable().assign_add(300),
    "assign_add: list": lambda: variable().assign_add([1, 300]),
    "assign_sub": lambda: variable().assign_sub(-300),
    "where: x": lambda: gt.where(MASK, 300, SMALL),
    "where: y": lambda: gt.where(MASK, SMALL, 300),
    "where: list": lambda: gt.where(MASK, SMALL, [300, 1]),
    "where: trace": lambda: gt.function(lambda x: gt.where(MASK, x, 300))(SMALL),
    "np.where": lambda: np.where(MASK, SMALL, 300),
    "select: choice": lambda: gt.select([MASK], [300], SMALL),
    "select: default": lambda: gt.select([MASK], [SMALL], 300),
    "choose": lambda: gt.choose(gt.constant([0, 1]), [SMALL, 300]),
    "fill_diagonal": lambda: gt.fill_diagonal(SQUARE, 300),
    "fill_diagonal: list": lambda: gt.fill_diagonal(SQUARE, [1, 300]),
    "full": lambda: gt.full((2,), 300, dtype="int8"),
    "full_like": lambda: gt.full_like(SMALL, 300),
    "insert": lambda: gt.insert(SMALL, 0, 300),
    "put_along_axis": lambda: gt.put_along_axis(SMALL, gt.constant([0]), 300, 0),
    "pad": lambda: gt.pad(SMALL, 1, constant_values=300),
    "pad: ramp": lambda: gt.pad(SMALL, 1, mode="linear_ramp", end_values=300),
    "at[...].set": lambda: SMALL.at[0].set(300),
    "at[...].set: list": lambda: SMALL.at[:1].set([300]),
    "at[...].add": lambda: SMALL.at[0].add(300),
    "at[...].max": lambda: SMALL.at[0].max(300),
    "clip: above": lambda: gt.clip(SMALL, 300, 400),
    "clip: below": lambda: gt.clip(SMALL, None, -300),
    "maximum": lambda: gt.maximum(SMALL, 300),
}


@pytest.mark.parametrize("call", REFUSED.values(), ids=REFUSED)
def test_an_integer_that_does_not_fit_is_refused_by_name(
    call: Callable[[], Any], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.partition(":")[0].removeprefix("np.")
    with pytest.raises(OverflowError) as raised:
        call()
    assert str(raised.value).startswith(name)


def test_a_refused_assignment_leaves_the_variable_as_it_was() -> None:
    v = variable()
    for method in (v.assign, v.assign_add, v.assign_sub):
        with pytest.raises(OverflowError):
            method([300, 1])
    assert v.numpy().tolist() == [1, 2]


def test_an_integer_that_fits_is_weak_in_an_assignment() -> None:
    v = variable()
    assert v.assign([100, -128]).assign_add(1).assign_sub([1, 0]).numpy().tolist() == [100, -127]
    assert v.assign(gt.constant([5, 6])).numpy().tolist() == [5, 6]  # int64
    assert gt.Variable(np.zeros(1)).assign([0.1]).numpy() == 0.1  # not float32's


@pytest.mark.parametrize(
    ("dtype", "low", "high", "clipped"),
    [("int8", 0, 300, [0, 2]), ("uint8", -1, 1, [1, 1]), ("int8", -300, 300, [-1, 2])],
)
def test_a_bound_beyond_the_dtype_on_its_own_side_bounds_nothing(
    dtype: str, low: int, high: int, clipped: list[int]
) -> None:
    x = gt.constant(np.array([-1 if dtype == "int8" else 1, 2], dtype))
    found = gt.clip(x, low, high)
    assert (found.dtype, found.tolist()) == (dtype, clipped)
    assert np.clip(x, low, high).tolist() == np.clip(x.numpy(), low, high).tolist()
