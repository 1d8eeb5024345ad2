"""PyTorch modules as models: their buffers, threads that share them, and what they capture."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

torch: Any = pytest.importorskip("torch", reason='pip install "gradtape[torch]"')

from_torch = gt.interop.torch.from_torch


def in_threads(*calls: Callable[[], None]) -> None:
    errors: list[BaseException] = []

    def run(call: Callable[[], None]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class Counts(torch.nn.Module):  # type: ignore[misc]
    """Replaces a buffer instead of writing to it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.calls = self.calls + 1
        return x * self.calls


@pytest.mark.parametrize("traced", [False, True])
def test_buffers_that_a_module_replaces_are_assigned(traced: bool) -> None:
    module = Counts()
    model = from_torch(module)
    call = gt.function(model) if traced else model
    x = gt.constant(2.0)
    assert [call(x).item() for _ in range(3)] == [2.0, 4.0, 6.0]
    assert model.weights["calls"].numpy() == 3.0
    assert module.calls == 0
    assert model.update_module().calls == 3


def test_threads_may_call_a_module_in_different_modes() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Dropout(0.5))
    weight = module[0].weight
    model, x = from_torch(module), gt.ones((64, 64))
    wanted = model(x, training=False).numpy()
    dropped: dict[bool, list[bool]] = {True: [], False: []}

    def run(training: bool) -> None:
        for _ in range(40):
            y = model(x, training=training).numpy()
            dropped[training].append(not np.allclose(y, wanted, rtol=1e-4, atol=1e-6))

    in_threads(*[lambda t=t: run(t) for t in (True, False, True, False)])
    assert not any(dropped[False])
    assert all(dropped[True])
    assert module[0].weight is weight


def test_threads_may_differentiate_a_module() -> None:
    model = from_torch(torch.nn.Linear(8, 8).double())
    x = gt.constant(np.ones((4, 8)))

    def gradients() -> list[Any]:
        with gt.GradientTape() as tape:
            y = gt.sum(model(x) ** 2)
        return [g.numpy() for g in tape.gradient(y, model.trainable_variables)]

    wanted = gradients()

    def run() -> None:
        for _ in range(40):
            for g, w in zip(gradients(), wanted, strict=True):
                np.testing.assert_allclose(g, w)

    in_threads(run, run, run)


def test_threads_never_share_the_random_numbers_of_a_model_in_pytorch() -> None:
    gt.random.set_seed(0)
    model = gt.layers.Sequential([gt.Input((64,)), gt.layers.Dropout(0.5)])
    net, x = gt.interop.torch.to_torch(model).train(), torch.ones(1, 64)
    masks: list[bytes] = []

    def run() -> None:
        masks.extend([net(x).numpy().tobytes() for _ in range(40)])

    in_threads(run, run, run)
    assert len(set(masks)) == 120


def test_complex_results_are_not_cut_to_a_declared_real_dtype() -> None:
    f = from_torch(lambda x: x * 1j, results=gt.TensorSpec([2], "float32"))
    with pytest.raises(ValueError, match=r"complex64, not .*declare a complex dtype"):
        gt.function(lambda x: f(x))(gt.ones(2))


def test_captured_variables_of_gradtape_are_refused_under_a_tape() -> None:
    v = gt.Variable([2.0, 3.0])
    f = from_torch(lambda x: x * v)
    with (
        gt.GradientTape(),
        pytest.raises(TypeError, match="pass gradtape's tensors and variables as arguments"),
    ):
        f(gt.ones(2))
