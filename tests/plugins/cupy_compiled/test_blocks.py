"""Block kernels: several groups in one launch, each block on slices of its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from block_programs import block_program
from executing import Training

import gradtape as gt
from gradtape.core.extend import Graph, Symbol
from gradtape.errors import ExecutorWarning
from gradtape.plugins.cupy.compiled.plan import DevicePlan
from gradtape.plugins.cupy.writing import blocks
from gradtape.plugins.cupy.writing.fusing import BlockKernel
from gradtape.plugins.cupy.writing.slices import Slices, cut
from gradtape.plugins.planned import LoopGroup, PlanStep, StepKind

GRAPH = Graph("test")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[DevicePlan]:
    """Return a list of all plans that are made."""
    found: list[DevicePlan] = []
    begin = DevicePlan.__init__

    def init(self: DevicePlan, *args: Any) -> None:
        begin(self, *args)
        found.append(self)

    monkeypatch.setattr(DevicePlan, "__init__", init)
    return found


def slices_of(plans: list[DevicePlan]) -> Iterator[tuple[DevicePlan, Slices]]:
    for made in plans:
        for item in made.items:
            if isinstance(item, BlockKernel):
                yield from ((made, part) for part in item.parts)


def run(f: Any, xs: Any, how: str = "default") -> list[np.ndarray]:
    with gt.backend("cupy"), gt.executor(how), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", ExecutorWarning)
        return [y.numpy() for y in f(*map(gt.constant, xs))]


def launched(f: Any) -> int:
    """Return the number of kernels and products of a function's plan."""
    with gt.executor("default"):
        text = f.concrete_functions[0].explain()
    (line,) = [line for line in text.splitlines() if "launches of kernels" in line]
    kernels, products = line.split(" launches of kernels, ")
    return int(kernels) + int(products.split()[0])


def told(f: Any) -> str:
    with gt.executor("default"):
        text: str = f.concrete_functions[0].explain()
        return text


# -- many programs ---------------------------------------------------------------------------------

TOLERANCES = {"float16": 3e-2, "float32": 3e-2, "float64": 1e-9}


@pytest.mark.parametrize("shared", [blocks._SHARED, 64])
def test_random_programs_give_what_they_give_eagerly_and_always_the_same(
    either: Any, plans: list[DevicePlan], monkeypatch: pytest.MonkeyPatch, shared: int
) -> None:
    monkeypatch.setattr(blocks, "_SHARED", shared)  # so that values are in arrays instead
    cases = [(seed, *block_program(seed)) for seed in range(shared == 64, 200, 2)]
    made = [(seed, gt.function(program), xs) for seed, program, xs in cases]
    either.seen.dry = True  # so that all kernels are compiled at once
    for _, f, xs in made:
        run(f, xs)
    either.seen.dry = False
    wrong = []
    for seed, f, xs in made:
        right, found, again = run(f, xs, "plain"), run(f, xs), run(f, xs)
        assert [y.tobytes() for y in found] == [y.tobytes() for y in again], seed
        assert "node by node" not in told(f)
        for x, y in zip(found, right, strict=True):
            near = TOLERANCES.get(str(x.dtype), 0)
            assert x.dtype == y.dtype
            mine, theirs = x.astype("float64"), y.astype("float64")
            if not np.allclose(mine, theirs, rtol=near, atol=near, equal_nan=True):
                wrong.append(f"program {seed}: {mine} for {theirs}\n{told(f)}")
                break
    assert not wrong, "\n".join(wrong)
    assert len(list(slices_of(plans))) > 100
    _check_slices(plans)


