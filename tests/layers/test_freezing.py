"""Layers that do not train, and weights in one list."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import BatchNorm, Dense, Sequential

X = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")


def model() -> Sequential:
    made = Sequential([Dense(4), BatchNorm(), Dense(1)])
    made(X)
    return made


def test_a_frozen_layer_and_all_inside_it_do_not_train() -> None:
    net = model()
    assert net.trainable
    net.layers[0].trainable = False
    assert len(net.trainable_variables) == 4
    net.trainable = False
    assert net.trainable_variables == ()
    assert not net.layers[2].trainable
    net.trainable = True
    # the moving statistics did not train before, and do not now
    assert len(net.trainable_variables) == 6


def test_a_layer_may_be_frozen_before_it_has_weights() -> None:
    layer = Dense(2)
    layer.trainable = False
    layer(X)
    assert layer.trainable_variables == ()
    assert len(layer.variables) == 2


def test_a_frozen_normalisation_keeps_to_its_moving_statistics() -> None:
    layer = BatchNorm()
    layer(X)
    expected = layer(X)
    layer.trainable = False
    np.testing.assert_array_equal(layer(X, training=True), expected)
    assert layer.moving_mean.numpy().tolist() == [0.0, 0.0, 0.0]
    layer.trainable = True
    layer(X, training=True)
    assert (layer.moving_mean.numpy() != 0.0).all()


def test_a_frozen_layer_keeps_its_weights_in_fit() -> None:
    net = model()
    net.layers[0].trainable = False
    before = net.layers[0].get_weights()
    gt.training.fit(net, (X, X[:, :1]), loss="mse", optimizer=gt.training.SGD(0.1), verbose=False)
    for old, new in zip(before, net.layers[0].get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


def test_nothing_trains_below_a_frozen_module_until_it_is_thawed() -> None:
    net = model()
    net.trainable = False
    net.layers[0].trainable = True  # as in Keras
    assert net.trainable_variables == ()
    assert len(net.layers[0].trainable_variables) == 2
    with pytest.raises(ValueError, match="no trainable variables: it is frozen"):
        gt.training.fit(net, (X, X[:, :1]), loss="mse", verbose=False)
    net.trainable = True
    assert len(net.trainable_variables) == 6


def test_what_is_added_to_a_frozen_sequential_is_frozen() -> None:
    net = model()
    net.trainable = False
    net.add(Dense(2))
    net(X)
    assert not net.layers[3].trainable
    assert gt.layers.Sequential([net, Dense(1)]).trainable_variables == ()


class Block(gt.Module):
    """A module that is no layer, with variables of its own, in containers and in layers."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable([1.0, 2.0, 3.0])
        self.count = gt.Variable(0)
        self.constant = gt.Variable([0.0], trainable=False)
        self.parts = {"a": [Dense(3)], "b": (gt.Variable(1.0),)}

    def __call__(self, x: Any) -> Any:
        return self.parts["a"][0](x * self.scale) * self.parts["b"][0]


def test_any_module_can_be_frozen() -> None:
    block = Block()
    block(X)
    assert block.trainable
    before = [v.numpy().copy() for v in block.variables]
    names = list(block.trainable_variables)
    assert len(names) == 4
    head = gt.Module("head")
    head.block, head.last = block, Dense(1)
    block.trainable = False
    assert block.trainable_variables == ()

    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block, self.last = block, Dense(1)

        def __call__(self, x: Any) -> Any:
            return self.last(self.block(x))

    net = Model()
    gt.training.fit(net, (X, X[:, :1]), loss="mse", verbose=False)
    for old, v in zip(before, block.variables, strict=True):
        np.testing.assert_array_equal(old, v.numpy())
    assert len(net.trainable_variables) == 2
    block.trainable = True
    assert list(block.trainable_variables) == names
    gt.training.fit(net, (X, X[:, :1]), loss="mse", verbose=False)
    assert (block.scale.numpy() != before[0]).any() or (block.scale.numpy() != [1, 2, 3]).any()


@pytest.mark.parametrize("value", ["no", 0, None, [1]])
def test_trainable_is_true_or_false(value: Any) -> None:
    for module in (Dense(1), gt.Module()):
        with pytest.raises(TypeError, match="trainable must be True or False, got"):
            module.trainable = value


