"""Which executor runs a function: selected for a block, a function or a process."""

from __future__ import annotations

import copy
import os
import subprocess
import sys

import numpy as np
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


BATCHES = {
    "one": lambda f, x, y: gt.vmap(f, in_axes=(0, None))(x, y[0]),
    "two": lambda f, x, y: gt.vmap(gt.vmap(f, in_axes=(None, 0)), in_axes=(0, None))(x, y),
    "two of one argument": lambda f, x, y: gt.vmap(gt.vmap(f))(x[:, None] * y, y[:, None] + y),
    "by keyword": lambda f, x, y: gt.vmap(lambda x: f(x, y=y))(x),
    "transposed": lambda f, x, y: gt.vmap(f, in_axes=1, out_axes=1)(x[:, None] * y, y[:, None] + y),
}


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
def test_the_executor_of_a_function_runs_it_in_batches(made, batch) -> None:
    x, y = gt.constant([0.5, 1.5, 2.5]), gt.constant([1.0, 2.0, -1.0])

    def f(x, y):
        return {"product": gt.sin(x) * y, "none": None, "sum": [x + y]}

    got, again = (batch(gt.function(f, executor="noting"), x, y) for _ in range(2))
    assert made == ["f", "f"]  # one for each function
    want = batch(f, x, y)
    assert got["none"] is again["none"] is None
    for result in (got, again):
        np.testing.assert_allclose(result["product"], want["product"], rtol=1e-6)
        np.testing.assert_array_equal(result["sum"][0], want["sum"][0])


def test_a_function_with_an_executor_has_gradients_and_random_numbers_in_batches(made) -> None:
    x = gt.constant([0.5, 1.5, 2.5])
    f = gt.function(lambda x: gt.sin(x), executor="noting")
    np.testing.assert_allclose(gt.vmap(gt.grad(f))(x), np.cos(x), rtol=1e-6)
    np.testing.assert_allclose(gt.grad(lambda x: gt.sum(gt.vmap(f)(x)))(x), np.cos(x), rtol=1e-6)
    noise = gt.function(lambda x: x + gt.random.normal(()), executor="noting")
    assert len({*gt.vmap(noise, randomness="different")(gt.zeros(3)).tolist()}) == 3
    assert len({*gt.vmap(noise, randomness="same")(gt.zeros(3)).tolist()}) == 1
    with pytest.raises(RuntimeError, match="random numbers are drawn inside vmap"):
        gt.vmap(noise)(gt.zeros(3))


def test_an_executor_that_a_batch_cannot_use_is_named_once(made) -> None:
    x, held = gt.constant([1.0, 2.0]), []
    inner = gt.function(lambda y: held[-1] * y, executor="noting")

    def outer(a):
        held.append(a)
        return inner(a * 2.0)

    with pytest.warns(UserWarning, match="executor='noting' has no effect in this vmap") as told:
        found = [gt.vmap(outer)(x).tolist() for _ in range(2)]
    assert found == [[2.0, 8.0]] * 2
    assert len(told) == 1
    assert made == []


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
