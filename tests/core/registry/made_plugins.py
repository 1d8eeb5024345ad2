"""Plugins that tests make, and what tests of plugins share."""

from __future__ import annotations

import types

import gradtape as gt
from gradtape.core.extend import Op, hookimpl


def specs(*xs):
    return xs[0].shape, xs[0].dtype


def cube_op(name: str = "cubes::cube", **changes) -> Op:
    record = {
        "gradients": {"x": lambda g, x: 3.0 * g * x * x},
        "infer": specs,
        "doc": "Return ``x * x * x``.",
        **changes,
    }
    return Op(name, lambda xp, x: x * x * x, **record)


def plugin(**hooks):
    """Return a plugin whose hooks return the given values."""
    made = types.SimpleNamespace()
    for name, value in hooks.items():

        def hook(value=value):
            if isinstance(value, Exception):
                raise value
            return value

        hook.__name__ = f"gradtape_{name}"
        setattr(made, hook.__name__, hookimpl(hook))
    return made


def gradient(f, at):
    x = gt.constant(at)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def look_again():
    """Have plugins discovered anew, which any change of what is disabled does."""
    gt.disable_plugin("cupy", disabled=False)
