"""Optimizers' steps block by block: the formula's numbers, and nobody's array is written."""

from __future__ import annotations

import copy
import gc
import signal
import threading
import tracemalloc
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import SGD, Adagrad, Adam, RMSprop
from gradtape.training.optimizers.updates import BLOCK, SMALL

RNG = np.random.default_rng(7)
MAKERS: list[Callable[[], Any]] = [
    lambda: SGD(0.1),
    lambda: SGD(0.1, 0.9),
    lambda: SGD(0.1, 0.9, nesterov=True),
    lambda: Adam(0.01),
    lambda: RMSprop(0.01),
    lambda: RMSprop(0.01, momentum=0.5, centered=True),
    lambda: Adagrad(0.1),
]
IN_BLOCK = BLOCK // 4  # of float32
FEW = SMALL // 4


def numbers(size: Any, dtype: str = "float32") -> Any:
    found = RNG.standard_normal(size)
    if dtype.startswith("complex"):
        found = found + 1j * RNG.standard_normal(size)
    return found.astype(dtype)


def whole_step(optimizer: Any, columns: list[list[Any]], gradients: list[Any], step: int) -> Any:
    """Return what ``update`` gives for each variable as a whole."""
    settings = optimizer.settings(float(optimizer.learning_rate.numpy()), step)
    found = []
    for i, gradient in enumerate(gradients):
        value, *state = (column[i] for column in columns)
        new, changed = optimizer.update(value, gradient, state, settings)
        found.append([new, *changed])
    return [list(column) for column in zip(*found, strict=True)]


