"""``cond``, ``while_loop``, ``scan`` and ``map``: eager, traced, batched, saved, at every order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.testing import check_gradients

W = gt.Variable(np.array(0.8), name="w")
C = gt.constant(np.array(1.3))


def choose(x: gt.Tensor) -> gt.Tensor:
    return gt.cond(gt.sum(x) > 0, lambda: x * x * W, lambda: gt.sin(x) * gt.cos(C))


def choose_of_operands(x: gt.Tensor) -> gt.Tensor:
    return gt.cond(x[0] > 0, lambda a, d: a * d["b"], lambda a, d: a - d["b"], x, {"b": x[::-1]})


def nested(x: gt.Tensor) -> gt.Tensor:
    return gt.cond(
        x[0] > 0,
        lambda: gt.cond(x[1] > 0, lambda: x**2, lambda: x**3 * W),
        lambda: gt.scan(lambda c, e: (c * e, c + e), x[2], x)[1],
    )


def grow(x: gt.Tensor) -> gt.Tensor:
    return gt.while_loop(
        lambda i, y: gt.sum(y * y) < 50.0, lambda i, y: (i + 1, 1.5 * y + gt.sin(y) * W * C), (0, x)
    )[1]


def counted(x: gt.Tensor) -> gt.Tensor:
    return gt.while_loop(lambda i, y: i < 4, lambda i, y: [i + 1, gt.tanh(y) * W], [0, x])[1]


def accumulate(x: gt.Tensor) -> gt.Tensor:
    last, rows = gt.scan(lambda c, e: (gt.tanh(c * W + e), c * e + C), gt.sum(x) / 4.0, x)
    return gt.concatenate([rows, gt.reshape(last, (1,))])


def backwards(x: gt.Tensor) -> gt.Tensor:
    return gt.scan(lambda c, e: (c + e["a"] * W, c * e["a"]), x[0], {"a": x}, reverse=True)[1]


def by_count(x: gt.Tensor) -> gt.Tensor:
    return gt.scan(lambda c, _: (gt.sin(c), c * W), x, length=3)[1]


def each(x: gt.Tensor) -> gt.Tensor:
    return gt.map(lambda e: gt.cond(e > 0, lambda: e**2, lambda: gt.exp(e)), x)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    f.__name__: f
    for f in (
        choose,
        choose_of_operands,
        nested,
        grow,
        counted,
        accumulate,
        backwards,
        by_count,
        each,
    )
}
POINTS = np.array([[0.5, -0.4, 0.9], [-0.6, 0.3, -1.1], [0.2, 0.7, 0.4]])
everything = pytest.mark.parametrize("name", list(FUNCTIONS))


def total(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: gt.sum(f(x) ** 2)


@everything
def test_eager_gradients_of_two_orders(name: str) -> None:
    for point in POINTS:
        check_gradients(FUNCTIONS[name], point, order=2)


@everything
@pytest.mark.parametrize("size", [3, None])
def test_traced_values_and_derivatives(name: str, size: int | None) -> None:
    f = FUNCTIONS[name]
    traced = gt.function(f, input_signature=[gt.TensorSpec([size], "float64")])
    for x in POINTS:
        np.testing.assert_allclose(traced(x), f(gt.constant(x)), rtol=1e-12)
        for transform in (gt.grad, gt.hessian, gt.jacfwd):
            np.testing.assert_allclose(
                transform(total(traced))(x), transform(total(f))(x), rtol=1e-9, atol=1e-11
            )
    assert len(traced.concrete_functions) == 1


@everything
def test_compiled_gradients(name: str) -> None:
    f = total(FUNCTIONS[name])
    slope, bend = gt.function(gt.grad(f)), gt.function(gt.hessian(f))
    for x in POINTS:
        np.testing.assert_allclose(slope(x), gt.grad(f)(x), rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(bend(x), gt.hessian(f)(x), rtol=1e-9, atol=1e-11)
    assert len(slope.concrete_functions) == 1


@everything
def test_gradients_of_variables_and_constants_from_around(name: str) -> None:
    f = FUNCTIONS[name]
    traced = gt.function(f)
    for x in POINTS:
        found = []
        for run in (f, traced):
            with gt.GradientTape() as tape:
                tape.watch(C)
                y = gt.sum(run(gt.constant(x)))
            found.append(tape.gradient(y, [W, C], unconnected_gradients="zero"))
        for a, b in zip(*found, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_examples_that_would_have_different_shapes_are_refused() -> None:
    def turned(start: Any) -> Any:
        body = lambda i, a: (i + 1, gt.swapaxes(a, 0, 1))  # noqa: E731
        return gt.while_loop(lambda i, a: i < 3, body, (gt.cast(start[0, 0], "int64"), start))[1]

    spec = gt.TensorSpec([None, None, None], "float64")
    each = gt.function(gt.vmap(turned), input_signature=[spec])
    square = np.array([[[3.0, 2.0], [4.0, 5.0]], [[2.0, 7.0], [8.0, 9.0]]])
    assert np.array_equal(each(square), [square[0], square[1].T])
    for wide in (np.array([[[1.0, 2.0]], [[2.0, 1.0]]]), np.array([[[3.0, 2.0]], [[2.0, 1.0]]])):
        # as many elements in another shape
        with pytest.raises(ValueError, match=r"while_loop: examples of a vmap.*\(2, 1, 2\)"):
            each(wide)


@everything
@pytest.mark.parametrize("how", ["eager", "function inside", "function around"])
def test_batches_decide_example_by_example(name: str, how: str) -> None:
    f = FUNCTIONS[name]

    def in_vmap(g: Callable[[Any], Any]) -> Any:
        batch = gt.vmap(gt.function(g) if how == "function inside" else g)
        return (gt.function(batch) if how == "function around" else batch)(POINTS)

    for g in (f, gt.grad(total(f)), gt.hessian(total(f))):
        want = np.stack([np.asarray(g(gt.constant(x))) for x in POINTS])
        np.testing.assert_allclose(in_vmap(g), want, rtol=1e-9, atol=1e-10)


@everything
def test_saved_and_loaded(name: str, tmp_path: Path) -> None:
    f = FUNCTIONS[name]
    module = gt.Module()
    module.w = W
    module.f = gt.function(f, input_signature=[gt.TensorSpec([None], "float64")])
    gt.save(module, tmp_path / "m.h5", golden=False)
    loaded = gt.load(tmp_path / "m.h5").f
    for x in POINTS:
        np.testing.assert_array_equal(loaded(x), module.f(x))
        np.testing.assert_array_equal(gt.hessian(total(loaded))(x), gt.hessian(total(module.f))(x))
    np.testing.assert_allclose(gt.vmap(loaded)(POINTS), gt.vmap(module.f)(POINTS), rtol=1e-12)


def test_custom_gradients_inside_survive_saving(tmp_path: Path) -> None:
    @gt.custom_gradient
    def tenfold(x: gt.Tensor) -> Any:
        return x * 1.0, lambda dy: dy * 10.0

    def f(x: gt.Tensor) -> gt.Tensor:
        return gt.cond(gt.sum(x) > 0, lambda: tenfold(x), lambda: gt.map(tenfold, x))

    module = gt.Module()
    module.f = gt.function(f, input_signature=[gt.TensorSpec([None])])
    gt.save(module, tmp_path / "m.h5", golden=False)
    for run in (f, module.f, gt.load(tmp_path / "m.h5").f):
        for sign in (1.0, -1.0):
            g = gt.grad(lambda x, run=run: gt.sum(run(x)))(gt.constant([sign, sign]))
            assert g.tolist() == [10.0, 10.0]


def test_a_file_proves_its_loops(tmp_path: Path) -> None:
    module = gt.Module()
    module.w = W
    module.f = gt.function(grow, input_signature=[gt.TensorSpec([None], "float64")])
    gt.save(module, tmp_path / "m.h5", golden={"f": [(POINTS[0],)]})
    report = gt.saving.verify(tmp_path / "m.h5")
    assert report.ok, report


def test_only_the_chosen_function_runs() -> None:
    ran = []
    gt.cond(True, lambda: ran.append("true"), lambda: ran.append("false"))
    gt.cond(gt.constant(0), lambda: ran.append("true"), lambda: ran.append("false"))
    assert ran == ["true", "false"]

    @gt.function
    def divided(x: gt.Tensor) -> gt.Tensor:
        return gt.cond(x != 0, lambda: 1.0 / x, lambda: x)

    with np.errstate(all="raise"):
        assert divided(gt.constant(0.0)).item() == 0.0
        assert gt.grad(divided)(0.0).item() == 1.0
        assert gt.grad(divided)(2.0).item() == -0.25


def test_a_loop_has_a_limit_and_may_run_never() -> None:
    def halved(x: gt.Tensor) -> gt.Tensor:
        return gt.while_loop(lambda x: x > 1.0, lambda x: x / 2.0, x, maximum_iterations=3)

    for f in (halved, gt.function(halved)):
        assert f(gt.constant(64.0)).item() == 8.0
        assert f(gt.constant(0.5)).item() == 0.5
        assert gt.grad(f)(64.0).item() == 0.125
        assert gt.grad(f)(0.5).item() == 1.0


def test_sizes_may_change_from_step_to_step() -> None:
    @gt.function(input_signature=[gt.TensorSpec([1], "float64")])
    def doubled(x: gt.Tensor) -> gt.Tensor:
        return gt.while_loop(lambda y: gt.sum(y) < 10, lambda y: gt.concatenate([y, y]), x)

    assert doubled(np.ones(1)).shape == (16,)
    np.testing.assert_allclose(gt.jacrev(doubled)(np.ones(1)), np.ones((16, 1)))


def test_a_scan_of_nothing() -> None:
    def f(x: gt.Tensor) -> Any:
        return gt.scan(lambda c, e: (c + gt.sum(e), gt.sin(e)), 2.0, x)

    for run in (f, gt.function(f, input_signature=[gt.TensorSpec([None, 2])])):
        last, rows = run(gt.zeros((0, 2)))
        assert last.item() == 2.0
        assert rows.shape == (0, 2)
    assert gt.scan(lambda c, _: (c, None), 1.0, length=0)[1] is None


def test_a_scan_is_one_node_however_long() -> None:
    f = gt.function(lambda x: gt.scan(lambda c, e: (c * 0.9 + e, c), 0.0, x)[0])
    concrete = f.get_concrete_function(gt.TensorSpec([1000]))
    assert len(concrete.graph.nodes) == 1
    assert "graph scan(" in str(concrete.graph)


def test_a_python_number_to_start_from_takes_the_dtype_that_it_becomes() -> None:
    xs = np.array([0.5, 1.5])

    def f(xs: gt.Tensor) -> Any:
        total = gt.scan(lambda c, x: (c + x, c), 0, xs)[0]
        return total, gt.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y + xs[0]), (0, 0.0))[
            1
        ]

    for run in (f, gt.function(f)):
        for y, want in zip(run(gt.constant(xs)), (2.0, 1.0), strict=True):
            assert y.dtype == np.float64
            assert y.item() == want
    with pytest.raises(TypeError, match="carry 0 is float32 and becomes float64"):
        gt.scan(lambda c, x: (c + x, c), gt.constant(0.0), xs)


def test_a_long_loop_does_not_recurse() -> None:
    f = gt.function(
        lambda x: gt.while_loop(lambda i, y: i < 3000, lambda i, y: (i + 1, y * 1.0001), (0, x))
    )
    assert gt.grad(lambda x: f(x)[1])(1.0).item() == pytest.approx(1.0001**3000, rel=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda x: gt.cond(x > 0, lambda: x, lambda: x),
            ValueError,
            r"pred must be one value.*\(2,\)",
        ),
        (
            lambda x: gt.cond(x[0] > 0, lambda: (x, x), lambda: x),
            ValueError,
            r"must return the same structure, got \(\*, \*\) and \*",
        ),
        (lambda x: gt.cond(x[0] > 0, x, x), TypeError, "cond: true_fn must be a function of the"),
        (
            lambda x: gt.cond(x[0] > 0, lambda: x, lambda: x.astype("int64")),
            TypeError,
            r"result 0 is float32\[2\] from true_fn and int64\[2\] from false_fn; cast one",
        ),
        (
            lambda x: gt.while_loop(lambda y: y > 0, lambda y: y, x),
            ValueError,
            "cond must return one value",
        ),
        (
            lambda x: gt.while_loop(lambda y: y[0] > 9, lambda y: y.astype("float64"), x + 9),
            TypeError,
            "loop variable 0 is float32 and becomes float64; cast it",
        ),
        (
            lambda x: gt.while_loop(lambda y, z: y[0] < 9, lambda y, z: y, (x, x)),
            ValueError,
            r"body must return the structure of loop_vars, \(\*, \*\), got \*",
        ),
        (lambda x: gt.scan(lambda c, e: c, 0.0, x), TypeError, "must return a pair.*, got <Tensor"),
        (lambda x: gt.scan(lambda c, e: (x, c), 0.0, x), ValueError, r"carry 0 has shape \(\)"),
        (
            lambda x: gt.scan(lambda c, e: ((c, c), c), 0.0, x),
            ValueError,
            r"a carry of the structure \*, got \(\*, \*\)",
        ),
        (lambda x: gt.scan(lambda c, e: (c, c), 0.0, x[0]), ValueError, "must have a first axis"),
        (lambda x: gt.scan(lambda c, e: (c, c), 0.0), ValueError, "given as length"),
        (
            lambda x: gt.scan(lambda c, e: (c, c), 0.0, (x, x[:1])),
            ValueError,
            "lengths differ: 1 and 2",
        ),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_what_is_wrong_is_said(call: Any, error: Any, message: str, traced: bool) -> None:
    one_runs = any(part in message for part in ("same structure", "true_fn and", "inside cond"))
    if one_runs and not traced:
        return  # only the function that is chosen runs, as with Python's own if
    with pytest.raises(error, match=message):
        (gt.function(call) if traced else call)(gt.constant([1.0, 2.0]))
