"""A module keeps what is in it, and never longer than it is in it."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt

Pair = namedtuple("Pair", "first second")


class Part(gt.Module):
    """A module with nothing in it."""


class Holder:
    """An object that modules do not search."""


def in_open_modules(module: gt.Module) -> Iterator[gt.Variable]:
    """Give the variables that are reached without entering a frozen module."""
    waiting, met = [module], {id(module)}
    while waiting:
        found = waiting.pop()
        for _, leaf in found.own_leaves() if found.trainable else ():
            if isinstance(leaf, gt.Variable):
                yield leaf
            elif id(leaf) not in met:
                met.add(id(leaf))
                waiting.append(leaf)


def walked(module: gt.Module) -> tuple[Any, Any, Any, Any]:
    """Return what a new walk finds."""
    leaves = [leaf for _, leaf in module.named_leaves()]
    variables = tuple(x for x in leaves if isinstance(x, gt.Variable))
    opened = {id(v) for v in in_open_modules(module)}
    trainable = tuple(v for v in variables if v.trainable and id(v) in opened)
    return variables, trainable, tuple(x for x in leaves if isinstance(x, gt.Module)), variables


def answers(module: gt.Module) -> tuple[Any, Any, Any, Any]:
    """Return what the module answers."""
    named = tuple(module.named_variables.values())
    return module.variables, module.trainable_variables, module.submodules, named


def check(modules: list[gt.Module]) -> None:
    """Compare the answers of modules with new walks, by identity."""
    for module in modules:
        for mine, right in zip(answers(module), walked(module), strict=True):
            assert type(mine) is tuple
            assert list(map(id, mine)) == list(map(id, right))


class Mutator:
    """Changes random places of trees of modules that share parts."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.modules: list[Any] = [Part(f"part{i}") for i in range(5)]

    def pick(self, among: Any) -> Any:
        return among[int(self.random.integers(len(among)))]

    def name(self) -> str:
        return self.pick("abcdef")

    def value(self, depth: int = 0) -> Any:
        """Return a random value of an attribute or an item."""
        kinds = 9 if depth < 3 else 4
        kind = int(self.random.integers(kinds))
        if kind == 0:
            return gt.Variable(1.0, trainable=bool(self.random.integers(2)))
        if kind == 1:
            return self.pick(self.modules)  # shared, and in circles
        if kind == 2:
            return self.pick([None, 3, "text", (1, 2), np.ones(2), gt.constant(1.0), Holder()])
        if kind == 3:
            return self.pick(self.modules[0].variables or [None])
        items = [self.value(depth + 1) for _ in range(int(self.random.integers(4)))]
        keys = [self.pick([1, "1", "k", "z", 2.5]) for _ in items]
        if kind == 4:
            return items
        if kind == 5:
            return tuple(items)
        if kind == 6:
            return self.pick([dict, OrderedDict])(zip(keys, items, strict=True))
        if kind == 7:
            return defaultdict(list, zip(keys, items, strict=True))
        return Pair(self.value(depth + 1), items)

    def containers(self, module: gt.Module) -> list[Any]:
        found: list[Any] = []
        queue = [x for n, x in vars(module).items() if not n.startswith("_gradtape")]
        while queue and len(found) < 50:
            x = queue.pop()
            if isinstance(x, (list, tuple, dict)) and not any(x is y for y in found):
                found.append(x)
                queue += list(x.values()) if isinstance(x, dict) else list(x)
        return [x for x in found if not isinstance(x, tuple)]

    def change(self) -> None:
        module = self.pick(self.modules)
        kind = int(self.random.integers(10))
        if kind <= 2:
            setattr(module, self.name(), self.value())
        elif kind == 3:
            name = self.name()
            if name in vars(module):
                delattr(module, name)
        elif kind <= 6:
            for container in self.containers(module)[:1]:
                self.mutate(container)
        elif kind == 7:
            module.trainable = bool(self.random.integers(2))
        elif kind == 8:
            for variable in module.variables[:1]:
                variable.trainable = not variable.trainable
        elif self.random.integers(2):
            vars(module)[self.name() * 2 + str(len(vars(module)))] = self.value()
        else:  # often one that is there
            object.__setattr__(module, self.name(), self.value())

    def mutate(self, container: Any) -> None:
        kind = int(self.random.integers(4))
        if isinstance(container, dict):
            if kind == 0 and container:
                container.pop(self.pick(list(container)))
            elif kind == 1 and container:  # the same keys
                container[self.pick(list(container))] = self.value()
            else:
                container[self.pick(["k", "z", "new", 1])] = self.value()
        elif kind == 0 and container:
            container.pop(int(self.random.integers(len(container))))
        elif kind == 1 and container:  # the same length
            container[int(self.random.integers(len(container)))] = self.value()
        elif kind == 2:
            container.reverse()
        else:
            container.append(self.value())


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_those_of_a_new_walk_after_any_change(seed: int) -> None:
    mutator = Mutator(seed)
    for _ in range(60):
        for _ in range(int(mutator.random.integers(1, 4))):
            mutator.change()
        asked = [m for m in mutator.modules if mutator.random.integers(2)]
        check(asked)
    check(mutator.modules)


def test_a_second_answer_is_the_same_object() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2), gt.layers.BatchNorm()])
    model(gt.ones((2, 3)))
    model.layers[0].note = model.layers[0].shape = None
    for name in ("variables", "trainable_variables", "submodules"):
        assert getattr(model, name) is getattr(model, name)
    before = model.trainable_variables
    model(gt.ones((4, 3)), training=True)
    model.layers[0].note = 3.0
    model.layers[0].shape = (1, 2)
    assert model.trainable_variables is before