def test_a_copy_of_a_frozen_layer_thaws_by_itself() -> None:
    layer = Dense(2)
    layer(X)
    layer.trainable = False
    twin = copy.deepcopy(layer)
    twin.trainable = True
    assert len(twin.trainable_variables) == 2
    assert layer.trainable_variables == ()


def test_tapes_leave_frozen_variables_alone() -> None:
    layer = Dense(2)
    layer(X)
    layer.trainable = False
    with gt.GradientTape() as tape:
        y = gt.sum(layer(X))
    assert tape.gradient(y, layer.kernel) is None
    assert tape.watched_variables() == ()


def test_fit_follows_what_is_frozen_from_run_to_run_and_epoch_to_epoch() -> None:
    net, optimizer = model(), gt.training.Adam(0.05)
    dense, last = net.layers[0], net.layers[2]

    def changes(**options: Any) -> tuple[bool, bool]:
        before = [layer.kernel.numpy().copy() for layer in (dense, last)]
        gt.training.fit(
            net, (X, X[:, :1]), loss="mse", optimizer=optimizer, verbose=False, **options
        )
        after = [layer.kernel.numpy() for layer in (dense, last)]
        return (before[0] != after[0]).any(), (before[1] != after[1]).any()

    assert changes() == (True, True)
    dense.trainable = False
    assert changes() == (False, True)
    dense.trainable = True
    last.trainable = False
    assert changes() == (True, False)
    last.trainable = True

    def freeze(epoch: int, logs: Any) -> None:
        dense.trainable = False
        kept.append(dense.kernel.numpy().copy())

    kept: list[Any] = []
    changes(epochs=3, callbacks=[freeze])
    np.testing.assert_array_equal(kept[0], kept[2])


def test_what_is_frozen_is_saved(tmp_path: Path) -> None:
    net = model()
    net.layers[0].trainable = False
    net.layers[1].trainable = False
    gt.save(net, tmp_path / "net.h5")
    assert "Dense, frozen" in gt.saving.inspect_text(tmp_path / "net.h5")
    found = gt.load(tmp_path / "net.h5")
    assert [layer.trainable for layer in found.layers] == [False, False, True]
    assert found.trainable
    assert len(found.trainable_variables) == 2
    mean = found.layers[1].moving_mean.numpy().copy()
    gt.training.fit(found, (X, X[:, :1]), loss="mse", verbose=False)
    np.testing.assert_array_equal(found.layers[1].moving_mean.numpy(), mean)
    np.testing.assert_array_equal(found.layers[0].kernel.numpy(), net.layers[0].kernel.numpy())
    found.trainable = True
    # the moving statistics did not train before, and do not now
    assert len(found.trainable_variables) == 6


def test_a_loaded_module_can_be_frozen_and_thawed(tmp_path: Path) -> None:
    block = Block()
    block(X)
    gt.save(block, tmp_path / "block.h5")
    found = gt.load(tmp_path / "block.h5")
    assert len(found.trainable_variables) == 4
    found.trainable = False
    assert found.trainable_variables == ()
    gt.save(found, tmp_path / "again.h5")
    again = gt.load(tmp_path / "again.h5")
    assert not again.trainable
    assert again.trainable_variables == ()
    again.trainable = True
    assert len(again.trainable_variables) == 4
    np.testing.assert_array_equal(again(X).numpy(), block(X).numpy())


