"""Every op on a library with the array API standard's functions only, gradients included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from portability import FUNCTIONS_NOT_PORTABLE, NOT_PORTABLE
from strict_backend import NAME
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.core.extend import flatten, map_structure
from gradtape.testing import Sample

pytestmark = pytest.mark.usefixtures("strict")


def slopes(op: Any, sample: Sample, backend: str) -> list[Any]:
    """Return what an op or function and its gradients are on a backend, as NumPy's arrays."""
    fed = sample.feed(*(gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    moved: dict[int, Any] = {}  # a tensor that is given twice stays one

    def move(x: Any) -> Any:
        return moved.setdefault(id(x), x.to(backend)) if isinstance(x, gt.Tensor) else x

    given = map_structure(move, fed if isinstance(fed, tuple) else (fed,))
    sources = [x for x in flatten(given) if isinstance(x, gt.Tensor) and x.dtype.kind in "fc"]
    with gt.GradientTape() as tape:
        tape.watch(sources)
        results = op(*given, **sample.params)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    assert all(y.device.startswith(backend) for y in results)
    found = [y.to("numpy") for y in results]
    shown = sample.view(*found)
    shown = list(shown) if isinstance(shown, (list, tuple)) else [shown]
    followed = [y for y in results if y.dtype.kind in "fc"]
    refuses = op.__name__ == "random_gamma_slope"
    if getattr(op, "differentiable", True) and followed and sources and not refuses:
        shown += tape.gradient(
            followed, sources, output_gradients=followed, unconnected_gradients="zero"
        )
    return [y.to("numpy").numpy() for y in shown]


def compare(op: Any, sample: Sample) -> None:
    with np.errstate(all="ignore"):
        found, wanted = slopes(op, sample, NAME), slopes(op, sample, "numpy")
    for mine, want in zip(found, wanted, strict=True):
        assert mine.dtype == want.dtype
        np.testing.assert_allclose(mine, want, rtol=1e-9, atol=1e-11)


def check(op: Any, samples: list[Sample], portable: bool) -> None:
    """Compare a library of the standard's functions with NumPy, or see that it refuses."""
    refused = 0
    for sample in samples:
        try:
            compare(op, sample)
        except (AssertionError, AttributeError, IndexError, TypeError):
            if portable:
                raise
            refused += 1
    assert portable or refused, f"{op.__name__} is portable: say so in portability.py"


@pytest.mark.filterwarnings("ignore:You are comparing", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_op_and_its_gradients_need_no_more_than_the_standard(name: str) -> None:
    check(gt.registry().ops[name], SAMPLES[name], name not in NOT_PORTABLE)


@pytest.mark.filterwarnings("ignore:You are comparing", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_function_and_its_gradients_need_no_more_than_the_standard(name: str) -> None:
    samples = [s for s in FUNCTIONS[name] if any(isinstance(x, np.ndarray) for x in s.inputs)]
    if samples:  # the others make tensors, on the backend that is current
        check(as_called(name), samples, name not in FUNCTIONS_NOT_PORTABLE)


def test_what_is_not_portable_is_an_op_or_a_function() -> None:
    assert set(NOT_PORTABLE) <= set(SAMPLES)
    assert set(FUNCTIONS_NOT_PORTABLE) <= set(FUNCTIONS)
