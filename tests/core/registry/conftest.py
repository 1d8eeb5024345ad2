"""Fixtures that register plugins by hand, or pretend that they are installed."""

from __future__ import annotations

import importlib.metadata
import sys
import types

import pytest
from made_plugins import look_again, plugin

import gradtape as gt


@pytest.fixture
def register():
    """Register plugins for the length of a test."""
    names = []

    def add(name: str, **hooks):
        gt.register_plugin(plugin(**hooks), name)
        names.append(name)

    yield add
    for name in reversed(names):
        gt.unregister_plugin(name)


@pytest.fixture
def entry_points(monkeypatch):
    """Pretend that distributions with these entry points are installed."""
    real = importlib.metadata.entry_points

    def install(**modules):
        points = []
        for name, content in modules.items():
            module = types.ModuleType(f"pretend_{name}")
            if isinstance(content, Exception):
                value = f"pretend_{name}_that_fails"
            else:
                vars(module).update(vars(content))
                monkeypatch.setitem(sys.modules, module.__name__, module)
                value = module.__name__
            points.append(importlib.metadata.EntryPoint(name, value, "gradtape"))
        every = real()
        points += [x for group in every.groups for x in every.select(group=group)]
        monkeypatch.setattr(
            importlib.metadata,
            "entry_points",
            lambda **asked: importlib.metadata.EntryPoints(points).select(**asked),
        )
        look_again()

    yield install
    monkeypatch.undo()
    look_again()
