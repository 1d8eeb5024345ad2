"""The gradient of what all examples of a vmap share takes no memory per example."""

from __future__ import annotations

import tracemalloc
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape import layers
from gradtape.core.extend import F, Op

RNG = np.random.default_rng(0)


def normal(*shape: int) -> gt.Tensor:
    return gt.constant(RNG.normal(size=shape))


def integers(high: int, *shape: int) -> gt.Tensor:
    return gt.constant(RNG.integers(0, high, size=shape))


def peak(run: Callable[[], Any]) -> tuple[int, Any]:
    """Return the most memory, in bytes, that a second run takes at a time, and its result."""
    run()
    tracemalloc.start()
    try:
        result = run()
        return tracemalloc.get_traced_memory()[1], result
    finally:
        tracemalloc.stop()


def assert_as_small(vmapped: Callable[[], Any], batched: Callable[[], Any]) -> None:
    """Check that the results agree, and that one takes little more memory than the other."""
    (most, got), (least, want) = peak(vmapped), peak(batched)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6, atol=1e-9)
    assert most <= 3 * least + 100_000, f"{most / 1e6:.2f} MB, and {least / 1e6:.2f} MB batched"


X, WIDE = normal(600, 30), normal(100, 6, 30)
W, SQUARE, LOWER = normal(30, 40), normal(30, 30), np.tril(RNG.normal(size=(30, 30)))
TABLE, ROWS, SOME = normal(3000, 16), integers(3000, 200), integers(3000, 200, 5)
IMAGES, FILTERS = normal(60, 12, 12, 3), normal(3, 3, 3, 32)
ALONG = integers(3000, 200, 4, 16)
POINTS, KNOTS = normal(300), np.arange(3000.0)

# what is shared, a function of one example and of it, the examples, and the same for the batch
OPS: dict[str, tuple[Any, Callable[..., Any], Any, Callable[..., Any]]] = {
    "one row": (TABLE, lambda v, i: v[i], ROWS, lambda v, i: v[i]),
    "rows": (TABLE, lambda v, i: v[i], SOME, lambda v, i: v[i]),
    "columns": (TABLE.mT, lambda v, i: v[:, i], SOME, lambda v, i: v[:, i]),
    "elements": (TABLE, lambda v, i: v[i, 3], ROWS, lambda v, i: v[i, 3]),
    "apart": (
        gt.reshape(TABLE, (1000, 3, 16)),
        lambda v, i: v[i, :, [2, 0]],
        ROWS % 1000,
        lambda v, i: v[i[:, None], :, [2, 0]],
    ),
    "take": (TABLE, lambda v, i: gt.take(v, i, axis=0), SOME, lambda v, i: gt.take(v, i, axis=0)),
    "take_along_axis": (
        TABLE,
        lambda v, i: gt.take_along_axis(v, i, axis=0),
        ALONG,
        lambda v, i: gt.take_along_axis(v, gt.reshape(i, (800, 16)), axis=0),
    ),
    "embedding": (TABLE, gt.nn.embedding_lookup, SOME, gt.nn.embedding_lookup),
    "vector @ matrix": (W, lambda w, x: x @ w, X, lambda w, x: x @ w),
    "matrix @ matrix": (W, lambda w, x: x @ w, WIDE, lambda w, x: x @ w),
    "matrix @ vector": (W, lambda w, x: w.mT @ x, X, lambda w, x: x @ w),
    "tensordot": (W, lambda w, x: gt.tensordot(x, w, 1), X, lambda w, x: gt.tensordot(x, w, 1)),
    "einsum": (
        W,
        lambda w, x: gt.einsum("i,ij->j", x, w),
        X,
        lambda w, x: gt.einsum("bi,ij->bj", x, w),
    ),
    "quadratic": (
        SQUARE,
        lambda w, x: gt.einsum("i,ij,j->", x, w, x),
        X,
        lambda w, x: gt.einsum("bi,ij,bj->b", x, w, x),
    ),
    "inner": (W.mT, lambda w, x: gt.inner(x, w), X, lambda w, x: gt.inner(x, w)),
    "conv": (
        FILTERS,
        lambda w, x: gt.nn.conv2d(x[None], w),
        IMAGES,
        lambda w, x: gt.nn.conv2d(x, w),
    ),
    "solve": (SQUARE, gt.linalg.solve, X, lambda a, b: gt.linalg.solve(a, b.mT)),
    "solve_triangular": (
        gt.constant(LOWER + 9 * np.eye(30)),
        gt.linalg.solve_triangular,
        X,
        lambda a, b: gt.linalg.solve_triangular(a, b.mT),
    ),
    "interp": (
        normal(3000),
        lambda y, x: gt.interp(x, KNOTS, y),
        POINTS,
        lambda y, x: gt.interp(x, KNOTS, y),
    ),
    "concat": (
        normal(30),
        lambda v, x: gt.concat([x, v]),
        X,
        lambda v, x: gt.concat([x, gt.broadcast_to(v, (600, 30))], axis=1),
    ),
    "multiply": (normal(30), lambda v, x: x * v, X, lambda v, x: x * v),
    "where": (
        normal(30),
        lambda v, x: gt.where(x > 0, x, v),
        X,
        lambda v, x: gt.where(x > 0, x, v),
    ),
}


