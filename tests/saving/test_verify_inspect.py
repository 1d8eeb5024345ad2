"""``inspect_text`` describes a file without running it; ``verify`` proves what it computes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft

import gradtape as gt

pytestmark = pytest.mark.usefixtures("forks")

# In this process: with what a test has patched.
HERE = {"max_memory": math.inf, "max_seconds": math.inf}


class Model(gt.Module):
    """A function, a layer, a variable from outside, a custom gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable([1.0, 2.0, 3.0])
        self.dense = gt.layers.Dense(2, activation=lambda x: gt.tanh(x))
        self.twice = self.dense
        self.steps = gt.Variable(0, trainable=False)
        self.table = {"b": gt.Variable(1.0), "a": [gt.Variable(2.0)]}

    def __call__(self, x: Any, training: bool = False) -> Any:
        y = self.dense(x * self.scale)
        return y * 2.0 if training else y

    @gt.function
    def solve(self, x: Any, *, rounds: int = 1) -> Any:
        @gt.custom_gradient
        def held(x: Any) -> Any:
            return gt.round(x), lambda g: g

        return held(x) * float(rounds)


@pytest.fixture(scope="module")
def model() -> Model:
    model = Model()
    model(np.random.default_rng(0).standard_normal((4, 3)).astype("float32"))
    model.solve(np.ones((2,), "float64"), rounds=3)
    return model


@pytest.fixture
def path(model: Model, tmp_path: Path) -> Path:
    outside = gt.Variable(5.0)
    serve = gt.function(lambda x: x * outside, input_signature=[gt.TensorSpec(None, name="x")])
    gt.save(model, tmp_path / "model.h5", signatures={"serve": serve})
    return tmp_path / "model.h5"


EXPECTED = """\
Modules
  model (Model, restored as a plain module)
    dense: dense (layers.Dense)
      bias: float32[2]
      kernel: float32[3, 2]
    scale: float32[3]
    steps: int64[], not trainable
    table/b: float32[]
    table/a/0: float32[]
    twice: dense (layers.Dense) (shown above)

Functions
  model.solve
    (x: float64[2], rounds=3): 4 nodes, 1 golden sample
      custom gradient held (gradient of 0 nodes)
  model.__call__
    (x: float32[?, 3], training=False): 7 nodes, 1 golden sample
    (x: float32[?, 3], training=True): 8 nodes, 1 golden sample
"""


def test_inspect_shows_the_tree_the_functions_and_what_is_needed(path: Path) -> None:
    text = gt.saving.inspect_text(path)
    heading, rest = text.split("\n\n", 1)
    assert f"model.h5: gradtape format 2.4, {path.stat().st_size:,} bytes" in heading
    assert "7 variables (6 trainable) of 64 bytes" in heading
    for line in EXPECTED.splitlines():
        assert line.split("nodes")[0].rstrip("0123456789 ") in rest
    assert "signatures.serve\n    (x: float32[...]): 2 nodes, 3 golden samples" in rest
    assert "  dense.activation\n    (x: float32[...])" in rest
    assert "Plugins needed\n  layers (gradtape " in rest
    assert "layers.Dense" in rest
    assert "missing here" not in rest


def test_verify_prints_a_row_per_sample_with_readable_labels(path: Path) -> None:
    report = gt.saving.verify(path)
    assert report.ok, report.table()
    table = report.table()
    for label in (
        "x (3, 3), training=True",
        "x (2,), rounds=3",
        "x ()",
        "x (2, 3)",
        "dense.activation",
    ):
        assert label in table
    assert "exact" in table
    assert f"{len(report.checks)} of {len(report.checks)} samples verified on numpy" in table
    assert gt.saving.verify(path, "numpy").ok


def tampered(path: Path, dataset: str, change: Any) -> Path:
    """Change a dataset and recompute the digests, as whoever edits a file by hand might."""
    draft = Draft.of(path)
    draft.arrays[dataset] = change(draft.arrays[dataset])
    draft.write(path)
    return path


def test_a_changed_variable_with_recomputed_digests_is_a_mismatch(path: Path) -> None:
    report = gt.saving.verify(tampered(path, "/variables/scale", lambda x: x * 1.5))
    assert not report.ok
    assert "MISMATCH" in report.table()
    assert "model.__call__: output 0 differs by" in report.table()
    assert [c.ok for c in report.checks if c.function == "model.solve"] == [True]


def test_rounding_passes_and_says_so(path: Path) -> None:
    report = gt.saving.verify(
        tampered(path, "/variables/scale", lambda x: x * np.float32(1 + 1e-6))
    )
    assert report.ok
    assert "close" in report.table()


def test_values_that_become_nan_are_a_mismatch(path: Path) -> None:
    report = gt.saving.verify(tampered(path, "/variables/scale", lambda x: x * np.float32("nan")))
    assert not report.ok
    assert "differs by inf" in report.table()


