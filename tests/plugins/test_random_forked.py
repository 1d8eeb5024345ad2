"""Random numbers in forked processes: apart without a seed, the parent's with one."""

from __future__ import annotations

import copy
import os
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Stream

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")


def forked(draw: Callable[[], Any]) -> Any:
    """Return what a forked process draws."""
    source, sink = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads, which are none of ours
        child = os.fork()
    if not child:
        try:
            os.write(sink, pickle.dumps(draw()))
        finally:
            os._exit(0)
    os.close(sink)
    with os.fdopen(source, "rb") as pipe:
        result = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    return result


def in_three(draw: Callable[[], Any]) -> list[Any]:
    return [forked(draw), forked(draw), draw()]


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of a process in which nobody has asked for a random number yet."""
    from gradtape.plugins.ops.random import functions

    monkeypatch.setattr(functions, "_shared", None)
    monkeypatch.setattr(Stream, "shared", None)


def drawn(generator: Any) -> Callable[[], Any]:
    return lambda: generator.normal(4).tolist()


def dropped(layer: Any) -> Callable[[], Any]:
    return lambda: layer(gt.ones(64), training=True).tolist()


def traced(generator: Any) -> Callable[[], Any]:
    function = gt.function(lambda: generator.normal(4))
    function()
    return lambda: function().tolist()


def shared() -> Callable[[], Any]:
    gt.random.uniform(1)
    return lambda: gt.random.normal(4).tolist()


UNSEEDED = {
    "generator": lambda: drawn(gt.random.Generator()),
    "copy": lambda: drawn(copy.deepcopy(gt.random.Generator())),
    "traced": lambda: traced(gt.random.Generator()),
    "shared": shared,
    "dropout": lambda: dropped(gt.layers.Dropout(0.5)),
    "initializer": lambda: lambda: gt.layers.Dense(2)(gt.ones((1, 3))).tolist(),
}
SEEDED = {
    "generator": lambda: drawn(gt.random.Generator(7)),
    "traced": lambda: traced(gt.random.Generator(7)),
    "dropout": lambda: dropped(gt.layers.Dropout(0.5, seed=7)),
}


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", UNSEEDED)
def test_without_a_seed_no_two_processes_draw_the_same(kind: str) -> None:
    draw = UNSEEDED[kind]()
    draw()
    assert len(set(map(str, in_three(draw)))) == 3


@pytest.mark.parametrize("kind", SEEDED)
def test_with_a_seed_every_process_goes_on_where_the_parent_was(kind: str) -> None:
    draw = SEEDED[kind]()
    draw()
    first, second, own = in_three(draw)
    assert first == second == own


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize("kind", ["shared", "dropout", "initializer"])
def test_set_seed_governs_what_draws_its_seed_from_the_shared_generator(kind: str) -> None:
    gt.random.uniform(1)
    gt.random.set_seed(3)
    draw = UNSEEDED[kind]()
    draw()
    first, second, own = in_three(draw)
    assert first == second == own


def test_a_state_that_was_set_counts_as_asked_for() -> None:
    generator = gt.random.Generator()
    generator.state = [5, 0]
    first, second, own = in_three(lambda: generator.normal(4).tolist())
    assert first == second == own == gt.random.Generator(5).normal(4).tolist()


def test_processes_forked_by_a_forked_one_draw_apart_too() -> None:
    generator = gt.random.Generator()

    def draw() -> list[float]:
        return generator.uniform(4).tolist()

    first, second = forked(lambda: (forked(draw), forked(draw)))
    assert len({str(first), str(second), str(draw())}) == 3


def test_a_copy_goes_on_drawing_what_its_original_does() -> None:
    generator = gt.random.Generator()
    twin = copy.deepcopy(generator)
    mine, its = forked(lambda: (generator.normal(4).tolist(), twin.normal(4).tolist()))
    assert mine == its


def test_a_fork_waits_until_no_thread_is_at_a_draw() -> None:
    generator, done = gt.random.Generator(1), threading.Event()

    def work() -> None:
        while not done.is_set():
            generator.next_key()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert forked(lambda: generator.next_key().tolist())[0] == 1
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert generator.next_key().tolist()[0] == 1


def test_a_generator_without_a_seed_keeps_its_numbers_when_nothing_is_forked() -> None:
    generator = gt.random.Generator()
    twin = gt.random.Generator(generator.get_config()["seed"])
    np.testing.assert_array_equal(generator.normal(5), twin.normal(5))
