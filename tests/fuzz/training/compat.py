"""The same of ``gradtape.compat.tensorflow``: batches, files, seeds, steps and callbacks."""

from __future__ import annotations

import random
from typing import Any

import gradtape as gt
from fuzz.training.batches import built
from fuzz.training.drawing import Options, a_run
from fuzz.training.loaded import hands_masks_on, stirred
from fuzz.training.relations import Line, Pairs, Program, relation, tensorflow
from gradtape import training as tr

__all__ = ["of_keras"]

#: Names there, where they are not in ``tf.keras.layers``; the longest first.
_ELSEWHERE = {
    "L.regularizers": "tf.keras.regularizers",
    "L.Sequential": "tf.keras.Sequential",
    "tr.": "tf.keras.optimizers.",
    "L.BatchNorm(": "tf.keras.layers.BatchNormalization(",
    "L.": "tf.keras.layers.",
}
_OWN = ("functional", "branches", "Penalised", "Shift", "Scale", "Residual", "Counting", "SelfAtt")
_OPTIONS = Options(own=False, several=False, weights=False, constraints=False, tasks=("numbers",))


def of_keras(rng: random.Random) -> Program:
    """Draw a run of a model of compat's layers."""
    while True:
        lines = dict(a_run(rng, _OPTIONS).lines)
        if not any(name in str(lines["model"]) for name in _OWN):
            break
    lines["goals"] = Line("lambda: dict(loss='mse', metrics=['mae'])")
    for name in ("model", "settings"):
        line = lines[name]
        for here, there in _ELSEWHERE.items():
            items = tuple(item.replace(here, there) for item in line.items)
            line = Line(line.text.replace(here, there), items)
        lines[name] = line
    return Program(lines)


def _compiled(model: Any, p: Any, **options: Any) -> Any:
    chosen = {"optimizer": p.settings().get("optimizer", "sgd"), "run_eagerly": True, **options}
    model.compile(**p.goals(), **chosen)
    return model


@relation("batches", of_keras)
def compat_sizes(p: Any) -> Pairs:
    """``evaluate``, ``predict`` and history do not depend on the size of batches."""
    model = _compiled(built(p), p, optimizer=tr.SGD(0.0))
    want = model.evaluate(p.x, p.y, batch_size=len(p.x), verbose=0)
    for size in (1, 2, len(p.x) + 1):
        got = model.evaluate(p.x, p.y, batch_size=size, verbose=0)
        yield f"evaluate, batch_size={size}", got, want
        yield "predict", model.predict(p.x, batch_size=size, verbose=0), model(p.x)
    validation = {"validation_data": (p.x, p.y), "validation_batch_size": 2}
    history = model.fit(p.x, p.y, batch_size=2, verbose=0, **validation).history
    if all(variable.trainable for variable in model.variables):  # no moving statistics
        yield "validation", history["val_loss"][-1], want[0]


@relation("loaded", of_keras)
def compat(p: Any) -> Pairs:
    """``save`` and ``load_model``."""
    model = _compiled(stirred(built(p)), p)
    model.save("m.keras")
    other = _compiled(tensorflow().keras.models.load_model("m.keras"), p)
    yield "predict", other.predict(p.x, verbose=0), model.predict(p.x, verbose=0)
    yield "weights", other.get_weights(), model.get_weights()
    if not hands_masks_on(other, model, p):
        return
    yield "evaluate", *(m.evaluate(p.x, p.y, verbose=0) for m in (other, model))
    options = {"epochs": 1, "shuffle": False, "verbose": 0, "batch_size": 2}
    histories = []
    for each in (other, model):
        gt.random.set_seed(3)
        histories.append(each.fit(p.x, p.y, **options).history)
    yield "history", *histories
    yield "trained weights", other.get_weights(), model.get_weights()
    yield "layers", *([layer.name for layer in m.layers] for m in (other, model))


