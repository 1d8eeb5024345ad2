"""An optimizer of one's own comes back from a file and trains on, also without its class."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import run_isolated
from rewriting import Draft, rewritten

import gradtape as gt
from gradtape import layers, training
from gradtape.core.extend import hookimpl, saved_classes
from gradtape.training.optimizers import by_blocks

RNG = np.random.default_rng(7)
X = RNG.normal(size=(50, 4)).astype("float32")
Y = (X[:, :1] * 2.0 - 0.5).astype("float32")


class Warmup(training.schedules.LearningRateSchedule):
    """A schedule of one's own, which no plugin provides."""

    def __init__(self, peak: float, name: str | None = None) -> None:
        super().__init__(name)
        self.peak = peak

    def call(self, step: Any) -> Any:
        return self.peak * gt.minimum(1.0, (step + 1.0) / 7.0)


class Waves(gt.Module):
    """A module that is no schedule, as a learning rate."""

    def __call__(self, step: Any) -> Any:
        return 0.01 + 0.005 * gt.sin(gt.cast(step, "float64"))


RATES: list[Callable[[], Any]] = [
    lambda: 0.02,
    lambda: Warmup(0.03),
    lambda: Waves(),
    lambda: training.schedules.CosineDecay(0.03, 40),
    lambda: lambda step: 0.03 / (1.0 + 0.1 * step),
]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"clipnorm": 0.5},
    {"clipvalue": 0.1},
    {"global_clipnorm": 0.4},
    {"weight_decay": 0.05},
    {"use_ema": True, "ema_momentum": 0.8, "ema_overwrite_frequency": 3},
    {"gradient_accumulation_steps": 2},
    {"weight_decay": 0.1, "use_ema": True, "gradient_accumulation_steps": 3, "clipnorm": 0.3},
]