def both(name: str) -> tuple[Any, Callable[[Any], Any], Callable[[Any], Any]]:
    """Return what is shared, and the sum of squares over a vmap and over a batch."""
    shared, one, examples, whole = OPS[name]
    vmapped = gt.vmap(one, in_axes=(None, 0))
    return (
        shared,
        lambda v: gt.sum(vmapped(v, examples) ** 2),
        lambda v: gt.sum(whole(v, examples) ** 2),
    )


@pytest.mark.parametrize("name", OPS)
def test_the_gradient_takes_no_more_than_that_of_the_batch(name: str) -> None:
    shared, vmapped, batched = both(name)
    assert_as_small(lambda: gt.grad(vmapped)(shared), lambda: gt.grad(batched)(shared))


DERIVATIVES: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "second order": lambda f: gt.grad(lambda v: gt.sum(gt.grad(f)(v) ** 2)),
    "forward over reverse": lambda f: lambda v: gt.jvp(gt.grad(f), v, v)[1],
    "reverse over forward": lambda f: gt.grad(lambda v: gt.jvp(f, v, v)[1]),
    "of a function": lambda f: gt.grad(gt.function(f)),
    "in a function": lambda f: gt.function(gt.grad(f)),
    "two by two": lambda f: gt.vmap(gt.grad(lambda v, k: k * f(v)), in_axes=(None, 0)),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("name", ["rows", "vector @ matrix", "quadratic", "conv", "solve"])
def test_other_derivatives_take_no_more_either(name: str, derivative: str) -> None:
    shared, vmapped, batched = both(name)
    of = DERIVATIVES[derivative]
    given = (shared, gt.constant([1.0, 2.0])) if derivative == "two by two" else (shared,)
    f, g = of(vmapped), of(batched)
    assert_as_small(lambda: f(*given), lambda: g(*given))


def test_a_vmap_in_a_vmap() -> None:
    twice = gt.vmap(gt.vmap(lambda x, w: x @ w, in_axes=(0, None)), in_axes=(0, None))
    assert_as_small(
        lambda: gt.grad(lambda w: gt.sum(twice(WIDE, w) ** 2))(W),
        lambda: gt.grad(lambda w: gt.sum((WIDE @ w) ** 2))(W),
    )


def test_tapes_at_each_level_of_a_vmap_in_a_vmap() -> None:
    several = normal(3, 30, 40)

    def loss(w: Any) -> Any:
        return gt.sum(gt.vmap(lambda x: (x @ w) ** 3)(X))

    def by_task(w: Any) -> Any:
        return gt.sum(gt.vmap(gt.grad(loss))(w) ** 2)

    def batched(w: Any) -> Any:
        return gt.sum(gt.grad(lambda w: gt.sum((X @ w) ** 3))(w) ** 2)

    assert_as_small(lambda: gt.grad(by_task)(several), lambda: gt.grad(batched)(several))


