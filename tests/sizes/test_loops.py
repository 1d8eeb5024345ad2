"""Loops, branches, random numbers, transforms and own gradients where a trace's sizes are open."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

Function = Callable[[Any], Any]
D = "float64"
OPEN = [gt.TensorSpec([None, 3], D)]


def leaves(result: Any) -> list[Any]:
    """Return the numbers of a result, in order."""
    if isinstance(result, dict):
        return [x for key in sorted(result) for x in leaves(result[key])]
    if isinstance(result, (list, tuple)):
        return [x for part in result for x in leaves(part)]
    return [np.asarray(gt.as_tensor(result).numpy())]


def rows(n: int, scale: float = 1.0) -> gt.Tensor:
    return gt.constant(scale * np.linspace(0.5, 2.0, 3 * n).reshape(n, 3))


def seeded(fn: Callable[..., Any], *args: Any) -> list[Any]:
    gt.random.set_seed(5)
    return leaves(fn(*args))


def traced(fn: Function, rank: int = 2) -> Any:
    """Return a function traced once for every size, with axes for batches before."""
    return gt.function(fn, input_signature=[gt.TensorSpec([*[None] * (rank - 1), 3], D)])


def compare(got: list[Any], wanted: list[Any], rtol: float = 0.0) -> None:
    for mine, want in zip(got, wanted, strict=True):
        assert (mine.shape, mine.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(mine, want, rtol=rtol, atol=rtol)


def loss_of(fn: Function) -> Function:
    def loss(x: Any) -> Any:
        total = gt.sum(x * x)
        for y in gt.core.base.tree.flatten(fn(x)):
            if isinstance(y, gt.Tensor) and y.dtype.kind == "f":
                total += gt.sum(y.astype(D) ** 2)
        return total

    return loss


def second(fn: Function) -> Function:
    return gt.grad(lambda x: gt.sum(gt.grad(loss_of(fn))(x) ** 2))


class Saved(gt.Module):
    """A module with one traced function, for a file."""

    def __init__(self, fn: Function) -> None:
        super().__init__()
        self.fn = lambda x: fn(x)
        self.shared = gt.random.Generator(0)  # what the file asks of random numbers

    @gt.function(input_signature=OPEN)
    def run(self, x: Any) -> Any:
        return self.fn(x)


def own_slope(x: Any) -> Any:
    """Return a function of whose sizes a custom gradient makes use."""

    @gt.custom_gradient
    def f(a: Any) -> Any:
        n = a.shape[0]
        return a * a * n, lambda g: 2.0 * n * g * a * gt.ones(a.shape, D)

    return f(x)


def own_mean(x: Any) -> Any:
    @gt.custom_gradient
    def f(a: Any) -> Any:
        return 3.0 * gt.sum(a) / (
            a.size + 1
        ), lambda g: 3.0 * g * gt.ones(a.shape, D) / (x.shape[0] * 3 + 1)

    return f(x)


def rebuilt(x: Any) -> Any:
    vector, back = gt.flatten({"a": x, "b": 2.0 * x[:, 0]})
    return vector, back(vector * vector.shape[0])


def example_slopes(x: Any) -> Any:
    a = gt.transpose(x)
    with gt.GradientTape() as tape:
        tape.watch(a)
        y = gt.sin(a) * gt.sum(a, axis=1, keepdims=True) * a.shape[1]
    return tape.batch_jacobian(y, a)


def scaled_sines(v: Any) -> Any:
    return gt.sin(v) * gt.sum(v) * v.shape[0]


def mean_sine(v: Any) -> Any:
    return gt.sum(gt.sin(v) * v) / (v.size + 1)


taken_in = gt.function(
    lambda a, k: a * k, input_signature=[gt.TensorSpec([None, 3], D), gt.TensorSpec([], D)]
)
concrete = gt.function(lambda a: (a / a.shape[0], a.shape[0])).get_concrete_function(OPEN[0])
recomputed = gt.recompute_grad(lambda a, k: (gt.sin(a) * k + gt.zeros(a.shape, D), a.shape[0] / 2))

#: What is written with sizes -> the function, and the shapes that a trace infers.
TABLE: dict[str, tuple[Function, str]] = {
    # numbers that a function returns
    "a size": (lambda x: x.shape[0], "()"),
    "a number beside a tensor": (lambda x: {"a": x.shape[0] / 2, "b": x * 2.0}, "() (n, 3)"),
    "a comparison": (lambda x: (x.shape[0] > 2, x), "() (n, 3)"),
    "a shape": (lambda x: [x.size, x.shape], "() ()"),
    # loops
    "state of a recurrent net": (
        lambda x: gt.scan(
            lambda h, r: (gt.tanh(h + r), 2.0 * h), gt.zeros(x.shape[0], D), gt.transpose(x)
        ),
        "(n,) (3, n)",
    ),
    "scan of n steps": (
        lambda x: gt.scan(lambda c, _: (1.5 * c + 1.0, c), gt.sum(x), length=x.shape[0]),
        "() (n,)",
    ),
    "scan of n // 2 steps, backwards": (
        lambda x: gt.scan(
            lambda c, _: (1.5 * c + 1.0, c), gt.sum(x), length=x.shape[0] // 2, reverse=True
        ),
        "() (n // 2,)",
    ),
    "scan of rows and a length": (
        lambda x: gt.scan(lambda c, r: (c + gt.sum(r), c), gt.sum(x), x, length=x.shape[0]),
        "() (n,)",
    ),
    "scan of two": (
        lambda x: gt.scan(
            lambda c, r: (c + gt.sum(r[0] * r[1]), c), 0.0, (x, gt.ones((x.shape[0], 3), D))
        ),
        "() (n,)",
    ),
    "scan from a size": (
        lambda x: gt.scan(lambda c, r: (c + gt.sum(r), c), x.shape[0], x),
        "() (n,)",
    ),
    "scan from a number": (
        lambda x: gt.scan(lambda c, r: (c + gt.sum(r), c), x.shape[0] / 2, x),
        "() (n,)",
    ),
    "scan with sizes around": (
        lambda x: gt.scan(lambda c, r: (c + r / x.shape[0], r * x.shape[0]), gt.zeros(3, D), x),
        "(3,) (n, 3)",
    ),
    "scan with its own sizes": (
        lambda x: gt.scan(
            lambda c, r: (c[::-1] * r, gt.zeros((r.shape[0] // 2, 2), D) + c.shape[0]),
            x[:, 0],
            gt.transpose(x),
        ),
        "(n,) (3, n // 2, 2)",
    ),
    "scan of what has half the size": (
        lambda x: gt.scan(
            lambda c, r: (c * r + gt.zeros(r.shape, D), r[: r.shape[0] // 2]),
            gt.ones(x.shape[0] // 2, D),
            gt.transpose(x[: x.shape[0] // 2]),
        ),
        "(n // 2,) (3, n // 4)",
    ),
    "scan in scan": (
        lambda x: gt.scan(
            lambda c, r: (gt.scan(lambda d, q: (d + q * x.shape[0], d), c, r)[0], c * r.shape[0]),
            gt.sum(x),
            gt.transpose(x),
        ),
        "() (3,)",
    ),
    "map": (lambda x: gt.map(lambda r: r * x.shape[0], x), "(n, 3)"),
    "map that returns a size": (
        lambda x: gt.map(lambda r: (r.shape[0], gt.sum(r)), gt.transpose(x)),
        "(3,) (3,)",
    ),
    "map over a range": (
        lambda x: gt.map(lambda i: x * i.astype(D), gt.arange(x.shape[0])),
        "(n, n, 3)",
    ),
    "while below n": (
        lambda x: gt.while_loop(
            lambda i, s: i < x.shape[0], lambda i, s: (i + 1, 1.1 * s + gt.sum(x)), (0, gt.sum(x))
        ),
        "() ()",
    ),
    "while, n times at most": (
        lambda x: gt.while_loop(
            lambda s: s < 50.0, lambda s: 1.1 * s + 1.0, gt.sum(x), maximum_iterations=x.shape[0]
        ),
        "()",
    ),
    "while from n down": (
        lambda x: gt.while_loop(
            lambda i, s: i > 0, lambda i, s: (i - 1, 1.1 * s + i), (x.shape[0], gt.sum(x))
        ),
        "() ()",
    ),
    "while from a number down": (
        lambda x: gt.while_loop(
            lambda i, s: i > 0, lambda i, s: (i - 1, 1.1 * s + i), (x.shape[0] / 2, gt.sum(x))
        ),
        "() ()",
    ),
    "while by its own size": (
        lambda x: gt.while_loop(
            lambda i, s: i < s.shape[0], lambda i, s: (i + 1, 1.1 * s + s.shape[0]), (0, x)
        ),
        "() (n, 3)",
    ),
    "while it halves": (
        lambda x: gt.while_loop(
            lambda a: a.shape[0] > 1, lambda a: a[: a.shape[0] // 2] * a.shape[0], x
        ),
        "(_, 3)",
    ),
    # branches
    "cond by a size": (
        lambda x: gt.cond(x.shape[0] > 2, lambda: 2.0 * x, lambda: 3.0 * x),
        "(n, 3)",
    ),
    "cond by what is proved": (
        lambda x: gt.cond(x.shape[0] >= 0, lambda: 2.0 * x, lambda: 3.0 * x),
        "(n, 3)",
    ),
    "cond of both": (
        lambda x: gt.cond((x.shape[0] > 1) & (gt.sum(x) > 5.0), lambda: 2.0 * x, lambda: 3.0 * x),
        "(n, 3)",
    ),
    "cond of sizes inside and around": (
        lambda x: gt.cond(
            x.shape[0] % 2 == 0,
            lambda a: gt.sum(a[: a.shape[0] // 2]) * x.shape[0],
            lambda a: gt.sum(a) / x.shape[0],
            x,
        ),
        "()",
    ),
    "cond of a number": (
        lambda x: gt.cond(x.shape[0] / 2 > 1.2, lambda: x.shape[0], lambda: 7),
        "()",
    ),
    "cond of shapes that are equal": (
        lambda x: gt.cond(gt.sum(x) > 5.0, lambda: gt.zeros(x.shape, D) + x, lambda: x[::-1]),
        "(n, 3)",
    ),
    "cond that returns numbers": (
        lambda x: gt.cond(
            gt.sum(x) > 5.0, lambda: (x.shape[0], x.shape[0] > 1), lambda: (x.size, True)
        ),
        "() ()",
    ),
    "cond with a size for operand": (
        lambda x: gt.cond(gt.sum(x) > 5.0, lambda k: x * k, lambda k: x / (k + 1), x.shape[0]),
        "(n, 3)",
    ),
    "scan in cond": (
        lambda x: gt.cond(
            gt.sum(x) > 5.0,
            lambda: gt.scan(lambda c, _: (1.1 * c, c), gt.sum(x), length=x.shape[0])[0],
            lambda: gt.sum(x),
        ),
        "()",
    ),
    # random numbers
    "normal": (lambda x: x * gt.random.normal(x.shape, dtype=D), "(n, 3)"),
    "normal of parameters": (lambda x: gt.random.normal((2, *x.shape), x, x, D), "(2, n, 3)"),
    "uniform": (lambda x: gt.random.uniform((4, x.size), x.shape[0], 9.0), "(4, 3*n)"),
    "truncated normal": (lambda x: gt.random.truncated_normal(x.shape[0] // 2), "(n // 2,)"),
    "exponential": (lambda x: gt.random.exponential((x.shape[0], 1), x, D), "(n, 3)"),
    "bernoulli": (lambda x: gt.random.bernoulli(x.shape, 1 / (x.shape[0] + 1)), "(n, 3)"),
    "categorical": (lambda x: gt.random.categorical(x, x.shape[0]), "(n, n)"),
    "randint": (lambda x: gt.random.randint(x.shape, -x.shape[0] - 1, x.shape[0]), "(n, 3)"),
    "permutation": (lambda x: gt.random.permutation(x.shape[0]), "(n,)"),
    "shuffle": (lambda x: gt.random.shuffle(x), "(n, 3)"),
    "choice of rows": (lambda x: gt.random.choice(x, x.shape[0]), "(n, 3)"),
    "choice, each once": (
        lambda x: gt.random.choice(x, x.shape[0] // 2, replace=False),
        "(n // 2, 3)",
    ),
    "choice by weights": (
        lambda x: gt.random.choice(x, x.shape[0] // 2, replace=False, p=x[:, 0]),
        "(n // 2, 3)",
    ),
    "choice of numbers": (lambda x: gt.random.choice(x.shape[0] + 1, (x.shape[0], 2)), "(n, 2)"),
    # gradients of one's own, and functions in functions
    "custom gradient": (own_slope, "(n, 3)"),
    "custom gradient by a size around": (own_mean, "()"),
    "custom gradient in scan": (
        lambda x: gt.scan(lambda c, r: (own_mean(r[:, None]), own_slope(r)), 0.0, gt.transpose(x)),
        "() (3, n)",
    ),
    "recomputed": (lambda x: recomputed(x, x.shape[0]), "(n, 3) ()"),
    "a function that declares a number": (lambda x: taken_in(x, x.shape[0]), "(n, 3)"),
    "a trace in a trace": (
        lambda x: concrete(x)[0] * concrete(x)[1] + gt.zeros((concrete(x)[1], 3), D),
        "(_, 3)",
    ),
    # transforms
    "jacobian": (lambda x: gt.jacrev(scaled_sines)(x), "(n, 3, n, 3)"),
    "jacobian, forward": (lambda x: gt.jacfwd(scaled_sines)(x[:, 0]), "(n, n)"),
    "hessian": (lambda x: gt.hessian(mean_sine)(x[:, 0]), "(n, n)"),
    "diagonal jacobian": (
        lambda x: gt.jacobian(lambda v: gt.sin(v) * v.shape[0], structure="diagonal")(x),
        "(n, 3)",
    ),
    "banded jacobian": (
        lambda x: gt.jacobian(
            lambda v: gt.sin(v) + gt.concatenate([v[1:] ** 2, v[:1]]), structure="banded(1)"
        )(x[:, 0]),
        "(3, n)",
    ),
    "batch jacobian": (example_slopes, "(3, n, n)"),
    "jvp": (lambda x: gt.jvp(scaled_sines, [x], [2.0 * x])[1], "(n, 3)"),
    "hvp": (lambda x: gt.hvp(mean_sine, [x], [2.0 * x]), "(n, 3)"),
    "flatten": (rebuilt, "(4*n,) (n, 3) (n,)"),
    "vmap": (
        lambda x: gt.vmap(lambda r: r[: r.shape[0] // 2] * x.shape[0])(gt.transpose(x)),
        "(3, n // 2)",
    ),
    "vmap of two": (
        lambda x: gt.vmap(lambda r, s: r * gt.sum(s))(x, gt.ones((x.shape[0], 2), D)),
        "(n, 3)",
    ),
    "vmap that returns sizes": (
        lambda x: gt.vmap(lambda r: (r.shape[0], x.shape[0], r))(x),
        "(n,) (n,) (n, 3)",
    ),
    "vmap in vmap": (
        lambda x: gt.vmap(lambda a: gt.vmap(lambda b: gt.sum(a * b) / (x.shape[0] + 1))(x))(x),
        "(n, n)",
    ),
}
#: What eager code refuses at a size, and the other sizes that are tried.
LEAST = {"choice by weights": 2, "cond of sizes inside and around": 1}
#: What has sizes of its own in each example of a batch, or draws in files by another generator.
NO_BATCH: set[str] = set()
DRAWN = {
    "normal", "normal of parameters", "uniform", "truncated normal", "exponential", "bernoulli",
    "categorical", "randint", "permutation", "shuffle", "choice of rows", "choice, each once",
    "choice by weights", "choice of numbers",
}  # fmt: skip


def sizes_for(name: str) -> list[int]:
    return [n for n in (0, 1, 2, 3, 7) if n >= LEAST.get(name, 0)]


@pytest.mark.parametrize("name", TABLE)
def test_one_trace_gives_at_every_size_what_eager_code_gives(name: str) -> None:
    fn, _ = TABLE[name]
    run = traced(fn)
    for n in sizes_for(name):
        compare(seeded(run, rows(n)), seeded(fn, rows(n)), 1e-15)


@pytest.mark.parametrize("name", TABLE)
def test_a_trace_infers_shapes_made_of_sizes(name: str) -> None:
    fn, shapes = TABLE[name]
    graph = traced(fn).get_concrete_function().graph
    found = " ".join(str(y.shape) for y in graph.outputs)
    for got, want in zip(found.split(), shapes.split(), strict=True):
        assert want.startswith("(_") or got == want, found


@pytest.mark.parametrize("name", TABLE)
def test_gradients_of_two_orders_hold_in_traces(name: str) -> None:
    fn, _ = TABLE[name]
    for make in (lambda f: gt.grad(loss_of(f)), second):
        within, through = traced(make(fn)), make(traced(fn))
        for n in sizes_for(name):
            want = seeded(make(fn), rows(n))
            compare(seeded(within, rows(n)), want, 1e-9)
            compare(seeded(through, rows(n)), want, 1e-9)


@pytest.mark.parametrize("name", [name for name in TABLE if name not in NO_BATCH])
def test_batches_run_one_trace(name: str) -> None:
    fn, _ = TABLE[name]
    within = traced(gt.vmap(fn, randomness="same"), 3)
    through = gt.vmap(traced(fn), randomness="same")
    for n in sizes_for(name):
        both = [rows(n), rows(n, 1.5)]
        pairs = zip(*(seeded(fn, x) for x in both), strict=True)
        want = [np.stack(pair) for pair in pairs]
        compare(seeded(within, gt.stack(both)), want, 1e-9)
        compare(seeded(through, gt.stack(both)), want, 1e-9)


@pytest.mark.parametrize("name", TABLE)
def test_a_file_serves_every_size(name: str, tmp_path: Path) -> None:
    fn, _ = TABLE[name]
    gt.random.set_seed(5)
    gt.save(Saved(fn), tmp_path / "m.gt")
    loaded = gt.load(tmp_path / "m.gt")
    for n in sizes_for(name):
        found, want = leaves(loaded.run(rows(n))), seeded(fn, rows(n))
        if name in DRAWN:  # the file has a generator of its own
            assert [(y.shape, y.dtype) for y in found] == [(y.shape, y.dtype) for y in want]
            continue
        compare(found, want, 1e-15)
        compare(
            leaves(gt.grad(loss_of(loaded.run))(rows(n))),
            leaves(gt.grad(loss_of(fn))(rows(n))),
            1e-9,
        )
        compare(leaves(second(loaded.run)(rows(n))), leaves(second(fn)(rows(n))), 1e-9)


# -- what differs at a size ------------------------------------------------------------------------


def test_a_generator_of_a_file_draws_what_the_live_one_draws_at_each_size(tmp_path: Path) -> None:
    class Noisy(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.noise = gt.random.Generator(7)

        @gt.function(input_signature=OPEN)
        def run(self, x: Any) -> Any:
            return x * self.noise.normal(x.shape, dtype=D), self.noise.permutation(x.shape[0])

    live = Noisy()
    gt.save(live, tmp_path / "m.gt")
    loaded = gt.load(tmp_path / "m.gt")
    for n in (3, 0, 1, 7):
        want = leaves(Noisy.run.python_function(live, rows(n)))
        compare(leaves(loaded.run(rows(n))), want)


def test_dropout_draws_the_same_noise_at_each_size() -> None:
    eager, layer = (gt.layers.Dropout(0.5, seed=3) for _ in range(2))
    run = gt.function(
        lambda x: layer(x, training=True), input_signature=[gt.TensorSpec([None, None])]
    )
    for n in (0, 1, 2, 5):
        x = gt.ones((n, n + 1))
        compare(leaves(run(x)), leaves(eager(x, training=True)))


class Keeping(gt.Module):
    """A module that keeps a size of a trace for later."""

    @gt.function(input_signature=OPEN)
    def keep(self, x: Any) -> Any:
        self.n = x.shape[0]
        return x


@pytest.mark.parametrize(
    "use",
    [
        lambda n, x: x * n,
        lambda n, x: x + gt.zeros((n, 3), D),
        lambda n, x: x.reshape((n, 3)),
        lambda n, x: x[:n],
        lambda n, x: gt.stack([n, n]),
        lambda n, x: x if n > 2 else 2.0 * x,
        lambda n, x: gt.cond(n > 2, lambda: x, lambda: 2.0 * x),
        lambda n, x: gt.scan(lambda c, _: (c, c), 1.0, length=n),
        lambda n, x: gt.while_loop(lambda c: True, lambda c: c + 1, 1.0, n),
        lambda n, x: gt.random.normal((n,)),
        lambda n, x: gt.vmap(lambda r: (n, r))(x),
        lambda n, x: gt.as_tensor(n),
    ],
)
def test_a_size_of_another_trace_is_refused(use: Any) -> None:
    module = Keeping()
    module.keep(rows(2))
    message = r"is used after|not known while a function is traced"
    with pytest.raises(gt.errors.TraceError, match=message):
        gt.function(lambda x: use(module.n, x), input_signature=OPEN)(rows(2))
    with pytest.raises(gt.errors.TraceError, match="of a trace is used after the trace ended"):
        use(module.n, rows(2))


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: slice(0, x.shape[0]),
        lambda x: gt.TensorSpec(x.shape, x.dtype),
    ],
)
def test_a_result_that_hides_a_size_is_refused(fn: Function) -> None:
    with pytest.raises(gt.errors.TraceError, match="with a size that is unknown while tracing"):
        traced(fn)(rows(2))


TWO = [gt.TensorSpec([None, 3], D), gt.TensorSpec([None, 3], D)]


@pytest.mark.parametrize(
    "fn",
    [
        lambda x, y: gt.scan(lambda c, r: (c, gt.sum(r[0] * r[1])), 0.0, (x, y)),
        lambda x, y: gt.scan(lambda c, r: (c, r), 0.0, x, length=y.shape[0]),
        lambda x, y: gt.scan(lambda c, _: (c, c), 0.0, length=x.shape[0] - y.shape[0]),
        lambda x, y: gt.vmap(lambda a, b: a * b)(x, y),
        lambda x, y: gt.random.choice(x, 2, p=y[:, 0]),
        lambda x, y: gt.random.choice(x, y.shape[0], replace=False),
        lambda x, y: gt.random.randint(3, y.shape[0], x.shape[0]),
        lambda x, y: gt.random.normal((x.shape[0] - y.shape[0],)),
        lambda x, y: gt.training.losses.mean_squared_error(x, y),
        lambda x, y: gt.training.losses.categorical_crossentropy(y, x),
        lambda x, y: gt.training.accuracy(x, y),
        lambda x, y: gt.training.metrics.categorical_accuracy(x, y),
        lambda x, y: gt.training.metrics.binary_accuracy(y, x),
        lambda x, y: gt.training.losses.MeanSquaredError()(x, x, y[:, 0]),
        lambda x, y: gt.layers.BatchNorm()(x[: y.shape[0] - 3], training=True) + gt.sum(y),
    ],
)
def test_what_eager_code_refuses_at_a_size_a_run_refuses(fn: Any) -> None:
    run = gt.function(fn, input_signature=TWO)
    run.get_concrete_function()  # at other sizes it is right
    for call in (fn, run):
        with pytest.raises(ValueError, match=r"\w"):
            call(rows(1), rows(3))


def test_weights_for_one_example_are_for_all_examples() -> None:
    loss = gt.training.losses.MeanSquaredError()
    run = gt.function(loss, input_signature=[*TWO, gt.TensorSpec([None], D)])
    for n in (1, 3):
        for weight in ([2.0] * n, [2.0]):
            x, w = rows(n), gt.constant(weight, D)
            compare(leaves(run(x, 2.0 * x, w)), leaves(loss(x, 2.0 * x, w)))


def ways(x: Any) -> Any:
    return gt.cond(gt.sum(x) > 0.0, lambda: x, lambda: x[: x.shape[0] // 2])


def halved(x: Any) -> Any:
    return gt.while_loop(lambda a: gt.sum(a) > 1.0, lambda a: a[: a.shape[0] // 2], x)


@pytest.mark.parametrize("fn", [ways, halved])
@pytest.mark.parametrize("in_trace", [True, False])
def test_examples_that_go_ways_of_their_own_keep_one_shape(fn: Function, in_trace: bool) -> None:
    run = gt.vmap(fn)
    both = gt.stack([rows(2), -rows(2)])
    with pytest.raises(ValueError, match="examples of a vmap take different paths"):
        (traced(run, 3) if in_trace else run)(both)


def test_layers_take_open_sizes() -> None:
    spec = [gt.TensorSpec([None, None, None])]
    flat = gt.function(gt.layers.Flatten(), input_signature=spec)
    assert str(flat.get_concrete_function().graph.outputs[0].shape) == "(n, m*k)"
    for shape in ((2, 3, 4), (0, 3, 4), (2, 0, 4)):
        assert flat(gt.zeros(shape)).shape == (shape[0], shape[1] * shape[2])
    for layer in (gt.layers.Dense(2), gt.layers.BatchNorm(), gt.layers.BatchNorm(axis=1)):
        x = gt.random.normal((2, 3, 3))
        want = layer(x)
        run = gt.function(layer, input_signature=spec)
        compare(leaves(run(x)), leaves(want), 1e-6)
        with pytest.raises(ValueError, match=r"\w"):
            run(gt.ones((2, 1, 1)))


@pytest.mark.parametrize("make", [lambda: gt.layers.Dense(2), gt.layers.BatchNorm])
def test_a_layer_is_not_built_for_a_size_that_is_open(make: Any) -> None:
    with pytest.raises(ValueError, match=r"must be known when it is\s+first called"):
        gt.function(make(), input_signature=[gt.TensorSpec([None, None])])(gt.ones((2, 3)))


def test_nothing_is_drawn_from_nothing() -> None:
    assert gt.random.choice(0, 0).shape == (0,)
    assert gt.random.choice(gt.zeros((0, 3)), (0, 2)).shape == (0, 2, 3)
    assert gt.random.randint(0, 3, 3).shape == (0,)
