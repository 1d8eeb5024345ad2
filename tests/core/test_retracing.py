"""How many traces a function keeps, which go, and the warning that says what makes them."""

from __future__ import annotations

import gc
import warnings
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

quiet = pytest.mark.filterwarnings("ignore:function .* was traced")


@quiet
def test_traces_of_python_numbers_are_bounded_and_their_memory_is_freed() -> None:
    f = gt.function(lambda x, rate: x * rate)
    x = gt.constant([1.0, 2.0])
    graphs: list[weakref.ref[Any]] = []
    for i in range(300):
        assert f(x, float(i)).tolist() == [i, 2.0 * i]
        graphs.append(weakref.ref(f.concrete_functions[-1].graph))
    assert len(f.concrete_functions) == 128
    gc.collect()
    assert sum(graph() is not None for graph in graphs) == 128
    assert f(x, 3.0).tolist() == [3.0, 6.0]  # made again


@quiet
@pytest.mark.parametrize(("limit", "kept"), [(3, 3), (1, 1), (None, 40)])
def test_how_many_are_kept_is_an_option(limit: int | None, kept: int) -> None:
    @gt.function(max_traces=limit)
    def f(x):
        return gt.sum(x)

    class Model(gt.Module):
        @gt.function(max_traces=limit)
        def total(self, x):
            return gt.sum(x)

    model = Model()
    for n in range(1, 41):
        assert f(gt.ones(n)).item() == model.total(gt.ones(n)).item() == n
    assert len(f.concrete_functions) == len(model.total.concrete_functions) == kept
    assert [f(gt.ones(n)).item() for n in (40, 1, 2)] == [40, 1, 2]


def test_a_limit_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="max_traces must be at least 1"):
        gt.function(lambda x: x, max_traces=0)


@quiet
def test_a_trace_that_is_called_stays_and_one_called_once_goes() -> None:
    made: list[tuple[int, ...]] = []

    @gt.function(max_traces=4)
    def f(x):
        made.append(x.shape)
        return gt.sum(x)

    for n in range(1, 50):
        f(gt.ones((2, 2)))
        f(gt.ones(n))
    assert made.count((2, 2)) == 1
    assert len(made) == 50


@quiet
def test_traces_asked_for_stay_and_held_ones_stay_valid(tmp_path: Path) -> None:
    class Model(gt.Module):
        def __init__(self):
            super().__init__()
            self.w = gt.Variable(2.0)

        @gt.function(max_traces=2)
        def scale(self, x, power=1):
            return self.w * x**power

    model = Model()
    asked = model.scale.get_concrete_function(gt.TensorSpec([None]), 3)
    model.scale(gt.ones(2), 10)
    held = model.scale.concrete_functions[-1]
    for power in range(20, 30):
        model.scale(gt.ones(2), power)
    assert held not in model.scale.concrete_functions
    assert held(gt.constant([1.0, 1.0]), 10).tolist() == [2.0, 2.0]
    assert asked in model.scale.concrete_functions
    assert len(model.scale.concrete_functions) == 3
    gt.save(model, tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    assert loaded.scale(gt.constant([1.0, 2.0]), 3).tolist() == [2.0, 16.0]
    assert loaded.scale(gt.constant([1.0, 2.0]), 29).shape == (2,)
    with gt.GradientTape() as tape:
        y = held(gt.constant([1.0, 1.0]), 10)
    assert tape.gradient(y, model.w).item() == 2.0


def test_one_trace_for_all_shapes_is_known_by_a_bounded_number_of_them() -> None:
    f = gt.function(lambda x: gt.sum(x), input_signature=[gt.TensorSpec([None])])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for n in range(1100):
            f(gt.zeros(n))
    assert len(f.concrete_functions) == 1
    assert len(f._traces.quick) <= 1024


def vary_number(f: Any, i: int) -> None:
    f(gt.ones(2), 0.5 * i)


def vary_whole(f: Any, i: int) -> None:
    f(gt.ones(2), rate=i)


def vary_shape(f: Any, i: int) -> None:
    f(gt.ones((i + 1, 3)), 1.0)


def vary_rank(f: Any, i: int) -> None:
    f(gt.ones((1,) * i), 1.0)


def vary_object(f: Any, i: int) -> None:
    f(gt.ones(2), 1.0, lambda x: x)


def vary_inside(f: Any, i: int) -> None:
    f(gt.ones(2), 1.0, more={"a": 1, "b": [2, f"text {i}"]})


def vary_structure(f: Any, i: int) -> None:
    f(gt.ones(2), 1.0, more=[gt.ones(1)] * i)


WARNINGS = {
    vary_number: r"argument 'rate' came as 32 Python numbers \(last 15\.5\).*\.constant\(15",
    vary_whole: r"argument 'rate' came as 32 Python numbers \(last 31\).*gradtape\.constant\(31",
    vary_shape: r"argument 'x' came in 32 shapes.*\(32, 3\) float32.*TensorSpec.*None, 3",
    vary_rank: r"argument 'x' came in 32 shapes.*TensorSpec\(.*None",
    vary_object: r"argument 'more' came as 32 Python values \(last one of type function\).*same",
    vary_inside: r"argument 'more' came as 32 Python values \(last one of type str\)",
    vary_structure: r"32 structures.*gradtape\.stack",
}


@pytest.mark.parametrize("vary", WARNINGS, ids=lambda vary: vary.__name__)
@pytest.mark.parametrize("limit", [1, 128])
def test_one_warning_says_which_argument_makes_traces_and_what_to_write(
    vary: Any, limit: int
) -> None:
    def scaled(x: Any, rate: Any, more: Any = None) -> Any:
        return x * rate

    f = gt.function(scaled, max_traces=limit)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for i in range(31):
            vary(f, i)
        assert not caught
        for i in range(31, 60):
            vary(f, i)
    (warning,) = caught
    assert warning.category is UserWarning
    assert warning.filename == __file__
    with pytest.raises(
        UserWarning, match=rf"function 'scaled' was traced 32 times: .*{WARNINGS[vary]}"
    ):
        raise warning.message if isinstance(warning.message, Warning) else AssertionError


@pytest.mark.parametrize("signature", [None, [gt.TensorSpec([None])]])
def test_the_warning_knows_that_variables_were_frozen_and_thawed(signature: Any) -> None:
    w = gt.Variable(2.0)

    @gt.function(input_signature=signature)
    def f(x: Any) -> Any:
        return x * w if w.trainable else x

    def thaw_or_freeze() -> None:
        for i in range(40):
            w.trainable = i % 2 == 0
            f(gt.ones(2))

    with pytest.warns(UserWarning, match="'f' was traced 32 times: for the same arg.*frozen or th"):
        thaw_or_freeze()


@pytest.mark.parametrize("as_tensor", [gt.constant, np.float32, np.asarray])
def test_what_the_warning_says_to_write_makes_one_trace(as_tensor: Any) -> None:
    f = gt.function(lambda x, rate: x * rate)
    for i in range(50):
        f(gt.ones(2), as_tensor(0.5 * i))
    assert len(f.concrete_functions) == 1
