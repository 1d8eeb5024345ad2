"""State of models and graphs in PyTorch programs, which replace, freeze, hook and recompute it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt

torch: Any = pytest.importorskip("torch", reason='pip install "gradtape[torch]"')

to_torch = gt.interop.torch.to_torch

BATCH = np.random.default_rng(0).normal(size=(6, 3))


def batch() -> Any:
    return torch.tensor(BATCH, dtype=torch.float32)


def network(*layers: Any) -> Any:
    gt.random.set_seed(0)
    return to_torch(gt.layers.Sequential([gt.Input((3,)), *layers]))


def normalized() -> Any:
    return network(gt.layers.Dense(4), gt.layers.BatchNorm())


def values(net: Any) -> dict[str, Any]:
    return {name: x.detach().clone() for name, x in net.state_dict().items()}


# -- buffers ---------------------------------------------------------------------------------------


def test_buffers_change_in_place_as_those_of_pytorch() -> None:
    net = normalized().train()
    mean = net.get_buffer("layers.1.moving_mean")
    net(batch())
    assert net.get_buffer("layers.1.moving_mean") is mean
    assert mean.abs().max() > 0


@pytest.mark.parametrize("transformed", [False, True])
def test_a_functional_call_changes_the_buffers_that_it_got(transformed: bool) -> None:
    net = network(gt.layers.BatchNorm(), gt.layers.Dropout(0.5)).train()
    own, given = values(net), values(net)
    weights = {name: given.pop(name) for name, _ in net.named_parameters()}
    before = {name: x.clone() for name, x in given.items()}

    def loss(weights: Any) -> Any:
        return torch.func.functional_call(net, (weights, given), batch()).sum()

    if transformed:
        torch.func.grad(loss)(weights)
    else:
        loss(weights)
    for name, x in given.items():
        assert not torch.equal(x, before[name]), name
    for name, x in net.state_dict().items():
        assert torch.equal(x, own[name]), name


def test_calls_under_a_transformation_leave_plain_buffers() -> None:
    net = normalized().train()
    weights = dict(net.named_parameters())
    for _ in range(2):
        torch.func.grad(lambda w: torch.func.functional_call(net, w, batch()).sum())(weights)
    direct = normalized().train()
    for _ in range(2):
        direct(batch())
    for name, x in net.named_buffers():
        torch.testing.assert_close(x, direct.get_buffer(name))


def test_buffers_that_exchange_their_values() -> None:
    class Swap(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = gt.Variable(1.0, trainable=False)
            self.b = gt.Variable(2.0, trainable=False)

        def __call__(self, x: Any) -> Any:
            a, b = self.a.value, self.b.value
            self.a.assign(b)
            self.b.assign(a)
            return x + a

    net = to_torch(Swap())
    with torch.no_grad():
        assert net(torch.zeros(())).item() == 1.0
        assert net(torch.zeros(())).item() == 2.0
    assert net(torch.zeros((), requires_grad=True)).item() == 1.0
    assert (net.a.item(), net.b.item()) == (2.0, 1.0)


@pytest.mark.parametrize("grad", [False, True])
def test_a_buffer_that_gets_an_argument_is_a_copy(grad: bool) -> None:
    class Last(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = gt.Variable(np.zeros(2, "float32"), trainable=False)

        def __call__(self, x: Any) -> Any:
            y = x - self.last
            self.last.assign(x)
            return y

    net = to_torch(Last())
    x = torch.ones(2)
    net(x * 1).sum()
    y = net(x.requires_grad_(grad))
    with torch.no_grad():
        x.fill_(7.0)
    assert net.last.tolist() == [1.0, 1.0]
    assert y.tolist() == [0.0, 0.0]


def test_buffers_have_gradients_if_pytorch_asks_for_them() -> None:
    net = normalized().eval()
    name = "layers.1.moving_mean"
    mean = net.get_buffer(name).requires_grad_()
    net(batch()).sum().backward()
    kept = {n: x.detach() for n, x in net.state_dict().items()}
    wanted = -len(BATCH) * kept["layers.1.gamma"]
    wanted = wanted / (kept["layers.1.moving_variance"] + 1e-3) ** 0.5
    torch.testing.assert_close(mean.grad, wanted)

    def loss(mean: Any) -> Any:
        return torch.func.functional_call(net, {name: mean}, batch()).sum()

    torch.testing.assert_close(torch.func.grad(loss)(mean.detach()).detach(), wanted)


def test_pytorch_decides_which_parameters_train() -> None:
    model = gt.layers.Sequential([gt.Input((3,)), gt.layers.Dense(2)])
    net = to_torch(model)
    model.trainable = False
    net(batch()).sum().backward()
    assert all(p.grad is not None for p in net.parameters())
    net.zero_grad()
    net.get_parameter("layers.0.bias").requires_grad_(False)
    net(batch()).sum().backward()
    assert {n for n, p in net.named_parameters() if p.grad is not None} == {"layers.0.kernel"}


# -- parts -----------------------------------------------------------------------------------------


def test_parts_in_another_mode_are_refused() -> None:
    net = normalized().train()
    net.layers.eval()
    with pytest.raises(ValueError, match=r"one mode.*eval\(\) of the whole module"):
        net(batch())
    assert net.eval()(batch()).shape == (6, 4)


@pytest.mark.parametrize("kind", ["forward_hook", "forward_pre_hook", "full_backward_hook"])
def test_hooks_of_parts_are_refused_and_those_of_the_whole_run(kind: str) -> None:
    net = normalized()
    with pytest.raises(NotImplementedError, match="register the hook on the whole module"):
        getattr(net.get_submodule("layers.1"), f"register_{kind}")(print)
    seen: list[Any] = []
    getattr(net, f"register_{kind}")(lambda *args: seen.append(args))
    net(batch().requires_grad_()).sum().backward()
    assert len(seen) == 1


def test_parametrizations_of_parts_are_used() -> None:
    class Doubled(torch.nn.Module):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return 2 * x

    net = network(gt.layers.Dense(2))
    before = net(batch())
    part = net.get_submodule("layers.0")
    torch.nn.utils.parametrize.register_parametrization(part, "kernel", Doubled())
    torch.testing.assert_close(net(batch()), 2 * before)


def test_names_that_pytorch_does_not_allow() -> None:
    class Named(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.by_name = {"a.b": gt.Variable(1.0), "a_b": gt.Variable(2.0), "": gt.Variable(3.0)}

        def __call__(self, x: Any) -> Any:
            return x * self.by_name["a.b"] - self.by_name["a_b"] + self.by_name[""]

    net = to_torch(Named())
    assert net(torch.tensor(5.0)).item() == 6.0
    assert len(net.state_dict()) == 3


# -- graphs ----------------------------------------------------------------------------------------

HOOKS: dict[str, Any] = {
    "clone": (lambda x: x.clone(), lambda x: x),
    "numpy": (lambda x: x.detach().numpy().copy(), torch.from_numpy),
}


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_of_saved_tensors(name: str) -> None:
    f = to_torch(lambda x: gt.exp(x) * x)
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(*HOOKS[name]):
        y = f(x)
        (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    torch.testing.assert_close(g, (x + 1) * x.exp())
    torch.testing.assert_close(h, ((x + 2) * x.exp()).detach())


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_recompute_what_has_no_state(reentrant: bool) -> None:
    from torch.utils.checkpoint import checkpoint

    net = normalized().eval()
    x, y = batch().requires_grad_(), batch().requires_grad_()
    checkpoint(net, x, use_reentrant=reentrant).square().sum().backward()
    found = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(y).square().sum().backward()
    torch.testing.assert_close(x.grad, y.grad)
    torch.testing.assert_close(found, [p.grad for p in net.parameters()])


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_of_a_call_with_other_state_is_refused(reentrant: bool) -> None:
    """It would draw other random numbers, and update moving averages twice."""
    from torch.utils.checkpoint import checkpoint

    net = network(gt.layers.Dropout(0.5)).train()
    y = checkpoint(net, batch().requires_grad_(), use_reentrant=reentrant)
    with pytest.raises(RuntimeError, match=r"other values of .*gradtape.recompute_grad"):
        y.sum().backward()


def test_captured_tensors_that_require_gradients_are_refused() -> None:
    w = torch.ones(2, requires_grad=True)
    f = to_torch(lambda x: x * w)
    for x in torch.ones(2), torch.ones(2, requires_grad=True):
        with pytest.raises(TypeError, match="requires gradients and is not among its arguments"):
            f(x)
    with torch.no_grad():
        assert f(torch.ones(2)).tolist() == [1.0, 1.0]
    w = w.detach()
    assert f(torch.ones(2, requires_grad=True)).requires_grad
