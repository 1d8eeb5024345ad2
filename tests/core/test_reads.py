"""Gradients of tensors that are read piece by piece: they go into one array, in linear time."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import ops

X = np.random.default_rng(0).normal(size=(6, 4))
PLACES = np.array([2, 0, 2])

#: How rows come out of a tensor one by one.
LOOPS = {
    "integers": lambda x: [x[i] for i in range(6)],
    "iteration": lambda x: list(x),
    "enumerate": lambda x: [row * i for i, row in enumerate(x)],
    "slices": lambda x: [x[i : i + 2] for i in range(5)],
    "columns": lambda x: [x[:, i] for i in range(4)],
    "elements": lambda x: [x[i, j] for i in range(6) for j in range(4)],
    "index arrays": lambda x: [x[[i, 0, i]] for i in range(6)],
    "masks": lambda x: [x[np.arange(6) % 3 == i] for i in range(3)],
    "ellipsis": lambda x: [x[..., i, None] for i in range(4)],
    "take": lambda x: [gt.take(x, i, axis=0) for i in range(6)],
    "take from the end": lambda x: [gt.take(x, [i, 0], axis=-1) for i in range(4)],
    "take from the flattened": lambda x: [gt.take(x, [i, 3]) for i in range(24)],
    "all kinds": lambda x: [x[0], gt.take(x, PLACES), x[1:], gt.take(x, 1, axis=1), x * 2, x[0]],
    "unstack": lambda x: gt.unstack(x),
    "split": lambda x: gt.split(x, 6),
    "apply_along_axis": lambda x: [gt.apply_along_axis(lambda v: v[0] * v[-1], 1, x)],
}


def total(loop):
    return lambda x: sum(gt.sum(part**3) * (k + 1) for k, part in enumerate(loop(gt.tanh(x))))


def slopes(f, x, step=1e-6):
    """Return the gradient of a function of an array by central differences."""
    found = np.zeros_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += step
        down[place] -= step
        found[place] = (f(up) - f(down)) / (2 * step)
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_the_gradient_of_pieces_is_right_in_every_mode(name):
    f = total(LOOPS[name])
    expected = slopes(lambda a: f(gt.constant(a)).item(), X)
    gradient = gt.grad(f)
    np.testing.assert_allclose(gradient(gt.constant(X)).numpy(), expected, atol=1e-7)
    np.testing.assert_allclose(gt.function(gradient)(gt.constant(X)).numpy(), expected, atol=1e-7)
    stacked = gt.constant(np.stack([X, X[::-1]]))
    if name != "masks":
        np.testing.assert_allclose(gt.vmap(gradient)(stacked)[0].numpy(), expected, atol=1e-7)
    v = np.cos(X)
    curved = slopes(lambda a: float((gradient(gt.constant(a)).numpy() * v).sum()), X)
    second = gt.grad(lambda x: gt.sum(gradient(x) * v))
    np.testing.assert_allclose(second(gt.constant(X)).numpy(), curved, atol=1e-6)
    forward = gt.jvp(gradient, [gt.constant(X)], [gt.constant(v)])[1]
    np.testing.assert_allclose(forward.numpy(), curved, atol=1e-6)


def ran(work):
    """Return how often each op runs on arrays of its own or a tape's."""
    count: Counter[str] = Counter()
    seen = {}
    for name in ("index_add_like", "index_add_all_like", "take_adjoint", "add", "getitem"):
        op = ops[name]
        seen[op] = dict(op._kernels)
        op.forget_made()
        kernel_of = type(op).kernel_for

    def counting(self, backend):
        kernel = kernel_of(self, backend)

        def run(*arrays, **params):
            count[self.name] += 1
            return kernel(*arrays, **params)

        return run

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gradtape.core.ops.primitive.Primitive.kernel_for", counting)
        work()
    for op in seen:
        op.forget_made()
    return count


