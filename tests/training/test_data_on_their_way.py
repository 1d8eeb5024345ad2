"""Batches in host memory get to the model's device while it computes; all else is as without."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.core.extend import Sender
from gradtape.training import evaluate, fit, predict

RNG = np.random.default_rng(6)
X = RNG.normal(size=(40, 5)).astype("float32")
LABELS = RNG.integers(0, 3, 40)


class Recording(Sender):
    """Writes down what it does."""

    said: list[str]

    def send(self, value: Any) -> Any:
        if value.ndim > 1:
            self.said.append("send")
        return super().send(value)

    def take(self, sent: Any) -> Any:
        if sent.ndim > 1:
            self.said.append("take")
        return super().take(sent)


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What is sent and taken, while there is a plugin with a device."""
    plugin = pretend_gpu.Plugin("faraway")
    found: list[str] = []

    def sender(device: str | None = None) -> Sender:
        made = Recording(plugin.backend, device)
        made.said = found
        return made

    plugin.backend.sender = sender  # type: ignore[method-assign]
    gt.register_plugin(plugin, "faraway")
    yield found
    gt.unregister_plugin("faraway")


def model_on(where: str) -> Any:
    gt.random.set_seed(0)
    with gt.backend(where):
        model = gt.layers.Sequential([gt.layers.Dense(8, activation="tanh"), gt.layers.Dense(3)])
        model(gt.constant(X[:1]))
    return model


def told(model: Any, data: Any, said: list[str], **options: Any) -> Any:
    """Train, and return the history; each batch says when it was trained on."""

    class Listener:
        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            said.append(f"trained {batch}")

    options = {"epochs": 1, "batch_size": 10, "seed": 0, "verbose": False, **options}
    return fit(model, data, callbacks=[Listener()], **options)


def test_training_on_a_device_with_data_on_the_host_is_that_on_the_host(said: list[str]) -> None:
    found = []
    for where in ("numpy", "faraway"):
        model = model_on(where)
        options: dict[str, Any] = {"epochs": 3, "batch_size": 16, "seed": 1, "verbose": False}
        history = fit(model, (X, LABELS), validation_split=0.2, **options).history
        measured = evaluate(model, (X, LABELS))
        found.append((history, measured, np.array(predict(model, X).to("numpy").numpy())))
    (near, a, p), (far, b, q) = found
    assert far["loss"] == pytest.approx(near["loss"], rel=1e-4)
    assert far["val_loss"] == pytest.approx(near["val_loss"], rel=1e-4)
    assert b == pytest.approx(a, rel=1e-4)
    np.testing.assert_allclose(q, p, rtol=1e-3, atol=1e-5)
    assert model.layers[0].kernel.value.device == "faraway:0"


@pytest.mark.parametrize(
    "data", [(X, LABELS), [(X[i : i + 10], LABELS[i : i + 10]) for i in (0, 10, 20, 30)]]
)
def test_the_next_batch_is_sent_before_the_loss_is_waited_for(data: Any, said: list[str]) -> None:
    told(model_on("faraway"), data, said)
    rest = [x for i in range(1, 4) for x in (f"trained {i - 1}", "take", "send")]
    assert said[:3] == ["send", "take", "send"]
    assert said[3 : 3 + len(rest)] == [*rest[:-1], "trained 3"]


def test_the_code_of_an_iterable_runs_when_its_batch_is_wanted(said: list[str]) -> None:
    class Data:
        def __iter__(self) -> Iterator[Any]:
            for i in range(3):
                said.append(f"made {i}")
                yield X[:10], LABELS[:10]

    told(model_on("faraway"), Data(), said)
    one = ["send", "take"]
    assert said == [x for i in range(3) for x in (f"made {i}", *one, f"trained {i}")]


def test_a_batch_that_is_wrong_raises_after_the_ones_before_were_trained_on(
    said: list[str],
) -> None:
    good = (X[:10], LABELS[:10])
    model = model_on("faraway")
    with pytest.raises(ValueError, match="batch 2 must be"):
        told(model, [good, good, X[:10]], said)
    assert [x for x in said if x.startswith("trained")] == ["trained 0", "trained 1"]


def test_ctrl_c_ends_training_after_the_batch_as_it_does_without(
    said: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Impatient:
        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            if batch == 1:
                signal.raise_signal(signal.SIGINT)

    options: dict[str, Any] = {"epochs": 2, "batch_size": 10, "seed": 0, "verbose": False}
    weights = []
    for where in ("numpy", "faraway"):
        model = model_on(where)
        history = fit(model, (X, LABELS), callbacks=[Impatient()], **options)
        assert history.interrupted
        assert history.history == {}
        weights.append(model.layers[0].kernel.value.to("numpy").numpy())
    np.testing.assert_allclose(*weights, rtol=2e-4, atol=1e-6)


def test_on_numpy_nothing_is_sent_and_batches_are_what_data_give(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(gt.core.extend.Backend, "sender", None)
    told(model_on("numpy"), (X, LABELS), [])


def test_a_gpu_copies_on_a_stream_of_its_own_and_only_the_device_waits() -> None:
    with pretend_gpu.as_cupy() as library:
        said = library.timeline.said
        sender = gt.registry().backends["cupy"].sender("1")
        first = sender.send(X)
        assert said == ["copies copies"]
        sender.mark()
        taken = sender.take(first)
        sender.take(sender.send(LABELS[:0]))
    np.testing.assert_array_equal(taken.data, X)
    assert taken.device.id == 1
    assert said[1:] == [
        "main waits for copies",
        "copies waits for main",
        "copies copies",
        "main waits for copies",
    ]
