"""A compiled call equals the plain call, whatever has changed in the tree of modules meanwhile."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def run(part: Any, x: Any) -> Any:
    """Compute with a variable, a module, or a container of these."""
    if isinstance(part, (list, tuple, dict)):
        for item in part.values() if isinstance(part, dict) else part:
            x = run(item, x) * 1.25
        return x
    if part is None or isinstance(part, gt.Variable):
        return x if part is None else x + part
    return part(x)


class Tree(gt.Module):
    """Computes with all that is in its attributes."""

    def __init__(self, random: Any, depth: int) -> None:
        super().__init__()
        self.list = [made(random, depth - 1) for _ in range(random.integers(3))]
        self.dict = {key: made(random, depth - 1) for key in "abc"[: random.integers(4)]}
        self.nested = [[made(random, depth - 1)], {"x": (made(random, depth - 1),)}]
        self.one = made(random, depth - 1) if random.integers(2) else None
        self.kept = gt.function(self.compute)

    def compute(self, x: Any) -> Any:
        return run([self.one, self.nested, self.dict, self.list], x)

    def __call__(self, x: Any) -> Any:
        return self.compute(x)

    @gt.function
    def compiled(self, x: Any) -> Any:
        return self.compute(x)


def made(random: Any, depth: int) -> Any:
    kind, number = random.integers(6 if depth > 0 else 4), np.float32(random.uniform(0.5, 1.5))
    if kind == 0:
        return gt.Variable(number)
    if kind == 1:  # without variables
        return gt.layers.Lambda(lambda x: x * number)
    if kind <= 3:
        return gt.layers.Dense(3)
    if kind == 4:
        return Tree(random, depth)
    return gt.layers.Sequential([gt.layers.Dense(3), gt.layers.ReLU()])


def replaced(tree: Tree, name: str, value: Any) -> None:
    delattr(tree, name)
    setattr(tree, name, value)


CHANGES: list[Callable[[Any, Any, Any], Any]] = [
    lambda tree, new, i: tree.list.append(new),
    lambda tree, new, i: tree.list.insert(0, new),
    lambda tree, new, i: tree.list.__setitem__(slice(i, i + 1), [new, new]),
    lambda tree, new, i: tree.list.__delitem__(slice(i, None)),
    lambda tree, new, i: tree.list.reverse(),
    lambda tree, new, i: tree.dict.update({"abcd"[i]: new}),
    lambda tree, new, i: tree.dict.pop("abcd"[i], None),
    lambda tree, new, i: tree.dict.update({"a": tree.dict.pop("a", new)}),  # another order
    lambda tree, new, i: tree.nested[0].append(new),
    lambda tree, new, i: tree.nested[1].update(x=[new]),
    lambda tree, new, i: setattr(tree, "one", new),
    lambda tree, new, i: setattr(tree, "one", None),
    lambda tree, new, i: setattr(tree, "one", (new, [new])),
    lambda tree, new, i: replaced(tree, "one", new),
    lambda tree, new, i: setattr(tree, "list", tree.list[::-1]),
    lambda tree, new, i: setattr(tree, "dict", dict(reversed(tree.dict.items()))),
    lambda tree, new, i: setattr(tree, "dict", {"a": new} if i else {}),
    lambda tree, new, i: setattr(tree, "list", [new] * i),
    lambda tree, new, i: replaced(tree, "list", tree.dict.setdefault("d", [new])),  # shared
    lambda tree, new, i: setattr(tree, "trainable", bool(i % 2)),
]


def slope(model: Any) -> Callable[[Any], Any]:
    def of(x: Any) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.mean(model(x) ** 2)
        found = tape.gradient(loss, model.trainable_variables)
        return gt.sum(
            gt.stack([gt.constant(0.0), *(gt.sum(g * g) for g in found if g is not None)])
        )

    return of


PROGRAMS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "a module": lambda tree: (tree, gt.function(tree)),
    "a function": lambda tree: (tree, gt.function(lambda x: tree(x))),
    "a gradient": lambda tree: (slope(tree), gt.function(slope(tree))),
    "a method": lambda tree: (tree.compute, tree.compiled),
    "a method in an attribute": lambda tree: (tree.compute, tree.kept),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
@pytest.mark.parametrize("seed", range(2))
def test_a_compiled_call_equals_the_plain_one_after_any_change(
    program: Callable[[Any], tuple[Any, Any]], seed: int
) -> None:
    random = np.random.default_rng(seed)
    for _ in range(3):
        trees = [Tree(random, 2)]
        pairs = [program(trees[0])]
        for step in range(8):
            if step == 4:  # a copy has functions of its own
                trees.append(copy.deepcopy(trees[0]))
                pairs.append(program(trees[1]))
            for plain, compiled in pairs:
                expected = plain(X).numpy()
                np.testing.assert_allclose(compiled(X).numpy(), expected, rtol=1e-3, atol=1e-5)
            tree = trees[random.integers(len(trees))]
            among = [tree, *(x for x in tree.submodules if isinstance(x, Tree))]
            change = CHANGES[random.integers(len(CHANGES))]
            change(among[random.integers(len(among))], made(random, 1), int(random.integers(4)))


class Node(gt.Module):
    """A module that knows the one around it."""

    def __init__(self, inside: Any) -> None:
        super().__init__()
        self.inside = inside
        inside.around = self

    @gt.function
    def __call__(self, x: Any) -> Any:
        return self.inside(x)


def test_modules_that_hold_each_other_are_compared() -> None:
    layer = gt.layers.Sequential([gt.layers.Dense(3)])
    node = Node(layer)
    node(X)
    layer.layers[0] = gt.layers.Dense(3)
    np.testing.assert_allclose(node(X).numpy(), layer(X).numpy(), rtol=1e-6)


def test_what_holds_no_variables_is_not_compared() -> None:
    traced: list[int] = []
    model = gt.layers.Sequential([gt.layers.Dense(3)])
    model.later = [None]
    model.shapes = [1]

    @gt.function
    def call(x: Any) -> Any:
        traced.append(1)
        for layer in filter(None, model.later):
            x = layer(x)
        return model(x)

    for i in range(3):
        call(X)
        model.shapes = [i]
        model.shapes.append(i)
        gt.layers.Sequential([gt.layers.Dense(2)])(X)
    assert len(traced) == 1
    model.later[0] = gt.layers.Dense(3)
    np.testing.assert_allclose(call(X).numpy(), model(model.later[0](X)).numpy(), rtol=1e-6)


def test_the_places_of_layers_among_plain_values_count() -> None:
    class Indexed(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.steps: list[Any] = [gt.layers.Dense(3), None, gt.layers.Dense(3)]

        def __call__(self, x: Any) -> Any:
            first = self.steps[0]
            return x if first is None else first(x)

    model = Indexed()
    call = gt.function(lambda x: model(x))
    call(X)
    for change in (
        lambda steps: steps.insert(0, None),
        lambda steps: steps.reverse(),
        lambda steps: steps.append(7),
    ):
        change(model.steps)
        np.testing.assert_allclose(call(X).numpy(), gt.constant(model(X)).numpy(), rtol=1e-6)
