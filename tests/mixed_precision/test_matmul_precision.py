"""The precision of products of ``float32`` matrices: where it holds, and what refuses it."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.mixed_precision import get_matmul_precision, matmul_precision, set_matmul_precision

X = np.random.default_rng(0).normal(size=(5, 7)).astype("float32")


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    set_matmul_precision("default")


# -- where it holds ------------------------------------------------------------------------------


def test_blocks_nest_and_end_with_errors() -> None:
    assert get_matmul_precision() == "default"
    set_matmul_precision("tf32")
    with matmul_precision("float32"):
        assert get_matmul_precision() == "float32"
        with matmul_precision("default"):
            assert get_matmul_precision() == "default"
        with pytest.raises(KeyError), matmul_precision("tf32"):
            raise KeyError
        set_matmul_precision("default")  # the block stands nearer
        assert get_matmul_precision() == "float32"
    assert get_matmul_precision() == "default"


def test_a_block_holds_in_its_own_context_and_a_process_setting_in_all_threads() -> None:
    def elsewhere(run: Any = lambda function: function()) -> str:
        found: list[str] = []
        thread = threading.Thread(target=lambda: run(lambda: found.append(get_matmul_precision())))
        thread.start()
        thread.join()
        return found[0]

    with matmul_precision("tf32"):
        assert elsewhere() == "default"
        assert elsewhere(contextvars.copy_context().run) == "tf32"
        set_matmul_precision("float32")
        assert elsewhere() == "float32"


def test_tasks_that_take_turns_keep_their_own_precision() -> None:
    async def one(precision: str) -> list[str]:
        seen = []
        with matmul_precision(precision):
            for _ in range(4):
                await asyncio.sleep(0)
                seen.append(get_matmul_precision())
        return seen

    async def both() -> Any:
        return await asyncio.gather(one("tf32"), one("float32"))

    assert asyncio.run(both()) == [["tf32"] * 4, ["float32"] * 4]


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize("call", [set_matmul_precision, lambda x: matmul_precision(x).__enter__()])
@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("highest", "'float32' here"),
        ("high", "'tf32' here"),
        ("medium", "one of"),
        ("float16", "one of"),
        (None, "one of"),
        ([], "one of"),
    ],
)
def test_other_precisions_are_refused_in_words(call: Any, wrong: Any, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call(wrong)
    assert get_matmul_precision() == "default"


def test_a_trace_refuses_a_setting_that_would_not_last() -> None:
    def product(x: Any) -> Any:
        with matmul_precision("tf32"):
            return x @ gt.swapaxes(x, 0, 1)

    np.testing.assert_allclose(product(gt.constant(X)).numpy(), X @ X.T, rtol=1e-5)
    with pytest.raises(gt.errors.TraceError, match="where it is called"):
        gt.function(product)(gt.constant(X))


# -- backends ------------------------------------------------------------------------------------


def test_numpy_computes_in_full_precision_whatever_is_allowed() -> None:
    f = gt.function(lambda x: x @ gt.swapaxes(x, 0, 1))
    x = gt.constant(X)
    before = [f(x).numpy(), f(x).numpy()]
    for precision in ("float32", "tf32", "default"):
        with matmul_precision(precision):
            assert f(x).numpy().tobytes() == before[0].tobytes() == before[1].tobytes()


def asked(jaxpr: Any) -> Iterator[Any]:
    """Yield the precisions of the products in JAX's form of a program."""
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            yield equation.params["precision"]
        for inner in equation.params.values():
            if hasattr(inner, "jaxpr"):
                yield from asked(inner.jaxpr)


@pytest.mark.parametrize("op", [gt.matmul, lambda x, y: gt.tensordot(x, y, 1)])
def test_jax_is_asked_for_the_precision(op: Any) -> None:
    jax = pytest.importorskip("jax")

    wanted = {"tf32": "HIGH", "float32": "HIGHEST"}
    for precision in ("tf32", "float32", "default"):
        with gt.backend("jax"), matmul_precision(precision):
            x = gt.constant(X[:5, :5]).array
            program = jax.make_jaxpr(lambda x: op(gt.Tensor(x), gt.Tensor(x)).array)(x)
        names = {getattr(x, "name", None) for pair in asked(program) for x in pair or (None,)}
        assert names == {wanted.get(precision)}


def test_jax_compiles_one_trace_anew_for_another_precision(monkeypatch: Any) -> None:
    pytest.importorskip("jax")
    from gradtape.plugins.jax import compiling

    traced, plain = [], compiling._results

    def noting(*given: Any) -> Any:
        traced.append(get_matmul_precision())
        return plain(*given)

    monkeypatch.setattr(compiling, "_results", noting)
    f = gt.function(lambda x: x @ gt.swapaxes(x, 0, 1))
    with gt.backend("jax"):
        for precision in ("tf32", "float32", "tf32", "float32", "default"):
            with matmul_precision(precision):
                np.testing.assert_allclose(f(gt.constant(X)).numpy(), X @ X.T, rtol=1e-4)
    assert len(f.concrete_functions) == 1
    assert traced == ["tf32", "float32", "default"]
