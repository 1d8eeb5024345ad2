"""Traces with open sizes serve the calls that fit them; ``reduce_retracing`` makes them."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt


def counting(body: Any, **options: Any) -> tuple[Any, list[Any]]:
    """Return a traced function, and a list of the shapes that it was traced for."""
    traced: list[Any] = []

    def f(x: Any, *rest: Any, **more: Any) -> Any:
        try:
            traced.append(x.shape)
        except gt.errors.TraceError:  # of a rank that is open
            traced.append(None)
        return body(x, *rest, **more)

    return gt.function(f, **options), traced


def doubled(x: Any) -> Any:
    return x * 2.0


# -- traces that were asked for --------------------------------------------------------------------


def test_a_call_uses_a_trace_with_open_sizes_that_it_fits() -> None:
    f, traced = counting(doubled)
    f.get_concrete_function(gt.TensorSpec([None, 3]))
    for n in (0, 1, 2, 2, 7):
        np.testing.assert_array_equal(f(gt.ones((n, 3))), np.full((n, 3), 2.0))
        np.testing.assert_array_equal(f(np.ones((n, 3), "float32")), np.full((n, 3), 2.0))
    assert len(traced) == 1
    f(gt.ones((2, 4)))  # another size, another rank, another dtype: what does not fit
    f(gt.ones(3))
    f(gt.ones((2, 3), "float64"))
    assert len(traced) == 4


def test_a_trace_of_unknown_rank_serves_every_rank() -> None:
    asked, traced = counting(doubled)
    asked.get_concrete_function(gt.TensorSpec(None))
    declared, traced_too = counting(doubled, input_signature=[gt.TensorSpec(None)])
    for shape in ((), (3,), (2, 3), (1, 2, 3), (0,)):
        for f in (asked, declared):
            np.testing.assert_array_equal(f(gt.ones(shape)), np.full(shape, 2.0))
    assert len(traced) == len(traced_too) == 1


SPECS = [
    gt.TensorSpec(None),
    gt.TensorSpec([None, None]),
    gt.TensorSpec(["n", "n"]),
    gt.TensorSpec([None, 3]),
    gt.TensorSpec([2, 3]),
]
CHOSEN = {(2, 3): 4, (5, 3): 3, (4, 4): 2, (4, 5): 1, (4,): 0, (3, 3): 3}


@pytest.mark.parametrize("order", [SPECS, SPECS[::-1], SPECS[2:] + SPECS[:2]])
def test_the_most_specific_trace_that_fits_is_used(order: list[gt.TensorSpec]) -> None:
    ran: list[int] = []
    f = gt.function(lambda x: doubled(x))
    traces = {}
    for spec in order:
        traces[SPECS.index(spec)] = f.get_concrete_function(spec)
    for i, concrete in traces.items():
        run = concrete.call_flat
        concrete.call_flat = lambda xs, i=i, run=run: (ran.append(i), run(xs))[1]  # type: ignore[method-assign]
    for _ in range(2):
        for shape in CHOSEN:
            f(gt.ones(shape))
    assert ran == [*CHOSEN.values()] * 2
    assert len(f.concrete_functions) == len(SPECS)


def test_a_trace_asked_for_later_is_used_from_then_on() -> None:
    f = gt.function(lambda x: x * 2.0)
    loose = f.get_concrete_function(gt.TensorSpec([None]))
    assert f(gt.ones(3)).shape == (3,)
    assert loose.called_again
    loose.called_again = False
    exact = f.get_concrete_function(gt.TensorSpec([3]))
    assert exact is not loose
    f(gt.ones(3))
    assert (exact.called_again, loose.called_again) == (True, False)


def test_python_values_and_structures_choose_among_open_traces() -> None:
    f = gt.function(lambda x, power, more=None: x**power)
    f.get_concrete_function(gt.TensorSpec([None]), 2)
    assert f(gt.constant([3.0, 4.0]), 2).tolist() == [9.0, 16.0]
    assert f(x=gt.constant([3.0]), power=2).tolist() == [9.0]
    assert len(f.concrete_functions) == 1
    assert f(gt.constant([3.0]), 3).tolist() == [27.0]
    assert f(gt.constant([3.0]), 2, more=[gt.ones(1)]).tolist() == [9.0]
    assert len(f.concrete_functions) == 3


def test_names_of_sizes_choose_among_open_traces() -> None:
    f, traced = counting(lambda x, y: gt.sum(x) + gt.sum(y))
    f.get_concrete_function(gt.TensorSpec(["n"]), gt.TensorSpec(["n"]))
    f(gt.ones(3), gt.ones(3))
    assert len(traced) == 1
    assert f(gt.ones(3), gt.ones(4)).item() == 7.0  # sizes that differ are no error: another trace
    assert len(traced) == 2


def test_calls_that_record_gradients_use_open_traces() -> None:
    f, traced = counting(lambda x: gt.sum(x * x))
    f.get_concrete_function(gt.TensorSpec([None]))
    for n in (2, 5):
        assert gt.grad(f)(gt.ones(n)).tolist() == [2.0] * n
    assert len(traced) == 1


def test_an_open_trace_that_is_outdated_is_made_again_with_open_sizes() -> None:
    w = gt.Variable(2.0)

    def step(x: Any) -> Any:
        return x * w if w.trainable else x * 2.0

    f, traced = counting(step)
    f.get_concrete_function(gt.TensorSpec([None]))
    f(gt.ones(2))
    w.trainable = False
    for n in (2, 3, 4):
        assert f(gt.ones(n)).tolist() == [2.0] * n
    assert traced == [(None,), (None,)]


def test_open_traces_know_modes() -> None:
    drop = gt.layers.Dropout(0.5)

    @gt.function
    def f(x: Any) -> Any:
        return drop(x)

    class Model(gt.Module):
        def __call__(self, x: Any, training: bool = False) -> Any:
            return f(x)

    model = Model()
    f.get_concrete_function(gt.TensorSpec([None]))
    for n in (64, 65):
        assert model(gt.ones(n)).tolist() == [1.0] * n
        assert 0.0 in model(gt.ones(n), training=True).tolist()
    assert len(f.concrete_functions) == 2


# -- reduce_retracing ------------------------------------------------------------------------------


def test_reduce_retracing_opens_the_sizes_that_differ() -> None:
    f, traced = counting(doubled, reduce_retracing=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1, 50):
            np.testing.assert_array_equal(f(gt.ones((n, 3))), np.full((n, 3), 2.0))
        assert traced == [(1, 3), (None, 3)]
        f(gt.ones((2, 4)))
        for n in range(4, 9):
            f(gt.ones((n, n)))
    assert [len(f.concrete_functions), len(traced)] == [3, 3]
    assert f.concrete_functions[-1].specs == [gt.TensorSpec([None, None])]


def test_without_it_each_size_is_traced() -> None:
    f, traced = counting(doubled)
    for n in range(1, 5):
        f(gt.ones((n, 3)))
    assert len(traced) == 4


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        ((gt.ones((3, 2)), 2), [(None, 2)]),
        ((gt.ones((3, 2)), 3), [(3, 2)]),
        ((gt.ones((3, 2), "float64"), 2), [(3, 2)]),
        ((gt.ones((3, 2, 1)), 2), [(3, 2, 1)]),
    ],
    ids=["size", "value", "dtype", "rank"],
)
def test_only_sizes_are_opened(other: Any, kept: Any) -> None:
    f, traced = counting(lambda x, k: x * k, reduce_retracing=True)
    f(gt.ones((1, 2)), 2)
    f(*other)
    assert traced[1:] == kept


def test_every_argument_that_differs_is_opened() -> None:
    f = gt.function(lambda d, y: gt.sum(d["x"]) * y, reduce_retracing=True)
    for n in range(1, 6):
        assert f({"x": gt.ones((n, 2))}, gt.ones((3, n))).shape == (3, n)
        f({"x": gt.ones((2, 2))}, y=np.ones((3, 2), "float32"))
    first, second = f.concrete_functions
    assert [spec.shape for spec in first.specs] == [(1, 2), (3, 1)]
    assert [spec.shape for spec in second.specs] == [(None, 2), (3, None)]


def test_variables_as_arguments_are_compared_by_identity() -> None:
    v, w = gt.Variable([1.0, 2.0]), gt.Variable([3.0, 4.0])
    f = gt.function(lambda x, v: gt.sum(x) * v, reduce_retracing=True)
    for n in range(1, 5):
        assert f(gt.ones(n), v).tolist() == [n, 2.0 * n]
        assert f(gt.ones(n), w).tolist() == [3.0 * n, 4.0 * n]
    assert len(f.concrete_functions) == 4


def test_sizes_are_opened_in_each_mode() -> None:
    drop = gt.layers.Dropout(0.5)
    f = gt.function(lambda x: drop(x), reduce_retracing=True)

    class Model(gt.Module):
        def __call__(self, x: Any, training: bool = False) -> Any:
            return f(x)

    model = Model()
    for training in (True, False, True):
        for n in range(64, 70):
            assert (0.0 in model(gt.ones(n), training=training).tolist()) == training
    assert len(f.concrete_functions) == 3  # the first size, and open ones for each mode


def test_a_method_keeps_the_option() -> None:
    class Model(gt.Module):
        @gt.function(reduce_retracing=True)
        def total(self, x: Any) -> Any:
            return gt.sum(x)

    model = Model()
    assert [model.total(gt.ones(n)).item() for n in range(1, 6)] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert len(model.total.concrete_functions) == 2


def rows(x: Any) -> Any:
    """Need the number of rows as a number of Python."""
    return gt.stack([x[i] * 2.0 for i in range(x.shape[0])])


def test_what_cannot_be_traced_with_open_sizes_keeps_a_trace_for_each_size() -> None:
    f, _ = counting(rows, reduce_retracing=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in (1, 2, 3, 4, 2):
            np.testing.assert_array_equal(f(gt.ones((n, 3))), np.full((n, 3), 2.0))
    assert len(f.concrete_functions) == 4
    (warning,) = caught
    assert warning.filename == __file__
    text = str(warning.message)
    assert "function 'f': reduce_retracing" in text
    assert "argument 'x' as TensorSpec((None, 3), 'float32')" in text
    assert "Error: " in text


def test_an_error_of_the_function_itself_is_raised_as_it_is() -> None:
    @gt.function(reduce_retracing=True)
    def f(x: Any) -> Any:
        if x.shape[0] != 1:
            raise ValueError("one row, please")
        return x

    f(gt.ones((1, 2)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="one row, please"):
            f(gt.ones((2, 2)))


def test_open_traces_of_many_python_values_stay_bounded() -> None:
    f = gt.function(lambda x, k: x * k, reduce_retracing=True, max_traces=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(40):
            for n in (1, 2, 3):
                assert f(gt.ones(n), k).tolist() == [float(k)] * n
    assert len(f.concrete_functions) == 4
    assert sum(map(len, f._traces.open.values())) <= 4


def test_a_model_saved_after_reduce_retracing_takes_other_sizes(tmp_path: Path) -> None:
    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable([2.0, 3.0])

        @gt.function(reduce_retracing=True)
        def scale(self, x: Any) -> Any:
            return x * self.w

    model = Model()
    for n in (1, 2):
        model.scale(gt.ones((n, 2)))
    gt.save(model, tmp_path / "model.h5")
    assert gt.load(tmp_path / "model.h5").scale(gt.ones((7, 2))).shape == (7, 2)


# -- the warning about many traces -----------------------------------------------------------------


def warned(f: Any, *calls: Any) -> warnings.WarningMessage:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for args in calls:
            f(*args)
    (warning,) = caught
    return warning


SHAPES = {
    "sizes": ([(gt.ones((n, 3)),) for n in range(40)], True),
    "ranks": ([(gt.ones((1,) * n),) for n in range(32)], False),
    "dtypes": (
        [(gt.ones((n, 3), ("float32", "float64")[n % 2]),) for n in range(40)],
        False,
    ),
}


@pytest.mark.parametrize("kind", SHAPES)
def test_the_warning_says_reduce_retracing_where_sizes_alone_differ(kind: str) -> None:
    calls, sizes_alone = SHAPES[kind]
    text = str(warned(gt.function(doubled), *calls).message)
    assert "input_signature=[...] and TensorSpec(" in text
    assert ("reduce_retracing=True" in text) == sizes_alone


def test_the_warning_is_of_the_line_that_calls() -> None:
    f = gt.function(doubled)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for n in range(40):
            f(gt.ones(n))  # this line
    (warning,) = caught
    line = Path(warning.filename).read_text().splitlines()[warning.lineno - 1]
    assert line.endswith("# this line")
