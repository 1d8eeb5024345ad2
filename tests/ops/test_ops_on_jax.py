"""Every op and function on JAX arrays, with first gradients, eagerly and as one program of XLA."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.core.extend import flatten, map_structure
from gradtape.testing import Sample

# what is compiled here runs once: quick to compile is best
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
REASON = gt.registry().backend("jax").unavailable()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))


def given_to(sample: Sample, backend: str) -> tuple[Any, ...]:
    """Return what a sample gives, its arrays as tensors on a backend."""
    fed = sample.feed(*(gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    moved: dict[int, Any] = {}  # a tensor that is given twice stays one

    def move(x: Any) -> Any:
        return moved.setdefault(id(x), x.to(backend)) if isinstance(x, gt.Tensor) else x

    result: tuple[Any, ...] = map_structure(move, fed if isinstance(fed, tuple) else (fed,))
    return result


def with_slopes(op: Any, sample: Sample, given: Any) -> list[Any]:
    """Return what an op or function gives, as its sample shows it, and its gradients."""
    sources = [x for x in flatten(given) if isinstance(x, gt.Tensor) and x.dtype.kind in "fc"]
    with gt.GradientTape() as tape:
        tape.watch(sources)
        results = op(*given, **sample.params)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    shown = sample.view(*results)
    shown = list(shown) if isinstance(shown, (list, tuple)) else [shown]
    followed = [y for y in results if y.dtype.kind in "fc"]
    refuses = op.__name__ == "random_gamma_slope"
    if getattr(op, "differentiable", True) and followed and sources and not refuses:
        shown += tape.gradient(
            followed, sources, output_gradients=followed, unconnected_gradients="zero"
        )
    return shown


def on_host(found: list[Any], backend: str) -> list[Any]:
    assert all(y.device.startswith(backend) for y in found)
    return [y.to("numpy").numpy() for y in found]


def compare(found: list[Any], wanted: list[Any]) -> None:
    for mine, want in zip(found, wanted, strict=True):
        assert mine.dtype == want.dtype
        np.testing.assert_allclose(mine, want, rtol=1e-9, atol=1e-11)


def wanted_of(op: Any, sample: Sample) -> list[Any]:
    with np.errstate(all="ignore"):
        return on_host(with_slopes(op, sample, given_to(sample, "numpy")), "numpy")


def eagerly(op: Any, sample: Sample) -> None:
    found = on_host(with_slopes(op, sample, given_to(sample, "jax")), "jax")
    compare(found, wanted_of(op, sample))


def compiled(op: Any, sample: Sample) -> str:
    """Compare a program of an op and its gradients; return how it ran."""
    given = given_to(sample, "jax")
    tensors = [x for x in flatten(given) if isinstance(x, gt.Tensor)]

    @gt.function
    def program(*xs: Any) -> list[Any]:
        rest = iter(xs)
        again = map_structure(lambda x: next(rest) if isinstance(x, gt.Tensor) else x, given)
        return with_slopes(op, sample, again)

    compare(on_host(list(program(*tensors)), "jax"), wanted_of(op, sample))
    return str(program.explain(*tensors))


#: Ops that do not run on JAX, and why.
REFUSED = {
    "erf": "JAX has it for real numbers only",
    "erfc": "JAX has it for real numbers only",
    "frexp_exponent": "XLA takes numbers below the least normal one for 0",
}
#: Functions whose samples cannot be compared so.
NOT_COMPARED = {
    "from_dlpack": "it makes a tensor on the current backend",
    "nn.dropout": "a generator is on one backend, and this sample's on NumPy's",
    "partition": "elements on either side are in any order",
}
_VALUES = "the shape of its result, or what it does, depends on values"
_REJECTION = "NumPy draws these numbers by rejection"
#: Ops that XLA does not compile, and why; programs with them run one op after the other.
NOT_COMPILED = {
    **dict.fromkeys(("bincount", "bincount_weighted", "nonzero", "unique"), _VALUES),
    **dict.fromkeys(
        ("average_over_ranks", "end_average_over_ranks"), "it looks whether losses are finite"
    ),
    **dict.fromkeys(("expm", "one_per_occurrence", "random_gamma_slope"), _VALUES),
    **dict.fromkeys(("getitem", "index_add_like"), "by masks: " + _VALUES),
    **dict.fromkeys(
        (
            *("random_gamma", "random_permutation"),
            *(
                f"random_{kind}{like}"
                for kind in ("exponential", "gumbel", "normal", "truncated_normal")
                for like in ("", "_like")
            ),
        ),
        _REJECTION,
    ),
    **dict.fromkeys(("check", "print"), "it acts, which XLA does not"),
    "while_loop": "its gradient: how many steps there are depends on values",
}


def quietly(check: Any, *arguments: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return check(*arguments)


@pytest.mark.parametrize("name", sorted(set(SAMPLES) - set(REFUSED)))
def test_an_op_and_its_gradients_are_one_program(name: str) -> None:
    told = quietly(compiled, gt.registry().ops[name], SAMPLES[name][0])
    assert "jax.jit" in told or name in NOT_COMPILED, told


@pytest.mark.parametrize("name", sorted(set(FUNCTIONS) - set(NOT_COMPARED)))
def test_a_function_and_its_gradients_run_on_jax(name: str) -> None:
    samples = [s for s in FUNCTIONS[name] if any(isinstance(x, np.ndarray) for x in s.inputs)]
    for sample in samples[:1]:  # the others make tensors, on the backend that is current
        quietly(eagerly, as_called(name), sample)
