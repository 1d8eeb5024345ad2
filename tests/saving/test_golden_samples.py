"""What golden vectors hold, what they find, and what they may cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft, rewritten

import gradtape as gt
from gradtape.saving.proofs.golden import spread, weights

pytestmark = pytest.mark.usefixtures("forks")

SMALL, LARGE = (8, 6), (700, 600)


@gt.custom_gradient
def cubed(x: Any) -> Any:
    return x * x * x, lambda g: g * 3.0 * x * x


@gt.custom_gradient
def product(x: Any, w: Any) -> Any:
    def gradient(g: Any) -> Any:
        return cubed(gt.matmul(g, gt.transpose(w))), gt.matmul(gt.transpose(x), cubed(g))

    return gt.matmul(x, w), gradient


class Layer(gt.Module):
    """One product, whose gradient is the file's own."""

    def __init__(self, shape: tuple[int, int]) -> None:
        super().__init__()
        random = np.random.default_rng(0)
        self.w = gt.Variable(random.standard_normal(shape).astype("float32"))
        self(np.ones((2, shape[0]), "float32"))

    def __call__(self, x: Any) -> Any:
        return gt.tanh(product(x, self.w) * 0.01)


def cases_of(path: Path) -> list[Any]:
    (function,) = Draft.of(path).json()["functions"]
    (trace,) = function["traces"]
    return trace["golden"]


def orders(case: Any) -> set[str]:
    return {spec["name"].partition(" of ")[0].rstrip(" 0123456789") for spec in case["values"]}


@pytest.mark.parametrize("shape", [SMALL, LARGE])
def test_samples_are_of_batches_of_1_2_and_3(shape: tuple[int, int], tmp_path: Path) -> None:
    gt.save(Layer(shape), tmp_path / "a.h5")
    cases = cases_of(tmp_path / "a.h5")
    assert [case["inputs"][0]["shape"][0] for case in cases] == [3, 2, 1]
    if shape == SMALL:  # the second order once, the first at each batch
        wanted = [{"output", "gradient", "second gradient"}, *[{"output", "gradient"}] * 2]
    else:
        wanted = [{"output", "gradient"}, {"output"}, {"output"}]
    assert [orders(case) for case in cases] == wanted
    report = gt.saving.verify(tmp_path / "a.h5")
    assert report.ok, report.table()
    assert all(check.exact for check in report.checks)


def nodes_with(graph: Any, label: str) -> list[Any]:
    """Return the custom gradients of a label, those inside others too."""
    found = []
    for node in graph["nodes"]:
        if "custom_gradient" in node:
            found += [node] if node["custom_gradient"] == label else []
            found += nodes_with(node["backward"], label)
    return found


def negated(graph: Any, output: int) -> None:
    """Turn the sign of an output of a graph of ops."""
    specs = [*graph["inputs"], *graph["constants"]]
    for node in graph["nodes"]:
        specs += node["outputs"] if "op" in node else [None] * node.get("results", 1)
    number = graph["outputs"][output]
    step = {"op": "negative", "inputs": [number], "params": {}, "outputs": [specs[number]]}
    graph["nodes"].append(step)
    graph["outputs"][output] = len(specs)


def with_change(path: Path, change: Callable[[Any], Any]) -> Path:
    def edit(draft: Draft) -> None:
        (name,) = (text for text in draft.texts if text.startswith("/functions/"))
        record = draft.json(name)
        change(record["graph"])
        draft.put(record, name)

    return rewritten(path, edit)


CORRUPTIONS: dict[str, Callable[[Any], Any]] = {
    "the sign of the output": lambda graph: negated(graph, 0),
    "the sign of a kernel's gradient": lambda graph: negated(
        nodes_with(graph, "product")[0]["backward"], 1
    ),
}
SECOND: dict[str, Callable[[Any], Any]] = {
    "the sign of a gradient in the gradient": lambda graph: negated(
        nodes_with(graph, "cubed")[0]["backward"], 0
    ),
}


@pytest.mark.parametrize("shape", [SMALL, LARGE])
@pytest.mark.parametrize("what", CORRUPTIONS)
def test_a_corrupted_graph_is_found(what: str, shape: tuple[int, int], tmp_path: Path) -> None:
    gt.save(Layer(shape), tmp_path / "a.h5")
    assert gt.saving.verify(tmp_path / "a.h5").ok
    with_change(tmp_path / "a.h5", CORRUPTIONS[what])
    report = gt.saving.verify(tmp_path / "a.h5")
    assert not report.ok
    assert "MISMATCH" in report.table()


@pytest.mark.parametrize("what", SECOND)
def test_a_corrupted_second_order_is_found_where_it_is_stored(what: str, tmp_path: Path) -> None:
    gt.save(Layer(SMALL), tmp_path / "a.h5")
    with_change(tmp_path / "a.h5", SECOND[what])
    report = gt.saving.verify(tmp_path / "a.h5")
    assert [check.ok for check in report.checks] == [False, True, True]
    assert "second gradient of" in report.table()


STEPS = {"slope": 1.0}


@gt.custom_gradient
def steep(x: Any) -> Any:
    slope = STEPS["slope"]
    return x + 0.0, lambda g: g * slope


