"""A third party's names stand wherever gradtape's do: each kind of name, at each of its doors."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import third_party

import gradtape as gt
from gradtape.core.extend import hookimpl
from gradtape.core.registry.host import HOST
from gradtape.errors import PluginError, UnknownName


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which the distribution is installed."""
    folder = tmp_path_factory.mktemp("site")
    third_party.install(folder)
    return folder


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install the third party for the length of a test."""
    monkeypatch.syspath_prepend(site)
    HOST.forget()
    yield
    monkeypatch.undo()
    for name in [x for x in sys.modules if x.partition(".")[0] == "acme"]:
        del sys.modules[name]
    HOST.forget()


# -- each door, in fresh processes -----------------------------------------------------------------

# by kind, a statement that makes `saved` from the name, in the place where gradtape's is given
DOORS = {
    "activation": "saved = trained(activation='acme::act')",
    "activation with a setting": "saved = trained(activation='acme.Sharp')",
    "initializer": "saved = trained(kernel_initializer='acme.he_normal')",
    "initializer as an object": "saved = trained(bias_initializer=acme.initializers.Constant(0.5))",
    "initializer as a function": "saved = trained(kernel_initializer='acme.eighths')",
    "regularizer": "saved = trained(kernel_regularizer='acme.l2')",
    "activity regularizer": "saved = trained(activity_regularizer='acme.l1')",
    "constraint": "saved = trained(kernel_constraint='acme.max_norm')",
    "layer": "saved = trained(kind=acme.dense.Dense, activation='relu')",
    "loss": "saved = trained(loss='acme.huber')",
    "loss of a class": "saved = trained(loss='acme.Huber')",
    "metric": "saved = trained(metrics=['acme.MeanSquaredError', 'acme.mean_absolute_error'])",
    "optimizer": (
        "saved = optimizer = gt.training.optimizers.get('acme.adam')\ntrained(optimizer=optimizer)"
    ),
    "schedule": (
        "rate = {'name': 'acme.ExponentialDecay', 'config': {'initial_learning_rate': 0.1, "
        "'decay_steps': 2, 'decay_rate': 0.5}}\n"
        "saved = optimizer = gt.training.SGD(rate); trained(optimizer=optimizer)"
    ),
    "callback": "saved = trained(callbacks=['acme.TerminateOnNaN'])",
}

# What needs the plugin when it is loaded: names that only `fit` takes are not in the file.
IN_FILES = [name for name in DOORS if name.split()[0] not in ("loss", "metric", "callback")]

PRELUDE = """
import json, sys
import numpy as np
import gradtape as gt

x = np.linspace(-1, 1, 24, dtype="float32").reshape(8, 3)
y = x.sum(1, keepdims=True)

def trained(kind=gt.layers.Dense, optimizer="sgd", loss="mse", metrics=(), callbacks=(), **given):
    gt.random.set_seed(0)
    model = gt.layers.Sequential([kind(4, **given), gt.layers.Dense(1)])
    gt.training.fit(
        model, (x, y), epochs=1, batch_size=4, seed=1, verbose=0, optimizer=optimizer, loss=loss,
        metrics=metrics, callbacks=callbacks,
    )
    return model

def told(thing):
    if isinstance(thing, gt.training.Optimizer):
        return [float(v.numpy().sum()) for v in thing.variables] + [str(thing.get_config())]
    return thing(x).tolist()
"""

SAVE = """
import acme, acme.dense, acme.initializers
for name, statement in json.loads(sys.argv[2]).items():
    exec(statement)
    gt.save(saved, f"{sys.argv[1]}/{name}.h5")
    found[name] = told(saved)