def test_attributes_that_are_replaced_directly() -> None:
    class Own(gt.Module):
        def __setattr__(self, name: str, value: Any) -> None:
            object.__setattr__(self, name, value)

    model, part = Part(), Own()
    model.part, part.w, part.later = part, gt.Variable(1.0), None
    check([model, part])
    part.w = gt.Variable(2.0)
    check([model, part])
    part.later = gt.Variable(3.0)  # in place of None
    check([model, part])
    vars(part)["w"] = [gt.Variable(4.0)]
    check([model, part])
    vars(model).update(part=Part())
    check([model, part])
    part.part = model
    vars(model)["other"] = vars(model).pop("part")
    check([model, part])


def test_weights_that_build_creates_are_found() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2)])
    assert (model.variables, model.weights) == ((), [])
    model(gt.ones((1, 3)))
    assert len(model.variables) == len(model.weights) == 2
    model.layers.append(gt.layers.Dense(4))
    assert len(model.submodules) == 2
    model(gt.ones((1, 3)))
    assert len(model.trainable_variables) == len(model.weights) == 4
    model.layers[0].kernel = gt.Variable(np.ones((3, 2), np.float32))
    assert model.variables[0] is model.weights[0] is model.layers[0].kernel


def test_freezing_a_part_shows_in_all_models_that_share_it() -> None:
    part, first, second = Part(), Part(), Part()
    part.w = gt.Variable(1.0)
    first.part, second.parts = part, [part]
    assert first.trainable_variables == second.trainable_variables == (part.w,)
    part.trainable = False
    assert first.trainable_variables == second.trainable_variables == ()
    first.trainable = True
    assert second.trainable_variables == (part.w,)


def test_a_property_whose_setter_changes_another_attribute() -> None:
    class Net(gt.Module):
        _weight: Any = None

        @property
        def weight(self) -> Any:
            return self._weight

        @weight.setter
        def weight(self, value: Any) -> None:
            vars(self)["_weight"] = value

    net = Net()
    for _ in range(3):
        net.weight = gt.Variable(1.0)
        assert net.variables == (net.weight,)


def test_a_module_that_says_what_is_in_it_is_asked_each_time() -> None:
    class Net(gt.Module):
        def own_leaves(self) -> Any:
            yield from hidden.items()

    hidden: dict[str, Any] = {}
    outer, net = Part(), Net()
    outer.net = net
    assert outer.variables == ()
    hidden["w"] = gt.Variable(1.0)
    assert outer.variables == net.trainable_variables == (hidden["w"],)


def test_variables_that_a_subclass_chooses() -> None:
    class Net(gt.Module):
        @property
        def variables(self) -> Any:
            return super().variables[:1]

    net = Net()
    net.a, net.b = gt.Variable(1.0), gt.Variable(2.0)
    assert net.trainable_variables == (net.a,)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_have_contents_of_their_own(copied: Any) -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2, name="first")])
    model(gt.ones((1, 3)))
    known = model.variables
    twin = copied(model)
    assert not any(a is b for a in twin.variables for b in known)
    twin.layers[0].extra = gt.Variable(1.0)
    assert (len(twin.variables), model.variables) == (3, known)
    shallow = copy.copy(model)
    shallow.other = gt.Variable(1.0)
    assert (len(shallow.variables), model.variables) == (3, known)
    bare = Part()
    vars(bare).update(vars(model))
    bare.layers = []
    assert (bare.variables, model.variables) == ((), known)


def test_a_replaced_part_is_not_kept_alive() -> None:
    outer, inner = Part(), Part()
    outer.inner = inner
    inner.w = gt.Variable(np.ones(3))
    gone = weakref.ref(inner.w)
    assert outer.variables
    assert inner.variables
    inner.w = gt.Variable(1.0)
    gc.collect()
    assert gone() is None
    buffer = outer.buffer = [np.ones(3)]
    assert len(outer.variables) == 1
    gone = weakref.ref(buffer[0])
    buffer.clear()
    assert gone() is None


def test_a_model_that_was_asked_is_freed_at_once() -> None:
    model = gt.layers.Sequential([gt.layers.Dense(2)])
    model(gt.ones((1, 3)))
    assert model.trainable_variables
    assert model.layers[0].submodules == ()
    assert model.weights
    gone = [weakref.ref(x) for x in (model, model.layers[0], model.variables[0])]
    gc.collect()
    gc.disable()
    try:
        del model
        assert [x() for x in gone] == [None] * 3
    finally:
        gc.enable()


def test_a_trace_notes_what_trains_although_the_contents_are_known() -> None:
    model = Part()
    model.w = gt.Variable(1.0)
    count = gt.function(lambda: gt.constant(len(model.trainable_variables)))
    assert (len(model.trainable_variables), count().item()) == (1, 1)
    model.w.trainable = False
    assert count().item() == 0


def test_threads_see_each_change_that_is_complete() -> None:
    root = Part()
    root.parts = [Part() for _ in range(5)]
    failures: list[Any] = []
    done = threading.Event()

    def ask() -> None:
        while not done.is_set():
            _ = root.variables

    def change(part: Any) -> None:
        for _ in range(300):
            part.w = gt.Variable(1.0)
            if not any(v is part.w for v in root.variables):
                failures.append(part)

    threads = [threading.Thread(target=change, args=(part,)) for part in root.parts]
    asking = threading.Thread(target=ask)
    for thread in (asking, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    asking.join()
    assert not failures
