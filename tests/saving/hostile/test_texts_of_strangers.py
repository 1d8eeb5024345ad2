"""What a loaded model says of itself steers no terminal, whatever its file called things."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forge import good
from rewriting import Draft, rewritten

import gradtape as gt

EVIL = "\x1b[31mX\u202ee\r\n\x07\ud800\x9b2J\x7f"
SHOWN = ("name", "class_name", "custom_gradient", "plugin", "distribution", "version")


def renamed(record: Any) -> Any:
    """Return JSON in which every text that is only shown is the evil one."""
    if type(record) is list:
        return [renamed(x) for x in record]
    if type(record) is not dict:
        return record
    return {
        key: EVIL if key in SHOWN and type(x) is str else renamed(x) for key, x in record.items()
    }


def hostile(draft: Draft) -> None:
    for place in draft.texts:
        record = renamed(draft.json(place))
        if place == "/manifest":
            for module in record["modules"]:
                module["name"] = "m"
                module["untraced"] = {"gone": EVIL, EVIL: EVIL}
                module["attributes"]["text"] = {"value": EVIL}
            for function in record["functions"]:
                function["sizes"] = "seen"
                for i, parameter in enumerate(function["parameters"]):
                    parameter["name"] = f"p{i}"
                    if "default" in parameter:
                        parameter["default"] = EVIL
        draft.put(record, place)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sound = good(tmp_path_factory.mktemp("texts") / "sound.h5")
    return rewritten(sound, hostile, sound.with_name("evil.h5"))


X = np.ones((2, 3), "float32")
WORDS: dict[str, Callable[[Any], Any]] = {
    "a module": repr,
    "a summary": lambda m: m.summary(),
    "a method that is not there": lambda m: m.gone,
    "an attribute that is not there": lambda m: m.nothing,
    "a call of a module that has none": lambda m: m(X),
    "an attribute that is fixed": lambda m: setattr(m, "parts", 3),
    "a variable that is fixed": lambda m: setattr(m, "w", 3),
    "a variable": lambda m: repr(m.w),
    "a value of another shape": lambda m: m.w.assign(np.ones(9)),
    "a function": lambda m: repr(m.cube),
    "a trace": lambda m: repr(m.cube.concrete_functions),
    "a graph": lambda m: str(m.cube.concrete_functions[0].graph),
    "a call without arguments": lambda m: m.project(),
    "a call with too many": lambda m: m.cube(X, 1, 2, 3),
    "a call by another name": lambda m: m.cube(other=X),
    "a call with a text": lambda m: m.cube("x"),
    "a call of another shape": lambda m: m.project(np.ones((2, 9), "float32")),
    "a call of another dtype": lambda m: m.project(np.ones((2, 2), bool)),
    "a copy": lambda m: repr(copy.deepcopy(m)) + repr(copy.deepcopy(m).cube),
    "a pickle": lambda m: repr(pickle.loads(pickle.dumps(m))) + repr(m.cube),
    "a step without a gradient": lambda m: gt.training.SGD(0.1).apply_gradients([(None, m.w)]),
    "a gradient of another shape": lambda m: gt.training.SGD(0.1).apply_gradients(
        [(gt.ones(9), m.w)]
    ),
}


@pytest.mark.parametrize("what", WORDS)
def test_a_model_of_a_stranger_says_nothing_that_steers_a_terminal(what: str, path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            said = str(WORDS[what](gt.load(path)))
        except Exception as error:
            said = str(error)
    for text in (said, *(str(warning.message) for warning in caught)):
        assert [line for line in text.split("\n") if not line.isprintable()] == []
    assert len(said) < 10_000


def test_such_a_model_is_saved_again_and_verified(path: Path, tmp_path: Path) -> None:
    gt.save(gt.load(path), tmp_path / "b.h5")
    for file in (path, tmp_path / "b.h5"):
        report = gt.saving.verify(file, max_memory=math.inf, max_seconds=math.inf)
        assert all(line.isprintable() for line in report.table().split("\n"))


def test_a_pickled_function_shows_no_name_of_a_stranger(path: Path) -> None:
    twin = pickle.loads(pickle.dumps(gt.load(path).project))
    assert repr(twin).isprintable()


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    def change(draft: Draft) -> None:
        manifest = draft.json()
        for record in (*manifest["functions"], *manifest["modules"]):
            record["class_name" if "class_name" in record else "name"] = "x" * 10**6
        draft.put(manifest)

    model = gt.load(rewritten(good(tmp_path / "a.h5"), change))
    assert len(repr(model)) + len(repr(model.cube)) < 3000
