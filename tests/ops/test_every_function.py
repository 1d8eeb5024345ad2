"""Every public function that is made of ops, on every sample, as every op is checked."""

from __future__ import annotations

import pytest
from table import FUNCTIONS, NOT_SAMPLED, as_called, composed

from gradtape.testing import check_op


def test_every_function_has_samples_and_every_sample_a_function() -> None:
    assert sorted({**FUNCTIONS, **NOT_SAMPLED}) == sorted(composed())


@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_function_does_all_that_an_op_must_do(name: str) -> None:
    check_op(as_called(name), FUNCTIONS[name], backends=())
