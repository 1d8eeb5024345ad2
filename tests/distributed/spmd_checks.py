"""What ``test_spmd.py`` has processes of JAX check: python spmd_checks.py ALONE_OR_PAIR RESULTS.

Each check is a function; their names and what went wrong are written to a file of JSON.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt

BATCH = 128
CHECKS: dict[str, dict[str, Callable[..., None]]] = {"alone": {}, "pair": {}}


def check(*where: str) -> Any:
    """Have a function run in a process alone, or in each of a pair."""

    def register(function: Any) -> Any:
        for kind in where:
            CHECKS[kind][function.__name__] = function
        return function

    return register


def group(devices: int | None = None) -> Any:
    """Return the group; alone, one with so many of the four devices."""
    if KIND == "pair":
        return gt.distributed.init("jax")
    gt.distributed.shutdown()
    return gt.distributed.init("jax", devices=devices, cpu_devices=4)


@contextmanager
def refused(error: type[Exception], *words: str) -> Iterator[None]:
    try:
        yield
    except error as found:
        missing = [word for word in words if word not in str(found)]
        if missing:
            raise AssertionError(f"{missing} not in: {found}") from found
    else:
        raise AssertionError(f"no {error}")


# -- what is trained -------------------------------------------------------------------------------


def digits() -> tuple[Any, Any]:
    (x, y), _ = gt.datasets.load_digits()
    return np.asarray(x, "f4").reshape(len(x), -1) / 16, np.asarray(y).astype("i8")


def network() -> Any:
    """Return a network with dropout and synchronized batch normalization, always the same."""
    gt.random.set_seed(3)
    layers = gt.layers
    return layers.Sequential(
        [
            *(layers.Dense(32, use_bias=False), layers.BatchNorm(synchronized=True)),
            *(layers.Activation("relu"), layers.Dropout(0.2), layers.Dense(10)),
        ]
    )


def training_step(model: Any) -> Any:
    optimizer = gt.training.Adam(1e-3)

    def step(x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            logits = model(x, training=True)
            loss = gt.mean(gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return loss

    return step


def curve(step: Any, rank: int, size: int) -> list[float]:
    """Return the losses of five epochs, each batch cut into parts of the ranks."""
    x, y = digits()
    shuffle, losses = np.random.default_rng(1), []
    for _ in range(5):
        order = shuffle.permutation(len(x))[: len(x) // BATCH * BATCH]
        for rows in order.reshape(-1, size, BATCH // size)[:, rank]:
            losses += [float(step(x[rows], y[rows]))]
    return losses


def digest(model: Any) -> str:
    return hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()


def expected_curve() -> list[float]:
    """Return the losses of a single process on NumPy."""
    if not EXPECTED:
        EXPECTED.extend(curve(gt.function(training_step(network())), 0, 1))
    return EXPECTED


EXPECTED: list[float] = []


def line(group: Any, **options: Any) -> tuple[Any, Any]:
    """Return the weights of a line and a step that fits it."""
    w, optimizer = gt.Variable(np.zeros((3, 1), "f4")), gt.training.SGD(0.1)

    @group.data_parallel(**options)
    def step(x: Any, y: Any, scale: float = 1.0) -> Any:
        with gt.GradientTape() as tape:
            errors = (gt.matmul(x, w)[:, 0] - y) * scale
            loss = gt.mean(errors**2)
        optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        return errors if options else loss

    return w, step


def points(rows: int, seed: int = 0) -> tuple[Any, Any]:
    x = np.random.default_rng(seed).normal(size=(rows, 3)).astype("f4")
    return x, x.sum(1)


# -- one program, any number of devices ------------------------------------------------------------


def same_curve(found: Any) -> None:
    model = network()
    losses = np.array(curve(found.data_parallel(training_step(model)), found.rank, found.size))
    apart = np.abs(losses / np.array(expected_curve()) - 1)
    assert apart.max() < 1e-6, f"losses differ by {apart.max():.1e}"
    assert losses[-1] < losses[0] / 1.5
    assert len(set(found.communicator.exchange(digest(model).encode()))) == 1
    kept, path = digest(model), Path(RESULTS).with_suffix(".h5")
    model.to("numpy")
    if found.rank == 0:
        gt.save(model, path)
    found.barrier()
    assert digest(gt.load(path)) == kept


@check("alone")
def one_device_learns_as_one_process_does() -> None:
    same_curve(group(1))


@check("alone")
def two_devices_learn_as_one_process_does() -> None:
    same_curve(group(2))


@check("alone")
def four_devices_learn_as_one_process_does() -> None:
    same_curve(group(4))


@check("pair")
def two_processes_learn_as_one_process_does() -> None:
    found = group()
    assert (found.size, found.devices, found.engine) == (2, 2, "jax")
    same_curve(found)


@check("alone", "pair")
def fit_learns_as_one_process_does() -> None:
    found = group(2)
    x, y = (part[:300] for part in digits())  # its last batch is short, and odd
    histories = []
    for place in (None, found):
        model = network()
        model(x[:2], training=False)
        history = gt.training.fit(
            model,
            (x[:255], y[:255]),
            loss=gt.training.losses.SparseCategoricalCrossentropy(from_logits=True),
            optimizer=gt.training.Adam(1e-3),
            metrics=["accuracy"],
            validation_data=(x[255:], y[255:]),
            epochs=2,
            batch_size=BATCH,
            seed=1,
            verbose=0,
            distributed=place,
        )
        histories.append(history.history)
    alone, shared = histories
    assert alone.keys() == shared.keys() >= {"loss", "accuracy", "val_loss", "val_accuracy"}
    for name, values in alone.items():
        np.testing.assert_allclose(shared[name], values, rtol=2e-6, err_msg=name)
    own = gt.training.predict(model, x, batch_size=300)
    all_rows = gt.training.predict(model, x, batch_size=300, distributed=found)
    np.testing.assert_allclose(all_rows.numpy(), own.numpy(), rtol=1e-5, atol=1e-6)
    assert len(set(found.communicator.exchange(digest(model).encode()))) == 1


@check("alone", "pair")
def rows_that_do_not_divide_run_whole() -> None:
    found = group(4)
    w, step = line(found)
    v, alone = line(type("Plain", (), {"data_parallel": lambda *_, **__: gt.function})())
    x, y = points(14)
    mine = slice(found.rank * 14 // found.size, (found.rank + 1) * 14 // found.size)
    for _ in range(2):
        np.testing.assert_allclose(float(step(x[mine], y[mine])), float(alone(x, y)), rtol=1e-6)
    np.testing.assert_allclose(w.numpy(), v.numpy(), rtol=1e-5)
    step(x[mine], y[mine], scale=2.0)


@check("alone", "pair")
def local_outputs_are_rows_of_each() -> None:
    found = group(4)
    _, step = line(found, outputs="local")
    x, y = points(16)
    mine = slice(found.rank * 16 // found.size, (found.rank + 1) * 16 // found.size)
    np.testing.assert_allclose(step(x[mine], y[mine]).numpy(), -y[mine], rtol=1e-6)


# -- losses that are not finite --------------------------------------------------------------------


@check("alone", "pair")
def nothing_is_lost_by_a_loss_that_is_not_finite() -> None:
    found = group(2)
    w, step = line(found)
    x, y = points(8, found.rank)
    step(x, y)
    before = w.numpy().copy()
    bad = x.copy()
    if found.rank == found.size - 1:
        bad[2, 1] = np.nan
    for _ in range(2):  # with arrays that XLA may write into, and with some that it may not
        with refused(FloatingPointError, "step", f"rank {found.size - 1} was given x", "no step"):
            step(bad, y)
    assert (w.numpy() == before).all()
    assert np.isfinite(float(step(x, y)))
    assert (w.numpy() != before).any()


@check("alone")
def old_arrays_are_written_into_unless_somebody_holds_them() -> None:
    w, step = line(group(2))
    x, y = points(8)
    step(x, y)
    place = w.array.unsafe_buffer_pointer()
    step(x, y)
    assert w.array.unsafe_buffer_pointer() == place
    held, before = w.value, w.numpy().copy()
    step(x, y)
    assert (held.numpy() == before).all()
    assert (w.numpy() != before).any()


# -- what is refused -------------------------------------------------------------------------------


@check("alone", "pair")
def collectives_of_ranks_have_no_place_in_one_program() -> None:
    found = group(2)
    for name in ("all_reduce", "all_gather", "broadcast", "reduce_scatter"):

        @found.data_parallel
        def step(x: Any, name: str = name) -> Any:
            return gt.mean(getattr(gt.distributed, name)(x))

        with refused(gt.errors.DistributedError, name, "one program", "outside the step"):
            step(points(4)[0])


@check("alone", "pair")
def what_xla_cannot_compile_is_refused() -> None:
    found = group(2)

    @found.data_parallel
    def noisy(x: Any) -> Any:
        return gt.mean(x + gt.random.normal(x.shape))

    with refused(TypeError, "random_normal", "noisy", "engine 'jax'"):
        noisy(points(4)[0])
    with refused(ValueError, "compile"):
        found.data_parallel(noisy.step, compile=False)
    with refused(TypeError, "outputs='local'"):
        found.data_parallel(lambda x: x)(points(4)[0])
    with refused(ValueError, "without examples"):
        line(found)[1](*points(0))


@check("alone", "pair")
def steps_in_traces_are_refused() -> None:
    _, step = line(group(2))
    with refused(gt.errors.TraceError, "outside"):
        gt.function(lambda x, y: step(x, y))(*map(gt.constant, points(4)))


@check("alone")
def options_are_checked() -> None:
    group()
    with refused(gt.errors.DistributedError, "already"):
        gt.distributed.init("jax", devices=2)
    for options, word in (
        ({"deviecs": 2}, "deviecs"),
        ({"devices": 0}, "at least 1"),
        ({"devices": 5}, "4 on rank 0"),
        ({"coordinator": "here"}, "host:port"),
        ({"num_processes": 2}, "coordinator"),
        ({"num_processes": 2, "coordinator": "a:1"}, "process_id"),
        ({"num_processes": 2, "coordinator": "a:1", "process_id": 2}, "process_id"),
        ({"cpu_devices": 3}, "before anything"),
    ):
        gt.distributed.shutdown()
        with refused((TypeError, ValueError, gt.errors.DistributedError), word):  # type: ignore[arg-type]
            gt.distributed.init("jax", **options)


@check("alone")
def arrays_that_jax_saw_in_32_bits_come_in_64() -> None:
    import jax

    found = group(4)
    labels = np.arange(8)
    jax.device_put(labels, found.communicator.rows)  # which JAX remembers by the array

    @found.data_parallel
    def total(x: Any) -> Any:
        return gt.mean(gt.cast(x * 2**33, "float64"))

    assert float(total(labels)) == labels.mean() * 2**33


# -- between processes -----------------------------------------------------------------------------


@check("alone", "pair")
def collectives_are_those_of_numpy() -> None:
    found = group(1)
    size, rank = found.size, found.rank
    for dtype in ("f2", "f4", "f8", "i4", "i8", "u1", "c8", "c16"):
        parts = [(np.arange(8.0).reshape(4, 2) + 3 * i).astype(dtype) for i in range(size)]
        x = gt.constant(parts[rank])
        total = sum(parts[1:], parts[0])
        assert (found.all_reduce(x).numpy() == total).all(), dtype
        assert found.all_reduce(x).dtype == dtype
        assert (found.all_gather(x).numpy() == np.stack(parts)).all(), dtype
        assert (found.broadcast(x, root=size - 1).numpy() == parts[-1]).all(), dtype
        rows = 4 // size
        mine = total[rank * rows : (rank + 1) * rows]
        assert (found.reduce_scatter(x).numpy() == mine).all(), dtype
        if np.dtype(dtype).kind != "c":
            for name in ("min", "max", "prod"):
                whole = getattr(np, name)(np.stack(parts), axis=0).astype(dtype)
                assert (found.all_reduce(x, name).numpy() == whole).all(), (dtype, name)
    messages = found.communicator.exchange(b"x" * 1000 * rank)
    assert messages == [b"x" * 1000 * i for i in range(size)]
    found.barrier()


@check("pair")
def processes_with_other_sizes_are_named() -> None:
    found = group()
    _, step = line(found)
    step(*points(8))
    with refused(gt.errors.DistributedError, "rank 0 called step", "[8, 3]", "rank 1", "[6, 3]"):
        step(*points(8 - 2 * found.rank))
    assert np.isfinite(float(step(*points(8))))


@check("pair")
def processes_with_other_code_or_values_are_named() -> None:
    found = group()
    power = 2 + found.rank

    @found.data_parallel
    def step(x: Any) -> Any:
        return gt.mean(x**power)

    with refused(gt.errors.DistributedError, "rank 0 called step", "rank 1 called step"):
        step(points(4)[0])
    w, step = line(found)
    step(*points(8))
    w.assign(gt.constant(np.full((3, 1), found.rank, "f4")).to("jax"))
    with refused(gt.errors.DistributedError, "rank 0", "rank 1", "'Variable' as"):
        step(*points(8))
    w.assign(gt.constant(np.ones((3, 1), "f4")).to("jax"))
    assert float(step(*points(8))) < 1e-6
    with refused(gt.errors.DistributedError, "rank 0", "rank 1", "checksums"):
        step(*points(8), scale=np.float32(found.rank))


@check("pair")
def variables_begin_alike() -> None:
    found = group()
    w = gt.Variable(np.full(2, found.rank, "f4"))

    @found.data_parallel
    def step(x: Any) -> Any:
        return gt.mean(x * w)

    with refused(gt.errors.DistributedError, "rank 1 of 2 has different variables"):
        step(np.ones((4, 2), "f4"))
    gt.distributed.broadcast_variables([w])
    assert float(step(np.ones((4, 2), "f4"))) == 0


@check("pair")
def a_collective_against_a_step_is_named() -> None:
    found = group()
    _, step = line(found)
    step(*points(4))
    with refused(
        gt.errors.DistributedError, "rank 0 called step", "rank 1 called all_reduce of float32[2]"
    ):
        if found.rank:
            found.all_reduce(gt.constant([1.0, 2.0]))
        else:
            step(*points(4))
    assert np.isfinite(float(step(*points(4))))


def main() -> None:
    results: dict[str, str] = {}
    only = os.environ.get("ONLY", "").split()
    for name, function in CHECKS[KIND].items():
        if only and name not in only:
            continue
        print(f"{name}, after {time.process_time():.1f} s of work", flush=True)
        try:
            function()
        except Exception:
            results[name] = traceback.format_exc()
        else:
            results[name] = ""
    rank = os.environ.get("JAX_PROCESS_ID", "0")
    Path(f"{RESULTS}.{rank}").write_text(json.dumps(results))


if __name__ == "__main__":
    KIND, RESULTS = sys.argv[1:]
    main()
