"""The CuPy backend: what it says when it cannot run, its code over a pretend CuPy, and a real GPU.

Tests marked ``gpu`` compare with the NumPy backend and are skipped, with the backend's reason, on
machines without CuPy or a GPU.
"""

from __future__ import annotations

import builtins
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest
from real_gpu import REASON, gpu

import gradtape as gt
from gradtape.errors import BackendMismatch, BackendUnavailable


def backend() -> Any:
    """Return the CuPy backend, as the registry holds it."""
    return gt.registry().backends["cupy"]


@pytest.fixture
def cupy_is(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Any], None]]:
    """Return a function that puts something in the place of the module ``cupy``."""
    pretend_gpu.forget_cupy()

    def replace(module: Any) -> None:
        monkeypatch.setitem(sys.modules, "cupy", module)

    yield replace
    pretend_gpu.forget_cupy()


@pytest.fixture
def pretend_cupy(cupy_is: Callable[[Any], None]) -> types.ModuleType:
    module = pretend_gpu.make("cupy")
    cupy_is(module)
    return module


# -- unavailable ---------------------------------------------------------------------------------


def test_importing_and_using_gradtape_does_not_import_cupy() -> None:
    code = (
        "import sys, gradtape as gt; gt.sin(gt.constant(1.0)); gt.registry(); "
        "assert 'cupy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_without_cupy_the_error_has_the_install_line_for_each_cuda(
    cupy_is: Callable[[Any], None],
) -> None:
    cupy_is(None)  # what Python's import system takes for "not there"
    with pytest.raises(BackendUnavailable) as caught, gt.backend("cupy"):
        pass
    message = str(caught.value)
    assert "CuPy" in message
    assert 'for CUDA 12, pip install "gradtape[cupy]" (the wheel cupy-cuda12x)' in message
    assert 'for CUDA 13, pip install "gradtape[cupy-cuda13]" (the wheel cupy-cuda13x)' in message
    assert isinstance(caught.value, ImportError)