def held_by(optimizer: Any, variables: list[Any]) -> list[list[Any]]:
    slots = [getattr(optimizer, slot) for slot in optimizer.slots]
    return [[np.array(v.numpy()) for v in column] for column in (variables, *slots)]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize(
    "sizes",
    [
        (IN_BLOCK - 1,),
        (IN_BLOCK,),
        (IN_BLOCK + 1,),
        (2 * IN_BLOCK + 5,),
        (3, IN_BLOCK, 5, 7, FEW - 1, FEW, 2),
        (FEW - 1,) * (IN_BLOCK // FEW + 2),
        (0, IN_BLOCK + 1, 0, 1),
    ],
)
def test_steps_by_blocks_are_those_of_whole_arrays_bit_by_bit(make: Any, sizes: Any) -> None:
    optimizer = make()
    variables = [gt.Variable(numbers(n)) for n in sizes]
    optimizer.build(variables)
    expected = held_by(optimizer, variables)
    for step in (1, 2, 3):
        gradients = [numbers(n) for n in sizes]
        expected = whole_step(optimizer, expected, gradients, step)
        optimizer.apply_gradients(zip(map(gt.constant, gradients), variables))
        for mine, theirs in zip(held_by(optimizer, variables), expected, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("dtype", ["float16", "float64", "complex64", "complex128"])
def test_steps_by_blocks_in_every_dtype(make: Any, dtype: str) -> None:
    size = BLOCK // np.dtype(dtype).itemsize + 3
    optimizer, variable = make(), gt.Variable(numbers((size,), dtype))
    optimizer.build([variable])
    expected = held_by(optimizer, [variable])
    for step in (1, 2):
        gradient = numbers((size,), dtype)
        with np.errstate(all="ignore"):
            expected = whole_step(optimizer, expected, [gradient], step)
            optimizer.apply_gradients([(gt.constant(gradient), variable)])
        mine = held_by(optimizer, [variable])
        assert [x[0].tobytes() for x in mine] == [x[0].tobytes() for x in expected]


def test_what_is_not_a_number_stays_where_it_is() -> None:
    start = numbers(IN_BLOCK + 9)
    gradient = numbers(IN_BLOCK + 9)
    gradient[[0, IN_BLOCK - 1]], gradient[[5, IN_BLOCK]], gradient[7] = np.nan, np.inf, -0.0
    for make in MAKERS:
        optimizer, variable = make(), gt.Variable(start)
        optimizer.build([variable])
        with np.errstate(all="ignore"):
            expected = whole_step(optimizer, held_by(optimizer, [variable]), [gradient], 1)
            optimizer.apply_gradients([(gt.constant(gradient), variable)])
        np.testing.assert_array_equal(variable.numpy(), expected[0][0])
        assert np.signbit(variable.numpy()).tolist() == np.signbit(expected[0][0]).tolist()


@pytest.mark.parametrize("make", MAKERS)
def test_transposed_gradients_of_large_variables(make: Any) -> None:
    shape = (300, 301)
    start, gradient = numbers(shape), numbers(shape[::-1])
    one, other = make(), make()
    v, w = gt.Variable(start), gt.Variable(start)
    one.apply_gradients([(gt.constant(np.ascontiguousarray(gradient.T)), v)])
    other.apply_gradients([(gt.transpose(gt.constant(gradient)), w)])
    assert v.numpy().tobytes() == w.numpy().tobytes()


# -- nobody's array is written ---------------------------------------------------------------------

HOLDERS: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda v: v.value,
    "handle": lambda v: v.handle(),
    "raw array": lambda v: v.array,
    "numpy": lambda v: v.numpy(),
    "asarray": np.asarray,
    "slice": lambda v: v.numpy()[1:-1],
    "element view": lambda v: v.numpy()[1],
    "reshaped": lambda v: v.numpy().reshape(-1)[::2],
    "transposed": lambda v: v.numpy().T,
    "memoryview": lambda v: memoryview(v.numpy()),
    "buffer": lambda v: np.frombuffer(memoryview(v.numpy()).cast("B"), np.float32),
    "DLPack": lambda v: np.from_dlpack(v.value),
    "strided": lambda v: np.lib.stride_tricks.as_strided(v.numpy(), (2,), (4,)),
    "copy of the variable": copy.copy,
    "iterator": lambda v: v.numpy().flat,
}


def content(held: Any) -> bytes:
    return np.array(held).tobytes()


@pytest.mark.parametrize("sizes", [((5, 4), (4,)), ((300, 256), (256,))])
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("make", [MAKERS[1], MAKERS[3]])
def test_what_was_handed_out_stays_as_it_was(make: Any, holder: str, sizes: Any) -> None:
    optimizer = make()
    variables = [gt.Variable(numbers(shape)) for shape in sizes]
    gradients = [gt.constant(numbers(shape)) for shape in sizes]

    def step() -> None:
        optimizer.apply_gradients(zip(gradients, variables))

    step()
    step()
    slots = [getattr(optimizer, slot)[0] for slot in optimizer.slots]
    held = [HOLDERS[holder](v) for v in (variables[0], *slots)]
    before = [content(x) for x in held]
    now = [v.numpy().tobytes() for v in (variables[0], *slots)]
    for _ in range(100 if sizes[0] == (5, 4) else 5):
        step()
    assert [content(x) for x in held] == before
    assert all(v.numpy().tobytes() != b for v, b in zip((variables[0], *slots), now, strict=True))


def test_no_new_arrays_where_nobody_holds_the_old_ones() -> None:
    variables = [gt.Variable(numbers((300, 256))), gt.Variable(numbers(256))]
    optimizer = Adam()

    def step() -> int:
        with gt.GradientTape() as tape:
            loss = sum(gt.sum(gt.square(v)) for v in variables)
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return int(variables[0].numpy().ctypes.data)

    step()
    places = {step() for _ in range(5)}
    assert len(places) == 1
    held = variables[1].value  # a part of the same memory
    assert step() not in places
    assert held.numpy().tobytes() != variables[1].numpy().tobytes()


def test_where_counts_say_nothing_every_step_makes_new_arrays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gradtape.plugins.packing._ALONE", None)
    variable, optimizer = gt.Variable(np.zeros(2 * IN_BLOCK, np.float32)), SGD(1.0, 0.5)
    for expected in (-1.0, -2.5, -4.25):
        before = variable.array.ctypes.data
        held = variable.numpy().sum()
        optimizer.apply_gradients([(gt.ones(2 * IN_BLOCK), variable)])
        assert variable.array.ctypes.data != before
        assert set(variable.numpy().tolist()) == {expected}
        assert held != variable.numpy().sum()


def test_a_step_in_place_takes_less_memory_than_its_arrays() -> None:
    size = 64 * IN_BLOCK
    variable, optimizer = gt.Variable(np.zeros(size, np.float32)), Adam()
    gradient = gt.ones(size)
    optimizer.apply_gradients([(gradient, variable)])
    tracemalloc.start()
    try:
        optimizer.apply_gradients([(gradient, variable)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * size / 4


def test_a_variable_that_is_its_own_gradient() -> None:
    variable, optimizer = gt.Variable(numbers(FEW)), SGD(0.5)
    optimizer.apply_gradients([(variable.value, variable)])
    expected = variable.numpy() * np.float32(0.5)
    optimizer.apply_gradients([(variable.value, variable)])
    np.testing.assert_array_equal(variable.numpy(), expected)


def test_variables_that_were_assigned_or_are_shared_are_seen() -> None:
    shared, own = gt.Variable(numbers(50)), gt.Variable(numbers(60))
    twin = copy.copy(shared)
    first, second = SGD(0.5, 0.5), SGD(0.25)
    ones = [gt.ones(50), gt.ones(60)]
    expected = shared.numpy() + np.float32(0)
    for _ in range(3):
        velocity = 0 if first.iterations.item() == 0 else first.velocities[0].numpy()[0]
        first.apply_gradients(zip(ones, [shared, own]))
        expected = expected + np.float32(velocity * 0.5 - 0.5)
        second.apply_gradients([(ones[0], shared)])
        expected = expected - np.float32(0.25)
        np.testing.assert_array_equal(shared.numpy(), expected)
        shared.assign(expected * 2)
        expected = expected * 2
    own.assign(gt.zeros(60))
    second.apply_gradients([(ones[1], own)])
    assert own.numpy().tolist() == [-0.25] * 60
    assert not np.array_equal(twin.numpy(), shared.numpy())


def test_attributes_that_are_set_between_steps_count() -> None:
    variable, optimizer = gt.Variable(gt.zeros(3)), SGD(1.0, 0.5)
    for momentum, expected in ((0.5, -1.0), (0.5, -2.5), (0.0, -3.5), (1.0, -5.5)):
        optimizer.momentum = momentum
        optimizer.apply_gradients([(gt.ones(3), variable)])
        assert variable.numpy().tolist() == [expected] * 3


def test_an_update_of_ones_own_is_given_whole_arrays() -> None:
    sizes = []

    class Mine(Adam):
        def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
            sizes.append(gradient.size)
            return value - gradient * 0.5, tuple(state)

    optimizer, variable = Mine(), gt.Variable(np.ones(2 * IN_BLOCK, np.float32))
    for _ in range(2):
        optimizer.apply_gradients([(variable.value, variable)])
    assert sizes == [2 * IN_BLOCK] * 2
    assert set(variable.numpy().tolist()) == {0.25}


def test_settings_of_ones_own_may_be_arrays() -> None:
    class Mine(SGD):
        def settings(self, rate: Any, step: Any) -> Any:
            return (np.float32(rate * 2),)

    size = 2 * IN_BLOCK
    optimizer, variable = Mine(0.25), gt.Variable(np.ones(size, np.float32))
    for settings in (Mine.settings, SGD.settings, Mine.settings, SGD.settings, SGD.settings):
        Mine.settings = settings  # type: ignore[method-assign]
        held = variable.value
        optimizer.apply_gradients([(gt.ones(size), variable)])
        rate = optimizer.settings(0.25, 1)[0]
        assert set((held - variable.value).numpy().tolist()) == {rate}


# -- a step takes effect as a whole, or not at all -------------------------------------------------


@pytest.mark.parametrize("how", ["raise", "call", "warning"])
def test_an_arithmetic_error_in_a_late_block_changes_nothing(how: str) -> None:
    size = 3 * IN_BLOCK
    variable, other = gt.Variable(np.ones(size, np.float32)), gt.Variable(np.ones(9))
    optimizer = Adam()
    ones = gt.constant(np.ones(size, np.float32)), gt.constant(np.ones(9))
    for _ in range(2):
        optimizer.apply_gradients(zip(ones, (variable, other)))
    large = np.ones(size, np.float32)
    large[-1] = 1e30  # its square is too large
    slots = [*optimizer.first_moments, *optimizer.second_moments]
    before = [v.numpy().tobytes() for v in (variable, other, *slots)]

    def refuse(kind: str, flag: int) -> None:
        raise FloatingPointError(kind)

    with warnings.catch_warnings(), np.errstate():
        if how == "warning":
            warnings.simplefilter("error", RuntimeWarning)
            np.seterr(all="warn")
        else:
            np.seterr(over=how)  # type: ignore[call-overload]
            np.seterrcall(refuse)
        with pytest.raises((FloatingPointError, RuntimeWarning), match="overflow"):
            optimizer.apply_gradients(zip((gt.constant(large), ones[1]), (variable, other)))
    assert [v.numpy().tobytes() for v in (variable, other, *slots)] == before
    assert optimizer.iterations.item() == 2
    optimizer.apply_gradients(zip(ones, (variable, other)))
    assert optimizer.iterations.item() == 3


def test_threads_read_whole_weights_while_a_step_writes_them() -> None:
    size = 4 * IN_BLOCK
    variable, optimizer = gt.Variable(np.zeros(size, np.float32)), SGD(1.0, 0.5)
    gradient = gt.constant(np.full(size, -1.0, np.float32))
    optimizer.build([variable])
    done, errors = threading.Event(), []

    def read(variable: Any) -> None:
        while not done.is_set():
            held = variable.numpy()
            first = held[0]
            if not (held == first).all():
                errors.append("torn")
            if held[-1] != first:
                errors.append("written")
            del held

    kept = variable, optimizer.velocities[0]
    readers = [threading.Thread(target=read, args=(x,)) for x in kept]
    for thread in readers:
        thread.start()
    for _ in range(150):
        optimizer.apply_gradients([(gradient, variable)])
    done.set()
    for thread in readers:
        thread.join()
    assert not errors
    assert optimizer.iterations.item() == 150


def test_threads_step_the_same_variables_in_turns() -> None:
    variable, optimizer = gt.Variable(np.zeros(2 * IN_BLOCK, np.float32)), SGD(1.0)
    other = SGD(1.0)
    gradient = gt.constant(np.full(2 * IN_BLOCK, -1.0, np.float32))

    def train(mine: Any) -> None:
        for _ in range(20):
            mine.apply_gradients([(gradient, variable)])

    threads = [threading.Thread(target=train, args=(x,)) for x in (optimizer, optimizer, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(variable.numpy().tolist()) == {60.0}
    assert optimizer.iterations.item() == 40


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupt_leaves_whole_weights() -> None:
    size = 4 * IN_BLOCK
    variable, optimizer = gt.Variable(np.zeros(size, np.float32)), SGD(1.0, 0.5)
    gradient = gt.constant(np.full(size, -1.0, np.float32))
    optimizer.apply_gradients([(gradient, variable)])

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    interrupted = 0
    gc.disable()
    try:
        for k in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, 2e-4 * (1 + k % 12))
                for _ in range(20):
                    optimizer.apply_gradients([(gradient, variable)])
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                interrupted += 1
            for held in (variable, optimizer.velocities[0]):
                values = held.numpy()
                assert (values == values[0]).all()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()
    assert interrupted
    optimizer.apply_gradients([(gradient, variable)])