def test_a_function_that_fails_is_a_mismatch_with_its_error(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Any, x: Any) -> Any:
        raise RuntimeError("no such luck")

    class Root(gt.layers.Dense):
        pass

    net = gt.layers.Sequential([gt.layers.Dense(2)])
    net(np.ones((1, 2), "float32"))
    gt.save(net, path)
    monkeypatch.setattr(gt.layers.Dense, "call", fail)
    monkeypatch.setattr(gt.layers.Dense, "__call__", fail)
    report = gt.saving.verify(path, **HERE)
    assert not report.ok
    assert "RuntimeError: no such luck" in report.table()


def test_the_code_of_a_known_class_must_agree_with_the_trace_in_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2)])
    net(np.ones((1, 2), "float32"))
    gt.save(net, path)
    plain = gt.layers.Dense.__call__
    monkeypatch.setattr(gt.layers.Dense, "__call__", lambda self, x: plain(self, x) + 1.0)
    assert not gt.saving.verify(path, **HERE).ok


def test_an_output_that_is_missing_is_a_mismatch(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2)])
    net(np.ones((1, 2), "float32"))
    gt.save(net, path)
    monkeypatch.setattr(gt.layers.Dense, "__call__", lambda self, x: x)
    report = gt.saving.verify(path, **HERE)
    assert "is missing or has another shape or dtype" in report.table() or not report.ok


def test_a_function_that_the_samples_do_not_fit_says_why(tmp_path: Path) -> None:
    class Picky(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec([None, None])])
        def f(self, x: Any) -> Any:
            return gt.matmul(x, gt.constant(np.ones((7, 2), "float32")))

        @gt.function(input_signature=[gt.TensorSpec([])])
        def g(self, x: Any) -> Any:
            return x + 1.0

    gt.save(Picky(), tmp_path / "a.h5")
    report = gt.saving.verify(tmp_path / "a.h5")
    assert report.ok
    assert "picky.f: not checked (" in report.table()
    assert "no golden samples (" in gt.saving.inspect_text(tmp_path / "a.h5")


def test_integers_complex_numbers_and_assignments_are_verified(tmp_path: Path) -> None:
    class Mixed(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen = gt.Variable(0)
            self.w = gt.Variable(np.array([1 + 1j, 2 - 1j], "complex64"))

        @gt.function(
            input_signature=[
                gt.TensorSpec([None], "int32"),
                gt.TensorSpec([2], "complex64"),
                gt.TensorSpec([], "float16"),
                gt.TensorSpec([2], "bool"),
            ]
        )
        def f(self, n: Any, z: Any, h: Any, b: Any) -> Any:
            self.seen.assign_add(1)
            return n + 1, z * self.w, h * h, gt.logical_not(b), self.seen + 0

    module = Mixed()
    gt.save(module, tmp_path / "a.h5")
    report = gt.saving.verify(tmp_path / "a.h5")
    assert report.ok, report.table()
    assert report.checks[0].exact
    assert module.seen.item() == 0


def test_a_file_of_variables_alone_has_nothing_to_prove(tmp_path: Path) -> None:
    module = gt.Module(name="m")
    module.w = gt.Variable(1.0)
    gt.save(module, tmp_path / "a.h5")
    report = gt.saving.verify(tmp_path / "a.h5")
    assert not report.ok
    assert "The file holds no golden vectors, so it proves nothing." in report.table()
    text = gt.saving.inspect_text(tmp_path / "a.h5")
    assert "Functions\n  none" in text
    assert "Plugins needed\n  none" in text


def test_a_submodule_that_cannot_be_traced_alone_says_why(tmp_path: Path) -> None:
    class Inner(gt.Module):
        def __call__(self, x: Any) -> Any:
            if isinstance(x, gt.Tensor) and type(x.array) is not np.ndarray and not Outer.inside:
                raise RuntimeError("only inside")
            return x * 2.0

    class Outer(gt.Module):
        inside = False

        def __init__(self) -> None:
            super().__init__()
            self.inner = Inner()

        def __call__(self, x: Any) -> Any:
            Outer.inside = True
            try:
                return self.inner(x)
            finally:
                Outer.inside = False

    outer = Outer()
    outer(np.ones(2, "float32"))
    gt.save(outer, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5")
    assert loaded([1.0, 2.0]).numpy().tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="only inside"):
        loaded.inner(np.ones(2, "float32"))
    assert "__call__: not in the file" in gt.saving.inspect_text(tmp_path / "a.h5")


def test_reasons_in_a_file_name_no_folder_of_the_machine(tmp_path: Path) -> None:
    class Choosy(gt.Module):
        def __call__(self, x: Any) -> Any:
            return x * 2.0 if x[0] > 0 else x

    class Outer(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.choosy = Choosy()

    outer = Outer()
    outer.choosy(np.ones(2, "float32"))
    gt.save(outer, tmp_path / "a.h5")
    assert "test_verify_inspect.py:" in gt.saving.inspect_text(tmp_path / "a.h5")
    assert str(Path(__file__).parent).encode() not in (tmp_path / "a.h5").read_bytes()
