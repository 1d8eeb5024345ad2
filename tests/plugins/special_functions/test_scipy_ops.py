"""SciPy's functions in traces, batches, files and other dtypes, by the checks for all ops."""

from __future__ import annotations

import functools

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
    row, points = row_of(name), CASES[name].points(2)
    places = [i for i, argument in enumerate(row.formulas) if argument in row.differentiable]
    function = of_scipy(name)

    def run(*tensors):
        given = list(points)
        for i, x in zip(places, tensors, strict=True):
            given[i] = x
        return function(*given)

    run.__name__ = name
    sample = Sample(*[points[i] for i in places])
    known = ("second order",) if len(places) == 1 else ()
    checks, reason = EXEMPT.get(name, (known, "compared in test_scipy_derivatives.py"))
    report = check_op(run, [sample.without(*checks, reason=reason)], backends=())
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


# -- Python numbers beside tensors -----------------------------------------------------------------

#: The functions of several arguments of which one has a derivative.
SEVERAL = [name for name in sorted(CASES.keys() - {"jn"}) if len(row_of(name).formulas) > 1]


def numbers_at(name):
    """Give each place of a smooth argument, and the sets of other arguments to give as numbers."""
    row = row_of(name)
    for place, argument in enumerate(row.formulas):
        if argument in row.differentiable and CASES[name].points(1)[place].dtype.kind == "f":
            others = [i for i in range(len(row.formulas)) if i != place]
            yield from ((place, [i]) for i in others)
            if len(others) > 1:
                yield place, others


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_any_argument_may_be_a_python_number(name):
    function, points = of_scipy(name), CASES[name].points(2)
    for place, numbers in numbers_at(name):
        x = gt.constant(points[place])

        def slope(x, place=place, given=points):
            def run(x):
                found = function(*given[:place], x, *given[place + 1 :])
                return gt.sum(found[0] if function.nout > 1 else found)

            return gt.grad(run)(x)

        arrays = [np.full(2, p[0]) if i in numbers else p for i, p in enumerate(points)]
        given = [p[0].item() if i in numbers else p for i, p in enumerate(points)]
        weak = functools.partial(slope, given=given)
        right = slope(x, given=arrays)
        assert np.isfinite(right.numpy()).all(), (place, numbers)
        found = weak(x)
        np.testing.assert_allclose(found, right, rtol=1e-12, err_msg=str((place, numbers)))
        assert found.dtype == np.float64
    # the last one, in which all others are numbers
    np.testing.assert_allclose(gt.function(weak)(x), right, rtol=1e-12)
    np.testing.assert_allclose(gt.vmap(weak)(x), right, rtol=1e-12)
    if name not in ("smirnov", "smirnovi"):
        second = gt.grad(lambda x: gt.sum(weak(x)))(x)
        np.testing.assert_allclose(gt.jvp(weak, (x,), (gt.ones_like(x),))[1], second, rtol=1e-9)


def test_python_numbers_keep_the_precision_of_tensors():
    x = gt.constant(np.array([0.3, 0.6], np.float32))
    for name in ("rel_entr", "agm", "xlogy", "ellipkinc", "binom", "beta"):
        for number in (0.5, 2):
            slope = gt.grad(lambda x, n=name, b=number: gt.sum(of_scipy(n)(x, b)))(x)
            assert slope.dtype == np.float32, name
