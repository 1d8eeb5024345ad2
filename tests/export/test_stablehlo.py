"""StableHLO artifacts, which JAX calls without gradtape's kernels."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import flatten
from layers import LAYERS, batches, draws, rng, slopes_of, training_step

jax: Any = pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
pytest.importorskip("jax.export")


def called(blob: bytes, *args: Any, **inputs: Any) -> Any:
    with jax.enable_x64(True):
        return jax.export.deserialize(blob).call(*args, **inputs)


def compare(fn: Any, specs: Any, *calls: Any, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    blob = gt.export.stablehlo(fn, *specs)
    for (x,) in calls:
        found = called(blob, x=x).values()
        for mine, want in zip(found, flatten(fn(gt.constant(x))), strict=True):
            assert (mine.dtype, mine.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(mine, want.numpy(), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_gives_the_same_by_jax_for_any_batch(name: str) -> None:
    make, shape = LAYERS[name]
    compare(make(), [gt.TensorSpec([None, *shape])], *batches(*shape))


@pytest.mark.parametrize("name", LAYERS)
def test_the_gradients_of_a_layer_are_the_same_by_jax(name: str) -> None:
    make, shape = LAYERS[name]
    layer = make()
    layer(draws(2, *shape))
    compare(slopes_of(layer), [gt.TensorSpec(["batch", *shape])], *batches(*shape))


def test_a_training_step_with_a_custom_gradient_is_one_artifact(tmp_path: Path) -> None:
    model, step = training_step()
    specs = [gt.TensorSpec(["batch", 4]), gt.TensorSpec(["batch"], "int64")]
    blob = gt.export.stablehlo(step, *specs, path=tmp_path / "step.hlo")
    assert (tmp_path / "step.hlo").read_bytes() == blob
    assert jax.export.deserialize(blob).platforms == ("cpu", "cuda", "tpu")
    state: Any = gt.export.variables(step, *specs)
    for size in (7, 3, 7, 1, 7):
        x, y = draws(size, 4), rng.integers(0, 3, size)
        out, state = called(blob, state, x=x, y=y)
        want = step(gt.constant(x), gt.constant(y))["loss"]
        assert out["loss"] == pytest.approx(want.item(), abs=1e-5)
    for path, v in model.named_variables.items():
        np.testing.assert_allclose(state[f"model/{path}"], v.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: gt.cond(gt.sum(x) > 0, lambda: gt.sin(x), lambda: 2 * x),
        lambda x: gt.while_loop(lambda a: gt.sum(a * a) < 99, lambda a: [a * 1.5], [x])[0],
        lambda x: gt.scan(lambda c, r: (c / 2 + r, c * r), gt.zeros(2), x),
    ],
    ids=["cond", "while", "scan"],
)
def test_control_flow_runs_by_jax(fn: Any) -> None:
    compare(fn, [gt.TensorSpec([3, 2])], (draws(3, 2),))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x[:, None] * 2.0,
        lambda x: x[1:] - x[:-1],
        lambda x: gt.take_along_axis(x, gt.argsort(-x, axis=-1)[:, :2], axis=-1),
        lambda x: gt.argmin(gt.sum(gt.square(x[:, None, :] - gt.ones((5, 3))), axis=-1), axis=1),
        lambda x: gt.grad(lambda x: gt.sum(x[:, 1] ** 2) + gt.sum(x[0]))(x),
        lambda x: gt.einsum("bh,ch->bc", x, x),
    ],
    ids=["new axis", "differences", "the largest", "the nearest", "gradient", "einsum"],
)
def test_parts_are_taken_of_a_batch_of_any_size(fn: Any) -> None:
    compare(fn, [gt.TensorSpec([None, 3])], (draws(4, 3),), (draws(2, 3),))


def test_decompositions_have_a_form_in_stablehlo() -> None:
    blob = gt.export.stablehlo(
        lambda x: gt.linalg.cholesky(x @ x.mT + 4 * gt.eye(3)),
        gt.TensorSpec([3, 3]),
        platforms=["cpu"],
    )
    x = draws(3, 3)
    want = np.linalg.cholesky(x @ x.T + 4 * np.eye(3))
    np.testing.assert_allclose(called(blob, x=x)["output"], want, rtol=1e-4)


def test_what_jax_cannot_export_is_refused() -> None:
    def counted(x: Any) -> Any:
        return gt.unique(x)

    with pytest.raises(gt.export.ExportError, match=r"counted.*'unique'"):
        gt.export.stablehlo(counted, gt.TensorSpec([3]))
    with pytest.raises(gt.export.ExportError, match=r"argument 'x'.*number of its axes"):
        gt.export.stablehlo(gt.sin, gt.TensorSpec(None))


def test_a_kernel_that_decides_by_an_open_size_is_named() -> None:
    def halves(x: Any) -> Any:
        return gt.sort(gt.reshape(x, (2, -1)), axis=0)

    with pytest.raises(gt.export.ExportError, match=r"halves: op 'reshape'.*JAX cannot export"):
        gt.export.stablehlo(halves, gt.TensorSpec([None]))


def test_what_is_not_installed_is_named_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match=r'pip install "gradtape\[jax\]"'):
        gt.export.stablehlo(gt.sin, gt.TensorSpec([3]))


def test_neither_runtime_is_imported_before_it_is_used() -> None:
    code = (
        "import sys, gradtape as gt; gt.export.onnx; gt.export.stablehlo; "
        "print({'jax', 'ndonnx', 'onnx', 'spox'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "set()"
