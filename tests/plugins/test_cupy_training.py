"""Layers, optimizers and ``fit`` on CuPy give what they give on NumPy, however they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from layer_cases import FAMILIES
from real_gpu import PLACES, REASON, Place, gpu, placed

import gradtape as gt
from gradtape import training as t
from gradtape.errors import OutOfMemory

#: Kernels of compiled programs run on a real GPU here; elsewhere other tests have some.
EXECUTORS = ["eager", "node by node" if REASON else "default", *([] if REASON else ["cuda_graphs"])]


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with placed(request.param) as found:
        yield found


def leaves(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in leaves(part)] if isinstance(x, (list, tuple)) else [x]


def run_as(how: str, function: Callable[..., Any]) -> Callable[..., Any]:
    if how == "eager":
        return function
    return gt.function(function, executor="plain" if how == "node by node" else how)


def stepped(name: str, where: str, how: str) -> list[np.ndarray]:
    """Return results, gradients and variables of a layer after steps, in double precision."""
    case, found = FAMILIES[name], []
    with gt.backend(where):
        gt.random.set_seed(0)
        layer = case.make()
        layer.dtype = "float64"
        given = [x.astype("float64") if x.dtype.kind == "f" else x for x in leaves(case.inputs(2))]

        def call(*xs: Any) -> Any:
            return layer(list(xs) if case.several else xs[0], training=True)

        xs = [gt.constant(x) for x in given]
        call(*xs)
        random = np.random.default_rng(1)
        for v in layer.variables:
            if v.dtype.kind == "f":
                v.assign(np.abs(random.standard_normal(v.shape)))
        trained = list(layer.trainable_variables)

        def step(*xs: Any) -> Any:
            sources = [*[x for x in xs if x.dtype.kind == "f"], *trained]
            with gt.GradientTape() as tape:
                tape.watch([x for x in xs if x.dtype.kind == "f"])
                results = leaves(call(*xs))
                loss = sum(gt.sum(gt.sin(y)) for y in results)
            return [*results, *tape.gradient(loss, sources, unconnected_gradients="zero")]

        run = run_as(how, step)
        for _ in range(3):
            found += [y for y in run(*xs) if y is not None]
        assert all(y.device.startswith(where.partition(":")[0]) for y in found)
        found += [v.value for v in layer.variables]
    return [np.array(y.to("numpy").numpy()) for y in found]


@pytest.mark.parametrize("how", EXECUTORS)
@pytest.mark.parametrize("name", FAMILIES)
def test_layers_and_their_gradients(place: Place, name: str, how: str) -> None:
    for i, (mine, right) in enumerate(
        zip(stepped(name, place.device, how), stepped(name, "numpy", "eager"), strict=True)
    ):
        assert (mine.shape, mine.dtype) == (right.shape, right.dtype)
        np.testing.assert_allclose(mine, right, rtol=1e-8, atol=1e-10, err_msg=f"number {i}")


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: t.SGD(0.1),
    "SGD, Nesterov": lambda: t.SGD(0.1, 0.9, nesterov=True),
    "Adam": lambda: t.Adam(0.01),
    "Adam, clipped": lambda: t.Adam(0.01, global_clipnorm=0.1),
    "AdamW": lambda: t.AdamW(0.01, weight_decay=0.1),
    "RMSprop": lambda: t.RMSprop(0.01, momentum=0.5, centered=True),
    "Adagrad": lambda: t.Adagrad(0.1),
    "Adadelta": lambda: t.Adadelta(0.1),
    "Adamax": lambda: t.Adamax(0.01),
    "Nadam": lambda: t.Nadam(0.01),
    "Lion": lambda: t.Lion(0.01),
    "scheduled": lambda: t.SGD(t.schedules.CosineDecay(0.1, 10)),
}

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((48, 6)).astype("float32")
LABELS = RANDOM.integers(0, 3, 48)


def net() -> Any:
    gt.random.set_seed(0)
    layers = [gt.layers.Dense(8, activation="tanh"), gt.layers.BatchNorm(), gt.layers.Dense(3)]
    return gt.layers.Sequential(layers)


def optimized(make: Callable[[], Any], where: str, how: str) -> list[np.ndarray]:
    with gt.backend(where):
        model, optimizer = net(), make()
        x, labels = gt.constant(X), gt.constant(LABELS)
        model(x)

        def step(x: Any, labels: Any) -> Any:
            with gt.GradientTape() as tape:
                logits = model(x, training=True)
                loss = gt.mean(
                    gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
                )
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

        run = run_as(how, step)
        losses = [run(x, labels).numpy() for _ in range(5)]
    return [*losses, *(v.numpy() for v in (*model.variables, *optimizer.variables))]


@pytest.mark.parametrize("how", EXECUTORS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(place: Place, name: str, how: str) -> None:
    pairs = zip(
        optimized(OPTIMIZERS[name], place.device, how),
        optimized(OPTIMIZERS[name], "numpy", "eager"),
        strict=True,
    )
    for mine, right in pairs:
        np.testing.assert_allclose(mine, right, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("resident", [False, True], ids=["on the host", "resident"])
@pytest.mark.parametrize("how", EXECUTORS)
def test_fit(place: Place, resident: bool, how: str) -> None:
    found = []
    executor = {"eager": "plain", "node by node": "plain"}.get(how, how)
    for where in ("numpy", place.device):
        with gt.backend(where), gt.executor(executor):
            model = net()
            model.add(gt.layers.Dropout(0.2, seed=3))
            data: tuple[Any, Any] = (X, LABELS)
            if resident:
                data = gt.constant(X), gt.constant(LABELS)
            options: dict[str, Any] = {"epochs": 3, "batch_size": 16, "seed": 1, "verbose": False}
            options["compile"] = how != "eager"
            history = t.fit(model, data, validation_split=0.25, **options).history
            measured = t.evaluate(model, data)
            predicted = t.predict(model, data[0]).to("numpy").numpy()
        found.append((history, measured, np.array(predicted)))
    (near, a, p), (far, b, q) = found
    for key in ("loss", "val_loss"):
        assert far[key] == pytest.approx(near[key], rel=1e-3)
    assert b == pytest.approx(a, rel=1e-3)
    np.testing.assert_allclose(q, p, rtol=1e-2, atol=1e-3)


# -- what only a real GPU shows --------------------------------------------------------------------


def _marked(test: Any) -> Any:
    for mark in gpu:
        test = mark(test)
    return test


@_marked
def test_no_memory_is_told_in_words_and_the_next_op_runs() -> None:
    with gt.backend("cupy"):
        row, column = gt.ones((1, 2**20)), gt.ones((2**20, 1))
        with pytest.raises(OutOfMemory, match="the GPU has no memory left"):
            row + column
        assert gt.sum(gt.ones(3)).item() == 3.0


@_marked
def test_a_profile_is_by_the_gpus_clock() -> None:
    with gt.backend("cupy"):
        x = gt.ones((2048, 2048))
        f = gt.function(lambda x: gt.sum(gt.tanh(x @ x)))
        for _ in range(2):
            f(x)
            gt.sin(x)
        with gt.profile() as p:
            f(x)
            gt.sin(x @ x)
    rows = {(row.name, row.phase): row for row in p.rows()}
    assert p.clocks == {"GPU"}
    # 17 billion operations: more than 0.1 ms on any GPU, and less than a second on most
    assert 1e-4 < rows["matmul", "forward"].seconds < 1
    assert 1e-4 < rows["matmul", "compiled"].seconds < 1


@_marked
def test_streams_of_ones_own() -> None:
    cupy = gt.registry().backend("cupy").xp
    f = gt.function(lambda x: gt.sum(gt.exp(x) @ x, axis=0))
    host = np.linspace(-1, 1, 64 * 64).reshape(64, 64)
    want = (np.exp(host) @ host).sum(0)
    for how in ("default", "cuda_graphs"):
        with cupy.cuda.Stream(), gt.backend("cupy"), gt.executor(how):
            for _ in range(4):
                np.testing.assert_allclose(f(gt.constant(host)).numpy(), want, rtol=1e-9)
