"""What all optimizers take beside their formulas, beside what Keras 3 gave after 20 steps."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import SGD, Adam, AdamW, optimizers, schedules

RANDOM = np.random.default_rng(0)
KERNEL, BIAS = (RANDOM.standard_normal(n).astype("float32") for n in (3, 2))
GRADIENTS = [
    tuple([RANDOM.standard_normal(n).astype("float32") for n in (3, 2)]) for _ in range(20)
]

#: The optimizer; its settings beside a learning rate of 0.05 (or a schedule from it); the words of
#: names that do not decay; Keras' weights; and what they are at the end with averages.
KERAS: list[tuple[str, dict[str, Any], list[str], list[float], list[float] | None]] = [
    (
        "SGD",
        {"weight_decay": 0.1},
        ["bias"],
        [0.22243102, -0.40141588, 0.32670048, 0.238161, -0.68942094],
        None,
    ),
    (
        "SGD",
        {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1},
        [],
        [1.34486592, -1.67215264, -0.8919965, 0.01321416, -1.32425833],
        None,
    ),
    (
        "AdamW",
        {"weight_decay": 0.1},
        ["bias"],
        [0.42472881, -0.3976922, 0.45601696, 0.11180611, -0.55031037],
        None,
    ),
    ("AdamW", {}, [], [0.45059878, -0.42551559, 0.51576555, 0.11129764, -0.5483886], None),
    (
        "Lion",
        {"weight_decay": 0.2},
        ["bias"],
        [0.36511219, -0.29971668, 0.31630296, 0.20490012, -0.83566946],
        None,
    ),
    (
        "RMSprop",
        {"weight_decay": 0.1, "centered": True},
        ["kernel"],
        [0.41353422, -0.54514277, 0.30041075, 0.21581897, -0.56456691],
        None,
    ),
    (
        "Adam",
        {"use_ema": True, "ema_momentum": 0.9},
        [],
        [0.45171466, -0.426723, 0.51837814, 0.11180611, -0.55031037],
        [0.32775038, -0.33214721, 0.61703414, 0.10692511, -0.50211155],
    ),
    (
        "Adam",
        {"use_ema": True},
        [],
        [0.45171466, -0.426723, 0.51837814, 0.11180611, -0.55031037],
        [0.11706773, -0.20735671, 0.60058653, 0.14940849, -0.48541263],
    ),
    (
        "SGD",
        {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 6, "momentum": 0.5},
        [],
        [0.23157141, -0.51082432, 0.35576046, 0.24189676, -0.61589599],
        [0.30273476, -0.41864985, 0.32858065, 0.09257238, -0.62606287],
    ),
    (
        "Adam",
        {"gradient_accumulation_steps": 4},
        [],
        [0.31691459, -0.2895757, 0.65589231, 0.09056316, -0.57550067],
        None,
    ),
    (
        "AdamW",
        {"gradient_accumulation_steps": 3, "clipnorm": 0.5, "weight_decay": 0.1},
        ["bias"],
        [0.36323652, -0.327223, 0.69724184, 0.1358577, -0.5232017],
        None,
    ),
    (
        "Adagrad",
        {"gradient_accumulation_steps": 2, "global_clipnorm": 0.5},
        [],
        [0.20301951, -0.19631225, 0.62123406, 0.11595823, -0.57543236],
        None,
    ),
    (
        "Nadam",
        {"gradient_accumulation_steps": 5, "schedule": True},
        [],
        [0.19689478, -0.21332595, 0.64713687, 0.13416767, -0.5364297],
        None,
    ),
    (
        "Adamax",
        {"clipvalue": 0.3, "weight_decay": 0.1},
        ["bias"],
        [0.24107938, -0.21395554, 0.58019298, 0.11248445, -0.67744815],
        None,
    ),
    (
        "Adadelta",
        {"clipnorm": 0.3},
        [],
        [0.12578246, -0.13229918, 0.64019322, 0.10518874, -0.53594005],
        None,
    ),
    (
        "RMSprop",
        {"global_clipnorm": 0.7, "momentum": 0.5},
        [],
        [0.61688554, -0.6080119, 0.22327781, 0.35557923, -0.74460179],
        None,
    ),
]
each_case = pytest.mark.parametrize(("name", "settings", "words", "expected", "final"), KERAS)


class Root(gt.Module):
    """A kernel and a bias with an optimizer, as Keras had them."""

    def __init__(self, name: str, settings: dict[str, Any], words: list[str]) -> None:
        super().__init__()
        settings = dict(settings)
        decay = schedules.ExponentialDecay(0.05, 10, 0.5)
        rate = decay if settings.pop("schedule", False) else 0.05
        self.kernel, self.bias = gt.Variable(KERNEL, name="kernel"), gt.Variable(BIAS, name="bias")
        self.optimizer = getattr(optimizers, name)(rate, **settings)
        if words:
            self.optimizer.exclude_from_weight_decay(var_names=words)


def step(root: Any, gradients: Any) -> None:
    root.optimizer.apply_gradients(zip(gradients, (root.kernel, root.bias), strict=True))


def weights(root: Any) -> Any:
    return np.concatenate([root.kernel.numpy(), root.bias.numpy()])


def state(root: Any) -> dict[str, bytes]:
    return {path: v.numpy().tobytes() for path, v in root.named_variables.items()}


@each_case
def test_twenty_steps_are_keras(
    name: str, settings: Any, words: Any, expected: Any, final: Any
) -> None:
    eager, traced = (Root(name, settings, words) for _ in range(2))
    traced.optimizer.build([traced.kernel, traced.bias])
    compiled = gt.function(lambda a, b: step(traced, (a, b)))
    for gradients in GRADIENTS:
        step(eager, gradients)
        compiled(*map(gt.constant, gradients))
        np.testing.assert_allclose(weights(traced), weights(eager), rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(weights(eager), expected, rtol=1e-5, atol=2e-6)
    for root in (eager, traced):
        root.optimizer.finalize_variable_values([root.kernel, root.bias])
        np.testing.assert_allclose(weights(root), final or expected, rtol=1e-5, atol=2e-6)


@each_case
def test_saved_on_the_way_they_go_on_bit_by_bit(
    name: str, settings: Any, words: Any, expected: Any, final: Any, tmp_path: Path
) -> None:
    root = Root(name, settings, words)
    for gradients in GRADIENTS[:7]:
        step(root, gradients)
    gt.save(root, tmp_path / "root.h5", golden=False)
    gt.training.Checkpoint(root=root).save(tmp_path / "state.h5")
    restored = Root(name, settings, words)
    gt.training.Checkpoint(root=restored).restore(tmp_path / "state.h5")
    others = [gt.load(tmp_path / "root.h5"), restored, copy.deepcopy(root)]
    for gradients in GRADIENTS[7:]:
        for one in (root, *others):
            step(one, gradients)
    for other in others:
        assert state(other) == state(root)
        configs = [one.optimizer.get_config() for one in (other, root)]
        if "schedule" in settings:
            for config in configs:
                config["learning_rate"] = config["learning_rate"].get_config()
        assert configs[0] == configs[1]


@each_case
@pytest.mark.parametrize("executor", ["planned", "fused"])
def test_other_executors_do_the_same_steps(
    name: str, settings: Any, words: Any, expected: Any, final: Any, executor: str
) -> None:
    if executor == "fused":
        pytest.importorskip("llvmlite")
    root = Root(name, settings, words)
    root.optimizer.build([root.kernel, root.bias])
    compiled = gt.function(lambda a, b: step(root, (a, b)), executor=executor)
    for gradients in GRADIENTS:
        compiled(*map(gt.constant, gradients))
    np.testing.assert_allclose(weights(root), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("size", [50, 100_000])
def test_large_variables_do_the_steps_of_small_ones(size: int) -> None:
    random = np.random.default_rng(1)
    start = random.standard_normal(size).astype("float32")
    options = {"weight_decay": 0.1, "use_ema": True, "gradient_accumulation_steps": 2}
    whole, parts = AdamW(0.1, **options), AdamW(0.1, **options)
    one, several = gt.Variable(start), [gt.Variable(x) for x in np.split(start, 10)]
    for _ in range(5):
        gradient = random.standard_normal(size).astype("float32")
        whole.apply_gradients([(gradient, one)])
        parts.apply_gradients(zip(np.split(gradient, 10), several, strict=True))
    assert np.concatenate([v.numpy() for v in several]).tobytes() == one.numpy().tobytes()
    means = np.concatenate([v.numpy() for v in parts.weight_averages])
    assert means.tobytes() == whole.weight_averages[0].numpy().tobytes()


def test_adamw_is_pytorchs() -> None:
    torch = pytest.importorskip("torch")
    mine, theirs = gt.Variable(KERNEL), torch.nn.Parameter(torch.tensor(KERNEL))
    one = AdamW(0.05, weight_decay=0.1, epsilon=0.0)
    two = torch.optim.AdamW([theirs], 0.05, weight_decay=0.1, eps=0.0)
    for gradient, _ in GRADIENTS:
        one.apply_gradients([(gradient, mine)])
        theirs.grad = torch.tensor(gradient)
        two.step()
        np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol=2e-6)


# -- what decays -----------------------------------------------------------------------------------


def test_variables_are_excluded_from_weight_decay_and_stay_so_in_files(tmp_path: Path) -> None:
    root = Root("SGD", {"weight_decay": 1.0}, [])
    root.optimizer.exclude_from_weight_decay([root.bias])
    with pytest.raises(ValueError, match=r"\['bias'\] are excluded .* do a step first"):
        root.optimizer.get_config()
    zeros = np.zeros(3), np.zeros(2)
    step(root, zeros)
    np.testing.assert_allclose(weights(root), [*KERNEL * 0.95, *BIAS], rtol=1e-6)
    gt.save(root, tmp_path / "root.h5", golden=False)
    for twin in (
        gt.load(tmp_path / "root.h5"),
        pickle.loads(pickle.dumps(gt.load(tmp_path / "root.h5"))),
    ):
        step(twin, zeros)
        np.testing.assert_allclose(weights(twin), [*KERNEL * 0.9025, *BIAS], rtol=1e-6)
    config = json.loads(json.dumps(root.optimizer.get_config()))
    assert config["excluded_from_weight_decay"] == {"names": [], "places": [1]}
    assert SGD.from_config(config).get_config() == config


def test_exclusions_come_before_the_first_step() -> None:
    optimizer, w = SGD(0.1, weight_decay=0.1), gt.Variable(1.0)
    for bad in ({"var_names": "bias"}, {"var_names": [3]}, {"var_list": w}, {"var_list": ["w"]}):
        with pytest.raises(TypeError, match="exclude_from_weight_decay: var_"):
            optimizer.exclude_from_weight_decay(**bad)  # type: ignore[arg-type]
    optimizer.apply_gradients([(1.0, w)])
    with pytest.raises(ValueError, match="call it before the first step"):
        optimizer.exclude_from_weight_decay(var_names=["w"])


def test_weight_decay_can_be_changed() -> None:
    optimizer, w = SGD(1.0), gt.Variable(4.0)
    optimizer.weight_decay = 0.5
    optimizer.apply_gradients([(0.0, w)])
    optimizer.weight_decay = None
    optimizer.apply_gradients([(0.0, w)])
    assert w.item() == 2.0


# -- gathering and averages ------------------------------------------------------------------------


def test_gradients_are_gathered_for_one_update() -> None:
    optimizer, w = SGD(1.0, gradient_accumulation_steps=2), gt.Variable([0.0])
    seen = []
    for gradient in (1.0, 3.0, 5.0, 7.0):
        optimizer.apply_gradients([([gradient], w)])
        seen.append((w.numpy().tolist(), optimizer.gradient_sums[0].numpy().tolist()))
    assert seen == [([0.0], [1.0]), ([-2.0], [0.0]), ([-2.0], [5.0]), ([-8.0], [0.0])]
    assert optimizer.iterations.item() == 4


def test_a_refused_update_keeps_what_was_gathered() -> None:
    optimizer, w = SGD(10.0, gradient_accumulation_steps=2), gt.Variable(np.float32([0.0]))
    optimizer.apply_gradients([([1.0], w)])
    with np.errstate(all="raise"), pytest.raises(FloatingPointError):
        optimizer.apply_gradients([([3e38], w)])
    optimizer.apply_gradients([([3.0], w)])
    assert w.numpy().tolist() == [-20.0]
    assert optimizer.iterations.item() == 2


def test_options_that_have_slots_are_given_when_it_is_made() -> None:
    optimizer = Adam()
    for name, value in (("use_ema", True), ("gradient_accumulation_steps", 2)):
        with pytest.raises(
            AttributeError, match=f"Adam: {name} can only be set in the constructor"
        ):
            setattr(optimizer, name, value)
    assert optimizer.slots == Adam.slots


def test_without_averages_there_is_nothing_to_finalize() -> None:
    optimizer, w = SGD(1.0), gt.Variable(1.0)
    optimizer.apply_gradients([(1.0, w)])
    optimizer.finalize_variable_values([w])
    assert w.item() == 0.0


def test_only_options_that_are_set_are_in_the_configuration() -> None:
    assert list(SGD().get_config()) == ["learning_rate", "name", "momentum", "nesterov"]
    given = {"weight_decay": 0.5, "use_ema": True, "gradient_accumulation_steps": 3}
    config = SGD(**given).get_config()  # type: ignore[arg-type]
    assert {key: config[key] for key in given} == given
    assert "ema_momentum" not in config


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weight_decay": -1.0}, "weight_decay must not be negative, got -1.0"),
        ({"weight_decay": float("nan")}, "weight_decay must not be negative, got nan"),
        ({"use_ema": True, "ema_momentum": 1.5}, r"ema_momentum must be in \[0, 1\], got 1.5"),
        ({"ema_momentum": 0.5}, "ema_momentum needs averages of weights: set use_ema=True"),
        (
            {"use_ema": True, "ema_overwrite_frequency": 0},
            "an integer of at least 1, or None, got 0",
        ),
        ({"gradient_accumulation_steps": 1}, "an integer of at least 2, or None, got 1"),
        ({"gradient_accumulation_steps": 2.5}, "an integer of at least 2, or None, got 2.5"),
    ],
)
def test_options_out_of_range(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"SGD: .*{message}"):
        SGD(0.1, **options)


def test_fit_ends_with_the_averages() -> None:
    x = np.linspace(0, 1, 32, dtype="float32")[:, None]
    model = gt.layers.Sequential([gt.layers.Dense(1, kernel_initializer="ones")])
    optimizer = SGD(0.1, use_ema=True, ema_momentum=0.9)
    gt.training.fit(model, (x, 3 * x), loss="mse", optimizer=optimizer, epochs=3, verbose=False)
    for variable, mean in zip(model.trainable_variables, optimizer.weight_averages, strict=True):
        assert variable.numpy().tobytes() == mean.numpy().tobytes()


def tower() -> Any:
    inner = gt.layers.Sequential(
        [gt.layers.Dense(2, name="narrow"), gt.layers.LayerNormalization(name="layer_norm")],
        name="encoder",
    )
    model = gt.layers.Sequential([inner, gt.layers.Dense(1, name="head")])
    model(np.ones((2, 3), "float32"))
    return model


@pytest.mark.parametrize("words", [["layer_norm"], ["layers/1"], ["encoder"], ["beta", "gamma"]])
@pytest.mark.parametrize("loop", ["fit", "own", "traced"])
def test_variables_are_excluded_by_layers_and_paths(words: list[str], loop: str) -> None:
    model = tower()
    before = {path: x.numpy().copy() for path, x in model.named_variables.items()}
    optimizer = gt.training.AdamW(0.1, weight_decay=0.5)
    known = None if loop == "fit" else model
    optimizer.exclude_from_weight_decay(var_names=words, model=known)
    variables = model.trainable_variables
    if loop == "fit":
        data = (np.zeros((4, 3), "float32"), np.zeros((4, 1), "float32"))
        zero = {"loss": lambda y, p: gt.sum(p * 0.0, axis=-1), "verbose": 0}
        gt.training.fit(model, data, optimizer=optimizer, **zero)
    else:

        def step() -> None:
            optimizer.apply_gradients([(gt.zeros_like(v.value), v) for v in variables])

        (gt.function(step) if loop == "traced" else step)()
    names = {
        "layers/0/layers/0/kernel": "encoder/narrow/kernel",
        "layers/0/layers/1/gamma": "encoder/layer_norm/gamma",
        "layers/1/kernel": "head/kernel",
    }
    for path, label in names.items():
        kept = any(word in path or word in label for word in words)
        same = np.array_equal(model.named_variables[path].numpy(), before[path])
        assert same == kept, path


def test_a_string_that_excludes_nothing_is_refused_at_the_first_step() -> None:
    model, optimizer = tower(), gt.training.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["bias", "layer_nrom"])
    pairs = [(gt.zeros_like(v.value), v) for v in model.trainable_variables]
    with pytest.raises(ValueError, match=r"'layer_nrom', which is in no name.*gamma.*pass model="):
        optimizer.apply_gradients(pairs)
    optimizer.exclude_from_weight_decay(var_names=["layer_norm"], model=model)
    optimizer.apply_gradients(pairs)
    np.testing.assert_array_equal(model.named_variables["layers/0/layers/1/gamma"], [1.0, 1.0])


@pytest.mark.parametrize("built", ["nothing", "backbone"])
@pytest.mark.parametrize("words", [["head"], ["encoder", "head"], ["layers/1"]])
@pytest.mark.parametrize("loop", ["fit", "own"])
def test_layers_that_are_built_later_are_excluded_too(
    loop: str, words: list[str], built: str
) -> None:
    inner = gt.layers.Sequential([gt.layers.Dense(2, name="narrow")], name="encoder")
    model: Any = gt.layers.Sequential([inner, gt.layers.Dense(1, name="head")])
    x = np.ones((4, 3), "float32")
    if built == "backbone":
        inner(x)
    optimizer = gt.training.AdamW(0.1, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=words, model=model)
    if loop == "own":
        model(x)
        optimizer.apply_gradients([(gt.zeros_like(v.value), v) for v in model.trainable_variables])
    else:
        zero = {"loss": lambda y, p: gt.sum(p * 0.0, axis=-1), "verbose": 0}
        gt.training.fit(model, (x, x[:, :1]), optimizer=optimizer, **zero)
    weights = [model.layers[0].layers[0].kernel, model.layers[1].kernel]
    before = [v.numpy().copy() for v in weights]
    optimizer.apply_gradients([(gt.zeros_like(v.value), v) for v in model.trainable_variables])
    kept = [np.array_equal(a, v.numpy()) for a, v in zip(before, weights, strict=True)]
    assert kept == [words[0] == "encoder", True]


def test_variables_of_later_steps_are_excluded_too() -> None:
    body, head = gt.layers.Dense(2, name="body"), gt.layers.Dense(1, name="head")
    model: Any = gt.layers.Sequential([body, head])
    optimizer = gt.training.SGD(0.5, weight_decay=0.5)
    optimizer.exclude_from_weight_decay(var_names=["body"], model=model)
    model.layers[1](np.ones((1, 2), "float32"))
    with pytest.raises(ValueError, match=r"'body', which is in no name") as told:
        optimizer.build(model.trainable_variables)
    assert "pass model=" not in str(told.value)
    optimizer.exclude_from_weight_decay(var_names=["layers"], model=model)
    optimizer.build(model.trainable_variables)
    model(np.ones((1, 3), "float32"))
    kernel = model.layers[0].kernel
    before = kernel.numpy().copy()
    optimizer.apply_gradients([(gt.zeros_like(kernel.value), kernel)])
    np.testing.assert_array_equal(kernel, before)


def test_a_frozen_layer_counts_as_one_that_is_there() -> None:
    model, optimizer = tower(), gt.training.AdamW(0.1, weight_decay=0.5)
    model.layers[0].trainable = False
    optimizer.exclude_from_weight_decay(var_names=["layer_norm"])
    data = (np.zeros((4, 3), "float32"), np.zeros((4, 1), "float32"))
    gt.training.fit(model, data, loss="mse", optimizer=optimizer, verbose=0)


def test_layers_excluded_by_name_stay_so_in_files(tmp_path: Path) -> None:
    root = gt.Module()
    root.model, root.optimizer = tower(), gt.training.SGD(0.5, weight_decay=0.5)
    root.optimizer.exclude_from_weight_decay(var_names=["layer_norm"], model=root.model)
    for _ in range(2):
        variables = root.model.trainable_variables
        pairs = [(gt.zeros_like(v.value), v) for v in variables]
        root.optimizer.apply_gradients(pairs)
        np.testing.assert_array_equal(root.model.layers[0].layers[1].gamma, [1.0, 1.0])
        gt.save(root, tmp_path / "root.h5")
        root = gt.load(tmp_path / "root.h5")


def test_lists_that_serve_many_models_are_taken() -> None:
    model, optimizer = tower(), gt.training.AdamW(0.1, weight_decay=0.5)
    words = ["LayerNorm", "layer_norm", "bias", "beta"]
    optimizer.exclude_from_weight_decay(var_names=words, model=model)
    before = {path: v.numpy().copy() for path, v in model.named_variables.items()}
    optimizer.apply_gradients([(gt.zeros_like(v.value), v) for v in model.trainable_variables])
    for path, variable in model.named_variables.items():
        if path.endswith(("bias", "gamma", "beta")):
            np.testing.assert_array_equal(variable, before[path])
        else:
            assert (variable.numpy() != before[path]).any()
    alone = gt.training.AdamW(0.1, weight_decay=0.5)
    alone.exclude_from_weight_decay(var_names=["bias", "gamma"])
    w = gt.Variable(1.0, name="w")
    alone.apply_gradients([(gt.constant(0.0), w)])
