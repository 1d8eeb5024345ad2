"""Every op that ships with gradtape, on every sample: gradients, traces, files, dtypes, layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from table import SAMPLES

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.testing import check_op


def own_ops() -> dict[str, Op]:
    """Return the ops that ship with gradtape, without late ones, which other tests may load."""
    return {name: op for name, op in gt.registry().ops.items() if "::" not in name}


def test_every_op_has_samples_and_every_sample_an_op() -> None:
    assert sorted(SAMPLES) == sorted(own_ops())


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_op_does_all_that_an_op_must_do(name: str) -> None:
    check_op(gt.registry().ops[name], SAMPLES[name], backends=())


# these compare numbers, which complex ones allow by NumPy's order of them only
ORDERED = set("clip fmax fmin max maximum min minimum sort".split())
OF_GRAPHS = {"cond", "scan", "while_loop"}  # the samples' graphs are of real numbers
REAL_GRADIENTS = {"digamma"}  # SciPy's polygamma, which its gradient needs, refuses complex numbers


def is_complex(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype.kind == "c"


def test_an_op_with_gradients_that_takes_complex_numbers_has_complex_samples() -> None:
    taken = set()
    for name, op in own_ops().items():
        samples = SAMPLES[name]
        if op.differentiable and not any(is_complex(x) for s in samples for x in s.inputs):
            inputs = [
                x + 0.3j if isinstance(x, np.ndarray) and x.dtype.kind == "f" else x
                for x in samples[0].inputs
            ]
            try:
                op(*inputs, **samples[0].params)
            except (TypeError, ValueError):
                continue
            taken.add(name)
    assert taken == ORDERED | REAL_GRADIENTS | OF_GRAPHS