def test_a_variable_that_the_function_reads() -> None:
    w = gt.Variable(W)

    def gradient(run: Callable[[], Any]) -> Callable[[], Any]:
        def compute() -> Any:
            with gt.GradientTape() as tape:
                loss = gt.sum(run() ** 2)
            return tape.gradient(loss, w)

        return compute

    assert_as_small(gradient(lambda: gt.vmap(lambda x: x @ w)(X)), gradient(lambda: X @ w.value))


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("vmap", [gt.vmap, lambda f: gt.vmap(gt.vmap(f))])
@pytest.mark.parametrize("around", [gt.function, gt.recompute_grad])
def test_traced_functions_and_recomputation_inside(around: Any, vmap: Any, compiled: bool) -> None:
    x = X if vmap is gt.vmap else gt.reshape(X, (20, 30, 30))

    def loss(w: Any) -> Any:
        return gt.sum(vmap(around(lambda x: gt.tanh(x @ w)))(x))

    run = gt.function(loss) if compiled else loss
    assert_as_small(lambda: gt.grad(run)(W), lambda: gt.grad(lambda w: gt.sum(gt.tanh(x @ w)))(W))


def test_control_flow_inside() -> None:
    steps = normal(100, 12, 10)
    w = normal(10, 30)

    def chosen(w: Any) -> Any:
        return gt.sum(gt.vmap(lambda x: gt.cond(x[0] > 0, lambda: x @ w, lambda: 2.0 * (x @ w)))(X))

    def scanned(w: Any) -> Any:
        def run(x: Any) -> Any:
            start = gt.zeros(30, dtype="float64")
            return gt.scan(lambda h, row: (gt.tanh(row @ w + h), h), start, x)[0]

        return gt.sum(gt.vmap(run)(steps))

    def stepped(w: Any) -> Any:
        start = gt.zeros((100, 30), dtype="float64")
        rows = gt.swapaxes(steps, 0, 1)
        return gt.sum(gt.scan(lambda h, row: (gt.tanh(row @ w + h), h), start, rows)[0])

    assert_as_small(
        lambda: gt.grad(chosen)(W),
        lambda: gt.grad(lambda w: gt.sum(gt.where(X[:, :1] > 0, X @ w, 2.0 * (X @ w))))(W),
    )
    assert_as_small(lambda: gt.grad(scanned)(w), lambda: gt.grad(stepped)(w))


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (layers.Dense(40), X),
        (layers.LSTM(30), normal(60, 10, 12)),
        (layers.Conv2D(16, 3), IMAGES),
        (layers.Embedding(3000, 16), SOME),
        (layers.MultiHeadAttention(4, 8), normal(50, 10, 16)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_the_weights_of_a_layer(layer: Any, x: Any) -> None:
    if x.dtype.kind == "f":
        x = x.astype("float32")
    pair = isinstance(layer, layers.MultiHeadAttention)
    call = (lambda x: layer(x, x)) if pair else layer
    call(x)

    def gradient(run: Callable[[], Any]) -> Any:
        with gt.GradientTape() as tape:
            loss = gt.sum(run() ** 2)
        found = tape.gradient(loss, layer.trainable_variables)
        return gt.concat([gt.reshape(g, (-1,)) for g in found]) / 1e3

    most, got = peak(lambda: gradient(lambda: gt.vmap(lambda e: call(e[None])[0])(x)))
    least, want = peak(lambda: gradient(lambda: call(x)))
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-3, atol=1e-4)
    assert most <= 3 * least + 100_000


# -- ops of plugins --------------------------------------------------------------------------------


def product(name: str, **record: Any) -> Op:
    return Op(
        name,
        lambda xp, x, w: xp.matmul(x, w),
        gradients={
            "x": lambda g, w: F.matmul(g, F.transpose(w, axes=None)),
            "w": lambda g, x: F.matmul(F.swapaxes(x, axis1=-1, axis2=-2), g),
        },
        **record,
    )


def merged(op: Op, arrays: list[Any], batched: list[bool], params: dict[str, Any]) -> Any:
    """Run a product of matrices with a shared one: the examples' rows are one matrix."""
    x, w = arrays
    assert batched == [True, False]
    size, rows, inner = x.shape
    product = op.raw(F.reshape(x, shape=(size * rows, inner)), w)
    return F.reshape(product, shape=(size, rows, product.shape[-1]))


@pytest.fixture
def plugin(request: pytest.FixtureRequest) -> Any:
    found = product("example::product", **request.param)
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [found])), "example")
    yield found
    gt.unregister_plugin("example")


