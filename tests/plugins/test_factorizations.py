"""Factors of matrices, least squares, products: values, gradients, traces, degenerate cases."""

from __future__ import annotations

import array_api_strict as strict
import numpy as np
import pytest
from gradcheck import check_gradients

import gradtape as gt
from gradtape.core.extend import ops

RNG = np.random.default_rng(1)
linalg = gt.linalg


def R(*shape):
    return RNG.standard_normal(shape)


def C(*shape):
    return R(*shape) + 1j * R(*shape)


def near_identity(*batch, n=3):
    return R(*batch, n, n) * 0.5 + 3 * np.eye(n)


def hermitian(x):
    return x + gt.conj(gt.matrix_transpose(x))


def numpy_hermitian(x):
    return x + np.conj(np.swapaxes(x, -1, -2))


def exponential(x):
    """The exponential of matrices that have a full set of eigenvectors."""
    w, v = np.linalg.eig(x)
    result = (v * np.exp(w)[..., None, :]) @ np.linalg.inv(v)
    return result if np.iscomplexobj(x) else result.real


def rebuilt(fn):
    """Return what does not depend on the phase of vectors, and yet on all of the vectors."""

    def run(x):
        first, second = fn(x)
        return first, gt.abs(second) ** 2

    return run


def svd_products(full):
    def run(x):
        u, s, vh = linalg.svd(x, full_matrices=full)
        k = s.shape[-1]
        weights = np.arange(1.0, k + 1, dtype=s.dtype)
        return s, gt.matmul(u[..., :k] * weights, vh[..., :k, :])

    return run


def numpy_svd_products(full):
    def run(x):
        u, s, vh = np.linalg.svd(x, full_matrices=full)
        k = s.shape[-1]
        return s, (u[..., :k] * np.arange(1.0, k + 1)) @ vh[..., :k, :]

    return run


SPREAD = R(3, 3) + np.diag([1.0, 4.0, 9.0])  # eigenvalues apart from each other, and real
LOWER = np.tril(R(3, 3)) + 3 * np.eye(3)
APART = RNG.permutation(np.linspace(0.3, 3.0, 12)).reshape(2, 3, 2) * np.sign(R(2, 3, 2))

