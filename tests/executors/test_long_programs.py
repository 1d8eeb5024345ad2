"""Programs of many steps in a chain: nothing calls itself once per step, nor takes time squared."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executing import NAMES

import gradtape as gt

#: More steps than calls that may be nested here.
STEPS, NESTED = 500, 400

x = gt.constant(np.array([0.5, -0.25, 1.0], np.float32))
SPEC = gt.TensorSpec([3])


@pytest.fixture
def few_calls() -> Iterator[None]:
    """Allow few calls inside each other: a chain that is walked by calls exceeds them."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(NESTED)
    yield
    sys.setrecursionlimit(before)


def waves(steps: int) -> Callable[[Any], Any]:
    """A chain of functions, one inside the other."""

    def compute(x: Any) -> Any:
        for i in range(steps):
            x = gt.sin(x) if i % 2 else x * 1.25
        return gt.sum(x)

    return compute


def terms(steps: int) -> Callable[[Any], Any]:
    """A sum of terms, each with the same value."""

    def compute(x: Any) -> Any:
        y = x
        for _ in range(steps):
            y = y + x * x
        return gt.sum(y)

    return compute


def slopes(steps: int) -> Callable[[Any], Any]:
    """Rectifiers, whose gradients are products with booleans."""

    def compute(x: Any) -> Any:
        for _ in range(steps):
            x = gt.nn.relu(x * 1.01 - 0.001)
        return gt.sum(x)

    return compute


def parts(steps: int) -> Callable[[Any], Any]:
    """Views of views."""

    def compute(x: Any) -> Any:
        y = gt.concatenate([x] * steps)
        for _ in range(steps):
            y = y[1:]
        return gt.sum(y * y)

    return compute