class Steep(gt.Module):
    """Its gradient depends on a global."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.w = gt.Variable(np.ones((3, size), "float32"))

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def f(self, x: Any) -> Any:
        return gt.matmul(x, steep(self.w))


@pytest.mark.parametrize("size", [4, 2**18])
def test_a_gradient_that_python_gives_otherwise_is_found_at_save(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = Steep(size)
    module.f(np.ones((2, 3), "float32"))
    monkeypatch.setitem(STEPS, "slope", -1.0)
    with pytest.raises(gt.saving.SaveError, match="does not give the gradient of variable w"):
        gt.save(module, tmp_path / "a.h5")


class Stops(gt.Module):
    """Whether its gradient stops depends on an attribute that no file holds."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.ones((3, 2**18), "float32"))
        self._stops = False

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def f(self, x: Any) -> Any:
        w = gt.stop_gradient(self.w) if self._stops else self.w
        return gt.matmul(x, w) + gt.sum(x)


def test_a_large_gradient_that_stops_in_python_alone_is_found_at_save(tmp_path: Path) -> None:
    module = Stops()
    module.f(np.ones((2, 3), "float32"))
    module._stops = True
    with pytest.raises(gt.saving.SaveError, match="does not give"):
        gt.save(module, tmp_path / "a.h5")


@pytest.mark.parametrize("inputs", [1500, 3000])
def test_golden_vectors_of_a_large_layer_cost_little(inputs: int, tmp_path: Path) -> None:
    model = gt.layers.Dense(inputs)
    model(np.ones((2, inputs), "float32"))

    def seconds(golden: bool) -> float:
        start = time.thread_time()
        gt.save(model, tmp_path / f"{golden}.h5", golden=golden)
        return time.thread_time() - start

    plain = min(seconds(False) for _ in range(3))
    proven = min(seconds(True) for _ in range(3))
    # in processor time, and with room: of the disk, which takes most of a save, it has nothing
    assert proven < 8 * plain + 0.2
    sizes = [(tmp_path / f"{golden}.h5").stat().st_size for golden in (False, True)]
    assert sizes[1] < 1.02 * sizes[0] + 100_000


@pytest.mark.parametrize(
    "shape", [(), (0, 3), (255,), (16, 17), (987,), (64, 64), (610, 987), (5, 2**21)]
)
def test_elements_lie_evenly(shape: tuple[int, ...]) -> None:
    array = np.arange(int(np.prod(shape)), dtype="float64").reshape(shape)
    found = spread(array)
    count = min(max(256, array.size // 64), 16384)
    if array.size <= count:
        assert found is array
        return
    assert found.shape == (count,)
    assert len(set(found.tolist())) == count
    gaps = np.diff(np.sort(found), prepend=0.0, append=array.size)
    assert gaps.max() < 4 * array.size / count
    np.testing.assert_array_equal(spread(np.asfortranarray(array)), found)


def test_weights_are_the_same_in_pieces() -> None:
    size = 3 * 2**16 + 5
    plain = np.cos(np.arange(size) + 1.0 + 2).astype("float32")
    np.testing.assert_array_equal(weights("float32", (size,), 2), plain)
    np.testing.assert_array_equal(weights("float32", (5,), 2), plain[:5])
    np.testing.assert_array_equal(weights("complex64", (5,), 2), plain[:5] * np.complex64(1 + 1j))


class Heavy(gt.Module):
    """Weights of which one more product is one too many; ``rule`` is what else it does."""

    def __init__(self, rule: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.w = gt.Variable(np.full((2100, 2000), 0.01, "float32"))
        self.rule = rule
        self(np.ones((2, 2100), "float32"))

    def __call__(self, x: Any) -> Any:
        return self.rule(x, gt.matmul(x, self.w))


def test_weights_of_millions_have_one_sample(tmp_path: Path) -> None:
    gt.save(Heavy(lambda x, y: gt.tanh(y) * 2.0), tmp_path / "a.h5")
    (case,) = cases_of(tmp_path / "a.h5")
    assert orders(case) == {"output", "gradient"}
    assert case["inputs"][0]["shape"] == [3, 2100]
    assert gt.saving.verify(tmp_path / "a.h5").ok


TURNS = iter(range(10**6))
NOT_OF_ITS_ARGUMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "a branch on the batch": lambda x, y: y * 2.0 if x.shape[0] == 1 else y,
    "a number of the process": lambda x, y: y * float(next(TURNS)),
    "a constant of the process": lambda x, y: y * gt.constant(float(next(TURNS))),
    "NumPy's random numbers": lambda x, y: y + np.random.random(2000).astype("float32"),  # noqa: NPY002
    "an operand": lambda x, y: y - y * 2.0 if next(TURNS) % 2 else y * 2.0 - y,
    "a result": lambda x, y: [y, y * 2.0][next(TURNS) % 2],
    "a Python result": lambda x, y: (y, next(TURNS)),
}


@pytest.mark.parametrize("what", NOT_OF_ITS_ARGUMENTS)
def test_what_large_traces_fix_is_refused_as_of_small_ones(what: str, tmp_path: Path) -> None:
    with pytest.raises(gt.saving.SaveError):
        gt.save(Heavy(NOT_OF_ITS_ARGUMENTS[what]), tmp_path / "a.h5")
    assert not (tmp_path / "a.h5").exists()
