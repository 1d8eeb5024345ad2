"""What broke, or gave wrong numbers, when strangers tried control flow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

X = np.array([0.7, -0.8])


def alike(f: Any, points: Any = X, **tolerance: float) -> None:
    """Check vmap, and traces of it and in it, against one point after another."""
    want = np.stack([np.asarray(f(gt.constant(x))) for x in points])
    batches = (gt.vmap(f), gt.function(gt.vmap(f)), gt.vmap(gt.function(f)))
    for batch in batches:
        np.testing.assert_allclose(batch(points), want, rtol=1e-9, atol=1e-12)


def test_two_tensors_of_one_array_are_two_captures() -> None:
    def by_cond(x: gt.Tensor) -> gt.Tensor:
        return gt.grad(
            lambda y: gt.cond(x > 0, lambda: (y - 2 * x) ** 2, lambda: (y - 3 * x) ** 3)
        )(x)

    def by_while(x: gt.Tensor) -> gt.Tensor:
        def f(y: gt.Tensor) -> gt.Tensor:
            return gt.while_loop(lambda v: v < x + 1.0, lambda v: v + y * y + x * x + 0.1, x)

        return gt.grad(f)(x)

    through = gt.function(lambda y, x: gt.cond(x > 0, lambda: y * y * x, lambda: y * x))
    for f in (by_cond, by_while, lambda x: gt.grad(lambda y: through(y, x))(x)):
        alike(f)


def test_slopes_at_examples_that_a_branch_is_not_for_do_no_harm() -> None:
    with np.errstate(all="ignore"):
        root = lambda x: gt.cond(x > 0, lambda: gt.sqrt(x), lambda: -x)  # noqa: E731
        down = lambda x: gt.while_loop(lambda y: y > 1.0, lambda y: gt.sqrt(y - 1.0), x)  # noqa: E731
        alike(gt.grad(root))
        alike(gt.grad(down), np.array([0.5, 3.0, 10.0]))
        alike(lambda x: gt.jvp(down, x, 1.0)[1], np.array([0.5, 3.0, 10.0]))
        alike(gt.hessian(down), np.array([0.5, 3.0, 10.0]))


def test_custom_gradients_of_captured_batches() -> None:
    again = gt.recompute_grad(lambda x: gt.tanh(x) * x)

    @gt.custom_gradient
    def tenfold(x: gt.Tensor) -> Any:
        return x * 1.0, lambda dy: dy * 10.0

    def branches(r: Any) -> Any:
        def f(x: gt.Tensor) -> gt.Tensor:
            return gt.cond(x > 0, lambda: r(x), lambda: gt.map(r, gt.stack([x, x]))[1])

        return f

    for rule in (again, tenfold):
        alike(branches(rule))
        alike(gt.grad(branches(rule)))


def test_forward_mode_around_a_scan_that_closes_over_its_point() -> None:
    nothing = np.zeros(0)
    value, slope = gt.jvp(
        lambda x: gt.sum(gt.map(lambda e: gt.sin(x) * e, nothing)) + x, np.array(0.7), 1.0
    )
    assert (value.item(), slope.item()) == (0.7, 1.0)
    rows = np.array([1.0, 2.0])
    _, slope = gt.jvp(lambda x: gt.sum(gt.map(lambda e: gt.sin(x) * e, rows)), np.array(0.7), 1.0)
    assert slope.item() == pytest.approx(3 * np.cos(0.7))


def test_a_scan_of_nothing_has_the_sizes_of_a_step() -> None:
    f = gt.function(
        lambda x: gt.map(lambda r: gt.concatenate([r, r]), x),
        input_signature=[gt.TensorSpec([None, None])],
    )
    assert f(gt.zeros((0, 3))).shape == (0, 6)
    assert f(gt.zeros((2, 3))).shape == (2, 6)


def test_traced_branches_and_steps_assign_variables() -> None:
    v = gt.Variable(0.0)

    def f(x: gt.Tensor) -> Any:
        a = gt.cond(x > 0, lambda: [v.assign_add(1.0), x][1], lambda: [v.assign_add(10.0), -x][1])
        gt.while_loop(lambda i: i < 3, lambda i: [v.assign_add(100.0), i + 1][1], 0)
        _, seen = gt.scan(lambda c, e: ([v.assign_add(1000.0), c + e][1], v * 1.0), 0.0, gt.ones(2))
        return a, seen

    found = []
    for run in (f, gt.function(f)):
        v.assign(0.0)
        for x in (1.0, -1.0):
            a, seen = run(gt.constant(x))
            found.append((a.item(), seen.tolist(), v.numpy().item()))
    assert (
        found[:2] == found[2:] == [(1.0, [1301.0, 2301.0], 2301.0), (1.0, [3611.0, 4611.0], 4611.0)]
    )


def test_a_variable_that_a_branch_assigns_has_gradients_before_it(tmp_path: Path) -> None:
    v = gt.Variable(3.0)

    def f(x: gt.Tensor) -> gt.Tensor:
        return gt.cond(x > 0, lambda: v * x * [v.assign(7.0), 1.0][1], lambda: x)

    for run in (f, gt.function(f)):
        v.assign(3.0)
        with gt.GradientTape() as tape:
            y = run(gt.constant(2.0))
        assert y.item() == 6.0
        assert v.numpy() == 7.0
        v_slope = tape.gradient(y, v)
        assert v_slope.item() == 2.0
    v.assign(3.0)
    module = gt.Module()
    module.v = v
    module.f = gt.function(f, input_signature=[gt.TensorSpec([])])
    gt.save(module, tmp_path / "m.h5")
    loaded = gt.load(tmp_path / "m.h5")
    assert loaded.f(gt.constant(2.0)).item() == 6.0
    assert loaded.v.numpy() == 7.0


def test_random_numbers_in_traced_branches_and_steps() -> None:
    drop = gt.function(lambda x, on: gt.cond(on, lambda: gt.nn.dropout(x, 0.5), lambda: x))
    x, on = gt.ones(64), gt.constant(True)
    assert (drop(x, on).numpy() != drop(x, on).numpy()).any()
    assert (drop(x, gt.constant(False)).numpy() == 1.0).all()
    noise = gt.function(lambda x: gt.map(lambda r: r + gt.random.normal((4,)), x))(gt.zeros((3, 4)))
    assert len(np.unique(noise.numpy())) == 12


def test_none_among_results() -> None:
    def f(x: gt.Tensor) -> Any:
        return gt.cond(x > 0, lambda: {"a": x, "b": None}, lambda: {"a": -x, "b": None})

    def g(x: gt.Tensor) -> Any:
        return gt.scan(lambda c, e: (c + e, {"o": e, "n": None}), x, gt.ones(2))[1]

    for run in (f, gt.function(f)):
        found = run(gt.constant(-2.0))
        assert (found["a"].item(), found["b"]) == (2.0, None)
    for run in (g, gt.function(g)):
        assert run(gt.constant(1.0))["n"] is None
        assert run(gt.constant(1.0))["o"].shape == (2,)
    with pytest.raises(ValueError, match="must return the same structure"):
        gt.function(lambda x: gt.cond(x > 0, lambda: (x, None), lambda: (None, x)))(
            gt.constant(1.0)
        )


def test_a_loop_that_does_not_end_on_samples_does_not_keep_a_file_from_being_saved(
    tmp_path: Path,
) -> None:
    module = gt.Module()
    module.f = gt.function(
        lambda x: gt.while_loop(lambda y: y < 10.0, lambda y: y * y, x),
        input_signature=[gt.TensorSpec([], "float64")],
    )
    module.g = gt.function(
        lambda x: gt.while_loop(lambda y: y > -1.0, lambda y: y * 0.5, gt.abs(x)),
        input_signature=[gt.TensorSpec([], "float64")],
    )
    gt.save(module, tmp_path / "m.h5")
    assert gt.load(tmp_path / "m.h5").f(np.array(3.0)).item() == 81.0


def test_unknown_rank_in_a_batch_is_said() -> None:
    f = gt.function(
        lambda x: gt.vmap(lambda y: gt.while_loop(lambda v: v < y, lambda v: v + 1.0, 0.0 * y))(x),
        input_signature=[gt.TensorSpec(None)],
    )
    with pytest.raises(TypeError, match="needs to know the number of axes"):
        f(gt.ones(3))


def _cond_that_reads(v: gt.Variable, x: gt.Tensor) -> gt.Tensor:
    return gt.cond(x > 0, lambda: [v.assign(v * x), v * x][1], lambda: x)


def _loop_that_reads(v: gt.Variable, x: gt.Tensor) -> gt.Tensor:
    def body(i: Any, total: Any) -> Any:
        v.assign_sub(0.1 * v * x)
        return i + 1, total + v * v * x

    return gt.while_loop(lambda i, total: i < 2, body, (0, x * 0.0))[1]


def _scan_that_reads(v: gt.Variable, x: gt.Tensor) -> gt.Tensor:
    def step(total: Any, e: Any) -> Any:
        v.assign(0.9 * v + 0.1 * e * x)
        return total + (e * x - v) ** 2, v * x

    total, rows = gt.scan(step, x * 0.0, gt.constant([1.0, 2.0, 3.0], "float64"))
    return total + gt.sum(rows)


def _own_variable(v: gt.Variable, x: gt.Tensor) -> gt.Tensor:
    def made() -> gt.Tensor:
        w = gt.Variable(1.0, dtype="float64")
        w.assign(x * 2.0)
        return x * w * v

    return gt.cond(x > 0, made, lambda: x)


@pytest.mark.parametrize("f", [_cond_that_reads, _loop_that_reads, _scan_that_reads, _own_variable])
def test_gradients_stop_at_assignments_in_traced_branches_as_elsewhere(f: Any) -> None:
    v = gt.Variable(2.0, dtype="float64")
    found = []
    for run in (f, gt.function(lambda x: f(v, x))):
        v.assign(2.0)
        x = gt.constant(3.0, "float64")
        args = (v, x) if run is f else (x,)
        with (
            gt.GradientTape(persistent=True) as tape,
            gt.ForwardAccumulator(x, gt.ones_like(x)) as acc,
        ):
            tape.watch(x)
            y = run(*args)
        found.append([*(g.item() for g in (y, *tape.gradient(y, [x, v]), acc.jvp(y))), v.item()])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


def test_a_saved_function_that_assigns_and_reads_proves_its_gradients(tmp_path: Path) -> None:
    class Counts(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.v = gt.Variable(1.0)

        @gt.function(input_signature=[gt.TensorSpec([])])
        def __call__(self, x: gt.Tensor) -> gt.Tensor:
            return _cond_that_reads(self.v, x)

    gt.save(Counts(), tmp_path / "counts.h5")
    loaded = gt.load(tmp_path / "counts.h5")
    x = gt.constant(3.0)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = loaded(x)
    assert (y.item(), tape.gradient(y, x).item(), loaded.v.item()) == (9.0, 3.0, 3.0)