def products(steps: int) -> Callable[[Any], Any]:
    def compute(x: Any) -> Any:
        y = x[:, None] * x * 0.1
        for _ in range(steps // 3):
            y = gt.tanh(y @ y) + y
        return gt.sum(y)

    return compute


def doubled(steps: int) -> Callable[[Any], Any]:
    """Custom gradients, one after the other."""
    twice = gt.custom_gradient(lambda x: (x * 2.0, lambda g: g * 2.0))

    def compute(x: Any) -> Any:
        for _ in range(steps // 2):
            x = twice(x) * 0.5
        return gt.sum(x)

    return compute


def chosen(steps: int) -> Callable[[Any], Any]:
    """Conditions, one after the other."""

    def compute(x: Any) -> Any:
        for _ in range(steps // 3):
            x = gt.cond(gt.sum(x) > 0, lambda x=x: x * 1.01, lambda x=x: -x)
        return gt.sum(x)

    return compute


PROGRAMS = {f.__name__: f for f in (waves, terms, slopes, parts, products, doubled, chosen)}


def hessian_product(f: Any) -> Any:
    return lambda x: gt.hvp(f, x, x)


#: What is computed of a program, traced as a whole.
WAYS: dict[str, Callable[[Any], Any]] = {
    "result": lambda f: f,
    "gradient": gt.grad,
    "forward mode": lambda f: lambda x: gt.jvp(f, x, x)[1],
    "vmap": lambda f: lambda x: gt.vmap(f)(gt.stack([x, x * 0.5])),
}


@pytest.mark.usefixtures("few_calls")
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize(
    ("way", "executor"),
    [
        *product(["result", "gradient"], NAMES),
        *product(["forward mode", "vmap"], ["default"]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_long_program_compiles(way: str, program: str, executor: str) -> None:
    compute = WAYS[way](PROGRAMS[program](STEPS))
    found = gt.function(compute, executor=executor)(x)
    assert np.allclose(found.numpy(), compute(x).numpy(), rtol=1e-4, equal_nan=True)


@pytest.mark.usefixtures("few_calls")
@pytest.mark.parametrize("program", ["waves", "terms", "products"])
@pytest.mark.filterwarnings("error")
def test_derivatives_of_a_long_traced_program_and_products_with_its_hessian(program: str) -> None:
    compute = PROGRAMS[program](STEPS // 2)
    traced = gt.function(compute)
    assert np.allclose(gt.grad(traced)(x).numpy(), gt.grad(compute)(x).numpy(), rtol=1e-4)
    assert np.allclose(gt.jvp(traced, x, x)[1].numpy(), gt.jvp(compute, x, x)[1].numpy(), rtol=1e-4)
    want = hessian_product(compute)(x).numpy()
    for compute_it in (hessian_product(traced), gt.function(hessian_product(compute))):
        assert np.allclose(compute_it(x).numpy(), want, rtol=1e-3, atol=1e-6)


@pytest.mark.usefixtures("few_calls")
@pytest.mark.parametrize("executor", NAMES)
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.filterwarnings("error")
def test_a_long_training_step_updates_its_variables(count: int, executor: str) -> None:
    def stepping(traced: bool) -> list[Any]:
        variables = [gt.Variable(x * (i + 1.0)) for i in range(count)]

        def step() -> Any:
            with gt.GradientTape() as tape:
                total = 0.0
                for _ in range(STEPS // count):
                    for v in variables:
                        total = total + v * v
                loss = gt.sum(total)
            grads = tape.gradient(loss, variables)
            for v, g in zip(variables, grads, strict=True):
                v.assign_sub(0.0001 * g)
            return loss

        run = gt.function(step, executor=executor) if traced else step
        return [run(), run(), *variables]

    for mine, right in zip(stepping(True), stepping(False), strict=True):
        assert np.allclose(mine.numpy(), right.numpy(), rtol=1e-4)


def test_fit_trains_a_model_of_many_layers() -> None:
    layers = [gt.layers.Dense(2, activation="tanh") for _ in range(1000)]
    model = gt.layers.Sequential(layers)
    data = np.ones((4, 2), np.float32), np.ones((4, 2), np.float32)
    model(data[0])
    before = model.layers[-1].bias.numpy().copy()
    gt.training.fit(model, data, loss="mse", optimizer="adam", batch_size=2, verbose=False)
    assert not np.array_equal(model.layers[-1].bias.numpy(), before)


class Long(gt.Module):
    def __init__(self) -> None:
        self.w = gt.Variable(np.ones(3, np.float32))
        self.steps = STEPS

    @gt.function(input_signature=[SPEC])
    def __call__(self, x: Any) -> Any:
        return waves(self.steps)(terms(self.steps)(x * self.w) * self.w)


@pytest.mark.usefixtures("few_calls")
def test_a_file_of_a_long_program_is_read_checked_and_described(tmp_path: Path) -> None:
    path, model = tmp_path / "long.h5", Long()
    gt.save(model, path)
    loaded = gt.load(path)
    want = model(x).numpy()
    assert np.allclose(loaded(x).numpy(), want)
    assert np.allclose(gt.grad(loaded)(x).numpy(), gt.grad(model)(x).numpy(), rtol=1e-4)
    again = tmp_path / "again.h5"
    gt.save(loaded, again)
    assert np.allclose(gt.load(again)(x).numpy(), want)
    gt.saving.verify(path)
    assert "__call__" in str(gt.saving.inspect(path))
    assert not gt.saving.diff(path, again)


@pytest.mark.usefixtures("few_calls")
def test_a_graph_of_a_long_program_is_printed_copied_and_pickled() -> None:
    concrete = gt.function(terms(STEPS)).get_concrete_function(SPEC)
    graph = concrete.graph
    for one in (graph, copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert str(one).count("multiply") == STEPS
    assert f"{2 * STEPS + 1} nodes" in repr(graph)
    model = Long()
    for twin in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert np.allclose(twin(x).numpy(), model(x).numpy())
    assert "executor" in gt.function(waves(STEPS)).explain(SPEC)


@pytest.mark.usefixtures("few_calls")
def test_a_tape_explains_a_long_program() -> None:
    for compute in (terms(STEPS), gt.function(terms(STEPS))):
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = compute(x)
        assert str(tape.explain(y, x)).startswith("Connected")


def test_long_programs_are_exported(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = tmp_path / "long.onnx"
    gt.export.onnx(gt.function(waves(1100)), SPEC, path=path)
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    (found,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    assert np.allclose(found, waves(1100)(x).numpy(), rtol=1e-4)


def test_long_programs_are_exported_to_stablehlo(tmp_path: Path) -> None:
    pytest.importorskip("jax")
    gt.export.stablehlo(gt.function(waves(1100)), SPEC, path=tmp_path / "long.mlir")
    assert (tmp_path / "long.mlir").stat().st_size


#: The numbers of steps compared; time squared would take 49 times as long, not some 7 times.
FEW, MANY, MOST = 100, 700, 25


@pytest.mark.parametrize("executor", NAMES)
@pytest.mark.parametrize("program", ["waves", "terms", "slopes", "parts"])
def test_the_time_to_compile_is_proportional_to_the_number_of_steps(
    program: str, executor: str
) -> None:
    def seconds(steps: int) -> float:
        compute = gt.grad(PROGRAMS[program](steps))
        gc.collect()
        gc.disable()  # its time depends on what other tests left
        start = time.thread_time()
        try:
            gt.function(compute, executor=executor)(x)
        finally:
            gc.enable()
        return time.thread_time() - start

    seconds(10)
    few = sorted(seconds(FEW) for _ in range(3))[1]
    # other processes may disturb one run
    assert seconds(MANY) < MOST * few or seconds(MANY) < MOST * few
