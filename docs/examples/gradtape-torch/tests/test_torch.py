"""The backend: the samples of all ops, files, and a model that is trained on it."""

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_backend

torch = pytest.importorskip("torch")

#: What PyTorch cannot compute, with the reason.
REFUSED = {
    **dict.fromkeys(("erf", "erfc"), "not of complex numbers"),
    **dict.fromkeys(("fftn", "rfft", "irfft"), "not of arrays without elements"),
    "unique": "not of complex numbers",
}


def test_gradtape_finds_the_backend():
    owner = gt.registry().owner("backend", "torch")
    assert (owner.distribution, owner.problem) == ("gradtape-torch", None)


@pytest.mark.parametrize("traced", [False, True])
def test_ops_functions_and_their_gradients_are_as_on_numpy(traced):
    report = check_backend("torch", traced=traced)
    assert not report.wrong
    assert set(report.refused) == set(REFUSED)
    assert len(report.passed) > 400


def train(backend):
    """Return the losses of a small network, and what it gives after training."""
    gt.random.set_seed(0)
    rng = np.random.default_rng(0)
    data = rng.normal(size=(64, 4)).astype("float32")
    with gt.backend(backend):
        x, y = gt.constant(data), gt.constant(np.sin(data.sum(1, keepdims=True)))
        model = gt.layers.Sequential([gt.layers.Dense(16, "tanh"), gt.layers.Dense(1)])
        optimizer = gt.training.Adam(0.02)

        @gt.function
        def step(x, y):
            with gt.GradientTape() as tape:
                loss = gt.mean((model(x) - y) ** 2)
            variables = model.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            return loss

        model(x)
        losses = [step(x, y).item() for _ in range(60)]
        return losses, model(x), model


def test_a_model_trains_as_on_numpy_and_is_saved(tmp_path):
    (here, _, _), (there, out, model) = train("numpy"), train("torch")
    assert isinstance(out.array, torch.Tensor)
    assert here[-1] < here[0] / 4
    np.testing.assert_allclose(here, there, rtol=1e-3)
    gt.save(model, tmp_path / "model.h5")
    again = gt.load(tmp_path / "model.h5")
    x = np.ones((2, 4), "float32")
    np.testing.assert_allclose(
        again(x).numpy(), model(gt.constant(x).to("torch")).to("numpy").numpy(), rtol=1e-5
    )


def test_tensors_are_shared_with_pytorch_and_moved():
    x = gt.constant([[1.0, 2.0]]).to("torch")
    assert (x.device, x.dtype) == ("torch:cpu", np.float32)
    assert torch.equal(x.array, torch.tensor([[1.0, 2.0]]))
    assert x.to("numpy").device == "numpy:cpu"
    with pytest.raises(gt.errors.BackendMismatch, match=r"tensor\.to\("):
        x + gt.constant([1.0])


def test_it_runs_on_a_gpu():
    if not torch.cuda.is_available():
        pytest.skip("PyTorch finds no GPU")
    torch.set_default_device("cuda")
    try:
        report = check_backend("torch")
    finally:
        torch.set_default_device("cpu")
    assert not report.wrong
    assert len(report.passed) > 400
