"""``fit(distributed=group)`` against ``fit`` of one process on the same batches."""

from __future__ import annotations

import os
import signal
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from checking import FOLDER, RANK, SIZE, alike, apart, group, refusal

import gradtape as gt
from gradtape.training import fit

DRAW = np.random.default_rng(0)
N = 203  # the last batch of 32 has 11 rows
X = DRAW.normal(size=(N, 8)).astype("float32")
Y = DRAW.integers(0, 3, N)
WEIGHT = DRAW.random(N).astype("float32")
losses, metrics = gt.training.losses, gt.training.metrics


class Steps:
    """What each step measured."""

    def __init__(self) -> None:
        self.logs: list[dict[str, float]] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, float]) -> None:
        self.logs.append(dict(logs))


def folder() -> str:
    """Return a folder that all ranks see."""
    made = tempfile.mkdtemp(dir=FOLDER) if RANK == 0 else ""
    return group.communicator.exchange(made.encode())[0].decode()


def network(norm: bool = False, drop: bool = False, noise: bool = False) -> Any:
    gt.random.set_seed(1)
    layers: list[Any] = [gt.layers.Dense(16, activation="relu")]
    layers += [gt.layers.BatchNorm(synchronized=True)] if norm else []
    layers += [gt.layers.Dropout(0.3)] if drop else []
    layers += [gt.layers.GaussianNoise(0.1)] if noise else []
    return gt.layers.Sequential([*layers, gt.layers.Dense(3)])


def compared(make: Any, data: Any, epochs: int = 3, **options: Any) -> dict[str, Any]:
    """Fit by all ranks, and by this one alone; return how far they are apart."""
    results = []
    options = {"batch_size": 32, "seed": 3, "verbose": False, **options}
    given = options.pop("optimizer", lambda: gt.training.Adam(0.01))
    measured = options.pop("metrics", lambda: None)
    for distributed in (group, None):
        model, steps = make(), Steps()
        history = fit(
            model,
            data() if callable(data) else data,
            epochs=epochs,
            callbacks=[steps],
            optimizer=given(),
            metrics=measured(),
            distributed=distributed,
            **options,
        )
        results.append((steps.logs, history.history, [v.numpy() for v in model.variables]))
    (logs, history, weights), (reference, known, kept) = results
    assert len(logs) == len(reference)
    assert history.keys() == known.keys()
    return {
        "steps": max(abs(a[k] / b[k] - 1) for a, b in zip(logs, reference, strict=True) for k in a),
        "history": max(apart(history[k], known[k]) for k in known),
        "weights": max(apart(a, b) for a, b in zip(weights, kept, strict=True)),
        "alike": alike(weights),
    }


def own_loss(y: Any, predicted: Any) -> Any:
    """A loss of the whole batch, which is no mean over examples."""
    values = losses.sparse_categorical_crossentropy(y, predicted)
    return gt.mean(values) + 0.1 * gt.log(gt.mean(values**2))


def own_metric(y: Any, predicted: Any) -> Any:
    return gt.mean(predicted**2) ** 2


def several() -> Any:
    x = gt.layers.Input((8,))
    hidden = gt.layers.Dense(8, activation="tanh")(x)
    outputs = {"a": gt.layers.Dense(3)(hidden), "b": gt.layers.Dense(1)(hidden)}
    gt.random.set_seed(1)
    return gt.Model(x, outputs)


def masked() -> Any:
    gt.random.set_seed(1)
    return gt.layers.Sequential(
        [
            gt.layers.Embedding(5, 6, mask_zero=True),
            gt.layers.GRU(5, return_sequences=True),
            gt.layers.Dense(3),
        ]
    )


def recurrent() -> Any:
    """Return a model with dropout that is first called in a training step."""
    gt.random.set_seed(1)
    lstm = gt.layers.LSTM(4, dropout=0.3, recurrent_dropout=0.3)
    return gt.layers.Sequential([gt.layers.Embedding(5, 6), lstm, gt.layers.Dense(3)])


