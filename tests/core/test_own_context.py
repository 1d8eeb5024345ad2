"""A persistent tape that is asked inside its own context records what it computes."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import gradtape as gt


def orders(x, f, count):
    """Return the derivatives of the sum of f up to an order, by one tape."""
    found = []
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = gt.sum(f(x))
        for _ in range(count):
            y = tape.gradient(y, x)
            found.append(y)
    return found


@pytest.mark.parametrize("wrap", [lambda f: f, gt.function, gt.vmap])
def test_one_tape_gives_every_order(wrap) -> None:
    x = gt.constant([0.3, 0.7], "float64")
    found = wrap(lambda x: orders(x, gt.sin, 5))(x)
    right = [np.cos(x), -np.sin(x), -np.cos(x), np.sin(x), np.cos(x)]
    for got, want in zip(found, right, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_the_orders_go_on_after_the_context() -> None:
    x = gt.constant(2.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        first = tape.gradient(x**3, x)
    second = tape.gradient(first, x)
    assert second.item() == 12.0
    assert tape.gradient(second, x) is None  # asked outside


def network(seed=0, width=8):
    rng = np.random.default_rng(seed)
    sizes = [(2, width), (width, width), (width, 1)]
    weights = [gt.Variable(rng.normal(size=s) / s[0] ** 0.5) for s in sizes]
    return weights, rng.normal(size=(5, 1)), rng.normal(size=(5, 1))


@pytest.mark.parametrize("traced", [False, True])
def test_a_physics_informed_loss_is_written_with_one_tape(traced) -> None:
    # u = exp(-t) sin(2 x) of a fixed formula, and of a network beside the same by nested tapes
    weights, x, t = network()
    x, t = gt.constant(x), gt.constant(t)

    def u_of(x, t):
        h = gt.concatenate([x, t], axis=1)
        for w in weights[:-1]:
            h = gt.tanh(h @ w)
        return h @ weights[-1]

    def one_tape(u, x, t):
        with gt.GradientTape(persistent=True) as tape:
            tape.watch([x, t])
            value = u(x, t)
            u_x, u_t = tape.gradient(value, [x, t])
            u_xx = tape.gradient(u_x, x)
            loss = gt.mean((u_t - 0.1 * u_xx) ** 2)
        return u_t, u_xx, tape.gradient(loss, weights, unconnected_gradients="zero")

    def nested(u, x, t):
        with gt.GradientTape() as third:
            with gt.GradientTape() as second:
                second.watch(x)
                with gt.GradientTape() as first:
                    first.watch([x, t])
                    value = u(x, t)
                u_x, u_t = first.gradient(value, [x, t])
            u_xx = second.gradient(u_x, x)
            loss = gt.mean((u_t - 0.1 * u_xx) ** 2)
        return u_t, u_xx, third.gradient(loss, weights, unconnected_gradients="zero")

    wrap = gt.function if traced else lambda f: f
    u_t, u_xx, _ = wrap(lambda x, t: one_tape(lambda x, t: gt.exp(-t) * gt.sin(2.0 * x), x, t))(
        x, t
    )
    exact = np.exp(-np.asarray(t)) * np.sin(2 * np.asarray(x))
    np.testing.assert_allclose(u_xx, -4.0 * exact, rtol=1e-12)
    np.testing.assert_allclose(u_t, -exact, rtol=1e-12)
    got = wrap(lambda x, t: one_tape(u_of, x, t))(x, t)
    for a, b in zip(
        gt.flatten(got)[0].tolist(), gt.flatten(nested(u_of, x, t))[0].tolist(), strict=True
    ):
        assert a == pytest.approx(b, rel=1e-10)


@pytest.mark.parametrize("pfor", [True, False])
@pytest.mark.parametrize("wrap", [lambda f: f, gt.function])
def test_a_jacobian_is_recorded_too(wrap, pfor) -> None:
    def second(x):
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x**3 * gt.sum(x)
            first = tape.jacobian(y, x, experimental_use_pfor=pfor)
            return tape.jacobian(first, x, experimental_use_pfor=pfor)

    x = gt.constant([1.0, 2.0, 0.5], "float64")
    want = gt.jacrev(gt.jacrev(lambda x: x**3 * gt.sum(x)))(x)
    np.testing.assert_allclose(wrap(second)(x), want, rtol=1e-12)


@pytest.mark.parametrize("wrap", [lambda f: f, gt.function])
def test_a_batch_jacobian_is_recorded_too(wrap) -> None:
    def second(x):
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            first = tape.batch_jacobian(gt.exp(x) * x[:, ::-1], x)
            return tape.gradient(gt.sum(first**2), x)

    x = gt.constant([[1.0, 2.0], [0.3, 0.1], [2.0, 0.0]], "float64")
    one = gt.grad(lambda x: gt.sum(gt.jacrev(lambda x: gt.exp(x) * x[::-1])(x) ** 2))
    np.testing.assert_allclose(wrap(second)(x), gt.vmap(one)(x), rtol=1e-12)


def test_a_tape_asked_inside_a_vmap_in_its_context_records_too() -> None:
    x = gt.constant([0.3, 0.7], "float64")
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        slopes = gt.vmap(lambda x: gt.grad(lambda x: gt.sin(x) * x)(x))(x)
        third = tape.gradient(tape.gradient(slopes, x), x)
    v = np.asarray(x)
    np.testing.assert_allclose(third, -3 * np.sin(v) - v * np.cos(v), rtol=1e-12)


def test_upstream_gradients_that_are_followed_are_differentiated() -> None:
    x, g = gt.constant(3.0), gt.constant(2.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch([x, g])
        slope = tape.gradient(x * x, x, output_gradients=g)
    assert [d.item() for d in tape.gradient(slope, [x, g])] == [4.0, 6.0]


def test_stop_recording_asks_without_recording() -> None:
    x = gt.constant(3.0)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x**3
        before = len(tape._all)
        with tape.stop_recording():
            slope = tape.gradient(y, x)
        assert len(tape._all) == before
        assert slope.item() == 27.0
        assert tape.gradient(slope, x) is None


@pytest.mark.parametrize("kind", ["gradient", "jacobian", "batch_jacobian"])
def test_nothing_keeps_the_tape_alive(kind) -> None:
    x = gt.constant([[3.0, 1.0]])
    gc.collect()
    gc.disable()
    try:
        with gt.GradientTape(persistent=True) as tape:
            tape.watch(x)
            found = getattr(tape, kind)(x**3, x)
        gone = weakref.ref(tape)
        del tape, found
        assert gone() is None
    finally:
        gc.enable()
