"""What broke, or gave wrong numbers, when strangers tried vmap and the derivatives of functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import GradientError

X = np.array([0.3, 0.5])


def bent(v: gt.Tensor) -> gt.Tensor:
    return gt.sin(v) * v[0]


def test_reverse_mode_over_reverse_mode_over_a_batch_that_has_ended() -> None:
    weights = gt.constant(np.array([0.1, 0.2, 0.3]))

    def f(v: gt.Tensor) -> gt.Tensor:
        return gt.sum(gt.vmap(lambda a: a * v**3)(weights))

    v = np.array(0.3)
    assert gt.grad(gt.grad(f))(v).item() == pytest.approx(6 * 0.6 * 0.3)
    assert gt.grad(gt.grad(gt.grad(f)))(v).item() == pytest.approx(6 * 0.6)


def test_three_jacobians_in_any_modes() -> None:
    modes = (gt.jacrev, gt.jacfwd)
    want = gt.jacfwd(gt.jacfwd(gt.jacfwd(bent)))(X)
    for a in modes:
        for b in modes:
            for c in modes:
                np.testing.assert_allclose(a(b(c(bent)))(X), want, atol=1e-12)


@pytest.mark.parametrize("inner", [gt.jacrev, gt.jacfwd, gt.hessian])
def test_the_hessian_of_a_loss_with_a_jacobian_inside(inner: Any) -> None:
    f = (lambda v: gt.sum(bent(v))) if inner is gt.hessian else bent

    def loss(v: gt.Tensor) -> gt.Tensor:
        return gt.sum(inner(f)(v) ** 2)

    want = gt.jacfwd(gt.jacfwd(loss))(X)
    np.testing.assert_allclose(gt.hessian(loss)(X), want, atol=1e-12)


def test_tied_weights_to_the_second_order_on_tapes() -> None:
    w = gt.Variable(np.array([[0.5, -0.3], [0.2, 0.4]]))
    x = gt.constant(np.random.default_rng(0).standard_normal((4, 2)))

    def loss() -> gt.Tensor:
        return gt.sum(gt.vmap(lambda row: gt.tanh(gt.tanh(row @ w) @ w))(x) ** 2)

    def second(batched: bool) -> gt.Tensor:
        with gt.GradientTape() as outer:
            with gt.GradientTape() as inner:
                y = loss() if batched else gt.sum(gt.tanh(gt.tanh(x @ w) @ w) ** 2)
            g = inner.gradient(y, w)
        return outer.jacobian(g, w)

    np.testing.assert_allclose(second(True), second(False), atol=1e-12)


def test_a_custom_gradient_that_is_not_linear_has_no_forward_mode() -> None:
    @gt.custom_gradient
    def clipped(x: gt.Tensor) -> Any:
        return x * 1.0, lambda g: gt.clip_by_norm(g, 0.1)

    with pytest.raises(GradientError, match="clipped: its gradient function is not linear"):
        gt.jacfwd(clipped)(X)
    np.testing.assert_allclose(gt.jacrev(clipped)(X), 0.1 * np.eye(2))


def test_structures_must_agree() -> None:
    def f(p: Any) -> Any:
        return {"u": p["a"] * p["b"], "v": p["a"]}

    point = {"a": gt.constant(1.0), "b": gt.constant(2.0)}
    wrong = {"b": gt.constant(1.0), "c": gt.constant(2.0)}
    for call in (
        lambda: gt.jvp(f, (point,), (wrong,)),
        lambda: gt.vjp(f, point)[1](wrong),
        lambda: gt.linearize(f, point)[1](wrong),
        lambda: gt.hvp(lambda p: p["a"] * p["b"], (point,), (wrong,)),
    ):
        with pytest.raises(ValueError, match="must have the structure of"):
            call()


def test_arguments_named_twice_or_not_at_all() -> None:
    for argnums in ((0, 0), (1, -1)):
        with pytest.raises(ValueError, match="argnums names an argument twice"):
            gt.grad(gt.multiply, argnums=argnums)(1.0, 2.0)
    for argnums in (1.0, None, True):
        with pytest.raises(TypeError, match="argnums must be an argument's position or name"):
            gt.grad(gt.multiply, argnums=argnums)(1.0, 2.0)
    assert gt.grad(gt.multiply, argnums=np.int64(1))(3.0, 2.0).item() == 3.0
    v = gt.Variable(3.0)
    with pytest.raises(ValueError, match=r"a variable is passed twice; pass variable.value"):
        gt.grad(gt.multiply, argnums=(0, 1))(v, v)


def test_real_and_complex_numbers_do_not_meet_in_a_jacobian() -> None:
    with pytest.raises(TypeError, match="the result of a real argument is complex"):
        gt.jacrev(lambda x: gt.exp(1j * x))(X)
    with pytest.raises(TypeError, match="jacfwd: an argument is complex"):
        gt.jacfwd(gt.abs)(X * 1j)
    with pytest.raises(TypeError, match="must return a real, floating scalar, got a complex"):
        gt.grad(gt.sum)(X * 1j)
    with pytest.raises(TypeError, match="must return a real, floating scalar, got a int64"):
        gt.grad(gt.argmax)(X)


def test_batch_sizes_that_a_trace_does_not_know_must_agree_when_it_runs() -> None:
    f = gt.function(gt.vmap(lambda x, y: x * y), input_signature=[gt.TensorSpec([None])] * 2)
    assert f(gt.ones(3), gt.ones(3)).shape == (3,)
    with pytest.raises(ValueError, match="reshape"):
        f(gt.ones(3), gt.ones(1))


def test_dependence_that_a_large_number_or_nan_hides_is_found() -> None:
    x = gt.constant(np.array([[1.0], [2.0]]))
    for factor in (1e9, np.nan):
        with gt.GradientTape() as tape:
            tape.watch(x)
            y = gt.stack([x[0] * factor, x[1] + x[0]])
        with pytest.raises(ValueError, match="the examples are not independent"):
            tape.batch_jacobian(y, x, check=True)
        assert tape.jacobian(y, x).shape == (2, 1, 2, 1)  # the tape is as it was
    with pytest.raises(ValueError, match="the Jacobian is not diagonal"):
        gt.jacobian(
            lambda v: gt.stack([v[0] * 1e9, v[1] + v[0]]), structure="diagonal", check=True
        )(X)


def test_a_batch_jacobian_that_is_refused_leaves_the_tape_as_it_was() -> None:
    x = gt.ones((3, 2))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x[:2] * 2.0
    with pytest.raises(ValueError, match="same number of examples"):
        tape.batch_jacobian(y, x)
    assert tape.gradient(y, x).shape == (3, 2)


def test_an_unconnected_batch_jacobian_in_a_trace_is_zeros() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None, 2]), gt.TensorSpec([None, 3])])
    def f(x: gt.Tensor, y: gt.Tensor) -> gt.Tensor:
        with gt.GradientTape() as tape:
            tape.watch(x)
            z = y * 2.0
        return tape.batch_jacobian(z, x)

    assert f(gt.ones((4, 2)), gt.ones((4, 3))).shape == (4, 3, 2)


def test_random_numbers_constants_and_nothing_in_forward_mode() -> None:
    gt.random.set_seed(0)
    j = gt.jacfwd(lambda x: x * gt.random.normal((2,), dtype="float64"))(X).numpy()
    assert (j != 0).sum() == 2
    assert gt.jacfwd(gt.sin)(np.zeros(0)).shape == (0, 0)
    assert gt.jacfwd(lambda x: 1.0)(X).tolist() == [0.0, 0.0]
    _, push = gt.linearize(lambda x: (gt.ones(3), 2.0), X)
    assert push(X)[0].tolist() == [0.0, 0.0, 0.0]
    assert push(X)[1].item() == 0.0


def test_batches_without_examples() -> None:
    nothing = np.zeros((0, 2), "float32")
    drawn = gt.vmap(lambda x: gt.random.normal((2,)), randomness="different")(nothing)
    assert drawn.shape == (0, 2)
    f = gt.function(gt.vmap(lambda x: x.at[0].set(1.0)), input_signature=[gt.TensorSpec([None, 2])])
    assert f(nothing).shape == (0, 2)
    x = gt.constant(nothing)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sin(x)
    assert tape.batch_jacobian(y, x, check=True).shape == (0, 2, 2)


def test_a_mask_that_all_examples_share_beside_an_index_that_they_do_not() -> None:
    x, mask = np.arange(24.0).reshape(2, 3, 4), np.array([True, False, True, True])
    i = np.array([2, 0])
    found = gt.vmap(lambda x, i: x[i, mask])(x, i)
    np.testing.assert_array_equal(found, np.stack([x[n, i[n], mask] for n in range(2)]))


def test_axes_of_every_form() -> None:
    x = np.arange(6.0).reshape(3, 2)
    assert gt.vmap(lambda d: d["a"][0] + d["a"][1], in_axes=({"a": 0},))({"a": (x, x)}).shape == (
        3,
        2,
    )
    a, b = gt.vmap(lambda x: (x, gt.ones(4)), out_axes=(1, None))(x)
    assert (a.shape, b.shape) == ((2, 3), (4,))
    assert gt.vmap(lambda x, n: x, in_axes=np.int64(1))(x, None).shape == (2, 3)
    with pytest.raises(ValueError, match="out_axes is None for a result that differs"):
        gt.vmap(lambda x: x, out_axes=None)(x)
    for axes in ("a", 1.5, True):
        with pytest.raises(TypeError, match="in_axes must hold integers and None"):
            gt.vmap(lambda x: x, in_axes=axes)(x)
    with pytest.raises(TypeError, match="expected a function, got 3"):
        gt.vmap(3)


def test_an_integer_argument_of_jvp_is_told_how_to_be_fixed() -> None:
    with pytest.raises(TypeError, match=r"argument 0 holds int64 values.*functools.partial"):
        gt.jvp(gt.sin, (np.arange(2),), (np.arange(2),))
