"""What holds for all families of ops, on the rows of each: values, gradients, traces, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from families import FAMILIES
from families.family import Family
from samples import (
    check_dtypes,
    check_runs_in_traces,
    check_traces,
    check_two_orders,
    check_values,
    listed,
)

import gradtape as gt
from gradtape.core.extend import ops
from gradtape.testing import check_gradients

NARROW = {
    "float16": {"f": "float16"},
    "float32": {"f": "float32", "c": "complex64"},
    "float64": {"f": "float64", "c": "complex128"},
}


def rows(of: Callable[[Family], Iterable[tuple[Any, ...]]]) -> list[Any]:
    """Return the rows that the families contribute; the first of each is its name."""
    return [
        pytest.param(*row, id=f"{family}: {name}")
        for family, record in FAMILIES.items()
        for name, *row in of(record)
    ]


@pytest.mark.parametrize(
    ("sample", "tolerances"),
    rows(lambda family: [(name, x, family.values) for name, x in family.samples.items()]),
)
def test_values_are_numpys(sample, tolerances):
    check_values(sample, **tolerances)


@pytest.mark.parametrize(
    ("sample", "squared"),
    rows(
        lambda family: [
            (name, x, family.squared) for name, x in (family.smooth or family.samples).items()
        ]
    ),
)
def test_gradients_of_two_orders(sample, squared):
    if squared:
        check_two_orders(sample)
    else:
        ours, _, inputs = sample
        check_gradients(ours, *inputs)


@pytest.mark.parametrize(
    ("sample", "unknown"),
    rows(lambda family: [(f"{name}, {how}", x, how) for name, x, how in family.traces]),
)
def test_traces_agree(sample, unknown):
    check_traces(sample, unknown)


@pytest.mark.parametrize(
    ("sample", "sized", "tolerances"),
    rows(
        lambda family: [
            (name, x, name in family.sized, family.runs)
            for name, x in family.samples.items()
            if family.runs is not None
        ]
    ),
)
def test_one_trace_with_unknown_sizes_gives_values_and_gradients(sample, sized, tolerances):
    check_runs_in_traces(sample, sized, **tolerances)


@pytest.mark.parametrize(
    ("sample", "dtype"),
    rows(
        lambda family: [
            (f"{name}, {dtype}", x, dtype)
            for name, x in family.samples.items()
            for dtype in family.precisions
            if dtype == "float64" or name not in family.mixed
        ]
    ),
)
def test_precisions_are_kept(sample, dtype):
    ours, theirs, inputs = sample
    narrow = NARROW[dtype]
    xs = [gt.constant(x, narrow[x.dtype.kind]) for x in map(np.asarray, inputs)]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        ys = listed(ours(*xs), keep=True)
    wanted = listed(theirs(*inputs))
    assert [y.dtype for y in ys] == [narrow[want.dtype.kind] for want in wanted]
    assert [g.dtype for g in tape.gradient(ys, xs)] == [x.dtype for x in xs]


@pytest.mark.parametrize(("sample", "dtypes"), rows(lambda family: family.dtypes))
def test_dtypes_are_numpys(sample, dtypes):
    check_dtypes(sample, *dtypes)


@pytest.mark.filterwarnings("ignore:You are comparing")
@pytest.mark.parametrize(
    ("name", "arrays", "params"),
    rows(lambda family: [(f"{row[0]} {row[2]}", *row) for row in family.kernels]),
)
def test_kernels_need_no_more_than_the_array_api(strict, name, arrays, params):
    mine = ops[name].kernel(strict, *map(strict.asarray, arrays), **params)
    ours = ops[name].raw(*arrays, **params)
    for x, y in zip(listed(mine), listed(ours), strict=True):
        if name == "argpartition":  # any order of the others will do
            at = params["kth"]
            x, y = arrays[0][x[at]], arrays[0][y[at]]
        assert x.dtype == y.dtype
        np.testing.assert_allclose(x, y, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("call", "error", "words", "given"),
    rows(lambda family: [(row[2], *row, family.given) for row in family.errors]),
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words, given):
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(*map(gt.constant, given))
