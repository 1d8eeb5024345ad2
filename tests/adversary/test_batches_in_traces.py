"""What broke, or gave wrong numbers, where vmap, Jacobians and traces met."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import TraceError

X = np.arange(6.0).reshape(2, 3) * 0.1
M = gt.constant(np.arange(1.0, 5.0).reshape(2, 2))
ROWS = [gt.TensorSpec([None, 3], "float64")]


def _batch_jacobian(s: Any, u: gt.Tensor) -> gt.Tensor:
    with gt.GradientTape() as tape:
        tape.watch(u)
        y = u**3
    return s * gt.sum(tape.batch_jacobian(y, u))


FUNCTIONS_OF_WHAT_IS_OUTSIDE: dict[str, Callable[[Any, gt.Tensor], gt.Tensor]] = {
    "mapped": lambda s, u: gt.sum(gt.vmap(lambda a: s * a**2)(u)),
    "shared": lambda s, u: s * gt.sum(gt.vmap(lambda r: r * u[0])(np.ones((2, 2)))),
    "another axis": lambda s, u: s * gt.sum(gt.vmap(lambda r: r**2, in_axes=1)(u)),
    "nested": lambda s, u: s * gt.sum(gt.vmap(gt.vmap(gt.sin))(u)),
    "jacrev": lambda s, u: s * gt.sum(gt.jacrev(lambda q: q**2)(u)),
    "jacfwd": lambda s, u: s * gt.sum(gt.jacfwd(lambda q: q**2)(u)),
    "hessian": lambda s, u: s * gt.sum(gt.hessian(lambda q: gt.sum(q**3))(u)),
    "batch_jacobian": _batch_jacobian,
    "pull": lambda s, u: s * gt.sum(gt.vmap(gt.vjp(lambda q: q[0] ** 3, u)[1])(np.ones((3, 2)))[0]),
    "push": lambda s, u: (
        s * gt.sum(gt.vmap(gt.linearize(lambda q: q**3, u)[1])(np.ones((3, 2, 2))))
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS_OF_WHAT_IS_OUTSIDE)
def test_derivatives_reach_what_a_trace_closes_over(name: str) -> None:
    f = FUNCTIONS_OF_WHAT_IS_OUTSIDE[name]
    wanted = gt.grad(lambda u: f(3.0, u))(M)
    assert np.any(wanted.numpy())
    slope = gt.jvp(lambda u: f(3.0, u), M, gt.ones_like(M))[1]

    traced = gt.function(lambda s: f(s, M))
    with gt.GradientTape() as tape, gt.ForwardAccumulator(M, gt.ones_like(M)) as acc:
        tape.watch(M)
        y = traced(3.0)
    np.testing.assert_allclose(tape.gradient(y, M), wanted)
    np.testing.assert_allclose(acc.jvp(y), slope)

    def in_branches(u: gt.Tensor) -> gt.Tensor:
        return gt.sum(
            gt.vmap(lambda c: gt.cond(c > 0, lambda: f(c, u), lambda: 0.0 * gt.sum(u)))(
                np.array([3.0, -1.0])
            )
        )

    np.testing.assert_allclose(gt.grad(in_branches)(M), wanted)
    np.testing.assert_allclose(gt.jvp(in_branches, M, gt.ones_like(M))[1], slope)


def test_a_traced_vmap_maps_what_the_call_maps() -> None:
    c = np.array([1.0, 2.0, 3.0])

    def h(x: gt.Tensor, c: Any = c) -> gt.Tensor:
        return gt.sum(x * c)

    e = np.eye(3) + 1
    weights = gt.constant([3.0, 2.0, 1.0], "float64")
    for wrap in (lambda f: f, gt.function):
        assert wrap(gt.vmap(h))(e).tolist() == [7, 8, 9]
        assert wrap(gt.vmap(h))(e, c=np.arange(3.0)).tolist() == [3, 4, 5]
        assert wrap(gt.vmap(h, in_axes=(0,)))(e, c=np.arange(3.0)).tolist() == [3, 4, 5]
        assert wrap(gt.vmap(gt.prod))(e).tolist() == [2, 2, 2]
        found = wrap(gt.grad(h, argnums="c"))(weights, c=weights)
        assert found.tolist() == [3, 2, 1]
        found = wrap(gt.grad(lambda x, s=3.0: gt.sum(x * s), argnums=-1))(weights)
        assert found.tolist() == [3, 3, 3]


def test_a_traced_vmap_is_saved_with_its_arguments(tmp_path: Any) -> None:
    class Rows(gt.Module):
        @gt.function
        def __call__(self, x: Any) -> Any:
            return gt.vmap(lambda x, scale=2.0: gt.sum(x) * scale)(x)

    rows = Rows()
    rows(X)
    gt.save(rows, tmp_path / "rows.h5")
    np.testing.assert_array_equal(gt.load(tmp_path / "rows.h5")(X), 2 * X.sum(1))


def test_two_variables_assigned_in_one_branch() -> None:
    a, b = gt.Variable(np.ones(3)), gt.Variable(np.ones(3))

    @gt.function
    def f(x: gt.Tensor) -> Any:
        def both() -> gt.Tensor:
            a.assign_add(x)
            b.assign_add(2 * x)
            return x

        return gt.cond(gt.sum(x) > 0, both, lambda: -x)

    x = gt.constant([1.0, 2.0, 3.0], "float64")
    f(x)
    f(-x)
    assert (a.numpy().tolist(), b.numpy().tolist()) == ([2, 3, 4], [3, 5, 7])


def test_a_variable_that_a_branch_makes_is_its_own() -> None:
    def made(r: gt.Tensor) -> gt.Tensor:
        v = gt.Variable(1.0, dtype="float64")
        v.assign(3.0)
        return r * v

    f = gt.vmap(lambda r: gt.cond(r[0] > 0.1, lambda: made(r), lambda: r))
    np.testing.assert_allclose(f(X), [X[0], 3 * X[1]])


def test_what_examples_would_assign_differently_says_so() -> None:
    with pytest.raises(TraceError, match=r"draw random numbers before"):
        gt.vmap(
            lambda r: gt.cond(r[0] > 0, lambda: gt.random.normal((3,), dtype="float64"), lambda: r),
            randomness="different",
        )(X)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(3, 2), (2, 3), (3, 3)])
def test_convolutions_of_any_number_of_examples(mode: str, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(4, n)) for n in sizes)
    specs = [gt.TensorSpec([None, n], "float64") for n in sizes]
    pairs = gt.vmap(lambda a, b: gt.convolve(a, b, mode))
    f = gt.function(pairs, input_signature=specs)
    wanted = np.stack([np.convolve(p, q, mode) for p, q in zip(a, b, strict=True)])
    np.testing.assert_allclose(f(a, b), wanted)
    assert f(a[:0], b[:0]).shape == pairs(a[:0], b[:0]).shape == (0, *wanted.shape[1:])
    slopes = gt.vmap(
        gt.grad(lambda a, b: gt.sum(gt.convolve(a, b, mode) ** 2), argnums=(0, 1)), in_axes=(0, 0)
    )
    for found, want in zip(
        gt.function(slopes, input_signature=specs)(a, b), slopes(a, b), strict=True
    ):
        np.testing.assert_allclose(found, want)


@pytest.mark.parametrize("method", ["multiply", "divide", "max", "min"])
def test_places_combined_in_any_number_of_examples(method: str) -> None:
    def f(x: gt.Tensor) -> gt.Tensor:
        result: gt.Tensor = getattr(x.at[gt.constant([0, 0, 1])], method)(x * 2)
        return result

    x = X + 0.5
    wanted = np.stack([f(gt.constant(row)) for row in x])
    np.testing.assert_allclose(gt.vmap(f)(x), wanted)
    np.testing.assert_allclose(gt.function(gt.vmap(f), input_signature=ROWS)(x), wanted)
    assert gt.vmap(f)(x[:0]).shape == (0, 3)


def test_one_value_is_set_where_a_mask_of_each_example_says() -> None:
    np.testing.assert_array_equal(
        gt.vmap(lambda x: x.at[x > 0.2].set(0.0))(X), np.where(X > 0.2, 0.0, X)
    )
    slope = gt.grad(lambda x: gt.sum(x.at[x > 0.2].set(x[1]) ** 2))
    wanted = np.stack([slope(gt.constant(row)) for row in X])
    np.testing.assert_allclose(gt.vmap(slope)(X), wanted)
    with pytest.raises(TypeError, match=r"at\[...\].set: a tensor of int64 cannot hold values"):
        gt.vmap(lambda x: x.astype("int64").at[x > 0.2].set(0.5))(X)
    with pytest.raises(TraceError, match=r"use gradtape\.where"):
        gt.vmap(lambda x: x.at[x > 0.2].set(gt.ones(3)))(X)


def test_errors_name_what_was_asked() -> None:
    w = gt.constant([1.0, 2.0])
    with pytest.raises(TraceError, match="jacobian: check=True needs values"):
        gt.function(lambda x: gt.jacobian(gt.sin, structure="diagonal", check=True)(x))(w)
    with pytest.raises(ValueError, match="vmap: out_axes=7 is out of range"):
        gt.vmap(lambda x: x, out_axes=7)(X)
    with gt.GradientTape() as tape:
        tape.watch(M)
        y = M**2
    with pytest.raises(TypeError, match="batch_jacobian: source must be one Tensor or Variable"):
        tape.batch_jacobian(y, [M])
    with pytest.raises(TypeError, match="grad: argument 0 holds None"):
        gt.grad(lambda d: gt.sum(d["a"]))({"a": w, "n": None})
