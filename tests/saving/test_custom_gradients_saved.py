"""Custom gradients come back from a file, to every order, without the code that made them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import assert_same_bits, probe, probe_isolated, run_isolated

import gradtape as gt

ANY = [gt.TensorSpec(None)]


@gt.custom_gradient
def wrong_cube(x: Any) -> Any:
    return x * x * x, lambda g: 10.0 * g * x * x


@gt.custom_gradient
def clipped(x: Any) -> Any:
    return x, lambda g: gt.clip(g, -0.5, 0.5)


@gt.custom_gradient
def straight_through(x: Any) -> Any:
    return gt.round(x), lambda g: g


@gt.custom_gradient
def log1pexp(x: Any) -> Any:
    e = gt.exp(x)
    return gt.log(1.0 + e), lambda g: g * (1.0 - 1.0 / (1.0 + e))


@gt.custom_gradient
def two_by_two(x: Any, y: Any) -> Any:
    def gradient(g: Any, h: Any) -> Any:
        return 2.0 * g * y + h, 3.0 * g * x - h * y

    return (x * y, x + y), gradient


@gt.custom_gradient
def nested(x: Any) -> Any:
    def gradient(g: Any) -> Any:
        return wrong_cube(g) + clipped(x) * g

    return wrong_cube(x) * 2.0, gradient


class Curves(gt.Module):
    """One method per custom gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable(1.5, name="scale")
        scale = self.scale

        @gt.custom_gradient
        def scaled(x: Any) -> Any:
            def gradient(g: Any, variables: Any) -> Any:
                return g * variables[0] * 7.0, [gt.sum(g * x) * 3.0]

            return x * scale, gradient

        self._scaled = scaled

    @gt.function(input_signature=ANY)
    def wrong_cube(self, x: Any) -> Any:
        return wrong_cube(x)

    @gt.function(input_signature=ANY)
    def clipped(self, x: Any) -> Any:
        return gt.square(clipped(x * 2.0))

    @gt.function(input_signature=ANY)
    def straight_through(self, x: Any) -> Any:
        return gt.square(straight_through(x))

    @gt.function(input_signature=ANY)
    def log1pexp(self, x: Any) -> Any:
        return log1pexp(x)

    @gt.function(input_signature=[gt.TensorSpec(None), gt.TensorSpec(None)])
    def two_by_two(self, x: Any, y: Any) -> Any:
        p, s = two_by_two(x, y)
        return {"product": p, "sum": s, "both": [p * s]}

    @gt.function(input_signature=ANY)
    def reads_variable(self, x: Any) -> Any:
        return self._scaled(x) * self.scale

    @gt.function(input_signature=ANY)
    def nested(self, x: Any) -> Any:
        return nested(x)


METHODS = (
    "wrong_cube",
    "clipped",
    "straight_through",
    "log1pexp",
    "two_by_two",
    "reads_variable",
    "nested",
)


def calls() -> list[tuple[str, list[Any], dict[str, Any]]]:
    random = np.random.default_rng(0)
    made = []
    for method in METHODS:
        count = 2 if method == "two_by_two" else 1
        for shape in ((), (3,), (2, 3), (2, 1, 2)):
            arrays = [random.standard_normal(shape).astype("float32") for _ in range(count)]
            made.append((method, arrays, {}))
    return made


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Curves]:
    module = Curves()
    path = tmp_path_factory.mktemp("curves") / "curves.h5"
    gt.save(module, path)
    return path, module


def test_all_values_and_gradients_are_the_same_bits_in_a_fresh_process(
    saved: tuple[Path, Curves],
) -> None:
    path, module = saved
    for call, found in zip(calls(), probe_isolated(path, calls()), strict=True):
        assert_same_bits(found, probe(module, *call))


def test_a_file_saved_from_a_loaded_module_keeps_everything(
    saved: tuple[Path, Curves], tmp_path: Path
) -> None:
    path, module = saved
    loaded = gt.load(path)
    gt.save(loaded, tmp_path / "again.h5")
    again = gt.load(tmp_path / "again.h5")
    gt.save(again, tmp_path / "third.h5")
    third = gt.load(tmp_path / "third.h5")
    for call in calls():
        expected = probe(module, *call)
        for other in (loaded, again, third):
            assert_same_bits(probe(other, *call), expected)
    assert (tmp_path / "again.h5").read_bytes() == (tmp_path / "third.h5").read_bytes()


