"""Values and gradients at infinities, zeros and in the tails are limits, not nan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
import gradtape.compat.tensorflow as tf

INF = np.inf
DTYPES = ("float16", "float32", "float64")


def value_and_slopes(f: Callable[..., Any], x: float, dtype: str) -> list[float]:
    """Return a function of a number there, and its first and second derivative."""
    at = gt.constant(x, dtype)
    slope = gt.grad(f)
    return [f(at).item(), slope(at).item(), gt.grad(slope)(at).item()]


#: By activation: value and slope at -inf, and at inf.
ENDS: dict[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "celu": ((-1, 0), (INF, 1)),
    "elu": ((-1, 0), (INF, 1)),
    "gelu": ((0, 0), (INF, 1)),
    "hard_shrink": ((-INF, 1), (INF, 1)),
    "hard_sigmoid": ((0, 0), (1, 0)),
    "hard_silu": ((0, 0), (INF, 1)),
    "hard_tanh": ((-1, 0), (1, 0)),
    "leaky_relu": ((-INF, 0.2), (INF, 1)),
    "log_sigmoid": ((-INF, 1), (0, 0)),
    "mish": ((0, 0), (INF, 1)),
    "relu": ((0, 0), (INF, 1)),
    "relu6": ((0, 0), (6, 0)),
    "selu": ((-1.7580993408473766, 0), (INF, 1.0507009873554805)),
    "sigmoid": ((0, 0), (1, 0)),
    "silu": ((0, 0), (INF, 1)),
    "soft_shrink": ((-INF, 1), (INF, 1)),
    "softplus": ((0, 0), (INF, 1)),
    "softsign": ((-1, 0), (1, 0)),
    "squareplus": ((0, 0), (INF, 1)),
    "tanh_shrink": ((-INF, 1), (INF, 1)),
}


def test_the_table_of_ends_holds_all_activations() -> None:
    of_vectors = {"softmax", "log_softmax", "glu"}
    from gradtape.plugins.ops.network import gated_activations, rectifiers, sigmoids

    modules = (gated_activations, rectifiers, sigmoids)
    found = {name: getattr(gt.nn, name) for name in gt.nn.__all__}
    names = {name for name, x in found.items() if any(vars(m).get(name) is x for m in modules)}
    assert names - of_vectors == set(ENDS)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ENDS)
def test_activations_have_their_limits_at_infinities(name: str, dtype: str) -> None:
    f = getattr(gt.nn, name)
    for x, (value, slope) in zip((-INF, INF), ENDS[name], strict=True):
        for g in (f, gt.function(f), gt.vmap(f)):
            at = gt.constant([x], dtype)
            assert g(at).item() == pytest.approx(value, rel=1e-3)
        found = value_and_slopes(f, x, dtype)
        assert found == pytest.approx([value, slope, 0.0], rel=1e-3, nan_ok=False)


def test_the_approximate_gelu_has_its_limits_too() -> None:
    def f(x: Any) -> Any:
        return gt.nn.gelu(x, approximate=True)

    for dtype in DTYPES:
        assert value_and_slopes(f, -INF, dtype) == [0.0, 0.0, 0.0]
        assert value_and_slopes(f, INF, dtype) == [INF, 1.0, 0.0]


@pytest.mark.parametrize("x", [-1e200, -1e9, -30.0, -1.0, 0.0, 2.0, 1e9, 1e200])
def test_squareplus_is_exact_in_its_tails(x: float) -> None:
    wide = np.longdouble(x)
    root = np.sqrt(wide * wide + 4)
    value = (wide + root) / 2 if x > 0 else 2 / (root - wide)
    found = value_and_slopes(gt.nn.squareplus, x, "float64")
    want = [float(value), float(value / root), float(2 / root / root / root)]
    assert found == pytest.approx(want, rel=1e-13)


@pytest.mark.parametrize("window", [2, 3])
def test_the_gradient_of_a_pool_over_a_nan_goes_to_it(window: int) -> None:
    x = gt.constant(np.array([1.0, np.nan, 3.0, 4.0, 2.0, 7.0]).reshape(1, 6, 1))

    def f(x: Any) -> Any:
        return gt.nn.max_pool1d(x, window)

    assert np.isnan(f(x).numpy()[0, 0, 0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    want = {2: [0, 1, 0, 1, 0, 1], 3: [0, 1, 0, 0, 0, 1]}[window]
    assert tape.gradient(y, x).numpy().ravel().tolist() == want
    assert gt.jvp(f, (x,), (gt.ones_like(x),))[1].numpy().ravel().tolist() == [1] * (6 // window)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "int64"])
def test_sigmoid_cross_entropy_of_what_is_certain(dtype: str) -> None:
    labels = np.array([1, 0, 1, 0]).astype(dtype)
    logits = gt.constant([INF, -INF, -INF, INF])

    def loss(x: Any) -> Any:
        return gt.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x)

    assert loss(logits).tolist() == [0.0, 0.0, INF, INF]
    assert gt.grad(lambda x: gt.sum(loss(x)))(logits).tolist() == [0.0, 0.0, -1.0, 1.0]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", DTYPES)
def test_probabilities_of_0_and_1_that_are_right_cost_nothing(dtype: str) -> None:
    labels, p = gt.constant([1.0, 0.0], dtype), gt.constant([1.0, 0.0], dtype)
    for epsilon in (0.0, 1e-7):
        losses = [
            gt.nn.binary_cross_entropy(labels=labels, probabilities=p, epsilon=epsilon),
            gt.nn.categorical_cross_entropy(labels=labels, probabilities=p, epsilon=epsilon),
            gt.nn.kl_divergence(labels=labels, probabilities=p, epsilon=epsilon),
        ]
        for loss in losses:
            np.testing.assert_allclose(loss.numpy(), 0.0, atol=2e-7)
    slopes = gt.grad(
        lambda p: gt.sum(gt.nn.binary_cross_entropy(labels=labels, probabilities=p, epsilon=0.0))
    )(p)
    assert slopes.tolist() == [-1.0, 1.0]
    halves = gt.constant([0.5, 0.5], dtype)
    by_labels = gt.grad(
        lambda y: gt.nn.categorical_cross_entropy(labels=y, probabilities=halves, epsilon=0.0)
    )(labels)
    np.testing.assert_allclose(by_labels.numpy(), np.log(2.0), rtol=1e-3)


# -- very large and very small numbers -------------------------------------------------------------

V = np.array([3.0, 4.0, -1.0])
SCALE_FREE: dict[str, Callable[[Any], Any]] = {
    "norm": gt.linalg.norm,
    "norm of a matrix": lambda x: gt.linalg.norm(gt.diag(x), "fro"),
    "norm of rows": lambda x: gt.linalg.norm(gt.stack([x, 2.0 * x]), axis=1)[1],
    "norm of complex numbers": lambda x: gt.linalg.norm(x * (0.6 + 0.8j)),
    "nuclear norm": lambda x: gt.linalg.norm(gt.diag(x) + gt.diag(x[1:], 1), "nuc"),
    "spectral norm": lambda x: gt.linalg.norm(gt.diag(x) + gt.diag(x[1:], 1), 2),
    **{
        f"norm of order {p}": lambda x, p=p: gt.linalg.norm(x, p)
        for p in (1, 1.5, 3, 7, -1, -2, np.inf, -np.inf)
    },
    "hypot": lambda x: gt.hypot(x[0], x[1]),
    "abs": lambda x: gt.abs(x[0] + 1j * x[1]),
    "std": gt.std,
    "std of columns": lambda x: gt.std(gt.stack([x, -x]), axis=0)[1],
    "global norm": lambda x: gt.training.global_norm([x[:1], x[1:]]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("unit", [1e22, 1e-24])
@pytest.mark.parametrize("name", SCALE_FREE)
def test_norms_of_large_and_small_numbers_do_not_overflow(name: str, unit: float) -> None:
    f = SCALE_FREE[name]
    x, wide = gt.constant(V * unit, "float32"), gt.constant(V * unit, "float64")
    for got, want in [(f(x), f(wide)), (gt.grad(f)(x), gt.grad(f)(wide))]:
        assert got.dtype == np.float32
        np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-6, atol=0)
    second = gt.hessian(f)(wide).numpy()
    atol = 2e-6 * np.abs(second).max()
    np.testing.assert_allclose(gt.hessian(f)(x).numpy(), second, rtol=2e-5, atol=atol)
    np.testing.assert_allclose(f(wide).item(), unit * f(gt.constant(V, "float64")).item())


def test_half_precision_norms_do_not_overflow_at_256() -> None:
    x = gt.constant([300.0, -400.0], "float16")
    assert gt.linalg.norm(x).item() == 500.0
    assert gt.std(x).item() == 350.0
    np.testing.assert_allclose(gt.grad(gt.linalg.norm)(x).numpy(), [0.6, -0.8], rtol=1e-3)


DIRECTIONS: dict[str, Callable[[Any], Any]] = {
    "cosine_similarity": lambda x: gt.nn.cosine_similarity(x, x[::-1] + 0.0 * x),
    "the loss": lambda x: gt.training.losses.cosine_similarity(x, x[::-1]),
    "l2_normalize": lambda x: tf.nn.l2_normalize(x)[0],
    "clip_by_norm": lambda x: gt.nn.clip_by_norm(x, 1.0)[0],
    "clip_by_global_norm": lambda x: gt.training.clip_by_global_norm([x], 1.0)[0][0][0],
    "arctan2": lambda x: gt.arctan2(x[0], x[1]),
    "angle": lambda x: gt.angle(x[0] + 1j * x[1]),
}


@pytest.mark.parametrize("name", DIRECTIONS)
def test_directions_of_long_vectors_are_not_lost(name: str) -> None:
    f = DIRECTIONS[name]
    x, plain = gt.constant(V * 1e22, "float32"), gt.constant(V, "float64")
    np.testing.assert_allclose(f(x).numpy(), f(plain).numpy(), rtol=2e-6)
    if "clip" in name:
        return  # it is rarely differentiated, and not written for it
    slope = gt.grad(f)(plain).numpy()
    atol = 1e-5 * np.abs(slope).max()
    np.testing.assert_allclose(gt.grad(f)(x).numpy() * 1e22, slope, rtol=1e-5, atol=atol)


@pytest.mark.parametrize("mode", ["one", "batch", "trace", "forward"])
@pytest.mark.parametrize("rank", [0, 1, 2])
def test_curvature_of_the_nuclear_norm_of_singular_matrices(rank: int, mode: str) -> None:
    rng = np.random.default_rng(rank)
    left, right = rng.standard_normal((4, rank)), rng.standard_normal((rank, 3))
    matrix = gt.constant(left @ right)

    def f(t: Any) -> Any:  # within the matrices of that rank it is smooth: |t|**3 times the norm
        return gt.linalg.norm(matrix * t**3, "nuc")

    second = gt.grad(gt.grad(f))
    at = gt.constant(1.0, "float64")
    got = {
        "one": lambda: second(at),
        "batch": lambda: gt.vmap(second)(gt.reshape(at, (1,)))[0],
        "trace": lambda: gt.function(second)(at),
        "forward": lambda: gt.jacfwd(gt.jacfwd(f))(at),
    }[mode]()
    want = 6 * np.linalg.norm(left @ right, "nuc")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-9, atol=1e-12)


def test_the_gradient_of_the_nuclear_norm_is_the_least_subgradient() -> None:
    f = gt.grad(lambda x: gt.linalg.norm(x, "nuc"))
    np.testing.assert_allclose(f(np.ones((2, 2))).numpy(), np.full((2, 2), 0.5), atol=1e-12)
    assert f(np.zeros((2, 3))).tolist() == [[0.0] * 3] * 2
    value = gt.linalg.norm(np.diag([1.0, 1e-20]), "nuc").item()
    assert value == np.linalg.norm(np.diag([1.0, 1e-20]), "nuc")


@pytest.mark.parametrize("f", [gt.arctan2, gt.hypot])
def test_at_the_origin_an_angle_and_a_length_have_the_gradient_0(f: Any) -> None:
    zero = gt.constant(0.0)
    for g in (gt.grad(f, argnums=(0, 1)), gt.function(gt.grad(f, argnums=(0, 1)))):
        assert [s.item() for s in g(zero, zero)] == [0.0, 0.0]
    found = gt.hessian(f, argnums=(0, 1))(zero, zero)
    assert np.isfinite([h.item() for row in found for h in row]).all()
    assert gt.jvp(f, (zero, zero), (gt.constant(1.0), gt.constant(1.0)))[1].item() == 0.0


@pytest.mark.parametrize("x", [0.0, 1.0, -np.inf])
def test_a_direction_does_not_turn_at_infinity(x: float) -> None:
    slopes = gt.grad(gt.arctan2, argnums=(0, 1))(gt.constant(x), gt.constant(np.inf))
    assert [s.item() for s in slopes] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["arcsin", "arccos", "arctanh"])
def test_slopes_near_the_ends_of_a_domain_are_exact(name: str) -> None:
    x = gt.constant(np.float32(1 - 2.0**-23), "float32")
    wide = np.longdouble(x.item())
    slope = 1 / (1 - wide * wide)
    want = {"arcsin": np.sqrt(slope), "arccos": -np.sqrt(slope), "arctanh": slope}[name]
    assert gt.grad(getattr(gt, name))(x).item() == pytest.approx(float(want), rel=1e-6)


def test_the_slope_of_arcsinh_does_not_overflow() -> None:
    assert gt.grad(gt.arcsinh)(gt.constant(1e25)).item() == pytest.approx(1e-25)


@pytest.mark.parametrize("x", [1e3, -1e10, 9.2e18, 1e30, np.int64(2**63 - 1)])
def test_i0_of_large_numbers_is_infinite(x: Any) -> None:
    assert gt.i0(gt.constant(x)).item() == INF
    assert gt.i0(gt.constant(float(x), "float64")).item() == INF


EXACT = {
    "i0": {0.0: 1.0},
    "erf": {0.0: 0.0, INF: 1.0, -INF: -1.0},
    "erfc": {0.0: 1.0, INF: 0.0, -INF: 2.0},
    "expm1": {0.0: 0.0, -INF: -1.0},
    "log1p": {0.0: 0.0},
    "sinc": {0.0: 1.0},
    "lgamma": {1.0: 0.0, 2.0: 0.0, 3.0: np.log(2.0), 0.5: 0.5 * np.log(np.pi)},
    "digamma": {1.0: -np.euler_gamma},
    "cbrt": {27.0: 3.0, -8.0: -2.0, 0.0: 0.0},
    "exp2": {10.0: 1024.0, -1.0: 0.5},
    "log2": {8.0: 3.0},
    "log10": {1000.0: 3.0},
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", EXACT)
def test_special_functions_are_exact_where_their_values_are_known(name: str, dtype: str) -> None:
    for x, want in EXACT[name].items():
        got = getattr(gt, name)(gt.constant(x, dtype))
        exact = np.dtype(dtype).type(want)
        # NumPy's cbrt(27) and SciPy's lgamma(0.5) are next to it, and with AVX-512 log10(1000) is
        beside = x in (27.0, 0.5, 1000.0)
        assert abs(got.numpy() - exact) <= (np.spacing(exact) if beside else 0.0), x
    slope = gt.grad(gt.i0)
    assert slope(gt.constant(0.0, dtype)).item() == 0.0
    assert gt.grad(slope)(gt.constant(0.0, dtype)).item() == pytest.approx(0.5, rel=1e-15)
