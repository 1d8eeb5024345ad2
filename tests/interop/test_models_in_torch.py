"""gradtape's models, also from files, as modules of PyTorch."""

from __future__ import annotations

import copy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

torch: Any = pytest.importorskip("torch", reason='pip install "gradtape[torch]"')

to_torch = gt.interop.torch.to_torch


def model(*layers: Any, dtype: str = "float64") -> Any:
    gt.random.set_seed(0)
    made = gt.layers.Sequential([gt.Input((3,), dtype=dtype), *layers])
    made(np.zeros((2, 3), dtype))
    return made


def double(*layers: Any) -> Any:
    default = gt.default_dtype()
    gt.set_default_dtype("float64")
    try:
        return model(*layers)
    finally:
        gt.set_default_dtype(default)


def inputs(grad: bool = False) -> Any:
    x = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return x.requires_grad_(grad)


class Clipped(gt.Module):
    """Has a weight, and a custom gradient."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.array([1.0, 2.0, 3.0]))

    @gt.function
    def __call__(self, x: Any) -> Any:
        @gt.custom_gradient
        def clip(x: Any) -> Any:
            return x * 1.0, lambda g: gt.clip(g, -0.5, 0.5)

        return clip(x * self.w)


def test_parameters_and_buffers_have_readable_names() -> None:
    net = to_torch(model(gt.layers.Dense(4), gt.layers.BatchNorm(), gt.layers.Dense(1)))
    assert {name for name, _ in net.named_parameters()} == {
        "layers.0.kernel",
        "layers.0.bias",
        "layers.1.gamma",
        "layers.1.beta",
        "layers.2.kernel",
        "layers.2.bias",
    }
    assert {name for name, _ in net.named_buffers()} == {
        "layers.1.moving_mean",
        "layers.1.moving_variance",
    }
    other = to_torch(model(gt.layers.Dense(4), gt.layers.BatchNorm(), gt.layers.Dense(1)))
    state = {k: v + 1 for k, v in net.state_dict().items()}
    other.load_state_dict(state)
    for k, v in other.state_dict().items():
        torch.testing.assert_close(v, state[k])


def test_gradients_of_parameters_are_those_of_gradtape() -> None:
    made = double(gt.layers.Dense(4, activation="tanh"), gt.layers.Dense(2))
    net, x = to_torch(made), inputs(grad=True)
    (net(x) ** 2).sum().backward()
    xs = gt.constant(x.detach().numpy())
    with gt.GradientTape() as tape:
        tape.watch(xs)
        y = gt.sum(made(xs) ** 2)
    expected = tape.gradient(y, [xs, *made.named_variables.values()])
    names = [n.replace("/", ".") for n in made.named_variables]
    found = [x.grad, *(net.get_parameter(n).grad for n in names)]
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


def test_second_order_with_respect_to_parameters() -> None:
    net = to_torch(double(gt.layers.Dense(2, activation="tanh"), gt.layers.Dense(1)))
    assert torch.autograd.gradgradcheck(
        lambda x, *ps: torch.func.functional_call(
            net, dict(zip([n for n, _ in net.named_parameters()], ps, strict=True)), (x,)
        ),
        (inputs(grad=True)[:2], *[p.detach().requires_grad_() for p in net.parameters()]),
    )


def test_an_optimizer_of_pytorch_trains_it() -> None:
    made = model(gt.layers.Dense(8, activation="relu"), gt.layers.Dense(1), dtype="float32")
    before = {k: v.numpy().copy() for k, v in made.named_variables.items()}
    net, x = to_torch(made), inputs().float()
    goal = x[:, :1] ** 2
    optimizer = torch.optim.Adam(net.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = ((net(x) - goal) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 5
    for k, v in made.named_variables.items():  # gradtape's own values wait
        np.testing.assert_array_equal(v.numpy(), before[k])
    assert net.update_model() is made
    np.testing.assert_allclose(made(x.numpy()).numpy(), net(x).detach().numpy(), rtol=1e-6)


def test_train_and_eval_choose_the_mode_of_layers() -> None:
    net = to_torch(double(gt.layers.BatchNorm(), gt.layers.Dropout(0.5)))
    x = inputs()
    net.eval()
    before = {k: v.clone() for k, v in net.named_buffers()}
    assert torch.equal(net(x), net(x))
    for k, v in net.named_buffers():
        assert torch.equal(v, before[k])
    net.train()
    assert not torch.equal(net(x), net(x))
    assert all(not torch.equal(v, before[k]) for k, v in net.named_buffers())


def test_moving_statistics_are_those_of_gradtape() -> None:
    made = double(gt.layers.BatchNorm())
    net, x = to_torch(made), inputs()
    for _ in range(3):
        net(x)
        made(x.numpy(), training=True)
    names = made.named_variables
    for k, v in net.state_dict().items():
        np.testing.assert_allclose(v.numpy(), names[k.replace(".", "/")].numpy(), rtol=1e-12)


def test_a_backward_pass_keeps_the_statistics_of_its_call() -> None:
    net, x = to_torch(double(gt.layers.BatchNorm())).eval(), inputs(grad=True)
    y = net(x)
    expected = torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
    net.train()(x)  # new statistics
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], expected, rtol=0, atol=0)


def test_per_example_gradients() -> None:
    net, x = to_torch(double(gt.layers.Dense(2, activation="tanh"))), inputs()
    params = dict(net.named_parameters())

    def loss(params: Any, x: Any) -> Any:
        return (torch.func.functional_call(net, params, (x[None],)) ** 2).sum()

    found = torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(params, x)
    for i in range(len(x)):
        for k, g in torch.func.grad(loss)(params, x[i]).items():
            torch.testing.assert_close(found[k][i], g, rtol=1e-12, atol=1e-12)
    many = {k: torch.stack([v, v]) for k, v in params.items()}
    with pytest.raises(NotImplementedError, match="over the parameters"):
        torch.vmap(loss, in_dims=(0, None))(many, x[0])


def test_copies_are_independent() -> None:
    net, x = to_torch(double(gt.layers.Dense(2))), inputs()
    twin = copy.deepcopy(net)
    with torch.no_grad():
        next(twin.parameters()).mul_(0.0)
    assert not torch.equal(net(x), twin(x))


def test_unbuilt_and_converted_models_are_refused() -> None:
    with pytest.raises(ValueError, match="no weights yet"):
        to_torch(gt.layers.Dense(2))
    net = to_torch(model(gt.layers.Dense(2), dtype="float32")).double()
    with pytest.raises(TypeError, match="convert the model before to_torch"):
        net(inputs())


# -- files -----------------------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = Clipped()
    made(np.ones((2, 3)))
    gt.save(made, tmp_path / "model.h5")
    return tmp_path / "model.h5"


def test_a_file_is_a_module_with_its_custom_gradient(file: Path) -> None:
    net = gt.interop.torch.load(file)
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    (net(x) * 7.0).sum().backward()
    assert x.grad.tolist() == [[0.5, 1.0, 1.5]] * 2
    assert net.w.grad.tolist() == [1.0] * 3
    torch.optim.SGD(net.parameters(), lr=1.0).step()
    assert net(x)[0].tolist() == [0.0, 1.0, 2.0]


def test_a_file_is_loaded_without_its_code(file: Path) -> None:
    program = f"""
import torch, gradtape as gt
net = gt.interop.torch.load({str(file)!r})
x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
(net(x) * 7.0).sum().backward()
assert x.grad.tolist() == [[0.5, 1.0, 1.5]] * 2, x.grad
assert sorted(net.state_dict()) == ["w"]
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_layered_file_trains(tmp_path: Path) -> None:
    made = model(gt.layers.Dense(4), gt.layers.BatchNorm(), gt.layers.Dropout(0.5), dtype="float32")
    gt.save(made, tmp_path / "model.h5")
    net, x = gt.interop.torch.load(tmp_path / "model.h5"), inputs().float()
    net.eval()
    np.testing.assert_allclose(net(x).detach().numpy(), made(x.numpy()).numpy(), rtol=1e-6)
    net.train()
    assert not torch.equal(net(x), net(x))
    net(x).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_options_and_errors_are_those_of_load(tmp_path: Path) -> None:
    (tmp_path / "bad.h5").write_bytes(b"not a model")
    with pytest.raises(gt.saving.LoadError):
        gt.interop.torch.load(tmp_path / "bad.h5")