def test_cupy_not_installed_is_told_from_cupy_broken(
    cupy_is: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__
    errors = [
        ModuleNotFoundError("No module named 'cupy'", name="cupy"),
        ImportError("libcublas.so.12: cannot open shared object file"),
    ]

    def broken(name: str, *rest: Any, **keywords: Any) -> Any:
        if name == "cupy":
            raise errors[0]
        return real(name, *rest, **keywords)

    monkeypatch.setattr(builtins, "__import__", broken)
    assert "CuPy is not installed; install" in backend().unavailable()
    del errors[0]
    assert "cannot be imported (ImportError: libcublas.so.12" in backend().unavailable()


def test_without_a_driver_the_reason_is_cupys(cupy_is: Callable[[Any], None]) -> None:
    def fail() -> int:
        raise RuntimeError("cudaErrorInsufficientDriver: CUDA driver version\n is insufficient")

    module = pretend_gpu.make("cupy")
    module.cuda.runtime.getDeviceCount = fail
    cupy_is(module)
    reason = backend().unavailable()
    assert "CuPy 0.0-pretend cannot reach a GPU (RuntimeError: cudaErrorInsufficient" in reason
    assert "\n" not in reason


def test_without_a_gpu_the_reason_says_so(cupy_is: Callable[[Any], None]) -> None:
    cupy_is(pretend_gpu.make("cupy", devices=0))
    assert "finds no GPU" in backend().unavailable()


def test_moving_there_in_vain_leaves_the_module_as_it_was(cupy_is: Callable[[Any], None]) -> None:
    cupy_is(None)

    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.w = gt.Variable([1.0])

    model = Model()
    with pytest.raises(BackendUnavailable):
        model.to("cupy")
    assert model.w.numpy().tolist() == [1.0]
    assert gt.constant(1.0).device == "numpy:cpu"


def test_it_is_tried_again_after_a_failure(cupy_is: Callable[[Any], None]) -> None:
    cupy_is(None)
    assert backend().unavailable() is not None
    cupy_is(pretend_gpu.make("cupy"))
    assert backend().unavailable() is None


def test_the_command_line_lists_it_with_the_reason(
    cupy_is: Callable[[Any], None], capsys: pytest.CaptureFixture[str]
) -> None:
    from gradtape.cli import main

    cupy_is(None)
    assert main(["plugins"]) == 0
    lines = capsys.readouterr().out.splitlines()
    row = next(line for line in lines if line.startswith("cupy "))
    assert row.split()[:4] == ["cupy", "gradtape", gt.__version__, "unavailable"]
    assert any(line.startswith("cupy: backend 'cupy': CuPy") for line in lines)


# -- the backend's own code, over a pretend CuPy -------------------------------------------------


def test_arrays_go_to_the_chosen_device(pretend_cupy: types.ModuleType) -> None:
    with gt.backend("cupy"):
        assert gt.constant([1.0]).device == "cupy:0"
    with gt.backend("cupy:1"):
        x = gt.constant([1.0, 2.0])
    assert type(x.array) is pretend_cupy.ndarray
    assert x.device == "cupy:1"
    assert x.to("cupy:0").device == "cupy:0"
    assert x.to("numpy").device == "numpy:cpu"


@pytest.mark.parametrize("device", ["2", "-1", "first"])
def test_a_device_that_is_not_there_is_refused(device: str, pretend_cupy: types.ModuleType) -> None:
    with pytest.raises(ValueError, match=rf"no device '{device}'; there are 0 to 1"):
        gt.constant([1.0]).to(f"cupy:{device}")


def test_dtypes_survive_the_journey(pretend_cupy: types.ModuleType) -> None:
    for dtype in ("float32", "float64", "complex64", "int8", "bool"):
        x = gt.constant(np.array([0, 1], dtype))
        there = x.to("cupy")
        assert there.dtype == dtype
        assert there.to("numpy").dtype == dtype
        assert there.numpy().tolist() == x.numpy().tolist()


def test_gradients_of_two_orders_stay_on_the_device(pretend_cupy: types.ModuleType) -> None:
    x = gt.constant([0.5, 1.5]).to("cupy")
    with gt.GradientTape() as outer:
        outer.watch(x)
        with gt.GradientTape() as inner:
            inner.watch(x)
            y = gt.sin(x) * x
        g = inner.gradient(y, x)
    h = outer.gradient(g, x)
    host = x.numpy()
    np.testing.assert_allclose(h.numpy(), 2 * np.cos(host) - host * np.sin(host), rtol=1e-5)
    assert h.device == "cupy:0"


def test_backends_do_not_mix(pretend_cupy: types.ModuleType) -> None:
    x = gt.constant([1.0])
    with pytest.raises(BackendMismatch, match="cupy and numpy"):
        x.to("cupy") + x


def test_a_shape_witness_holds_one_element(pretend_cupy: types.ModuleType) -> None:
    for shape in ((1000, 3), (2,), (0, 5), ()):
        x = pretend_cupy.array(np.ones(shape, np.float32))
        witness = backend().shape_witness(x)
        assert (witness.shape, witness.dtype) == (shape, np.float32)
    large = backend().shape_witness(pretend_cupy.array(np.ones((1000, 3))))
    assert large.data.mem.nbytes == 8


# -- a real GPU ----------------------------------------------------------------------------------


def on_both(fn: Callable[..., Any], *inputs: Any) -> tuple[list[Any], list[Any]]:
    """Return value, gradients and second-order gradients on NumPy and on CuPy."""
    results = []
    for where in ("numpy", "cupy"):
        xs = [gt.constant(x).to(where) for x in inputs]
        with gt.GradientTape() as outer:
            outer.watch(xs)
            with gt.GradientTape() as inner:
                inner.watch(xs)
                y = fn(*xs)
            grads = inner.gradient(y, xs)
            total = gt.sum(gt.stack([gt.sum(g * g) for g in grads if g is not None]))
        seconds = outer.gradient(total, xs)
        found = [y, *grads, *seconds]
        assert all(t is None or t.device.startswith(where) for t in found)
        results.append([None if t is None else t.numpy() for t in found])
    return results[0], results[1]


SQUARE = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.2], [0.1, 0.2, 1.0]])
MATRIX = np.linspace(0.1, 1.9, 6).reshape(2, 3)
VECTOR = np.array([0.4, 0.8, 1.2])

CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "arithmetic": (lambda x, y: x * y + x / y - y, (MATRIX, VECTOR)),
    "power": (lambda x, y: x**y + x**2, (MATRIX, VECTOR)),
    "exp, log": (lambda x: gt.exp(x) * gt.log(x) + gt.sqrt(x), (MATRIX,)),
    "trigonometry": (lambda x: gt.sin(x) + gt.cos(x) * gt.tan(x) + gt.arctan(x), (MATRIX,)),
    "hyperbolic": (lambda x: gt.sinh(x) + gt.cosh(x) * gt.tanh(x), (MATRIX,)),
    "where": (lambda x, y: gt.where(x > y, x * x, y * y * y), (MATRIX, VECTOR)),
    "extremes": (lambda x, y: gt.maximum(x, y) ** 2 + gt.minimum(x, y), (MATRIX, VECTOR)),
    "reductions": (
        lambda x: gt.sum(x * x, axis=0) * gt.mean(x, axis=0) + gt.max(x, axis=0),
        (MATRIX,),
    ),
    "prod, var": (lambda x: gt.prod(x, axis=1) + gt.var(x, axis=1), (MATRIX,)),
    "logsumexp": (lambda x: gt.logsumexp(x, axis=1), (MATRIX,)),
    "cumsum": (lambda x: gt.cumsum(x * x, axis=1), (MATRIX,)),
    "matmul": (lambda x, y: gt.matmul(x, y), (MATRIX, SQUARE)),
    "einsum": (lambda x, y: gt.einsum("ij,jk->k", x, y), (MATRIX, SQUARE)),
    "indexing": (lambda x: x[:, [0, 0, 2]] * x[:, 1:2] + x[::-1], (MATRIX,)),
    "shapes": (
        lambda x: gt.concatenate([gt.reshape(x, (3, 2)), gt.transpose(x * x)], axis=1),
        (MATRIX,),
    ),
    "take_along_axis": (
        lambda x: gt.take_along_axis(x * x, gt.argmax(x, axis=1, keepdims=True), axis=1),
        (MATRIX,),
    ),
    "pad, tile": (lambda x: gt.tile(gt.pad(x * x, ((1, 0), (0, 1))), (2, 1)), (MATRIX,)),
    "solve": (lambda a, b: gt.linalg.solve(a, b), (SQUARE, VECTOR)),
    "det, inv": (lambda a: gt.linalg.det(a) * gt.linalg.inv(a), (SQUARE,)),
    "cholesky": (lambda a: gt.linalg.cholesky(a), (SQUARE,)),
    "softmax": (lambda x: gt.nn.softmax(x) * gt.nn.log_softmax(x), (MATRIX,)),
    "activations": (
        lambda x: gt.nn.relu(x - 1) * gt.nn.sigmoid(x) + gt.nn.softplus(x) + gt.nn.elu(x - 1),
        (MATRIX,),
    ),
    "clip_by_norm": (lambda x: gt.clip_by_norm(x * x, 0.5), (MATRIX,)),
}


@pytest.mark.parametrize("case", CASES)
def test_ops_reach_the_library_only_through_its_namespace(
    case: str, pretend_cupy: types.ModuleType
) -> None:
    compare(case)


@pytest.mark.parametrize("case", [pytest.param(name, marks=gpu) for name in CASES])
def test_values_and_gradients_equal_those_of_numpy(case: str) -> None:
    compare(case)


def compare(case: str) -> None:
    """Check a case's values and gradients of two orders on CuPy against those on NumPy."""
    fn, inputs = CASES[case]
    for mine, theirs in zip(*on_both(fn, *inputs), strict=True):
        if mine is None:
            assert theirs is None
        else:
            np.testing.assert_allclose(theirs, mine, rtol=1e-9, atol=1e-11)


@pytest.mark.gpu
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_random_numbers_are_made_there_from_the_seed() -> None:
    with gt.backend("cupy"):
        a = gt.random.Generator(3).normal((1000,))
        b = gt.random.Generator(3).normal((1000,))
        c = gt.random.Generator(4).uniform((1000,))
    assert a.device == "cupy:0"
    assert np.array_equal(a.numpy(), b.numpy())
    assert abs(float(gt.mean(a))) < 0.2
    assert 0 <= float(gt.min(c)) < float(gt.max(c)) < 1


@pytest.mark.gpu
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
def test_a_model_trains_there_and_a_saved_file_is_verified_there(tmp_path: Any) -> None:
    data, _ = gt.datasets.load_digits()
    reached = []
    for where in ("numpy", "cupy"):
        with gt.backend(where):
            layers = [gt.layers.Dense(32), gt.layers.BatchNorm(), gt.nn.relu, gt.layers.Dense(10)]
            model = gt.layers.Sequential(layers)
            history = gt.training.fit(model, data, epochs=3, seed=0, verbose=False)
        reached.append(history.history["accuracy"])
    assert reached[1] == pytest.approx(reached[0], abs=0.01)
    assert reached[0][-1] > 0.8
    assert {v.value.device for v in model.variables} == {"cupy:0"}
    path = tmp_path / "model.h5"
    gt.save(model, path)
    assert gt.saving.verify(path, backend="cupy").ok
    assert gt.saving.verify(path, backend="numpy").ok
