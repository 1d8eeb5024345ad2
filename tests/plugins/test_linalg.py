"""Products, norms, solvers, determinants: values, gradients, traces at any rank, errors."""

from __future__ import annotations

import numpy as np
import pytest
from gradcheck import check_gradients
from hypothesis import given, settings
from hypothesis import strategies as st

import gradtape as gt

RNG = np.random.default_rng(0)


def R(*shape):
    return RNG.standard_normal(shape)


def C(*shape):
    return R(*shape) + 1j * R(*shape)


def near_identity(*batch, n=3):
    return R(*batch, n, n) * 0.5 + 3 * np.eye(n)


MATMUL = [
    ((3, 4), (4, 2)),
    ((4,), (4,)),
    ((4,), (4, 2)),
    ((3, 4), (4,)),
    ((5, 3, 4), (4, 2)),
    ((3, 4), (5, 4, 2)),
    ((5, 3, 4), (4,)),
    ((4,), (5, 4, 2)),
    ((2, 1, 3, 4), (5, 4, 2)),
    ((2, 3, 4), (2, 4, 2)),
    ((0, 4), (4, 2)),
    ((3, 0), (0, 2)),
    ((0, 3, 4), (4, 2)),
    ((5, 0, 4), (4, 2)),
]
TENSORDOT = [
    ((2, 3, 4), (3, 4, 5), 2),
    ((2, 3), (4, 5), 0),
    ((2, 3, 4), (4, 5, 3), ((1, 2), (2, 0))),
    ((2, 3, 4), (5, 4, 2), ((0, -1), (-1, 1))),
    ((3,), (3,), 1),
    ((2, 3), (3, 2), (0, 1)),
]
EINSUM = [
    ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)),
    (" i j , j k -> k i ", (2, 3), (3, 4)),
    ("ba", (2, 3)),
    ("ii->i", (3, 3)),
    ("ii", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("iij,i->ji", (3, 3, 2), (3,)),
    ("iii->i", (2, 2, 2)),
    ("...ij,...jk->...ik", (2, 1, 2, 3), (4, 3, 2)),
    ("...i->...", (2, 3, 4)),
    ("...,i->...i", (2,), (3,)),
    ("...ij->...ji", (2, 3)),
    ("i...,i...", (2, 3), (2, 3)),
    ("i,j->ij", (2,), (3,)),
    ("ij->", (2, 3)),
    (",i->i", (), (3,)),
    ("i,ij,j", (2,), (2, 3), (3,)),
    ("bij,bjk,kl->bil", (2, 2, 3), (2, 3, 2), (2, 2)),
    ("ij,ij->ij", (2, 3), (1, 3)),
    ("ij,jk->ik", (2, 3), (1, 4)),
    ("ij,kl->ik", (2, 3), (2, 3)),
    ("ij,jk->ik", (0, 3), (3, 4)),
]

