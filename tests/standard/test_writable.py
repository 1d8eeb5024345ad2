"""``gradtape.writable``: arrays with NumPy's assignment and views, which tapes follow."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt

A = np.linspace(0.5, 2.0, 12).reshape(3, 4)
WEIGHTS = np.cos(np.arange(12.0)).reshape(3, 4)


def rows_and_transposes(y: Any, xp: Any) -> Any:
    row = y[1]
    row[2] = 5.0
    row *= 2.0
    y.T[0, 1:] = row[:2] * y[0, 0]
    return y


def masks(y: Any, xp: Any) -> Any:
    y[y > 1.5] = -1.0
    y[0][y[0] < 0.8] *= y[2, 1]
    y[np.asarray([True, False, True]), 1] = y[1, :2]
    return y


def shapes(y: Any, xp: Any) -> Any:
    flat = xp.reshape(y, (-1,))
    flat[3:7] = flat[:4] ** 2
    moved = xp.moveaxis(y, 0, -1)[1:]
    moved += xp.asarray(1.0)
    xp.expand_dims(y, axis=0)[0, ::-1, ::2][0] = xp.exp(y[1, :2])
    xp.flip(y, axis=1)[0, 0] = 3.0 * y[0, 0]
    return y


def copies(y: Any, xp: Any) -> Any:
    for other in (y[[0, 1]], xp.asarray(y, copy=True), y + 0.0, xp.reshape(y.T, (-1,)), y[y > 1]):
        other[...] = 0.0
    y[[0, 1]][0][1:] = 9.0
    other = y.T[[0, 1]]
    other[1][:2] = y[0, :2] * 2.0
    return y * y + xp.sum(other)


def loops(y: Any, xp: Any) -> Any:
    total = xp.zeros_like(y)
    for i, row in enumerate(y):
        total[i, ...] = total[i - 1, ...] + row
        row[0] = 0.0
    return total + y


def outputs(y: Any, xp: Any) -> Any:
    kept = y[:, :2]
    np.multiply(kept, y[:, 2:], out=kept)
    np.clip(y, None, 1.2, out=y)
    return y


def writers(y: Any, xp: Any) -> Any:
    square = y[:, 1:]
    np.fill_diagonal(square, y[0, :3] * 2.0)
    y.T[1].fill(y[1, 1])
    y.T.flat[4:6] = square[1, :2]
    y[1:, ::2].flat[1] = 0.5
    y[2].put([0, 3], y[0, :2])
    np.put(y, [1, 6], y[2, 0])
    np.copyto(y[0], y[1] * y[2])
    np.copyto(y, y * y, where=np.eye(3, 4) > 0)
    np.add.at(y, ([0, 0, 2], [1, 1, 3]), y[0, :3])
    np.subtract.at(y[1], [2, 2], y[0, 0])
    np.put_along_axis(y, np.asarray([[0], [1], [2]]), y[:, 2:3] * 0.5, 1)
    y[0].sort()
    y.sort(axis=0)
    y.real = y * 2.0
    return y


def scalars(y: Any, xp: Any) -> Any:
    total = xp.sum(y)
    total /= 3.0 * y[0, 0]
    first = y[0, 0]
    first += 1.0
    y[1, 1] = total
    return y


PROGRAMS: list[Callable[[Any, Any], Any]] = [
    rows_and_transposes,
    masks,
    shapes,
    copies,
    loops,
    outputs,
    writers,
    scalars,
]


def numpys(program: Callable[[Any, Any], Any], x: Any) -> Any:
    return program(np.array(x), np)


def ours(program: Callable[[Any, Any], Any], x: Any) -> Any:
    y = gt.writable(x)
    return gt.sum(program(y, y.__array_namespace__()) * WEIGHTS)


@pytest.fixture(autouse=True)
def _in_double_precision() -> Any:
    before = gt.default_dtype()
    gt.set_default_dtype("float64")
    yield
    gt.set_default_dtype(before)


@pytest.mark.parametrize("program", PROGRAMS)
def test_assignment_has_numpys_values_and_gradients_of_two_orders(
    program: Callable[[Any, Any], Any],
) -> None:
    x = gt.constant(A)
    y = gt.writable(x)
    np.testing.assert_allclose(program(y, y.__array_namespace__()), numpys(program, A), rtol=1e-14)
    np.testing.assert_array_equal(x, A)

    def total(values: Any) -> Any:
        return np.sum(numpys(program, values) * WEIGHTS)

    direction, h = np.sin(A), 1e-5
    gradient = gt.grad(lambda x: ours(program, x))
    slope = (total(A + h * direction) - total(A - h * direction)) / (2 * h)
    np.testing.assert_allclose(np.sum(gradient(x) * direction), slope, rtol=1e-8)
    curve = (gradient(x + h * direction) - gradient(x - h * direction)) / (2 * h)
    _, product = gt.jvp(gradient, (x,), (gt.constant(direction),))
    np.testing.assert_allclose(product, curve, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("program", [rows_and_transposes, shapes, loops])
def test_programs_run_in_traces_and_batches(program: Callable[[Any, Any], Any]) -> None:
    wanted = gt.grad(lambda x: ours(program, x))
    traced = gt.function(gt.grad(lambda x: ours(program, x)))
    batch = np.stack([A, A + 0.1])
    np.testing.assert_allclose(traced(gt.constant(A)), wanted(gt.constant(A)), rtol=1e-13)
    each = gt.vmap(lambda x: ours(program, x))(gt.constant(batch))
    np.testing.assert_allclose(each, [ours(program, x) for x in batch], rtol=1e-13)


def test_random_views_of_views_share_what_is_written() -> None:
    rng = np.random.default_rng(5)
    views: list[Callable[[Any, Any], Any]] = [
        lambda y, xp: y[1:],
        lambda y, xp: y[..., ::-1],
        lambda y, xp: xp.permute_dims(y, tuple(range(y.ndim))[::-1]),
        lambda y, xp: xp.reshape(y, (2, -1)),
        lambda y, xp: xp.expand_dims(y, axis=1),
        lambda y, xp: xp.squeeze(y, axis=1) if y.ndim > 1 and y.shape[1] == 1 else y,
        lambda y, xp: y[np.arange(y.shape[0])],
        lambda y, xp: y.T,
        lambda y, xp: y.mT if y.ndim > 1 else y,
        lambda y, xp: xp.asarray(y),
        lambda y, xp: xp.flip(y, axis=0),
    ]
    start = rng.normal(size=(4, 2, 3))
    for _ in range(60):
        pools = [np.array(start)], [gt.writable(start)]
        for _ in range(8):
            view, place = views[rng.integers(len(views))], rng.integers(len(pools[0]))
            values = rng.normal()
            for pool, xp in zip(pools, (np, pools[1][0].__array_namespace__()), strict=True):
                try:
                    made = view(pool[place], xp)
                except ValueError:  # an odd number of elements in two rows
                    continue
                made[-1:] = made[:1] * values
                pool.append(made)
        assert len(pools[0]) == len(pools[1])
        for wanted, found in zip(*pools, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-13)


VIEWS: list[Callable[[Any], Any]] = [
    lambda y: np.array_split(y, 2)[0],
    lambda y: np.vsplit(y, 3)[1],
    lambda y: np.hsplit(y, 2)[0],
    lambda y: np.dsplit(y[None], 2)[1],
    lambda y: np.rollaxis(y, 1)[0],
    lambda y: np.real(y)[0],
    lambda y: y.real[0],
    lambda y: np.atleast_1d(np.ones(2), y)[1][0],
    lambda y: np.atleast_3d(y)[0],
    lambda y: np.broadcast_arrays(np.ones(4), y)[1][0],
]


@pytest.mark.parametrize("view", VIEWS)
def test_results_that_are_views_in_numpy_are_views(view: Callable[[Any], Any]) -> None:
    wanted, found = np.array(A), gt.writable(A)
    for y in (wanted, found):
        part = view(y)
        y[0, 0] = 5.0
        part *= 2.0
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    "view",
    [
        lambda y: y.diagonal(),
        lambda y: np.diagonal(y, 1)[::2],
        lambda y: np.linalg.diagonal(y[None])[0],
        lambda y: np.broadcast_to(y, (2, 3, 4))[1],
    ],
)
def test_views_that_are_read_only_in_numpy_follow_the_base(view: Callable[[Any], Any]) -> None:
    wanted, found = np.array(A), gt.writable(A)
    parts = view(wanted), view(found)
    for y, part in zip((wanted, found), parts, strict=True):
        y *= 3.0
        with pytest.raises(ValueError, match="read-only"):
            part[0] = 1.0
    np.testing.assert_array_equal(*parts)
    for copied in (parts[1].copy(), parts[1] + 0.0):
        copied[0] = 1.0
    np.testing.assert_array_equal(found, wanted)


def test_linalgs_diagonal_is_that_of_the_last_axes() -> None:
    wanted, found = np.arange(8.0).reshape(2, 2, 2), gt.writable(np.arange(8.0).reshape(2, 2, 2))
    parts = [
        (np.linalg.diagonal(y), xp.linalg.diagonal(y), np.diagonal(y))
        for y, xp in ((wanted, np), (found, found.__array_namespace__()))
    ]
    for y in (wanted, found):
        y *= y
    for theirs, ours in zip(*parts, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_elements_that_an_array_of_indices_chose_are_copies_in_traces_too() -> None:
    def run(x: Any, i: Any) -> Any:
        y = gt.writable(x)
        part = y[i]
        part[...] = 9.0
        return y * gt.sum(part)

    x, i = gt.constant(A), gt.constant([1, 0])
    np.testing.assert_array_equal(run(x, i), A * 72.0)
    np.testing.assert_array_equal(gt.function(run)(x, i), A * 72.0)
    y, places = gt.writable(A), [0]
    part = y[places]
    places[0] = 99
    part[...] = 9.0
    np.testing.assert_array_equal(y, A)


def test_where_a_view_is_read_does_not_change_its_gradients() -> None:
    x = gt.constant(A)
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.writable(x)
        part = y[0]
        y *= 2.0
        with tape.stop_recording():
            assert part.tolist() == (2.0 * A[0]).tolist()
        total = gt.sum(part)
    assert tape.gradient(total, x).tolist() == [[2.0] * 4, [0.0] * 4, [0.0] * 4]


def test_a_view_can_be_read_in_a_trace_and_after_it() -> None:
    y = gt.writable(A)
    part = y[0]
    y *= 2.0
    assert gt.function(lambda x: gt.sum(part) * x)(1.0).item() == 2.0 * A[0].sum()
    assert part.tolist() == (2.0 * A[0]).tolist()


def test_traced_functions_take_the_current_value() -> None:
    total = gt.function(lambda y: gt.sum(y * y))
    y = gt.writable([1.0, 2.0])
    assert total(y).item() == 5.0
    y[0] = 3.0
    assert total(y).item() == total(y.value).item() == 13.0
    assert gt.grad(lambda x: total(gt.writable(x)))(y.value).tolist() == [6.0, 4.0]

    @gt.function
    def written(y: Any) -> Any:
        y[0] = 9.0
        return y

    with pytest.raises(TypeError, match=r"gradtape\.writable"):
        written(y)
    assert y.tolist() == [3.0, 2.0]


def test_transforms_take_functions_that_return_writable_arrays() -> None:
    def cube(x: Any) -> Any:
        y = gt.writable(x)
        y *= y * y
        return y

    x = gt.constant(2.0)
    assert gt.grad(cube)(x).item() == 12.0
    assert gt.hessian(cube)(x).item() == 12.0
    assert [y.item() for y in gt.value_and_grad(cube)(x)] == [8.0, 12.0]
    with pytest.warns(gt.errors.BrokenPathWarning):
        gt.jvp(lambda x: gt.writable(float(x) * x), (x,), (x,))


def test_custom_gradients_take_writable_arrays() -> None:
    @gt.custom_gradient
    def doubled(x: Any) -> Any:
        return x * 2.0, lambda g: g * 2.0

    x = gt.constant([1.0, 3.0])
    assert gt.grad(lambda x: gt.sum(doubled(gt.writable(x))))(x).tolist() == [2.0, 2.0]


def test_views_in_traces_need_known_sizes() -> None:
    def run(x: Any) -> Any:
        y = gt.writable(x)
        y[0, 1:] = 5.0
        y[1][0] = 5.0
        return y

    assert gt.function(run)(gt.constant(A)).tolist() == run(A).tolist()
    traced = gt.function(run, input_signature=[gt.TensorSpec((None, 4), "float64")])
    with pytest.raises(TypeError, match=r"sizes that are unknown.*assign to the array itself"):
        traced(gt.constant(A))


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda y: pickle.loads(pickle.dumps(y))]
)
def test_copies_and_pickles_of_views_are_arrays_of_their_own(
    copied: Callable[[Any], Any],
) -> None:
    y = gt.writable(A)
    for part in (y, y[0], y.T[1:]):
        other = copied(part)
        np.testing.assert_array_equal(other, part)
        other[0] = 9.0
        assert 9.0 not in np.asarray(part)
    np.testing.assert_array_equal(y, A)
    x = gt.constant(A)
    assert gt.grad(lambda x: gt.sum(copy.copy(gt.writable(x)[1])))(x).tolist()[1] == [1.0] * 4


def test_a_writable_array_is_an_array_of_the_standard() -> None:
    y = gt.writable([1.0, -2.0])
    xp = y.__array_namespace__(api_version="2024.12")
    with pytest.raises(ValueError, match="api_version"):
        y.__array_namespace__(api_version="1999")
    assert (y.shape, y.ndim, y.size, y.dtype) == ((2,), 1, 2, np.float64)
    assert y.device == gt.constant(1.0).device
    assert y.to_device(y.device).tolist() == [1.0, -2.0]
    for result in (abs(y), -y, 2 - y, y @ y, np.ones(2) * y, np.sin(y), xp.linalg.vector_norm(y)):
        assert type(result) is type(y)
    assert xp.float64 is np.float64
    assert xp.isdtype(y.dtype, "real floating")
    values, vectors = xp.linalg.eigh(xp.eye(2))
    assert type(values) is type(vectors) is type(y)
    assert isinstance(y.value, gt.Tensor)
    assert isinstance(gt.exp(y), gt.Tensor)
    assert float(xp.sum(y)) == -1.0
    assert "WritableArray" in repr(y)


def test_results_for_tensors_can_be_written_into_it() -> None:
    def f(x: Any) -> Any:
        y = gt.writable(np.zeros((2, 3)))
        np.multiply(x, 2.0, out=y[0])
        np.cumsum(x, out=y[1])
        return gt.sum(y**2)

    def g(x: Any) -> Any:
        return gt.sum((2.0 * x) ** 2) + gt.sum(gt.cumsum(x) ** 2)

    x = np.array([0.5, -1.0, 2.0])
    np.testing.assert_allclose(gt.grad(f)(x), gt.grad(g)(x), rtol=1e-14)


@pytest.mark.parametrize(
    "write",
    [
        lambda x, y: np.mean([x, y], axis=0, out=y),
        lambda x, y: np.max([x, np.ones(3)], axis=0, out=y),
        lambda x, y: np.median([x, y, x * 2.0], axis=0, out=y),
        lambda x, y: np.add.reduce([x, y], out=y),
        lambda x, y: np.add.accumulate([x[0], x[1], 1.0], out=y),
        lambda x, y: np.multiply.outer([x[0], x[1]], [1.0, x[2], 2.0], out=np.stack([y, y])),
        lambda x, y: np.exp([x[0], x[1], 0.5], out=y),
        lambda x, y: np.concatenate([[x[0]], [x[1], 2.0]], out=y),
        lambda x, y: np.dot([x[0], x[1]], np.ones((2, 3)), out=y[::-1]),
        lambda x, y: np.einsum("i,i->i", [x[0], x[1], x[2]], np.arange(3.0), out=y),
        lambda x, y: np.take([x[0], x[1]], [1, 0, 0], out=y),
        lambda x, y: np.clip([x[0], x[1], 0.1], 0.0, 1.0, out=y),
    ],
)
def test_results_for_lists_of_tensors_can_be_written_into_it(write: Any) -> None:
    def f(x: Any) -> Any:
        y = gt.writable(np.array([0.5, 1.5, -1.0]))
        return gt.sum(gt.sin(write(x, y))) + gt.sum(y * x)

    gt.testing.check_gradients(f, np.array([0.6, 0.8, 2.0]))


def test_what_cannot_be_written_is_an_error() -> None:
    y = gt.writable(np.arange(3))
    with pytest.raises(TypeError):
        y[0] = 0.5
    with pytest.raises(TypeError):
        y += 0.5
    with pytest.raises(IndexError):
        y[3] = 1
    with pytest.raises(TypeError, match=r"x\.real"):
        gt.writable([1j]).real[0] = 1.0
    with pytest.raises(TypeError, match=r"gradtape\.writable"):
        gt.constant([1.0])[0] = 2.0
    with pytest.raises(TypeError):
        gt.writable("text")


def test_a_writable_array_may_be_the_target_of_a_tape() -> None:
    x = gt.constant([1.0, 2.0])
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.writable(x)
        y *= x
    assert tape.gradient(y, x).tolist() == [2.0, 4.0]


def test_one_number_can_be_set_in_a_tensor_without_axes() -> None:
    """NumPy's reductions give scalars, which cannot be written to."""
    x = gt.constant([1.0, 2.0])
    for index in ((), ..., None, True, np.array(True)):
        for run in (lambda f: f, gt.function):
            assert run(lambda x, i=index: gt.sum(x).at[i].set(5.0))(x).tolist() == 5.0
            scaled = gt.grad(run(lambda x, i=index: gt.sum(x).at[i].multiply(3.0)))
            assert scaled(x).tolist() == [3.0, 3.0]
    assert gt.sum(x).at[np.array(False)].set(5.0).tolist() == 3.0


def test_arrays_come_from_dlpack_to_where_a_trace_runs() -> None:
    """scikit-learn asks for the device of a tensor that a trace has."""

    @gt.function
    def shifted(x: Any) -> Any:
        return x + gt.from_dlpack(np.ones(2), device=x.device)

    assert shifted(gt.constant([1.0, 2.0])).tolist() == [2.0, 3.0]


def test_check_gradients_takes_a_writable_result() -> None:
    def f(x: Any) -> Any:
        y = gt.writable(np.zeros(2))
        y[0], y[1] = x[0] ** 2, x[0] * x[1]
        return y

    gt.testing.check_gradients(f, np.array([0.5, 1.5]))
