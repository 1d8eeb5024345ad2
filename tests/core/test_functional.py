"""Derivatives of functions, composed in every order, against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

A = np.random.default_rng(3).standard_normal((4, 4))
SPD = A @ A.T + 4 * np.eye(4)
IMAGE = np.random.default_rng(4).standard_normal((3, 1, 2))


@gt.custom_gradient
def cubed(x: gt.Tensor) -> Any:
    """A custom gradient that is the true one, so that differences can check it."""
    return x**3, lambda dy: dy * 3.0 * x**2


#: Functions of a vector of four numbers, each smooth where it is tried.
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "polynomial": lambda x: x**3 - 2.0 * x,
    "trigonometric": lambda x: gt.sin(x) * gt.cos(x[::-1]),
    "exp of a sum": lambda x: gt.exp(gt.sum(x) / 4.0),
    "log1p": lambda x: gt.log1p(x * x),
    "sqrt": lambda x: gt.sqrt(1.0 + x * x),
    "division": lambda x: x / (2.0 + x[0] ** 2),
    "power": lambda x: (1.5 + x * x) ** x,
    "arctan2": lambda x: gt.arctan2(x, 2.0 + x[1] ** 2),
    "matmul": lambda x: gt.tanh(A @ x),
    "outer": lambda x: gt.outer(x, gt.sin(x)),
    "einsum": lambda x: gt.einsum("i,ij,j->i", x, A, x),
    "tensordot": lambda x: gt.tensordot(gt.outer(x, x), A, axes=2),
    "solve": lambda x: gt.linalg.solve(SPD + gt.diag(x * x), x),
    "inv": lambda x: gt.linalg.inv(SPD + gt.outer(x, x)),
    "slogdet": lambda x: gt.linalg.slogdet(SPD + gt.outer(x, x))[1],
    "cholesky": lambda x: gt.linalg.cholesky(SPD + gt.outer(x, x)),
    "eigvalsh": lambda x: gt.linalg.eigvalsh(np.diag([1.0, 3.0, 6.0, 10.0]) + gt.outer(x, x)),
    "norm": lambda x: gt.linalg.norm(x + 3.0),
    "logsumexp": lambda x: gt.logsumexp(x * x),
    "softmax": lambda x: gt.nn.softmax(x * x),
    "var": lambda x: gt.var(gt.sin(x)),
    "prod": lambda x: gt.prod(x + 0.1),
    "cumsum": lambda x: gt.cumsum(x * x),
    "cumprod": lambda x: gt.cumprod(1.0 + x),
    "indexing": lambda x: x[[0, 2, 2, 1]] * x[:1],
    "update": lambda x: x.at[1].set(x[0] * x[2]) * x,
    "concatenate": lambda x: gt.concatenate([x * x, gt.sin(x)]),
    "sort": lambda x: gt.sort(x) * gt.max(x),
    "where": lambda x: gt.where(x > 0, x**2, gt.exp(x)),
    "clip": lambda x: gt.clip(x, -0.9, 0.9) * x,
    "gelu": lambda x: gt.nn.gelu(x),
    "layer norm": lambda x: gt.nn.layer_normalization(x),
    "fft": lambda x: gt.abs(gt.fft.rfft(x + 2.0)),
    "convolution": lambda x: gt.nn.conv2d(gt.reshape(x, (1, 2, 2, 1)), gt.reshape(x, (2, 2, 1, 1))),
    "custom gradient": lambda x: cubed(x) * x,
    "traced": gt.function(lambda x: gt.sum(gt.tanh(x)) * x),
    "scan of a loop": lambda x: gt.stack([x[0], gt.sin(x[0]), gt.sin(gt.sin(x[0]))]),
}
POINT = np.array([0.3, -0.7, 1.1, 0.52])


def differences(f: Callable[[Any], Any], x: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """Return the Jacobian of a function of a vector by central differences."""
    columns = []
    for e in np.eye(x.size).reshape(-1, *x.shape) * step:
        ahead, behind = (np.asarray(f(gt.constant(x + s * e))) for s in (1, -1))
        columns.append((ahead - behind) / (2 * step))
    return np.stack(columns, -1)


def scalar(name: str) -> Callable[[Any], Any]:
    f = FUNCTIONS[name]
    return lambda x: gt.sum(f(x) ** 2)


everything = pytest.mark.parametrize("name", list(FUNCTIONS))


@everything
def test_jacobians_in_both_modes(name: str) -> None:
    f = FUNCTIONS[name]
    want = differences(f, POINT)
    np.testing.assert_allclose(gt.jacrev(f)(POINT), want, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(gt.jacfwd(f)(POINT), want, rtol=1e-5, atol=1e-7)


@everything
def test_second_derivatives_in_all_four_orders(name: str) -> None:
    f = scalar(name)
    want = differences(gt.grad(f), POINT)
    for outer, inner in product((gt.jacfwd, gt.jacrev), repeat=2):
        np.testing.assert_allclose(outer(inner(f))(POINT), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gt.hessian(f)(POINT), want, rtol=1e-5, atol=1e-6)
    vector = np.array([1.0, -2.0, 0.5, 0.25])
    np.testing.assert_allclose(gt.hvp(f, POINT, vector), want @ vector, rtol=1e-5, atol=1e-6)


@everything
def test_the_jacobian_of_a_jacobian_is_one_in_either_order(name: str) -> None:
    f = FUNCTIONS[name]
    one, other = gt.jacfwd(gt.jacrev(f))(POINT), gt.jacrev(gt.jacfwd(f))(POINT)
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


@everything
def test_vmap_composes_with_derivatives(name: str) -> None:
    f = scalar(name)
    points = np.stack([POINT, POINT * 1.01, POINT * 0.98])
    slopes = np.stack([gt.grad(f)(p) for p in points])
    np.testing.assert_allclose(gt.vmap(gt.grad(f))(points), slopes, rtol=1e-9, atol=1e-11)

    def total(xs: gt.Tensor) -> gt.Tensor:
        return gt.sum(gt.vmap(f)(xs))

    np.testing.assert_allclose(gt.grad(total)(points), slopes, rtol=1e-9, atol=1e-11)
    bends = np.stack([gt.hessian(f)(p) for p in points])
    np.testing.assert_allclose(gt.vmap(gt.hessian(f))(points), bends, rtol=1e-9, atol=1e-9)
    whole = gt.hessian(total)(points).numpy()
    for i in range(3):
        for j in range(3):
            block = bends[i] if i == j else np.zeros((4, 4))
            np.testing.assert_allclose(whole[i, :, j], block, rtol=1e-9, atol=1e-9)
    tangents = np.stack([POINT, -POINT, POINT[::-1]])
    pushed = gt.vmap(lambda x, t: gt.jvp(f, x, t)[1])(points, tangents)
    np.testing.assert_allclose(pushed, (slopes * tangents).sum(axis=1), rtol=1e-9)
    np.testing.assert_allclose(
        gt.jvp(gt.vmap(f), points, tangents)[1], (slopes * tangents).sum(axis=1), rtol=1e-9
    )


@everything
def test_third_derivatives(name: str) -> None:
    f = scalar(name)
    direction = np.array([0.5, 1.0, -1.0, 0.25])

    def along(x: gt.Tensor) -> gt.Tensor:
        return gt.hvp(f, x, direction)

    want = differences(along, POINT)
    scale = max(1.0, float(np.abs(want).max()))
    np.testing.assert_allclose(gt.jacrev(along)(POINT), want, atol=1e-5 * scale)
    np.testing.assert_allclose(gt.jacfwd(along)(POINT), want, atol=1e-5 * scale)


@everything
def test_traced_derivatives_are_those_of_eager_ones(name: str) -> None:
    f = scalar(name)
    for transform in (gt.grad, gt.hessian, gt.jacfwd):
        eager = transform(f)(POINT)
        np.testing.assert_allclose(gt.function(transform(f))(POINT), eager, rtol=1e-9, atol=1e-11)


def test_linear_maps_and_their_transposes() -> None:
    f = FUNCTIONS["outer"]
    y, push = gt.linearize(f, POINT)
    value, pull = gt.vjp(f, POINT)
    np.testing.assert_array_equal(y, value)
    j = gt.jacrev(f)(POINT).numpy()
    t, u = np.array([1.0, 2.0, -1.0, 0.5]), np.random.default_rng(0).standard_normal((4, 4))
    np.testing.assert_allclose(push(t), j @ t, rtol=1e-12)
    np.testing.assert_allclose(gt.jvp(f, POINT, t)[1], j @ t, rtol=1e-12)
    np.testing.assert_allclose(pull(u)[0], np.einsum("ab,abi->i", u, j), rtol=1e-12)
    np.testing.assert_allclose(gt.vmap(push)(np.eye(4)), np.moveaxis(j, -1, 0), rtol=1e-12)


def test_arguments_in_containers_by_position_and_by_name() -> None:
    def f(params: Any, x: Any, *, scale: Any = 1.0) -> Any:
        return gt.sum(params["w"] * x * scale) + params["b"][0]

    params = {"w": np.array([1.0, 2.0]), "b": [gt.constant(3.0)]}
    x = np.array([4.0, 5.0])
    g = gt.grad(f)(params, x)
    assert g["w"].tolist() == [4.0, 5.0]
    assert g["b"][0].item() == 1.0
    value, (by_params, by_scale) = gt.value_and_grad(f, argnums=(0, "scale"))(params, x, scale=2.0)
    assert value.item() == 31.0
    assert by_params["w"].tolist() == [8.0, 10.0]
    assert by_scale.item() == 14.0
    h = gt.hessian(lambda p: p["a"] ** 2 * gt.sum(p["b"]))({"a": 2.0, "b": np.ones(3)})
    assert {k: {m: v.shape for m, v in row.items()} for k, row in h.items()} == {
        "a": {"a": (), "b": (3,)},
        "b": {"a": (3,), "b": (3, 3)},
    }


def test_variables_and_auxiliary_results() -> None:
    v = gt.Variable([1.0, 2.0])
    g, aux = gt.grad(lambda v: (gt.sum(v * v), "kept"), has_aux=True)(v)
    assert (g.tolist(), aux) == ([2.0, 4.0], "kept")
    j, aux = gt.jacrev(lambda x: (x * x, "kept"), has_aux=True)(np.ones(2))
    assert (j.shape, aux) == ((2, 2), "kept")
    j, aux = gt.jacfwd(lambda x: (x * x, "kept"), has_aux=True)(np.ones(2))
    assert (j.shape, aux) == ((2, 2), "kept")


def test_what_a_function_reaches_by_another_way_is_constant() -> None:
    x = gt.constant(3.0)
    assert gt.grad(lambda y: x * y)(x).item() == 3.0
    with gt.GradientTape() as tape:
        tape.watch(x)
        z = gt.grad(lambda y: x * y * y)(x)
    assert tape.gradient(z, x).item() == 12.0  # d(2 x y)/dx at y = x: an outer tape sees both


def test_what_has_no_influence_has_zeros() -> None:
    assert gt.grad(lambda x, y: gt.sum(y))(np.ones(2), np.ones(2)).tolist() == [0.0, 0.0]
    assert gt.jvp(lambda x: gt.ones(3), np.ones(2), np.ones(2))[1].tolist() == [0.0] * 3
    assert gt.jacfwd(lambda x: gt.ones(3))(np.ones(2)).tolist() == [[0.0, 0.0]] * 3


def test_errors_say_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"must return a scalar, got shape \(2,\); use jacobian"):
        gt.grad(lambda x: x * x)(np.ones(2))
    with pytest.raises(TypeError, match="argument 0 holds int64 values, which have no derivative"):
        gt.grad(gt.sum)(np.arange(3))
    with pytest.raises(TypeError, match="argnums is 2, but there are 1 positional arguments"):
        gt.grad(gt.sum, argnums=2)(np.ones(2))
    with pytest.raises(TypeError, match="argnums names 'y', which was not passed by keyword"):
        gt.grad(gt.sum, argnums="y")(np.ones(2))
    with pytest.raises(TypeError, match="one tangent for each of the 2 arguments"):
        gt.jvp(gt.add, (np.ones(2), np.ones(2)), (np.ones(2),))
    with pytest.raises(ValueError, match=r"a tangent has shape \(3,\), but its primal has \(2,\)"):
        gt.jvp(gt.sin, np.ones(2), np.ones(3))


# -- structure -------------------------------------------------------------------------------------


def test_a_diagonal_takes_one_row() -> None:
    x = POINT.reshape(2, 2)
    found = gt.jacobian(lambda x: gt.sin(x) * x, structure="diagonal", check=True)(x)
    np.testing.assert_allclose(found, np.cos(x) * x + np.sin(x))


@pytest.mark.parametrize("width", [0, 1, 2, 3])
def test_a_band_has_the_form_that_scipy_solves(width: int) -> None:
    n = 7
    i, j = np.indices((n, n))
    m = np.where(np.abs(i - j) <= width, np.random.default_rng(0).standard_normal((n, n)), 0.0)
    found = gt.jacobian(lambda x: m @ gt.sin(x), structure=f"banded({width})", check=True)(
        np.linspace(0, 1, n)
    ).numpy()
    assert found.shape == (2 * width + 1, n)
    dense = m * np.cos(np.linspace(0, 1, n))
    for a in range(n):
        for b in range(n):
            if abs(a - b) <= width:
                assert found[width + a - b, b] == pytest.approx(dense[a, b])


def test_a_structure_that_is_not_there_is_found_on_request() -> None:
    with pytest.raises(ValueError, match=r"the Jacobian is not banded\(1\)"):
        gt.jacobian(gt.cumsum, structure="banded(1)", check=True)(np.ones(5))
    with pytest.raises(ValueError, match="structure must be 'diagonal' or 'banded"):
        gt.jacobian(gt.sin, structure="triangular")
    with pytest.raises(ValueError, match=r"as many elements as the argument, 3; got \(\)"):
        gt.jacobian(gt.sum, structure="diagonal")(np.ones(3))


# -- vectors ---------------------------------------------------------------------------------------


def test_a_tree_as_a_vector_and_back() -> None:
    tree = {"w": gt.Variable(np.ones((2, 3), "float32")), "b": [np.zeros(2), 5.0]}
    vector, unflatten = gt.flatten(tree)
    assert vector.shape == (9,)
    assert vector.dtype == np.float64
    back = unflatten(vector.numpy() * 2)
    assert back["w"].dtype == np.float32
    np.testing.assert_array_equal(back["w"], 2 * np.ones((2, 3)))
    assert back["b"][1].item() == 10.0
    check_gradients(lambda v: gt.sum(unflatten(v)["b"][0] ** 2), np.arange(9.0), order=2)
    with pytest.raises(ValueError, match=r"must have shape \(9,\), got shape \(8,\)"):
        unflatten(np.ones(8))
    empty, rebuild = gt.flatten([])
    assert empty.shape == (0,)
    assert rebuild(empty) == []


@pytest.mark.parametrize(
    "name", ["grad", "value_and_grad", "jacrev", "jacfwd", "jacobian", "hessian", "vmap"]
)
def test_the_result_of_a_call_in_the_place_of_a_function_is_refused(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: expected a function.*: gradtape.{name}\(f\),"):
        getattr(gt, name)(gt.sum(gt.ones(2)))
