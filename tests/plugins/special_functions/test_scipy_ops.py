"""SciPy's functions in traces, batches, files and other dtypes, by the checks for all ops."""

from __future__ import annotations

import numpy as np
import pytest
from special_errors import of_scipy, row_of
from special_references import CASES

import gradtape as gt
from gradtape.testing import Sample, check_op

#: Functions of which a check does not hold, with the reason.
EXEMPT = {
    "smirnov": (("second order",), "SciPy has no second derivative"),
    "smirnovi": (("second order",), "SciPy has no second derivative"),
    "itairy": (("gradients", "second order"), "the values have errors of 1e-5"),
    "ncfdtrinc": (("gradients", "second order"), "SciPy finds it with an error of 1e-3"),
}


@pytest.mark.parametrize("name", sorted(CASES.keys() - {"jn"}))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_check_for_ops(name):
    row, points = row_of(name), CASES[name].points(3)
    places = [i for i, argument in enumerate(row.formulas) if argument in row.differentiable]
    function = of_scipy(name)

    def run(*tensors):
        given = list(points)
        for i, x in zip(places, tensors, strict=True):
            given[i] = x
        return function(*given)

    run.__name__ = name
    sample = Sample(*[points[i] for i in places])
    checks, reason = EXEMPT.get(name, ((), ""))
    report = check_op(run, [sample.without(*checks, reason=reason)])
    assert report["traced"] == report["batched"] == report["saved"] == "passed"


@pytest.mark.parametrize("name", ["jv", "gammainc", "hyp1f1", "ellipj"])
def test_arguments_broadcast(name):
    function, points = of_scipy(name), CASES[name].points(3)
    tensors = [gt.constant(x[:, None] if i else x) for i, x in enumerate(points)]
    found, right = function(*tensors), function(*[x.numpy() for x in tensors])
    if function.nout > 1:
        found, right = found[0], right[0]
    assert found.shape == (3, 3)
    np.testing.assert_array_equal(found.numpy(), right)
    last = tensors[-1]
    with gt.GradientTape() as tape:
        tape.watch(last)
        y = function(*tensors)
    slope = tape.gradient(y[0] if function.nout > 1 else y, last)
    assert slope.shape == (3, 1)


def test_python_numbers_are_weak():
    x = gt.constant(np.ones(2, np.float32))
    for name, first in [("jv", 1), ("eval_hermite", 3), ("struve", 0), ("gammainc", 2.0)]:
        assert of_scipy(name)(first, x).dtype == np.float32
        traced = gt.function(lambda x, name=name, first=first: of_scipy(name)(first, x))
        assert traced(x).dtype == np.float32
    assert of_scipy("jv")(np.array([1.0, 2.0]), x).dtype == np.float64
    assert of_scipy("j0")(gt.constant([1, 2])).dtype == np.float64
