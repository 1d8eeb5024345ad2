"""Layers and optimizers come back as themselves, and training goes on bit for bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import assert_same_bits, probe, probe_isolated, run_isolated

import gradtape as gt

pytestmark = pytest.mark.usefixtures("forks")

layers = gt.layers


def model(activation: Any = "relu") -> Any:
    return layers.Sequential(
        [
            layers.Dense(
                6, activation=activation, kernel_initializer=layers.initializers.HeNormal(seed=1)
            ),
            layers.BatchNorm(momentum=0.9),
            layers.Dropout(0.25, seed=4),
            layers.Activation(lambda x: gt.tanh(x) * 2.0),
            layers.Dense(3),
        ],
        name="net",
    )


def batches(n: int) -> list[tuple[Any, Any]]:
    random = np.random.default_rng(7)
    return [
        (random.standard_normal((8, 5)).astype("float32"), random.integers(0, 3, 8))
        for _ in range(n)
    ]


class Trainer(gt.Module):
    """A model with its optimizer, so that both are in one file."""

    def __init__(self, net: Any, optimizer: Any) -> None:
        super().__init__()
        self.net = net
        self.optimizer = optimizer


def train(net: Any, optimizer: Any, data: Any) -> list[Any]:
    losses = []
    for x, y in data:
        with gt.GradientTape() as tape:
            logits = net(x, training=True)
            loss = gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        losses.append(loss.numpy())
    return losses


OPTIMIZERS = {
    "sgd": lambda: gt.training.SGD(0.1),
    "momentum": lambda: gt.training.SGD(0.1, momentum=0.9, nesterov=True),
    "adam": lambda: gt.training.Adam(0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_goes_on_bit_for_bit_with_the_optimizer_in_the_file(
    name: str, tmp_path: Path
) -> None:
    trainer = Trainer(model(), OPTIMIZERS[name]())
    data = batches(6)
    train(trainer.net, trainer.optimizer, data[:3])
    gt.save(trainer, tmp_path / "trainer.h5")
    loaded = gt.load(tmp_path / "trainer.h5")
    assert type(loaded.net) is layers.Sequential
    assert type(loaded.optimizer) is type(trainer.optimizer)
    expected = train(trainer.net, trainer.optimizer, data[3:])
    assert_same_bits(train(loaded.net, loaded.optimizer, data[3:]), expected)
    assert_same_bits([v.numpy() for v in loaded.variables], [v.numpy() for v in trainer.variables])


def test_a_sequential_model_comes_back_as_one_in_a_fresh_process(tmp_path: Path) -> None:
    net = model(activation=lambda x: gt.nn.relu(x) + 0.1 * x)
    train(net, gt.training.SGD(0.05), batches(3))
    gt.save(net, tmp_path / "net.h5")
    x = batches(1)[0][0]
    state = [v.numpy().copy() for v in net.variables]
    for training in (False, True):
        call = ("__call__", [x], {"training": training})
        (found,) = probe_isolated(tmp_path / "net.h5", [call])
        assert_same_bits(found, probe(net, *call))
        for variable, value in zip(net.variables, state, strict=True):
            variable.assign(value)  # training moved the statistics and the random state
    printed = run_isolated(
        "net = gt.load(sys.argv[1])\n"
        "print(type(net).__name__, [type(layer).__name__ for layer in net.layers])\n",
        tmp_path / "net.h5",
    )
    assert printed.split("\n")[0] == (
        "Sequential ['Dense', 'BatchNorm', 'Dropout', 'Activation', 'Dense']"
    )


def test_moving_statistics_and_configurations_are_kept(tmp_path: Path) -> None:
    net = model()
    train(net, gt.training.SGD(0.05), batches(3))
    gt.save(net, tmp_path / "net.h5")
    loaded = gt.load(tmp_path / "net.h5")
    assert list(loaded.named_variables) == list(net.named_variables)
    assert_same_bits([v.numpy() for v in loaded.variables], [v.numpy() for v in net.variables])
    for a, b in zip(loaded.layers, net.layers, strict=True):
        ours, theirs = a.get_config(), b.get_config()
        ours.pop("activation", None), theirs.pop("activation", None)
        assert ours == theirs
        assert a.name == b.name


def test_a_callable_activation_survives_two_saves_and_keeps_its_custom_gradient(
    tmp_path: Path,
) -> None:
    @gt.custom_gradient
    def odd(x: Any) -> Any:
        return gt.nn.relu(x), lambda g: 7.0 * g

    net = layers.Sequential([layers.Dense(4, activation=odd), layers.Activation(odd)])
    x = np.random.default_rng(0).standard_normal((3, 2)).astype("float32")
    net(x)
    gt.save(net, tmp_path / "a.h5")
    once = gt.load(tmp_path / "a.h5")
    gt.save(once, tmp_path / "b.h5")
    twice = gt.load(tmp_path / "b.h5")
    for loaded in (once, twice):
        assert_same_bits(probe(loaded, "__call__", [x], {}), probe(net, "__call__", [x], {}))
        x64 = x.astype("float64")
        assert loaded(x64).dtype == net(x64).dtype == np.float64


def test_an_activation_that_needs_a_rank_is_traced_from_the_shape_seen(tmp_path: Path) -> None:
    def halves(x: Any) -> Any:
        n = x.shape[1] // 2
        return x[:, :n] * x[:, n:]

    net = layers.Sequential([layers.Dense(4), layers.Activation(halves)])
    with pytest.raises(gt.saving.SaveError, match="call the layer once before saving it"):
        gt.save(net, tmp_path / "early.h5")
    x = np.random.default_rng(0).standard_normal((3, 2)).astype("float32")
    expected = net(x).numpy()
    gt.save(net, tmp_path / "net.h5")
    loaded = gt.load(tmp_path / "net.h5")
    assert_same_bits([loaded(x).numpy()], [expected])
    assert loaded(x[:2]).shape == (2, 2)


def test_layers_inside_an_unknown_class_are_themselves(tmp_path: Path) -> None:
    class Net(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.Dense(3, activation="tanh")
            self.rest = [layers.BatchNorm(), layers.Dense(1)]

        def __call__(self, x: Any, training: bool = False) -> Any:
            y = self.rest[0](self.first(x), training=training)
            return self.rest[1](y) + gt.sum(x)

    net = Net()
    x = np.random.default_rng(0).standard_normal((4, 2)).astype("float32")
    net(x, training=True)
    gt.save(net, tmp_path / "net.h5")
    loaded = gt.load(tmp_path / "net.h5")
    assert type(loaded.rest[0]) is layers.BatchNorm
    for training in (True, False):
        assert_same_bits(
            [loaded(x, training=training).numpy()], [net(x, training=training).numpy()]
        )
    assert_same_bits([v.numpy() for v in loaded.variables], [v.numpy() for v in net.variables])
    report = gt.saving.verify(tmp_path / "net.h5")
    assert report.ok, report.table()


def test_a_subclass_of_a_layer_is_an_unknown_class(tmp_path: Path) -> None:
    class Scale(layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.factor = self.add_weight((input_shape[-1],), "ones", "factor")

        def call(self, x: Any) -> Any:
            return x * self.factor

    net = layers.Sequential([Scale(), layers.Dense(2)])
    x = np.ones((3, 4), "float32")
    net(x)
    gt.save(net, tmp_path / "net.h5")
    loaded = gt.load(tmp_path / "net.h5")
    assert type(loaded) is layers.Sequential
    assert loaded.layers[0].class_name == "Scale"
    assert_same_bits([loaded(x).numpy()], [net(x).numpy()])


def test_training_traces_of_layers_verify(tmp_path: Path) -> None:
    net = model()
    train(net, gt.training.SGD(0.05), batches(1))
    gt.save(net, tmp_path / "net.h5")
    report = gt.saving.verify(tmp_path / "net.h5")
    assert report.ok, report.table()
    samples = [check.case for check in report.checks if check.function == "net.__call__"]
    modes = ("False", "True")
    assert samples == [f"x ({n}, 5), training={x}, mask=None" for x in modes for n in (3, 2, 1)]


def test_a_layer_that_was_not_built_yet_can_be_saved(tmp_path: Path) -> None:
    net = layers.Sequential([layers.Dense(2), layers.BatchNorm()])
    gt.save(net, tmp_path / "net.h5")
    assert gt.load(tmp_path / "net.h5")(np.ones((1, 3), "float32")).shape == (1, 2)


@pytest.mark.parametrize("kind", ["floats", "integers"])
def test_a_learning_rate_schedule_is_saved_as_a_graph(kind: str, tmp_path: Path) -> None:
    def by_division(step: Any) -> Any:
        return 0.1 / (1.0 + step)

    def by_table(step: Any) -> Any:
        return gt.take(gt.constant([0.1, 0.01, 0.001, 0.0001]), step)

    schedule = {"floats": by_division, "integers": by_table}[kind]
    trainer = Trainer(layers.Dense(3), gt.training.SGD(schedule))
    data = batches(4)

    def train_dense(trainer: Any, data: Any) -> list[Any]:
        for x, _ in data:
            with gt.GradientTape() as tape:
                loss = gt.sum(gt.square(trainer.net(x)))
            variables = trainer.net.trainable_variables
            trainer.optimizer.apply_gradients(
                zip(tape.gradient(loss, variables), variables, strict=True)
            )
        return [v.numpy() for v in variables]

    train_dense(trainer, data[:2])
    gt.save(trainer, tmp_path / "a.h5")
    loaded = gt.load(tmp_path / "a.h5")
    assert_same_bits(train_dense(loaded, data[2:]), train_dense(trainer, data[2:]))