def plain(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
    return value - settings[0] * gradient * self.factor, state


def momentum(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
    velocity = state[0] * self.factor + gradient
    return value - settings[0] * velocity, (velocity,)


def signs(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
    rate, share = settings
    mean = state[0] * share + gradient * (1.0 - share)
    return value - rate * gt.sign(mean), (mean,)


def corrected(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
    rate, first, second = settings
    m = state[0] + (gradient - state[0]) * 0.1
    v = state[1] + (gradient * gradient - state[1]) * (1.0 - self.factor)
    return value - (m * first) * rate / (gt.sqrt(v * second) + 1e-6), (m, v)


def normed(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
    """Is not elementwise: it depends on the shape too."""
    step = gradient / (gt.linalg.norm(gradient) + 1e-3)
    if len(value.shape) == 2:
        step = step - self.factor * 0.1 * gt.mean(step, axis=0, keepdims=True)
    return value - settings[0] * step, state


def settings_of_signs(self: Any, rate: Any, step: Any) -> Any:
    return rate, self.factor  # one of them is a Python number


def settings_of_corrected(self: Any, rate: Any, step: Any) -> Any:
    return rate, 1.0 / (1.0 - 0.9**step), 1.0 / (1.0 - self.factor**step)


FORMULAS: list[tuple[Any, Any, tuple[str, ...], bool]] = [
    (plain, None, (), True),
    (momentum, None, ("velocity",), True),
    (signs, settings_of_signs, ("means",), False),
    (corrected, settings_of_corrected, ("first", "second"), False),
    (normed, None, (), False),
]


def random_optimizer(seed: int) -> Any:
    """Return an optimizer of a class that is made here, with options of all kinds."""
    rng = np.random.default_rng(seed)
    update, settings, slots, marks = FORMULAS[seed % len(FORMULAS)]
    body: dict[str, Any] = {"slots": slots, "update": by_blocks(update) if marks else update}
    if settings is not None:
        body["settings"] = settings
    options = dict(OPTIONS[int(rng.integers(len(OPTIONS)))])
    if options and rng.random() < 0.3:
        body |= options  # a class may state them
        options = {}
    made = type(f"Own{seed}", (training.Optimizer,), body)(
        RATES[int(rng.integers(len(RATES)))](), **options
    )
    made.factor = 0.5
    if "weight_decay" in (*options, *body):
        made.exclude_from_weight_decay(var_names=["bias"])
    made.factor = 0.9  # changed after construction
    return made


def train(root: Any, **options: Any) -> Any:
    given = {"loss": "mse", "epochs": 2, "batch_size": 8, "seed": 3, "verbose": 0, **options}
    return training.fit(root.model, (X, Y), optimizer=root.optimizer, **given).history["loss"]


def rooted(optimizer: Any) -> Any:
    root = gt.Module("root")
    root.model = layers.Sequential([layers.Dense(5, activation="tanh"), layers.Dense(1)])
    root.optimizer = optimizer
    return root


def weights(root: Any) -> list[Any]:
    return [v.numpy() for v in (*root.model.variables, *root.optimizer.variables)]


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("seed", range(15))
def test_a_loaded_optimizer_trains_on_as_the_live_one(
    seed: int, compiled: bool, tmp_path: Path
) -> None:
    gt.random.set_seed(seed)
    root = rooted(random_optimizer(seed))
    train(root, compile=compiled)
    gt.save(root, tmp_path / "first.h5")
    loaded = gt.load(tmp_path / "first.h5")
    gt.save(loaded, tmp_path / "second.h5")
    again = gt.load(tmp_path / "second.h5")
    assert isinstance(loaded.optimizer, training.Optimizer)
    assert loaded.optimizer.class_name == f"Own{seed}"
    expected = train(root, compile=compiled)
    # graphs compute with numbers of the variables' dtype, and Python with doubles
    tolerance = {"rtol": 2e-5, "atol": 2e-6}
    for copied in (loaded, again):
        np.testing.assert_allclose(train(copied, compile=compiled), expected, **tolerance)
        assert len(weights(copied)) == len(weights(root))
        for one, two in zip(weights(copied), weights(root), strict=True):
            np.testing.assert_allclose(one, two, **tolerance)
    if compiled:  # the same graphs
        for one, two in zip(weights(loaded), weights(root), strict=True):
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("seed", range(5))
def test_it_trains_variables_that_it_has_never_seen(seed: int, tmp_path: Path) -> None:
    made = random_optimizer(seed)
    root = rooted(made)
    train(root, epochs=1)
    gt.save(root, tmp_path / "root.h5")
    found = []
    for roots in (root, gt.load(tmp_path / "root.h5")):
        gt.random.set_seed(0)
        roots.model = layers.Sequential([roots.model.layers[0], layers.Dense(9), layers.Dense(1)])
        found.append((train(roots), weights(roots)))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=2e-5)
    for one, two in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(one, two, rtol=2e-5, atol=2e-6)


def test_copies_and_checkpoints_of_a_loaded_optimizer_train_on(tmp_path: Path) -> None:
    root = rooted(random_optimizer(3))
    train(root)
    gt.save(root, tmp_path / "root.h5")
    loaded = gt.load(tmp_path / "root.h5")
    others = [copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))]
    target = gt.load(tmp_path / "root.h5")
    training.Checkpoint(root=loaded).save(tmp_path / "state.h5")
    train(target)
    training.Checkpoint(root=target).restore(tmp_path / "state.h5")
    expected = train(loaded)
    for other in (*others, target):
        assert train(other) == expected


def test_a_process_without_the_class_trains_on(tmp_path: Path) -> None:
    root = rooted(random_optimizer(8))
    train(root)
    gt.save(root, tmp_path / "root.h5")
    np.savez(tmp_path / "data.npz", x=X, y=Y)
    program = f"""
import numpy as np
import gradtape as gt
data = np.load({str(tmp_path / "data.npz")!r})
root = gt.load({str(tmp_path / "root.h5")!r})
run = gt.training.fit(root.model, (data["x"], data["y"]), loss="mse", epochs=2, batch_size=8,
                      seed=3, verbose=0, optimizer=root.optimizer, compile=True)
print(*map(float.hex, run.history["loss"]))
"""
    told = run_isolated(program).split()
    assert told == [x.hex() for x in train(root, compile=True)]


def test_a_process_with_the_class_gets_it(tmp_path: Path) -> None:
    class Named(training.Optimizer, saved_as="acme.Named"):
        slots = ("velocity",)
        update = momentum

        def __init__(self, learning_rate: Any = 0.1, factor: float = 0.5, **options: Any) -> None:
            super().__init__(learning_rate, **options)
            self.factor = factor

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "factor": self.factor}

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_modules() -> Any:
            return saved_classes({"Named": Named})

    with gt.register_plugin(Plugin(), "acme"):
        root = rooted(Named(Warmup(0.02), weight_decay=0.1))
        train(root)
        root.optimizer.factor = 0.7
        gt.save(root, tmp_path / "root.h5")
        loaded = gt.load(tmp_path / "root.h5")
        assert type(loaded.optimizer) is Named
        assert loaded.optimizer.factor == 0.7
        expected = train(root)
        assert train(loaded) == expected
    with pytest.raises(gt.saving.MissingPlugin, match=r"acme\.Named"):
        gt.load(tmp_path / "root.h5")


def test_what_can_be_set_and_what_the_graphs_have_read(tmp_path: Path) -> None:
    optimizer = type("Own", (training.Optimizer,), {"update": momentum, "slots": ("velocity",)})(
        0.1
    )
    optimizer.factor = 0.9
    optimizer.learning_rate, optimizer.note = 0.25, "mine"
    optimizer.build([gt.Variable([0.0, 1.0])])
    gt.save(optimizer, tmp_path / "alone.h5")
    loaded = gt.load(tmp_path / "alone.h5")
    with pytest.raises(AttributeError, match=r"'factor' cannot be set.*gradtape\.Variable"):
        loaded.factor = 0.1
    loaded.note = "changed"
    assert loaded.learning_rate.item() == 0.25
    loaded.learning_rate = 0.5
    loaded.clipvalue = 1.0
    w = gt.Variable([1.0, 2.0])
    loaded.apply_gradients([(gt.constant([9.0, 0.5]), w)])
    np.testing.assert_allclose(w.numpy(), [0.5, 1.75])
    loaded.learning_rate = lambda step: 0.5 + step
    gt.save(loaded, tmp_path / "again.h5")
    assert float(gt.load(tmp_path / "again.h5").learning_rate(1)) == 1.5


def test_an_optimizer_that_has_done_no_step_is_saved_if_its_formula_fits_all(
    tmp_path: Path,
) -> None:
    for seed in (0, 2, 3):
        gt.save(rooted(random_optimizer(seed)), tmp_path / "root.h5", functions=True)
        root = gt.load(tmp_path / "root.h5")
        assert np.isfinite(train(root)).all()
    with pytest.raises(gt.saving.SaveError, match=r"update cannot be traced.*Do a step first"):
        gt.save(random_optimizer(4), tmp_path / "root.h5")


def test_own_variables_of_an_optimizer_change_as_in_the_live_one(tmp_path: Path) -> None:
    class Growing(training.Optimizer):
        def __init__(self) -> None:
            super().__init__(0.01)
            self.size = gt.Variable(1.0, trainable=False, dtype="float64")

        def settings(self, rate: Any, step: Any) -> Any:
            self.size.assign(self.size * 1.1)
            return (rate * self.size.value,)

        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - settings[0] * gradient, state

    root = rooted(Growing())
    train(root)
    gt.save(root, tmp_path / "root.h5")
    loaded = gt.load(tmp_path / "root.h5")
    expected = train(root)
    np.testing.assert_allclose(train(loaded), expected, rtol=1e-5)
    assert loaded.optimizer.size.item() == pytest.approx(root.optimizer.size.item())


def in_lists(self: Any, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
    new, changed = momentum(self, value, gradient, state, settings)
    return [new, list(changed)]


@pytest.mark.parametrize("marks", [True, False])
def test_lists_in_place_of_tuples_come_back(marks: bool, tmp_path: Path) -> None:
    body = {"slots": ["velocity"], "update": by_blocks(in_lists) if marks else in_lists}
    root = rooted(type("Own", (training.Optimizer,), {**body, "factor": 0.9})(0.01))
    train(root)
    gt.save(root, tmp_path / "root.h5")
    loaded = gt.load(tmp_path / "root.h5")
    assert train(loaded, compile=True) == train(root, compile=True)


def test_a_formula_that_readers_would_refuse_is_refused_on_saving(tmp_path: Path) -> None:
    class Moded(training.Optimizer):
        def settings(self, rate: Any, step: Any) -> Any:
            return rate, "descend"

        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            return value - settings[0] * gradient, state

    root = rooted(Moded(0.01))
    train(root, compile=False)
    with pytest.raises(gt.saving.SaveError, match=r"Moded.*'settings' does not return a tuple of"):
        gt.save(root, tmp_path / "root.h5")


class Sharp(training.SGD):
    """Does two things in a step: no formula says so."""

    def apply_gradients(self, grads_and_vars: Any) -> None:
        super().apply_gradients([(gt.clip(g, -0.1, 0.1), v) for g, v in grads_and_vars])


class Counting(training.Optimizer):
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - float(gt.sum(gradient)) * settings[0], state


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sharp(0.1), r"overrides apply_gradients.*gradtape_modules.*Checkpoint"),
        (lambda: Counting(0.1), r"Counting.*update cannot be traced.*gradtape_modules"),
        (lambda: training.SGD(lambda n: 0.1 if float(n) < 3 else 0.01), r"cannot be traced"),
    ],
)
def test_what_no_file_can_hold_is_refused_on_saving(make: Any, words: str, tmp_path: Path) -> None:
    root = rooted(make())
    train(root, compile=False)
    with pytest.raises(gt.saving.SaveError, match=words):
        gt.save(root, tmp_path / "root.h5")
    gt.save(root, tmp_path / "state.h5", functions=False) if words[0] != "c" else None


