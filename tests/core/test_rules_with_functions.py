"""Rules of plugins may call public functions, wherever they run and whatever their arrays are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pretend_gpu
import pytest

import gradtape as gt
from gradtape.core.extend import Op, backend_of
from gradtape.errors import GradientError, PluginError

X = np.array([0.1, 0.2, 0.3])
SIN, COS = np.sin(X), np.cos(X)


def same(x: Any) -> Any:
    return x.shape, x.dtype


def sine(name: str, **rules: Any) -> Op:
    return Op(f"public::{name}", lambda xp, x: xp.sin(x), infer=same, batch="elementwise", **rules)


def by_rows(op: Op, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """A batching rule in public functions."""
    x, y = arrays
    if batched[1]:
        y = gt.reshape(y, (-1,) + (1,) * (len(x.shape) - batched[0]))
    if batched[1] and not batched[0]:
        x = gt.expand_dims(x, axis=0)
    return gt.sin(x) * y


single = sine("single", gradients={"x": lambda g, x: g * gt.cos(x)})
joint = sine("joint", vjp=lambda gs, inputs, outputs, needed: [gs[0] * gt.cos(inputs[0])])
composed = sine("composed", gradients={"x": lambda g, x: gt.multiply(gt.as_tensor(gt.cos(x)), g)})
scaled = Op(
    "public::scaled",
    lambda xp, x, y: xp.sin(x) * y,
    gradients={"x": lambda g, x, y: g * gt.cos(x) * y, "y": lambda g, x: gt.sum(g * gt.sin(x))},
    infer=lambda x, y: (x.shape, x.dtype),
    batch=by_rows,
)
total = Op(
    "public::total",
    lambda xp, x, *, factor: factor * xp.sum(x),
    gradients={"x": lambda g, x_like, factor: gt.broadcast_to(factor * g, x_like.shape)},
    infer=lambda x, factor: ((), x.dtype),
)
two = Op(
    "public::two",
    lambda xp, x: [xp.sin(x), xp.cos(x)],
    gradients={"x": lambda g, x: g},
    infer=lambda x: [(x.shape, x.dtype)] * 2,
)
apart = Op(
    "public::apart",
    lambda xp, x, y: [xp.sin(x), xp.cos(y)],
    infer=lambda x, y: [(x.shape, x.dtype), (y.shape, y.dtype)],
    batch="elementwise",
)
bare = Op("public::bare", lambda xp, x: [xp.sin(x), xp.cos(x)], batch="elementwise", infer=None)


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    ops = [single, joint, composed, scaled, total, two, apart, bare]
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: ops)), "public")
    yield
    gt.unregister_plugin("public")


def of_tape(f: Callable[..., Any], x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.jacobian(y, x)


def summed(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: gt.sum(f(x))


def over_steps(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: gt.scan(lambda carry, _: (f(carry), None), x, gt.arange(2))[0]


def ones(x: Any) -> tuple[Any]:
    return (gt.ones_like(x),)


# where a rule runs: (a function of the op and x, its value)
PLACES: dict[str, tuple[Callable[[Any, Any], Any], Any]] = {
    "grad": (lambda f, x: gt.grad(summed(f))(x), COS),
    "between others": (
        lambda f, x: gt.grad(lambda x: gt.sum(gt.sin(f(2.0 * x))))(x),
        np.cos(np.sin(2 * X)) * np.cos(2 * X) * 2,
    ),
    "second": (lambda f, x: gt.grad(summed(gt.grad(summed(f))))(x), -SIN),
    "jvp": (lambda f, x: gt.jvp(f, (x,), ones(x))[1], COS),
    "traced": (lambda f, x: gt.function(gt.grad(summed(f)))(x), COS),
    "of a trace": (lambda f, x: gt.grad(gt.function(summed(f)))(x), COS),
    "second, traced": (lambda f, x: gt.function(gt.grad(summed(gt.grad(summed(f)))))(x), -SIN),
    "vmap": (lambda f, x: gt.vmap(gt.grad(f))(x), COS),
    "second, vmap": (lambda f, x: gt.vmap(gt.grad(gt.grad(f)))(x), -SIN),
    "vmap inside": (lambda f, x: gt.grad(summed(gt.vmap(f)))(x), COS),
    "vmap of vmap": (lambda f, x: gt.vmap(gt.vmap(gt.grad(f)))(x[None])[0], COS),
    "jvp in vmap": (lambda f, x: gt.vmap(lambda x: gt.jvp(f, (x,), ones(x))[1])(x), COS),
    "vmap in a trace": (lambda f, x: gt.function(gt.vmap(gt.grad(f)))(x), COS),
    "a trace in vmap": (lambda f, x: gt.vmap(gt.grad(gt.function(f)))(x), COS),
    "jacobian": (lambda f, x: gt.jacobian(f)(x), np.diag(COS)),
    "tape.jacobian": (of_tape, np.diag(COS)),
    "hessian": (lambda f, x: gt.hessian(summed(f))(x), np.diag(-SIN)),
    "scan": (lambda f, x: gt.grad(summed(over_steps(f)))(x), np.cos(SIN) * COS),
    "scan, traced": (
        lambda f, x: gt.function(gt.grad(summed(over_steps(f))))(x),
        np.cos(SIN) * COS,
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", [single, joint, composed], ids=lambda op: op.name)
def test_gradient_rules_call_public_functions(op: Op, place: str) -> None:
    run, want = PLACES[place]
    for _ in range(2):  # a rule's first run may differ from the next ones
        got = run(op, gt.constant(X))
        assert isinstance(got.array, np.ndarray)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("op", [single, joint, composed], ids=lambda op: op.name)
def test_gradients_stay_on_the_backend_of_the_input(op: Op) -> None:
    gt.register_plugin(pretend_gpu.Plugin("pretended"), "pretended")
    try:
        x = gt.constant(X).to("pretended")
        assert backend_of(gt.grad(summed(op))(x).array).name == "pretended"
        with gt.backend("pretended"):
            found = gt.grad(summed(op))(x.to("numpy"))
        assert isinstance(found.array, np.ndarray)
        np.testing.assert_allclose(found.numpy(), COS, rtol=1e-12)
    finally:
        gt.unregister_plugin("pretended")


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 0)])
def test_rules_of_several_inputs(axes: tuple[Any, Any]) -> None:
    inputs = gt.constant(X), gt.constant(2.0, dtype="float64")
    given = [gt.stack([v, v]) if axis == 0 else v for v, axis in zip(inputs, axes, strict=True)]
    for argument, want in enumerate((2 * COS, SIN.sum())):
        slope = gt.grad(lambda x, y: gt.sum(scaled(x, y)), argnums=argument)
        got = gt.vmap(slope, in_axes=axes)(*given)
        np.testing.assert_allclose(got.numpy(), np.stack([want, want]), rtol=1e-12)
    outer = gt.grad(lambda x, y: gt.sum(gt.vmap(scaled, in_axes=axes)(x, y)), argnums=1)
    count = 1 if axes[1] == 0 else 2
    np.testing.assert_allclose(outer(*given).numpy(), count * SIN.sum(), rtol=1e-12)


def test_rules_that_read_only_shapes() -> None:
    x = gt.constant(X)
    assert gt.grad(lambda x: total(x, factor=2.0))(x).tolist() == [2.0, 2.0, 2.0]


def test_rules_for_one_output_are_refused_for_two() -> None:
    x = gt.constant(X)
    for run in (two, gt.function(lambda x: two(x)[0]), gt.grad(lambda x: gt.sum(two(x)[0]))):
        with pytest.raises(PluginError, match=r"public::two.* has 2 outputs.*pass vjp= instead"):
            run(x)

    @gt.register_gradient("public::bare")
    def rule(g: Any, x: Any) -> Any:
        return g * x

    with pytest.raises(GradientError, match=r"public::bare.* has 2 outputs.*'rule' is for one"):
        gt.grad(lambda x: gt.sum(bare(x)[1]))(x)


def test_several_outputs_are_elementwise_only_in_the_shape_of_all_inputs() -> None:
    x = gt.constant(X)
    y = gt.constant(0.5, dtype="float64")
    np.testing.assert_allclose(gt.vmap(lambda x: bare(x)[1])(x).numpy(), COS)
    np.testing.assert_allclose(gt.vmap(lambda x: apart(x, x)[1])(x).numpy(), COS)
    with pytest.raises(PluginError, match=r"public::apart.*output 1 has shape \(\).*batching rule"):
        gt.vmap(lambda x: apart(x, y)[1])(x)
