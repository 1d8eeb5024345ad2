"""A checkpoint restores states exactly, or refuses to save them and names the path."""

from __future__ import annotations

import collections
import enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.layers import Dense, Sequential
from gradtape.saving import LoadError, SaveError
from gradtape.training import Checkpoint, fit

ONE = np.ones(1)
Pair = collections.namedtuple("Pair", "first second")
Kind = enum.Enum("Kind", ["ONLY"])


class Held:
    """An object with a state."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        self.state = state


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def exactly(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        keys = [(type(key), key) for key in a] == [(type(key), key) for key in b]
        return keys and all(exactly(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(exactly, a, b))
    if isinstance(a, (np.ndarray, gt.Tensor)):
        a, b = np.asarray(a), np.asarray(b)
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return repr(a) == repr(b)


@pytest.mark.parametrize(
    "state",
    [
        {0: ONE, 2: 1, -1: None},
        {"a/b": ONE, "a": {"b": ONE + 1}},
        {1: ONE, "1": ONE + 1, 1.5: 2},
        {True: ONE, "True": 1},
        {None: ONE, "None": ONE + 1},
        {(1, "a"): ONE, ((), None): [ONE]},
        {"": ONE, ".": ONE, "..": 1, "a.b": ONE, "/": ONE},
        {"\u00e9": ONE, "e\u0301": ONE + 1, "\0": 1, "\ud800": 2},
        {"z": 1, "a": 2, "m": ONE},
        {"dict": {"value": ONE}, "variable": 0},
        [np.float32(2.5), np.float16(0.1), np.bool_(True), np.int8(3), np.complex64(1 + 2j)],
        [np.array(3), np.zeros((0, 3)), np.asfortranarray([[1, 2], [3, 4]]), np.bool_([True])],
        [float("nan"), -0.0, float("inf"), complex("nan-infj"), 2**64 - 1, 0.1, True, 1, 1.0],
        [[], (), {}, [()], ({},), None, "", b"", b"\0a", set(), {1, 2}, frozenset("a")],
        [range(3), slice(1, None), np.dtype("float32"), gt.constant([1.0, 2.0])],
        nested(20),
        None,
        np.float32(1),
    ],
    ids=repr,
)
def test_a_state_comes_back_as_it_was(state: Any, tmp_path: Path) -> None:
    path = Checkpoint(held=Held(state)).save(tmp_path / "now.h5")
    found = Held("nothing")
    Checkpoint(held=found).restore(path)
    assert exactly(found.state, state)


def test_ordered_dictionaries_as_those_of_pytorch_come_back_as_equal_ones(tmp_path: Path) -> None:
    state = {"steps": collections.OrderedDict([("b", 1), ("a", ONE)])}
    path = Checkpoint(held=Held(state)).save(tmp_path / "now.h5")
    found = Held("nothing")
    Checkpoint(held=found).restore(path)
    assert found.state == state
    assert list(found.state["steps"]) == ["b", "a"]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Kind.ONLY, "(a Kind comes back as its value)"),
        (Pair(1, 2), "(a Pair comes back as a plain tuple)"),
        (Pair(1, ONE), "(a Pair comes back as a plain tuple)"),
        (collections.defaultdict(int, a=ONE), "(a defaultdict comes back as a plain dict)"),
        (collections.deque([1]), "(an object of class deque)"),
        (2**64, "(an integer of more than 64 bits)"),
        (np.longdouble(1), "(an object of class longdouble)"),
        (np.ma.masked_array([1, 2], [0, 1]), "(an array of class MaskedArray)"),
        (np.array(["a"]), "(an array of dtype <U1)"),
        (lambda: 1, "(the code of '<lambda>')"),
        ({np.int64(1): ONE}, "[np.int64(1)]: a key of type int64"),
        ({Kind.ONLY: ONE}, "a key of type Kind"),
        ({b"a": 1}, "[b'a']: a key of type bytes"),
        (Dense(1), ": a module in the state of another object"),
        (nested(2000), ": nested too deeply"),
        (nested(70), ": nested deeper than 64"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_would_come_back_otherwise_is_refused_by_its_path(
    value: Any, message: str, tmp_path: Path
) -> None:
    with pytest.raises(SaveError) as caught:
        Checkpoint(a={"held": Held({"x": [value]})}).save(tmp_path / "now.h5")
    assert str(caught.value).startswith("a/held")
    assert message in str(caught.value)
    assert not (tmp_path / "now.h5").exists()


def test_a_container_that_holds_itself_is_refused(tmp_path: Path) -> None:
    state: list[Any] = []
    state.append(state)
    with pytest.raises(SaveError, match="held"):
        Checkpoint(held=Held(state)).save(tmp_path / "now.h5")


def with_parts(**parts: Any) -> gt.Module:
    module = gt.Module("m")
    for name, value in parts.items():
        setattr(module, name, value)
    return module


def two() -> tuple[gt.Variable, gt.Variable]:
    return gt.Variable(1.0), gt.Variable(2.0)


@pytest.mark.parametrize("keys", [(1, "1"), (None, "None"), (True, "True"), (1.5, "1.5")])
def test_variables_of_one_path_are_refused(keys: Any, tmp_path: Path) -> None:
    model = with_parts(heads=dict(zip(keys, two(), strict=True)))
    where = f"model/heads/{keys[0]}: two objects have this path"
    with pytest.raises(SaveError, match=where):
        Checkpoint(model=model).save(tmp_path / "now.h5")
    path = Checkpoint(model=with_parts(w=1)).save(tmp_path / "other.h5")
    with pytest.raises(LoadError, match="two objects have the path model/heads"):
        Checkpoint(model=model).restore(path)


def test_variables_of_one_path_at_two_depths_are_refused(tmp_path: Path) -> None:
    a, b = two()
    for trackables in (
        {"model": with_parts(parts={"a/b": a, "a": {"b": b}})},
        {"model": {"parts/a": a, "parts": {"a": b}}},
        {"model": {1: with_parts(w=a), "1": with_parts(v=b)}},
        {"model": {1: Held(1), "1": Held(2)}},
        {"model": {"a": Held({"x": ONE}), "a/b": Held(2)}},
        {"model": with_parts(parts={"a": a, "a/b": b})},
    ):
        with pytest.raises(SaveError, match=r"model/.*(two objects have|already taken)"):
            Checkpoint(**trackables).save(tmp_path / "now.h5")


def test_names_of_variables_may_be_any_that_save_takes(tmp_path: Path) -> None:
    keys = ["", "a/b", "\u00e9", "e\u0301", "a" * 200, ".", "a b.", (1, 2), None, -1, 1.5]
    model = with_parts(parts={key: gt.Variable(float(i)) for i, key in enumerate(keys)})
    path = Checkpoint(model=model).save(tmp_path / "now.h5")
    for variable in model.variables:
        variable.assign(-1.0)
    report = Checkpoint(model=model).restore(path)
    assert not report.problems()
    assert [model.parts[key].item() for key in keys] == list(range(len(keys)))


def test_fit_refuses_what_it_could_not_save_before_the_first_epoch(tmp_path: Path) -> None:
    class Counting:
        epochs = 0

        def on_epoch_begin(self, epoch: int) -> None:
            self.epochs += 1

        def state_dict(self) -> Any:
            return {"seen": collections.deque([1])}

        def load_state_dict(self, state: Any) -> None:
            raise AssertionError

    callback = Counting()
    with pytest.raises(SaveError, match=r"fit.*\['seen'\] \(an object of class deque\)"):
        fit(
            Sequential([Dense(1)]),
            (np.ones((4, 2), "f4"), np.ones((4, 1), "f4")),
            loss="mse",
            verbose=0,
            callbacks=[callback],
            checkpoint=tmp_path / "run.h5",
        )
    assert not callback.epochs
