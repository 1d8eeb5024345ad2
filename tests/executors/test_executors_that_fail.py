"""An executor that fails on a program: the plain one runs it, with one warning; errors of the
program itself are raised as they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import by_backend, compiling, hookimpl, plain
from gradtape.errors import BackendUnavailable


def refusing(graph: Any) -> Any:
    raise RecursionError("maximum recursion depth exceeded")


def refusing_backend(graph: Any) -> Any:
    def compiler(program: Any, owner: Any, arrays: Any) -> Any:
        raise KeyError("no rule")

    return by_backend(graph, compiler)


def refusing_at_first_run(graph: Any) -> Any:
    def run(arrays: Any) -> Any:
        with compiling():
            raise AttributeError("a part is missing")

    return run


def failing_in_runs(graph: Any) -> Any:
    def run(arrays: Any) -> Any:
        raise RuntimeError("the device is lost")

    return run


#: Executors that fail, and what the warning says.
FAILING: dict[str, tuple[Callable[[Any], Any], str]] = {
    "at once": (refusing, "RecursionError: maximum recursion depth exceeded"),
    "for a backend": (refusing_backend, "KeyError: 'no rule'"),
    "at the first run": (refusing_at_first_run, "AttributeError: a part is missing"),
    "in runs": (failing_in_runs, "RuntimeError: the device is lost"),
}
compile_time = pytest.mark.parametrize("kind", [k for k in FAILING if k != "in runs"])


@pytest.fixture
def using() -> Iterator[Callable[[Any], None]]:
    """Register an executor under the name "mine"."""

    def register(executor: Any) -> None:
        hook = hookimpl(lambda: {"mine": executor})
        gt.register_plugin(SimpleNamespace(gradtape_executors=hook), "mine")

    yield register
    gt.unregister_plugin("mine")


@pytest.mark.parametrize("kind", FAILING)
def test_the_plain_executor_runs_what_another_one_cannot(kind: str, using: Any) -> None:
    executor, why = FAILING[kind]
    using(executor)
    double = gt.function(lambda x: gt.sin(x) * 2.0, executor="mine")
    with pytest.warns(RuntimeWarning) as told:
        found = double(gt.ones(2))
    assert np.allclose(found.numpy(), 2.0 * np.sin(1.0))
    (warning,) = told
    assert f"executor 'mine' failed for '<lambda>' ({why})" in str(warning.message)
    assert warning.category is gt.errors.ExecutorWarning
    assert warning.filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.allclose(double(gt.zeros(2)).numpy(), 0.0)
    assert f"by the executor 'plain', because this one failed ({why})" in double.explain(gt.ones(2))
    with warnings.catch_warnings(), gt.profile() as profile:
        warnings.simplefilter("error")
        double(gt.ones(2))
    assert "sin" in str(profile)


@compile_time
def test_a_training_step_is_run_once(kind: str, using: Any) -> None:
    using(FAILING[kind][0])
    v = gt.Variable([1.0, 2.0])

    @gt.function(executor="mine")
    def step() -> Any:
        with gt.GradientTape() as tape:
            loss = gt.sum(v * v)
        v.assign_sub(0.25 * tape.gradient(loss, v))
        return loss

    with pytest.warns(RuntimeWarning, match="executor 'mine' failed"):
        assert step().item() == 5.0
    assert v.tolist() == [0.5, 1.0]
    assert step().item() == 1.25
    assert v.tolist() == [0.25, 0.5]


def test_an_update_that_fails_in_a_run_is_not_repeated(using: Any) -> None:
    def assigning(graph: Any) -> Any:
        run = plain(graph)

        def execute(arrays: Any) -> Any:
            run(arrays)
            raise RuntimeError("too late")

        return execute

    using(assigning)
    v = gt.Variable(1.0)
    add = gt.function(lambda: v.assign_add(1.0), executor="mine")
    with pytest.raises(RuntimeError, match="too late"):
        add()
    assert v.item() == 2.0


def test_an_executor_that_fails_after_it_has_run_is_an_error(using: Any) -> None:
    def once(graph: Any) -> Any:
        runs = [plain(graph)]
        return lambda arrays: runs.pop()(arrays)

    using(once)
    double = gt.function(lambda x: x * 2.0, executor="mine")
    assert double(gt.constant(1.0)).item() == 2.0
    with pytest.raises(IndexError, match="pop"):
        double(gt.constant(1.0))


@compile_time
def test_graphs_inside_a_program_fall_back_too(kind: str, using: Any) -> None:
    using(FAILING[kind][0])
    f = gt.function(lambda x: gt.cond(x > 0, lambda: x * 2.0, lambda: -x), executor="mine")
    with pytest.warns(RuntimeWarning) as told:
        assert f(gt.constant(3.0)).item() == 6.0
    assert len(told) == 2  # the function, and the branch that ran
    with pytest.warns(RuntimeWarning) as told:
        assert f(gt.constant(-3.0)).item() == 3.0
    assert len(told) == 1


@pytest.mark.parametrize("kind", FAILING)
def test_an_error_of_the_program_is_raised_without_a_warning(kind: str, using: Any) -> None:
    using(FAILING[kind][0])
    f = gt.function(
        lambda x: gt.reshape(x, (5, -1)), executor="mine", input_signature=[gt.TensorSpec([None])]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(ValueError, match="reshape"):
                f(gt.ones(6))
    with pytest.warns(RuntimeWarning, match="executor 'mine' failed"):
        assert f(gt.ones(5)).shape == (5, 1)


@pytest.mark.parametrize("name", ["default", "plain"])
def test_an_error_of_the_users_own_function_is_raised_once(name: str) -> None:
    calls = []

    def refuse(x: Any) -> Any:
        calls.append(x.item())
        raise LookupError("no such entry")

    f = gt.function(lambda x: gt.host_call(refuse, x * 2.0), executor=name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(LookupError, match="no such entry"):
            f(gt.constant(2.0))
    assert calls == [4.0]


def test_a_library_that_is_missing_is_an_error(using: Any) -> None:
    def missing(graph: Any) -> Any:
        raise BackendUnavailable("executor 'mine': pip install mine")

    using(missing)
    with pytest.raises(BackendUnavailable, match="pip install mine"):
        gt.function(lambda x: x * 2.0, executor="mine")(gt.ones(2))


def test_a_backend_that_cannot_compile_a_program_runs_it_plainly() -> None:
    class Refusing(type(gt.registry().backend("numpy"))):  # type: ignore[misc]
        def compile(self, program: Any, arrays: Any) -> Any:
            raise NotImplementedError("no form")

    backend = gt.registry().backend("numpy")
    kind, backend.__class__ = type(backend), Refusing
    try:
        f = gt.function(lambda x: gt.sin(x) * 2.0)
        with pytest.warns(RuntimeWarning, match=r"executor 'default' failed .*no form"):
            assert f(gt.constant(0.0)).item() == 0.0
    finally:
        backend.__class__ = kind