def test_a_rule_that_is_wrong_on_purpose_stays_wrong_at_orders_one_to_three(
    saved: tuple[Path, Curves],
) -> None:
    printed = run_isolated(
        "f = gt.load(sys.argv[1]).wrong_cube\n"
        "x = gt.constant(2.0)\n"
        "with gt.GradientTape() as a:\n"
        "    a.watch(x)\n"
        "    with gt.GradientTape() as b:\n"
        "        b.watch(x)\n"
        "        with gt.GradientTape() as c:\n"
        "            c.watch(x)\n"
        "            y = f(x)\n"
        "        d1 = c.gradient(y, x)\n"
        "    d2 = b.gradient(d1, x)\n"
        "d3 = a.gradient(d2, x)\n"
        "print(y.item(), d1.item(), d2.item(), d3.item())\n",
        saved[0],
    )
    assert printed.split() == ["8.0", "40.0", "40.0", "20.0"]


def test_the_stable_gradient_is_finite_where_the_plain_one_is_not(
    saved: tuple[Path, Curves],
) -> None:
    f = gt.load(saved[0]).log1pexp
    x = gt.constant(100.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        with np.errstate(over="ignore"):
            y = f(x)
    assert tape.gradient(y, x).item() == 1.0


def test_custom_gradients_are_listed_with_those_inside_them(saved: tuple[Path, Curves]) -> None:
    text = gt.saving.inspect_text(saved[0])
    for label in ("wrong_cube", "clipped", "straight_through", "log1pexp", "two_by_two"):
        assert f"custom gradient {label} (gradient of" in text
    nested_line = next(line for line in text.splitlines() if "custom gradient nested" in line)
    assert "wrong_cube (gradient of" in nested_line
    assert "clipped (gradient of" in nested_line


def test_the_file_verifies(saved: tuple[Path, Curves]) -> None:
    report = gt.saving.verify(saved[0])
    assert report.ok, report.table()
    assert len(report.checks) == 3 * len(METHODS)
    assert not report.skipped


def test_a_custom_gradient_trains_on_after_loading(saved: tuple[Path, Curves]) -> None:
    loaded, module = gt.load(saved[0]), Curves()
    x = gt.constant([1.0, -2.0])
    for model in (loaded, module):
        for _ in range(3):
            with gt.GradientTape() as tape:
                loss = gt.sum(gt.square(model.reads_variable(x)))
            (variable,) = model.trainable_variables
            variable.assign_sub(0.001 * tape.gradient(loss, variable))
    assert loaded.scale.numpy() == module.scale.numpy() != 1.5


def test_a_variable_read_by_the_gradient_alone_is_saved(tmp_path: Path) -> None:
    class Late(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable(3.0)

        @gt.function(input_signature=[gt.TensorSpec([None])])
        def f(self, x: Any) -> Any:
            w = self.w

            @gt.custom_gradient
            def odd(x: Any) -> Any:
                return x * 1.0, lambda g: g * gt.stop_gradient(w.value)

            return odd(x) * self.w  # the gradient reads w before the function does

    module = Late()
    gt.save(module, tmp_path / "late.h5")
    loaded = gt.load(tmp_path / "late.h5")
    x = np.array([1.0, 2.0], "float32")
    assert_same_bits(probe(loaded, "f", [x], {}), probe(module, "f", [x], {}))


def test_a_gradient_of_none_stays_none(tmp_path: Path) -> None:
    class Half(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([]), gt.TensorSpec([])])
        def f(self, x: Any, y: Any) -> Any:
            @gt.custom_gradient
            def half(x: Any, y: Any) -> Any:
                return x * y, lambda g: (g, None)

            return half(x, y)

    gt.save(Half(), tmp_path / "half.h5")
    loaded = gt.load(tmp_path / "half.h5")
    x, y = gt.constant(2.0), gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch([x, y])
        z = loaded.f(x, y)
    assert [g and g.item() for g in tape.gradient(z, [x, y])] == [1.0, None]