def test_a_schedule_that_no_graph_can_hold_is_refused_on_saving(tmp_path: Path) -> None:
    class Stairs(training.schedules.LearningRateSchedule):
        def call(self, step: Any) -> Any:
            return 0.1 / (1 + len(str(float(step))))

    root = rooted(training.SGD(Stairs()))
    train(root, compile=False)
    with pytest.raises(gt.saving.SaveError, match=r"Stairs.*cannot be traced"):
        gt.save(root, tmp_path / "root.h5")


def test_without_functions_the_state_is_saved_and_fit_says_what_is_missing(tmp_path: Path) -> None:
    root = rooted(gt.mixed_precision.LossScaleOptimizer(random_optimizer(1)))
    train(root)
    gt.save(root, tmp_path / "root.h5", functions=False)
    loaded = gt.load(tmp_path / "root.h5")
    inner = loaded.optimizer.inner_optimizer
    assert inner.velocity[0].shape == (4, 5)
    root.optimizer = inner
    with pytest.raises(TypeError, match=r"no 'update' \(saved with functions=False\)"):
        train(root)


def test_a_loss_scale_around_an_own_optimizer_comes_back(tmp_path: Path) -> None:
    root = rooted(gt.mixed_precision.LossScaleOptimizer(random_optimizer(1)))
    train(root)
    gt.save(root, tmp_path / "root.h5")
    loaded = gt.load(tmp_path / "root.h5")
    expected = train(root, compile=True)
    assert train(loaded, compile=True) == expected


