"""A checkpoint puts the state of objects back: all of it, by name, or nothing with the reason."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import BatchNorm, Dense, Dropout, Sequential
from gradtape.saving import DamagedFile, LoadError, SaveError
from gradtape.training import SGD, Adam, Checkpoint, Optimizer


class Counter:
    """An object whose state is of arrays and plain values, in containers."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "n": 1,
            "best": float("inf"),
            "seen": [np.arange(3), {"last": (np.float32([2.5]), None)}],
            "names": ["a", "b"],
            "empty": {},
        }

    def state_dict(self) -> dict[str, Any]:
        return self.state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.state = state

    def change(self) -> None:
        self.state = {"n": 2}


def model_of(seed: int = 0) -> Sequential:
    gt.random.set_seed(seed)
    model = Sequential([Dense(4, "relu"), BatchNorm(), Dropout(0.5), Dense(2)])
    model(gt.ones((1, 3)))
    return model


def bits(module: gt.Module) -> dict[str, bytes]:
    return {name: x.numpy().tobytes() for name, x in module.named_variables.items()}


def step(optimizer: Optimizer, *variables: gt.Variable) -> None:
    optimizer.apply_gradients([(gt.ones(v.shape) * (i + 1.0), v) for i, v in enumerate(variables)])


# -- what can be kept ------------------------------------------------------------------------------


def drawn(value: Any) -> Any:
    """Return what an object gives next, or holds."""
    if isinstance(value, np.random.BitGenerator):
        value = np.random.Generator(value)
    if isinstance(value, (np.random.Generator, np.random.RandomState)) or value is np.random:
        return value.normal(size=3).tolist(), np.asarray(value.bytes(5)).tolist()
    if value is gt.random or isinstance(value, gt.random.Generator):
        return value.normal(3).tolist()
    if value is random or isinstance(value, random.Random):
        return value.random(), value.gauss(0, 1)
    if isinstance(value, gt.Module):
        return bits(value)
    if isinstance(value, Counter):
        return repr(value.state)
    return value.numpy().tolist()


def changed(value: Any) -> None:
    """Change the state of an object."""
    for leaf in value.variables if isinstance(value, gt.Module) else (value,):
        if isinstance(leaf, gt.Variable):
            leaf.assign(leaf.value * 2 + 1)
        elif isinstance(leaf, Counter):
            leaf.change()
        else:
            drawn(leaf)


