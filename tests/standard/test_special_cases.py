"""Elementwise functions at zeros, infinities and nan, in all combinations.

For complex numbers, Python's ``cmath`` has the values of the C standard, which the array API
standard repeats. For real ones and for pairs, NumPy has those of IEEE 754.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import gradtape as gt

SPECIAL = (0.0, -0.0, 1.5, -1.5, float("inf"), -float("inf"), float("nan"))
COMPLEX: dict[str, Callable[[complex], complex]] = {
    **{name: getattr(cmath, name) for name in "acos acosh asin asinh atan atanh".split()},
    **{name: getattr(cmath, name) for name in "cos cosh exp log log10 sin sinh sqrt".split()},
    **{name: getattr(cmath, name) for name in "tan tanh".split()},
    "expm1": lambda z: cmath.exp(z) - 1,
    "log1p": lambda z: cmath.log(complex(1 + z.real, z.imag)),
}
#: Functions whose values at a nan and a zero were settled after C 1999, which Python follows.
SETTLED_LATER = ("acosh", "tan", "tanh")
UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor isfinite isinf isnan log "
    "log10 log1p log2 negative positive reciprocal round sign signbit sin sinh sqrt square tan "
    "tanh trunc"
).split()
BINARY = (
    "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract"
).split()


def parts(z: Any) -> np.ndarray[Any, Any]:
    """Return the real and imaginary part, with 1 for a nan and signs of zeros."""
    z = np.asarray(z)
    both = np.array([z.real, z.imag], np.float64)
    return np.array([both, np.signbit(both) & ~np.isnan(both)])


def expected(function: Callable[[complex], complex], z: complex) -> complex | None:
    """Return the value of the C standard; None where Python raises."""
    try:
        return function(z)
    except (OverflowError, ValueError):
        return None


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_functions_have_the_values_of_the_c_standard(name: str) -> None:
    for a, b in product(SPECIAL, SPECIAL):
        z = complex(a, b)
        value = expected(COMPLEX[name], z)
        found = getattr(gt, name)(gt.constant(z, "complex128")).item()
        if value is None:
            assert not np.isfinite(found), z
            continue
        if name in SETTLED_LATER and np.isnan(z) and 0 in (a, b):
            assert np.isnan(found), z
            continue
        ours, theirs = np.array([[x.real, x.imag] for x in (found, value)])
        if np.isnan(theirs).any():  # the sign of the other part is unspecified
            ours, theirs = np.abs(ours), np.abs(theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-15, err_msg=f"{name}({z})")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_real_functions_have_numpys_values(name: str, dtype: str) -> None:
    every = np.array(list(product(SPECIAL, SPECIAL)), dtype).T
    inputs = every if name in BINARY else every[:1]
    found = getattr(gt, name)(*map(gt.constant, inputs)).numpy()
    np.testing.assert_array_equal(parts(found), parts(getattr(np, name)(*inputs)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_functions_of_traces_have_the_same_values() -> None:
    every = gt.constant([complex(a, b) for a, b in product(SPECIAL, SPECIAL)], "complex128")
    for name in COMPLEX:
        function = getattr(gt, name)
        eager, traced = function(every), gt.function(function)(every)
        np.testing.assert_array_equal(parts(traced.numpy()), parts(eager.numpy()), name)


def test_expm1_of_complex_zeros_keeps_the_sign_of_the_imaginary_part() -> None:
    for a, b in product((0.0, -0.0), (0.0, -0.0)):
        found = gt.expm1(gt.constant(complex(a, b))).item()
        assert (np.signbit(found.real), np.signbit(found.imag)) == (False, np.signbit(b))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_expm1_of_lists_of_complex_numbers_has_its_limits() -> None:
    assert gt.expm1([complex(np.inf, 0.0), 0j]).tolist() == [complex(np.inf, 0.0), 0j]


def test_expm1_of_complex_numbers_has_gradients_of_both_orders() -> None:
    z = gt.constant([1e-9 + 1e-9j, 2.0 - 1.0j, -3.0 + 0.5j], "complex128")
    first = gt.grad(lambda z: gt.real(gt.sum(gt.expm1(z))))
    np.testing.assert_allclose(first(z).numpy(), np.conj(np.exp(z.numpy())))
    second = gt.grad(lambda z: gt.real(gt.sum(gt.conj(first(z)))))
    np.testing.assert_allclose(second(z).numpy(), np.conj(np.exp(z.numpy())))
