"""What graphs of a file compute with cannot be replaced unnoticed in the loaded module."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

X = np.random.default_rng(0).normal(size=(4, 3)).astype("float32")
Dense = gt.layers.Dense


class Net(gt.Module):
    """A class that files do not hold, with parts in attributes, lists, and layers of layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first = Dense(4)
        self.blocks = [Dense(4), gt.layers.Sequential([Dense(4), gt.layers.Dropout(0.5)])]
        self.named = {"out": Dense(2)}
        self.scale = gt.Variable(2.0)
        self.weights = [gt.Variable(1.0)]
        self.rate = 0.5

    def __call__(self, x: Any, training: bool = False) -> Any:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.named["out"](x) * self.scale * self.weights[0] * self.rate

    @gt.function
    def features(self, x: Any) -> Any:
        return self.first(x)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    net = Net()
    net(X), net(X, training=True), net.features(X)
    path = tmp_path_factory.mktemp("held") / "net.h5"
    gt.save(net, path)
    return path


@pytest.fixture(scope="module")
def graph_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = gt.Input((3,))
    path = tmp_path_factory.mktemp("held") / "graph.h5"
    gt.save(gt.Model(given, Dense(2, name="out")(Dense(4)(given))), path)
    return path


SET: dict[str, Callable[[Any], Any]] = {
    "a layer": lambda m: setattr(m, "first", Dense(4)),
    "a list": lambda m: setattr(m, "blocks", []),
    "a dictionary": lambda m: setattr(m, "named", {}),
    "a variable": lambda m: setattr(m, "scale", gt.Variable(3.0)),
    "a number": lambda m: setattr(m, "rate", 0.1),
    "nothing": lambda m: delattr(m, "first"),
}


@pytest.mark.parametrize("change", SET.values(), ids=SET)
def test_attributes_that_graphs_hold_cannot_be_set(change: Any, path: Path) -> None:
    loaded = gt.load(path)
    want = loaded(X).numpy()
    with pytest.raises(AttributeError, match="save again"):
        change(loaded)
    np.testing.assert_array_equal(loaded(X), want)


def test_the_message_says_how_to_use_another_part(path: Path, graph_path: Path) -> None:
    with pytest.raises(AttributeError, match=r"saving\.features\(model, before='first'\)"):
        gt.load(path).first = Dense(4)
    with pytest.raises(AttributeError, match=r"saving\.features\(model, before='layers/1'\)"):
        gt.load(graph_path).layers = []


DEEP: dict[str, Callable[[Any], Any]] = {
    "a weight of a layer": lambda m: setattr(m.first, "kernel", gt.Variable(np.zeros((3, 4)))),
    "an item of a list": lambda m: m.blocks.__setitem__(0, Dense(4)),
    "an item more": lambda m: m.blocks.append(Dense(4)),
    "an item less": lambda m: m.blocks.pop(),
    "another order": lambda m: m.blocks.reverse(),
    "an item of a dictionary": lambda m: m.named.update(out=Dense(2)),
    "a variable in a list": lambda m: m.weights.__setitem__(0, gt.Variable(5.0)),
    "a layer in a layer": lambda m: m.blocks[1].layers.__setitem__(0, Dense(4)),
    "a layer more in a layer": lambda m: m.blocks[1].add(Dense(4)),
    "another list in a layer": lambda m: setattr(m.blocks[1], "layers", [Dense(4)]),
}


@pytest.mark.parametrize("change", DEEP.values(), ids=DEEP)
@pytest.mark.parametrize(
    "copied", [lambda m: m, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_a_model_whose_parts_were_replaced_is_refused(
    change: Any, copied: Any, path: Path, tmp_path: Path
) -> None:
    loaded = copied(gt.load(path))
    compiled = gt.function(lambda x: loaded(x))
    loaded(X), compiled(X)
    change(loaded)
    for use in (
        lambda: loaded(X),
        lambda: compiled(X),
        lambda: loaded.features(X),
        lambda: gt.training.predict(loaded, X),
    ):
        with pytest.raises(ValueError, match=r"module 'net': '.*graphs of the file"):
            use()
    with pytest.raises(gt.saving.SaveError, match="graphs of the file"):
        gt.save(loaded, tmp_path / "other.h5")


def test_layers_of_a_loaded_graph_are_held_too(graph_path: Path) -> None:
    loaded = gt.load(graph_path)
    kept = loaded.layers[-1]
    loaded.layers[-1] = Dense(3)
    with pytest.raises(ValueError, match=r"'layers.1' is not what the file had there"):
        loaded(X)
    loaded.layers[-1] = kept
    assert loaded(X).shape == (4, 2)
    loaded.layers.append(Dense(3))
    with pytest.raises(ValueError, match=r"'layers.2' was added, .* Remove it"):
        loaded(X)


def test_what_graphs_do_not_hold_may_be_set(path: Path, tmp_path: Path) -> None:
    loaded = gt.load(path)
    want = loaded(X).numpy()
    loaded.note, loaded.head = "mine", Dense(3)
    loaded.first.kernel.assign(loaded.first.kernel)
    loaded.first.trainable = False
    np.testing.assert_array_equal(loaded(X), want)
    gt.save(loaded, tmp_path / "other.h5")
    assert gt.load(tmp_path / "other.h5").note == "mine"


def test_a_setting_that_graphs_hold_warns(path: Path) -> None:
    loaded = gt.load(path)
    dropout = loaded.blocks[1].layers[1]
    with pytest.warns(UserWarning, match=r"'rate' changes .* not the graphs of module 'net'.*0\.5"):
        dropout.rate = 0.9
    with pytest.warns(UserWarning, match="'activation' changes"):
        loaded.first.activation = gt.nn.relu
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dropout.rate = 0.9  # no change
        twin = copy.deepcopy(dropout)  # no graph holds it
        twin.rate = 0.1
        loaded.first.trainable = False
        own = gt.layers.Dropout(0.1)
        own.rate = 0.2


@pytest.mark.parametrize("way", ["loaded", "copied", "pickled"])
@pytest.mark.parametrize("which", ["a", "b"])
def test_every_module_with_a_function_is_checked(which: str, way: str, tmp_path: Path) -> None:
    dense, other, x = gt.layers.Dense(2), gt.layers.Dense(2), gt.ones((1, 3))
    dense(x)
    other(x)
    shared = gt.function(lambda x: dense(x), input_signature=[gt.TensorSpec((None, 3))])
    root = gt.Module("root")
    for name in "ab":
        part = gt.Module(name)
        part.run, part.parts = shared, [dense]
        setattr(root, name, part)
    gt.save(root, tmp_path / "shared.h5")
    loaded = gt.load(tmp_path / "shared.h5")
    first = loaded
    if way == "copied":
        loaded = copy.deepcopy(loaded)
    if way == "pickled":
        loaded = pickle.loads(pickle.dumps(loaded))
    assert loaded.a.run is loaded.b.run
    getattr(loaded, which).parts[0] = other
    with pytest.raises(ValueError, match=f"module '{which}': 'parts.0' is not what the file had"):
        loaded.a.run(x)
    if first is not loaded:
        assert first.a.run(x).shape == (1, 2)
