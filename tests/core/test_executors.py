"""Which executor runs a function: selected for a block, a function or a process."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import pytest

import gradtape as gt
from gradtape.core.extend import hookimpl


@pytest.fixture
def made():
    """The names of graphs that the executor "noting" was given."""
    names = []

    def noting(graph):
        names.append(graph.name)
        return gt.registry().executor("plain")(graph)

    class Plugin:
        @hookimpl
        def gradtape_executors(self):
            return {"noting": noting}

    gt.register_plugin(Plugin(), "noting")
    yield names
    gt.unregister_plugin("noting")


def test_a_block_selects_an_executor(made) -> None:
    double = gt.function(lambda x: x * 2.0)
    with gt.executor("noting"):
        assert double(gt.constant(2.0)).item() == 4.0
    assert made == ["<lambda>"]
    assert gt.function(lambda x: x)(gt.constant(2.0)).item() == 2.0
    assert made == ["<lambda>"]


def test_a_function_keeps_what_each_executor_made_of_it(made) -> None:
    double = gt.function(lambda x: x * 2.0)
    for name in ("noting", "plain", "noting", "default"):
        with gt.executor(name):
            assert double(gt.constant(3.0)).item() == 6.0
    assert made == ["<lambda>"]


def test_what_is_inside_a_function_runs_by_its_executor_too(made) -> None:
    f = gt.function(lambda x: gt.cond(x > 0, lambda: x * 2.0, lambda: -x), executor="noting")
    with gt.executor("plain"):
        assert f(gt.constant(3.0)).item() == 6.0
    assert len(made) == 2


@pytest.mark.parametrize(
    "select",
    [lambda f: gt.executor("plian").__enter__(), lambda f: gt.function(f, executor="plian")],
)
def test_an_executor_that_nobody_provides_is_refused_by_name(select) -> None:
    with pytest.raises(gt.errors.UnknownOp, match=r"executor 'plian'; .*there are: .*plain"):
        select(lambda x: x)


def test_an_environment_variable_selects_the_executor_of_a_process() -> None:
    code = (
        "import gradtape as gt; f = gt.function(lambda x: x); x = gt.constant(1.0); f(x); "
        "print(f.explain(x))"
    )
    env = {**os.environ, "GRADTAPE_EXECUTOR": "plain"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True)
    assert "by the executor 'plain'" in done.stdout, done.stderr


def test_methods_and_their_copies_keep_the_executor_of_their_function() -> None:
    class Model(gt.Module):
        @gt.function(executor="plain")
        def f(self, x):
            return x * 2.0

    model = Model()
    for one in (model, copy.deepcopy(model)):
        assert "'plain'" in one.f.explain(gt.TensorSpec([2]))


def test_the_backend_of_the_arrays_is_asked_to_compile_a_program() -> None:
    compiled = []

    class Compiling(type(gt.registry().backend("numpy"))):
        def compile(self, program, arrays):
            compiled.append([node.op.name for node in program.nodes])
            return None

    backend = gt.registry().backend("numpy")
    kind, backend.__class__ = type(backend), Compiling
    try:
        f = gt.function(lambda x: gt.sin(x) * 2.0)
        assert f(gt.constant(0.0)).item() == 0.0
        with gt.executor("plain"):
            f(gt.constant(0.0))
        assert compiled == [["sin", "multiply"]]
        assert "plain" in f.explain(gt.constant(0.0))
    finally:
        backend.__class__ = kind
