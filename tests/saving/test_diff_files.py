"""``diff``: what two files hold that is not the same, and nothing that is."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from odd_modules import with_rules
from rewriting import Draft, rewritten

import gradtape as gt

pytestmark = pytest.mark.usefixtures("forks")

FILES = sorted((Path(__file__).parent / "golden").glob("*.h5"))
GOLDEN = [path for path in FILES if path.stem.count("_") == 1]


class Model(gt.Module):
    """Some of everything that can differ."""

    def __init__(self, factor: float = 2.0, slope: float = 1.0) -> None:
        super().__init__()
        gt.random.set_seed(0)
        self.layers = [gt.layers.Dense(3), gt.layers.Dense(2)]
        self.table = gt.Variable(np.arange(6, dtype="float32").reshape(2, 3))
        self.rate = 0.5
        self.size = gt.constant(np.arange(100.0, dtype="float32"))
        self._factor, self._slope = factor, slope
        self(np.ones((1, 4), "float32"))

    def __call__(self, x: Any) -> Any:
        return self.layers[1](self.layers[0](x)) * self._factor + gt.sum(self.size * x[0, 0])

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def held(self, x: Any) -> Any:
        slope = self._slope

        @gt.custom_gradient
        def held(x: Any) -> Any:
            return gt.round(x), lambda g: g * slope

        return held(x)


def files(tmp_path: Path, a: Any, b: Any) -> gt.saving.Difference:
    for name, model in (("a.h5", a), ("b.h5", b)):
        with warnings.catch_warnings(action="ignore"):  # float64 is meant
            gt.save(model, tmp_path / name, golden=False)
    return gt.saving.diff(tmp_path / "a.h5", tmp_path / "b.h5")


def groups(found: gt.saving.Difference) -> set[str]:
    """Return the kinds of things that differ."""
    record = json.loads(found.json())
    return {key for key, value in record.items() if type(value) is list and value}


def test_files_of_equal_models_hold_the_same(tmp_path: Path) -> None:
    found = files(tmp_path, Model(), Model())
    assert not found
    assert found.table().endswith("They hold the same.")
    assert json.loads(found.json())["same"] is True


def assign(model: Model) -> None:
    model.table.assign(np.arange(6.0).reshape(2, 3) * [[1.0, 1.0, 1.5]])


def freeze(model: Model) -> None:
    model.layers[0].trainable = False


def extend(model: Model) -> None:
    model.layers.append(gt.layers.Dense(1))
    model.layers[-1](np.ones((1, 2), "float32"))


def rename(model: Model) -> None:
    model.rate = 0.25


CHANGES: list[tuple[Callable[[Model], None], set[str], str]] = [
    (assign, {"variables"}, "~ table: float32[2, 3]; 2 of 6 elements changed, max abs 2.5"),
    (freeze, {"modules", "variables"}, "~ layers/0: frozen False -> True"),
    (extend, {"modules", "variables"}, "+ layers/2/kernel: float32[2, 1]"),
    (rename, {"modules"}, "~ rate: 0.5 -> 0.25"),
]


@pytest.mark.parametrize(
    ("change", "kinds", "line"), CHANGES, ids=lambda x: getattr(x, "__name__", "")
)
def test_a_change_of_the_tree_is_told(
    tmp_path: Path, change: Callable[[Model], None], kinds: set[str], line: str
) -> None:
    model = Model()
    change(model)
    found = files(tmp_path, Model(), model)
    assert found
    assert kinds <= groups(found) <= {*kinds, "functions"}
    assert line in found.table()
    turned = gt.saving.diff(tmp_path / "b.h5", tmp_path / "a.h5")
    assert groups(turned) == groups(found)


def test_a_graph_that_differs_is_shown_line_by_line(tmp_path: Path) -> None:
    found = files(tmp_path, Model(), Model(factor=3.0))
    (change,) = found.functions
    assert change.what == "model.__call__ (x: float32[?, 4])"
    assert [x for x in change.lines if x.startswith(("+ ", "- ", "+%", "-%"))] == [
        x for x in change.lines if x[:1] in "+-" and x[:3] not in ("+++", "---")
    ]
    assert any(line.startswith("-%") and "2.0" in line for line in change.lines)
    assert any(line.startswith("+%") and "3.0" in line for line in change.lines)


def test_a_custom_gradient_that_differs_or_was_left_out_is_told(tmp_path: Path) -> None:
    found = files(tmp_path, Model(), Model(slope=0.5))
    assert groups(found) == {"modules", "functions"}
    assert any("0.5" in line for line in found.functions[0].lines)
    gt.save(Model(), tmp_path / "b.h5", custom_gradients=False, golden=False)
    found = gt.saving.diff(tmp_path / "a.h5", tmp_path / "b.h5")
    assert {"functions", "custom_gradients"} <= groups(found)
    assert "model.held: held (its gradient was left out)" in found.table()


def test_a_constant_that_is_not_shown_is_compared(tmp_path: Path) -> None:
    other = Model()
    other.size = gt.constant(np.arange(100.0, dtype="float32") + (np.arange(100) == 50))
    found = files(tmp_path, Model(), other)
    assert groups(found) == {"modules", "functions"}
    assert any(line.startswith("-%") and "constant #" in line for line in found.functions[0].lines)


def test_signatures_and_what_is_required_are_compared(tmp_path: Path) -> None:
    serve = gt.function(lambda x: gt.sin(x), input_signature=[gt.TensorSpec([None])])
    gt.save(Model(), tmp_path / "a.h5", golden=False)
    gt.save(Model(), tmp_path / "b.h5", signatures={"serve": serve}, golden=False)
    found = gt.saving.diff(tmp_path / "a.h5", tmp_path / "b.h5")
    assert groups(found) == {"functions", "signatures", "requires"}
    assert "~ ops: sin too" in found.table()


def variable(value: Any) -> gt.Module:
    module = gt.Module("m")
    module.w = gt.Variable(value)
    return module


@pytest.mark.parametrize(
    ("a", "b", "changed", "largest", "nans"),
    [
        (np.array([1.0, np.nan]), np.array([1.0, np.nan]), None, 0.0, None),
        (np.array([1.0, np.nan]), np.array([2.0, 3.0]), 2, 1.0, [1, 0]),
        (np.array([0.0]), np.array([-0.0]), 1, 0.0, [0, 0]),
        (np.array([np.inf, 1.0]), np.array([np.inf, 1.5]), 1, 0.5, [0, 0]),
        (np.array([1e308, 0.0]), np.array([-1e308, 0.0]), 1, "inf", [0, 0]),
        (np.array([2**60], "int64"), np.array([2**60 + 1], "int64"), 1, 1.0, [0, 0]),
        (np.array([-(2**63)], "int64"), np.array([2**63 - 1], "int64"), 1, 2.0**64, [0, 0]),
        (np.array([True, False]), np.array([True, True]), 1, 1.0, [0, 0]),
        (np.array([1 + 1j]), np.array([1 - 1j]), 1, 2.0, [0, 0]),
        (np.zeros((0, 3)), np.zeros((0, 3)), None, 0.0, None),
        (np.float32(0.5), np.float32(0.75), 1, 0.25, [0, 0]),
    ],
)
def test_distances_of_values(
    tmp_path: Path, a: Any, b: Any, changed: int | None, largest: Any, nans: Any
) -> None:
    record = json.loads(files(tmp_path, variable(a), variable(b)).json())
    if changed is None:
        assert record["same"]
        return
    distance = record["variables"][0]["distance"]
    assert (distance["changed"], distance["max_abs"]) == (changed, largest)
    assert distance["nans"] == nans


def test_the_relative_distance_is_that_of_the_norms(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    a, b = draw.standard_normal((2, 40, 50))
    (change,) = files(tmp_path, variable(a), variable(b)).variables
    assert change.distance
    want = np.linalg.norm(b - a) / np.linalg.norm(a)
    np.testing.assert_allclose(change.distance.relative, want, rtol=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        (np.zeros(2), np.zeros(3), "float64[2] -> float64[3]"),
        (np.zeros(2), np.zeros(2, "float32"), "float64[2] -> float32[2]"),
    ],
)
def test_other_shapes_and_dtypes_are_told(tmp_path: Path, a: Any, b: Any, words: str) -> None:
    assert f"~ w: {words}" in files(tmp_path, variable(a), variable(b)).table()


@pytest.mark.parametrize(
    "file", [x for x in FILES if "checkpoint" not in x.stem], ids=lambda file: file.stem
)
def test_a_golden_file_saved_again_holds_the_same(file: Path, tmp_path: Path) -> None:
    gt.random.set_seed(3)  # as where the file was saved: the stream that all share is the process's
    gt.random.uniform((3,))
    gt.save(gt.load(file), tmp_path / "b.h5", golden=False)
    found = gt.saving.diff(file, tmp_path / "b.h5")
    assert not groups(found) - {"notes"}, found.table()


@pytest.mark.parametrize("file", GOLDEN, ids=lambda file: file.stem)
def test_files_of_old_and_new_formats_are_compared(file: Path, tmp_path: Path) -> None:
    gt.save(Model(), tmp_path / "b.h5", golden=False)
    found = gt.saving.diff(file, tmp_path / "b.h5")
    assert ("format" in " ".join(found.notes)) == (file != GOLDEN[-1])
    assert "- net/layers/0/kernel: float32[3, 4]" in found.table()


def test_an_error_names_the_file_it_is_of(tmp_path: Path) -> None:
    gt.save(Model(), tmp_path / "a.h5", golden=False)
    (tmp_path / "b.h5").write_bytes(b"nothing")
    for a, b in (("a.h5", "b.h5"), ("b.h5", "a.h5")):
        with pytest.raises(gt.saving.NotAGradtapeFile) as caught:
            gt.saving.diff(tmp_path / a, tmp_path / b)
        assert str(caught.value).startswith(str(tmp_path / "b.h5"))


def test_values_that_look_the_same_as_far_as_they_are_shown_differ(tmp_path: Path) -> None:
    def end(letter: str) -> gt.Module:
        module = gt.Module("m")
        module.text = "x" * 1000 + letter
        return module

    found = files(tmp_path, end("a"), end("b"))
    assert "looks the same as far as it is shown" in found.table()


def test_variables_that_a_stranger_named_alike_are_all_compared(tmp_path: Path) -> None:
    module = gt.Module("m")
    module.captured = [gt.Variable(1.0), gt.Variable(2.0)]
    gt.save(module, tmp_path / "a.h5")

    def change(draft: Draft) -> None:
        manifest = draft.json()
        root = manifest["modules"][0]["attributes"]
        root["captured/0"] = {"variable": 1}
        root["captured"]["list"].pop()
        draft.put(manifest)

    rewritten(tmp_path / "a.h5", change)
    draft = Draft.of(tmp_path / "a.h5")
    for path in draft.arrays:
        draft.arrays[path] = draft.arrays[path] * 2
    draft.write(tmp_path / "b.h5")
    assert len(gt.saving.diff(tmp_path / "a.h5", tmp_path / "b.h5").variables) == 2


def test_long_graphs_are_compared_without_a_line_by_line_search(tmp_path: Path) -> None:
    class Long(gt.Module):
        def __init__(self, last: float) -> None:
            super().__init__()
            self._last = last

        @gt.function(input_signature=[gt.TensorSpec([None])])
        def run(self, x: Any) -> Any:
            for i in range(1500):
                x = gt.sin(x) + float(i)
            return x * self._last

    found = files(tmp_path, Long(1.0), Long(2.0))
    assert "too long for a line by line diff" in found.table()
    assert not gt.saving.diff(tmp_path / "a.h5", tmp_path / "a.h5")


class Odd(gt.Module):
    """Values that files hold beside plain ones, and an op whose gradient rule was replaced."""

    def __init__(self, last: float = 1.0, tag: str = "a") -> None:
        super().__init__()
        self.array = np.append(np.zeros(500), last)
        self.table = {1: {2, 3}, (None, 2): [np.float32(0.5), range(3)]}
        self.dense = gt.layers.Dense(1, kernel_initializer="zeros")
        self.dense(np.ones((1, 2), "float32"))
        self.dense.tag = tag

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def run(self, x: Any) -> Any:
        return gt.exp(x)


def triple(g: Any, x: Any) -> Any:
    return g * gt.exp(x) * 3.0


def double(g: Any, x: Any) -> Any:
    return g * gt.exp(x) * 2.0


def saved_with(rule: Callable[..., Any], path: Path) -> None:
    with with_rules({"exp": rule}):
        gt.save(Odd(), path, golden=False)


def test_arrays_sets_and_values_on_layers_are_compared_by_content(tmp_path: Path) -> None:
    assert not files(tmp_path, Odd(), Odd())
    found = files(tmp_path, Odd(), Odd(last=2.0, tag="b"))
    assert [change.what for change in found.modules] == ["array", "dense/tag"]
    table = gt.saving.inspect_text(tmp_path / "a.h5")
    assert "table = {1: {2, 3}, (None, 2): [" in table
    assert "tag = 'a'" in table


def test_gradient_rules_of_ops_are_shown_and_compared(tmp_path: Path) -> None:
    gt.save(Odd(), tmp_path / "own.h5", golden=False)
    saved_with(triple, tmp_path / "a.h5")
    saved_with(triple, tmp_path / "same.h5")
    saved_with(double, tmp_path / "b.h5")
    found = gt.saving.inspect(tmp_path / "a.h5")
    assert "Gradient rules\n  rules.0\n    (gradient of exp, float32[" in found.table()
    assert "(gradient: rules.0)" in found.graph_text("odd.run")
    assert "3.0" in found.graph_text("rules.0")
    assert "<svg" in found.graph_svg("rules.0")
    assert "gradient of exp" in found.html()
    assert not gt.saving.diff(tmp_path / "a.h5", tmp_path / "same.h5")
    changed = gt.saving.diff(tmp_path / "a.h5", tmp_path / "b.h5")
    assert groups(changed) == {"custom_gradients"}
    assert any("3.0" in line for line in changed.custom_gradients[0].lines)
    left = gt.saving.diff(tmp_path / "own.h5", tmp_path / "a.h5")
    assert {"functions", "custom_gradients"} <= groups(left)


class Ruled(gt.layers.Layer):
    """A layer whose weights have rules."""

    def __init__(self, **rules: Any) -> None:
        super().__init__()
        self._given, self.w, self.v = rules, None, None

    def build(self, shape: Any) -> None:
        for name in ("w", "v"):
            rule = {key[2:]: rule for key, rule in self._given.items() if key[0] == name}
            setattr(self, name, self.add_weight((2, 2), name=name, initializer="ones", **rule))

    def call(self, x: Any) -> Any:
        return x @ self.w @ self.v


def ruled(**rules: Any) -> Any:
    layer = Ruled(**rules)
    layer(np.ones((1, 2), "float32"))
    return layer


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ({}, {"w_regularizer": "l2"}),
        ({"w_regularizer": "l1"}, {"w_regularizer": "l2"}),
        (
            {"w_regularizer": gt.layers.regularizers.L2(0.1)},
            {"w_regularizer": gt.layers.regularizers.L2(0.2)},
        ),
        ({"w_regularizer": "l2"}, {"w_regularizer": "l2", "v_regularizer": "l2"}),
        ({"w_regularizer": "l2"}, {"v_regularizer": "l2"}),
        ({"w_constraint": "non_neg"}, {"v_constraint": "non_neg"}),
        ({"w_constraint": "non_neg"}, {}),
    ],
)
def test_regularizers_and_constraints_are_compared(a: Any, b: Any, tmp_path: Path) -> None:
    assert not files(tmp_path, ruled(**b), ruled(**b))
    assert files(tmp_path, ruled(**a), ruled(**b))


def test_what_a_file_adds_to_the_loss_is_shown(tmp_path: Path) -> None:
    def model(rate: float) -> Any:
        made = gt.layers.Sequential(
            [gt.layers.Dense(2, activity_regularizer=gt.layers.regularizers.L2(rate))]
        )
        gt.random.set_seed(0)
        made(np.ones((1, 2), "float32"))
        return made

    found = files(tmp_path, ruled(w_regularizer="l2", v_constraint="non_neg"), model(0.1))
    table = gt.saving.inspect_text(tmp_path / "a.h5")
    assert "regularizer of w: " in table
    assert "constraint of v: " in table
    graph = gt.saving.inspect(tmp_path / "b.h5").graph_text("sequential.__call__")
    assert "adds to the loss: outputs [" in graph
    assert found
    assert files(tmp_path, model(0.1), model(0.2))