@relation("loaded", of_keras)
def compat_weights(p: Any) -> Pairs:
    """``save_weights``, ``load_weights``, ``get_weights`` and ``set_weights``."""
    model, other = stirred(built(p)), stirred(built(p))
    for variable in other.variables:
        variable.assign(variable.numpy() * 0)
    model.save_weights("m.weights.h5")
    other.load_weights("m.weights.h5")
    yield "loaded", other.get_weights(), model.get_weights()
    other.set_weights([x * 0 for x in model.get_weights()])
    other.set_weights(model.get_weights())
    yield "outputs", other(p.x), model(p.x)


@relation("seeded", of_keras, exact=True)
def compat_seeds(p: Any) -> Pairs:
    """``tf.keras.utils.set_random_seed`` and ``tf.random.set_seed`` repeat ``fit``."""
    tf = tensorflow()
    for what, seed in (("keras", tf.keras.utils.set_random_seed), ("random", tf.random.set_seed)):
        runs = []
        for _ in range(2):
            seed(3)
            model = _compiled(built(p), p)
            history = model.fit(p.x, p.y, batch_size=2, epochs=2, verbose=0).history
            runs.append((history, model.get_weights()))
        yield f"set_seed of {what}: history", runs[0][0], runs[1][0]
        yield f"set_seed of {what}: weights", runs[0][1], runs[1][1]


@relation("undisturbed", of_keras, exact=True)
def compat_validation(p: Any) -> Pairs:
    """Validation, ``evaluate``, ``predict`` and files change no training."""
    tf = tensorflow()
    runs = []
    for disturbed in (True, False):
        tf.keras.utils.set_random_seed(3)
        model = _compiled(built(p), p)
        options: dict[str, Any] = {"batch_size": 2, "epochs": 2, "verbose": 0}
        if disturbed:

            def use(epoch: int, logs: Any, model: Any = model) -> None:
                model.evaluate(p.x, p.y, verbose=0)
                model.predict(p.x, verbose=0)
                model.save_weights("m.weights.h5")
                model.summary()

            options |= {"validation_data": (p.x, p.y), "verbose": 2}
            options["callbacks"] = [tf.keras.callbacks.LambdaCallback(on_epoch_end=use)]
        history = model.fit(p.x, p.y, **options).history
        runs.append((history["loss"], model.get_weights()))
    yield "losses", *(losses for losses, _ in runs)
    yield "weights", *(weights for _, weights in runs)


@relation("wrapped", of_keras)
def compat_steps(p: Any) -> Pairs:
    """``train_on_batch`` and a ``train_step`` as Keras documents it are the steps of ``fit``."""
    tf = tensorflow()

    class Own(tf.keras.Sequential):  # type: ignore[misc, name-defined, unused-ignore]
        def train_step(self, data: Any) -> Any:
            x, y = data
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=predicted)
            slopes = tape.gradient(loss, self.trainable_variables)
            self.optimizer.apply_gradients(zip(slopes, self.trainable_variables, strict=True))
            for metric in self.metrics:
                if metric.name == "loss":
                    metric.update_state(loss)
                else:
                    metric.update_state(y, predicted)
            return {metric.name: metric.result() for metric in self.metrics}

    options = {"batch_size": 2, "epochs": 1, "shuffle": False, "verbose": 0}
    found = []
    for how in ("fit", "train_step", "train_on_batch"):
        tf.keras.utils.set_random_seed(3)
        model = p.model()
        if how == "train_step":
            model = Own(model.layers)
        model(p.x)
        _compiled(model, p, optimizer=tr.SGD(0.05, momentum=0.5))
        gt.random.set_seed(3)
        if how == "train_on_batch":
            for start in range(0, len(p.x), 2):
                model.train_on_batch(p.x[start : start + 2], p.y[start : start + 2])
        else:
            model.fit(p.x, p.y, **options)
        found.append(model.get_weights())
    yield "train_step", found[1], found[0]
    yield "train_on_batch", found[2], found[0]
