"""What plans of memory get wrong: aliases, odd dtypes and layouts, blocks, sizes that change."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from executing import OFTEN, all_close, differences, each_executor, same_bits

import gradtape as gt


def beside_plain(name: str, make: Callable[[], Callable[[], Any]], calls: int = OFTEN) -> None:
    """Compare, bit for bit, what a program gives call by call with what the plain executor gives.

    ``make`` returns a function that calls and returns a list of tensors and variables.
    """
    found = []
    for executor in ("plain", name):
        with gt.executor(executor):
            run = make()
            found.append([[np.array(y.numpy()) for y in run()] for _ in range(calls)])
    for right, mine in zip(*found, strict=True):
        assert differences(mine, right) == []


# -- aliases ---------------------------------------------------------------------------------------


def swapped() -> Any:
    a, b = gt.Variable(np.arange(5.0)), gt.Variable(-np.arange(5.0))

    @gt.function
    def step() -> Any:
        old = a.value
        a.assign(b.value)
        b.assign(old)
        return [a + 0.0]

    return lambda: [*step(), a, b]


def one_value_in_two() -> Any:
    a, b = gt.Variable(np.arange(5.0)), gt.Variable(np.zeros(5))

    @gt.function
    def step() -> Any:
        b.assign(a.value)
        c = a * 0.5 + b
        a.assign(c)
        return [a.value, b.value, c]

    @gt.function
    def change() -> Any:
        a.assign(a * 1.5 + 1.0)
        return [a + b]

    return lambda: [*step(), *change(), a, b]


def inputs_assigned() -> Any:
    v, w = gt.Variable(np.zeros(5)), gt.Variable(np.zeros(5))
    mine = gt.constant(np.arange(5.0))

    @gt.function
    def step(x: Any) -> Any:
        v.assign(x)
        w.assign_add(x)
        return [v + w]

    @gt.function
    def change() -> Any:
        v.assign(v * 2.0 + 1.0)
        w.assign(w * 2.0 + 1.0)

    def run() -> Any:
        found = step(mine)
        change()
        change()
        return [*found, mine, v, w]

    return run


def constants_assigned() -> Any:
    one = gt.constant(np.ones(6))
    v, w = gt.Variable(np.zeros(6)), gt.Variable(np.zeros(6))

    @gt.function
    def reset() -> Any:
        v.assign(one)
        w.assign(one)

    @gt.function
    def step() -> Any:
        v.assign(v * 3.0 - 1.5)
        w.assign(w + v)

    def run() -> Any:
        reset()
        step()
        step()
        return [one, v, w]

    return run


def variables_of_one_array() -> Any:
    shared = gt.constant(np.arange(4.0))
    v, w = gt.Variable(shared), gt.Variable(shared)
    w.assign(shared)
    v.assign(shared)

    @gt.function
    def step() -> Any:
        v.assign(v * 2.0 + w)
        w.assign(w + 1.0)

    def run() -> Any:
        step()
        return [shared, v, w]

    return run


def an_update_that_is_returned() -> Any:
    v = gt.Variable(np.arange(8.0).reshape(2, 4))

    @gt.function
    def step() -> Any:
        new = v * 1.25 + 0.5
        v.assign(new)
        return [new, gt.transpose(new), new[0], gt.reshape(new, (-1,))]

    kept: list[Any] = []

    def run() -> Any:
        kept.extend(step())
        return [*kept, v]

    return run


def views_of_variables() -> Any:
    v = gt.Variable(np.arange(12.0).reshape(3, 4))

    @gt.function
    def step() -> Any:
        rows, turned, flat = v[1:], gt.transpose(v), gt.reshape(v, (4, 3))
        v.assign(v * 2.0 + 1.0)
        return [rows, turned, flat, turned * 2.0, v.value]

    kept: list[Any] = []

    def run() -> Any:
        kept.extend(step())
        return list(kept)

    return run


ALIASES = [
    swapped,
    one_value_in_two,
    inputs_assigned,
    constants_assigned,
    variables_of_one_array,
    an_update_that_is_returned,
    views_of_variables,
]


@each_executor
@pytest.mark.parametrize("make", ALIASES)
def test_arrays_that_two_hold_are_not_written(name: str, make: Any) -> None:
    beside_plain(name, make, calls=6)


# -- variables of every kind -----------------------------------------------------------------------


@each_executor
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "int64", "complex64"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (5, 7), (1, 1, 1)])
def test_updates_of_variables_of_every_kind(name: str, dtype: str, shape: Any) -> None:
    def make() -> Any:
        start = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
        vs = [gt.Variable(start), gt.Variable(start * 2), gt.Variable(np.ones(3, dtype))]

        @gt.function
        def step() -> Any:
            for v in vs:
                v.assign_add(gt.ones_like(v))
            vs[0].assign(vs[0] * 3 - vs[1])

        def run() -> Any:
            step()
            return vs

        return run

    beside_plain(name, make)


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::-1],
    "strided": lambda x: np.repeat(np.repeat(x, 2, 0), 3, 1)[::2, ::3],
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "Fortran": np.asfortranarray,
    "swapped bytes": lambda x: x.astype(x.dtype.newbyteorder()),
    "offset": lambda x: np.frombuffer(b"\0" + x.tobytes(), "u1")[1:].view(x.dtype).reshape(x.shape),
}


@each_executor
@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_every_layout_are_read_and_replaced(name: str, layout: str) -> None:
    start = LAYOUTS[layout](np.arange(16.0).reshape(4, 4) - 3.0)

    def make() -> Any:
        v, w = gt.Variable(np.zeros((4, 4))), gt.Variable(start)
        v.assign(gt.constant(start))
        x = gt.constant(start)

        @gt.function
        def step(x: Any) -> Any:
            y = gt.abs(x) * 2.0 + v
            v.assign(v * 0.5 + y)
            w.assign(w + gt.transpose(y))
            return [y, gt.sum(y, axis=0), gt.sum(y * v, axis=1), gt.max(y, axis=0)]

        return lambda: [*step(x), v, w]

    beside_plain(name, make)
    assert same_bits(start, LAYOUTS[layout](np.arange(16.0).reshape(4, 4) - 3.0))


@each_executor
@pytest.mark.parametrize("lazy", [False, True])
def test_variables_of_a_file_are_trained(name: str, lazy: bool, tmp_path: Path) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(3), gt.layers.Dense(2)])
    model(gt.ones((4, 5)))
    gt.save(model, tmp_path / "m.h5")
    stored = [np.array(v.numpy()) for v in model.variables]

    def make() -> Any:
        loaded = gt.load(tmp_path / "m.h5", lazy=lazy)
        sgd = gt.training.SGD(0.001, momentum=0.5)

        @gt.function
        def step() -> Any:
            with gt.GradientTape() as tape:
                loss = gt.sum(loaded(gt.ones((4, 5))) ** 2.0)
            variables = loaded.trainable_variables
            sgd.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

        def run() -> Any:
            step()
            return loaded.variables

        return run

    beside_plain(name, make)
    again = gt.load(tmp_path / "m.h5")
    assert differences([v.numpy() for v in again.variables], stored) == []


# -- blocks ----------------------------------------------------------------------------------------

WIDTHS = [1, 2, 3, 31, 63, 64, 65, 127, 1023, 1024, 1025, 4096, 8191, 16385, 100_003]


@each_executor
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_groups_over_every_number_of_elements(name: str, dtype: str) -> None:
    random = np.random.default_rng(0)
    run = gt.function(
        lambda x, y: [
            (x * 2.0 + y) / (gt.abs(y) + 1.0),
            gt.sqrt(gt.abs(x - y)) * gt.maximum(x, 0.0),
            gt.sum(x * y - 1.0),
            gt.where(x > y, x - 1.0, y * x),
        ],
        max_traces=None,
    )
    for n in WIDTHS:
        x, y = (gt.constant(random.normal(size=n).astype(dtype)) for _ in range(2))
        with gt.executor("plain"):
            want = [y.numpy() for y in run(x, y)]
        with gt.executor(name):
            for _ in range(OFTEN):
                found = run(x, y)
        assert differences([y.numpy() for y in found], want) == [], n


SHAPES = [(1, 1), (3, 5), (32, 128), (128, 10), (257, 63), (1000, 3), (3, 1000), (2, 70_001)]


@each_executor
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("axis", [0, 1, (0, 1), -1])
def test_sums_of_groups_are_in_the_order_of_numpy(name: str, shape: Any, axis: Any) -> None:
    """Rows, columns and numbers are broadcast into the group; its sums are those of NumPy."""
    random = np.random.default_rng(1)
    x = gt.constant(random.normal(size=shape).astype("float32"))
    row = gt.constant(random.normal(size=shape[1]).astype("float32"))
    column = gt.constant(random.normal(size=(shape[0], 1)).astype("float32"))

    @gt.function
    def run(x: Any, row: Any, column: Any) -> Any:
        y = (x - row) * column + row * 0.5
        mean = gt.mean(y, axis=axis, keepdims=True)
        centred = y - mean
        return [
            gt.sum(centred * centred, axis=axis),
            gt.sum(y, axis=axis, keepdims=True) + y,
            gt.max(y, axis=axis),
            centred,
        ]

    with gt.executor("plain"):
        want = [np.array(y.numpy()) for y in run(x, row, column)]
    with gt.executor(name):
        for _ in range(OFTEN):
            found = run(x, row, column)
    assert differences([y.numpy() for y in found], want, all_close) == []


@each_executor
def test_sizes_that_change_from_call_to_call(name: str) -> None:
    @gt.function(input_signature=[gt.TensorSpec([None, None]), gt.TensorSpec([None])])
    def run(x: Any, y: Any) -> Any:
        z = gt.maximum(x * 2.0 + y, 0.0) / (x.shape[0] + 1.0)
        return [z, gt.sum(z, axis=0), gt.transpose(z) @ z, gt.mean(z - y, axis=1)]

    random = np.random.default_rng(2)
    with gt.executor(name):
        for number in range(60):
            n, m = random.integers(0 if number % 5 else 1, 9), random.integers(1, 9)
            x, y = random.normal(size=(n, m)).astype("f"), random.normal(size=m).astype("f")
            found = [np.array(z.numpy()) for z in run(gt.constant(x), gt.constant(y))]
            with gt.executor("plain"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                want = [z.numpy() for z in run(gt.constant(x), gt.constant(y))]
            assert differences(found, want, all_close) == []


# -- graphs in graphs, and what surrounds a run ----------------------------------------------------


@each_executor
def test_graphs_in_graphs(name: str) -> None:
    v = gt.Variable(np.ones((3, 3)))

    @gt.custom_gradient
    def clipped(x: Any) -> Any:
        return x * 2.0, lambda g: gt.clip(g, -0.1, 0.1)

    def loss(x: Any, flag: Any) -> Any:
        y = gt.cond(flag, lambda: gt.tanh(x @ v) + x, lambda: x * 2.0 - v)
        _, z = gt.scan(lambda c, r: (c + r * 2.0, c * r + 1.0), gt.zeros_like(y[0]), y)
        _, w = gt.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 0.5 + z), (0, z))
        return gt.sum(clipped(w) * gt.recompute_grad(lambda a: gt.sin(a) * a)(z))

    @gt.function
    def run(x: Any, flag: Any) -> Any:
        with gt.GradientTape() as tape:
            tape.watch(x)
            value = loss(x, flag)
        dx, dv = tape.gradient(value, [x, v], unconnected_gradients="zero")
        v.assign_sub(dv * 0.01)
        return [value, dx, dv]

    for flag in (True, False, True):
        x, start = gt.constant(np.linspace(-1, 1, 9).reshape(3, 3)), v.numpy()
        found = []
        for executor in ("plain", name):
            with gt.executor(executor):
                for _ in range(OFTEN):
                    v.assign(start)
                    results = run(x, gt.constant(flag))
                found.append([*(y.numpy() for y in results), v.numpy()])
        assert differences(found[1], found[0], all_close) == []


@each_executor
def test_a_run_that_numpy_stops_leaves_all_as_it_was(name: str) -> None:
    v = gt.Variable(np.ones(4))

    @gt.function
    def step(x: Any) -> Any:
        y = x * 2.0
        v.assign(v + 1.0 / y)
        return y / x

    with gt.executor(name):
        for number in range(6):
            before = np.array(v.numpy())
            with np.errstate(all="raise"), pytest.raises(FloatingPointError):
                step(gt.constant([1.0, 0.0, 2.0, 4.0], dtype="float64"))
            assert same_bits(v.numpy(), before)
            step(gt.ones(4, dtype="float64") * 0.5)
            assert v.tolist() == [number + 2.0] * 4


@each_executor
def test_numpys_warnings_are_those_of_an_eager_run(name: str) -> None:
    @gt.function
    def run(x: Any) -> Any:
        y = gt.log(x) * 2.0 + x
        return y / (x - x)

    def said(fn: Any) -> set[str]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fn(gt.constant([-1.0, 0.0, 2.0]))
        return {str(w.message).partition(" encountered")[0] for w in caught}

    with gt.executor(name):
        for _ in range(OFTEN):
            found = said(run)
        assert found == said(run.python_function)
        for _ in range(OFTEN):
            with np.errstate(all="ignore"):
                assert said(run) == set()


@each_executor
def test_planning_takes_time_in_proportion_to_the_nodes(name: str) -> None:
    import gc
    import time

    def seconds(turns: int) -> float:
        @gt.function
        def run(x: Any) -> Any:
            with gt.GradientTape() as tape:
                tape.watch(x)
                y = x
                for i in range(turns):
                    y = y * 1.0001 + (x if i % 7 else gt.sin(y))
            return tape.gradient(y, x)

        concrete = run.get_concrete_function(gt.TensorSpec([5]))
        with gt.executor("plain"):
            want = concrete(gt.ones(5)).numpy()
        gc.collect()
        gc.disable()  # its time depends on what other tests left
        start = time.thread_time()
        try:
            with gt.executor(name):
                found = concrete(gt.ones(5)).numpy()
        finally:
            gc.enable()
        assert all_close(found, want)
        return time.thread_time() - start

    seconds(50)  # what is imported first
    assert seconds(1600) < 16 * seconds(400)


@each_executor
def test_random_numbers_are_those_of_the_plain_executor(name: str) -> None:
    def make() -> Any:
        gt.random.set_seed(7)
        layer = gt.layers.Dropout(0.5, seed=3)
        run = gt.function(lambda x: [layer(x, training=True) * 2.0, gt.random.normal((3, 2))])
        return lambda: run(gt.ones((4, 5)))

    beside_plain(name, make)
