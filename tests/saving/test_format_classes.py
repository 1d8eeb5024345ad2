"""docs/format-classes.md against reality: keys, types, defaults and attributes of the classes."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from layer_cases import FAMILIES

import gradtape as gt
from gradtape.core.extend import Module, Variable
from gradtape.layers import activations, initializers
from gradtape.training.optimizers.options import OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "format-classes.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("| class | keys of `config` |")[2].partition("\n\n")[0]
ROWS = {
    name.strip("` "): (row[2], row[3])
    for row in (line.split("|") for line in TABLE.splitlines()[2:])
    for name in row[1].split(",")  # the classes of a family share a row
}
CLASSES = {
    name: cls
    for name, cls in gt.registry().modules.items()
    if gt.registry().owner("module", name).distribution == "gradtape"
}
_DROPS = {"dropout": 0.5, "recurrent_dropout": 0.5}
#: What must be given, and more that brings out attributes.
GIVEN: dict[str, dict[str, Any]] = {
    "layers.AdditiveAttention": {"dropout": 0.5},
    "layers.Attention": {"dropout": 0.5},
    "layers.Bidirectional": {"layer": gt.layers.GRU(2)},
    "layers.GRU": {"units": 3, "stateful": True},
    "layers.GRUCell": {"units": 3, **_DROPS},
    "layers.LSTM": {"units": 3, "stateful": True},
    "layers.LSTMCell": {"units": 3, **_DROPS},
    "layers.MultiHeadAttention": {"num_heads": 2, "key_dim": 3, "dropout": 0.5},
    "layers.RNN": {"cell": gt.layers.GRUCell(3), "stateful": True},
    "layers.Sequential": {"layers": [gt.layers.Flatten()]},
    "layers.SimpleRNN": {"units": 3, "stateful": True},
    "layers.SimpleRNNCell": {"units": 3, **_DROPS},
    "layers.StackedRNNCells": {"cells": [gt.layers.GRUCell(3)]},
    "layers.TimeDistributed": {"layer": gt.layers.Dense(2)},
    "mixed_precision.LossScaleOptimizer": {"inner_optimizer": "sgd"},
    "training.LBFGS": {"history_size": 1},
    "training.RMSprop": {"centered": True, "momentum": 0.5},
    "training.SGD": {"momentum": 0.5},
    "training.metrics.IoU": {"target_class_ids": [0]},
    "training.schedules.OneCycle": {"total_steps": 10},
    "training.schedules.PiecewiseConstantDecay": {"boundaries": [10], "values": [1.0, 0.5]},
}
#: By parameter, what a family's classes need.
NEEDED = {
    "decay_rate": 0.5, "decay_steps": 10, "filters": 3, "first_decay_steps": 10,
    "initial_learning_rate": 0.5, "kernel_size": 2, "max_learning_rate": 0.5, "num_classes": 2,
    "precision": 0.5, "rate": 0.5, "recall": 0.5, "sensitivity": 0.5, "specificity": 0.5,
}  # fmt: skip
TYPES = {
    "int": int,
    "float": float,
    "bool": bool,
    "rate": float,
    "str": str,
    "number": (int, float),
}


def given(name: str) -> dict[str, Any]:
    """Return arguments for a class: what must be given, and more that brings out attributes."""
    parameters = inspect.signature(CLASSES[name]).parameters
    case = FAMILIES.get(name.removeprefix("layers."))
    config = {} if case is None else case.make().get_config()
    known = {k: v for k, v in (NEEDED | config).items() if k in parameters}
    needed = {k: v for k, v in known.items() if parameters[k].default is inspect.Parameter.empty}
    return needed | GIVEN.get(name, {})


def keys(name: str) -> dict[str, tuple[str, str]]:
    """Return the type and the default of each key of a class, as the page has them."""
    found = re.findall(r"`(\w+): (\w+)(?: = ([^`]+))?`", ROWS[name][0])
    return {key: (kind, default) for key, kind, default in found}


def test_the_table_is_what_its_script_writes() -> None:
    script = Path(__file__).parents[2] / "docs" / "make_format_classes.py"
    found = subprocess.run([sys.executable, script, "--check"], capture_output=True)
    assert found.returncode == 0, "run: python docs/make_format_classes.py"


def test_the_page_has_every_class_and_no_other() -> None:
    assert sorted(ROWS) == sorted(CLASSES)
    first = [line.split("`")[1] for line in TABLE.splitlines()[2:]]
    assert first == sorted(first)


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_page_says_how_a_class_is_made(name: str) -> None:
    page, cls = keys(name), CLASSES[name]
    made = cls(**given(name))
    config = made.get_config()
    assert sorted({*page, "name"}) == sorted(config)
    for key, (kind, default) in page.items():
        parameter = inspect.signature(cls).parameters[key]
        if default:
            plain = parameter.default
            assert json.loads(default) == (list(plain) if isinstance(plain, tuple) else plain)
        else:
            assert parameter.default is parameter.empty
        if kind in TYPES:
            null = config[key] is None and default == "null"
            assert null or isinstance(config[key], TYPES[kind])
    plain = {key: json.loads(default) for key, (_, default) in page.items() if default}
    needed = {key: value for key, value in given(name).items() if key not in plain}
    assert cls(**needed, **plain, name=made.name).get_config().keys() == config.keys()
    plain = name not in ("training.LBFGS", "mixed_precision.LossScaleOptimizer")
    if issubclass(cls, gt.training.Optimizer) and plain:
        for key in OPTIONS:
            given_too = {key: 2 if key.endswith(("steps", "frequency")) else 1.0, "use_ema": True}
            assert cls(**given_too).get_config()[key] == given_too[key]
            assert f"`{key}" in PAGE


def used(name: str) -> list[Any]:
    """Return instances of a class that have the attributes which hold state."""
    made = CLASSES[name](**given(name))
    short = name.rpartition(".")[2]
    if name.startswith("layers."):
        cases = [case for key, case in FAMILIES.items() if key.split()[0] == short]
        pairs = [(case.make(), case.inputs(2)) for case in cases]
        if {"dropout", "stateful"} & GIVEN.get(name, {}).keys():
            pairs.append((made, pairs[0][1]) if pairs else (made, None))
        elif not pairs:
            pairs = [(made, gt.ones((2, 4)))]
        for layer, inputs in pairs:
            if short.endswith("Cell"):
                layer(gt.ones((2, 4)), [gt.ones((2, 3))] * len(layer.state_size))
            elif short != "StackedRNNCells":
                layer(inputs)
        return [layer for layer, _ in pairs]
    if isinstance(made, gt.training.Optimizer):
        w = gt.Variable([1.0])
        made.minimize(lambda: gt.sum(w * w), [w])
    elif short in ("F1Score", "FBetaScore", "R2Score"):  # their state is as wide as the first batch
        made([[0.0, 1.0], [1.0, 0.0]], [[0.2, 0.8], [0.6, 0.4]])
    elif hasattr(made, "num_classes"):
        made([0, 1], [1, 1])
    elif "num_thresholds" in keys(name):
        return [made, CLASSES[name](**{**given(name), "num_thresholds": 5})]
    return [made]


def attributes(name: str) -> list[str]:
    """Return the attributes of a class that hold variables or modules."""

    def held(value: Any) -> bool:
        return isinstance(value, (Variable, Module)) or (
            isinstance(value, (list, tuple)) and any(map(held, value))
        )

    return list(dict.fromkeys(k for made in used(name) for k, x in vars(made).items() if held(x)))


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_the_page_names_the_attributes_that_hold_state(name: str) -> None:
    own = set(attributes(name))
    listed = set(re.findall(r"`(\w+)`", ROWS[name][1]))
    assert own <= listed <= own | set(keys(name))  # keys say on what an attribute depends


def test_the_page_names_activations_and_initializers() -> None:
    listed = PAGE.partition("* **activation**")[2].partition("another op")[0]
    assert set(re.findall(r"`(\w+)`", listed)) - {"null"} == set(activations.NAMES)
    listed = PAGE.partition("* **initializer**")[2].partition("; or")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == set(initializers.NAMES)