@pytest.mark.parametrize("plugin", [{"batch": merged}, {}], indirect=True, ids=["rule", "none"])
def test_an_op_of_a_plugin(plugin: Op) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # without a rule, it runs example by example
        assert_as_small(
            lambda: gt.grad(lambda w: gt.sum(gt.vmap(lambda x: plugin(x, w))(WIDE) ** 2))(W),
            lambda: gt.grad(lambda w: gt.sum((WIDE @ w) ** 2))(W),
        )


@pytest.mark.parametrize("plugin", [{"batch": merged}], indirect=True)
def test_a_replaced_rule_runs_on_one_example(plugin: Op) -> None:
    shapes = []

    @gt.register_gradient("example::product", override=True)
    def rule(g: Any, x: Any, w: Any) -> Any:
        shapes.append((x.shape, w.shape))
        return g @ w.mT, x.mT @ g

    got = gt.grad(lambda w: gt.sum(gt.vmap(lambda x: plugin(x, w))(WIDE) ** 2))(W)
    want = gt.grad(lambda w: gt.sum((WIDE @ w) ** 2))(W)
    np.testing.assert_allclose(np.asarray(got), np.asarray(want))
    assert shapes == [((6, 30), (30, 40))]


# -- what a shared input must not lose -------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:invalid value")  # no example takes the root
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("points", [[-1.0, 4.0, -2.0, 9.0], [-1.0, -3.0], [4.0, 9.0]])
def test_examples_that_take_the_other_branch_give_no_nan(points: list[float], order: int) -> None:
    def one(x: Any, w: Any) -> Any:
        return gt.cond(x > 0, lambda: gt.sqrt(x) * gt.sin(w), lambda: x * w * w)

    def loss(w: Any) -> Any:
        return gt.sum(gt.vmap(one, in_axes=(0, None))(gt.constant(points), w))

    def looped(w: Any) -> Any:
        return sum(
            (np.sqrt(x) * gt.sin(w) if x > 0 else x * w * w for x in points), gt.constant(0.0)
        )

    f, g = loss, looped
    for _ in range(order):
        f, g = gt.grad(f), gt.grad(g)
    at = gt.constant(0.7, dtype="float64")
    np.testing.assert_allclose(f(at).numpy(), g(at).numpy(), rtol=1e-6)
    np.testing.assert_allclose(gt.function(f)(at).numpy(), g(at).numpy(), rtol=1e-6)


def test_examples_of_an_unknown_number_take_different_branches() -> None:
    @gt.function(input_signature=[gt.TensorSpec([None], "float64"), gt.TensorSpec([], "float64")])
    def gradient(x: Any, w: Any) -> Any:
        one = gt.vmap(
            lambda x, w: gt.cond(x > 0, lambda: gt.sqrt(x) * w, lambda: x * w), in_axes=(0, None)
        )
        return gt.grad(lambda w: gt.sum(one(x, w)))(w)

    for points in ([-1.0, 4.0, -2.0, 9.0], [-1.0], []):
        want = sum(np.sqrt(x) if x > 0 else x for x in points)
        assert gradient(gt.constant(points, dtype="float64"), 0.7).item() == pytest.approx(want)


# -- rules of custom gradients, which return one gradient per example ------------------------------


