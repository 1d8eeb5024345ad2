"""Jacobians and Hessians of functions of complex numbers: whole, or refused by name."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

POINT = np.array([1.0 + 2.0j, -0.5 + 0.25j])
z = gt.constant(POINT)

#: Functions of a complex vector, and whether they are holomorphic.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "square": (lambda z: z * z, True),
    "exp of products": (lambda z: gt.exp(z * z[0] * (0.25 + 0.5j)), True),
    "fft": (lambda z: gt.fft.fft(z), True),
    "inverse": (lambda z: 1.0 / z, True),
    "conjugate": (lambda z: gt.conj(z), False),
    "square of the modulus": (lambda z: z * gt.conj(z), False),
    "real part of the square": (lambda z: gt.real(z * z), False),
    "modulus": (lambda z: gt.abs(z) ** 1.5, False),
    "sum": (lambda z: gt.sum(gt.real(z) ** 3 * gt.imag(z) + gt.abs(z)), False),
}
#: Functions that return a real scalar.
SCALARS: dict[str, Callable[[Any], Any]] = {
    "|z|²": lambda z: gt.sum(gt.abs(z) ** 2),
    "Re z²": lambda z: gt.sum(gt.real(z * z)),
    "mixed": lambda z: gt.sum(gt.real(z) ** 3 * gt.imag(z)) + gt.abs(z[0] * z[1]) ** 1.5,
}
TRANSFORMS = [gt.jacobian, gt.jacrev, gt.jacfwd]
each_transform = pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: t.__name__)


def in_pairs(x: Any) -> np.ndarray:
    x = np.asarray(x)
    return np.stack([x.real, x.imag], -1) if x.dtype.kind == "c" else x


def measured(f: Callable[[np.ndarray], Any], point: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Return differences with respect to the real and imaginary parts, in the last two axes."""
    columns = []
    for index in np.ndindex(point.shape):
        for one in (1.0, 1j):
            unit = np.zeros_like(point)
            unit[index] = one * step
            ahead, behind = (in_pairs(f(point + side * unit)) for side in (1, -1))
            columns.append((ahead - behind) / (2 * step))
    return np.stack(columns, -1).reshape(*columns[0].shape, *point.shape, 2)


@each_transform
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_real_form_agrees_with_differences(name: str, transform: Any) -> None:
    f, _ = FUNCTIONS[name]
    want = measured(lambda point: f(gt.constant(point)).numpy(), POINT)
    for run in (transform(f, real=True), gt.function(transform(f, real=True))):
        found = run(z)
        assert found.dtype == np.float64
        np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", SCALARS)
def test_real_hessians_agree_with_differences_of_gradients(name: str) -> None:
    f = SCALARS[name]
    want = measured(lambda point: gt.grad(f)(gt.constant(point)).numpy(), POINT)
    found = gt.hessian(f, real=True)(z).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found, found.transpose(2, 3, 0, 1), atol=1e-12)


@pytest.mark.parametrize("name", SCALARS)
def test_products_with_the_hessian_take_complex_vectors(name: str) -> None:
    f, v, step = SCALARS[name], gt.constant(np.array([0.25 - 1.0j, 0.75 + 0.5j])), 1e-6
    want = (gt.grad(f)(z + step * v) - gt.grad(f)(z - step * v)) / (2 * step)
    np.testing.assert_allclose(gt.hvp(f, z, v), want, rtol=1e-6, atol=1e-8)
    product = np.einsum("abcd,cd->ab", gt.hessian(f, real=True)(z), in_pairs(v))
    np.testing.assert_allclose(in_pairs(gt.hvp(f, z, v)), product, rtol=1e-9, atol=1e-9)