# name: (ours, NumPy's or SciPy's, inputs)
SAMPLES = {
    "qr": (linalg.qr, np.linalg.qr, [near_identity(2)]),
    "qr tall": (linalg.qr, np.linalg.qr, [R(2, 4, 2)]),
    "qr wide": (linalg.qr, np.linalg.qr, [R(2, 4)]),
    "qr complex": (linalg.qr, np.linalg.qr, [C(4, 3)]),
    "qr complex square": (linalg.qr, np.linalg.qr, [C(3, 3)]),
    "qr r": (lambda x: linalg.qr(x, "r"), lambda x: np.linalg.qr(x, "r"), [R(4, 2)]),
    "qr complete": (
        lambda x: linalg.qr(x, "complete"),
        lambda x: np.linalg.qr(x, "complete"),
        [R(2, 3)],
    ),
    "eigh": (
        rebuilt(lambda x: linalg.eigh(hermitian(x))),
        lambda x: (lambda w, v: (w, np.abs(v) ** 2))(*np.linalg.eigh(numpy_hermitian(x))),
        [R(2, 3, 3) + np.diag([0.0, 4.0, 9.0])],
    ),
    "eigh complex": (
        rebuilt(lambda x: linalg.eigh(hermitian(x), "U")),
        lambda x: (lambda w, v: (w, np.abs(v) ** 2))(*np.linalg.eigh(numpy_hermitian(x), "U")),
        [C(3, 3)],
    ),
    "eigvalsh": (
        lambda x: linalg.eigvalsh(hermitian(x), "U"),
        lambda x: np.linalg.eigvalsh(numpy_hermitian(x), "U"),
        [C(2, 3, 3)],
    ),
    "eig": (
        rebuilt(linalg.eig),
        lambda x: (lambda w, v: (w, np.abs(v) ** 2))(*np.linalg.eig(x)),
        [SPREAD],
    ),
    "eig complex": (
        rebuilt(linalg.eig),
        lambda x: (lambda w, v: (w, np.abs(v) ** 2))(*np.linalg.eig(x)),
        [C(2, 3, 3)],
    ),
    "eigvals": (linalg.eigvals, np.linalg.eigvals, [C(2, 3, 3)]),
    **{
        f"svd {x.shape} {x.dtype} {full}": (svd_products(full), numpy_svd_products(full), [x])
        for full in (False, True)
        for x in (near_identity(2), R(2, 4, 2), R(2, 4), C(3, 3), C(4, 2), C(2, 3))
    },
    "svdvals": (linalg.svdvals, lambda x: np.linalg.svd(x, compute_uv=False), [R(2, 3, 4)]),
    "svdvals complex": (
        lambda x: linalg.svd(x, compute_uv=False),
        lambda x: np.linalg.svd(x, compute_uv=False),
        [C(4, 2)],
    ),
    **{
        f"pinv {x.shape}": (linalg.pinv, np.linalg.pinv, [x])
        for x in (R(2, 3, 2), R(2, 3), C(3, 2))
    },
    "lstsq": (lambda a, b: linalg.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b)[0],
              [R(4, 2), R(4, 3)]),
    "lstsq of a vector": (lambda a, b: linalg.lstsq(a, b)[0::3], lambda a, b:
                          np.linalg.lstsq(a, b)[0::3], [R(2, 4), R(2)]),
    "lstsq residuals": (lambda a, b: linalg.lstsq(a, b)[1], lambda a, b: np.linalg.lstsq(a, b)[1],
                        [R(4, 2), R(4)]),
    **{
        f"cond {p}": (
            lambda x, p=p: linalg.cond(x, p),
            lambda x, p=p: np.linalg.cond(x, p),
            [near_identity(2)],
        )
        for p in (None, -2, "fro", 1, np.inf)
    },
    "solve_triangular": (
        linalg.solve_triangular,
        lambda a, b: np.linalg.solve(np.triu(a), b),
        [near_identity(2), R(3, 2)],
    ),
    "solve_triangular lower": (
        lambda a, b: linalg.solve_triangular(a, b, lower=True),
        lambda a, b: np.linalg.solve(np.tril(a), b),
        [LOWER + 0.3j * LOWER, R(3)],
    ),
    "solve_triangular unit": (
        lambda a, b: linalg.solve_triangular(a, b, unit_diagonal=True),
        lambda a, b: np.linalg.solve(np.triu(a, 1) + np.eye(3), b),
        [R(3, 3), R(3, 2)],
    ),
    "solve_triangular lower unit": (
        lambda a, b: linalg.solve_triangular(a, b, True, True),
        lambda a, b: np.linalg.solve(np.tril(a, -1) + np.eye(3), b),
        [R(3, 3), C(3, 2)],
    ),
    "expm": (linalg.expm, exponential, [R(2, 3, 3)]),
    "expm large": (linalg.expm, exponential, [4 * R(2, 2)]),
    "expm complex": (linalg.expm, exponential, [C(2, 2)]),
    **{
        f"matrix_power {n}": (
            lambda x, n=n: linalg.matrix_power(x, n),
            lambda x, n=n: np.linalg.matrix_power(x, n),
            [near_identity(2)],
        )
        for n in (1, 2, 5, -1, -3)
    },
    "multi_dot": (
        lambda *xs: linalg.multi_dot(xs),
        lambda *xs: np.linalg.multi_dot(xs),
        [R(2, 3), R(3, 4), R(4, 1), R(1, 2)],
    ),
    "multi_dot vectors": (
        lambda *xs: linalg.multi_dot(xs),
        lambda *xs: np.linalg.multi_dot(xs),
        [R(3), R(3, 4), R(4)],
    ),
    "vdot": (gt.vdot, np.vdot, [C(2, 3), C(3, 2)]),
    "vecdot": (gt.vecdot, np.vecdot, [C(2, 3), C(3)]),
    "inner": (gt.inner, np.inner, [R(2, 3), R(4, 3)]),
    "inner of numbers": (gt.inner, np.inner, [R(), R(3)]),
    "kron": (gt.kron, np.kron, [R(2, 3), R(3, 2)]),
    "kron of other ranks": (gt.kron, np.kron, [C(2), R(2, 1, 2)]),
    "cross": (gt.cross, np.cross, [R(4, 3), C(3)]),
    "cross axes": (
        lambda a, b: gt.cross(a, b, axisa=0, axisb=1, axisc=0),
        lambda a, b: np.cross(a, b, axisa=0, axisb=1, axisc=0),
        [R(3, 2), R(2, 3)],
    ),
    "cross axis": (
        lambda a, b: gt.cross(a, b, axis=0),
        lambda a, b: np.cross(a, b, axis=0),
        [R(3, 2), R(3, 2)],
    ),
    **{
        f"vector_norm {ord} {axis}": (
            lambda x, o=ord, a=axis: linalg.vector_norm(x, ord=o, axis=a, keepdims=True),
            lambda x, o=ord, a=axis: np.linalg.vector_norm(x, ord=o, axis=a, keepdims=True),
            [APART],
        )
        for ord in (2, 1, 3.5, np.inf)
        for axis in (None, 1, (0, 2))
    },
    **{
        f"matrix_norm {ord}": (
            lambda x, o=ord: linalg.matrix_norm(x, ord=o, keepdims=True),
            lambda x, o=ord: np.linalg.matrix_norm(x, ord=o, keepdims=True),
            [APART],
        )
        for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf)
    },
}  # fmt: skip


