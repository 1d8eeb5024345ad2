"""What people do with models of their own before, while and after they save them."""

from __future__ import annotations

import pickle
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from saved_modules import reloaded

import gradtape as gt
from gradtape.core.extend import hookimpl
from gradtape.layers import Dense, Dropout, Sequential
from gradtape.training import Adam, fit

X = np.random.default_rng(0).normal(size=(40, 3)).astype("float32")


def values(module: gt.Module) -> list[bytes]:
    return [variable.numpy().tobytes() for variable in module.variables]


def trained(first: bool = True) -> tuple[Any, Any]:
    """A model and its optimizer; the first layer is frozen first unless ``first``."""
    gt.random.set_seed(0)
    model, optimizer = Sequential([Dense(3), Dense(3)]), Adam(0.05)
    model(X)
    for trainable in (first, True):
        model.layers[0].trainable = trainable
        train(model, optimizer)
    return model, optimizer


def train(model: Any, optimizer: Any) -> None:
    fit(model, (X, X), loss="mse", optimizer=optimizer, seed=0, verbose=False)


# -- an optimizer apart from its model -------------------------------------------------------------


@pytest.mark.parametrize("first", [True, False])
def test_an_optimizer_goes_on_with_a_model_from_another_pickle(first: bool) -> None:
    model, optimizer = trained(first)
    copy, its = pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(optimizer))
    assert its.unclaimed == 4
    train(model, optimizer)
    train(copy, its)
    assert values(copy) == values(model)
    assert values(its) == values(optimizer)


def test_an_optimizer_from_a_pickle_goes_on_where_a_part_is_frozen() -> None:
    model, optimizer = trained()
    copy, its = pickle.loads(pickle.dumps(model)), pickle.loads(pickle.dumps(optimizer))
    for each, of_each in ((model, optimizer), (copy, its)):
        each.layers[0].trainable = False
        train(each, of_each)
        each.layers[0].trainable = True
        train(each, of_each)
    assert values(copy) == values(model)


def test_an_optimizer_from_a_pickle_serves_a_model_made_anew_in_its_order() -> None:
    _, optimizer = trained()
    its = pickle.loads(pickle.dumps(optimizer))
    other = Sequential([Dense(3), Dense(3)])
    other(X)
    pairs = [(np.ones(v.shape, "float32"), v) for v in other.variables]
    its.apply_gradients(pairs)
    assert len(its.first_moments) == 4
    assert its.iterations.item() == optimizer.iterations.item() + 1


# -- what saving runs leaves nothing behind --------------------------------------------------------


class Counting(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(1.5)
        self.calls, self.history, self.seen = 0, [0], {"sizes": set()}
        self.mean = np.zeros(2)
        self.numpy_random, self.python_random = np.random.default_rng(0), random.Random(0)
        self.last: Any = None

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        self.history.append(self.calls)
        self.seen["sizes"].add(self.calls)
        self.mean += 1.0
        self.numpy_random.random(), self.python_random.random()
        self.last = x * self.w
        return self.last


def test_saving_leaves_python_state_as_it_was(tmp_path: Path) -> None:
    module, other = Counting(), Counting()
    for each in (module, other):
        each(X)
        each(X)
    last = module.last
    with pytest.warns(UserWarning, match="numpy_random"):
        gt.save(module, tmp_path / "m.h5")
    assert module.last is last
    assert (module.calls, module.history, module.seen) == (2, [0, 1, 2], {"sizes": {1, 2}})
    assert module.mean.tolist() == [2.0, 2.0]
    assert module.numpy_random.random() == other.numpy_random.random()
    assert module.python_random.random() == other.python_random.random()
    assert gt.load(tmp_path / "m.h5").calls == 2


def test_a_save_that_fails_leaves_python_state_too(tmp_path: Path) -> None:
    class Branching(Counting):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) if len(x) > 1 else x

    module = Branching()
    module(X)
    with pytest.raises(gt.saving.SaveError):
        gt.save(module, tmp_path / "m.h5")
    assert module.calls == 1


