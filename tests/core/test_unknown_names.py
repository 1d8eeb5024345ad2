"""What an unknown op or executor is answered: near names, what to install, what is disabled."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import gradtape as gt
from gradtape.core.extend import Op, hookimpl
from gradtape.errors import UnknownOp


class Acme:
    @hookimpl
    def gradtape_ops(self) -> list[Any]:
        return [
            Op("acme-ops::cube", lambda xp, x: x**3, gradients={"x": lambda g, x: 3 * g * x * x})
        ]


@pytest.mark.parametrize(
    ("name", "said", "unsaid"),
    [
        ("sinn", "near names: sin, sinh", "install"),
        ("gradtape::sin", "ops of gradtape have no prefix: 'sin'", "install"),
        ("gradtape::sinn", "ops of gradtape have no prefix; near names: sin", "install"),
        ("acme-op::cube", "near names: acme-ops::cube", "install"),
        ("acme-opps::square", "near names: acme-ops", "install"),
        ("acme-ops::cubed", "near names: acme-ops::cube", "install"),
        ("acme-ops::zzz", "no plugin provides the op 'acme-ops::zzz'", "install"),
        ("far-away::act", "install the package 'far-away' that defines it", "near"),
        ("far_away::act", "(as a distribution, probably 'far-away') that defines it", "near"),
        ("not a name::act", "no plugin provides the op", "install"),
        ("::act", "no plugin provides the op", "install"),
    ],
)
def test_an_unknown_op_is_answered_with_what_helps(name: str, said: str, unsaid: str) -> None:
    gt.register_plugin(Acme(), "acme")
    try:
        with pytest.raises(UnknownOp) as caught:
            gt.registry().op(name)
    finally:
        gt.unregister_plugin("acme")
    assert said in str(caught.value)
    assert unsaid not in str(caught.value)


def test_without_executors_the_disabled_plugin_is_named() -> None:
    code = "import gradtape as gt; gt.function(lambda x: x + 1)(gt.constant(1.0))"
    environment = {k: v for k, v in os.environ.items() if k != "GRADTAPE_EXECUTOR"}
    for variable, blamed in ((None, "plugin 'executors'"), ("fast", "GRADTAPE_EXECUTOR")):
        more = (
            {"GRADTAPE_EXECUTOR": variable}
            if variable
            else {"GRADTAPE_DISABLE_PLUGINS": "executors"}
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**environment, **more},
            capture_output=True,
            text=True,
        )
        last = done.stderr.strip().splitlines()[-1]
        assert blamed in last, done.stderr
        assert variable or "GRADTAPE_EXECUTOR" not in last