def listed(result):
    return list(result) if isinstance(result, (list, tuple)) else [result]


@pytest.fixture(params=SAMPLES)
def sample(request):
    return SAMPLES[request.param]


def test_values_are_numpys(sample):
    ours, theirs, inputs = sample
    for mine, want in zip(listed(ours(*map(gt.constant, inputs))), listed(theirs(*inputs)),
                          strict=True):  # fmt: skip
        assert mine.shape == np.shape(want)
        np.testing.assert_allclose(mine.numpy(), want, rtol=1e-9, atol=1e-11)


def test_gradients_of_two_orders(sample):
    ours, _, inputs = sample
    check_gradients(ours, *inputs)


def test_float32_stays_float32(sample):
    ours, _, inputs = sample
    small = {"f": "float32", "c": "complex64"}
    xs = [gt.constant(np.asarray(x).astype(small[np.asarray(x).dtype.kind])) for x in inputs]
    with gt.GradientTape() as tape:
        tape.watch(xs)
        ys = listed(ours(*xs))
    assert all(y.dtype in ("float32", "complex64") for y in ys)
    grads = tape.gradient(ys, xs)
    assert [g.dtype for g in grads] == [x.dtype for x in xs]


def test_one_trace_with_unknown_sizes_gives_values_and_gradients(sample, request):
    ours, _, inputs = sample
    xs = [gt.constant(x) for x in inputs]

    def run(*xs):
        with gt.GradientTape() as tape:
            tape.watch(xs)
            ys = listed(ours(*xs))
        return ys, tape.gradient(ys, list(xs))

    want, grads = run(*xs)
    name = request.node.callspec.params["sample"]
    # these need to know their sizes, to choose an algorithm
    known = any(word in name for word in ("wide", "lstsq", "svd (", "complete", "cross"))
    specs = [gt.TensorSpec(x.shape if known else [None] * x.ndim, x.dtype) for x in xs]
    for traced in (gt.function(run), gt.function(input_signature=specs)(run)):
        ys, slopes = traced(*xs)
        for y, w in zip([*ys, *slopes], [*want, *grads], strict=True):
            np.testing.assert_allclose(y.numpy(), w.numpy(), rtol=1e-9, atol=1e-11)
    outputs = gt.function(ours).get_concrete_function(*xs).graph.outputs
    for symbol, y in zip(outputs, want, strict=True):
        assert symbol.shape == y.shape
        assert symbol.dtype == y.dtype


STRICT = [
    ("qr", (R(4, 3),), {"mode": "reduced"}),
    ("eigh", (numpy_hermitian(R(3, 3)),), {}),
    ("eigvalsh", (numpy_hermitian(C(3, 3)),), {}),
    ("svd", (R(3, 2),), {"full_matrices": True}),
    ("svdvals", (C(3, 2),), {}),
    ("pinv", (C(3, 2),), {"rcond": 1e-15}),
    ("matrix_rank", (R(2, 3, 2),), {"tol": None, "rtol": None}),
    ("matrix_rank", (R(3, 2),), {"tol": 0.5, "rtol": None}),
    ("solve_triangular", (LOWER, R(3, 2)), {"lower": True, "unit_diagonal": True}),
    ("expm", (R(2, 3, 3) * 5,), {}),
    ("merge_pairs", (R(2, 3, 4, 5),), {}),
]


