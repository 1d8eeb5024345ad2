"""docs/format-classes.md against reality: keys, types, defaults and attributes of the classes."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

import gradtape as gt
from gradtape.core.extend import Module, Variable
from gradtape.layers import activations, initializers
from gradtape.training.clipping import CLIPPING

PAGE = (Path(__file__).parents[2] / "docs" / "format-classes.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("| class | keys of `config` |")[2].partition("\n\n")[0]
ROWS = {
    row[1].strip("` "): (row[2], row[3])
    for row in (line.split("|") for line in TABLE.splitlines()[2:])
}
CLASSES = {
    name: cls
    for name, cls in gt.registry().modules.items()
    if gt.registry().owner("module", name).ours
}
#: What must be given, and more that brings out attributes.
GIVEN: dict[str, dict[str, Any]] = {
    "layers.Activation": {"activation": "tanh"},
    "layers.Dense": {"units": 3},
    "layers.Dropout": {"rate": 0.5},
    "layers.Sequential": {"layers": [gt.layers.Flatten()]},
    "mixed_precision.LossScaleOptimizer": {"inner_optimizer": "sgd"},
    "training.RMSprop": {"centered": True, "momentum": 0.5},
    "training.SGD": {"momentum": 0.5},
}
TYPES = {"int": int, "float": float, "bool": bool, "rate": float, "str": str}


def keys(name: str) -> dict[str, tuple[str, str]]:
    """Return the type and the default of each key of a class, as the page has them."""
    found = re.findall(r"`(\w+): (\w+)(?: = ([^`]+))?`", ROWS[name][0])
    return {key: (kind, default) for key, kind, default in found}


def test_the_page_has_every_class_and_no_other() -> None:
    assert list(ROWS) == sorted(CLASSES)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_page_says_how_a_class_is_made(name: str) -> None:
    page, cls = keys(name), CLASSES[name]
    made = cls(**GIVEN.get(name, {}))
    config = made.get_config()
    assert sorted({*page, "name"}) == sorted(config)
    for key, (kind, default) in page.items():
        parameter = inspect.signature(cls).parameters[key]
        if default:
            assert json.loads(default) == parameter.default
        else:
            assert parameter.default is parameter.empty
        if kind in TYPES:
            allowed = (TYPES[kind], type(None)) if default == "null" else TYPES[kind]
            assert isinstance(config[key], allowed)
    plain = {key: json.loads(default) for key, (_, default) in page.items() if default}
    needed = {key: value for key, value in GIVEN.get(name, {}).items() if key not in plain}
    assert cls(**needed, **plain, name=made.name).get_config().keys() == config.keys()
    if issubclass(cls, gt.training.Optimizer) and name.startswith("training."):
        assert [cls(**{key: 1.0}).get_config()[key] for key in CLIPPING] == [1.0, 1.0, 1.0]
        assert all(f"`{key}`" in PAGE for key in CLIPPING)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_page_names_the_attributes_that_hold_state(name: str) -> None:
    made = CLASSES[name](**GIVEN.get(name, {}))
    if name.startswith("layers."):
        made(gt.ones((2, 4)))
    elif isinstance(made, gt.training.Optimizer):
        made.apply_gradients([(gt.constant([1.0]), gt.Variable([1.0]))])

    def held(value: Any) -> bool:
        return isinstance(value, (Variable, Module)) or (
            isinstance(value, (list, tuple)) and any(map(held, value))
        )

    own = {key for key, x in vars(made).items() if held(x)}
    listed = set(re.findall(r"`(\w+)`", ROWS[name][1]))
    assert own <= listed <= own | set(keys(name))  # keys say on what an attribute depends


def test_the_page_names_activations_and_initializers() -> None:
    listed = PAGE.partition("* **activation**")[2].partition("another op")[0]
    assert set(re.findall(r"`(\w+)`", listed)) - {"null"} == set(activations.NAMES)
    listed = PAGE.partition("* **initializer**")[2].partition("; or")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(initializers._CLASSES)