LIES: dict[str, Callable[[Any], Any]] = {
    "no formula": lambda m: m["functions"].pop("update"),
    "no settings": lambda m: m["functions"].pop("settings"),
    "no rate": lambda m: m["attributes"].pop("learning_rate"),
    "no steps": lambda m: m["attributes"].pop("iterations"),
    "no slot": lambda m: m["attributes"].pop("first"),
    "a slot without state": lambda m: m["attributes"].update(second={"list": []}),
    "a slot of numbers": lambda m: m["attributes"].update(first={"value": 3}),
    "slots that are a text": lambda m: m["attributes"].update(slots={"value": "first"}),
    "slots that hide a method": lambda m: m["attributes"].update(
        slots={"tuple": [{"value": "build"}]}
    ),
    "two kinds of clipping": lambda m: m["attributes"].update(
        clipnorm={"value": 1}, clipvalue={"value": 2}
    ),
    "an option that is a text": lambda m: m["attributes"].update(weight_decay={"value": "x"}),
    "accumulation without sums": lambda m: m["attributes"].update(
        gradient_accumulation_steps={"value": 2}
    ),
    "averages without a slot": lambda m: m["attributes"].update(use_ema={"value": True}),
    "a method": lambda m: m["functions"].update(apply_gradients=0),
    "exclusions of another form": lambda m: m["optimizer"].update(excluded={"names": 3}),
    "a record that is a list": lambda m: m.update(optimizer=[]),
    "a slot twice": lambda m: m["attributes"].update(slots={"tuple": [{"value": "first"}] * 2}),
    "a slot less": lambda m: m["attributes"].update(slots={"tuple": [{"value": "first"}]}),
    "elementwise without rows": lambda m: m["optimizer"].update(elementwise=True),
    "an update as settings": lambda m: m["functions"].update(settings=m["functions"]["update"]),
    "settings as an update": lambda m: m["functions"].update(update=m["functions"]["settings"]),
    "settings as a rate": lambda m: [
        m["attributes"].pop("learning_rate"),
        m["functions"].update(learning_rate=m["functions"]["settings"]),
    ],
}