@pytest.mark.parametrize(
    "value",
    [
        gt.Variable([1.0, 2.0]),
        gt.Variable(3, dtype="int64"),
        gt.Variable(1 + 2j),
        model_of(),
        gt.random.Generator(3),
        gt.random,
        *(np.random.Generator(getattr(np.random, x)(1)) for x in ("PCG64", "MT19937", "Philox")),
        np.random.SFC64(2),
        np.random.RandomState(4),
        np.random,
        random.Random(5),
        random,
        Counter(),
        [gt.Variable(1.0), {"inner": gt.Variable(2.0)}],
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_the_state_of_an_object_comes_back(value: Any, tmp_path: Path) -> None:
    def now() -> Any:
        return [x.item() for x in (value[0], value[1]["inner"])] if is_list else drawn(value)

    is_list = isinstance(value, list)
    checkpoint = Checkpoint(thing=value)
    path = checkpoint.save(tmp_path / "now.h5")
    before = now()
    for item in (value[0], value[1]["inner"]) if is_list else (value,):
        changed(item)
    assert now() != before
    report = checkpoint.restore(path)
    assert now() == before
    assert not report.problems()
    assert all(name.startswith("thing") for name in report.restored)


def test_a_generator_that_has_half_a_draw_in_store_keeps_it(tmp_path: Path) -> None:
    bits_of = np.random.default_rng(0)
    bits_of.integers(10, dtype=np.uint32)
    checkpoint = Checkpoint(rng=bits_of)
    path = checkpoint.save(tmp_path / "now.h5")
    expected = bits_of.integers(2**31, size=5, dtype=np.uint32).tolist()
    checkpoint.restore(path)
    assert bits_of.integers(2**31, size=5, dtype=np.uint32).tolist() == expected


def test_plain_values_are_attributes_of_the_checkpoint(tmp_path: Path) -> None:
    checkpoint = Checkpoint(step=3, note="first", sizes=[1, 2.5, None])
    path = checkpoint.save(tmp_path / "now.h5")
    checkpoint.step += 1
    checkpoint.note, checkpoint.sizes = "second", []
    checkpoint.restore(path)
    assert (checkpoint.step, checkpoint.note, checkpoint.sizes) == (3, "first", [1, 2.5, None])
    with pytest.raises(AttributeError, match="the checkpoint has no 'steps', but step, note"):
        _ = checkpoint.steps


@pytest.mark.parametrize(
    ("trackables", "message"),
    [
        ({"f": lambda: 1}, "f is function, whose state cannot be stored"),
        ({"x": np.ones(3)}, "x is ndarray, whose state cannot be stored"),
        ({"x": {1: np.ones(3)}}, "x is dict, whose state"),
        ({"x": bytearray(2)}, "x is bytearray, whose state"),
        (
            {"x": [gt.Variable(1.0), 3]},
            "x holds plain values and objects whose state is stored separately",
        ),
        ({"save": 1}, "'save' cannot be a name in a file"),
        ({"variables": 1}, "'variables' cannot be a name in a file"),
        ({"_x": 1}, "'_x' cannot be a name in a file"),
        ({"é": 1}, "'é' cannot be a name in a file"),
    ],
)
def test_what_cannot_be_kept_is_refused_at_once(trackables: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Checkpoint(**trackables)


# -- optimizers ------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: Adam(0.1), lambda: SGD(0.1, 0.9), lambda: SGD(0.1)])
def test_an_optimizers_state_goes_by_the_variables_path(make: Any, tmp_path: Path) -> None:
    def built(order: str) -> tuple[dict[str, gt.Variable], Optimizer, Checkpoint]:
        held = {name: gt.Variable([1.0, 2.0], name="weight") for name in order}
        optimizer = make()
        return held, optimizer, Checkpoint(optimizer=optimizer, **held)

    first, optimizer, checkpoint = built("ab")
    step(optimizer, first["a"], first["b"])
    path = checkpoint.save(tmp_path / "now.h5")
    step(optimizer, first["a"], first["b"])

    for steps in (0, 2):  # into an optimizer that is new, and into one that has a state
        second, its, other = built("ba")
        for _ in range(steps):
            step(its, second["b"], second["a"])
        other.restore(path)
        # variables in another order, with the gradients of before
        its.apply_gradients([(gt.ones(2) * 2.0, second["b"]), (gt.ones(2), second["a"])])
        for name in "ab":
            assert second[name].tolist() == first[name].tolist()
        assert its.iterations.item() == 2


def test_an_optimizer_goes_back_to_before_its_first_step(tmp_path: Path) -> None:
    w, optimizer = gt.Variable([1.0, 2.0]), Adam(0.1)
    checkpoint = Checkpoint(w=w, optimizer=optimizer)
    path = checkpoint.save(tmp_path / "start.h5")
    step(optimizer, w)
    once = w.tolist()
    step(optimizer, w)
    checkpoint.restore(path)
    assert w.tolist() == [1.0, 2.0]
    step(optimizer, w)
    assert w.tolist() == once


def test_optimizers_inside_of_a_model_are_found(tmp_path: Path) -> None:
    def build() -> gt.Module:
        pair = gt.Module()
        pair.one, pair.two = gt.Variable([1.0]), gt.Variable([2.0])
        pair.optimizers = [Adam(0.1), SGD(0.1, 0.9)]
        return pair

    pair = build()
    step(pair.optimizers[0], pair.one)
    step(pair.optimizers[1], pair.two)
    path = Checkpoint(pair=pair).save(tmp_path / "now.h5")
    other = build()
    report = Checkpoint(pair=other).restore(path)
    assert "pair/optimizers/1/velocities/pair/two" in report.restored
    for model in (pair, other):
        step(model.optimizers[0], model.one)
        step(model.optimizers[1], model.two)
    assert bits(pair) == bits(other)


def test_a_state_for_a_variable_that_is_not_there_is_refused(tmp_path: Path) -> None:
    model, optimizer = model_of(), Adam()
    step(optimizer, *model.trainable_variables)
    with pytest.raises(
        SaveError, match=r"optimizer: it trains variable 'kernel' of shape \(3, 4\)"
    ):
        Checkpoint(optimizer=optimizer).save(tmp_path / "now.h5")
    assert not list(tmp_path.iterdir())


# -- what does not fit -----------------------------------------------------------------------------


def test_what_does_not_fit_is_named_and_nothing_changes(tmp_path: Path) -> None:
    stored = Checkpoint(a=gt.Variable([1.0]), b=gt.Variable([1.0]), c=model_of(), old=1)
    path = stored.save(tmp_path / "now.h5")
    a, b, new, c = gt.Variable([5.0]), gt.Variable([5.0, 6.0]), gt.Variable(5.0), model_of(1)
    del c.layers[3]
    checkpoint = Checkpoint(a=a, b=b, c=c, new=new)
    before = bits(c)
    with pytest.raises(LoadError) as caught:
        checkpoint.restore(path)
    for part in (
        "nothing was restored",
        "missing in the file: new;",
        "unexpected in the file: c/layers/3/kernel, c/layers/3/bias;",
        r"b (in the file float32[1], here float32[2])",
    ):
        assert part in str(caught.value)
    assert (a.tolist(), b.tolist(), new.item(), bits(c)) == ([5.0], [5.0, 6.0], 5.0, before)
    report = checkpoint.restore(path, strict=False)
    assert a.tolist() == [1.0]
    assert b.tolist() == [5.0, 6.0]
    assert bits(c) != before
    assert report.missing == ("new",)
    assert report.unused == ("old",)
    assert set(report.mismatched) == {"b"}
    assert "not asked for: old" in str(report)


def test_what_does_not_fit_of_an_optimizer_stays_as_it_is(tmp_path: Path) -> None:
    w, other = gt.Variable([1.0, 2.0]), gt.Variable([[1.0]])
    optimizer = Adam(0.1)
    step(optimizer, w, other)
    state = bits(optimizer)
    without = Checkpoint(w=w).save(tmp_path / "without.h5")
    checkpoint = Checkpoint(w=w, other=other, optimizer=optimizer)
    checkpoint.restore(without, strict=False)
    assert bits(optimizer) == state
    reshaped = gt.Variable([1.0])
    its = Adam(0.1)
    step(its, w, reshaped)
    path = Checkpoint(w=w, other=reshaped, optimizer=its).save(tmp_path / "other.h5")
    report = checkpoint.restore(path, strict=False)
    names = [f"optimizer/{slot}/other" for slot in ("first_moments", "second_moments")]
    assert sorted(report.mismatched) == [*names, "other"]
    assert bits(optimizer)["first_moments/1"] == state["first_moments/1"]
    assert bits(optimizer)["first_moments/0"] == bits(its)["first_moments/0"]


def test_half_of_an_optimizers_state_is_refused(tmp_path: Path) -> None:
    w, optimizer = gt.Variable([1.0, 2.0]), Adam(0.1)
    checkpoint = Checkpoint(w=w, optimizer=optimizer)
    step(optimizer, w)
    momentum = SGD(0.1, 0.9)
    step(momentum, w)
    path = Checkpoint(w=w, optimizer=momentum).save(tmp_path / "sgd.h5")
    with pytest.raises(LoadError, match="unexpected in the file: optimizer/velocities/w"):
        checkpoint.restore(path)


def test_a_part_of_a_file_may_be_asked_for(tmp_path: Path) -> None:
    model, other = model_of(0), model_of(1)
    path = Checkpoint(model=model, optimizer=Adam(), step=3).save(tmp_path / "now.h5")
    report = Checkpoint(model=other).restore(path)
    assert bits(model) == bits(other)
    assert report.unused == ("optimizer", "step")


def test_an_object_that_refuses_its_state_leaves_all_as_it_was(tmp_path: Path) -> None:
    class Refusing(Counter):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            if state["n"] == 1:
                raise ValueError("not mine")

    w, rng, counter, refusing = gt.Variable(1.0), np.random.default_rng(0), Counter(), Refusing()
    checkpoint = Checkpoint(w=w, rng=rng, counter=counter, refusing=refusing)
    path = checkpoint.save(tmp_path / "now.h5")
    changed(w), changed(rng), changed(counter), changed(refusing)
    before = (w.item(), rng.bit_generator.state, repr(counter.state))
    with pytest.raises(LoadError, match=r"refusing: it refuses its state .not mine."):
        checkpoint.restore(path)
    assert (w.item(), rng.bit_generator.state, repr(counter.state)) == before


def test_the_state_of_another_kind_of_generator_is_refused(tmp_path: Path) -> None:
    path = Checkpoint(rng=np.random.default_rng(0)).save(tmp_path / "now.h5")
    other = np.random.Generator(np.random.Philox(0))
    with pytest.raises(LoadError, match=r"rng: it refuses its state .* another generator"):
        Checkpoint(rng=other).restore(path)


def test_a_model_without_weights_is_neither_saved_nor_restored(tmp_path: Path) -> None:
    empty = Sequential([Dense(4), Dense(2)])
    with pytest.raises(SaveError, match="model has no weights yet; call the model"):
        Checkpoint(model=empty).save(tmp_path / "empty.h5")
    path = Checkpoint(model=model_of()).save(tmp_path / "now.h5")
    with pytest.raises(LoadError, match="model has no weights yet: call the model"):
        Checkpoint(model=empty).restore(path)


def test_other_files_are_refused(tmp_path: Path) -> None:
    model = model_of()
    checkpoint = Checkpoint(model=model)
    gt.save(model, tmp_path / "model.h5")
    with pytest.raises(LoadError, match=r"not a checkpoint; gradtape.load loads"):
        checkpoint.restore(tmp_path / "model.h5")
    with pytest.raises(LoadError, match="no such file"):
        checkpoint.restore(tmp_path / "none.h5")
    path = Path(checkpoint.save(tmp_path / "now.h5"))
    before = bits(model)
    data = bytearray(path.read_bytes())
    place = data.find(model.layers[0].kernel.numpy().tobytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match="model/layers/0/kernel"):
        checkpoint.restore(path)
    assert bits(model) == before


def test_a_checkpoint_is_a_file_like_any(tmp_path: Path) -> None:
    model, optimizer = model_of(), Adam(0.1)
    step(optimizer, *model.trainable_variables)
    path = Checkpoint(model=model, optimizer=optimizer, step=3).save(tmp_path / "now.h5")
    loaded = gt.load(path)
    held = {f"model/{name}": x.tolist() for name, x in model.named_variables.items()}
    found = {name: x.tolist() for name, x in loaded.named_variables.items()}
    assert found.items() >= held.items()
    assert loaded.step == 3
    assert "optimizer/first_moments/model/layers/3/kernel" in gt.saving.inspect_text(path)


def test_names_are_those_under_which_users_find_them() -> None:
    for name in ("Checkpoint", "CheckpointManager", "RestoreReport"):
        assert getattr(gt.training, name).__module__ == "gradtape.training"
        assert name in dir(gt.training)
    with pytest.raises(AttributeError, match=r"did you mean gt.training.Checkpoint\?"):
        _ = gt.training.Checkpiont