def half() -> Any:
    gt.random.set_seed(1)
    dense = gt.layers.Dense(16, activation="relu", dtype="mixed_float16")
    return gt.layers.Sequential([dense, gt.layers.Dense(3, dtype="float32")])


def regularized() -> Any:
    gt.random.set_seed(1)
    first = gt.layers.Dense(
        16, activation="relu", kernel_regularizer="l2", activity_regularizer="l2"
    )
    return gt.layers.Sequential([first, gt.layers.Dense(3)])


def training() -> dict[str, Any]:
    """Every kind of loss, metric, data and option."""
    tokens = DRAW.integers(0, 5, (N, 7))
    tokens[:, -1] = 1
    of_steps = DRAW.integers(0, 3, (N, 7))
    both = {"a": Y, "b": X[:, :1]}
    held_out = (X[:50], Y[:50])

    def pipeline() -> Any:
        return gt.data.Dataset.from_tensor_slices((X, Y)).shuffle(50).batch(32)

    batches = [(X[i : i + 30], Y[i : i + 30]) for i in range(0, N, 30)]
    crossentropies = {"a": "sparse_categorical_crossentropy", "b": "mse"}
    adam = gt.training.Adam
    cases: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "plain": (network, (X, Y), {"validation_data": held_out}),
        "eager": (network, (X, Y), {"compile": False}),
        "compiled": (network, (X, Y), {"compile": True, "validation_split": 0.2}),
        "norm and dropout": (
            lambda: network(True, True, True),
            (X, Y),
            {"validation_data": held_out, "compile": True},
        ),
        "metrics": (
            network,
            (X, Y),
            {
                "metrics": lambda: [
                    "accuracy",
                    metrics.SparseTopKCategoricalAccuracy(2),
                    own_metric,
                ],
                "validation_data": held_out,
                "weighted_metrics": ["sparse_categorical_accuracy"],
            },
        ),
        "own loss": (lambda: network(True), (X, Y), {"loss": own_loss}),
        "a class left out": (
            network,
            (X, Y),
            {"loss": losses.SparseCategoricalCrossentropy(ignore_class=1)},
        ),
        "a sum": (network, (X, Y), {"loss": losses.SparseCategoricalCrossentropy(reduction="sum")}),
        "weights": (network, (X, Y, WEIGHT), {"class_weight": {0: 2.0, 1: 0.5}}),
        "outputs": (several, (X, both), {"loss": crossentropies, "loss_weights": {"b": 0.3}}),
        "masks": (masked, (tokens, of_steps), {"epochs": 1, "metrics": lambda: ["accuracy"]}),
        "two rows for each rank": (
            recurrent,
            (tokens[:24], Y[:24]),
            # without an accuracy, which may be 0 for so few examples
            {"batch_size": 2 * SIZE, "epochs": 1, "metrics": list},
        ),
        "regularizers": (regularized, (X, Y), {}),
        "regularizers, own loss": (regularized, (X, Y), {"loss": own_loss}),
        "half precision": (half, (X, Y), {}),
        "accumulation": (
            network,
            (X, Y),
            {"optimizer": lambda: adam(0.01, gradient_accumulation_steps=2, clipnorm=0.5)},
        ),
        "uneven": (network, (X, Y), {"batch_size": 33, "compile": True}),
        "uneven, own loss": (
            lambda: network(True, True),
            (X, Y),
            {"batch_size": 33, "compile": True, "loss": own_loss},
        ),
        "uneven, regularizers": (
            regularized,
            (X, Y),
            {"batch_size": 33, "compile": True, "loss": own_loss},
        ),
        "a pipeline": (network, pipeline, {}),
        "a list": (network, batches, {}),
        "a generator": (network, lambda: iter(batches), {"epochs": 1}),
        "fewer rows than ranks": (
            lambda: network(True, True),
            (X[: 32 + SIZE - 1], Y[: 32 + SIZE - 1]),
            {},
        ),
        "steps of an epoch": (network, (X, Y), {"steps_per_epoch": 5}),
    }
    found = {}
    for name, (make, data, options) in cases.items():
        found[name] = compared(make, data, **options)
    return found