"""

LOAD = """
for name in json.loads(sys.argv[2]):
    try:
        found[name] = told(gt.load(f"{sys.argv[1]}/{name}.h5"))
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
"""


def ran(script: str, folder: Path, site: Path | None) -> dict[str, Any]:
    """Run a script in a fresh process, with the third party in ``site`` or without it."""
    code = f"{PRELUDE}\nfound = {{}}\n{script}\nprint(json.dumps(found))"
    paths = [*([str(site)] if site else []), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(folder), json.dumps(DOORS)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_each_kind_of_name_is_trained_saved_and_loaded(site: Path, tmp_path: Path) -> None:
    saved = ran(SAVE, tmp_path, site)
    assert list(saved) == list(DOORS)
    assert ran(LOAD, tmp_path, site) == saved
    without = ran(LOAD, tmp_path, None)
    assert {name for name in DOORS if without[name] != saved[name]} == set(IN_FILES)
    for name in IN_FILES:
        assert without[name].startswith("MissingPlugin: "), (name, without[name])
        assert "pip install acme" in without[name], (name, without[name])


# -- copies of gradtape's own ----------------------------------------------------------------------

LAYERS = [
    ("layers.Dense", lambda k, p: k(3, kernel_initializer=p("initializer", "he_uniform"))),
    (
        "layers.Dense",
        lambda k, p: k(3, activation="tanh", kernel_regularizer=p("regularizer", "l2")),
    ),
    ("layers.Dense", lambda k, p: k(3, kernel_constraint=p("constraint", "unit_norm"))),
    ("layers.Dense", lambda k, p: k(3, bias_initializer=p("initializer", "truncated_normal"))),
    ("layers.LSTMCell", lambda k, p: gt.layers.RNN(k(3, dropout=0.25))),
    ("layers.GRUCell", lambda k, p: gt.layers.RNN(k(3), return_sequences=True)),
    ("layers.SimpleRNNCell", lambda k, p: gt.layers.RNN([k(3), k(2)])),
]
LOSSES = [
    ("mean_squared_error", None),
    ("log_cosh", None),
    ("Huber", None),
    ("binary_crossentropy", "yes or no"),
    ("BinaryCrossentropy", "yes or no"),
    ("MeanAbsoluteError", None),
]
METRICS = ["binary_accuracy", "MeanSquaredError", "BinaryAccuracy", "RootMeanSquaredError"]
OPTIMIZERS = ["sgd", "adam", "adamw", "rmsprop", "lion", "nadam", "adagrad"]


def run_of(number: int, prefix: str, path: Path) -> tuple[list[Any], Any]:
    """Train a random model of gradtape's parts, or of their copies; return what came of it."""
    draw = random.Random(number)

    def named(kind: str, name: str) -> str:
        return prefix + name

    known = gt.registry().modules
    layers = []
    for name, make in draw.sample(LAYERS, 2) if number % 2 else draw.sample(LAYERS[:4], 2):
        if name.endswith("Cell") and layers:
            continue
        of = name if not prefix else name.replace("layers.", prefix)
        layers.append(make(known[of], named))
    random_numbers = np.random.default_rng(number)
    recurrent = any(isinstance(layer, gt.layers.RNN) for layer in layers)
    layers = sorted(layers, key=lambda layer: not isinstance(layer, gt.layers.RNN))
    layers += [gt.layers.Flatten()] * recurrent + [gt.layers.Dense(1)]
    x = random_numbers.standard_normal((12, 4, 2) if recurrent else (12, 5)).astype("float32")
    loss, labels = draw.choice(LOSSES)
    y = random_numbers.standard_normal((12, 1)).astype("float32")
    y = (y > 0).astype("float32") if labels else y
    gt.random.set_seed(number)
    model = gt.layers.Sequential(layers)
    optimizer = gt.training.optimizers.get(named("optimizer", draw.choice(OPTIMIZERS)))
    history = gt.training.fit(
        model,
        (x, y),
        optimizer=optimizer,
        loss=named("loss", loss),
        metrics=[named("metric", draw.choice(METRICS))],
        weighted_metrics=[named("metric", "mean_absolute_error")] if draw.random() < 0.5 else [],
        epochs=2,
        batch_size=4,
        verbose=0,
        seed=number,
        compile=draw.choice([True, False]),
    )
    gt.save(model, path, golden=False)
    saved = json.loads(gt.saving.inspect(path).json())
    return list(history.history.values()), without_names(saved)


def without_names(record: Any) -> Any:
    """Return a description of a file without what differs: plugins, and the front of names."""
    if isinstance(record, dict):
        left_out = ("path", "bytes", "parts", "requires")
        return {key: without_names(x) for key, x in record.items() if key not in left_out}
    if isinstance(record, list):
        return [without_names(x) for x in record]
    return re.sub(r"acme\.|^layers\.", "", record) if isinstance(record, str) else record


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(12))
def test_copies_of_gradtapes_own_do_exactly_the_same(
    number: int, installed: None, tmp_path: Path
) -> None:
    ours, file = run_of(number, "", tmp_path / "ours.h5")
    theirs, copy = run_of(number, "acme.", tmp_path / "theirs.h5")
    assert theirs == ours
    assert copy == file


def test_a_copied_loss_is_the_same_kind_of_loss(installed: None) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3, activation="softmax")])
    data = np.ones((4, 2), "float32"), np.zeros(4, "int64")
    for prefix in ("", "acme."):
        with pytest.raises(ValueError, match="the model returns probabilities"):
            gt.training.fit(
                model, data, loss=prefix + "sparse_categorical_crossentropy", epochs=1, verbose=0
            )


