"""A compiled function does what its Python code does with what is frozen or thawed now."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import map_structure

X = np.array([[1.0, 2.0], [3.0, 5.0]], np.float32)


class Parts:
    """A network, a layer that normalises, and a counter."""

    def __init__(self) -> None:
        self.model = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.Dense(2)])
        self.norm = gt.layers.BatchNorm(center=False, scale=False)
        self.model(X)
        self.norm(X)
        self.count = gt.Variable(0.0, trainable=False)

    @property
    def variable(self) -> gt.Variable:
        """One of the network's variables."""
        return self.model.layers[0].kernel


def gradient(parts: Parts, x: Any) -> Any:
    with gt.GradientTape() as tape:
        loss = gt.sum(gt.matmul(x, parts.variable))
    found = tape.gradient(loss, parts.variable)
    return None if found is None else gt.ones_like(found)


def gradients(parts: Parts, x: Any) -> Any:
    with gt.GradientTape() as tape:
        loss = gt.sum(parts.model(x))
    return [gt.ones_like(g) for g in tape.gradient(loss, parts.model.trainable_variables)]


def number(parts: Parts, x: Any) -> Any:
    return len(parts.model.trainable_variables)


def flags(parts: Parts, x: Any) -> Any:
    return [v.trainable for v in parts.model.variables], parts.norm.trainable


def assignments(parts: Parts, x: Any) -> Any:
    parts.count.assign(0.0)
    for _ in parts.model.trainable_variables:
        parts.count.assign_add(1.0)
    return parts.count * 1.0


def normalised(parts: Parts, x: Any) -> Any:
    return parts.norm(x, training=True) > 0


def in_branches(parts: Parts, x: Any) -> Any:
    def there() -> Any:
        with gt.GradientTape() as tape:
            loss = gt.sum(gt.matmul(x, parts.variable))
        found = tape.gradient(loss, parts.variable, unconnected_gradients="zero")
        return gt.sum(gt.abs(found))

    return gt.cond(gt.sum(x) > 0, there, lambda: gt.constant(0.0)) > 0


FREEZING: dict[str, Callable[[Parts, bool], None]] = {
    "a variable": lambda parts, value: setattr(parts.variable, "trainable", value),
    "a layer": lambda parts, value: setattr(parts.model.layers[0], "trainable", value),
    "a model": lambda parts, value: setattr(parts.model, "trainable", value),
    "a layer without weights to train": lambda parts, value: setattr(
        parts.norm, "trainable", value
    ),
}
PROGRAMS = [gradient, gradients, number, flags, assignments, normalised, in_branches]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("what", FREEZING)
@pytest.mark.parametrize("first", [True, False])
def test_freezing_and_thawing_do_what_they_do_eagerly(
    what: str, program: Callable[..., Any], first: bool
) -> None:
    told = []
    for traced in (False, True):
        parts = Parts()

        def call(x: Any, parts: Parts = parts) -> Any:
            return program(parts, x)

        run = gt.function(call) if traced else call
        found = []
        for value in (first, not first, first, not first, first):
            FREEZING[what](parts, value)
            found.append(map_structure(lambda x: getattr(x, "tolist", lambda: x)(), run(X)))
        told.append(found)
    assert told[1] == told[0]


def test_parts_that_are_frozen_and_train_are_noted_each() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.Dense(2)])
    model(X)

    def close(layer: Any) -> None:
        layer.trainable = False
        for variable in layer.variables:
            variable.trainable = True

    count = gt.function(lambda x: x * len(model.trainable_variables))
    steps: list[Callable[[], None]] = [
        lambda: None,
        *(lambda x=x: close(x) for x in model.layers),
        *(lambda x=x: setattr(x, "trainable", True) for x in reversed(model.layers)),
        *(lambda x=x: close(x) for x in model.layers),
    ]
    for step, left in zip(steps, (4, 2, 0, 2, 4, 2, 0), strict=True):
        step()
        assert len(model.trainable_variables) == left
        assert count(gt.constant(1.0)).item() == left


def test_a_function_that_asks_nothing_is_not_traced_again() -> None:
    parts = Parts()
    predict = gt.function(lambda x: parts.model(x))
    for value in (True, False, True):
        parts.model.trainable = value
        predict(gt.constant(X))
    assert len(predict.concrete_functions) == 1