def shards() -> dict[str, Any]:
    """Each rank has batches of its own; an epoch ends where those of one rank end."""
    even = N - N % (SIZE * 8)

    def data(count: int) -> Any:
        return gt.data.Dataset.from_tensor_slices((X[:count], Y[:count])).shard(SIZE, RANK).batch(8)

    model, steps = network(), Steps()
    fit(model, data(even), epochs=2, verbose=False, callbacks=[steps], distributed=group)
    # the same global batches, in one process
    whole = [
        (np.concatenate([X[r:even:SIZE][i : i + 8] for r in range(SIZE)]), None)
        for i in range(0, even // SIZE, 8)
    ]
    whole = [
        (x, np.concatenate([Y[r:even:SIZE][i : i + 8] for r in range(SIZE)]))
        for (x, _), i in zip(whole, range(0, even // SIZE, 8), strict=True)
    ]
    other, alone = network(), Steps()
    fit(other, whole, epochs=2, verbose=False, callbacks=[alone])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        few = (
            gt.data.Dataset.from_tensor_slices((X, Y)).take(8 * SIZE + 1).shard(SIZE, RANK).batch(8)
        )
        fit(network(), few, verbose=False, distributed=group)
    pairs = zip(steps.logs, alone.logs, strict=True)
    wrong = gt.data.Dataset.from_tensor_slices((X, Y)).shard(SIZE + 1, RANK).batch(8)
    return {
        "steps": max(abs(a["loss"] / b["loss"] - 1) for a, b in pairs),
        "warned": [str(x.message) for x in caught],
        "wrong": refusal(lambda: fit(network(), wrong, verbose=False, distributed=group)),
    }


def interrupted() -> dict[str, Any]:
    """Ctrl-C on one rank within an epoch: all stop at the same batch, and go on from there."""
    path = os.path.join(folder(), "run.h5")

    class Press:
        def on_train_batch_end(self, batch: int, logs: Any) -> None:
            if batch == 2 and RANK == SIZE - 1:
                os.kill(os.getpid(), signal.SIGINT)

    def once(**options: Any) -> Any:
        model, steps = network(True, True), Steps()
        callbacks = [steps, *options.pop("callbacks", ())]
        history = fit(
            model,
            (X, Y),
            epochs=2,
            batch_size=32,
            seed=3,
            verbose=False,
            distributed=group,
            callbacks=callbacks,
            **options,
        )
        return [v.numpy() for v in model.variables], history, len(steps.logs)

    whole, _, _ = once()
    _, history, done = once(checkpoint=path, callbacks=[Press()])
    again, _, rest = once(checkpoint=path, resume=True)
    counts = group.communicator.all_gather(np.array(done)).tolist()
    return {
        "interrupted": history.interrupted,
        "steps": counts,
        "rest": rest,
        "bits": all((a == b).all() for a, b in zip(again, whole, strict=True)),
    }


def decisions() -> dict[str, Any]:
    """What callbacks decide on one rank holds for all; what they write is written once."""
    where = folder()
    early = gt.training.EarlyStopping(
        monitor="loss", patience=0, min_delta=10.0, restore_best_weights=True
    )
    log = gt.training.CSVLogger(os.path.join(where, "log.csv"))
    best = gt.training.ModelCheckpoint(os.path.join(where, "best-{epoch}.h5"), monitor="loss")
    model = network(True)
    history = fit(
        model,
        (X, Y),
        epochs=6,
        verbose=False,
        distributed=group,
        callbacks=[early, log, best],
    )
    epochs = len(history.epoch)
    own = fit(
        network(),
        (X, Y),
        epochs=6,
        verbose=False,
        distributed=group,
        callbacks=[lambda epoch, logs: RANK == SIZE - 1 and epoch == 2],
    )
    # files are written on rank 0 alone: no other rank has a callback then
    written = gt.training.CSVLogger(os.path.join(where, "written.csv"))
    options = {"verbose": False, "distributed": group, "batch_size": 4 * SIZE}
    fit(network(), (X, Y), epochs=1, callbacks=[written], **options)

    class Note(gt.training.Callback):
        writes_files = True

        def on_train_end(self) -> None:
            Path(where, f"note-of-{RANK}").touch()

    fit(network(), (X, Y), epochs=1, callbacks=[Note()], **options)
    group.barrier()
    # one rank saves, with what it computes for the file
    if RANK == 0:
        gt.save(model, os.path.join(where, "alone.h5"))
        assert gt.saving.verify(os.path.join(where, "alone.h5")).ok
    group.barrier()
    return {
        "epochs": epochs,
        "alike": alike([v.numpy() for v in model.variables]),
        "own": group.communicator.all_gather(np.array(len(own.epoch))).tolist(),
        "lines": len(Path(where, "log.csv").read_text().splitlines()),
        "files": sorted(x.name for x in Path(where).iterdir()),
    }


def unlike() -> dict[str, Any]:
    """Ranks that differ, or whose loss is not finite, are named on all of them."""
    where = folder()
    bad = X.copy()
    bad[:, 0] = np.nan

    def run(data: Any = (X, Y), model: Any = None, **options: Any) -> Any:
        model = network() if model is None else model
        before = model(gt.constant(X[:2])).numpy()
        options = {"verbose": False, "distributed": group, "batch_size": N, **options}
        try:
            return fit(model, data, **options)
        finally:
            if "same" in options:
                assert (model(gt.constant(X[:2])).numpy() == before).all()

    class Apart(gt.layers.Layer):
        def build(self, shape: Any) -> None:
            self.seen = self.add_weight((8,), "zeros", "seen", trainable=False)

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                self.seen.assign(gt.mean(x, axis=0))
            return x

    class Faster(gt.training.callbacks.Callback):
        def on_epoch_begin(self, epoch: int) -> None:
            self.optimizer.learning_rate = 0.1 * (1 + RANK)

    own = os.path.join(where, f"{RANK}.h5")
    odd = (
        gt.data.Dataset.from_tensor_slices((bad if RANK == SIZE - 1 else X, Y))
        .shard(SIZE, RANK)
        .batch(300)
    )
    activation = gt.layers.Activation("relu" if RANK else "tanh")
    other = gt.layers.Sequential([gt.layers.Dense(4), activation, gt.layers.Dense(3)])
    known = network()
    known(gt.constant(X[:2]))

    class Unsaid(gt.layers.Layer):
        def call(self, x: Any) -> Any:
            return self.function(x)

    def unsaid(function: Any) -> Any:
        layer = Unsaid()
        layer.function = function
        return gt.layers.Sequential([gt.layers.Dense(4), layer, gt.layers.Dense(3)])

    found = {
        "other arrays": refusal(lambda: run((X + RANK, Y))),
        "other batches": refusal(lambda: run([(X + RANK, Y)])),
        "other model": refusal(
            lambda: run(
                model=gt.layers.Sequential([gt.layers.Dense(4 + (RANK == 0)), gt.layers.Dense(3)])
            )
        ),
        "other code": refusal(lambda: run(compile=True, model=unsaid(gt.tanh if RANK else gt.sin))),
        "other layer": refusal(lambda: run(model=other)),  # never traced
        "other rate": refusal(lambda: run(optimizer=gt.training.SGD(0.1 * (1 + RANK)))),
        "other method": refusal(
            lambda: run() if RANK else gt.training.evaluate(known, (X, Y), distributed=group)
        ),
        "other arguments": refusal(lambda: run(batch_size=N + RANK)),
        "one validates": refusal(lambda: run(validation_data=None if RANK else (X, Y))),
        "other loss": refusal(
            lambda: run(loss=gt.training.losses.mean_squared_error if RANK else "mse")
        ),
        "other measure": refusal(
            lambda: gt.training.evaluate(
                network(), (X, Y), metrics=["accuracy"] * (RANK == 0), distributed=group
            )
        ),
        "a callback": refusal(lambda: run(callbacks=[Faster()], epochs=2)),
        "not finite": refusal(lambda: run(odd)),
        "came apart": refusal(
            lambda: run(
                model=gt.layers.Sequential([Apart(), gt.layers.Dense(3)]),
                checkpoint=os.path.join(where, "apart.h5"),
            )
        ),
        "no group": refusal(lambda: run(distributed=True)),
        "unseen": refusal(lambda: [run(checkpoint=own, resume=True, epochs=2) for _ in range(2)]),
        "files": sorted(os.listdir(where)),
    }
    return found


def statistics() -> dict[str, Any]:
    """Moving statistics of layers that are not synchronized are averaged, not refused."""

    class Means(gt.layers.Layer):
        averaged_on_ranks = ("seen",)

        def build(self, shape: Any) -> None:
            self.seen = self.add_weight((8,), "zeros", "seen", trainable=False)

        def call(self, x: Any, training: bool = False) -> Any:
            if training:
                self.seen.assign(gt.mean(x, axis=0))
            return x

    gt.random.set_seed(1)
    means, norm = Means(), gt.layers.BatchNorm(momentum=0.5)
    model = gt.layers.Sequential([means, norm, gt.layers.Dense(3)])
    path = os.path.join(folder(), "run.h5")
    data = (X[: 4 * SIZE], Y[: 4 * SIZE])
    options = {"batch_size": 4 * SIZE, "shuffle": False, "verbose": False, "distributed": group}
    fit(model, data, epochs=1, checkpoint=path, **options)
    parts = X[: 4 * SIZE].reshape(SIZE, 4, 8)
    return {
        "mean": apart(norm.moving_mean.numpy(), parts.mean(1).mean(0) / 2),
        "own": apart(means.seen.numpy(), parts.mean(1).mean(0)),
        "variance": apart(norm.moving_variance.numpy(), 0.5 + parts.var(1).mean(0) / 2),
        "alike": alike([v.numpy() for v in model.variables]),
    }


def measuring() -> dict[str, Any]:
    """``evaluate`` by all ranks."""
    model = network(True)
    model(gt.constant(X))
    given = {"metrics": ["accuracy", own_metric], "batch_size": 32}
    found = gt.training.evaluate(model, (X, Y), distributed=group, **given)
    known = gt.training.evaluate(model, (X, Y), **given)
    return {"apart": max(apart(found[k], known[k]) for k in known)}


def predicting() -> dict[str, Any]:
    """``predict`` by all ranks: the outputs of all rows, in order, on each of them."""
    model = network(True)
    model(gt.constant(X))
    known = gt.training.predict(model, X, batch_size=32)
    batches = gt.data.Dataset.from_tensor_slices((X, Y)).batch(32)
    several = gt.Model(inputs := gt.layers.Input((8,)), {"a": inputs * 2.0, "b": inputs > 0.0})
    both = gt.training.predict(several, X, distributed=group)
    few = SIZE - 1  # fewer than ranks: each computes them

    def found(data: Any, **options: Any) -> Any:
        return gt.training.predict(model, data, distributed=group, batch_size=32, **options)

    cases = {"arrays": found(X), "pipeline": found(batches), "few": found(X[:few])}
    shard = batches.shard(SIZE, RANK)
    told = {
        "a shard": refusal(lambda: found(shard)),
        "other data": refusal(lambda: found(X + RANK)),
        "more batches": refusal(lambda: found(X, steps=2 + RANK)),
    }
    model.variables[0].assign_add(gt.ones_like(model.variables[0]) * float(RANK))
    told["other weights"] = refusal(lambda: found(X))
    return {
        "apart": {name: apart(x, known[: len(x)]) for name, x in cases.items()},
        "lengths": {name: len(x) for name, x in cases.items()},
        "alike": alike([x.numpy() for x in (*cases.values(), *both.values())]),
        "several": bool(
            (both["a"].numpy() == X * 2).all() and (both["b"].numpy() == (X > 0)).all()
        ),
        "told": told,
    }


CHECKS = [shards, interrupted, decisions, unlike, statistics, measuring, predicting]
