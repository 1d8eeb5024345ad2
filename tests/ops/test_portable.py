"""Every op on a library with the array API standard's functions only, gradients included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from portability import NOT_PORTABLE
from strict_backend import NAME, Plugin
from table import SAMPLES

import gradtape as gt
from gradtape.testing import Sample


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    gt.register_plugin(Plugin(), NAME)
    yield
    gt.unregister_plugin(NAME)


def slopes(op: Any, sample: Sample, backend: str) -> list[Any]:
    """Return what the op and its gradients are on a backend, as NumPy's arrays."""
    fed = sample.feed(*(gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    given = [
        x.to(backend) if isinstance(x, gt.Tensor) else x
        for x in (fed if isinstance(fed, tuple) else (fed,))
    ]
    sources = [x for x in given if isinstance(x, gt.Tensor) and x.dtype.kind in "fc"]
    with gt.GradientTape() as tape:
        tape.watch(sources)
        results = op(*given, **sample.params)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    assert all(y.device.startswith(backend) for y in results)
    found = [y.to("numpy") for y in results]
    shown = sample.view(*found)
    shown = list(shown) if isinstance(shown, (list, tuple)) else [shown]
    followed = [y for y in results if y.dtype.kind in "fc"]
    if op.differentiable and followed and op.name != "random_gamma_slope":  # which refuses
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


@pytest.mark.filterwarnings("ignore:You are comparing", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_op_and_its_gradients_need_no_more_than_the_standard(name: str) -> None:
    op = gt.registry().ops[name]
    if name not in NOT_PORTABLE:
        for sample in SAMPLES[name]:
            compare(op, sample)
        return
    refused = 0
    for sample in SAMPLES[name]:
        try:
            compare(op, sample)
        except (AttributeError, IndexError, TypeError):
            refused += 1
    assert refused, f"{name} is portable: take it out of NOT_PORTABLE"


def test_what_is_not_portable_is_an_op() -> None:
    assert set(NOT_PORTABLE) <= set(SAMPLES)