def _check_slices(plans: list[DevicePlan]) -> None:
    """Compare with all indices: groups read from their own slices, and where it is said."""
    for made, part in slices_of(plans):
        for (group, x), (offset, strides) in part.reads.items():
            home, at, steps = made._place(x)
            layout = part.layouts[home]
            if layout.every:
                continue
            steps = (*[0] * (len(group.shape) - len(x.shape)), *steps)
            indices = np.indices(group.shape).reshape(len(group.shape), int(np.prod(group.shape)))
            lengths = (*[1] * (len(group.shape) - len(x.shape)), *x.shape)
            used = [s if n > 1 else 0 for s, n in zip(steps, lengths, strict=True)]
            read = at + np.array(used, int) @ indices
            last = part.spans[group][1]
            inner = int(np.prod(group.shape[last:]))
            mine = np.arange(indices.shape[1]) // inner % part.count
            assert (read // layout.inner % part.count == mine).all()
            local = read // (part.count * layout.inner) * layout.inner + read % layout.inner
            assert (offset + np.array(strides, int) @ indices == local).all()


# -- slices ----------------------------------------------------------------------------------------


def _group(shape: tuple[int, ...], x: Symbol, reduced: Any = None) -> LoopGroup:
    group = LoopGroup(shape)
    out = Symbol(GRAPH, shape, np.dtype("float32"))
    group.steps.append(PlanStep(StepKind.ELEMENTWISE, "exp", np.exp, (x,), (out,)))
    if reduced is not None:
        total = Symbol(GRAPH, np.sum(np.empty(shape), reduced, keepdims=True).shape, out.dtype)
        params = {"axis": reduced, "keepdims": True}
        group.tails.append(
            PlanStep(StepKind.REDUCTION, "add", np.add.reduce, (out,), (total,), params)
        )
    group.close(lambda x: True)
    return group


def _two(shape: tuple[int, ...], view: Any, reduced: Any = None) -> Slices | None:
    """Cut a group, and one that reads a view of its result and sums up some of its axes."""
    first = _group(shape, Symbol(GRAPH, shape, np.dtype("float32")))
    home = first.steps[0].out
    model = np.empty(shape, np.int8)
    seen = view(model)
    offset = seen.__array_interface__["data"][0] - model.__array_interface__["data"][0]
    x = Symbol(GRAPH, seen.shape, home.dtype)
    second = _group(seen.shape, x, reduced)

    def place(y: Symbol) -> Any:
        whole = np.empty(y.shape, np.int8).strides
        return (home, offset, seen.strides) if y is x else (y, 0, whole)

    return cut([first, second], place)


@pytest.mark.parametrize(("shape", "view", "reduced", "count"), [
    ((4, 6), lambda x: x, None, 24), ((4, 6), lambda x: x, 1, 4), ((4, 6), lambda x: x, 0, 6),
    ((6, 6), lambda x: x.T, 0, 6), ((6, 6), lambda x: x.T, None, 6),
    ((4, 6), lambda x: x[:, ::-1], None, 4), ((4, 6), lambda x: x[::-1], None, 6),
    ((4, 6), lambda x: x[:, 3:], 1, 4), ((2, 4, 6), lambda x: x.reshape(8, 6)[1:5], 1, 1),
    ((2, 4, 6), lambda x: x[:, :, 2:4], (0, 2), 4), ((4, 6), lambda x: x, (0, 1), 1),
    ((300, 300), lambda x: x, (0, 1), None), ((300, 300), lambda x: x, 0, 300),
    ((3, 4), lambda x: x[:, :, None], 1, 3), ((3, 8), lambda x: x.reshape(3, 2, 4), 2, 3),
])  # fmt: skip
def test_groups_are_cut_into_as_many_slices_as_do_not_meet(
    shape: Any, view: Any, reduced: Any, count: int | None
) -> None:
    found = _two(shape, view, reduced)
    assert (found and found.count) == count


# -- launches --------------------------------------------------------------------------------------


def test_a_softmax_and_its_loss_are_one_kernel(cupy: Any) -> None:
    f = gt.function(lambda x: [gt.mean(gt.nn.log_softmax(x)), gt.nn.softmax(x)])
    run(f, [np.ones((8, 10), "float32")])
    assert launched(f) == 1
    cupy.seen.dry = True
    g = gt.function(lambda x: [gt.nn.softmax(x)])
    run(g, [np.ones((5000, 100), "float32")])
    assert launched(g) == 1
    assert "over (5000, 100), in one block per 2 rows: maximum, subtract, exp" in told(g)


def test_a_step_of_training_is_a_kernel_between_two_products(cupy: Any) -> None:
    with gt.backend("cupy"):
        training = Training()
        training.steps(2)
    # 3 products forward and 5 backward; the moving averages are part of the first kernel
    assert launched(training.run) <= 8 + 7
    assert "in one block per 16 columns" in told(training.run)


def test_what_is_large_is_left_to_many_blocks(cupy: Any) -> None:
    cupy.seen.dry = True
    f = gt.function(lambda x: [gt.sum(gt.exp(x))])
    run(f, [np.ones((1000, 1000), "float32")])
    assert "kernel over (1000, 1000): exp, add" in told(f)
    assert launched(f) <= 3


def test_small_kernels_that_need_nothing_of_each_other_run_side_by_side(cupy: Any) -> None:
    def both(x: Any, y: Any) -> Any:
        return [gt.sum(x * 2.0, axis=0), gt.sum(y * 2.0), gt.exp(gt.sum(y[0]))]

    f = gt.function(both)
    xs = [np.ones((30, 7), "float32"), np.ones((2, 100), "float32")]
    found = run(f, xs)
    np.testing.assert_allclose(found[0], np.full(7, 60))
    assert found[1] == 400
    assert launched(f) == 1
    assert "; next to it over" in told(f)


@pytest.mark.parametrize("shape", [(9000, 5), (5, 9000), (3, 5000, 2), (45000,)])
@pytest.mark.parametrize("axis", [0, -1, None])
def test_long_sums_are_added_up_in_parts_and_what_follows_is_with_the_last(
    either: Any, shape: tuple[int, ...], axis: int | None
) -> None:
    def normalised(x: Any) -> Any:
        less = x - gt.mean(x, axis=axis, keepdims=True)
        scale = gt.sqrt(gt.mean(less * less, axis=axis, keepdims=True) + 0.5)
        return [less / scale, scale * 2.0]

    x, f = np.random.default_rng(0).normal(size=shape), gt.function(normalised)
    less = x - x.mean(axis, keepdims=True)
    scale = np.sqrt((less * less).mean(axis, keepdims=True) + 0.5)
    found = run(f, [x])
    np.testing.assert_allclose(found[0], less / scale, rtol=1e-9)
    np.testing.assert_allclose(found[1], scale * 2, rtol=1e-9)
    assert launched(f) <= 5


def test_parts_of_a_concatenation_are_written_to_their_places(cupy: Any) -> None:
    def joined(x: Any, w: Any) -> Any:
        rows = gt.concat([gt.tanh(x), x * 2.0, gt.exp(x)], axis=1)
        return [rows @ w]

    draw = np.random.default_rng(0)
    x, w = draw.normal(size=(7, 5)), draw.normal(size=(15, 2))
    f = gt.function(joined)
    wanted = np.concatenate([np.tanh(x), x * 2, np.exp(x)], axis=1) @ w
    np.testing.assert_allclose(run(f, [x, w])[0], wanted)
    assert launched(f) == 2


def test_parts_that_others_read_are_arrays_of_their_own(cupy: Any) -> None:
    def joined(x: Any) -> Any:
        y, z = gt.tanh(x), gt.exp(x)
        return [gt.concat([y, z], axis=0), gt.concat([y, y], axis=1), z @ gt.transpose(y)]

    x = np.random.default_rng(0).normal(size=(7, 5))
    y, z = np.tanh(x), np.exp(x)
    found = run(gt.function(joined), [x])
    wanted = [np.concatenate([y, z]), np.concatenate([y, y], axis=1), z @ y.T]
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, right)


