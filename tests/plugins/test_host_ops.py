"""Ops whose kernels are functions of NumPy arrays run on every backend, and are not exported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.core.extend import NONDIFF, Op
from gradtape.errors import PluginError

seen: list[type] = []


def cube(xp: Any, x: Any, y: Any, *, times: float = 1.0) -> Any:
    """Return ``x**3 + y`` on NumPy arrays only, as a function of C would."""
    assert xp is np
    seen.append(type(x))
    return np.ascontiguousarray(x) ** 3 * times + y


def infer(x: Any, y: Any, times: float) -> Any:
    return x.shape, x.dtype


CUBE = Op(
    "acme::cube",
    cube,
    gradients={"x": lambda g, x, times: 3 * times * g * x * x, "y": NONDIFF},
    infer=infer,
    batch="elementwise",
    host=True,
)
PARTS = Op(
    "acme::parts",
    lambda xp, x: (np.modf(x)[0], np.modf(x)[1]),
    vjp=lambda gs, inputs, outputs, needed: [gs[0]],
    infer=lambda x: [(x.shape, x.dtype)] * 2,
    batch="elementwise",
    host=True,
)
X = np.array([[0.5, -1.25, 2.0]] * 2, np.float32)


@pytest.fixture(autouse=True)
def acme() -> Iterator[None]:
    plugin = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [CUBE, PARTS]))
    gt.register_plugin(plugin, "acme")
    yield
    gt.unregister_plugin("acme")


@pytest.fixture(params=["numpy", "pretend", "jax"])
def x(request: pytest.FixtureRequest) -> Iterator[gt.Tensor]:
    if request.param == "pretend":
        gt.register_plugin(pretend_gpu.Plugin("pretend", {}), "pretend")
    elif request.param == "jax":
        pytest.importorskip("jax")
    yield gt.constant(X).to(request.param)
    if request.param == "pretend":
        gt.unregister_plugin("pretend")


WAYS: dict[str, Any] = {
    "eager": lambda f: f,
    "traced": gt.function,
    "batched": gt.vmap,
    "traced batch": lambda f: gt.function(gt.vmap(f)),
}


@pytest.mark.parametrize("way", WAYS)
def test_it_runs_on_every_backend(x: gt.Tensor, way: str) -> None:
    run = WAYS[way](lambda x: CUBE(x * 2.0, 1.0, times=0.5))
    for _ in range(2):
        y = run(x)
        np.testing.assert_allclose(y.to("numpy"), (2 * X) ** 3 / 2 + 1, rtol=1e-6)
        assert y.device == x.device


def test_a_number_keeps_the_dtype_from_the_first_call_on(x: gt.Tensor) -> None:
    gt.registry().op("multiply").forget_made()
    assert (x * 2.0).dtype == (x * 2.0).dtype == np.float32


def test_it_has_gradients_on_every_backend(x: gt.Tensor) -> None:
    for run in (CUBE, gt.function(lambda x, y: CUBE(x, y))):
        slope = gt.grad(lambda x, run=run: gt.sum(run(x, 1.0)))(x)
        np.testing.assert_allclose(slope.to("numpy"), 3 * X * X, rtol=1e-6)


def test_several_results_come_back(x: gt.Tensor) -> None:
    for run in (PARTS, gt.function(lambda x: PARTS(x))):
        parts = [y.to("numpy").numpy() for y in run(x)]
        np.testing.assert_array_equal(parts, np.modf(X))


@pytest.mark.parametrize("executor", ["planned", "fused"])
def test_it_is_one_call_of_a_plan(executor: str) -> None:
    run = gt.function(lambda x: gt.exp(CUBE(x * 2.0, 1.0)), executor=executor)
    run(gt.constant(X))
    assert "acme::cube, 1 times: its kernel runs on the host" in run.explain(gt.constant(X))


@pytest.mark.parametrize("target", ["onnx", "stablehlo"])
@pytest.mark.parametrize("name", ["acme::cube", "scipy::carlson", "scipy::jv"])
def test_exports_refuse_it_by_name_and_reason(target: str, name: str) -> None:
    pytest.importorskip({"onnx": "spox", "stablehlo": "jax.export"}[target])
    op = gt.registry().op(name)
    params = {"halves": (1, 1, 1, 0)} if name == "scipy::carlson" else {}
    export = getattr(gt.export, target)
    with pytest.raises(gt.export.ExportError, match=f"{name}.*its kernel runs on the host"):
        export(
            lambda x: gt.cond(
                gt.sum(x) > 0, lambda: op(*[x] * len(op.inputs), **params), lambda: x
            ),
            gt.TensorSpec([2, 3]),
        )


def test_a_backend_may_have_a_kernel_of_its_own() -> None:
    jax = pytest.importorskip("jax")
    seen.clear()
    own = Op(
        "acme::own",
        cube,
        gradients={"x": NONDIFF, "y": NONDIFF},
        infer=infer,
        host=lambda backend: (
            (lambda x, y, times=1.0: x**3 * times + y) if backend.name == "jax" else None
        ),
    )
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [own])), "own")
    try:
        x = gt.constant(X)
        assert isinstance(own(x.to("jax"), 1.0).array, jax.Array)
        assert not seen
        own(x, 1.0)
        assert seen == [np.ndarray]
        gt.export.stablehlo(lambda x: own(x, 1.0), gt.TensorSpec([2, 3]))
    finally:
        gt.unregister_plugin("own")


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    module = gt.Module()
    module.run = gt.function(lambda x: CUBE(x, 2.0), input_signature=[gt.TensorSpec([None, 3])])
    gt.save(module, tmp_path / "cube.h5")
    found = gt.load(tmp_path / "cube.h5").run(gt.constant(X))
    np.testing.assert_array_equal(found, X**3 + 2)


@pytest.mark.parametrize(
    ("record", "words"),
    [
        ({"infer": None}, "shape rule"),
        ({"kernel": "cos", "inputs": ("x",)}, "a function"),
        ({"inline": True}, "contradict"),
        ({"host": "numpy"}, "host must be"),
    ],
)
def test_what_a_compiler_cannot_know_is_refused(record: dict[str, Any], words: str) -> None:
    given = {"kernel": lambda xp, x: x, "infer": infer, "host": True, **record}
    with pytest.raises(PluginError, match=f"acme::wrong.*{words}"):
        Op("acme::wrong", **given)