@pytest.mark.parametrize(
    ("source", "draw"),
    [("np.random", lambda: np.random.rand()), ("random", lambda: random.random())],  # noqa: NPY002
)
def test_numbers_drawn_by_others_while_tracing_are_told(source: str, draw: Any) -> None:
    noisy = gt.function(lambda x: x + draw())
    with pytest.warns(UserWarning, match=f"drew numbers from {source} while it was traced") as told:
        noisy(gt.constant(1.0))
    noisy(gt.constant([1.0]))
    assert len(told) == 1
    assert told[0].filename == __file__


def test_numbers_that_another_thread_may_have_drawn_are_told_as_such() -> None:
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        with pytest.warns(UserWarning, match="while it was traced .or another thread did.; they"):
            gt.function(lambda x: x + np.random.rand())(gt.constant(1.0))  # noqa: NPY002
    finally:
        ended.set()
        thread.join()


def test_own_random_numbers_are_not_told(recwarn: Any) -> None:
    noisy = gt.function(lambda x: x + gt.random.normal(()))
    assert noisy(gt.constant(1.0)).item() != noisy(gt.constant(1.0)).item()
    assert not recwarn.list


class Replaceable(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = gt.layers.Dense(1, kernel_initializer="ones")
        self.scale = gt.Variable(2.0)
        self.traces: list[int] = []

    @gt.function
    def __call__(self, x: Any) -> Any:
        self.traces.append(1)
        return self.layer(x) * self.scale


def test_traces_see_replaced_variables_and_layers() -> None:
    module, other, x = Replaceable(), Replaceable(), gt.ones((1, 2))
    around = gt.function(lambda x: module(x) + 1.0)
    assert (module(x).item(), other(x).item(), around(x).item()) == (4.0, 4.0, 5.0)
    module.scale = gt.Variable(10.0)
    assert (module(x).item(), other(x).item(), around(x).item()) == (20.0, 4.0, 21.0)
    module.layer = gt.layers.Dense(1, kernel_initializer="zeros")
    assert (module(x).item(), other(x).item(), around(x).item()) == (0.0, 4.0, 1.0)
    traced = len(module.traces)
    assert (module(x).item(), around(x).item()) == (0.0, 1.0)
    assert (len(module.traces), len(other.traces)) == (traced, 1)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "an item of a list": lambda net, new: net.layers.__setitem__(-1, new),
    "the last layer": lambda net, new: (net.pop(), net.add(new)),
    "a layer more": lambda net, new: net.add(new),
    "a layer less": lambda net, new: net.pop(),
    "another order": lambda net, new: net.layers.reverse(),
    "another list": lambda net, new: setattr(net, "layers", [*net.layers[:-1], new]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
@pytest.mark.parametrize("inner", [False, True])
def test_traces_see_what_lists_of_layers_hold(
    change: Callable[[Any, Any], Any], inner: bool
) -> None:
    net = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.Dense(2)])
    whole = gt.layers.Sequential([net, gt.layers.Activation("tanh")]) if inner else net
    run = gt.function(lambda x: whole(x))
    run(X)
    change(net, gt.layers.Dense(2))
    np.testing.assert_allclose(run(X).numpy(), whole(X).numpy(), rtol=1e-6)


class Kept(gt.Module):
    """A module with parts in a dictionary, an empty list, and lists of plain values."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, Any] = {"out": gt.layers.Dense(2, kernel_initializer="ones")}
        self.weights = [gt.Variable(1.0)]
        self.later: list[Any] = []
        self.seen: list[Any] = []
        self.traces = 0

    @gt.function
    def __call__(self, x: Any) -> Any:
        self.traces += 1
        x = self.parts["out"](x) * self.weights[0]
        for layer in self.later:
            x = layer(x)
        return x


def test_traces_see_what_containers_hold_and_pass_over_plain_values() -> None:
    module, x = Kept(), gt.ones((1, 2))
    assert gt.sum(module(x)).item() == 4.0
    module.parts["out"] = gt.layers.Dense(2, kernel_initializer="zeros")
    assert gt.sum(module(x)).item() == 0.0
    module.parts["out"] = gt.layers.Dense(2, kernel_initializer="ones")
    module.weights[0] = gt.Variable(3.0)
    assert gt.sum(module(x)).item() == 12.0
    traced = module.traces
    for i in range(3):
        module.seen.append(i)
        assert gt.sum(module(x)).item() == 12.0
    assert module.traces == traced
    module.later.append(gt.layers.Dense(1, kernel_initializer="ones"))
    assert module(x).numpy().tolist() == [[12.0]]
    assert gt.sum(module(x)).item() == 12.0
    assert module.traces == traced + 1