def test_elements_of_a_slice_in_another_order_are_those_of_other_threads(cupy: Any) -> None:
    def turned(x: Any) -> Any:
        less = x - gt.max(x, axis=(1, 2), keepdims=True)
        other = gt.transpose(less, (0, 2, 1))
        return [other / gt.sum(other * other, axis=(1, 2), keepdims=True)]

    x, f = np.random.default_rng(0).normal(size=(5, 6, 7)), gt.function(turned)
    less = (x - x.max((1, 2), keepdims=True)).transpose(0, 2, 1)
    found = run(f, [x])
    np.testing.assert_allclose(found[0], less / (less * less).sum((1, 2), keepdims=True))
    assert launched(f) == 1


def test_a_kernel_does_not_wait_for_a_product_that_waits_for_it(cupy: Any) -> None:
    def around(x: Any) -> Any:
        rows = x / gt.sum(x, axis=1, keepdims=True)  # in rows,
        total = gt.sum(gt.cumsum(gt.exp(rows)))  # by others' kernels,
        columns = gt.sum(gt.tanh(rows), axis=0)  # in columns,
        return [rows * total + columns / gt.sum(rows * columns, axis=1, keepdims=True)]

    x = np.random.default_rng(0).random((40, 30)) + 0.5
    f = gt.function(around)
    rows = x / x.sum(1, keepdims=True)
    columns = np.tanh(rows).sum(0)
    total = np.exp(rows).cumsum().sum()
    wanted = rows * total + columns / (rows * columns).sum(1, keepdims=True)
    np.testing.assert_allclose(run(f, [x])[0], wanted)
