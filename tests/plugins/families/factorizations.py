"""Factors of matrices, least squares, products."""

from __future__ import annotations

import numpy as np

import gradtape as gt

from .family import Family

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
        lambda x: (lambda w, v: (w + 0j, np.abs(v) ** 2))(*np.linalg.eig(x)),  # ours are complex
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
KERNELS = [
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

ERRORS = [
    (lambda x: linalg.qr(x, "raw"), ValueError, "qr.*mode.*'raw'"),
    (lambda x: linalg.qr(x[0]), ValueError, r"qr.*matrices.*\(4,\)"),
    (lambda x: linalg.eigh(x), ValueError, r"eigh.*square.*\(3, 4\)"),
    (lambda x: linalg.eigh(x[:, :3], "X"), ValueError, "eigh.*UPLO.*'X'"),
    (lambda x: linalg.eigvals(x), ValueError, "eigvals.*square"),
    (lambda x: linalg.svd(x[0]), ValueError, "svd.*matrices"),
    (lambda x: linalg.svdvals(x[0]), ValueError, "svdvals.*matrices"),
    (lambda x: linalg.pinv(x[0]), ValueError, "pinv.*matrices"),
    (lambda x: linalg.pinv(x, 0.1, rtol=0.1), ValueError, "pinv.*pass one of them"),
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
]

# these need to know their sizes, to choose an algorithm
SIZED = ("wide", "lstsq", "svd (", "complete", "cross")

FAMILY = Family(
    samples=SAMPLES,
    errors=ERRORS,
    given=[R(3, 4)],
    values={"rtol": 1e-9, "atol": 1e-11},
    runs={"rtol": 1e-9, "atol": 1e-11},
    sized=[name for name in SAMPLES if any(word in name for word in SIZED)],
    precisions=("float32",),
    kernels=KERNELS,
)