# -- what is not in the file is said ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (gt.training.losses.Huber(), r"root\.part \(an object of class Huber\)"),
        (gt.training.History(), r"root\.part \(an object of class History\)"),
        (2**100, r"root\.part \(an integer of more than 64 bits\)"),
        ([2**100], r"root\.part\[0\] \(an integer of more than 64 bits; None is in its place\)"),
        (gt.layers.initializers.GlorotUniform(), ""),
    ],
)
def test_what_a_file_does_not_hold_is_told_of_gradtapes_own_too(
    value: Any, told: str, tmp_path: Path
) -> None:
    root = gt.Module("root")
    root.part, root.model = value, Dense(2)
    root.model(X)
    if told:
        with pytest.warns(UserWarning, match=told) as caught:
            loaded = reloaded(root, tmp_path)
        assert len(caught) == 1
    else:
        with warnings.catch_warnings(action="error"):
            loaded = reloaded(root, tmp_path)
    np.testing.assert_array_equal(loaded.model(X), root.model(X))


ONES, TWO = np.ones(3, "float32"), np.float32(2)


def test_a_default_that_is_an_array_is_told_and_traced(tmp_path: Path) -> None:
    class Weighted(gt.Module):
        def __call__(self, x: Any, w: Any = ONES, k: Any = TWO) -> Any:
            return x * w * k

    module = Weighted()
    module(X)
    with pytest.warns(UserWarning, match="the default of 'w', which has to be given"):
        loaded = reloaded(module, tmp_path)
    given = np.arange(3, dtype="float32")
    np.testing.assert_array_equal(loaded(X, given), module(X, given))
    np.testing.assert_array_equal(loaded(X, given, 3.0), module(X, given, np.float32(3)))


# -- parts that were never called ------------------------------------------------------------------


class Plain(gt.Module):
    """A loss, or a schedule: it has no variables."""

    def __call__(self, step: Any) -> Any:
        return 0.1 * step


