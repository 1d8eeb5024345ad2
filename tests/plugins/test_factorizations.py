"""Factors of matrices, norms, least squares: NumPy's attributes, degenerate cases."""

from __future__ import annotations

import numpy as np
import pytest
from families.factorizations import R, near_identity, numpy_hermitian

import gradtape as gt

linalg = gt.linalg


def test_numpys_functions_reach_ours():
    x = gt.constant(near_identity())
    with gt.GradientTape() as tape:
        tape.watch(x)
        w = np.linalg.eigvalsh(x)
        q, _ = np.linalg.qr(x)
        y = np.linalg.pinv(x) + np.kron(x, x)[:3, :3] + np.linalg.matrix_power(x, 2)
        s = np.linalg.svd(x, compute_uv=False)
    assert all(type(t) is gt.Tensor for t in (w, q, y, s))
    assert tape.gradient([w, q, y, s], x).shape == (3, 3)


def test_results_have_numpys_attributes():
    x = gt.constant(numpy_hermitian(R(3, 3)))
    for name in ("qr", "eig", "eigh", "svd", "slogdet"):
        for run in (getattr(np.linalg, name), gt.function(getattr(linalg, name))):
            mine, theirs = run(x), getattr(np.linalg, name)(x.numpy())
            assert mine._fields == theirs._fields
            for field in mine._fields:
                assert getattr(mine, field).shape == np.shape(getattr(theirs, field))


def test_eigenvalues_that_are_equal():
    def f(x):
        w, v = linalg.eigh(x)
        return gt.sum(w * w) + gt.sum((v * w) @ gt.matrix_transpose(v))

    # sum of squares, and the sum of the elements of x itself: neither depends on the basis
    slope = gt.grad(f)(gt.constant(np.eye(3)))
    np.testing.assert_allclose(slope, 2 * np.eye(3) + np.ones((3, 3)), rtol=1e-12)


def test_singular_values_that_are_zero():
    x = gt.constant(np.outer([1.0, 2.0, 3.0], [1.0, -1.0]))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = linalg.svdvals(x)[0]
    u, _, vh = np.linalg.svd(x.numpy())
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.outer(u[:, 0], vh[0]))
    with gt.GradientTape() as tape:
        tape.watch(x)
        _, s, _ = linalg.svd(gt.zeros((2, 2)) * x[0])
    assert np.isfinite(tape.gradient(s, x).numpy()).all()


def test_eig_is_complex_for_real_values_too():
    w, v = linalg.eig(gt.constant(np.diag([1.0, 2.0]).astype("float32")))
    assert w.dtype == v.dtype == "complex64"
    assert linalg.eigvals(gt.constant([[0.0, 1.0], [-1.0, 0.0]])).dtype == "complex64"


def test_integers_are_factored_as_float64():
    x = np.array([[2, 1], [1, 3]])
    assert linalg.svdvals(x).dtype == linalg.eigvalsh(x).dtype == linalg.expm(x).dtype == "float64"
    assert linalg.matrix_power(gt.constant(x), 3).tolist() == np.linalg.matrix_power(x, 3).tolist()
    assert linalg.matrix_power(gt.constant(x), 0).tolist() == [[1, 0], [0, 1]]
    assert linalg.norm(x, 3, axis=0).dtype == "float64"


def test_norms_that_count_or_are_no_norms():
    x = np.array([[0.0, -3.0, 4.0], [0.0, 0.0, 0.0]])
    for ord in (0, 0.5, 1, 2, 3, np.inf, -np.inf):
        ours = linalg.norm(gt.constant(x), ord, axis=1)
        np.testing.assert_allclose(ours.numpy(), np.linalg.norm(x, ord, axis=1))
    for ord in (1, 2, 3):
        zero = gt.zeros(3)
        with gt.GradientTape() as tape:
            tape.watch(zero)
            y = linalg.norm(zero, ord)
        assert tape.gradient(y, zero).tolist() == [0.0, 0.0, 0.0]


def test_rank():
    x = np.stack([np.eye(3), np.ones((3, 3)), np.zeros((3, 3))])
    assert linalg.matrix_rank(x).tolist() == [3, 1, 0]
    assert linalg.matrix_rank(np.diag([1.0, 0.1]), tol=0.5).item() == 1
    assert linalg.matrix_rank(np.diag([4.0, 1.0]), rtol=0.5).item() == 1
    assert linalg.matrix_rank(np.zeros((0, 3))).item() == 0


