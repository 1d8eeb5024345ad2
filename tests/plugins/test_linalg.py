"""Products, norms, solvers, determinants: any rank, complex values, degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest
from families.linalg import C, R, near_identity
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt


@pytest.mark.parametrize(
    "fn", [gt.matmul, lambda x, y: gt.einsum("...i,...i->...", x, y), gt.outer]
)
def test_one_trace_serves_every_rank(fn):
    @gt.function(input_signature=[gt.TensorSpec(None, "float64")] * 2)
    def traced(x, y):
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = fn(x, y)
        return tape.gradient(z, [x, y])

    for shape in [(3,), (3, 3), (2, 3, 3)]:
        x, y = gt.constant(R(*shape)), gt.constant(R(*shape))
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = fn(x, y)
        for mine, theirs in zip(traced(x, y), tape.gradient(z, [x, y]), strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy())


COMPLEX = {
    "matmul": (gt.matmul, [C(2, 3), C(3, 2)]),
    "matmul real": (gt.matmul, [R(2, 3), C(4, 3, 2)]),
    "tensordot": (lambda x, y: gt.tensordot(x, y, 1), [C(2, 3), R(3, 2)]),
    "einsum": (lambda x, y: gt.einsum("iij,jk->ik", x, y), [C(2, 2, 3), R(3, 2)]),
    "solve": (gt.linalg.solve, [near_identity() + 0.3j * R(3, 3), C(3, 1)]),
    "inv": (gt.linalg.inv, [near_identity() + 0.3j * R(3, 3)]),
    "det": (gt.linalg.det, [C(3, 3)]),
    "norm": (gt.linalg.norm, [C(3, 4)]),
    "norm 3": (lambda x: gt.linalg.norm(x, 3, axis=0), [C(3, 4)]),
    "norm 2": (lambda x: gt.linalg.norm(x, 2), [C(3, 4)]),
    "norm nuc": (lambda x: gt.linalg.norm(x, "nuc"), [C(3, 4)]),
    "slogdet": (gt.linalg.slogdet, [C(2, 3, 3)]),
    "cholesky": (
        lambda x: gt.linalg.cholesky(x @ gt.conj(gt.transpose(x)) + 2 * np.eye(3)),
        [C(3, 3)],
    ),
}


@pytest.mark.parametrize("case", COMPLEX)
def test_complex_gradients(case):
    fn, inputs = COMPLEX[case]
    check_gradients(fn, *inputs)


def test_mixed_dtypes_promote_and_gradients_come_back_in_their_own():
    x, y = gt.constant(R(2, 3), "float32"), gt.constant(R(3, 2))
    for fn in (
        gt.matmul,
        lambda x, y: gt.einsum("ij,jk", x, y),
        lambda x, y: gt.tensordot(x, y, 1),
    ):
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = fn(x, y)
        assert z.dtype == "float64"
        assert [g.dtype.name for g in tape.gradient(z, [x, y])] == ["float32", "float64"]


def test_cholesky():
    a = near_identity(2)
    a = a @ np.swapaxes(a, -1, -2)
    lower = gt.linalg.cholesky(a)
    np.testing.assert_allclose(lower.numpy(), np.linalg.cholesky(a))
    check_gradients(lambda x: gt.linalg.cholesky(x @ gt.matrix_transpose(x)), near_identity(2))
    x = gt.constant(a)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.linalg.cholesky(x)
    g = tape.gradient(y, x).numpy()
    np.testing.assert_allclose(g, np.swapaxes(g, -1, -2))


def test_det_of_singular_matrices_has_its_gradient():
    singular = np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [0.0, 1.0, 5.0]])
    check_gradients(gt.linalg.det, singular, order=1)
    x = gt.zeros((2, 2))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.linalg.det(x)
    assert tape.gradient(y, x).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_slogdet_sign():
    sign, logarithm = gt.linalg.slogdet(gt.constant([[0.0, 1.0], [1.0, 0.0]]))
    assert (sign.item(), logarithm.item()) == (-1.0, 0.0)


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
def test_the_norm_of_zero_has_gradient_zero(axis):
    x = gt.zeros((2, 3))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.linalg.norm(x, axis=axis)
    np.testing.assert_array_equal(tape.gradient(y, x).numpy(), np.zeros((2, 3)))


def test_euclidean_is_a_name_of_the_norm():
    x = R(2, 3)
    assert gt.linalg.norm(x, "euclidean").item() == pytest.approx(np.linalg.norm(x))
    assert np.linalg.norm(gt.constant(x)).item() == pytest.approx(np.linalg.norm(x))


def test_singular_matrices_are_an_error_that_names_the_op():
    zeros = gt.zeros((2, 2))
    with pytest.raises(np.linalg.LinAlgError, match="inv"):
        gt.linalg.inv(zeros)
    with pytest.raises(np.linalg.LinAlgError, match="solve"):
        gt.linalg.solve(zeros, gt.ones(2))
    with pytest.raises(np.linalg.LinAlgError, match="cholesky"):
        gt.linalg.cholesky(zeros - 1.0)
    with pytest.raises(TypeError, match="einsum"):
        gt.einsum(zeros, zeros)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3), st.integers(1, 2))
def test_einsum_agrees_with_matmul(n, m, k, b):
    x, y = gt.constant(R(b, n, k)), gt.constant(R(b, k, m))
    grads = []
    for fn in (gt.matmul, lambda x, y: gt.einsum("bij,bjk->bik", x, y)):
        with gt.GradientTape() as tape:
            tape.watch([x, y])
            z = fn(x, y)
        grads.append([z.numpy(), *(g.numpy() for g in tape.gradient(z, [x, y]))])
    for mine, theirs in zip(*grads, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-12)