CASES = {
    **{f"matmul {a} {b}": (gt.matmul, np.matmul, [R(*a), R(*b)]) for a, b in MATMUL},
    **{
        f"tensordot {a} {b} {axes}": (
            lambda x, y, axes=axes: gt.tensordot(x, y, axes),
            lambda x, y, axes=axes: np.tensordot(x, y, axes),
            [R(*a), R(*b)],
        )
        for a, b, axes in TENSORDOT
    },
    **{
        f"einsum {subscripts} {shapes}": (
            lambda *xs, s=subscripts: gt.einsum(s, *xs),
            lambda *xs, s=subscripts: np.einsum(s, *xs),
            [R(*shape) for shape in shapes],
        )
        for subscripts, *shapes in EINSUM
    },
    "dot of numbers": (gt.dot, np.dot, [R(), R(3)]),
    "dot of vectors": (gt.dot, np.dot, [R(3), R(3)]),
    "dot beyond": (gt.dot, np.dot, [R(2, 3), R(4, 3, 2)]),
    "outer": (gt.outer, np.outer, [R(3), R(2, 2)]),
    "trace": (gt.linalg.trace, np.trace, [R(3, 4)]),
    "trace offset": (
        lambda x: gt.trace(x, 1, 0, 2),
        lambda x: np.trace(x, 1, 0, 2),
        [R(3, 2, 4)],
    ),
    "solve": (gt.linalg.solve, np.linalg.solve, [near_identity(), R(3, 2)]),
    "solve a vector": (gt.linalg.solve, np.linalg.solve, [near_identity(2), R(3)]),
    "solve broadcasting": (gt.linalg.solve, np.linalg.solve, [near_identity(), R(2, 3, 2)]),
    "inv": (gt.linalg.inv, np.linalg.inv, [near_identity(2)]),
    "det": (gt.linalg.det, np.linalg.det, [near_identity(2)]),
    "det 1x1": (gt.linalg.det, np.linalg.det, [R(1, 1)]),
    "slogdet": (
        lambda x: gt.linalg.slogdet(x)[1],
        lambda x: np.linalg.slogdet(x)[1],
        [-near_identity(2)],
    ),
    "norm": (gt.linalg.norm, np.linalg.norm, [R(3, 4)]),
    "norm axis": (
        lambda x: gt.linalg.norm(x, axis=-1, keepdims=True),
        lambda x: np.linalg.norm(x, axis=-1, keepdims=True),
        [R(3, 4)],
    ),
    "norm pair": (
        lambda x: gt.linalg.norm(x, axis=(0, 2)),
        lambda x: np.linalg.norm(x, axis=(0, 2)),
        [R(3, 2, 4)],
    ),
    **{
        f"norm {ord} of vectors": (
            lambda x, ord=ord: gt.linalg.norm(x, ord, axis=1),
            lambda x, ord=ord: np.linalg.norm(x, ord, axis=1),
            [R(3, 4)],
        )
        for ord in (1, 2, 3, 2.5, -1, -2, np.inf, -np.inf)
    },
    **{
        f"norm {ord} of matrices": (
            lambda x, ord=ord: gt.linalg.norm(x, ord),
            lambda x, ord=ord: np.linalg.norm(x, ord),
            [R(3, 4)],
        )
        for ord in (1, -1, 2, -2, np.inf, -np.inf, "fro", "nuc")
    },
    "norm 1 of matrices, kept": (
        lambda x: gt.linalg.norm(x, 1, axis=(-1, 0), keepdims=True),
        lambda x: np.linalg.norm(x, 1, axis=(-1, 0), keepdims=True),
        [R(3, 2, 4)],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_values_are_numpys(case):
    ours, theirs, inputs = CASES[case]
    result, want = ours(*map(gt.constant, inputs)).numpy(), theirs(*inputs)
    assert np.shape(result) == np.shape(want)
    np.testing.assert_allclose(result, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("case", CASES)
def test_gradients_of_two_orders(case):
    ours, _, inputs = CASES[case]
    check_gradients(ours, *inputs)


@pytest.mark.parametrize("case", CASES)
def test_float32_stays_float32(case):
    ours, _, inputs = CASES[case]
    xs = [gt.constant(x.astype("float32")) for x in inputs]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        y = ours(*xs)
    assert y.dtype == "float32"
    assert all(g.dtype == "float32" for g in tape.gradient(y, xs))


@pytest.mark.parametrize("case", CASES)
def test_one_trace_with_unknown_sizes_gives_values_and_gradients(case):
    ours, _, inputs = CASES[case]
    specs = [gt.TensorSpec([None] * np.ndim(x), "float64") for x in inputs]
    xs = [gt.constant(x) for x in inputs]

    def run(*xs):
        with gt.GradientTape() as tape:
            tape.watch(xs)
            y = ours(*xs)
        return y, tape.gradient(y, list(xs))

    want, grads = run(*xs)
    for traced in (gt.function(run), gt.function(input_signature=specs)(run)):
        y, slopes = traced(*xs)
        np.testing.assert_allclose(y.numpy(), want.numpy(), rtol=1e-12)
        for g, slope in zip(grads, slopes, strict=True):
            np.testing.assert_allclose(slope.numpy(), g.numpy(), rtol=1e-10, atol=1e-12)
    output = gt.function(ours).get_concrete_function(*xs).graph.outputs[0]
    assert output.shape == want.shape


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


M = gt.constant(R(3, 4))
SQUARE = gt.constant(near_identity())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x, a: gt.matmul(x, x), r"matmul.*\(3, 4\).*4 is not 3"),
        (lambda x, a: gt.matmul(x, gt.sum(x)), r"matmul.*\(\).*multiply"),
        (lambda x, a: gt.matmul(gt.stack([a, a]), gt.stack([a, a, a])), "matmul"),
        (lambda x, a: gt.tensordot(x, x, 1), r"tensordot.*\(3, 4\).*axes 1 and 0"),
        (lambda x, a: gt.tensordot(x, x, ((0, 1), (0,))), "tensordot.*pairs"),
        (lambda x, a: gt.tensordot(x, x, (0, 0, 0)), "tensordot.*pair"),
        (lambda x, a: gt.tensordot(x, x, (2, 0)), "tensordot.*axis 2"),
        (lambda x, a: gt.einsum("ij,jk", x), "einsum.*2 operands, got 1"),
        (lambda x, a: gt.einsum("ijk", x), "einsum.*2 axes"),
        (lambda x, a: gt.einsum("i", x), "einsum.*2 axes"),
        (lambda x, a: gt.einsum("i1", x), "einsum.*letters"),
        (lambda x, a: gt.einsum("ij->k", x), "einsum.*output"),
        (lambda x, a: gt.einsum("ij->ii", x), "einsum.*output"),
        (lambda x, a: gt.einsum("...j->j", x), "einsum.*'...'"),
        (lambda x, a: gt.einsum("ij,ij", x, a), "einsum"),
        (lambda x, a: gt.linalg.solve(a, x[:2]), "solve"),
        (lambda x, a: gt.linalg.solve(x, x), "solve"),
        (lambda x, a: gt.linalg.inv(x), "inv"),
        (lambda x, a: gt.linalg.det(x), "det"),
        (lambda x, a: gt.linalg.cholesky(x), "cholesky"),
        (lambda x, a: gt.linalg.norm(x, 3), "norm.*ord=3 is no norm of matrices"),
        (lambda x, a: gt.linalg.norm(x, "nuc", axis=0), "norm.*nuc"),
        (lambda x, a: gt.linalg.norm(gt.stack([x, x]), 1), "norm.*ord=1.*no norm"),
        (lambda x, a: gt.linalg.norm(x, axis=2), "norm.*axis 2"),
        (lambda x, a: gt.diagonal(x[0]), "axis 1"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, words):
    for run in (call, gt.function(call)):
        with pytest.raises(ValueError, match=f"(?s){words}"):
            run(M, SQUARE)


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
