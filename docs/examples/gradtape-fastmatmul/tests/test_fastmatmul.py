"""The kernel: it is in use, its products are exact, and it leaves others alone."""

import numpy as np
import pytest
from gradtape_fastmatmul import EXACT, fits, matmul

import gradtape as gt

RNG = np.random.default_rng(0)


def test_the_kernel_takes_precedence_over_gradtapes_own():
    found = gt.registry().candidates("kernel", ("matmul", "numpy"))
    assert [made.info.distribution for made in found][:2] == ["gradtape-fastmatmul", "gradtape"]
    assert found[0].item is matmul


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("shapes", [((5, 7), (7, 3)), ((2, 5, 7), (7, 3)), ((7,), (7, 3))])
def test_products_of_integers_are_numpys(dtype, shapes):
    x, y = (RNG.integers(0, 5, size=shape).astype(dtype) for shape in shapes)
    assert fits(x, y)
    found = gt.matmul(gt.constant(x), gt.constant(y))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.matmul(x, y))


def test_integers_that_wrap_around_do_so_as_in_numpy():
    x = np.full((2, 2), 100, "int8")
    np.testing.assert_array_equal(gt.matmul(gt.constant(x), gt.constant(x)), np.matmul(x, x))
    x = np.full((1, 2), EXACT // 2)
    assert not fits(x, x.T)
    np.testing.assert_array_equal(gt.matmul(gt.constant(x), gt.constant(x.T)), x @ x.T)


def test_products_of_floats_and_their_gradients_are_as_before():
    x = gt.constant(RNG.normal(size=(3, 4)))
    np.testing.assert_allclose(gt.matmul(x, x.T), x.numpy() @ x.numpy().T)
    slope = gt.grad(lambda x: gt.sum(gt.matmul(x, gt.ones((4, 2), "float64"))))(x)
    np.testing.assert_allclose(slope, np.full((3, 4), 2.0))
    with pytest.raises(ValueError, match="matmul"):
        gt.matmul(x, x)