@pytest.mark.parametrize("lie", LIES)
def test_an_optimizer_that_is_none_is_refused_on_loading(lie: str, tmp_path: Path) -> None:
    optimizer = type("Own", (training.Optimizer,), {"slots": ("first", "second")})
    optimizer.update, optimizer.settings, optimizer.factor = corrected, settings_of_corrected, 0.9
    root = rooted(optimizer(0.1))
    train(root)
    gt.save(root, tmp_path / "good.h5")

    def change(draft: Draft) -> None:
        record = draft.json()
        LIES[lie](next(x for x in record["modules"] if "optimizer" in x))
        draft.put(record)

    with pytest.raises(gt.saving.LoadError):
        gt.load(rewritten(tmp_path / "good.h5", change, tmp_path / "bad.h5"))


def op(name: str, x: int, shape: Any, dtype: str, /, **params: Any) -> Callable[[Any], Any]:
    """Return a change that puts an op behind an output of a graph."""

    def change(record: Any) -> None:
        graph = record["graph"]
        made = len(graph["inputs"]) + len(graph["constants"])
        made += sum(len(node["outputs"]) for node in graph["nodes"])
        inputs, outputs = [graph["outputs"][x]], [{"shape": shape, "dtype": dtype}]
        graph["nodes"].append({"op": name, "inputs": inputs, "params": params, "outputs": outputs})
        graph["outputs"][x] = made

    return change


def results(results: Any) -> Callable[[Any], Any]:
    return lambda record: record.update(results=results)


OUT = [{"output": i} for i in range(3)]
FORMULA_LIES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "many numbers": ("settings", results({"tuple": OUT * 9})),
    "one number alone": ("settings", results(OUT[0])),
    "numbers by name": ("settings", results({"dict": {"a": OUT[0], "b": OUT[1], "c": OUT[2]}})),
    "a row of numbers": ("settings", op("expand_dims", 0, [1], "float64", axis=0)),
    "waves as a number": ("settings", op("cast", 0, [], "complex128", dtype="complex128")),
    "no state": ("update", results({"tuple": [OUT[0], {"tuple": []}]})),
    "too much state": ("update", results({"tuple": [OUT[0], {"tuple": OUT}]})),
    "the state first": ("update", results({"tuple": [{"tuple": OUT[1:]}, OUT[0]]})),
    "three values": ("update", results({"tuple": OUT})),
    "a matrix": ("update", op("expand_dims", 0, [1, None], "float32", axis=0)),
    "a sum as a state": ("update", op("sum", 1, [], "float32", axis=None, keepdims=False)),
    "a complex value": ("update", op("cast", 0, [None], "complex64", dtype="complex64")),
}


@pytest.mark.parametrize("lie", FORMULA_LIES)
def test_functions_that_are_no_formula_are_refused_on_loading(lie: str, tmp_path: Path) -> None:
    body = {"slots": ("first", "second"), "settings": settings_of_corrected, "factor": 0.9}
    optimizer = type("Own", (training.Optimizer,), {**body, "update": by_blocks(corrected)})(0.1)
    name, lies = FORMULA_LIES[lie]
    optimizer.build([gt.Variable([1.0, 2.0])])
    gt.save(optimizer, tmp_path / "good.h5", golden=False)

    def change(draft: Draft) -> None:
        manifest = draft.json()
        number = manifest["modules"][0]["functions"][name]
        (trace,) = manifest["functions"][number]["traces"]
        record = draft.json(trace["dataset"])
        lies(record)
        draft.put(record, trace["dataset"])

    with pytest.raises(gt.saving.DamagedFile, match=r"not an optimizer: '\w+' does not"):
        gt.load(rewritten(tmp_path / "good.h5", change, tmp_path / "bad.h5"))


@pytest.mark.parametrize("name", ["elementwise", "check", "_numbers", "trained", "class_name"])
def test_attributes_are_kept_or_refused_when_it_is_saved(name: str, tmp_path: Path) -> None:
    made = type("Own", (training.Optimizer,), {"update": plain})(0.1)
    made.factor = 0.5
    vars(made)[name] = 3
    made.build([gt.Variable([1.0])])
    if name in ("trained", "class_name"):
        with pytest.raises(gt.saving.SaveError, match=f"{name}.*every loaded optimizer"):
            gt.save(made, tmp_path / "own.h5")
    else:
        gt.save(made, tmp_path / "own.h5")
        assert getattr(gt.load(tmp_path / "own.h5"), name) == 3
