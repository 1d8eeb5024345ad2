"""A distribution of a third party: copies of gradtape's own modules, under names of its own.

Its classes and functions have the source text of gradtape's, so that a difference in behaviour
between the two is one that depends on who provides them.
"""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

#: The modules that are copied, by the copy's name.
COPIED = {
    "dense": "gradtape.layers.basic.linear",
    "simple": "gradtape.layers.basic.simple",
    "cells": "gradtape.layers.recurrent.cells",
    "initializers": "gradtape.layers.initializers",
    "regularizers": "gradtape.layers.regularizers",
    "constraints": "gradtape.layers.constraints",
    "crossentropies": "gradtape.training.losses.crossentropies",
    "errors": "gradtape.training.losses.errors",
    "losses": "gradtape.training.losses.objects",
    "functions": "gradtape.training.metrics.functions",
    "metrics": "gradtape.training.metrics.objects",
    "classic": "gradtape.training.optimizers.classic",
    "adaptive": "gradtape.training.optimizers.adaptive",
    "schedules": "gradtape.training.schedules",
    "stopping": "gradtape.training.callbacks.control",
}

#: Base classes, which third parties import.
BASES = ("Cell", "Initializer", "LearningRateSchedule", "MeanOf", "Metric")

OPS = """
from gradtape.plugin import F, Op, hookimpl

act = Op(
    "acme::act",
    lambda xp, x: x * xp.tanh(x),
    gradients={"x": lambda g, x: g * (F.tanh(x) + x * (1 - F.square(F.tanh(x))))},
    infer=lambda x: (x.shape, x.dtype),
)


@hookimpl
def gradtape_ops():
    return [act]
"""

PLUGIN = '''
from functools import partial

import gradtape as gt
from gradtape.plugin import hookimpl, saved_classes

from . import adaptive, cells, classic, constraints, crossentropies, dense, errors, functions
from . import initializers, losses, metrics, regularizers, schedules, simple, stopping
from .ops import act


for each in (functions.accuracy, functions.binary_accuracy):
    each.with_loss = partial(metrics._accuracy_with, each)


class Sharp:
    """An activation with a setting, of a class that knows nothing of gradtape."""

    def __init__(self, factor=2.0):
        self.factor = factor

    def __call__(self, x):
        return gt.tanh(self.factor * x)

    def get_config(self):
        return {"factor": self.factor}


def eighths(shape, dtype="float32"):
    import numpy as np

    return (np.arange(np.prod(shape), dtype=dtype).reshape(shape) % 5 - 2) / 8


def _named(*modules):
    return {f"acme.{x}": getattr(module, x) for module in modules for x in module.__all__}


@hookimpl
def gradtape_modules():
    modules = dense, simple, cells, metrics, classic, adaptive, schedules
    return {name: x for name, x in saved_classes(*map(vars, modules)).items() if name[:4] == "acme"}


@hookimpl
def gradtape_names():
    initial = {f"acme.{x}": y for x, y in initializers.NAMES.items()}
    return {
        "activation": {"acme::act": act, "acme.Sharp": Sharp},
        "initializer": {**initial, "acme.eighths": eighths},
        "regularizer": {f"acme.{x}": y for x, y in regularizers.NAMES.items()},
        "constraint": {f"acme.{x}": y for x, y in constraints.NAMES.items()},
        "loss": _named(crossentropies, errors, losses),
        "metric": _named(functions, metrics),
        "optimizer": {x.lower(): y for x, y in _named(classic, adaptive).items()},
        "schedule": _named(schedules),
        "callback": _named(stopping),
    }


@hookimpl
def gradtape_namespaces():
    return {"acme": "acme"}


def shape_of(x):
    raise RuntimeError("replaced in converted code")


@hookimpl
def gradtape_converters():
    return {shape_of: lambda x: x * 2}
'''

ENTRY_POINTS = """
[gradtape]
acme_ops = acme.ops
[gradtape.modules]
acme = acme.plugin
[gradtape.names]
acme = acme.plugin
[gradtape.namespaces]
acme = acme.plugin
[gradtape.converters]
acme = acme.plugin
"""


def install(folder: Path) -> None:
    """Write the distribution into a folder for ``sys.path``."""
    package, info = folder / "acme", folder / "acme-1.0.dist-info"
    package.mkdir(parents=True)
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    (package / "__init__.py").write_text("from .ops import act\n")
    (package / "ops.py").write_text(OPS)
    (package / "plugin.py").write_text(PLUGIN)
    for name, module in COPIED.items():
        (package / f"{name}.py").write_text(_copy(module))


def _copy(module: str) -> str:
    """Return the source of a module of gradtape as that of a third party."""
    found = importlib.util.find_spec(module)
    assert found is not None
    assert found.origin is not None
    text = Path(found.origin).read_text()
    tree = ast.parse(text)
    lines = text.split("\n")
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name in BASES:
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
            lines[node.lineno - 1] = f"from {module} import {node.name}"
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = module.split(".")[: -node.level]
            whole = ".".join([*parts, *filter(None, [node.module])])
            line = lines[node.lineno - 1]
            lines[node.lineno - 1] = re.sub(r"from \.+\w*[\w.]*", f"from {whole}", line)
    return re.sub(r'saved_as="\w+\.', 'saved_as="acme.', "\n".join(lines))
