"""Wrong ``names_elsewhere`` of own classes: nothing is lost, and messages name class and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

pytestmark = pytest.mark.needs("weights")

ONES = np.ones(2, "float32")
IDENTITY = (lambda layer, x: x, lambda layer, x: x)


def module(names: Any) -> gt.Module:
    class Own(gt.Module):
        names_elsewhere: Any = names

        def __init__(self) -> None:
            super().__init__()
            self.left, self.right = gt.Variable(ONES), gt.Variable(2 * ONES)

    return Own()


@pytest.mark.parametrize(
    ("names", "place"),
    [
        ([("left", "weight")], ""),
        ({"pytorch": None}, "['pytorch']"),
        ({"pytorch": ["weight"]}, "['pytorch']"),
        ({"pytorch": {"left": "weight"}}, "['pytorch']['left']"),
        ({"pytorch": {"left": "ab"}}, "['pytorch']['left']"),
        ({"pytorch": {"left": ("weight", abs)}}, "['pytorch']['left']"),
        ({"pytorch": {"left": ("weight", (abs,))}}, "['pytorch']['left']"),
        ({"pytorch": {"left": ("weight", (0, 2))}}, "['pytorch']['left']"),
        ({"pytorch": {("left", "right"): None}}, "['pytorch'][('left', 'right')]"),
        ({"pytorch": {("left", "right"): (("ab",), None)}}, "['pytorch'][('left', 'right')]"),
        ({"pytorch": {("left", "right"): ("ab", IDENTITY)}}, "['pytorch'][('left', 'right')]"),
    ],
)
def test_a_wrong_form_is_refused_with_class_and_key(names: Any, place: str, tmp_path: Path) -> None:
    model = module(names)
    told = re.escape(f"Own.names_elsewhere{place} must be ")
    with pytest.raises(TypeError, match=told):
        model.load_weights({"left": ONES, "right": ONES})
    with pytest.raises(TypeError, match=told):
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")


@pytest.mark.parametrize(
    ("key", "theirs"), [("left", "weight"), (("left", "right"), ("weight",))], ids=["one", "both"]
)
def test_functions_that_raise_are_named(key: Any, theirs: Any, tmp_path: Path) -> None:
    def fails(layer: Any, x: Any) -> Any:
        raise AttributeError("no such thing")

    model = module({"pytorch": {key: (theirs, (fails, fails))}})
    told = "Own cannot convert .* in names_elsewhere raised AttributeError: no such thing"
    with pytest.raises(gt.saving.LoadError, match=told):
        model.load_weights({"weight": ONES}, strict=False)
    with pytest.raises(gt.saving.SaveError, match=told):
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")


@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_wrong_number_of_arrays_is_refused(count: int, tmp_path: Path) -> None:
    functions = (lambda layer, x: x, lambda layer, x: [ONES] * count)
    model = module({"pytorch": {("left", "right"): (("a", "b"), functions)}})
    with pytest.raises(gt.saving.SaveError, match=f"names 2 arrays .* returned {count}"):
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    assert not any(tmp_path.iterdir())


def test_a_key_that_names_no_attribute_is_told(tmp_path: Path) -> None:
    model = module({"pytorch": {("left", "rigth"): (("weight",), IDENTITY)}})
    told = r"Own.names_elsewhere.* does not apply to 'own', which has no attribute 'rigth'"
    with pytest.warns(UserWarning, match=told):
        model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    with pytest.raises(gt.saving.WeightsMismatch, match=told):
        model.load_weights({"weight": np.ones(4, "float32")}, layout="pytorch")


@pytest.mark.filterwarnings("error")
def test_keys_for_what_an_object_lacks_are_silent(tmp_path: Path) -> None:
    names = {
        ("left", "other"): (("weight",), IDENTITY),  # objects with a third variable
        ("left", "right"): (("a", "b"), IDENTITY),
        ("one", "two"): (("c", "d"), IDENTITY),
    }
    model = module({"pytorch": names})
    model.save_weights(tmp_path / "w.safetensors", layout="pytorch")
    assert model.load_weights(tmp_path / "w.safetensors").ok