class Learning(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.d = Dense(2)

    def __call__(self, x: Any) -> Any:
        return self.d(x)


@pytest.mark.parametrize("part", [Plain, gt.training.metrics.Mean, lambda: Dropout(0.5)])
def test_a_part_that_learns_nothing_need_not_be_called(part: Any, tmp_path: Path) -> None:
    root = gt.Module("root")
    root.model, root.part = Dense(2), part()
    root.model(X)
    with warnings.catch_warnings(action="error"):
        loaded = reloaded(root, tmp_path)
    np.testing.assert_array_equal(loaded.model(X), root.model(X))


@pytest.mark.parametrize(("parts", "where"), [([Plain], "parts.0"), ([Plain, Learning], "parts.1")])
def test_a_part_that_was_to_be_called_is_named_with_its_place(
    parts: Any, where: str, tmp_path: Path
) -> None:
    root = gt.Module("root")
    root.parts = [part() for part in parts]
    if len(parts) > 1:
        root.model = Dense(2)
        root.model(X)
    with pytest.raises(gt.saving.SaveError, match=rf"at '{where}' was never called"):
        gt.save(root, tmp_path / "m.h5")


# -- float64 that is meant -------------------------------------------------------------------------


class Casting(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.ones(2, "float32"))

    def __call__(self, x: Any) -> Any:
        return gt.cast(x, "float32") * self.w


class Asked(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.ones(2), dtype="float64")

    def __call__(self, x: Any) -> Any:
        return x * self.w


@pytest.mark.parametrize("make", [Casting, Asked])
def test_float64_that_is_meant_gives_no_warning(make: Any, tmp_path: Path) -> None:
    module = make()
    module(np.ones((3, 2)))
    with warnings.catch_warnings(action="error"):
        loaded = reloaded(module, tmp_path)
        gt.save(loaded, tmp_path / "again.h5")


def test_a_model_of_the_float64_default_is_saved_without_a_warning_later(tmp_path: Path) -> None:
    gt.set_default_dtype("float64")
    try:
        model = Sequential([Dense(2)])
        model(X)
        custom = Asked()
    finally:
        gt.set_default_dtype("float32")
    custom(np.ones((1, 2)))
    with warnings.catch_warnings(action="error"):
        gt.save(custom, tmp_path / "m.h5")
        gt.save(model, tmp_path / "m.h5")


def test_variables_are_named_by_their_place_in_the_model(tmp_path: Path) -> None:
    model = Sequential([Dense(2), Dense(2)])
    model(X.astype("float64"))
    with pytest.warns(UserWarning, match=r"sequential\.layers\.1\.kernel"):
        gt.save(model, tmp_path / "m.h5")


# -- weights ---------------------------------------------------------------------------------------


def with_dropout() -> Any:
    return Sequential([Dense(4), Dropout(0.5), Dense(3)])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("called", [True, False])
def test_a_model_with_dropout_takes_weights_before_its_first_call(
    whole: bool, called: bool, tmp_path: Path
) -> None:
    model, other = with_dropout(), with_dropout()
    model(X, training=True)
    (gt.save if whole else gt.save_weights)(model, tmp_path / "w.h5")
    if called:
        other(X)
    report = other.load_weights(tmp_path / "w.h5")
    assert report.counts() == "5 loaded"
    assert values(other) == values(model)
    np.testing.assert_array_equal(other(X, training=True), model(X, training=True))


@pytest.mark.parametrize("called", [True, False])
def test_weights_come_from_a_checkpoint_of_fit(called: bool, tmp_path: Path) -> None:
    model, other = with_dropout(), with_dropout()
    fit(model, (X, X), loss="mse", checkpoint=tmp_path / "run.h5", verbose=False)
    if called:
        other(X)
    with warnings.catch_warnings(action="error"):
        report = other.load_weights(tmp_path / "run.h5")
    assert report.counts().startswith("5 loaded")
    assert report.left_out["optimizer/iterations"] == "of the run, not of its model"
    assert values(other) == values(model)


def test_a_checkpoint_without_a_model_is_read_by_its_names(tmp_path: Path) -> None:
    model, other = with_dropout(), with_dropout()
    model(X)
    gt.training.Checkpoint(net=model).save(tmp_path / "c.h5")
    arrays = gt.saving.read_weights(tmp_path / "c.h5")
    assert "net/layers/0/kernel" in arrays
    other.load_weights(tmp_path / "c.h5", mapping=[("^net/", "")])
    assert values(other) == values(model)


# -- errors ----------------------------------------------------------------------------------------


def test_a_call_that_no_trace_takes_is_told_without_the_numbers_in_it(tmp_path: Path) -> None:
    class Scaled(gt.Module):
        def __call__(self, x: Any, scale: float = 1.0, axes: Any = ()) -> Any:
            return gt.sum(x * scale, axis=tuple(axes))

    module = Scaled()
    module(X)
    module(X, 2.0)
    loaded = reloaded(module, tmp_path)
    with pytest.raises(TypeError, match="no saved trace takes") as caught:
        loaded(X, 3.0)
    assert "(40, 3)" in str(caught.value)
    assert len(str(caught.value)) < 400
    with pytest.raises(TypeError, match=r"no saved trace takes .*\[0\]") as caught:
        loaded(X, 2.0, [0])
    assert "array" not in str(caught.value)


def test_a_class_in_a_configuration_is_named(tmp_path: Path) -> None:
    class Typed(gt.layers.Layer, saved_as="habits.Typed"):
        def __init__(self, kind: Any, name: Any = None, dtype: Any = None) -> None:
            super().__init__(name, dtype)
            self.kind = kind

        def call(self, x: Any) -> Any:
            return x * 1.0

        def get_config(self) -> dict[str, Any]:
            return {**super().get_config(), "kind": self.kind}

    class Plugin:
        @staticmethod
        @hookimpl
        def gradtape_modules() -> Any:
            return {"habits.Typed": Typed}

    gt.register_plugin(Plugin(), "habits")
    try:
        layer = Typed(np.float32)
        layer(X)
        with pytest.raises(gt.saving.SaveError, match="'kind': a value of type type"):
            gt.save(layer, tmp_path / "m.h5")
    finally:
        gt.unregister_plugin("habits")


# -- a resumed run ---------------------------------------------------------------------------------


def test_a_resumed_run_has_the_rate_of_the_file_until_a_callback_sets_another(
    tmp_path: Path,
) -> None:
    def rate_of(run: Any, epochs: int, callbacks: Any = ()) -> float:
        optimizer = gt.training.SGD(run)
        model = Sequential([Dense(3)])
        for callback in callbacks:
            callback.optimizer = optimizer
        path = tmp_path / "run.h5"
        settings = {"loss": "mse", "verbose": False, "checkpoint": path, "resume": True}
        fit(model, (X, X), epochs=epochs, optimizer=optimizer, callbacks=callbacks, **settings)
        return float(optimizer.learning_rate.item())

    class Slower:
        def on_epoch_begin(self, epoch: int) -> None:
            self.optimizer.learning_rate = 0.02

    assert rate_of(0.1, 1) == 0.1
    assert rate_of(0.5, 2) == 0.1
    assert rate_of(0.5, 3, [Slower()]) == 0.02
    assert rate_of(0.5, 4) == 0.02
