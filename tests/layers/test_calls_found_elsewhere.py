"""The ``call`` that Python finds runs: a mixin's, one that is set later, or no plain method."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers as L

X = np.random.default_rng(0).normal(size=(4, 6, 3)).astype("float32")
X[:, 3:] = 0


class Ten:
    def call(self, x: Any, **kwargs: Any) -> Any:
        return super().call(x, **kwargs) * 10.0  # type: ignore[misc]


class TenOnAnyArguments:
    def call(self, *args: Any, **kwargs: Any) -> Any:
        return super().call(*args, **kwargs) * 10.0  # type: ignore[misc]


class TenAround:
    def __call__(self, x: Any, **kwargs: Any) -> Any:
        return super().__call__(x, **kwargs) * 10.0  # type: ignore[misc]


class TenAsLayer(L.Layer):
    def call(self, x: Any, **kwargs: Any) -> Any:
        return super().call(x, **kwargs) * 10.0  # type: ignore[misc]


class TenAsModule(gt.Module):
    def call(self, x: Any, **kwargs: Any) -> Any:
        return super().call(x, **kwargs) * 10.0  # type: ignore[misc]


class Passing:
    def call(self, x: Any, **kwargs: Any) -> Any:
        return super().call(x, **kwargs)  # type: ignore[misc]


class Both(Passing, Ten):
    pass


KINDS: list[tuple[Any, tuple[Any, ...]]] = [
    (L.Dense, (3,)),
    (L.Dropout, (0.5,)),
    (L.BatchNorm, ()),
    (L.GRU, (3,)),
    (L.GlobalAveragePooling1D, ()),
]


def run(model: Any, training: bool) -> Any:
    gt.random.set_seed(3)
    return np.asarray(model(X, training=training))


@pytest.mark.parametrize(
    "mixin", [Ten, TenOnAnyArguments, TenAround, TenAsLayer, TenAsModule, Both]
)
@pytest.mark.parametrize(("kind", "args"), KINDS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_mixin_extends_the_layer_after_it(
    mixin: Any, kind: Any, args: Any, tmp_path: Path
) -> None:
    made = []
    for each in (kind, type("Own", (mixin, kind), {})):
        gt.random.set_seed(1)
        made.append(L.Sequential([L.Masking(), each(*args)]))
    plain, own = made
    for training in (True, False):
        want, got = run(plain, training), run(own, training)
        np.testing.assert_allclose(got, want * 10, rtol=1e-5, atol=1e-5)
    gt.save(own, tmp_path / "m.h5")
    loaded = gt.load(tmp_path / "m.h5")
    for training in (True, False):
        want = run(plain, training) * 10
        np.testing.assert_allclose(run(loaded, training), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [object, gt.Module])
def test_a_mixin_may_have_the_call_of_a_model(kind: Any) -> None:
    class Mixin(kind):  # type: ignore[misc]
        def call(self, x: Any, training: bool = False) -> Any:
            return x * (2.0 if training else 1.0)

    for base in (L.Model, L.Layer):
        for own in (type("Own", (Mixin, base), {}), type("Own", (base, Mixin), {})):
            if own.call is not Mixin.call:
                continue  # a model's own call comes first
            model = type("Further", (own,), {})()
            assert float(model(1.0, training=True)) == 2.0
            assert float(model(1.0)) == 1.0


class Doubling(L.Layer):
    def call(self, x: Any) -> Any:
        return x * 2.0


@pytest.mark.parametrize("graph", [False, True])
def test_a_call_that_is_set_on_an_object_runs(graph: bool, tmp_path: Path) -> None:
    def other(x: Any, **kwargs: Any) -> Any:
        return x * 0 + 7.0

    for layer in (Doubling(), L.Dense(3), L.Dropout(0.5), L.Sequential([L.Dense(3)])):
        model = L.Sequential([layer, L.Rescaling(2.0)])
        model(X)
        layer.call = gt.function(other) if graph else other
        assert (np.asarray(model(X)) == 14.0).all()
        gt.save(model, tmp_path / "m.h5")
        assert (np.asarray(gt.load(tmp_path / "m.h5")(X)) == 14.0).all()
        del layer.call
        assert not (np.asarray(model(X)) == 14.0).all()


def test_a_call_may_be_chosen_in_the_constructor() -> None:
    class Own(L.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = L.Dense(2)
            self.call = self.call_ten

        def call(self, x: Any) -> Any:
            return self.inner(x)

        def call_ten(self, x: Any) -> Any:
            return self.inner(x) * 10.0

    model = Own()
    np.testing.assert_array_equal(model(X), model.inner(X) * 10.0)
    assert len(model.trainable_variables) == 2


def test_a_call_that_is_set_on_the_class_runs(monkeypatch: Any, tmp_path: Path) -> None:
    layer = L.Dense(3)
    before = layer.call
    layer(X)
    monkeypatch.setattr(L.Dense, "call", lambda self, x: x * 0 + 7.0)
    assert (np.asarray(layer(X)) == 7.0).all()
    gt.save(layer, tmp_path / "m.h5")
    monkeypatch.undo()
    assert (np.asarray(gt.load(tmp_path / "m.h5")(X)) == 7.0).all()
    np.testing.assert_array_equal(layer(X), before(gt.constant(X)))


class Scaled(L.Layer):
    def call(self, x: Any, scale: float, training: bool = False) -> Any:
        return x * scale * (2.0 if training else 1.0)


class Part(Scaled):
    call = functools.partialmethod(Scaled.call, scale=3.0)


class Static(L.Layer):
    @staticmethod
    def call(x: Any, training: bool = False) -> Any:
        return x * 3.0 * (2.0 if training else 1.0)


class OfClass(L.Layer):
    factor = 3.0

    @classmethod
    def call(cls, x: Any, training: bool = False) -> Any:
        return x * cls.factor * (2.0 if training else 1.0)


class Named(L.Layer):
    def call(self, *, x: Any, training: bool = False) -> Any:
        return x * 3.0 * (2.0 if training else 1.0)


@pytest.mark.parametrize("kind", [Part, Static, OfClass, Named])
def test_a_call_need_not_be_a_plain_method(kind: Any, tmp_path: Path) -> None:
    layer = kind()
    model = L.Sequential([layer])
    for training, factor in ((True, 6.0), (False, 3.0)):
        np.testing.assert_allclose(model(X, training=training), X * factor)
        np.testing.assert_allclose(layer(x=X, training=training), X * factor)
    gt.save(model, tmp_path / "m.h5")
    np.testing.assert_allclose(gt.load(tmp_path / "m.h5")(X, training=True), X * 6.0)


def test_a_cell_is_called(tmp_path: Path) -> None:
    class Mixin:
        def call(self, x: Any, states: Any, **kwargs: Any) -> Any:
            y, after = super().call(x, states, **kwargs)  # type: ignore[misc]
            return y * 5.0, after

    for cell in (type("Own", (Mixin, L.GRUCell), {})(2), L.GRUCell(2)):
        model = L.RNN(cell, return_sequences=True)
        got = np.asarray(model(X))
        if type(cell) is L.GRUCell:
            old = cell.call

            def other(x: Any, states: Any, **kwargs: Any) -> Any:
                y, after = old(x, states, **kwargs)  # noqa: B023  # called in this round
                return y * 5.0, after

            cell.call = other
            np.testing.assert_allclose(model(X), got * 5.0, rtol=1e-5)
        got = np.asarray(model(X))
        gt.save(model, tmp_path / "m.h5")
        np.testing.assert_allclose(gt.load(tmp_path / "m.h5")(X), got, rtol=1e-5)
        stacked = L.RNN([cell, L.GRUCell(2)])
        assert stacked(X).shape == (4, 2)


def test_a_property_may_give_the_call() -> None:
    class Own(L.Layer):
        @property
        def call(self) -> Any:
            return lambda x: x * 3.0

    np.testing.assert_allclose(Own()(X), X * 3.0)


def test_inputs_may_be_the_name_of_another_argument() -> None:
    class Own(L.Layer):
        def call(self, x: Any, inputs: Any = None) -> Any:
            return x if inputs is None else x - inputs

    layer = Own()
    np.testing.assert_array_equal(layer(X, inputs=X), X * 0)
    np.testing.assert_array_equal(layer(inputs=X, x=X * 2), X)
    np.testing.assert_array_equal(Doubling()(inputs=X), X * 2)


def test_so_it_is_in_the_compatibility_layer() -> None:
    import gradtape.compat.tensorflow as tf

    keras = tf.keras

    class Own(Ten, keras.layers.Dense):  # type: ignore[misc, name-defined]
        pass

    layer = Own(2, kernel_initializer="ones", bias_initializer="ones")
    model = keras.Sequential([layer])
    np.testing.assert_allclose(model(np.ones((1, 3))), [[40.0, 40.0]])

    class Named(keras.layers.Layer):  # type: ignore[misc, name-defined]
        def call(self, x: Any, inputs: Any = None) -> Any:
            return x - inputs

    named = Named()(np.ones(2), inputs=np.ones(2) * 2)
    assert named.dtype.name == "float32"
    np.testing.assert_allclose(named, [-1.0, -1.0])
    layer.call = lambda x: x * 0 + 7.0
    np.testing.assert_allclose(model.predict(np.ones((1, 3)), verbose=0), [[7.0, 7.0, 7.0]])


def test_an_input_of_several_may_be_missing(tmp_path: Path) -> None:
    class Own(L.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner = L.Dense(3)

        def call(self, inputs: Any) -> Any:
            x, shift = inputs["x"], inputs["shift"]
            return self.inner(x) if shift is None else self.inner(x) + shift

    model = Own()
    y = np.asarray(model({"x": X, "shift": None}))
    np.testing.assert_allclose(model({"x": X, "shift": X}), y + X, rtol=1e-6)
    gt.save(model, tmp_path / "m.h5")
    loaded = gt.load(tmp_path / "m.h5")
    np.testing.assert_allclose(loaded({"x": X, "shift": None}), y, rtol=1e-6)
    np.testing.assert_allclose(loaded({"x": X, "shift": X}), y + X, rtol=1e-6)
    with gt.GradientTape() as tape:
        loss = gt.sum(model({"x": X, "shift": None}))
    assert all(g is not None for g in tape.gradient(loss, model.trainable_variables))
