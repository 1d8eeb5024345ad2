"""fit, evaluate and predict: histories, validation, Ctrl-C, errors that leave the state whole."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import BatchNorm, Dense, Dropout, Sequential
from gradtape.training import SGD, Adam, History, evaluate, fit, predict

RNG = np.random.default_rng(3)
X = RNG.normal(size=(120, 6)).astype("float32")
LABELS = (X @ RNG.normal(size=(6, 3))).argmax(1)


def classifier(seed: int = 0) -> Sequential:
    gt.random.set_seed(seed)
    return Sequential([Dense(16, activation="relu"), BatchNorm(), Dense(3)])


def state(*modules: Any) -> list[Any]:
    return [v.numpy().copy() for module in modules for v in module.variables]


def assert_same(before: list[Any], after: list[Any]) -> None:
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        np.testing.assert_array_equal(a, b)


def run(model: Any, data: Any = (X, LABELS), **options: Any) -> History:
    return fit(model, data, **{"verbose": False, "seed": 0, **options})


# -- what it does ----------------------------------------------------------------------------------


def test_it_learns_and_tells_how() -> None:
    model = classifier()
    done = run(model, epochs=12, optimizer=Adam(0.02), validation_split=0.25)
    history = done.history
    assert list(history) == ["loss", "accuracy", "val_loss", "val_accuracy"]
    assert all(len(values) == 12 for values in history.values())
    assert done.epoch == list(range(12))
    assert history["loss"][-1] < 0.5 * history["loss"][0]
    assert history["accuracy"][-1] > 0.9
    assert history["val_accuracy"][-1] > 0.7
    assert not done.interrupted
    assert "12 epochs" in repr(done)


def test_one_epoch_is_what_a_loop_by_hand_does() -> None:
    x, y = X[:50].astype("float64"), RNG.normal(size=(50, 1))
    one, two = Sequential([Dense(1)]), Sequential([Dense(1)])
    one(x), two(x)
    two.layers[0].kernel.assign(one.layers[0].kernel)
    done = run(one, (x, y), loss="mse", optimizer=SGD(0.1), batch_size=20, shuffle=False)
    optimizer, total = SGD(0.1), 0.0
    for start in (0, 20, 40):
        part = slice(start, start + 20)
        with gt.GradientTape() as tape:
            loss = gt.mean((two(x[part]) - y[part]) ** 2)
        weights = two.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        total += loss.item() * len(x[part])
    assert_same(state(one), state(two))
    assert done.history == {"loss": [pytest.approx(total / 50)]}


def test_the_seed_decides_the_order() -> None:
    def weights(seed: int | None, shuffle: bool = True) -> Any:
        model = classifier()
        run(model, epochs=2, seed=seed, shuffle=shuffle)
        return model.layers[0].kernel.numpy()

    np.testing.assert_array_equal(weights(1), weights(1))
    assert (weights(1) != weights(2)).any()
    assert (weights(1) != weights(1, shuffle=False)).any()


def test_every_example_is_seen_once_in_each_epoch() -> None:
    seen: list[Any] = []

    class Spy(gt.layers.Layer):
        def build(self, input_shape: Any) -> None:
            self.w = self.add_weight((), "ones")

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                seen.append(x.numpy()[:, 0])
            return x * self.w

    x = np.arange(10.0)[:, None]
    run(Spy(), (x, x), loss="mse", epochs=2, batch_size=4)
    assert [len(part) for part in seen] == [4, 4, 2, 4, 4, 2]
    first, second = np.concatenate(seen[:3]), np.concatenate(seen[3:])
    assert sorted(first) == sorted(second) == x[:, 0].tolist()
    assert first.tolist() != second.tolist()


def test_training_and_inference_are_told_apart() -> None:
    model = Sequential([Dropout(0.9, seed=0), Dense(1, kernel_initializer="ones")])
    x = np.ones((400, 1))
    measured = evaluate(model, (x, x), loss="mse")
    assert measured == {"loss": pytest.approx(0.0)}
    done = run(model, (x, x), loss="mse", optimizer=SGD(0.0), batch_size=400)
    assert done.history["loss"][0] == pytest.approx(9.0, rel=0.3)


def test_validation_leaves_the_model_alone_and_is_weighted_by_examples() -> None:
    model = classifier()
    done = run(model, validation_data=(X[:50], LABELS[:50]), batch_size=32)
    measured = evaluate(model, (X[:50], LABELS[:50]), batch_size=50)
    assert done.history["val_loss"] == [pytest.approx(measured["loss"], rel=1e-5)]
    assert done.history["val_accuracy"] == [pytest.approx(measured["accuracy"])]
    before = state(model)
    evaluate(model, (X, LABELS))
    assert_same(before, state(model))


def test_validation_split_takes_the_last_examples() -> None:
    x = X.copy()
    x[90:] = np.nan
    model = classifier()
    done = run(model, (x, LABELS), validation_split=0.25)
    assert np.isfinite(done.history["loss"]).all()
    assert np.isnan(done.history["val_loss"]).all()


def test_an_iterable_of_batches() -> None:
    batches = [(X[i : i + 40], LABELS[i : i + 40]) for i in (0, 40, 80)]
    done = run(classifier(), batches, epochs=2, validation_data=batches[:1])
    assert len(done.history["val_loss"]) == 2

    class Stream:
        def __iter__(self) -> Any:
            return iter(batches)

    assert len(run(classifier(), Stream(), epochs=2).epoch) == 2
    assert len(run(classifier(), iter(batches)).epoch) == 1


def test_losses_and_metrics_may_be_functions() -> None:
    def absolute(y_true: Any, y_pred: Any) -> Any:
        return gt.mean(gt.abs(y_true - y_pred), axis=-1)

    def worst(y_true: Any, y_pred: Any) -> Any:
        return gt.max(gt.abs(y_true - y_pred))

    done = run(Sequential([Dense(6)]), (X, X), loss=absolute, metrics=[worst])
    assert list(done.history) == ["loss", "worst"]
    assert done.history["worst"][0] > done.history["loss"][0]


def test_any_callable_module_trains() -> None:
    class Line(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.slope = gt.Variable(0.0)

        def __call__(self, x: Any) -> Any:
            return x * self.slope

    model = Line()
    x = np.linspace(-1, 1, 64, dtype="float32")[:, None]
    run(model, (x, 3 * x), loss="mse", optimizer=SGD(0.5), epochs=20)
    assert model.slope.item() == pytest.approx(3.0, abs=1e-3)


def test_predict_goes_batch_by_batch() -> None:
    model = classifier()
    y = predict(model, X, batch_size=50)
    assert y.shape == (120, 3)
    np.testing.assert_allclose(y.numpy(), model(X).numpy(), rtol=1e-5, atol=1e-6)


def test_no_epochs_change_nothing() -> None:
    model = classifier()
    model(X)
    before = state(model)
    assert run(model, epochs=0).history == {}
    assert_same(before, state(model))


def test_the_progress_bar_shows_epochs_and_values(capsys: Any) -> None:
    run(classifier(), epochs=2, verbose=True, validation_split=0.5)
    shown = capsys.readouterr().err
    assert "epoch 1/2" in shown
    assert "epoch 2/2" in shown
    assert "val_accuracy" in shown
    run(classifier(), epochs=1, verbose=False)
    assert capsys.readouterr().err == ""


# -- callbacks and Ctrl-C --------------------------------------------------------------------------


def test_callbacks_are_told_and_may_stop() -> None:
    told: list[Any] = []

    class Watcher:
        def on_train_begin(self) -> None:
            told.append("begin")

        def on_epoch_begin(self, epoch: int) -> None:
            told.append(epoch)

        def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
            told.append((batch, sorted(logs)))

        def on_train_end(self) -> None:
            told.append("end")

    done = run(
        classifier(),
        epochs=5,
        batch_size=60,
        callbacks=[Watcher(), lambda epoch, logs: epoch == 1 and "loss" in logs],
    )
    batches = [(0, ["accuracy", "loss"]), (1, ["accuracy", "loss"])]
    assert told == ["begin", 0, *batches, 1, *batches, "end"]
    assert done.epoch == [0, 1]
    assert not done.interrupted
    with pytest.raises(TypeError, match="a callback must be a function, or have one of"):
        run(classifier(), callbacks=[3])


class PressAt:
    """Press Ctrl-C at a batch, ``times`` times."""

    def __init__(self, at: int, times: int = 1) -> None:
        self.at, self.times, self.batches = at, times, 0

    def on_train_batch_end(self, batch: int, logs: Any) -> None:
        self.batches += 1
        if self.batches == self.at:
            for _ in range(self.times):
                os.kill(os.getpid(), signal.SIGINT)


def test_ctrl_c_stops_at_the_batch_and_keeps_the_weights() -> None:
    model, optimizer = classifier(), Adam()
    handler = signal.getsignal(signal.SIGINT)
    press = PressAt(6)
    done = run(model, epochs=10, optimizer=optimizer, batch_size=30, callbacks=[press])
    assert done.interrupted
    assert press.batches == 6
    assert done.epoch == [0]
    assert len(done.history["loss"]) == 1
    assert optimizer.iterations.item() == 6
    assert "interrupted" in repr(done)
    assert signal.getsignal(signal.SIGINT) is handler
    twin, its = classifier(), Adam()
    run(twin, epochs=10, optimizer=its, batch_size=30, callbacks=[PressAt(6)])
    assert_same(state(model), state(twin))
    run(model, epochs=1, optimizer=optimizer)  # and one can go on


def test_ctrl_c_within_a_step_lets_it_finish() -> None:
    class Pressing(gt.layers.Layer):
        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                os.kill(os.getpid(), signal.SIGINT)
            return x

    optimizer = SGD(0.1)
    done = run(Sequential([Pressing(), Dense(3)]), optimizer=optimizer, epochs=3)
    assert done.interrupted
    assert optimizer.iterations.item() == 1
    assert done.history == {}


def test_ctrl_c_after_an_epoch_keeps_its_record() -> None:
    def press(epoch: int, logs: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    done = run(classifier(), epochs=5, callbacks=[press])
    assert done.interrupted
    assert done.epoch == [0]


def test_ctrl_c_twice_interrupts_at_once_and_restores_the_epochs_start() -> None:
    model, optimizer = classifier(), Adam()
    run(model, optimizer=optimizer)
    before = state(model, optimizer)
    with pytest.raises(KeyboardInterrupt):
        run(model, optimizer=optimizer, callbacks=[PressAt(2, times=2)])
    assert_same(before, state(model, optimizer))


def test_it_works_in_a_thread() -> None:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(run(classifier())))
    thread.start()
    thread.join()
    assert len(results[0].epoch) == 1


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        ((X, LABELS[:-1]), {}, r"x and y have different lengths: shapes \(120, 6\) and \(119,\)"),
        ((X[:0], LABELS[:0]), {}, r"x has no examples, its shape is \(0, 6\)"),
        ((X, 3), {}, r"y has no examples, its shape is \(\)"),
        ([], {}, "data has no batches"),
        (iter([(X, LABELS)]), {"epochs": 2}, "exhausted after one of 2 passes"),
        ([(X, LABELS)], {"validation_split": 0.5}, "validation_split needs data that is a pair"),
        ([(X, LABELS[:3])], {}, r"batch 0 has x of shape \(120, 6\) and y of shape \(3,\)"),
        ([X], {}, "batch 0 must be"),
        ((X, LABELS), {"validation_split": 1.0}, r"validation_split must be in \[0, 1\)"),
        ((X, LABELS), {"validation_split": 0.001}, "leaves one part empty"),
        ((X, LABELS), {"validation_data": (X, LABELS[:5])}, "validation_data: x and y have diff"),
        (
            (X, LABELS),
            {"validation_data": (X, LABELS), "validation_split": 0.5},
            "validation_data or validation_split, not both",
        ),
        ((X, LABELS), {"epochs": -1}, "epochs must be a non-negative integer, got -1"),
        ((X, LABELS), {"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        (
            (X, LABELS),
            {"optimizer": "adamx"},
            "unknown optimizer 'adamx'; did you mean 'adamax'\\? Known: adadelta, adagrad",
        ),
        ((X, LABELS), {"loss": "hinges"}, "unknown loss 'hinges'; did you mean 'hinge'"),
        ((X, LABELS), {"metrics": ["auc"]}, "unknown metric 'auc'; did you mean 'AUC'"),
        ((X, LABELS), {"metrics": ["accuracy", "accuracy"]}, "two metrics are called 'accuracy'"),
    ],
)
def test_bad_arguments_are_refused_before_anything_changes(
    data: Any, options: dict[str, Any], message: str
) -> None:
    model = classifier()
    model(X)
    before = state(model)
    with pytest.raises(ValueError, match=message):
        run(model, data, **options)
    assert_same(before, state(model))


def test_what_is_no_model_data_or_optimizer() -> None:
    with pytest.raises(TypeError, match=r"expected a model, a gradtape.Module"):
        run(lambda x: x)
    with pytest.raises(TypeError, match="expected an optimizer or the name of one, got 3"):
        run(classifier(), optimizer=3)
    with pytest.raises(TypeError, match=r"a pair of arrays .* or an iterable of such batches"):
        run(classifier(), 3)
    with pytest.raises(ValueError, match="has no trainable variables"):
        run(Sequential([gt.tanh]), (X, X), loss="mse")
    with pytest.raises(ValueError, match="data has no batches"):
        evaluate(classifier(), iter([]))


def test_a_loss_that_is_not_finite_stops_and_restores() -> None:
    x = X.copy()
    x[100] = np.nan
    model, optimizer = classifier(), Adam()
    run(model, optimizer=optimizer)
    before = state(model, optimizer)
    with pytest.raises(FloatingPointError, match="the loss is nan; a smaller learning rate"):
        run(model, (x, LABELS), optimizer=optimizer, shuffle=False)
    assert_same(before, state(model, optimizer))


def test_an_error_in_an_epoch_restores_its_start() -> None:
    model, optimizer = classifier(), SGD(0.1, 0.9)
    run(model, optimizer=optimizer)
    before = state(model, optimizer)

    def broken(y_true: Any, y_pred: Any) -> Any:
        if optimizer.iterations.item() > 5:
            raise RuntimeError("no metric today")
        return y_true == 0

    with pytest.raises(RuntimeError, match="no metric today"):
        run(model, optimizer=optimizer, metrics=[broken])
    assert_same(before, state(model, optimizer))


def test_a_variable_without_a_gradient_is_named() -> None:
    class Forgetful(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used = gt.Variable(1.0, name="used")
            self.idle = gt.Variable(1.0, name="idle")

        def __call__(self, x: Any) -> Any:
            return x * self.used

    model = Forgetful()
    with pytest.raises(ValueError, match=r"no gradient for the variable 'idle' of the model"):
        run(model, (X, X), loss="mse")
    assert model.used.item() == 1.0
