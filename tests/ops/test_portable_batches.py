"""Batching rules on a library with the array API standard's functions only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from portability import NOT_PORTABLE
from strict_backend import NAME
from table import SAMPLES

import gradtape as gt
from gradtape.testing import Sample
from gradtape.testing.trials.transformations import varied

#: Picking by an index that differs from example to example is indexing by arrays, which the
#: standard has for all axes at once only.
BY_INDEX = {"bincount_weighted", "segment_sum", "take", "take_adjoint"}


pytestmark = pytest.mark.usefixtures("strict")


def mapped(op: Any, sample: Sample, backend: str) -> list[Any]:
    """Return what an op gives for two examples, as NumPy's arrays."""
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    given = [gt.constant(np.stack([x, varied(x)])).to(backend) for x in arrays]

    def run(*tensors: Any) -> Any:
        rest = iter(tensors)
        inputs = [next(rest) if isinstance(x, np.ndarray) else x for x in sample.inputs]
        return op(*inputs, **sample.params)

    found = gt.vmap(run)(*given)
    results = list(found) if isinstance(found, (list, tuple)) else [found]
    assert all(y.device.startswith(backend) for y in results)
    return [y.to("numpy").numpy() for y in results]


@pytest.mark.filterwarnings("ignore:You are comparing", "ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(set(SAMPLES) - set(NOT_PORTABLE) - BY_INDEX))
def test_a_batch_needs_no_more_than_the_standard(name: str) -> None:
    op = gt.registry().ops[name]
    for sample in SAMPLES[name]:
        with np.errstate(all="ignore"):
            try:
                want = mapped(op, sample, "numpy")
            except (TypeError, ValueError):  # no batch runs it, or not these two examples
                continue
            got = mapped(op, sample, NAME)
        for mine, right in zip(got, want, strict=True):
            np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-10)
