"""Every op on a library with the array API standard's functions only, gradients included."""

from __future__ import annotations

import pytest
from portability import FUNCTIONS_NOT_PORTABLE, NOT_PORTABLE
from strict_backend import NAME
from table import FUNCTIONS, SAMPLES

from gradtape.testing import check_backend

pytestmark = pytest.mark.usefixtures("strict")


def check(name: str, portable: bool) -> None:
    """Compare a library of the standard's functions with NumPy, or see that it refuses."""
    report = check_backend(NAME, only=[name], show=False)
    assert not report.wrong
    assert portable or report.refused, f"{name} is portable: say so in portability.py"
    assert not portable or not report.refused, str(report)


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_the_op_and_its_gradients_need_no_more_than_the_standard(name: str) -> None:
    check(name, name not in NOT_PORTABLE)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_the_function_and_its_gradients_need_no_more_than_the_standard(name: str) -> None:
    check(f"gt.{name}", name not in FUNCTIONS_NOT_PORTABLE)


def test_what_is_not_portable_is_an_op_or_a_function() -> None:
    assert set(NOT_PORTABLE) <= set(SAMPLES)
    assert set(FUNCTIONS_NOT_PORTABLE) <= set(FUNCTIONS)