def test_a_saved_optimizer_keeps_to_its_variables_where_some_are_frozen(tmp_path: Path) -> None:
    class Both(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            # layers of one shape: their state could change places without a word
            self.net = Sequential([Dense(3), Dense(3), Dense(1)])
            self.optimizer = gt.training.Adam(0.05)

    def train(both: Any) -> None:
        options = {"optimizer": both.optimizer, "shuffle": False, "verbose": False}
        gt.training.fit(both.net, (X, X[:, :1]), loss="mse", **options)

    both = Both()
    train(both)
    both.net.layers[0].trainable = False
    gt.save(both, tmp_path / "both.h5")
    found = gt.load(tmp_path / "both.h5")
    for one in (both, found):
        train(one)
        one.net.trainable = True
        train(one)
    for a, b in zip(both.net.variables, found.net.variables, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5)

    other = gt.load(tmp_path / "both.h5")
    other.net = Sequential([Dense(3), Dense(1)])  # not the variables of the file
    with pytest.raises(ValueError, match="saved with the state of 6 variables, but the model trai"):
        train(other)


def test_the_summary_shows_what_is_frozen() -> None:
    net = model()
    net.layers[0].trainable = False
    text = net.summary()
    assert "layers/0 (Dense, frozen)" in text
    assert "layers/2 (Dense)" in text
    assert "Parameters: 37 (13 trainable)" in text
    net.trainable = False
    assert net.summary().startswith("Sequential 'sequential', frozen\n")
    assert "(0 trainable)" in net.summary()


def test_weights_are_copied_out_and_set() -> None:
    layer = Dense(2)
    layer(X)
    assert layer.count_params() == 8
    kernel, bias = np.arange(6.0).reshape(3, 2), np.array([1.0, -1.0])
    layer.set_weights([kernel, bias])
    found = layer.get_weights()
    np.testing.assert_array_equal(found[0], kernel)
    np.testing.assert_array_equal(found[1], bias)
    found[0][:] = 7.0
    np.testing.assert_array_equal(layer.kernel.numpy(), kernel)
    with pytest.raises(ValueError, match="layer 'dense' has 2 weights, set_weights got 1"):
        layer.set_weights([kernel])
    with pytest.raises(ValueError, match="set_weights"):
        layer.set_weights([kernel + 1.0, kernel])
    np.testing.assert_array_equal(layer.kernel.numpy(), kernel)


def test_a_layer_may_say_that_it_is_built() -> None:
    class Scale(gt.layers.Layer):
        def call(self, x: object) -> object:
            return x

        def build(self, input_shape: object) -> None:
            raise AssertionError("not asked for")

    layer = Scale()
    assert not layer.built
    layer.mark_built()
    assert layer.built
    layer(X)
    layer.mark_built(False)
    assert not layer.built


def test_nothing_trains_below_frozen_modules_inside_either() -> None:
    body = Sequential([Dense(4), Dense(3)])
    net = Sequential([body, Dense(1)])
    net(X)
    asked = gt.function(lambda x: len(net.trainable_variables))
    body.trainable = False
    body.layers[1].trainable = True  # as in Keras
    assert len(net.trainable_variables) == asked(X) == 2
    with pytest.raises(ValueError, match=r"'layers/0', which holds it, is frozen; thaw that first"):
        net.set_trainable(True, "layers/0/layers/1")
    net.set_trainable(True, "layers/0")
    assert len(net.trainable_variables) == asked(X) == 6
    net.set_trainable(False, "layers/0/layers/0")
    assert len(net.trainable_variables) == asked(X) == 4
    net.trainable = False
    with pytest.raises(ValueError, match="since the module itself is frozen"):
        net.set_trainable(True, "layers/1")


def test_a_variable_that_is_also_outside_a_frozen_module_trains() -> None:
    net = Sequential([Dense(3), Dense(3)])
    net(X)
    outer = gt.Module("outer")
    outer.net, outer.kernel = net, net.layers[0].kernel
    net.trainable = False
    net.layers[0].kernel.trainable = True
    assert outer.trainable_variables == (net.layers[0].kernel,)
    assert net.trainable_variables == ()


def test_files_keep_what_trains_inside_frozen_modules(tmp_path: Path) -> None:
    net = model()
    net.trainable = False
    net.layers[0].bias.trainable = True
    net.layers[2] = Dense(1)
    net(X)
    gt.save(net, tmp_path / "net.h5")
    assert gt.saving.verify(tmp_path / "net.h5").ok
    loaded = gt.load(tmp_path / "net.h5")
    loaded(X)
    assert [v.trainable for v in loaded.variables] == [v.trainable for v in net.variables]
    loaded.trainable = net.trainable = True
    assert [v.trainable for v in loaded.variables] == [v.trainable for v in net.variables]
