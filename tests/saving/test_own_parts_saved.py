"""Layers, losses, metrics, schedules and rules of one's own, saved with and without classes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers, training
from gradtape.core.extend import hookimpl, saved_classes

RNG = np.random.default_rng(11)
X = RNG.normal(size=(44, 6, 3)).astype("float32")
Y = (X[:, :, :1] - 0.5 * X[:, :, 1:2]).astype("float32")
WEIGHTS = RNG.uniform(0.5, 2.0, 44).astype("float32")


class Gated(layers.Layer, saved_as="mine.Gated"):
    def __init__(self, units: int, power: float = 1.0, **rest: Any) -> None:
        super().__init__(**rest)
        self.units, self.power = units, power

    def build(self, input_shape: Any) -> None:
        shape = (input_shape[-1], self.units)
        self.value = self.add_weight(shape, Filled(0.3), "value", regularizer=Cubes(0.01))
        self.gate = self.add_weight(shape, "glorot_uniform", "gate", constraint=Bounded(0.4))
        self.seen = self.add_weight((), "zeros", "seen", trainable=False)

    def call(self, x: Any, training: bool = False) -> Any:
        if training:
            self.seen.assign_add(1.0)
            self.add_loss(0.001 * gt.mean(x * x))
        return (x @ self.value) * gt.tanh(x @ self.gate) ** self.power

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "units": self.units, "power": self.power}


class Masking(layers.Layer, saved_as="mine.Masking"):
    """Hides the steps whose first number is negative."""

    def call(self, x: Any) -> Any:
        return x

    def compute_mask(self, x: Any, mask: Any = None) -> Any:
        return x[..., 0] > -1.0


class Cubes(layers.regularizers.Regularizer):
    def __init__(self, share: float) -> None:
        self.share = share

    def __call__(self, weight: Any) -> Any:
        return self.share * gt.sum(gt.abs(weight) ** 3)

    def get_config(self) -> dict[str, Any]:
        return {"share": self.share}


class Bounded(layers.constraints.Constraint):
    def __init__(self, limit: float) -> None:
        self.limit = limit

    def __call__(self, weight: Any) -> Any:
        return gt.clip(weight, -self.limit, self.limit)

    def get_config(self) -> dict[str, Any]:
        return {"limit": self.limit}


class Filled(layers.initializers.Initializer):
    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = "float32") -> Any:
        return np.linspace(0.1, self.value, int(np.prod(shape)), dtype=dtype).reshape(shape)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


class Powers(training.losses.Loss):
    def __init__(self, power: float = 2.0, **rest: Any) -> None:
        super().__init__(**rest)
        self.power = power

    def call(self, y_true: Any, y_pred: Any) -> Any:
        return gt.mean(gt.abs(y_true - y_pred) ** self.power, axis=-1)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "power": self.power}


class Largest(training.metrics.Metric, saved_as="mine.Largest"):
    def __init__(self, start: float = 0.0, name: str | None = None) -> None:
        super().__init__(name)
        self.start = start
        self.largest = self.add_weight((), "zeros", name="largest")

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        errors = gt.max(gt.abs(y_true - y_pred), axis=-1)
        if sample_weight is not None:
            if sample_weight.ndim == 1:  # of examples, not of steps
                sample_weight = sample_weight[:, None]
            errors = gt.where(sample_weight > 0, errors, 0.0)
        self.largest.assign(gt.maximum(self.largest, gt.max(errors).astype("float64")))

    def result(self) -> Any:
        return self.largest.value + self.start

    def get_config(self) -> dict[str, Any]:
        return {"start": self.start, "name": self.name}


class Warmup(training.schedules.LearningRateSchedule, saved_as="mine.Warmup"):
    def __init__(self, peak: float, name: str | None = None) -> None:
        super().__init__(name)
        self.peak = peak

    def call(self, step: Any) -> Any:
        return self.peak * gt.minimum(1.0, (step + 1.0) / 9.0)


class Plugin:
    @staticmethod
    @hookimpl
    def gradtape_modules() -> Any:
        found = saved_classes(globals())
        return {name: x for name, x in found.items() if name.startswith("mine.")}

    @staticmethod
    @hookimpl
    def gradtape_names() -> Any:
        return {
            "regularizer": {"mine.Cubes": Cubes},
            "constraint": {"mine.Bounded": Bounded},
            "initializer": {"mine.Filled": Filled},
        }


def random_root(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    gt.random.set_seed(seed)
    root = gt.Module("root")
    inner: list[Any] = [
        Gated(4, power=float(rng.integers(1, 3))),
        layers.Dense(
            3,
            activation=(None, "relu", lambda x: gt.sin(x) + x)[int(rng.integers(3))],
            kernel_initializer=Filled(0.5),
            kernel_regularizer=Cubes(0.02),
            bias_constraint=Bounded(0.1),
        ),
        layers.Dropout(0.2, seed=3),
    ]
    inner = [inner[i] for i in rng.permutation(3)]
    if rng.random() < 0.5:
        inner.insert(0, Masking())
    if rng.random() < 0.5:
        inner = [layers.Sequential(inner[:-1]), inner[-1]]
    if rng.random() < 0.5:
        place = gt.Input((6, 3))
        out: Any = place
        for layer in [*inner, layers.Dense(1)]:
            out = layer(out)
        root.model = gt.Model(place, out)
    else:
        root.model = layers.Sequential([*inner, layers.Dense(1)])
    root.optimizer = training.RMSprop(Warmup(0.02))
    return root


def train(root: Any, metric: Any, **options: Any) -> dict[str, list[float]]:
    given = {"loss": Powers(1.5), "epochs": 2, "batch_size": 11, "seed": 4, "verbose": 0}
    return training.fit(
        root.model,
        (X, Y, WEIGHTS),
        optimizer=root.optimizer,
        metrics=[metric],
        weighted_metrics=[Largest(1.0, name="weighted")],
        **{**given, **options},
    ).history


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_model_of_own_parts_trains_on_as_the_live_one(
    seed: int, compiled: bool, tmp_path: Path
) -> None:
    root = random_root(seed)
    train(root, Largest(), compile=compiled)
    gt.save(root, tmp_path / "root.h5")
    loaded = gt.load(tmp_path / "root.h5")
    expected = train(root, Largest(), compile=compiled)
    found = train(loaded, Largest(), compile=compiled)
    assert expected.keys() == found.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5)
    for one, two in zip(loaded.model.variables, root.model.variables, strict=True):
        np.testing.assert_allclose(one.numpy(), two.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_with_their_classes_the_parts_are_objects_of_them(seed: int, tmp_path: Path) -> None:
    with gt.register_plugin(Plugin(), "mine"):
        root = random_root(seed)
        root.metric = Largest(2.0)
        train(root, root.metric, compile=True)
        gt.save(root, tmp_path / "root.h5")
        loaded = gt.load(tmp_path / "root.h5")
        kinds = {type(x).__name__: x for x in (loaded, *loaded.submodules)}
        assert {"Gated", "Largest", "Warmup"} < kinds.keys()
        assert all(kinds[x] in [*loaded.submodules] for x in ("Gated", "Largest", "Warmup"))
        assert type(kinds["Gated"]) is Gated
        assert (loaded.metric.start, loaded.optimizer.learning_rate.peak) == (2.0, 0.02)
        dense = kinds["Dense"]
        assert train(loaded, loaded.metric, compile=True) == train(root, root.metric, compile=True)
        assert dense.trainable
    with pytest.raises(gt.saving.MissingPlugin, match=r"mine\.\w+"):
        gt.load(tmp_path / "root.h5")


@pytest.mark.parametrize(
    "rate",
    [
        lambda: Warmup(0.1),
        lambda: lambda step: 0.1 / (1.0 + step * 0.37),
        lambda: training.schedules.PiecewiseConstantDecay([3], [0.1, 0.01]),
    ],
)
@pytest.mark.parametrize("kind", [training.SGD, type("Mine", (training.SGD,), {})])
def test_a_loaded_rate_is_the_live_one_at_every_step(
    rate: Callable[[], Any], kind: Any, tmp_path: Path
) -> None:
    root = gt.Module("root")
    root.optimizer = kind(rate())  # never called
    gt.save(root, tmp_path / "root.h5")
    found = gt.load(tmp_path / "root.h5").optimizer.learning_rate
    live = root.optimizer.learning_rate
    for step in (0, 1, 3, 4, 2**25 + 1):
        assert float(found(step)) == float(live(step))
        counted = gt.constant(step, dtype="int64")  # as compiled steps call it
        assert float(found(counted)) == float(live(counted))


@pytest.mark.parametrize("called", [True, False])
def test_a_metric_without_its_class_is_refused_with_what_to_do(
    called: bool, tmp_path: Path
) -> None:
    root = random_root(0)
    root.metric = Largest()
    train(root, root.metric)
    if called:
        root.metric(Y, Y + 1)
    gt.save(root, tmp_path / "root.h5")
    loaded = gt.load(tmp_path / "root.h5")
    assert loaded.metric.largest.item() == root.metric.largest.item()
    with pytest.raises(TypeError, match=r"Largest and has no 'update_state'.*gradtape_modules"):
        train(loaded, loaded.metric)
    if called:  # a loop of one's own may go on with it
        assert loaded.metric(Y, Y + 9).item() == pytest.approx(9.0, rel=1e-5)


def test_a_loss_in_a_module_is_said_to_be_missing(tmp_path: Path) -> None:
    root = gt.Module("root")
    root.loss = Powers()
    with pytest.warns(UserWarning, match=r"not saved: root\.loss \(an object of class Powers\)"):
        gt.save(root, tmp_path / "root.h5")
    assert Powers.from_config(Powers(3.0).get_config()).power == 3.0


def test_a_name_in_files_that_no_plugin_provides_gives_a_warning(tmp_path: Path) -> None:
    schedule = Warmup(0.1)
    words = r"no plugin provides Warmup \('mine\.Warmup'\).*register_plugin"
    with pytest.warns(UserWarning, match=words):
        gt.save(schedule, tmp_path / "rate.h5")
    with gt.register_plugin(Plugin(), "mine"), warnings.catch_warnings():
        warnings.simplefilter("error")
        gt.save(schedule, tmp_path / "rate.h5")
    with pytest.raises(gt.saving.MissingPlugin, match=r"first import the code that registers it"):
        gt.load(tmp_path / "rate.h5")
