"""The op: its rules by check_op, and that it plans, fuses and exports like gradtape's own."""

import numpy as np
import pytest
from gradtape_softabs import gradtape_samples, softabs

import gradtape as gt
from gradtape.testing import check_op

X = np.linspace(-2.0, 2.0, 12, dtype="float32").reshape(3, 4)
WANT = np.exp(-(np.sqrt(4 * X * X + 0.25) - 0.5))


def program(x):
    return gt.exp(-softabs(x * 2.0, width=0.5))


def test_the_op_does_all_that_an_op_must_do():
    samples = gt.registry().samples[softabs.name]
    assert len(samples) == len(gradtape_samples()[softabs.name])
    assert check_op(softabs, samples).ok


def test_gradtape_finds_the_plugin():
    assert gt.registry().owner("op", softabs.name).distribution == "gradtape-softabs"


@pytest.mark.parametrize("executor", ["planned", "fused"])
def test_the_formula_is_part_of_one_pass(executor):
    if executor == "fused":
        pytest.importorskip("llvmlite", reason='pip install "gradtape[fused]"')
    run = gt.function(program, executor=executor)
    for _ in range(3):  # loops are compiled for functions that run often
        np.testing.assert_allclose(run(gt.constant(X)), WANT, rtol=1e-6)
    (group,) = [line for line in run.explain(gt.constant(X)).splitlines() if "group" in line]
    assert all(name in group for name in ("sqrt", "exp", "subtract"))


def test_a_model_is_exported_to_onnx(tmp_path):
    for module in ("onnx", "ndonnx", "spox", "onnxruntime"):
        pytest.importorskip(module, reason='pip install "gradtape[onnx]" onnxruntime')
    import onnxruntime

    path = tmp_path / "softabs.onnx"
    gt.export.onnx(gt.function(program), gt.TensorSpec([None, 4]), path=path)
    session = onnxruntime.InferenceSession(path)
    (found,) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(found, WANT, rtol=1e-6)


def test_a_model_is_exported_to_stablehlo(tmp_path):
    pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
    path = tmp_path / "softabs.mlir"
    gt.export.stablehlo(gt.function(program), gt.TensorSpec([3, 4]), path=path)
    assert path.stat().st_size > 0
