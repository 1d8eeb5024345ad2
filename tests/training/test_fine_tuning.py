"""Random programs that freeze, thaw, replace heads, train, save and load: frozen variables stay."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

L = gt.layers
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 5)).astype("float32")
CLASSES = 3
Y = RNG.integers(0, CLASSES, 12)


class Own(gt.Module):
    """A class of its own around a body and a head; a body from a file is called in inference."""

    def __init__(self, body: Any, infers: bool = False) -> None:
        super().__init__()
        self.body, self.out = body, L.Dense(CLASSES)
        self.infers = infers

    def __call__(self, x: Any, training: bool = False) -> Any:
        return self.out(self.body(x, training=training and not self.infers))


def layers() -> list[Any]:
    return [L.Dense(6, activation="relu"), L.BatchNorm(), L.Dense(4)]


def sequential(folder: Path) -> Any:
    return L.Sequential([*layers(), L.Dense(CLASSES)])


def own(folder: Path) -> Any:
    return Own(L.Sequential(layers()))


def loaded_sequential(folder: Path) -> Any:
    model = sequential(folder)
    model(X)
    gt.save(model, folder / "base.h5")
    return gt.load(folder / "base.h5")


def behind_features(folder: Path) -> Any:
    model = own(folder)
    model(X), model(X, training=True)
    gt.save(model, folder / "base.h5")
    loaded = gt.load(folder / "base.h5")
    return Own(gt.saving.features(loaded, before="out"), infers=True)


def behind_graph(folder: Path) -> Any:
    given = gt.Input((5,))
    x = given
    for layer in (*layers(), L.Dense(CLASSES)):
        x = layer(x)
    model = gt.Model(given, x)
    model(X, training=True), model(X)
    gt.save(model, folder / "base.h5")
    loaded = gt.load(folder / "base.h5")
    return Own(gt.saving.features(loaded, loaded.layers[-1]), infers=True)


MODELS: dict[str, Callable[[Path], Any]] = {
    "sequential": sequential,
    "own class": own,
    "loaded sequential": loaded_sequential,
    "behind features": behind_features,
    "behind a graph": behind_graph,
}
OPTIMIZERS = {
    "SGD": lambda: gt.training.SGD(0.05, momentum=0.9),
    "Adam": lambda: gt.training.Adam(0.02),
    "AdamW": lambda: gt.training.AdamW(0.02, weight_decay=0.1),
}


def with_head(model: Any, head: Any) -> None:
    if isinstance(model, L.Sequential):
        model.layers[-1] = head
    else:
        model.out = head


class Program:
    """A model, its optimizer, and one compiled step that serves all the time."""

    def __init__(self, model: Any, optimizer: Any) -> None:
        self.model, self.optimizer = model, optimizer
        self.compiled = gt.function(self.step)

    def step(self, x: Any, y: Any) -> Any:
        with gt.GradientTape() as tape:
            logits = self.model(x, training=True)
            loss = gt.mean(gt.training.sparse_categorical_crossentropy(y, logits))
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        return loss

    def fit(self, **how: Any) -> None:
        gt.training.fit(
            self.model,
            (X, Y),
            batch_size=6,
            epochs=2,
            optimizer=self.optimizer,
            verbose=False,
            seed=1,
            **how,
        )


TRAIN: list[Callable[[Program], Any]] = [
    lambda p: p.step(X, Y),
    lambda p: p.compiled(X, Y),
    lambda p: p.fit(compile=False),
    lambda p: p.fit(compile=True),
]


def frozen(model: Any) -> list[Any]:
    """Return the variables in frozen modules, statistics too, and all that were frozen alone."""
    found = [v for m in (model, *model.submodules) if not m.trainable for v in m.variables]
    found += [v for v in model.variables if not v.trainable and "moving" not in v.name]
    return [v for v in dict.fromkeys(found) if v.dtype.kind == "f"]


def train_and_check(program: Program, how: Callable[[Program], Any]) -> None:
    model = program.model
    weights = model.trainable_variables
    if not weights:
        with pytest.raises(ValueError, match="no trainable variables"):
            program.fit()
        return
    kept = {v: v.numpy().copy() for v in frozen(model)}
    before = [v.numpy().copy() for v in weights]
    how(program)
    for variable, value in kept.items():
        np.testing.assert_array_equal(variable.numpy(), value, err_msg=variable.name)
    assert any((a != v.numpy()).any() for a, v in zip(before, weights, strict=True))


def change(program: Program, draw: random.Random) -> None:
    """Freeze or thaw a part or a variable, replace the head, or set the learning rate."""
    model = program.model
    parts = [p for p, x in model.named_leaves() if isinstance(x, gt.Module)]
    action = draw.choice(["freeze", "freeze", "thaw", "variable", "head", "rate", "whole"])
    if action in ("freeze", "thaw"):
        with contextlib.suppress(ValueError):  # a frozen module holds it
            model.set_trainable(action == "thaw", draw.choice(parts))
    elif action == "variable":
        weights = [v for v in model.variables if "moving" not in v.name and v.dtype.kind == "f"]
        variable = draw.choice(weights)
        variable.trainable = not variable.trainable
    elif action == "head":
        with_head(model, L.Dense(CLASSES))
        model(X)
    elif action == "rate":
        program.optimizer.learning_rate = draw.choice([0.01, 0.001])
    else:
        model.trainable = draw.choice([True, True, False])


def loaded_equals_live(program: Program, path: Path) -> Any:
    model = program.model
    model(X), model(X, training=True)
    gt.save(model, path)
    assert gt.saving.verify(path).ok
    loaded = gt.load(path)
    np.testing.assert_array_equal(loaded(X).numpy(), model(X).numpy())
    assert [v.trainable for v in loaded.variables] == [v.trainable for v in model.variables]
    assert {id(v) for v in frozen(loaded)} == {
        id(loaded.named_variables[p])
        for p, v in model.named_variables.items()
        if any(v is x for x in frozen(model))
    }
    return loaded


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MODELS)
def test_frozen_variables_stay_bit_for_bit(kind: str, seed: int, tmp_path: Path) -> None:
    gt.random.set_seed(seed)
    draw = random.Random(f"{kind}{seed}")
    model = MODELS[kind](tmp_path)
    model(X)
    program = Program(model, OPTIMIZERS[draw.choice(list(OPTIMIZERS))]())
    for i in range(8):
        change(program, draw)
        train_and_check(program, draw.choice(TRAIN))
        if i % 4 == 3:
            loaded = loaded_equals_live(program, tmp_path / "tuned.h5")
            if kind.endswith("sequential"):  # others have no head to replace after they are loaded
                program = Program(
                    loaded, program.optimizer.from_config(program.optimizer.get_config())
                )


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_compiled_steps_follow_what_is_frozen(kind: str, name: str, tmp_path: Path) -> None:
    """The same program, compiled and eager, ends with the same weights."""
    ends = []
    for compiled in (False, True):
        gt.random.set_seed(5)
        model = MODELS[kind](tmp_path)
        model(X)
        program = Program(model, OPTIMIZERS[name]())
        run = program.compiled if compiled else program.step
        for freeze in (None, ("body*", "layers/[01]"), None):
            if freeze is None:
                model.trainable = True
            else:
                path = next(p for p, _ in model.named_leaves() if p in ("body", "layers/0"))
                model.set_trainable(False, path)
            for _ in range(3):
                run(X, Y)
            program.optimizer.learning_rate = 0.001
        ends.append([v.numpy() for v in model.variables])
    for eager, other in zip(*ends, strict=True):
        np.testing.assert_allclose(eager, other, rtol=1e-4, atol=1e-5)


def moments(program: Program) -> Any:
    return getattr(program.optimizer, program.optimizer.slots[0])


def test_an_optimizer_keeps_the_state_of_what_is_frozen_for_a_while() -> None:
    model = sequential(Path())
    model(X)
    program = Program(model, gt.training.Adam(0.01))
    program.step(X, Y)
    slots = [v.numpy().copy() for v in moments(program)[:2]]
    model.layers[0].trainable = False
    program.step(X, Y)
    program.compiled(X, Y)
    for before, slot in zip(slots, moments(program)[:2], strict=True):
        np.testing.assert_array_equal(before, slot.numpy())
    assert [int(x.item()) for x in program.optimizer.step_counts[:2]] == [1, 1]
    model.layers[0].trainable = True
    program.step(X, Y)
    assert (moments(program)[0].numpy() != slots[0]).any()
    assert int(program.optimizer.step_counts[0].item()) == 2


def test_an_optimizer_that_began_with_frozen_parts_trains_them_later() -> None:
    model = sequential(Path())
    model(X)
    model.layers[0].trainable = False
    program = Program(model, gt.training.Adam(0.01))
    program.compiled(X, Y)
    assert len(moments(program)) == 6
    model.layers[0].trainable = True
    before = model.layers[0].kernel.numpy().copy()
    program.compiled(X, Y)
    assert len(moments(program)) == 8
    # the first step of Adam has the size of the learning rate
    moved = np.abs(model.layers[0].kernel.numpy() - before)
    assert moved.max() == pytest.approx(0.01, rel=1e-3)
