"""Equal eigenvalues and singular values: derivatives of functions that do not depend on vectors.

Each function is written with a decomposition, and again with sums, products and inverses alone,
whose rules hold everywhere.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import BrokenPathWarning, GradientError

linalg, transposed = gt.linalg, gt.matrix_transpose

SPECTRA = {
    "equal": (2.0, 2.0, 1.0, 1.0),
    "all equal": (2.0, 2.0, 2.0, 2.0),
    "1e-12": (2.0, 2.0 + 1e-12, 1.0 + 3e-12, 1.0),
    "1e-6": (2.0, 2.0 + 1e-6, 1.0, 0.5),
}


def random(*shape, seed=0, dtype="float64"):
    draw = np.random.default_rng(seed).standard_normal
    return draw(shape) + 1j * draw(shape) if dtype.startswith("complex") else draw(shape)


def orthonormal(n, seed, dtype="float64"):
    return np.linalg.qr(random(n, n, seed=seed, dtype=dtype))[0]


def adjoint(a):
    return gt.conj(transposed(a)) if a.dtype.kind == "c" else transposed(a)


def eye_like(a):
    return gt.constant(np.eye(a.shape[-1], dtype=str(a.dtype)))


def hermitian(a):
    return (a + adjoint(a)) / 2


def with_eigh(f):
    def run(a):
        w, v = linalg.eigh(hermitian(a))
        return (v * gt.cast(f(w), v.dtype)) @ adjoint(v)

    return run


def with_svd(f, full_matrices=False, rank=4):
    def run(a):
        u, s, vh = linalg.svd(a, full_matrices=full_matrices)
        k = min(rank, s.shape[-1])
        return (u[:, :k] * gt.cast(f(s[:k]), u.dtype)) @ vh[:k]

    return run


# -- the same without decompositions ---------------------------------------------------------------


def square_root(a):
    root, other = hermitian(a), eye_like(a)
    for _ in range(12):  # Denman and Beavers
        root, other = (root + linalg.inv(other)) / 2, (other + linalg.inv(root)) / 2
    return root


def logarithm(a):
    nodes, weights = np.polynomial.legendre.leggauss(24)
    x = hermitian(a) - eye_like(a)
    parts = [
        x @ linalg.inv((t + 1) / 2 * x + eye_like(a)) * (weight / 2)
        for t, weight in zip(nodes, weights, strict=True)
    ]
    return sum(parts[1:], parts[0])


def polar(a):
    for _ in range(12):
        a = (a + linalg.inv(adjoint(a))) / 2
    return a


def above(a, bound):
    """Return the projector onto the eigenvectors of the eigenvalues above a bound."""
    return (polar(hermitian(a) - bound * eye_like(a)) + eye_like(a)) / 2


def projector(a):
    _, v = linalg.eigh(hermitian(a))
    return v[:, 2:] @ adjoint(v[:, 2:])


def of_values(f):
    return lambda a: f(a) * eye_like(a)


PAIRS = {
    "itself": (with_eigh(lambda w: w), hermitian),
    "square": (with_eigh(lambda w: w**2), lambda a: hermitian(a) @ hermitian(a)),
    "sqrt": (with_eigh(gt.sqrt), square_root),
    "log": (with_eigh(gt.log), logarithm),
    "sum of squares": (
        of_values(lambda a: gt.sum(linalg.eigvalsh(hermitian(a)) ** 2)),
        of_values(lambda a: linalg.trace(hermitian(a) @ hermitian(a))),
    ),
    "sum of logarithms": (
        of_values(lambda a: gt.sum(gt.log(linalg.eigvalsh(hermitian(a))))),
        of_values(lambda a: linalg.slogdet(hermitian(a))[1]),
    ),
    "svd": (with_svd(lambda s: s), lambda a: a),
    "full svd": (with_svd(lambda s: s, full_matrices=True), lambda a: a),
    "cube of singular values": (with_svd(lambda s: s**3), lambda a: a @ adjoint(a) @ a),
    "polar": (with_svd(gt.ones_like), polar),
    "fourth powers": (
        of_values(lambda a: gt.sum(linalg.svdvals(a) ** 4)),
        of_values(lambda a: linalg.trace(a @ adjoint(a) @ a @ adjoint(a))),
    ),
}
WITH_GAP = {
    "projector": (projector, lambda a: above(a, 1.4)),
    "rank 2": (
        with_svd(lambda s: s, rank=2),
        lambda a: a @ above(adjoint(a) @ a, 1.4**2),
    ),
}


def matrix(spectrum, seed, symmetric=True, dtype="float64"):
    u = orthonormal(len(spectrum), seed, dtype)
    v = u if symmetric else orthonormal(len(spectrum), seed + 1, dtype)
    return gt.constant(((u * np.asarray(spectrum)) @ v.conj().T).astype(dtype))


def weighed(f, n=4, dtype="float64"):
    weights = gt.constant(random(n, n, seed=5, dtype=dtype).astype(dtype))
    return lambda a: gt.sum(gt.real(gt.conj(weights) * f(a)))


def check(got, want, within=1e-9):
    got, want = np.asarray(got), np.asarray(want)
    assert np.abs(got - want).max() <= within * max(1.0, np.abs(want).max())


@pytest.fixture(autouse=True)
def warnings_are_errors():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize(
    ("name", "spectrum"),
    [
        *((name, "equal") for name in (*PAIRS, *WITH_GAP)),
        *((name, "all equal") for name in ("log", "sum of squares", "svd", "polar")),
        *((name, "1e-12") for name in ("sqrt", "full svd", "projector", "rank 2")),
        *((name, "1e-6") for name in ("log", "sum of squares", "polar", "projector")),
    ],
)
def test_derivatives_of_first_and_second_order(name, spectrum):
    f, g = map(weighed, {**PAIRS, **WITH_GAP}[name])
    x = matrix(SPECTRA[spectrum], seed=3)
    direction = gt.constant(random(4, 4, seed=9))
    check(gt.grad(f, strict=True)(x), gt.grad(g)(x))
    check(gt.jvp(f, x, direction)[1], gt.jvp(g, x, direction)[1])
    check(gt.hvp(f, x, direction), gt.hvp(g, x, direction), 1e-6)


@pytest.mark.parametrize("name", ["log", "cube of singular values"])
@pytest.mark.parametrize(
    ("dtype", "within"), [("complex128", 1e-9), ("float32", 1e-4), ("complex64", 1e-4)]
)
def test_dtypes(name, dtype, within):
    f = weighed(PAIRS[name][0], dtype=dtype)
    x, wide = matrix(SPECTRA["equal"], 3, dtype=dtype), "complex128" if "c" in dtype else "float64"
    exact = weighed(PAIRS[name][1], dtype=wide)
    got = gt.grad(f)(x)
    assert got.dtype == x.dtype
    check(got, gt.grad(exact)(x.astype(wide)), within)
    direction = gt.constant(random(4, 4, seed=9, dtype=dtype).astype(dtype))
    want = gt.hvp(exact, x.astype(wide), direction.astype(wide))
    check(gt.hvp(f, x, direction), want, within * 100)


@pytest.mark.parametrize(
    ("shape", "full"), [((3, 3), False), ((5, 3), False), ((5, 3), True), ((3, 5), True)]
)
@pytest.mark.parametrize("values", [(2, 2, 1), (2, 0, 0)])
def test_wide_high_and_singular_matrices(shape, full, values):
    u, v = orthonormal(shape[0], 1), orthonormal(shape[1], 2)
    x = gt.constant((u[:, :3] * np.array(values, float)) @ v[:, :3].T)
    weights, direction = (gt.constant(random(*shape, seed=seed)) for seed in (5, 9))
    for power, g in ((1, lambda a: a), (3, lambda a: a @ transposed(a) @ a)):
        f = with_svd(lambda s, power=power: s**power, full)
        slopes = [gt.grad(lambda a, h=h: gt.sum(weights * h(a)))(x) for h in (f, g)]
        check(*slopes)
        products = [gt.hvp(lambda a, h=h: gt.sum(weights * h(a)), x, direction) for h in (f, g)]
        check(*products, 1e-8)


@pytest.mark.parametrize("shape", ["identity", "normal", "oblique"])
def test_eigenvalues_of_any_matrix(shape):
    base = {"identity": np.eye(3), "normal": orthonormal(3, 1), "oblique": random(3, 3, seed=1)}
    p = base[shape]
    x = gt.constant(p @ np.diag([1.0, 1.0, 2.0]) @ np.linalg.inv(p))
    weights, direction = (gt.constant(random(3, 3, seed=seed)) for seed in (5, 9))

    def f(a):
        w, v = linalg.eig(a)
        return gt.sum(weights * gt.real((v * w**2) @ linalg.inv(v))) + gt.real(
            gt.sum(linalg.eigvals(a) ** 3)
        )

    def g(a):
        return gt.sum(weights * (a @ a)) + linalg.trace(a @ a @ a)

    check(gt.grad(f)(x), gt.grad(g)(x))
    check(gt.hvp(f, x, direction), gt.hvp(g, x, direction), 1e-6)


# -- transformations -------------------------------------------------------------------------------

X = gt.constant(np.diag([2.0, 2.0, 1.0, 1.0]))
C, D = gt.constant(random(4, 4, seed=7)), gt.constant(random(4, 4, seed=8))
STACK = gt.constant(np.stack([np.eye(4), np.diag([2.0, 2.0, 1.0, 3.0]), np.diag([4, 3, 2, 1.0])]))

TRANSFORMS = {
    "jacrev": lambda f: gt.jacrev(f)(X),
    "jacfwd": lambda f: gt.jacfwd(f)(X),
    "jacobian": lambda f: gt.jacobian(f)(X),
    "vjp": lambda f: gt.vjp(f, X)[1](C)[0],
    "vmap of pull": lambda f: gt.vmap(lambda c: gt.vjp(f, X)[1](c)[0])(gt.stack([C, D])),
    "linearize": lambda f: gt.linearize(f, X)[1](C),
    "hessian": lambda f: gt.hessian(weighed(f))(X),
    "grad of grad": lambda f: gt.grad(lambda a: gt.sum(C * gt.grad(weighed(f))(a)))(X),
    "jvp of jvp": lambda f: gt.jvp(lambda a: gt.jvp(f, a, C)[1], X, D)[1],
    "third order": lambda f: gt.jvp(lambda a: gt.hvp(weighed(f), a, C), X, D)[1],
    "vmap of grad": lambda f: gt.vmap(gt.grad(weighed(f)))(STACK),
    "grad of vmap": lambda f: gt.grad(lambda a: gt.sum(C * gt.vmap(f)(a)))(STACK),
    "vmap of hessian": lambda f: gt.vmap(gt.hessian(weighed(f)))(STACK),
    "grad of traced": lambda f: gt.grad(gt.function(weighed(f)))(X),
    "hvp of traced": lambda f: gt.hvp(gt.function(weighed(f)), X, C),
    "recomputed": lambda f: gt.grad(gt.recompute_grad(weighed(f)))(X),
    "value": lambda f: gt.value_and_grad(weighed(f))(X)[0],
}


@pytest.mark.parametrize(
    ("transform", "name"),
    [
        *((transform, "square") for transform in TRANSFORMS),
        *((transform, "cube of singular values") for transform in ("jacfwd", "vmap of hessian")),
    ],
)
def test_transforms(transform, name):
    f, g = PAIRS[name]
    got, want = TRANSFORMS[transform](f), TRANSFORMS[transform](g)
    check(got, want, 1e-5 if transform == "third order" else 1e-8)


def test_values_are_those_of_the_point():
    f = weighed(with_eigh(gt.exp))
    assert gt.value_and_grad(f)(X)[0].item() == f(X).item()


def test_a_singularity_close_by():
    # the square root of w + 1e-4 has one at -1e-4, and two eigenvalues are 0
    x = matrix((4.0, 9.0, 0.0, 0.0), seed=3)
    f, g = weighed(with_eigh(lambda w: gt.sqrt(w + 1e-4))), weighed(square_root)
    want = gt.grad(lambda a: g(a + 1e-4 * eye_like(a)))(x)
    check(gt.grad(f)(x), want, 1e-5)


def aligned(points, others):
    u, _, vh = linalg.svd(transposed(points) @ others)
    return gt.sum((points @ (u @ vh) - others) ** 2)


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("points", [np.concatenate([np.eye(3), -np.eye(3)]), random(9, 3)])
def test_gradients_that_vanish_to_rounding(points, dtype, scale):
    others = gt.constant((points @ orthonormal(3, 1) * scale).astype(dtype))
    slope = gt.grad(aligned, strict=True)(gt.constant((points * scale).astype(dtype)), others)
    assert np.abs(np.asarray(slope)).max() <= 100 * scale * np.finfo(dtype).eps


def test_the_second_derivative_where_the_first_vanishes():
    target = gt.constant(orthonormal(4, 1))

    def apart(f):
        return lambda a: gt.sum((f(a) - target) ** 2)

    f, g = map(apart, PAIRS["polar"])
    check(gt.hvp(f, target, C, strict=True), gt.hvp(g, target, C), 1e-8)


def test_effects_happen_once():
    count, draws = gt.Variable(0.0, dtype="float64"), []

    def f(a):
        count.assign_add(1.0)
        draws.append(gt.random.normal((), dtype="float64").item())
        return count.value * weighed(with_eigh(gt.exp))(a)

    want = gt.grad(weighed(linalg.expm))(X)
    check(gt.grad(f)(X), (want + transposed(want)) / 2)
    assert count.value.item() == 1.0
    assert len(set(draws)) == 1 < len(draws)
    assert gt.random.normal((), dtype="float64").item() not in draws


# -- where there is no limit -----------------------------------------------------------------------


def a_vector(a):
    return linalg.eigh(a)[1][0, 1]


@pytest.mark.parametrize(
    "derive",
    [
        lambda f, **strict: gt.grad(f, **strict)(X),
        lambda f, **strict: gt.jvp(f, X, C, **strict),
        lambda f, **strict: gt.jacrev(f, **strict)(X),
        lambda f, **strict: gt.vjp(f, X, **strict)[1](gt.constant(1.0, "float64")),
    ],
)
def test_functions_of_the_choice_of_vectors(derive):
    with pytest.warns(gt.errors.BrokenPathWarning, match=r"eigh: values are equal.*choice"):
        derive(a_vector)
    with pytest.raises(gt.errors.GradientError, match=r"eigh: values are equal.*choice"):
        derive(a_vector, strict=True)


CHOICES = {
    "fourth powers": lambda a: gt.sum(linalg.eigh(a)[1] ** 4),
    "fourth powers less their number": lambda a: gt.sum(linalg.eigh(a)[1] ** 4) - 4.0,
    "last vector": lambda a: gt.sum(linalg.eigh(a)[1][:, -1] ** 2 * np.arange(4.0)),
    "trace of vectors": lambda a: linalg.trace(linalg.eigh(a)[1]),
    "eig": lambda a: gt.sum(gt.real(linalg.eig(a)[1]) ** 4),
    "left vectors": lambda a: gt.sum(linalg.svd(a)[0] ** 4),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("values", [(1, 1, 1, 1), (1, 2, 3, 3)])
def test_choices_are_found_where_vectors_are_along_axes(name, values):
    x = gt.constant(np.diag(np.array(values, float)))
    with pytest.raises(gt.errors.GradientError, match="choice"):
        gt.grad(CHOICES[name], strict=True)(x)


def whitened(a, points):
    inverse_root = with_eigh(lambda w: w**-0.5)(a)
    return gt.sum(gt.sin(gt.constant(points) @ inverse_root))


@pytest.mark.parametrize("seed", range(4))
def test_functions_that_draw_with_numpy(seed):
    draw = np.random.default_rng(seed).normal
    x = gt.constant(np.eye(3))
    with pytest.raises(gt.errors.GradientError, match=r"something else when.*gradtape\.random"):
        gt.grad(lambda a: whitened(a, draw(size=(6, 3))), strict=True)(x)
    with pytest.warns(gt.errors.BrokenPathWarning, match="something else when"):
        gt.jvp(lambda a: whitened(a, draw(size=(6, 3))), x, x)


def test_derivatives_alone_that_do_not_repeat():
    draw = np.random.default_rng(0).normal  # the logarithm of the identity is 0
    x, one = gt.constant(np.eye(3)), gt.constant(1.0, "float64")

    def f(a):
        return gt.sum(with_eigh(gt.log)(a) * draw(size=(3, 3)))

    with pytest.raises(gt.errors.GradientError, match="something else when"):
        gt.grad(f, strict=True)(x)
    with pytest.raises(gt.errors.GradientError, match="something else when"):
        gt.vjp(f, x, strict=True)[1](one)


def test_data_that_end():
    batches = iter([random(6, 3)])
    with pytest.warns(gt.errors.BrokenPathWarning, match="something else when"):
        gt.grad(lambda a: whitened(a, next(batches)))(gt.constant(np.eye(3)))


@pytest.mark.parametrize(
    "largest",
    [
        lambda a: linalg.eigvalsh(a)[-1],
        lambda a: linalg.eigh(a)[0][-1],
        lambda a: gt.real(linalg.eig(a)[0][0]),
        lambda a: linalg.svdvals(a)[0],
        lambda a: linalg.svd(a)[1][0],
    ],
)
def test_kinks_keep_their_subgradient(largest):
    slope = gt.grad(largest, strict=True)(X)
    assert linalg.trace(slope).item() == pytest.approx(1.0)


def test_kinks_have_no_second_derivative():
    with pytest.raises(gt.errors.GradientError, match="no limit"):
        gt.hvp(lambda a: linalg.eigvalsh(a)[-1], X, C, strict=True)


def on_tape(f, x, strict=False):
    with gt.GradientTape(strict=strict) as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def hessian_on_tapes(f, x):
    with gt.GradientTape() as outer:
        outer.watch(x)
        slope = on_tape(f, x)
    return outer.jacobian(slope, x)


@pytest.mark.parametrize("name", ["log", "svd"])
def test_a_tape_and_a_trace_report_what_they_lack(name):
    f = weighed(PAIRS[name][0])
    with pytest.warns(gt.errors.BrokenPathWarning, match="a tape and a traced gradient cannot"):
        on_tape(f, X)
    with pytest.raises(gt.errors.GradientError, match="a tape and a traced gradient cannot"):
        on_tape(f, X, strict=True)
    with pytest.warns(gt.errors.BrokenPathWarning, match="a tape and a traced gradient cannot"):
        gt.function(gt.grad(f))(X)


@pytest.mark.parametrize("name", ["sum of squares", "fourth powers"])
def test_a_tape_reports_second_derivatives_of_values(name):
    f, g = map(weighed, PAIRS[name])
    check(on_tape(f, X), gt.grad(g)(X))
    with pytest.warns(gt.errors.BrokenPathWarning, match="a tape and a traced gradient cannot"):
        hessian_on_tapes(f, X)


@pytest.mark.parametrize("name", ["projector", "polar"])
def test_a_tape_is_right_for_functions_of_vectors_alone(name):
    f, g = map(weighed, {**PAIRS, **WITH_GAP}[name])
    if name == "projector":
        check(on_tape(f, X, strict=True), gt.grad(g)(X))
    values = on_tape(lambda a: gt.sum(linalg.eigh(a)[0] ** 2), X, strict=True)
    check(values, 2 * X)


def test_on_other_backends_a_derivative_at_a_tie_says_that_it_lacks_terms():
    pytest.importorskip("jax")
    equal = gt.constant(np.eye(2, dtype=np.float32)).to("jax")

    def twice(a):
        w, v = gt.linalg.eigh(a)
        return gt.sum((v * w) @ gt.matrix_transpose(v))

    with pytest.warns(BrokenPathWarning, match="equal or nearly so"):
        gt.grad(twice)(equal)
    with pytest.raises(GradientError, match="equal or nearly so"):
        gt.grad(twice, strict=True)(equal)
