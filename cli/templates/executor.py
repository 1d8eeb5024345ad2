"""An executor, which decides how traced functions run."""

from __future__ import annotations

__all__ = ["FILES", "GROUP", "NEEDS", "TEST_NEEDS", "USE", "WHAT"]

WHAT, GROUP, NEEDS, TEST_NEEDS = "An executor", "gradtape", "", ""
USE = """\
import gradtape as gt


@gt.function(executor="$name")
def f(x):
    return gt.sin(x) * 2.0


assert f(gt.ones(3)).shape == (3,)
assert "steps" in f.explain(gt.ones(3))
"""
FILES = {
    "src/$module/__init__.py": '''\
"""An executor for gradtape: gt.function(f, executor="$name")."""

from .plugin import executor

__all__ = ["executor"]
''',
    "src/$module/plugin.py": '''\
"""The executor. It makes a list of steps of a graph, once for each backend, and runs it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gradtape.plugin import (
    Backend,
    Graph,
    Read,
    argument_of,
    by_backend,
    hookimpl,
    kernel_of,
    local_constants,
    set_arrays,
)

#: The version of gradtape.plugin that this was written for: see gradtape.plugin.API.
gradtape_api = (1, 0)


def compiler(program: Graph, owner: Backend, arrays: Sequence[Any]) -> Callable[..., Any]:
    """Return a function that runs a program on arrays of one backend."""
    kernels = [
        None if isinstance(node.op, Read) else kernel_of(node, owner) for node in program.nodes
    ]

    def run(arrays: Sequence[Any]) -> list[Any]:
        known: dict[Any, Any] = dict(local_constants(program, arrays))
        known.update(zip(program.inputs, arrays, strict=True))
        for node, kernel in zip(program.nodes, kernels, strict=True):
            if kernel is None:
                results = [node.op.variable.array]  # type: ignore[union-attr]
            else:
                result = kernel(
                    *[known[x] if x in known else argument_of(node, x, owner) for x in node.inputs]
                )
                results = result if node.several else [result]
            known.update(zip(node.outputs, results, strict=True))
        new = [known[symbol] for symbol in program.updates.values()]
        for variable, array in zip(program.updates, new, strict=True):
            variable.check_shape(array.shape)  # the trace may not have known it
        set_arrays(list(program.updates), new)
        return [known[symbol] for symbol in program.outputs]

    run.explain = lambda: f"{len(kernels)} steps"  # type: ignore[attr-defined]
    return run


def executor(graph: Graph) -> Callable[..., Any]:
    """Return a function that runs a graph on arrays of any backend."""
    return by_backend(graph, compiler)


@hookimpl
def gradtape_executors() -> Mapping[str, Callable[..., Any]]:
    return {"$name": executor}
''',
    "tests/test_executor.py": '''\
"""check_executor: programs of all kinds give what gradtape's plain executor gives."""

import gradtape as gt
from gradtape.testing import check_executor


def test_programs_run_as_they_do_plainly():
    report = check_executor("$name", ulps=0)
    assert not report.wrong and not report.refused


def test_a_model_trains():
    v = gt.Variable([1.0, 2.0])

    @gt.function(executor="$name")
    def step():
        with gt.GradientTape() as tape:
            loss = gt.sum(v * v)
        v.assign_sub(0.5 * tape.gradient(loss, v))
        return loss

    assert step().item() == 5.0
    assert v.tolist() == [0.0, 0.0]


def test_gradtape_finds_the_plugin():
    owner = gt.registry().owner("executor", "$name")
    assert owner is not None and owner.distribution == "$name"
''',
}
