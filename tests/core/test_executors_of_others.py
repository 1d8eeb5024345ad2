"""An executor that does not do what it says is told, by its name; so is a name that is none."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Backend, hookimpl, plain
from gradtape.errors import PluginError, UnknownOp


@pytest.fixture
def using() -> Iterator[Callable[[Any], None]]:
    """What registers an executor under the name "mine"."""

    def register(executor: Any) -> None:
        hook = hookimpl(lambda: {"mine": executor})
        gt.register_plugin(SimpleNamespace(gradtape_executors=hook), "mine")

    yield register
    gt.unregister_plugin("mine")


def returning(change: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    return lambda graph: lambda arrays: change(plain(graph)(arrays))


MISTAKES = {
    "nothing made": (lambda graph: None, "it made None for the graph 'both' instead of a function"),
    "no function": (lambda graph: 5, "it made 5 for"),
    "nothing": (returning(lambda found: None), "returned NoneType instead of a list"),
    "one array": (returning(lambda found: found[0]), "returned ndarray instead of a list"),
    "too few": (returning(lambda found: found[:1]), "returned 1 results instead of 2"),
    "too many": (returning(lambda found: found * 2), "returned 4 results instead of 2"),
    "lists": (
        returning(lambda found: [x.tolist() for x in found]),
        "returned list instead of an array as result 0",
    ),
    "tensors": (
        returning(lambda found: [gt.constant(x) for x in found]),
        "returned Tensor instead of an array as result 0",
    ),
    "another dtype": (
        returning(lambda found: [found[0], found[1].astype("float64")]),
        r"returned float64\[2\] instead of float32\[2\] as result 1",
    ),
    "another shape": (
        returning(lambda found: [found[0], found[1][:1]]),
        r"returned float32\[1\] instead of float32\[2\] as result 1",
    ),
}


def both(x: Any) -> Any:
    return gt.sin(x), x * 2.0


@pytest.mark.parametrize("kind", MISTAKES)
def test_what_an_executor_gives_is_looked_at_once(kind: str, using: Any) -> None:
    executor, message = MISTAKES[kind]
    using(executor)
    with pytest.raises(PluginError, match=f"executor 'mine': .*{message}"):
        gt.function(both, executor="mine")(gt.ones(2))


def test_an_executor_must_not_write_into_arguments(using: Any) -> None:
    def writing(graph: Any) -> Any:
        def run(arrays: Any) -> Any:
            arrays[0] *= 2.0
            return plain(graph)(arrays)

        return run

    using(writing)
    with pytest.raises(PluginError, match=r"executor 'mine': for .* wrote into an argument"):
        gt.function(lambda x: gt.sin(x) * 2.0, executor="mine")(gt.ones(3))


def test_an_executor_may_be_given_other_shapes_than_were_traced(using: Any) -> None:
    using(returning(list))
    wide = gt.function(both, input_signature=[gt.TensorSpec([None])], executor="mine")
    assert wide(gt.ones(3))[1].tolist() == [2.0] * 3
    body = gt.function(lambda x: gt.scan(lambda c, v: (c + v, c * v), gt.constant(0.0), x))
    with gt.executor("mine"):
        assert gt.vmap(lambda x: body(x)[0])(gt.ones((2, 3))).tolist() == [3.0, 3.0]


def test_a_near_name_of_an_executor_is_told() -> None:
    with (
        pytest.raises(UnknownOp, match="'planed'; near names: planned, plain; there are: "),
        gt.executor("planed"),
    ):
        pass


def test_the_variable_that_names_no_executor_is_told_where_one_is_needed() -> None:
    code = "import gradtape as gt; gt.function(lambda x: x * 2.0)(gt.ones(2))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "GRADTAPE_EXECUTOR": "planed"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    told = run.stderr.strip().splitlines()[-1]
    assert "environment variable GRADTAPE_EXECUTOR: no plugin provides the executor 'pl" in told


def test_an_op_that_numpy_stops_is_named_in_compiled_functions_too() -> None:
    compute = gt.function(lambda x: gt.exp(x) + gt.log(x))
    compute(gt.ones(2))
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=r"log: divide by zero"):
        compute(gt.zeros(2))


def test_a_second_backend_for_arrays_that_have_one_is_refused() -> None:
    class Mine(Backend):
        name = "mine"
        array_module = ("numpy", "mine")

    plugin = SimpleNamespace(gradtape_backends=hookimpl(lambda: [Mine()]))
    message = "backend 'mine' claims the arrays of numpy, which belong to the backend 'numpy'"
    with pytest.raises(PluginError, match=message):
        gt.register_plugin(plugin, "mine")
    assert "mine" not in gt.registry().backends
    assert gt.ones(2).device == "numpy:cpu"


def test_a_backend_replaces_the_one_of_its_name() -> None:
    class Mine(type(gt.registry().backends["numpy"])):  # type: ignore[misc]
        pass

    plugin = SimpleNamespace(gradtape_backends=hookimpl(lambda: [Mine()]))
    gt.register_plugin(plugin, "mine")
    try:
        assert gt.registry().owner("backend", "numpy").name == "mine"
        assert gt.sin(gt.zeros(2)).tolist() == [0, 0]
    finally:
        gt.unregister_plugin("mine")
    assert gt.registry().owner("backend", "numpy").name == "numpy"