@each_transform
@pytest.mark.parametrize("name", [name for name, (_, yes) in FUNCTIONS.items() if yes])
def test_derivatives_of_holomorphic_functions_are_complex(name: str, transform: Any) -> None:
    f, _ = FUNCTIONS[name]
    found = transform(f, holomorphic=True)(z).numpy()
    pairs = measured(lambda point: f(gt.constant(point)).numpy(), POINT)
    np.testing.assert_allclose(found.real, pairs[:, 0, :, 0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.imag, pairs[:, 1, :, 0], rtol=1e-6, atol=1e-8)


def test_the_hessian_of_a_holomorphic_function_is_complex() -> None:
    found = gt.hessian(lambda z: gt.sum(z**3) + z[0] * z[1], holomorphic=True)(z)
    want = np.diag(6.0 * POINT) + np.array([[0, 1], [1, 0]])
    np.testing.assert_allclose(found, want)


@pytest.mark.parametrize("transform", [*TRANSFORMS, gt.hessian], ids=lambda t: t.__name__)
@pytest.mark.parametrize("name", SCALARS)
def test_complex_arguments_need_a_choice(name: str, transform: Any) -> None:
    f, called = SCALARS[name], transform.__name__
    with pytest.raises(TypeError, match=rf"{called}: an argument is complex, .*pass real=True"):
        transform(f)(z)
    with pytest.raises(TypeError, match=rf"{called}: with holomorphic=True all results must be"):
        transform(f, holomorphic=True)(z)
    with pytest.raises(TypeError, match=rf"{called}: with holomorphic=True all arguments"):
        transform(f, holomorphic=True)(gt.ones(2))
    with pytest.raises(ValueError, match=rf"{called}: holomorphic=True and real=True exclude"):
        transform(f, holomorphic=True, real=True)


def test_a_structure_is_for_real_numbers() -> None:
    with pytest.raises(TypeError, match="jacobian: an argument is complex"):
        gt.jacobian(lambda z: z * z, structure="diagonal")(z)
    with pytest.raises(TypeError, match="jacobian: the result of a real argument is complex"):
        gt.jacobian(lambda x: x * 1j, structure="diagonal")(gt.ones(2))
    with pytest.raises(ValueError, match="structure='diagonal' is for real numbers"):
        gt.jacobian(lambda z: z * z, structure="diagonal", real=True)


def test_real_arguments_with_complex_results() -> None:
    x = gt.constant([1.0, 2.0])
    with pytest.raises(TypeError, match="jacrev: the result of a real argument is complex"):
        gt.jacrev(lambda x: x * (2.0 + 1.0j))(x)
    assert gt.jacfwd(lambda x: x * (2.0 + 1.0j))(x)[0, 0].item() == 2.0 + 1.0j
    for transform in TRANSFORMS:
        pairs = transform(lambda x: x * (2.0 + 1.0j), real=True)(x)
        assert pairs[0].tolist() == [[2.0, 0.0], [1.0, 0.0]]


@each_transform
def test_containers_keywords_and_auxiliary_results_in_the_real_form(transform: Any) -> None:
    def f(point: Any, *, s: Any) -> Any:
        return {"product": point["z"] * s, "part": gt.imag(point["z"]) * point["x"]}, "aux"

    point = {"z": z, "x": gt.constant(np.array([2.0, 3.0]))}
    found, aux = transform(f, argnums=(0, "s"), has_aux=True, real=True)(
        point, s=gt.constant(np.array(2.0))
    )
    assert aux == "aux"
    of_point, of_s = found["product"]
    assert of_point["z"].shape == (2, 2, 2, 2)
    np.testing.assert_allclose(of_point["z"].numpy()[1, :, 1], 2.0 * np.eye(2))
    assert of_point["x"].shape == (2, 2, 2)
    np.testing.assert_allclose(of_s, in_pairs(POINT))
    np.testing.assert_allclose(found["part"][0]["z"].numpy()[1, 1], [0.0, 3.0])
    np.testing.assert_allclose(found["part"][0]["x"], np.diag(POINT.imag))


def test_a_complex_variable_passes_its_value_to_the_real_form() -> None:
    v = gt.Variable(POINT, name="w")
    with pytest.raises(TypeError, match="variable 'w' must not be complex: pass its value"):
        gt.jacrev(lambda v: v * v, real=True)(v)
    assert gt.jacrev(lambda v: v * v, real=True)(v.value).shape == (2, 2, 2, 2)


@pytest.mark.parametrize("method", ["jacobian", "batch_jacobian"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_tape_warns_where_its_rows_are_half_of_the_derivative(name: str, method: str) -> None:
    f, holomorphic = FUNCTIONS[name]
    if method == "batch_jacobian":
        inner, f = f, lambda z: gt.stack([inner(z[0]), inner(z[1])])
        point = gt.constant(np.stack([POINT, POINT * 0.5]))
        if inner(z).shape == ():
            return
    else:
        point = z
    with gt.GradientTape() as tape:
        tape.watch(point)
        y = f(point)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        getattr(tape, method)(y, point)
    half = y.dtype.kind == "c" and not holomorphic
    assert [w.category for w in told] == [UserWarning] * half
    if half:
        assert f"{method}: the target is complex and not a holomorphic" in str(told[0].message)
        assert told[0].filename == __file__


def test_a_tape_warns_of_complex_targets_of_real_sources() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x * (2.0 + 1.0j)
    with pytest.warns(UserWarning, match="half of the derivative"):
        tape.jacobian(y, x)


def test_gradients_of_complex_results_are_refused() -> None:
    for transform in (gt.grad, gt.value_and_grad):
        with pytest.raises(TypeError, match="got a complex one"):
            transform(lambda z: gt.sum(z * z))(z)
    with pytest.raises(TypeError, match="got a complex one"):
        gt.hvp(lambda z: gt.sum(z * z), z, z)