def test_pinv_cuts_small_singular_values():
    x = np.diag([1.0, 1e-3])
    np.testing.assert_allclose(linalg.pinv(x, 1e-2).numpy(), np.diag([1.0, 0.0]))
    np.testing.assert_allclose(linalg.pinv(x, rtol=1e-4).numpy(), np.diag([1.0, 1e3]))
    assert linalg.pinv(np.zeros((0, 3))).shape == (3, 0)
    _, residuals, rank, s = linalg.lstsq(R(4, 2), R(4))
    assert (residuals.shape, rank.item(), s.shape) == ((1,), 2, (2,))


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-12, 1e12, 1e200])
def test_the_gradient_of_expm_is_as_exact_for_any_upstream_gradient(size):
    scipy_linalg = pytest.importorskip("scipy.linalg")
    rng = np.random.default_rng(0)
    a, g = rng.normal(size=(2, 3, 3))
    want = scipy_linalg.expm_frechet(a.T, g, compute_expm=False)
    _, pull = gt.vjp(linalg.expm, gt.constant(a))
    found = pull(gt.constant(g * size))[0].numpy()
    np.testing.assert_allclose(found, want * size, rtol=1e-13)


def test_expm_of_nothing_and_of_large_norms():
    assert linalg.expm(np.zeros((0, 0))).shape == (0, 0)
    np.testing.assert_allclose(linalg.expm(np.diag([-700.0, 2.0])).numpy(),
                               np.diag(np.exp([-700.0, 2.0])), atol=1e-12)  # fmt: skip


def test_the_gradient_of_a_complete_tall_factor_is_refused():
    x = gt.constant(R(3, 2))
    with gt.GradientTape() as tape:
        tape.watch(x)
        q, _ = linalg.qr(x, "complete")
    with pytest.raises(ValueError, match=r"qr.*complete"):
        tape.gradient(q, x)


def test_zeros_on_a_diagonal_are_an_error_that_names_the_op():
    with pytest.raises(np.linalg.LinAlgError, match="solve_triangular"):
        linalg.solve_triangular(gt.zeros((2, 2)), gt.ones(2))


# -- triangular systems --------------------------------------------------------------------------


def triangle(kind, size):
    """Return a lower triangle, some of whose blocks are nearly singular."""
    rng = np.random.default_rng(0)
    if kind == "Gaussian process":
        times = np.linspace(0, 1, size)
        covariance = np.exp(-((times[:, None] - times) ** 2) / 0.02)
        return np.linalg.cholesky(covariance + 1e-10 * np.eye(size))
    random = np.tril(rng.standard_normal((size, size)))
    if kind == "graded":
        return random * 10.0 ** (-np.arange(size) % 16)[:, None]
    if kind == "tiny":
        return (random / size + np.eye(size)) * 1e-310
    return random


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("kind", ["Gaussian process", "graded", "random", "tiny"])
@pytest.mark.parametrize("size", [48, 63, 64, 65, 200])
def test_large_triangular_systems_are_solved_as_accurately_as_by_substitution(size, kind, lower):
    a = triangle(kind, size)
    a = a if lower else np.ascontiguousarray(a[::-1, ::-1])
    b = a @ np.random.default_rng(1).standard_normal((size, 2))
    x = linalg.solve_triangular(a, b, lower=lower).numpy()
    rest = np.abs(a @ x - b)
    # denormal products are rounded to multiples of the least number
    bound = 2 * size * np.finfo(float).eps * (np.abs(a) @ np.abs(x)) + size * 5e-324
    assert (rest <= bound).all()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("place", [17, 70, 99])
def test_nan_reaches_only_what_depends_on_it(place, value, lower):
    a = np.eye(100) + np.tril(np.random.default_rng(0).random((100, 100)) / 100)
    b = np.ones((100, 2))
    b[place if lower else 99 - place, 1] = value
    x = linalg.solve_triangular(a if lower else a[::-1, ::-1], b, lower=lower).numpy()
    x = x if lower else x[::-1]
    assert np.isfinite(x[:, 0]).all()
    assert np.isfinite(x[:place, 1]).all()
    assert not np.isfinite(x[place:, 1]).any()