def test_a_copied_formula_is_made_once(installed: None) -> None:
    v = gt.Variable(np.ones(3, "float32"))
    for name in ("adam", "acme.adam"):
        optimizer = gt.training.optimizers.get(name)
        for _ in range(3):
            optimizer.apply_gradients([(gt.ones(3), v)])
        (groups, *_) = next(iter(optimizer._gradtape_groups.values()))
        assert [group._lasting for group in groups] == [True]


# -- other doors -----------------------------------------------------------------------------------


def test_ops_are_attributes(installed: None) -> None:
    assert gt.ops.acme.act(1.0).item() == pytest.approx(np.tanh(1.0))
    assert gt.ops.sin(0.0).item() == 0.0
    assert "act" in dir(gt.ops.acme)
    assert {"acme", "matmul"} <= set(dir(gt.ops))
    with pytest.raises(
        AttributeError, match=r"gradtape\.ops\.acme has no op 'akt'; near names: act"
    ):
        gt.ops.acme.akt  # noqa: B018
    with pytest.raises(AttributeError, match="install the package 'acne'"):
        gt.ops.acne  # noqa: B018
    with pytest.raises(AttributeError, match=r"'acne_ops' \(as a distribution, .*'acne-ops'"):
        gt.ops.acne_ops  # noqa: B018


def test_a_plugin_has_a_namespace(installed: None) -> None:
    import acme as theirs

    assert gt.acme is theirs
    assert gt.acme.act(0.0).item() == 0.0
    assert not hasattr(gt, "acne")


@pytest.mark.parametrize("name", ["nn", "Tensor", "core", "hints", "_x", "a-b", "class"])
def test_a_namespace_hides_no_name(name: str) -> None:
    plugin = SimpleNamespace(gradtape_namespaces=hookimpl(lambda: {name: "json"}))
    with pytest.raises(PluginError, match="gradtape_namespaces: "):
        gt.register_plugin(plugin, "acme")


def test_a_namespace_that_cannot_be_imported_is_an_error_of_its_plugin() -> None:
    plugin = SimpleNamespace(gradtape_namespaces=hookimpl(lambda: {"acme2": "no.such.module"}))
    gt.register_plugin(plugin, "acme")
    try:
        with pytest.raises(PluginError, match=r"plugin 'acme': gradtape\.acme2 is the module"):
            gt.acme2  # noqa: B018
    finally:
        gt.unregister_plugin("acme")


def test_converted_code_calls_a_replacement(installed: None) -> None:
    pytest.importorskip("malt")
    from acme.plugin import shape_of

    @gt.function(autograph=True)
    def doubled(x: Any) -> Any:
        return shape_of(x)

    assert doubled(gt.constant(2.0)).item() == 4.0


MISSING = {
    "activation": lambda name: gt.layers.Dense(2, activation=name),
    "initializer": lambda name: gt.layers.Dense(2, kernel_initializer=name),
    "regularizer": lambda name: gt.layers.Dense(2, kernel_regularizer=name),
    "constraint": lambda name: gt.layers.Dense(2, kernel_constraint=name),
    "optimizer": gt.training.optimizers.get,
    "loss": gt.training.losses.get,
    "metric": gt.training.metrics.get,
    "callback": lambda name: gt.training.fit(
        gt.layers.Dense(1), (np.ones((2, 1)), np.ones((2, 1))), callbacks=[name]
    ),
}


@pytest.mark.parametrize("kind", MISSING)
def test_an_unknown_name_says_what_to_install(kind: str) -> None:
    with pytest.raises(UnknownName, match=rf"unknown {kind} 'acne::x'.*install the package 'acne'"):
        MISSING[kind]("acne::x")
    # a distribution is usually installed by another name than its module
    with pytest.raises(UnknownName, match=r"'acne_ops' \(as a distribution, probably 'acne-ops'"):
        MISSING[kind]("acne_ops.x")


def test_a_late_plugin_with_a_mistake_hurts_only_itself(installed: None, site: Path) -> None:
    text = (site / "acme" / "plugin.py").read_text()
    (site / "acme" / "plugin.py").write_text(
        text.replace('"callback": _named', '"callbacks": _named')
    )
    try:
        with pytest.warns(
            RuntimeWarning, match="names of the kind 'callbacks'; near names: callback"
        ):
            problems = [info.problem for info in gt.registry().plugins if info.problem]
        assert len(problems) == 1
        assert gt.layers.Dense(2, activation="relu").activation is gt.ops.relu
    finally:
        (site / "acme" / "plugin.py").write_text(text)