@pytest.mark.parametrize("loop", ["integers", "slices", "take", "iteration"])
@pytest.mark.parametrize("order", [1, 2])
def test_many_reads_of_one_tensor_make_one_array_of_its_size(loop, order):
    def f(x):
        return gt.sum(gt.stack([gt.sum(part**2) for part in LOOPS[loop](x)]) ** 2)

    g = f if order == 1 else lambda x: gt.sum(gt.grad(f)(x) ** 2)
    x = gt.constant(X)
    count = ran(lambda: gt.grad(g)(x))
    assert count["index_add_like"] + count["take_adjoint"] == 0
    assert count["index_add_all_like"] <= 3 * order


def test_reads_of_a_source_that_is_also_a_target_and_of_a_persistent_tape():
    x = gt.constant(X)
    with gt.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * 2
        z = y[0] * y[1] + y[2]
    for _ in range(2):
        gx, gy = tape.gradient([z, y], [x, y])
        expected = np.ones_like(X)
        expected[0] += 2 * X[1]
        expected[1] += 2 * X[0]
        expected[2] += 1
        np.testing.assert_allclose(gy.numpy(), expected)
        np.testing.assert_allclose(gx.numpy(), 2 * expected)
    assert tape.gradient(z, y).numpy()[3:].tolist() == np.zeros((3, 4)).tolist()


def test_a_gradient_that_others_hold_is_not_written_to():
    x = gt.constant(X)
    seed = gt.constant(np.ones_like(X))
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = x + 0.0
        parts = [y[0], y[1], y]
    tape.gradient(parts, x, output_gradients=[seed[0], seed[1], seed])
    assert (seed.numpy() == 1).all()


def test_reads_in_a_traced_gradient_are_one_node_and_are_saved(tmp_path):
    class Rows(gt.Module):
        @gt.function(input_signature=[gt.TensorSpec((None, 4), "float64")])
        def slope(self, x):
            return gt.grad(lambda x: gt.sum(x[0] * x[1]) + gt.sum(x[2:] ** 2))(x)

    module = Rows()
    names = [n.op.name for n in module.slope.get_concrete_function().graph.nodes]
    assert names.count("index_add_all_like") == 1
    gt.save(module, tmp_path / "rows.h5")
    expected = module.slope(gt.constant(X)).numpy()
    loaded = gt.load(tmp_path / "rows.h5")
    np.testing.assert_array_equal(loaded.slope(gt.constant(X)).numpy(), expected)


def test_reads_in_a_trace_of_unknown_rank():
    slope = gt.grad(lambda x: gt.sum(x[0] * x[1]) + gt.sum(gt.take(x, 1, -1) * gt.take(x, 0, -1)))
    traced = gt.function(slope, input_signature=[gt.TensorSpec(None, "float64")])
    for x in (X, X[:2], np.stack([X, X + 1])):
        np.testing.assert_allclose(traced(x).numpy(), slope(gt.constant(x)).numpy())


def row_op(together):
    return gt.core.extend.Op(
        "example::row", lambda xp, x, *, number=0: x[number], together=together
    )


@pytest.fixture
def plugin():
    def register(op):
        gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [op])), "rows")
        return op

    yield register
    gt.unregister_plugin("rows")


def test_a_plugin_may_have_ops_that_pick(plugin):
    calls = []

    def together(gs, inputs, params):
        calls.append(len(gs))
        found = gt.core.extend.F.zeros_like(inputs[0][0])
        for g, settings in zip(gs, params, strict=True):
            found[settings["number"]] += g
        return found

    row = plugin(row_op(together))
    gradient = gt.grad(lambda x: gt.sum(row(x, number=1) * row(x, number=4)) + gt.sum(row(x)))
    found = gradient(gt.constant(X)).numpy()
    np.testing.assert_allclose(found[[0, 1, 4]], [np.ones(4), X[4], X[1]])
    assert calls == [3]


def test_its_gradient_is_checked_and_can_be_replaced(plugin):
    row = plugin(row_op(lambda gs, inputs, params: gs[0]))
    with pytest.raises(gt.errors.GradientError, match=r"example::row.*shape"):
        gt.grad(lambda x: gt.sum(row(x)))(gt.constant(X))

    @gt.register_gradient("example::row", override=True)
    def other(g, x):
        return 3.0 * x

    found = gt.grad(lambda x: gt.sum(row(x)))(gt.constant(X))
    np.testing.assert_allclose(found.numpy(), 3 * X)
