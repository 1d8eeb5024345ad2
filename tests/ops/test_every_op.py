"""Every op that ships with gradtape, on every sample: gradients, traces, files, dtypes, layouts."""

from __future__ import annotations

import pytest
from table import SAMPLES

import gradtape as gt
from gradtape.testing import check_op


def own_ops() -> dict[str, gt.core.op.Op]:
    """Return the ops that ship with gradtape."""
    return {
        name: op for name, op in gt.registry().ops.items() if gt.registry().owner("op", name).ours
    }


def test_every_op_has_samples_and_every_sample_an_op() -> None:
    assert sorted(SAMPLES) == sorted(own_ops())


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_op_does_all_that_an_op_must_do(name: str) -> None:
    check_op(gt.registry().ops[name], SAMPLES[name])
