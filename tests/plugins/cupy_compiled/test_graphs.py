"""CUDA graphs: random sequences of what a program and its surroundings do, and single cases."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import gradtape as gt

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
            order = gt.sort(gt.reshape(h, (-1,)))
            total = total + gt.sum(gt.tanh(order) * order) * square.value[0, 0]
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