def layer(outer: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a product with a matrix, whose rule gives each example its own gradient of it."""

    @gt.custom_gradient
    def product(x: Any, w: Any) -> Any:
        y = gt.tanh(x @ w)

        def gradient(g: Any) -> Any:
            g = g * (1.0 - y * y)
            return w @ g, outer(x, g)

        return y, gradient

    return product


#: How a rule multiplies each element of one vector by each of another.
OUTER: dict[str, Callable[[Any, Any], Any]] = {
    "outer": gt.outer,
    "multiply": lambda x, g: x[:, None] * g,
    "matmul": lambda x, g: x[:, None] @ g[None],
    "einsum": lambda x, g: gt.einsum("i,j->ij", x, g),
    "in a function": gt.function(gt.outer),
    "in a loop": lambda x, g: gt.map(lambda a: a * g, x),
    "chosen": lambda x, g: gt.cond(gt.sum(g) > 0, lambda: gt.outer(x, g), lambda: -gt.outer(x, -g)),
    "by a tape": lambda x, g: gt.grad(lambda w: gt.sum((x @ w) * g))(gt.zeros_like(W)),
    "by a vmap": lambda x, g: gt.vmap(lambda a: a * g)(x),
}
LARGE = normal(2000, 30)


@pytest.mark.parametrize("around", [lambda f: f, gt.function], ids=["plain", "function"])
@pytest.mark.parametrize("name", OUTER)
def test_a_rule_runs_for_blocks_of_examples(name: str, around: Any) -> None:
    fn = around(layer(OUTER[name]))
    vmapped = gt.vmap(fn, in_axes=(0, None))
    both = lambda f: gt.grad(lambda x, w: gt.sum(f(x, w) ** 2), argnums=(0, 1))  # noqa: E731
    got = both(vmapped)(LARGE, W)
    want = both(lambda x, w: gt.tanh(x @ w))(LARGE, W)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    if name != "in a loop":  # which keeps its steps
        assert_as_small(
            lambda: both(vmapped)(LARGE, W)[1],
            lambda: both(lambda x, w: gt.tanh(x @ w))(LARGE, W)[1],
        )


@pytest.mark.parametrize("rows", [3, 7, 64, 999, 1000, 1001, 4096])
def test_blocks_are_the_whole_batch(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the number of rows is: what is shared, what is not, and a constant gradient."""
    blocks = pytest.importorskip("gradtape.core.tape.outer_tape")
    monkeypatch.setattr(blocks, "_BLOCK", 64)
    monkeypatch.setattr(blocks, "_LARGE", 0)
    calls = []

    @gt.custom_gradient
    def mixed(x: Any, v: Any, w: Any, b: Any) -> Any:
        def gradient(g: Any) -> Any:
            calls.append(g)
            return g * v * w, g * x * w, g * x * v, gt.ones_like(b)

        return x * v * w + b, gradient

    x, v, w, b = normal(rows, 4), normal(rows, 4), normal(4), normal(4)
    f = gt.vmap(mixed, in_axes=(0, 0, None, None))
    dx, dv, dw, db = gt.grad(lambda *xs: gt.sum(f(*xs)), argnums=(0, 1, 2, 3))(x, v, w, b)
    assert len(calls) > 1 or rows < 4
    np.testing.assert_allclose(dx, v * w)
    np.testing.assert_allclose(dv, x * w)
    np.testing.assert_allclose(dw, gt.sum(x * v, axis=0), rtol=1e-9)
    np.testing.assert_allclose(db, np.full(4, float(rows)))


def test_an_error_of_a_rule_is_raised_as_it_is_for_all() -> None:
    @gt.custom_gradient
    def wrong(x: Any, w: Any) -> Any:
        return x @ w, lambda g: (w @ g, gt.outer(g, x))

    f = gt.vmap(wrong, in_axes=(0, None))
    with pytest.raises(ValueError, match=r"argument 1 has shape \(40, 30\)"):
        gt.grad(lambda w: gt.sum(f(LARGE, w)))(W)


def test_derivatives_of_blocks_are_those_of_the_batch() -> None:
    fn = gt.vmap(layer(gt.outer), in_axes=(0, None))
    first = lambda f: gt.grad(lambda w: gt.sum(f(LARGE, w) ** 2))  # noqa: E731
    second = lambda f: gt.grad(lambda w: gt.sum(first(f)(w) ** 2))  # noqa: E731
    plain = lambda x, w: gt.tanh(x @ w)  # noqa: E731
    np.testing.assert_allclose(second(fn)(W), second(plain)(W), rtol=1e-8, atol=1e-6)
    tangents = gt.jvp(first(fn), (W,), (gt.ones_like(W),))[1]
    np.testing.assert_allclose(
        tangents, gt.jvp(first(plain), (W,), (gt.ones_like(W),))[1], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_numbers_of_a_rule_are_those_of_the_whole_batch(randomness: str) -> None:
    @gt.custom_gradient
    def noisy(x: Any, w: Any) -> Any:
        return x @ w, lambda g: (w @ g, gt.outer(x, g) * gt.random.uniform(w.shape))

    f = gt.vmap(noisy, in_axes=(0, None), randomness=randomness)
    gt.random.set_seed(0)
    got = gt.grad(lambda w: gt.sum(f(gt.ones_like(LARGE), w)))(W)
    # the mean of many numbers, or one number
    assert (float(gt.std(got)) < 30.0) == (randomness == "different")
