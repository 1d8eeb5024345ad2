"""Sums of products that are products of matrices: their values, gradients, and steps in plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from executing_plans import bits_by, explained

import gradtape as gt

SIZES = dict(zip("abcdefk", (3, 4, 5, 2, 6, 7, 1), strict=True))
#: Subscripts, and whether they are products of matrices.
SUBSCRIPTS = {
    "ab,bc->ac": True,
    "abc,cde->abde": True,
    "abcd,cde->abe": True,
    "abcd,abed->abce": True,  # scores of attention
    "abce,abed->abcd": True,  # its values
    "ba,bc->ac": True,
    "ba,cb->ac": True,
    "ba,bc->ca": True,
    "abc,abd->acd": True,
    "kab,kbc->kac": True,
    "ab,ab->ab": False,
    "ab,ab->": False,
    "ab,b->a": False,
    "aab,bc->ac": False,
    "abc,bcd->cad": False,
    "abc,cbd->ad": False,
}


def operands(subscripts: str, dtype: Any) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    terms = subscripts.split("->")[0].split(",")
    return [random.normal(size=[SIZES[a] for a in term]).astype(dtype) for term in terms]


def with_gradients(subscripts: str) -> Any:
    """Return a function of two arrays that returns the einsum and both gradients."""

    @gt.function
    def run(x: Any, y: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = gt.einsum(subscripts, x, y)
            total = gt.sum(gt.sin(z))
        return [z, *tape.gradient(total, [x, y])]

    return run


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_and_its_gradients_have_the_same_bits(subscripts: str, dtype: str) -> None:
    run, args = with_gradients(subscripts), operands(subscripts, dtype)
    found = bits_by("planned", run, *map(gt.constant, args))
    assert found == bits_by("plain", run, *map(gt.constant, args))
    assert ("call of the kernel of einsum" not in explained(run)) == SUBSCRIPTS[subscripts]


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
def test_einsum_is_numpys(subscripts: str, dtype: str) -> None:
    args = [np.round(3 * x).astype(dtype) for x in operands(subscripts, "float64")]
    found = gt.einsum(subscripts, *args)
    np.testing.assert_allclose(found, np.einsum(subscripts, *args), rtol=1e-6)


def test_axes_of_size_1_and_0_are_summed_as_numpy_does() -> None:
    x, y = np.ones((3, 1)), np.ones((4, 5))  # the axis of size 1 is repeated
    np.testing.assert_array_equal(gt.einsum("ab,bc->ac", x, y), np.full((3, 5), 4.0))
    x, y = np.ones((3, 0)), np.ones((0, 5))
    np.testing.assert_array_equal(gt.einsum("ab,bc->ac", x, y), np.zeros((3, 5)))
