"""CUDA graphs: random sequences of what a program and its surroundings do, and single cases."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.plugins.cupy.compiled.graphs.room import _graphs

SHAPES = [(6,), (2, 3), (5,), (1, 4), (3,)]
ROWS = np.linspace(-1, 1, 20000).reshape(5000, 4).astype("float32")


class World:
    """Variables and a step that changes them, at one place, by one executor.

    Attributes
    ----------
    packed, alone
        The variables that are updated together, and those that are updated one by one.
    read
        The variables that the step reads; the second one is large.
    """

    def __init__(self, where: str, how: str, calls: bool) -> None:
        self.where, self.how, self.calls = where, how, calls
        with gt.backend(where):
            self.packed = [gt.Variable(np.full(s, 0.5, "float32")) for s in SHAPES]
            self.slots = [gt.Variable(np.zeros(s, "float32")) for s in SHAPES]
            self.alone = [gt.Variable(np.float32(1)), gt.Variable(np.ones((2, 2), "float32"))]
            self.alone += [gt.Variable(np.ones(6, "float32"))]
            self.read = [gt.Variable(np.float32(0.25)), gt.Variable(ROWS)]
        self.run = gt.function(self._step, input_signature=[gt.TensorSpec((None, 4))], executor=how)

    @property
    def variables(self) -> list[Any]:
        return [*self.packed, *self.slots, *self.alone, *self.read]

    def _step(self, x: Any) -> Any:
        rate, rows = self.read
        count, square, target = self.alone
        h = gt.tanh(x @ gt.transpose(self.packed[3].value * x[:1])) * rate.value
        total = gt.sum(h) + gt.sum(rows.value[:7]) * 0.125
        if self.calls:
            called = gt.linalg.inv(gt.transpose(h) @ h + 1.0)
            total = total + gt.sum(gt.tanh(called) * called) * square.value[0, 0]
            h = gt.exp(h - gt.max(h)) @ gt.ones((1, 3))
        old, turned = self.packed[0].value, gt.transpose(self.packed[1].value)
        count.assign(count.value + 1.0)
        target.assign(self.packed[0].value)
        square.assign(gt.transpose(square.value) * 0.5 + total)
        for v, slot in zip(self.packed, self.slots, strict=True):
            gradient = v.value * 0.01 + total * 0.001
            moved = slot.value * 0.9 + gradient * 0.1 + gt.square(gradient) * 0.5
            slot.assign(moved)
            v.assign(v.value - moved * rate.value * 0.1 + 0.001)
        return total, h, old, turned, count.value, rate.value, x

    def step(self, x: np.ndarray) -> list[Any]:
        with gt.backend(self.where):
            return list(self.run(gt.constant(x)))

    def assign(self, i: int, value: np.ndarray) -> None:
        with gt.backend(self.where):
            self.variables[i].assign(gt.constant(value))

    def state(self) -> list[np.ndarray]:
        return [np.array(v.numpy()) for v in self.variables]


def same(found: list[np.ndarray], wanted: list[np.ndarray]) -> bool:
    return [x.tobytes() for x in found] == [y.tobytes() for y in wanted]


HOLDS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda v: v.value,
    "array": lambda v: v.array,
    "view": lambda v: v.array[..., :1] if v.shape else v.array[...],
    "turned": lambda v: v.array.reshape(-1),
    "memory": lambda v: v.array.data,
    "capsule": lambda v: np.from_dlpack(v.array),
    "saved": lambda v: gt.transpose(v.value) if v.shape == (2, 3) else v.value,
}


def numbers(held: Any) -> np.ndarray:
    if isinstance(held, gt.Tensor):
        return np.array(held.numpy())
    return np.array(getattr(held, "data", held) if not isinstance(held, np.ndarray) else held)


class Sequence:
    """A random sequence for a world of graphs, one of kernels, and one on NumPy."""

    def __init__(self, cupy: Any, seed: int) -> None:
        self.cupy, self.draw = cupy, np.random.default_rng(seed)
        calls = bool(seed % 2)
        places = (("cupy", "default"), ("cupy", "kernels"), ("numpy", "plain"))
        self.worlds = [World(where, how, calls) for where, how in places]
        self.graphs, self.kernels, self.host = self.worlds
        self.held: list[tuple[Any, np.ndarray, str]] = []
        self.streams = [cupy.cuda.Stream(null=True), cupy.cuda.Stream(), cupy.cuda.Stream()]
        self.stream = self.streams[0]
        self.said: list[str] = []

    def call(self) -> None:
        x = self.draw.normal(size=(int(self.draw.integers(1, 4)), 4)).astype("float32")
        found = []
        for world in self.worlds:
            with self.stream:
                found.append(world.step(x))
        mine, right, host = ([y.numpy() for y in results] for results in found)
        assert same(mine, right), self.said
        for y, z in zip(mine, host, strict=True):
            np.testing.assert_allclose(y, z, rtol=1e-3, atol=1e-4)
        if self.draw.random() < 0.3:
            self.held += [(y, y.numpy().copy(), "result") for y in found[0]]

    def call_in_thread(self) -> None:
        failed: list[BaseException] = []

        def run() -> None:
            try:
                self.call()
            except BaseException as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        assert not failed, failed

    def hold(self) -> None:
        how = str(self.draw.choice(list(HOLDS)))
        v = self.graphs.variables[int(self.draw.integers(len(self.graphs.variables)))]
        held = HOLDS[how](v)
        self.held.append((held, numbers(held).copy(), how))

    def drop(self) -> None:
        if self.held:
            del self.held[int(self.draw.integers(len(self.held))) :]

    def assign(self) -> None:
        i = int(self.draw.integers(len(self.host.variables)))
        value = self.draw.normal(size=self.host.variables[i].shape).astype("float32")
        for world in self.worlds:
            world.assign(i, value)

    def switch(self) -> None:
        self.stream = self.streams[int(self.draw.integers(3))]

    def fail(self) -> None:
        error = KeyboardInterrupt() if self.draw.random() < 0.5 else RuntimeError("stopped")
        self.cupy.seen.stop = error, "after" if self.draw.random() < 0.5 else "before"
        x = self.draw.normal(size=(2, 4)).astype("float32")
        before = self.graphs.state()
        with suppress(KeyboardInterrupt, RuntimeError), self.stream:
            self.graphs.step(x)
        self.cupy.seen.stop = None
        after = self.graphs.state()
        if not same(before, after):  # then all of the step has happened
            self.kernels.step(x)
            self.host.step(x)

    def run(self, count: int) -> None:
        kinds = [self.call] * 8 + [self.hold, self.drop] * 2
        kinds += [self.assign, self.switch, self.fail, self.call_in_thread]
        for _ in range(count):
            kind = kinds[int(self.draw.integers(len(kinds)))]
            self.said.append(kind.__name__)
            kind()
            assert same(self.graphs.state(), self.kernels.state()), self.said
            for held, copy, how in self.held:
                assert numbers(held).tobytes() == copy.tobytes(), (how, self.said)


@pytest.mark.parametrize("seed", range(8))
def test_random_sequences_are_those_of_kernels_and_write_to_nothing_held(
    cupy: Any, seed: int
) -> None:
    sequence = Sequence(cupy, seed)
    sequence.run(70)
    gc.collect()
    assert cupy.seen.graphs > 5


# -- memory ----------------------------------------------------------------------------------------


def explained(f: Any) -> str:
    text: str = f.concrete_functions[0].explain()
    return text


def chain(x: Any) -> Any:
    """Return what takes several launches."""
    for _ in range(6):
        x = gt.tanh(x @ x) + 1.0
    return x


def many_updates(count: int = 6, size: int = 4000) -> tuple[list[Any], Any]:
    """Return variables and a traced step that updates them all together."""
    variables = [gt.Variable(np.full(size + i, 0.5, "float32")) for i in range(count)]

    @gt.function
    def step(x: Any) -> Any:
        total = gt.sum(chain(x))
        for v in variables:
            v.assign(gt.tanh(v.value * 0.99) + total * 0.001)
        return total

    return variables, step


def arrays_of(variables: list[Any]) -> list[int]:
    return [id(v.array) for v in variables]


def test_variables_hold_the_memory_of_the_graph_and_are_updated_in_place(cupy: Any) -> None:
    with gt.backend("cupy"):
        variables, step = many_updates()
        x = gt.ones((2, 2))
        for _ in range(3):
            step(x)
        before, values = arrays_of(variables), [v.numpy().copy() for v in variables]
        step(x)
    assert arrays_of(variables) == before
    assert not any(np.array_equal(v.numpy(), y) for v, y in zip(variables, values, strict=True))
    size = sum(v.array.nbytes for v in variables)
    assert f"{size} of variables, which variables hold" in explained(step)


def test_a_function_without_arguments_updates_in_place_too(cupy: Any) -> None:
    with gt.backend("cupy"):
        v, w = gt.Variable(np.eye(3) * 0.1), gt.Variable(np.ones(3))

        @gt.function
        def step() -> None:
            v.assign(chain(v.value) * 0.05)
            w.assign(w.value + v.value[0])

        for _ in range(3):
            step()
        before, captures = arrays_of([v, w]), cupy.seen.captures
        for _ in range(12):
            step()
    assert arrays_of([v, w]) == before
    assert cupy.seen.captures == captures == 1


@pytest.mark.parametrize("holds", HOLDS)
def test_what_refers_to_a_value_is_seen(cupy: Any, holds: str) -> None:
    with gt.backend("cupy"):
        variables, step = many_updates()
        x = gt.ones((2, 2))
        for _ in range(4):
            step(x)
        held = HOLDS[holds](variables[2])
        before, copy = arrays_of(variables), numbers(held).copy()
        step(x)
        assert arrays_of(variables) != before
        step(x)
        np.testing.assert_array_equal(numbers(held), copy)
        del held
        step(x)
    assert arrays_of(variables) == before


def test_values_held_again_and_again_lead_to_copies_once(cupy: Any) -> None:
    with gt.backend("cupy"):
        variables, step = many_updates()
        x, captures = gt.ones((2, 2)), []
        for _ in range(40):
            held = variables[0].value
            step(x)
            captures.append(cupy.seen.captures)
        before = cupy.seen.graphs
        held = [v.value for v in variables]
        step(x)
        del held
    assert cupy.seen.graphs == before + 1
    assert captures[-1] == captures[15] == 2
    assert "which variables hold copies of" in explained(step)


def test_without_reference_counts_variables_hold_copies(cupy: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr("gradtape.plugins.cupy.compiled.graphs.homes.COUNTS", False)
    with gt.backend("cupy"):
        variables, step = many_updates()
        for _ in range(5):
            step(gt.ones((2, 2)))
        before, copies = variables[0].value, variables[0].numpy().copy()
        step(gt.ones((2, 2)))
    assert "which variables hold copies of" in explained(step)
    np.testing.assert_array_equal(before.numpy(), copies)


def test_another_thread_never_sees_a_value_change(cupy: Any) -> None:
    with gt.backend("cupy"):
        variables, step = many_updates(count=3, size=9000)
        x, wrong, over = gt.ones((2, 2)), [], threading.Event()
        for _ in range(3):
            step(x)

        def read() -> None:
            while not over.is_set():
                held = variables[1].value
                first = held.numpy().copy()
                if not np.array_equal(first, held.numpy()) or len(set(first.tolist())) > 1:
                    wrong.append(first)

        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(60):
            step(x)
        over.set()
        for thread in threads:
            thread.join()
    assert not wrong


def test_a_program_that_only_reads_large_variables_reads_them_where_they_are(cupy: Any) -> None:
    with gt.backend("cupy"):
        table = gt.Variable(ROWS)
        f = gt.function(lambda x: gt.sum(gt.tanh(table.value[:9] @ x) @ gt.transpose(x) + 1.0))

        @gt.function
        def train() -> None:
            table.assign(table.value * 0.5)

        x = np.eye(4, dtype="float32")

        def wanted() -> Any:
            return np.sum(np.tanh(table.numpy()[:9] @ x) @ x.T + 1.0)

        for _ in range(4):
            np.testing.assert_allclose(f(gt.constant(x)).numpy(), wanted(), rtol=1e-4)
        assert "a CUDA graph for each of 1 streams; " not in explained(f)
        small = int(explained(f).split(" besides for each call; ")[1].split(" ")[0])
        assert small < table.array.nbytes
        for _ in range(12):
            train()
            np.testing.assert_allclose(f(gt.constant(x)).numpy(), wanted(), rtol=1e-4)
            table.assign(table.value + 1.0)
            np.testing.assert_allclose(f(gt.constant(x)).numpy(), wanted(), rtol=1e-4)
    assert "a CUDA graph for each" in explained(f)


def test_memory_is_freed_with_the_function(cupy: Any) -> None:
    with gt.backend("cupy"):
        variables, step = many_updates()
        for _ in range(5):
            step(gt.ones((2, 2)))
    made = weakref.ref(step)
    values = [v.numpy().copy() for v in variables]
    gc.collect()
    before = len(_graphs[0])
    del step
    gc.collect()
    assert made() is None
    assert len(_graphs[0]) == before - 1
    for v, y in zip(variables, values, strict=True):
        np.testing.assert_array_equal(v.numpy(), y)


def test_graphs_take_a_share_of_what_is_free_and_the_oldest_make_room(cupy: Any) -> None:
    f = gt.function(chain, input_signature=[gt.TensorSpec((None, None), "float64")])
    gc.collect()
    cupy.cuda.runtime.memGetInfo = lambda: (
        10**6 - 2**20 - sum(graph.bytes for graph in _graphs.get(0, ())),  # the pool has a MiB
        10**9,
    )
    x = {n: np.eye(n, dtype="float64") for n in (4, 100, 101, 400)}
    with gt.backend("cupy"):

        def call(n: int, times: int) -> None:
            for _ in range(times):
                f(gt.constant(x[n]))

        call(400, 4)
        assert "no CUDA graph: it would take" in explained(f)
        call(100, 4)
        assert explained(f).count("a CUDA graph for each of 1 streams") == 1
        call(4, 4)
        call(101, 4)  # the graph for 100 makes room
        text = explained(f)
        assert text.count("a CUDA graph for each of 1 streams") == 2, text
        place = text.index("(100, 100)")
        assert "a CUDA graph after 16 further runs" in text[place : place + 120]
        before = cupy.seen.captures
        call(100, 10)
        assert cupy.seen.captures == before
        call(100, 10)
        assert cupy.seen.captures == before + 1


# -- parts -----------------------------------------------------------------------------------------


def with_calls(x: Any) -> Any:
    """Return results of several calls, and of what is between them."""
    first = gt.linalg.inv(chain(x) + gt.eye(3) * 4.0)
    second = gt.linalg.inv(first[::-1] * 0.5)
    lone = gt.exp(second * 0.1) + 1.0
    third = gt.linalg.det(lone)
    last = chain(lone * 0.1)
    return first, third, last, gt.transpose(last), x, second + third


def test_a_step_with_calls_is_several_graphs(cupy: Any) -> None:
    f = gt.function(with_calls)
    x = np.random.default_rng(0).normal(size=(3, 3))
    with gt.backend("cupy"):
        for i in range(6):
            given = gt.constant(x * (i + 1) / 6)
            before = cupy.seen.graphs
            found = [y.numpy() for y in f(given)]
            wanted = [y.numpy() for y in with_calls(given)]
            for y, z in zip(found, wanted, strict=True):
                np.testing.assert_allclose(y, z, rtol=1e-9)
    text = explained(f)
    assert cupy.seen.graphs - before == 2
    assert "2 graphs have" in text
    for op in ("inv", "det"):
        assert f"split: the kernel of {op} is called, which may use the host" in text


def test_the_ops_whose_kernels_are_called_are_told_as_one_or_several(cupy: Any) -> None:
    def several(x: Any) -> Any:
        return gt.linalg.cholesky(gt.linalg.inv(x + 2.0))

    for program, named in (
        (lambda x: gt.linalg.inv(gt.exp(x)), "the kernel of inv is called"),
        (several, "the kernels of inv, cholesky are called"),
    ):
        f = gt.function(program)
        with gt.backend("cupy"):
            for _ in range(4):
                f(gt.eye(3))
        assert f"no CUDA graph: {named}, which may use the host" in explained(f)


def test_unknown_sizes_are_told(cupy: Any) -> None:
    def program(x: Any) -> Any:
        y = chain(x)
        return gt.sum(y[y > 1.0])

    f = gt.function(program)
    with gt.backend("cupy"):
        for _ in range(4):
            f(gt.ones((3, 3)))
    assert "no CUDA graph: the sizes of the results of" in explained(f)


def test_a_call_that_fails_changes_nothing(cupy: Any) -> None:
    broken = []

    class Plugin:
        @gt.hookimpl
        def gradtape_kernels(self) -> Any:
            def sort(x: Any, **params: Any) -> Any:
                if broken:
                    raise ValueError("cannot sort")
                return cupy.sort(x)

            return {("sort", "cupy"): sort}

    gt.register_plugin(Plugin(), "breaks")
    try:
        with gt.backend("cupy"):
            v = gt.Variable(np.ones((3, 3)))

            def program(x: Any) -> Any:
                v.assign(chain(gt.sort(chain(x)) * 0.1) + v.value)
                return gt.sum(v.value)

            f, x = gt.function(program), gt.ones((3, 3))
            for _ in range(5):
                f(x)
            before = v.numpy().copy()
            broken.append(True)
            with pytest.raises(ValueError, match="cannot sort"):
                f(x)
            np.testing.assert_array_equal(v.numpy(), before)
            broken.clear()
            f(x)
            assert "2 graphs have" in explained(f)
        assert not np.array_equal(v.numpy(), before)
    finally:
        gt.unregister_plugin("breaks")


# -- what a program is a part of -------------------------------------------------------------------


def test_swapped_and_shifted_variables(cupy: Any) -> None:
    def run(where: str, how: str) -> list[np.ndarray]:
        with gt.backend(where), gt.executor(how):
            vs = [gt.Variable(np.arange(5.0) + i) for i in range(4)]

            def step(x: Any) -> Any:
                a, b, c, d = [v.value for v in vs]
                vs[0].assign(b)
                vs[1].assign(a)
                vs[2].assign(d[::-1])
                vs[3].assign(x)
                return gt.sum(chain(gt.reshape(a[:4], (2, 2)) * 0.1)), c, a[1:], vs[0].value

            f, found = gt.function(step), []
            for i in range(6):
                results = f(gt.constant(np.arange(5.0) * i))
                found += [y.numpy() for y in (*results, *vs)]
            assert where == "numpy" or "a CUDA graph for each" in explained(f)
            return found

    for x, y in zip(run("cupy", "default"), run("numpy", "plain"), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9)


def test_gradients_through_a_traced_function(cupy: Any) -> None:
    f, found = gt.function(chain), []
    x = np.random.default_rng(0).normal(size=(3, 3))
    for where in ("cupy", "numpy"):
        with gt.backend(where):
            for _ in range(6):
                given = gt.constant(x)
                with gt.GradientTape() as tape:
                    tape.watch(given)
                    y = gt.sum(f(given) ** 2)
                slope = tape.gradient(y, given).numpy()
            found.append(slope)
    np.testing.assert_allclose(*found, rtol=1e-8)


def test_updates_under_a_tape(cupy: Any) -> None:
    with gt.backend("cupy"):
        variables, step = many_updates()
        x = gt.ones((2, 2))
        for _ in range(5):
            with gt.GradientTape() as tape:
                y = variables[0].value * 2.0
                step(x)
                z = gt.sum(y * variables[0].value)
            first = variables[0].value
        assert tape.gradient(z, variables[0]) is not None
        assert first is not None


def test_loops_and_nested_functions(cupy: Any) -> None:
    inner = gt.function(lambda x: chain(x) * 0.5)

    def program(x: Any) -> Any:
        found = gt.while_loop(lambda i, h: i < 5, lambda i, h: (i + 1, inner(h)), [0, x])[1]
        return found + inner(x)

    f, x = gt.function(program), np.eye(3) * 0.1
    with gt.backend("cupy"):
        for _ in range(5):
            np.testing.assert_allclose(
                f(gt.constant(x)).numpy(), program(gt.constant(x)).numpy(), rtol=1e-12
            )
    assert cupy.seen.graphs > 0


def test_fit(cupy: Any) -> None:
    def losses(where: str) -> list[float]:
        gt.random.set_seed(0)
        draw = np.random.default_rng(0)
        data = draw.random((64, 5), dtype="float32"), draw.integers(0, 3, 64)
        with gt.backend(where):
            layers = [gt.layers.Dense(8, activation="relu"), gt.layers.Dense(3)]
            model = gt.layers.Sequential(layers)
            model(gt.constant(data[0][:1]))
            history = gt.training.fit(
                model, data, epochs=3, batch_size=16, seed=0, verbose=False, validation_data=data,
                compile=True,
            )  # fmt: skip
        return history.history["loss"] + history.history["val_loss"]

    np.testing.assert_allclose(losses("cupy"), losses("numpy"), rtol=1e-3)
    assert cupy.seen.graphs > 0


def test_many_inputs_and_results_take_few_launches(cupy: Any) -> None:
    f = gt.function(lambda *xs: [chain(xs[0]), *[x * 2.0 for x in xs]])
    with gt.backend("cupy"), gt.executor("cuda_graphs"):
        xs = [gt.constant(np.full((2, 2), i * 0.01)) for i in range(200)]
        for _ in range(3):
            before = cupy.seen.outside
            found = f(*xs)
    assert cupy.seen.outside - before == 2
    for i, y in enumerate(found[1:]):
        np.testing.assert_allclose(y.numpy(), np.full((2, 2), i * 0.02))


def test_one_launch_beside_the_graph(cupy: Any) -> None:
    with gt.backend("cupy"):
        _, step = many_updates()
        for _ in range(5):
            before = cupy.seen.outside, cupy.seen.graphs
            step(gt.ones((2, 2)))
    assert (cupy.seen.outside - before[0], cupy.seen.graphs - before[1]) == (1, 1)