@pytest.mark.parametrize(("name", "arrays", "params"), STRICT)
def test_kernels_need_no_more_than_the_array_api(name, arrays, params):
    kernel = gt.registry().ops[name].kernel
    mine = kernel(strict, *(strict.asarray(x) for x in arrays), **params)
    ours = ops[name].raw(*arrays, **params)
    for x, y in zip(listed(mine), listed(ours), strict=True):
        np.testing.assert_allclose(np.asarray(x), y, rtol=1e-12)


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
    x = gt.constant(np.eye(3))
    with gt.GradientTape() as tape:
        tape.watch(x)
        w, v = linalg.eigh(x)
        y = gt.sum(w * w) + gt.sum((v * w) @ gt.matrix_transpose(v))
    # sum of squares, and the sum of the elements of x itself: neither depends on the basis
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 2 * np.eye(3) + np.ones((3, 3)) *
                               np.eye(3))  # fmt: skip


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


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: linalg.qr(x, "raw"), ValueError, "qr.*mode.*'raw'"),
        (lambda x: linalg.qr(x[0]), ValueError, r"qr.*matrices.*\(4,\)"),
        (lambda x: linalg.eigh(x), ValueError, r"eigh.*square.*\(3, 4\)"),
        (lambda x: linalg.eigh(x[:, :3], "X"), ValueError, "eigh.*UPLO.*'X'"),
        (lambda x: linalg.eigvals(x), ValueError, "eigvals.*square"),
        (lambda x: linalg.svd(x[0]), ValueError, "svd.*matrices"),
        (lambda x: linalg.svdvals(x[0]), ValueError, "svdvals.*matrices"),
        (lambda x: linalg.pinv(x[0]), ValueError, "pinv.*matrices"),
        (lambda x: linalg.pinv(x, 0.1, rtol=0.1), ValueError, "pinv.*give one"),
        (lambda x: linalg.matrix_rank(x, 1.0, rtol=1.0), ValueError, "matrix_rank.*not both"),
        (lambda x: linalg.lstsq(x, x[:2]), ValueError, r"lstsq.*\(3, 4\).*\(2, 4\)"),
        (lambda x: linalg.solve_triangular(x, x), ValueError, "solve_triangular.*square"),
        (lambda x: linalg.solve_triangular(x[:, :3], x[:2]), ValueError, "solve_triangular"),
        (lambda x: linalg.expm(x), ValueError, "expm.*square"),
        (lambda x: linalg.matrix_power(x, 2), ValueError, "matrix_power.*square"),
        (lambda x: linalg.matrix_power(x[:, :3], 0.5), TypeError, "matrix_power.*integer"),
        (lambda x: linalg.multi_dot([x]), ValueError, "multi_dot.*at least two"),
        (lambda x: linalg.multi_dot([x, x[0], x]), ValueError, "multi_dot: array 1.*2 axes"),
        (lambda x: linalg.multi_dot([x, x]), ValueError, "multi_dot"),
        (lambda x: gt.vdot(x, x[0]), ValueError, "vdot.*12 elements.*4"),
        (lambda x: gt.inner(x, x[:, :3]), ValueError, "inner"),
        (lambda x: gt.cross(x, x), ValueError, r"cross.*3 elements.*\(3, 4\)"),
        (lambda x: gt.cross(x, x, axis=2), ValueError, "cross.*axis 2"),
        (lambda x: linalg.vector_norm(x, ord="fro"), ValueError, "vector_norm.*number.*'fro'"),
    ],
)
def test_errors_name_the_op_eagerly_and_traced(call, error, words):
    x = gt.constant(R(3, 4))
    for run in (call, gt.function(call)):
        with pytest.raises(error, match=f"(?s){words}"):
            run(x)


def test_zeros_on_a_diagonal_are_an_error_that_names_the_op():
    with pytest.raises(np.linalg.LinAlgError, match="solve_triangular"):
        linalg.solve_triangular(gt.zeros((2, 2)), gt.ones(2))