def test_names_import_only_what_they_need(tmp_path: Path, site: Path) -> None:
    script = """
gt.layers.Dense(2, activation="relu", kernel_regularizer="l2").get_config()
found["modules"] = [x for x in ("gradtape.training", "acme") if x in sys.modules]
"""
    script = script.replace("gt.", "gradtape.")
    code = f"import sys, json, gradtape\nfound = {{}}\n{script}\nprint(json.dumps(found))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=tmp_path,
    )
    assert json.loads(done.stdout) == {"modules": ["acme"]}, done.stderr  # its ops are not late


# -- what classes state ----------------------------------------------------------------------------


def test_a_cell_with_a_call_of_its_own_is_called() -> None:
    class Doubled(gt.layers.LSTMCell, saved_as="acme.Doubled"):
        def call(self, x: Any, states: Any, training: bool = False) -> Any:
            y, after = super().call(x, states, training)
            return 2.0 * y, after

    x = gt.random.normal((2, 3, 4))
    cell = Doubled(5)
    once, twice = gt.layers.RNN(gt.layers.LSTMCell(5)), gt.layers.RNN(cell)
    once(x), twice(x)
    for a, b in zip(twice.variables, once.variables, strict=True):
        a.assign(b)
    np.testing.assert_allclose(twice(x).numpy(), 2.0 * once(x).numpy(), rtol=1e-6)


def test_a_loss_says_what_it_is() -> None:
    def mine(y_true: Any, y_pred: Any) -> Any:
        return gt.training.losses.sparse_categorical_crossentropy(y_true, y_pred)

    model = gt.layers.Sequential([gt.layers.Dense(3, activation="softmax")])
    data = np.ones((4, 2), "float32"), np.zeros(4, "int64")
    gt.training.fit(model, data, loss=mine, epochs=1, verbose=0)  # it may mean what it does
    mine.label_kind = "sparse"  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="the model returns probabilities"):
        gt.training.fit(model, data, loss=mine, epochs=1, verbose=0)


def test_an_argument_that_a_base_knows_may_be_added_around_its_configuration() -> None:
    class Base(gt.layers.ReLU):
        def __init__(self, power: int, name: str | None = None) -> None:
            super().__init__(name=name)
            self.raised = power

        def get_config(self) -> dict[str, Any]:
            return {"name": self.name, "power": self.raised}

    class Lower(Base):
        def __init__(self, power: int, depth: int, name: str | None = None) -> None:
            super().__init__(power, name)

    assert Base(2).get_config() == {"name": "base", "power": 2}
    assert Lower(2, 3).get_config() == {"name": "lower", "power": 2}


def test_two_plugins_with_one_name_clash_in_it_alone() -> None:
    def provider(name: str, act: Any) -> Any:
        return SimpleNamespace(
            gradtape_names=hookimpl(
                lambda: {"activation": {"acme::x": act, f"acme::{name}": gt.exp}}
            )
        )

    gt.register_plugin(provider("a", gt.sin), "first")
    try:
        with pytest.raises(PluginError, match="both provide the name"):
            gt.register_plugin(provider("b", gt.cos), "second")
        assert gt.layers.Dense(2, activation="acme::a").activation is gt.exp
    finally:
        gt.unregister_plugin("first")


def test_settings_of_a_third_partys_object_are_read_again(installed: None) -> None:
    from acme.plugin import Sharp

    def first_losses(prefix: str, change: bool) -> list[float]:
        gt.random.set_seed(0)
        loss = gt.registry().named("loss", prefix + "Huber")(delta=1.0)
        model = gt.layers.Sequential([gt.layers.Dense(1, activation=Sharp(1.0))])
        x = np.linspace(-3, 3, 16, dtype="float32").reshape(8, 2)

        def changing(epoch: int, logs: Any) -> None:
            if change:
                loss.settings["delta"] = 0.125
                model.layers[0].activation.factor = 3.0

        run = gt.training.fit(
            model, (x, x.sum(1, keepdims=True)), loss=loss, epochs=3, verbose=0, seed=0,
            batch_size=8, compile=True, callbacks=[changing],
        )  # fmt: skip
        return run.history["loss"]

    for prefix in ("", "acme."):
        kept, changed = first_losses(prefix, False), first_losses(prefix, True)
        assert kept[0] == changed[0]
        assert changed[1] < 0.5 * kept[1]
    assert first_losses("", True) == first_losses("acme.", True)
