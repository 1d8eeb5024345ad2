"""What a trace leaves in the objects that were there before it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers

pytest.importorskip("malt", reason='AutoGraph needs pip install "gradtape[autograph]"')

CASES: list[Callable[[], tuple[Callable[[Any], Any], Callable[[], Any]]]] = []
calls = 0


def case(f: Callable[[], Any]) -> Callable[[], Any]:
    CASES.append(f)
    return f


class Counting(layers.Layer):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def call(self, x):
        self.calls += 1
        return x * 2.0


@case
def layers_that_count_their_calls():
    layer = Counting()

    def f(x):
        return layer(x) if x[0] > 0 else x

    return f, lambda: layer.calls


@case
def decorators_that_count_calls():
    def counting(f):
        @functools.wraps(f)
        def run(*args):
            run.calls += 1
            return f(*args)

        run.calls = 0
        return run

    double = counting(lambda x: x * 2.0)

    def f(x):
        for e in x:
            if e > 0:
                x = double(x)
        return x

    return f, lambda: double.calls


@case
def items_of_outer_dicts_and_lists():
    d, rows = {"n": 0, "other": {"m": 1.5}}, [0, 0]

    def f(x):
        if x[0] > 0:
            d["n"] += 1
            d["other"]["m"] += 1.0
            rows[1] += 2
        return x + rows[1] - rows[1]

    return f, lambda: (d, rows)


@case
def global_variables():
    def count():
        global calls
        calls += 1

    def f(x):
        if x[0] > 0:
            count()
        return x

    return f, lambda: calls


@case
def outer_variables():
    n = 0

    def count():
        nonlocal n
        n += 1

    def f(x):
        while x[0] < 5:
            count()
            x = x + 1.0
        return x

    return f, lambda: n


@pytest.mark.parametrize("make", CASES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("size", [2, 3])
def test_objects_can_be_used_after_traces(make: Any, size: int) -> None:
    f, state = make()
    before = repr(state())
    traced = gt.function(f, autograph=True)
    for n in (size, 4):  # two traces
        with pytest.warns(UserWarning, match=r"changes .* in each run, but a run cannot change"):
            traced(gt.ones(n))
        assert repr(state()) == before
    np.testing.assert_array_equal(traced(gt.ones(size)), f(gt.ones(size)))


class Box:
    n = 0
    total = 0.0


def test_no_warning_of_objects_made_in_the_trace() -> None:
    @gt.function(autograph=True)
    def f(x: Any) -> Any:
        box, d = Box(), {"n": 0}
        for e in x:
            if e > 0:
                box.n += 1
                d["n"] += 1
        return d, box.n

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, n = f(gt.constant([1.0, -1.0, 2.0]))
    assert (found["n"].item(), n.item()) == (2, 2)


def test_results_have_what_objects_had_at_the_end() -> None:
    kept = {"n": 0}

    @gt.function(autograph=True)
    def f(x: Any) -> Any:
        if x > 0:
            kept["n"] += 1
        return kept

    with pytest.warns(UserWarning, match="changes kept"):
        assert f(gt.constant(1.0))["n"].item() == 1
    assert kept == {"n": 0}


@pytest.mark.parametrize("of", [gt.grad, gt.vmap, gt.jacobian], ids=lambda f: f.__name__)
@pytest.mark.filterwarnings("ignore:autograph. a traced statement changes")
def test_objects_can_be_used_after_transforms(of: Any) -> None:
    box = Box()

    def f(x: Any) -> Any:
        if gt.sum(x) > 0:
            box.n += 1
        return gt.sum(x) * 2.0

    of(gt.function(f, autograph=True))(gt.ones((2, 2)))
    assert box.n == 0


def test_traced_tensors_in_objects_still_raise_when_used() -> None:
    box = Box()

    @gt.function(autograph=True)
    def f(x: Any) -> Any:
        if x > 0:
            box.total = box.total + x
        return x

    f(gt.constant(1.0))
    with pytest.raises(gt.errors.TraceError, match="return it from the function"):
        box.total.numpy()


def test_a_trace_that_fails_leaves_objects_as_they_were() -> None:
    box, rows = Box(), [1.0]

    @gt.function(autograph=True)
    def f(x: Any) -> Any:
        if x > 0:
            box.total = box.total + x
            box.n += 1
        if x > 1:
            rows.append(x)
        return x

    with pytest.raises(ValueError, match="the list 'rows' is changed"):
        f(gt.constant(1.0))
    assert (box.total, box.n, rows) == (0.0, 0, [1.0])


CACHES: list[Callable[[], Callable[[Any], Any]]] = []


def cache(f: Callable[[], Any]) -> Callable[[], Any]:
    CACHES.append(f)
    return f


class Tables:
    kept = None

    def __init__(self):
        self.of_size = {}

    @functools.cached_property
    def declared(self):
        return np.arange(3.0)

    def array(self):
        if self.kept is None:
            self.kept = np.arange(3.0)
        return self.kept

    def tensor(self):
        if self.kept is None or self.kept.shape[0] < 3:
            self.kept = gt.constant(np.arange(3.0))
        return self.kept

    def sized(self, n):
        if n not in self.of_size:
            self.of_size[n] = np.arange(float(n))
        return self.of_size[n]


@cache
def cached_properties():
    tables = Tables()
    return lambda x: x + tables.declared if x[0] > 0 else x


@pytest.mark.parametrize("make", CACHES, ids=lambda f: f.__name__)
def test_traced_statements_may_fill_caches(make: Any) -> None:
    traced, right = gt.function(make(), autograph=True), make()
    for point in ([1.0, 2.0, 3.0], [-1.0, 2.0, 3.0]):
        x = gt.constant(point, dtype="float64")
        np.testing.assert_allclose(traced(x), right(x))


@pytest.mark.parametrize("fill", [Tables.array, Tables.tensor, lambda t: t.sized(3)])
def test_other_caches_are_refused_with_a_way_out(fill: Any) -> None:
    """A trace cannot tell a cache from a value that one branch assigns, and that is read later."""
    tables = Tables()

    def f(x: Any) -> Any:
        if x[0] > 0:
            x = x + gt.cast(fill(tables), x.dtype)
        return x

    with pytest.raises(ValueError, match="do_not_convert, if it fills a cache"):
        gt.function(f, autograph=True)(gt.ones(3))
    assert (tables.kept, tables.of_size) == (None, {})
    fill = gt.autograph.do_not_convert(fill)
    np.testing.assert_allclose(gt.function(f, autograph=True)(gt.ones(3)), [1.0, 2.0, 3.0])
