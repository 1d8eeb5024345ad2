"""CuPy's devices: copies, random numbers, indices, memory, two GPUs, files.

All of it over a pretend CuPy; what needs no second GPU and counts nothing, on a real one too.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pretend_gpu
import pytest
from real_gpu import PLACES, Place, placed

import gradtape as gt
from gradtape.errors import BackendMismatch, OutOfMemory
from gradtape.layers import BatchNorm, Dense, Dropout, Sequential
from gradtape.training import SGD, Adam, fit


@pytest.fixture
def cupy() -> Iterator[Any]:
    with pretend_gpu.as_cupy() as library:
        yield library


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with placed(request.param) as found:
        yield found


RNG = np.random.default_rng(3)
X = RNG.normal(size=(64, 5)).astype(np.float32)
LABELS = RNG.integers(0, 3, 64)


# -- copies between host and device ----------------------------------------------------------------


def model(*more: Any) -> Sequential:
    gt.random.set_seed(0)
    return Sequential([Dense(8), BatchNorm(), gt.nn.relu, *more, Dense(3)])


def stepper(net: Any, optimizer: Any, loss: Any) -> Callable[..., Any]:
    def step(x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            value = gt.mean(loss(y, net(x, training=True)))
        variables = net.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(value, variables), variables))
        return value

    return step


def crossentropy(y: Any, logits: Any) -> Any:
    return gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)


def squares(y: Any, found: Any) -> Any:
    return (found[:, 0] - y.astype("float32")) ** 2


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("loss", [crossentropy, squares])
@pytest.mark.parametrize("make", [Adam, lambda: SGD(0.1, 0.9), lambda: Adam(global_clipnorm=1.0)])
def test_a_training_step_copies_nothing_but_the_loss_that_is_read(
    cupy: Any, make: Any, loss: Any, traced: bool
) -> None:
    with gt.backend("cupy"):
        x, y = gt.constant(X), gt.constant(LABELS)
        step = stepper(model(Dropout(0.2, seed=1)), make(), loss)
        step = gt.function(step) if traced else step
        for _ in range(2):
            step(x, y)
        with cupy.counting() as copies:
            values = [step(x, y) for _ in range(3)]
            assert not copies, dict(copies)
            numbers = [float(value) for value in values]
        assert sum(copies.values()) == 3
    assert np.isfinite(numbers).all()


def test_fit_reads_loss_and_metrics_of_a_batch_and_copies_its_order_and_seed(cupy: Any) -> None:
    with gt.backend("cupy"):
        data, net, optimizer = (gt.constant(X), gt.constant(LABELS)), model(), Adam()
        fit(net, data, optimizer=optimizer, batch_size=16, seed=0, verbose=False)
        with cupy.counting() as copies:
            fit(net, data, optimizer=optimizer, batch_size=16, seed=0, verbose=False)
    looked, seeded = (
        2,
        1,
    )  # at all labels, and the first batch's; the generator
    assert copies == {"asnumpy": 2 * 4 + looked + seeded, "array": 1 + seeded}


def test_numbers_are_written_on_the_device_and_not_copied(cupy: Any) -> None:
    with gt.backend("cupy"), cupy.counting() as copies:
        x = gt.constant(2.5) * 3 + np.float32(1)
        assert not copies
        assert x.item() == 8.5


# -- random numbers --------------------------------------------------------------------------------

DRAWS: dict[str, Callable[[Any], Any]] = {
    "uniform": lambda g: g.uniform((7, 3)),
    "float64": lambda g: g.uniform(11, dtype="float64"),
    "float16": lambda g: g.uniform(1001, dtype="float16"),
    "none": lambda g: g.uniform((0, 3)),
    "integers": lambda g: g.randint((50, 3), -4, 7),
    "bits": lambda g: g.randint(9, 0, 2**31),
    "many": lambda g: g.randint(9, 0, 2**32 - 1),
    "more": lambda g: g.randint(9, 0, 2**40),
    "bernoulli": lambda g: g.bernoulli((30,), 0.3),
    "normal": lambda g: g.normal((5,)),
    "permutation": lambda g: g.permutation(9),
}
ON_DEVICE = sorted({*DRAWS} - {"normal", "permutation", "more"})


@pytest.mark.parametrize("seed", [0, 2**62 + 12345])
@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_gives_the_same_bits_as_on_numpy(place: Place, draw: str, seed: int) -> None:
    here = gt.random.Generator(seed)
    with gt.backend(place.device):
        there = gt.random.Generator(seed)
        for _ in range(2):
            found = DRAWS[draw](there)
            assert found.device == place.device
            np.testing.assert_array_equal(found.numpy(), DRAWS[draw](here).numpy())


@pytest.mark.parametrize("draw", ON_DEVICE)
def test_they_are_made_there(cupy: Any, draw: str) -> None:
    with gt.backend("cupy"):
        generator = gt.random.Generator(1)
        DRAWS[draw](generator)
        with cupy.counting() as copies:
            DRAWS[draw](generator)
    assert not copies


def test_examples_of_a_batch_have_the_numbers_that_they_have_on_numpy(place: Place) -> None:
    def noisy(x: Any) -> Any:
        return x + generator.uniform((3,))

    found = []
    for where in ("numpy", place.device):
        with gt.backend(where):
            generator = gt.random.Generator(5)
            found.append(gt.vmap(noisy, randomness="different")(gt.zeros((4, 3))).numpy())
    np.testing.assert_array_equal(*found)


# -- indices ---------------------------------------------------------------------------------------

VALUES = np.arange(12.0).reshape(3, 4)
PICKS: dict[str, Callable[[Any, Any], Any]] = {
    "take": lambda x, i: gt.take(x, i, axis=0)[:, 0],
    "take of all": lambda x, i: gt.take(gt.reshape(x[:, 0], (-1,)), i),
    "getitem": lambda x, i: x[i][:, 0],
    "getitem beside a slice": lambda x, i: x[i, 1:][:, 0],
    "getitem apart": lambda x, i: gt.expand_dims(x, 1)[i, :, i][:, 0],
    "getitem after a new axis": lambda x, i: x[None, i, 0][0],
    "take_along_axis": lambda x, i: gt.take_along_axis(x[:, :1], i[:, None], axis=0)[:, 0],
    "embedding": lambda x, i: gt.nn.embedding_lookup(x, i)[:, 0],
}


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8"])
@pytest.mark.parametrize("pick", PICKS)
def test_an_index_out_of_range_gives_nan_and_no_other_element(
    place: Place, pick: str, dtype: str
) -> None:
    x, fits = gt.constant(VALUES).to(place.device), np.array([1, 2, 0], dtype)
    good = PICKS[pick](x, gt.constant(fits).to(place.device)).numpy()
    np.testing.assert_array_equal(good, PICKS[pick](gt.constant(VALUES), gt.constant(fits)).numpy())
    wrong = [3, 100] if dtype == "uint8" else [3, -4]
    for index in wrong:
        bad = gt.constant(np.array([1, index, 0], dtype)).to(place.device)
        with place.counting() as copies:
            found = PICKS[pick](x, bad)
        assert not copies
        np.testing.assert_array_equal(found.numpy(), [good[0], np.nan, good[2]])


def test_of_integers_it_gives_the_least(place: Place) -> None:
    x = gt.constant(np.array([1, 2], np.int32)).to(place.device)
    assert gt.take(x, gt.constant([0, 5]).to(place.device)).tolist() == [1, -(2**31)]
    assert gt.take(x > 1, gt.constant([0, 5]).to(place.device)).tolist() == [False, True]


@pytest.mark.parametrize("write", ["set", "add"])
def test_writing_out_of_range_leaves_nan(place: Place, write: str) -> None:
    x, places = gt.constant(VALUES).to(place.device), gt.constant([0, 7]).to(place.device)
    assert np.isnan(getattr(x.at[places], write)(5.0).numpy()).any()


def test_of_several_values_for_a_place_the_last_stays(place: Place) -> None:
    places, values = np.array([0, 2, 0, 0]), np.array([1.0, 2.0, 3.0, 4.0])
    for where in ("numpy", place.device):
        x, i, v = (gt.constant(a).to(where) for a in (np.zeros(3), places, values))
        with gt.GradientTape() as tape:
            tape.watch(v)
            y = x.at[i].set(v)
        assert y.tolist() == [4.0, 0.0, 2.0]
        assert tape.gradient(y, v).tolist() == [0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "int8", "int64", "bool"])
def test_additions_to_one_place_add_up_in_every_dtype(place: Place, dtype: str) -> None:
    values = np.array([3, -1, 2]).astype(dtype)
    ids = np.array([1, 0, 1])
    want = gt.nn.segment_sum(gt.constant(values), gt.constant(ids), 3).numpy()
    found = gt.nn.segment_sum(
        gt.constant(values).to(place.device), gt.constant(ids).to(place.device), 3
    )
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("label", [3, -1])
def test_a_label_that_is_no_class_gives_nan(place: Place, label: int) -> None:
    logits, labels = (gt.constant(x).to(place.device) for x in (X[:2, :3], np.array([0, label])))
    with gt.GradientTape() as tape:
        tape.watch(logits)
        losses = crossentropy(labels, logits)
    assert np.isnan(losses.numpy()).tolist() == [False, True]
    assert np.isnan(tape.gradient(losses, logits).numpy()).any(axis=1).tolist() == [False, True]


# -- two GPUs --------------------------------------------------------------------------------------


def test_arrays_of_two_devices_are_refused_in_words(cupy: Any) -> None:
    x = gt.constant([1.0])
    with pytest.raises(
        BackendMismatch, match=r"add: .*cupy:0 and cupy:1; move one with tensor\.to"
    ):
        x.to("cupy:0") + x.to("cupy:1")


def test_a_model_trains_on_the_second_device_whichever_is_the_current_one(cupy: Any) -> None:
    net, optimizer = model(), Adam()
    net(gt.constant(X))
    net.to("cupy:1")
    x, y = (gt.constant(a).to("cupy:1") for a in (X, LABELS))
    step = stepper(net, optimizer.to("cupy:1"), crossentropy)
    for run in (step, gt.function(step)):
        assert run(x, y).device == "cupy:1"
    assert {v.value.device for v in (*net.variables, *optimizer.variables)} == {"cupy:1"}


def test_a_trace_runs_on_each_device_with_its_constants_there(cupy: Any) -> None:
    table = gt.constant([[1.0, 2.0], [3.0, 4.0]])

    @gt.function
    def f(x: Any) -> Any:
        return gt.matmul(x, table.numpy()) + gt.arange(2.0)

    with gt.backend("cupy"):
        found = [f(gt.constant([[1.0, 1.0]]).to(f"cupy:{i}")) for i in (0, 1, 0)]
    assert [y.device for y in found] == ["cupy:0", "cupy:1", "cupy:0"]
    assert [y.tolist() for y in found] == [[[4.0, 7.0]]] * 3


def test_threads_use_devices_of_their_own(cupy: Any) -> None:
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        with gt.backend(f"cupy:{number}"):
            x = gt.constant(X)
            found[number] = gt.sum(gt.matmul(x, x.mT) * 2.0)

    for number in (0, 1):
        thread = threading.Thread(target=work, args=(number,))
        thread.start()
        thread.join()
    assert [found[n].device for n in (0, 1)] == ["cupy:0", "cupy:1"]
    assert found[0].item() == found[1].item()


# -- files -----------------------------------------------------------------------------------------


def test_a_file_from_the_second_gpu_loads_where_there_is_none(tmp_path: Any) -> None:
    path = tmp_path / "model.h5"
    with pretend_gpu.as_cupy(), gt.backend("cupy:1"):
        net = model()
        want = net(gt.constant(X)).numpy()
        gt.save(net, path)
    there = gt.load(path)
    assert {v.value.device for v in there.variables} == {"numpy:cpu"}
    np.testing.assert_allclose(there(gt.constant(X)).numpy(), want, rtol=1e-5, atol=1e-6)
    with pretend_gpu.as_cupy(), gt.backend("cupy:1"):
        back = gt.load(path)
        assert {v.value.device for v in back.variables} == {"cupy:1"}
        np.testing.assert_allclose(back(gt.constant(X)).numpy(), want, rtol=1e-5, atol=1e-6)


# -- memory ----------------------------------------------------------------------------------------


def test_no_memory_is_an_error_that_names_the_op_sizes_and_what_holds_the_pool(cupy: Any) -> None:
    x = gt.constant(np.ones((64, 64), np.float32)).to("cupy")
    kept = [x + float(i) for i in range(3)]
    cupy.most = x.numpy().nbytes
    with pytest.raises(OutOfMemory) as caught, gt.GradientTape():
        gt.matmul(gt.reshape(x, (4096, 1)), gt.reshape(x, (1, 4096)))
    message = str(caught.value)
    assert isinstance(caught.value, MemoryError)
    for words in (
        "matmul: the GPU has no memory left (given float32[4096, 1], float32[1, 4096])",
        "Out of memory allocating 67,108,864 bytes",
        "CuPy's pool has 4.0 MiB, 3.0 MiB of it in use",
        "of 16.0 GiB on the device 512.0 MiB are free",
        "of float32[64, 64] (",
        "1 tape records",
        "gt.recompute_grad",
    ):
        assert words in message
    assert len(kept) == 3


@pytest.mark.parametrize("traced", [False, True])
def test_a_step_without_memory_assigns_nothing(cupy: Any, traced: bool) -> None:
    with gt.backend("cupy"):
        net, optimizer = Sequential([Dense(4), gt.nn.relu, Dense(3)]), Adam()
        x, y = gt.constant(X), gt.constant(LABELS)
        step = stepper(net, optimizer, crossentropy)
        step = gt.function(step) if traced else step
        step(x, y)
        variables = [*net.variables, *optimizer.variables]
        held = [v.numpy() for v in variables]
        for allocations in range(0, 1000, 17):
            cupy.left = allocations
            try:
                step(x, y)
            except OutOfMemory:
                cupy.left = float("inf")
                for v, before in zip(variables, held, strict=True):
                    np.testing.assert_array_equal(v.numpy(), before)
            else:
                break
        assert allocations > 50


# -- convolutions ----------------------------------------------------------------------------------

CONVOLUTIONS: list[dict[str, Any]] = [
    {"strides": s, "padding": p, "dilations": d, "groups": groups}
    for s, p, d, groups in itertools.product(
        (1, 2, (3, 1)), ("valid", "same", ((4, 3), (0, 1))), (1, 2), (1, 2)
    )
]


@pytest.mark.parametrize("most", [2**28, 1000], ids=["at once", "in parts"])
@pytest.mark.parametrize("settings", CONVOLUTIONS, ids=str)
def test_convolutions_and_their_gradients_are_those_of_numpy(
    place: Place, settings: dict[str, Any], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gradtape.plugins.cupy.kernels._MOST", most)
    images = np.random.default_rng(0).normal(size=(3, 9, 7, 4))
    filters = np.random.default_rng(1).normal(size=(3, 2, 4 // settings["groups"], 6))
    found = []
    for where in ("numpy", place.device):
        x, w = gt.constant(images).to(where), gt.constant(filters).to(where)
        with gt.GradientTape() as outer:
            outer.watch([x, w])
            with gt.GradientTape() as inner:
                inner.watch([x, w])
                y = gt.tanh(gt.nn.conv(x, w, **settings))
            slopes = inner.gradient(y, [x, w])
            total = gt.sum(gt.sin(slopes[0])) + gt.sum(gt.sin(slopes[1]))
        found.append([z.numpy() for z in (y, *slopes, *outer.gradient(total, [x, w]))])
    for right, mine in zip(*found, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-11)
