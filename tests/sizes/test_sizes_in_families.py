"""Families of ops in traces whose sizes are open: values, gradients, batches, files and shapes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt

Function = Callable[[Any], Any]


def squares(x: Any) -> Any:
    """Return a positive definite matrix of every vector."""
    return gt.outer(x, x) + 3.0 * gt.diag(gt.ones_like(x))


def images(x: Any) -> Any:
    return gt.reshape(x, (1, x.shape[0], 1))


def numbers(x: Any) -> Any:
    """Return integers that change with no derivative."""
    return gt.cumsum(gt.ones_like(x).astype("int64")) - 1


#: name -> (a function of a vector of an open size, the least size, the shape that a trace infers)
VECTORS: dict[str, tuple[Function, int, str]] = {
    "outer": (lambda x: gt.outer(x, x), 0, "(n, n)"),
    "kron": (lambda x: gt.kron(x, gt.constant([1.0, 2.0])), 0, "(2*n,)"),
    "inner": (lambda x: gt.inner(gt.outer(x, x), x), 0, "(n,)"),
    "tensordot": (lambda x: gt.tensordot(gt.outer(x, x), x, 1), 0, "(n,)"),
    "einsum": (lambda x: gt.einsum("i,j,i->ij", x, x, x), 0, "(n, n)"),
    "vecdot": (lambda x: gt.vecdot(x, 2.0 * x), 0, "()"),
    "multi_dot": (lambda x: gt.linalg.multi_dot([gt.outer(x, x), gt.outer(x, x), x]), 0, "(n,)"),
    "cholesky": (lambda x: gt.linalg.cholesky(squares(x)), 1, "(n, n)"),
    "solve": (lambda x: gt.linalg.solve(squares(x), x), 1, "(n,)"),
    "inv": (lambda x: gt.linalg.inv(squares(x)), 1, "(n, n)"),
    "det": (lambda x: gt.linalg.det(squares(x)), 1, "()"),
    "svdvals": (lambda x: gt.linalg.svdvals(squares(x))[:1], 1, "(min(n, 1),)"),
    "largest norm": (lambda x: gt.linalg.norm(x, ord=np.inf), 0, "()"),
    "convolve": (lambda x: gt.convolve(x, [1.0, 2.0]), 1, "(n + 1,)"),
    "convolve same": (lambda x: gt.convolve(x, [1.0, 2.0, 3.0], "same"), 1, "(max(n, 3),)"),
    "convolve valid": (lambda x: gt.convolve(x, x[:1], "valid"), 1, "(n - min(n, 1) + 1,)"),
    "correlate": (lambda x: gt.correlate(x, [1.0, 2.0, 3.0], "same"), 1, "(max(n, 3),)"),
    "diff": (lambda x: gt.diff(x), 0, "(max(n - 1, 0),)"),
    "gradient": (lambda x: gt.gradient(x), 2, "(n,)"),
    "unwrap": (lambda x: gt.unwrap(4.0 * x), 1, "(n,)"),
    "trapezoid": (lambda x: gt.trapezoid(x, x * x), 1, "()"),
    "interp": (lambda x: gt.interp(x, [0.0, 1.0], [1.0, 3.0]), 0, "(n,)"),
    "vander": (lambda x: gt.vander(x), 0, "(n, max(n - 1, 0) + min(n, 1))"),
    "vander counted": (
        lambda x: gt.vander(x, x.shape[0] // 2),
        0,
        "(n, max(n // 2 - 1, 0) + min(n // 2, 1))",
    ),
    "polyder": (lambda x: gt.polyder(x), 1, "(max(n - 1, 0),)"),
    "polyint": (lambda x: gt.polyint(x), 1, "(n + 1,)"),
    "polymul": (lambda x: gt.polymul(x, x), 1, "(2*n - 1,)"),
    "hamming": (lambda x: x * gt.hamming(x.shape[0], x.dtype), 0, "(n,)"),
    "hanning": (lambda x: x * gt.hanning(x.shape[0], x.dtype), 0, "(n,)"),
    "bartlett": (lambda x: x * gt.bartlett(x.shape[0], x.dtype), 0, "(n,)"),
    "blackman": (lambda x: x * gt.blackman(x.shape[0], x.dtype), 0, "(n,)"),
    "kaiser": (lambda x: x * gt.kaiser(x.shape[0], 2.0, x.dtype), 0, "(n,)"),
    "kaiser of a tensor": (lambda x: gt.kaiser(x.shape[0], gt.sum(x * x)), 0, "(n,)"),
    "rfft": (lambda x: gt.abs(gt.fft.rfft(x)), 1, "(n // 2 + 1,)"),
    "irfft": (lambda x: gt.fft.irfft(gt.fft.rfft(x), x.shape[0]), 1, "(n,)"),
    "fft longer": (lambda x: gt.real(gt.fft.fft(x, 2 * x.shape[0])), 1, "(2*n,)"),
    "fft shorter": (lambda x: gt.real(gt.fft.fft(x, x.shape[0] // 2 + 1)), 1, "(n // 2 + 1,)"),
    "fftfreq": (lambda x: x * gt.fft.fftfreq(x.shape[0], dtype=x.dtype), 1, "(n,)"),
    "rfftfreq": (
        lambda x: gt.fft.rfftfreq(x.shape[0], 1 / x.shape[0], x.dtype) * gt.sum(x),
        1,
        "(n // 2 + 1,)",
    ),
    "fftshift": (lambda x: gt.fft.fftshift(x), 0, "(n,)"),
    "sort": (lambda x: gt.sort(x), 0, "(n,)"),
    "middle rank": (lambda x: gt.partition(x, x.shape[0] // 2)[x.shape[0] // 2], 1, "()"),
    "median": (lambda x: gt.median(x), 1, "()"),
    "quantile": (lambda x: gt.quantile(x, [0.2, 0.7]), 1, "(2,)"),
    "take": (lambda x: gt.take(x, [0, 5], mode="wrap"), 1, "(2,)"),
    "take clipped": (lambda x: gt.take(x, [0, 5], mode="clip"), 1, "(2,)"),
    "reversed": (lambda x: gt.take(x, x.shape[0] - 1 - numbers(x)), 0, "(n,)"),
    "one_hot": (
        lambda x: gt.one_hot(numbers(x), x.shape[0], x.dtype) * x,
        0,
        "(n, n)",
    ),
    "segment_sum": (
        lambda x: gt.nn.segment_sum(x, numbers(x) // 2, (x.shape[0] + 1) // 2),
        0,
        "((n + 1) // 2,)",
    ),
    "segments of their number": (
        lambda x: gt.sum(gt.nn.segment_sum(x, numbers(x) // 2)[::2]),
        0,
        "()",
    ),
    "at set": (lambda x: gt.outer(x, x).at[x.shape[0] - 1, 0].set(2.0), 1, "(n, n)"),
    "at add": (lambda x: x.at[: x.shape[0] // 2].add(3.0 * x[0]), 1, "(n,)"),
    "maximum or bound": (lambda x: gt.max(x, initial=0.25), 0, "()"),
    "variance": (lambda x: gt.var(x), 1, "()"),
    "cumulative": (lambda x: gt.cumulative_sum(x, include_initial=True), 0, "(n + 1,)"),
    "conv": (
        lambda x: gt.nn.conv(images(x), np.ones((3, 1, 2)), strides=2),
        0,
        "(1, max((n + 1) // 2 - 1, 0), 2)",
    ),
    "conv same": (
        lambda x: gt.nn.conv(images(x), np.ones((3, 1, 1)), strides=2, padding="same"),
        0,
        "(1, (n + 1) // 2, 1)",
    ),
    "conv padded": (
        lambda x: gt.nn.conv(images(x), np.ones((3, 1, 1)), padding=x.shape[0]),
        0,
        "(1, max(3*n - 2, 0), 1)",
    ),
    "conv_transpose": (
        lambda x: gt.nn.conv_transpose(images(x), np.ones((3, 1, 1)), strides=2),
        1,
        "(1, 2*n + 1, 1)",
    ),
    "max_pool": (lambda x: gt.nn.max_pool(images(x), 2), 0, "(1, n // 2, 1)"),
    "global pool": (lambda x: gt.nn.avg_pool(images(x), x.shape[0]), 1, "(1, 1, 1)"),
    "softmax": (lambda x: gt.nn.softmax(x), 1, "(n,)"),
    "cross entropy": (
        lambda x: gt.nn.softmax_cross_entropy_with_logits(
            labels=gt.nn.softmax(gt.outer(x, x)), logits=gt.outer(x, x)
        ),
        1,
        "(n,)",
    ),
    "layer norm": (lambda x: gt.nn.layer_normalization(x), 2, "(n,)"),
    "mean by hand": (lambda x: gt.sum(x * x) / x.shape[0], 1, "()"),
    "average": (lambda x: gt.average(x, weights=x * x + 1.0), 1, "()"),
    "cov": (lambda x: gt.cov(gt.stack([x, x * x])), 2, "(2, 2)"),
    "histogram of a range": (
        lambda x: gt.histogram(x, 3, (0, x.shape[0]), weights=x)[0],
        1,
        "(3,)",
    ),
    "polyfit": (lambda x: gt.polyfit(x, x * x, x.shape[0] // 3), 2, "(n // 3 + 1,)"),
    "unwrapped by a size": (lambda x: gt.unwrap(9.0 * x, period=x.shape[0]), 1, "(n,)"),
    "groups": (
        lambda x: gt.nn.group_normalization(gt.outer(x, x), groups=x.shape[0], epsilon=1.0),
        1,
        "(n, n)",
    ),
    "grouped conv": (
        lambda x: gt.nn.conv(
            gt.outer(x, x)[None], gt.ones((1, 1, x.shape[0]), "float64"), groups=x.shape[0]
        ),
        1,
        "(1, n, n)",
    ),
    "depthwise": (
        lambda x: gt.nn.depthwise_conv(
            gt.outer(x, x)[None], gt.ones((2, x.shape[0], 2), "float64")
        ),
        1,
        "(1, max(n - 1, 0), 2*n)",
    ),
    "variance of a sample": (lambda x: gt.var(x, ddof=x.shape[0] // 2), 1, "()"),
    "histogram": (
        lambda x: gt.histogram(gt.constant([0.2, 0.4, 0.7]), x.shape[0], (0.0, 1.0))[0] * x,
        1,
        "(n,)",
    ),
}
#: What a batch cannot do, or does otherwise.
NOT_BATCHED = {"kaiser of a tensor", "segments of their number", "histogram of a range"}
#: What is multiplied in another order where sizes are known.
ROUNDED = {"multi_dot"}
SIZES = (0, 1, 2, 3, 7)


def vector(n: int) -> Any:
    return gt.constant(np.cos(np.arange(n) * 1.7) + 0.1 * np.arange(n))


def both_orders(function: Function) -> Function:
    """Return a function that gives values, the gradient, and the gradient of its square."""

    def loss(x: Any) -> Any:
        return gt.sum(gt.sin(function(x)))

    slope = gt.grad(loss)
    turn = gt.grad(lambda x: gt.sum(slope(x) ** 2))
    return lambda x: (function(x), slope(x), turn(x))


def traced(function: Function) -> Any:
    return gt.function(function, input_signature=[gt.TensorSpec([None], "float64")])


@pytest.mark.parametrize("name", VECTORS)
def test_a_function_of_open_sizes_is_the_python_function_at_every_size(name: str) -> None:
    function, least, shape = VECTORS[name]
    eager = both_orders(function)
    graph = traced(eager)
    concrete = graph.get_concrete_function(gt.TensorSpec([None], "float64"))
    assert str(concrete.graph.outputs[0].shape) == shape
    for n in SIZES:
        if n < least:
            continue
        x = vector(n)
        for mine, want in zip(graph(x), eager(x), strict=True):
            assert mine.shape == want.shape
            assert mine.dtype == want.dtype
            np.testing.assert_allclose(mine.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)
        if name not in ROUNDED:
            np.testing.assert_array_equal(graph(x)[0].numpy(), function(x).numpy())
    assert len(graph.concrete_functions) == 1


@pytest.mark.parametrize("name", sorted({*VECTORS} - NOT_BATCHED))
def test_it_is_the_same_in_batches(name: str) -> None:
    function, least, _ = VECTORS[name]
    rows = gt.function(
        gt.vmap(lambda x: both_orders(function)(x)[:2]),
        input_signature=[gt.TensorSpec([None, None], "float64")],
    )
    for n in (max(least, 1), 3):
        xs = gt.stack([vector(n), 0.5 * vector(n) + 0.3])
        got = rows(xs)
        for i, x in enumerate(xs):
            for mine, want in zip(got, both_orders(function)(x)[:2], strict=True):
                np.testing.assert_allclose(mine[i].numpy(), want.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", VECTORS)
def test_it_is_the_same_from_a_file(name: str, tmp_path: Path) -> None:
    function, least, _ = VECTORS[name]
    eager = both_orders(function)
    gt.save(gt.Module(), tmp_path / "f.h5", {"run": traced(eager)}, golden=False)
    run = gt.load(tmp_path / "f.h5").signatures["run"]
    for n in (max(least, 1), 7):
        got = run(vector(n))
        got = list(got.values()) if isinstance(got, dict) else got
        for mine, want in zip(got, eager(vector(n)), strict=True):
            np.testing.assert_allclose(mine.numpy(), want.numpy(), rtol=1e-12, atol=1e-12)


#: name -> (a function of matrices of shape (n, 3) and (4, m), what is refused)
NEVER: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "matmul": (lambda x, y: x @ y, r"matmul: shapes \(n, 3\) and \(4, m\).*3 is not 4"),
    "n and n + 1": (
        lambda x, y: gt.pad(x, ((1, 0), (0, 0))).T @ x,
        r"matmul: shapes .*n \+ 1 is not n",
    ),
    "tensordot": (lambda x, y: gt.tensordot(x, y, 1), "tensordot: .*differ"),
    "einsum": (lambda x, y: gt.einsum("ij,jk->ik", x, y), "einsum: label 'j'"),
    "vdot": (
        lambda x, y: gt.vdot(x, gt.pad(x, ((2, 0), (0, 0)))),
        "vdot: a has 3\\*n elements, b has 3\\*n \\+ 6",
    ),
    "vecdot": (lambda x, y: gt.vecdot(x, gt.pad(x, ((0, 0), (0, 1)))), "vecdot: the sizes"),
    "solve": (lambda x, y: gt.linalg.solve(x.T @ x, y), "solve: .*do not fit"),
    "inv": (lambda x, y: gt.linalg.inv(gt.pad(x @ x.T, ((1, 0), (0, 0)))), "square"),
    "conv": (
        lambda x, y: gt.nn.conv(x[None], np.ones((2, 4, 1))),
        "have 3 channels, filters of shape .* need 4",
    ),
    "segment_sum": (
        lambda x, y: gt.nn.segment_sum(x, gt.zeros(x.shape[0] + 1, "int64"), 3),
        "segment_sum: segment_ids",
    ),
    "loss": (
        lambda x, y: gt.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=x[:, :2]),
        "must have one shape",
    ),
    "labels": (
        lambda x, y: gt.nn.sparse_softmax_cross_entropy_with_logits(
            labels=gt.zeros(x.shape[0] + 1, "int64"), logits=x
        ),
        "labels of shape",
    ),
    "mask": (lambda x, y: x[gt.zeros(x.shape[0] + 1, "bool")], "mask of shape"),
    "weights": (
        lambda x, y: gt.average(x, axis=0, weights=gt.ones(x.shape[0] + 1)),
        "average: weights",
    ),
}


@pytest.mark.parametrize("name", NEVER)
def test_what_no_size_allows_is_refused_while_it_is_traced(name: str) -> None:
    function, words = NEVER[name]
    traced = gt.function(
        function, input_signature=[gt.TensorSpec([None, 3]), gt.TensorSpec([4, None])]
    )
    with pytest.raises((ValueError, IndexError), match=words):
        traced(gt.ones((2, 3)), gt.ones((4, 2)))


#: name -> a function of two vectors of one size
SOMETIMES: dict[str, Callable[[Any, Any], Any]] = {
    "loss": lambda x, y: gt.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=y),
    "hinge": lambda x, y: gt.nn.hinge(labels=gt.sign(x), predictions=y),
    "vecdot": lambda x, y: gt.vecdot(x, y),
    "average": lambda x, y: gt.average(x, weights=y + 3.0),
    "interp": lambda x, y: gt.interp(0.5, x, y),
    "polyfit": lambda x, y: gt.polyfit(x, y, 0),
    "matmul": lambda x, y: x @ y,
}


@pytest.mark.parametrize("name", SOMETIMES)
def test_what_some_sizes_allow_is_refused_by_the_run_that_finds_others(name: str) -> None:
    function = SOMETIMES[name]
    spec = gt.TensorSpec([None], "float64")
    traced = gt.function(function, input_signature=[spec, spec])
    np.testing.assert_allclose(
        traced(vector(3), vector(3)).numpy(), function(vector(3), vector(3)).numpy()
    )
    for n, m in ((1, 3), (3, 1), (2, 3)):
        for run in (function, traced):
            with pytest.raises((ValueError, TypeError)):
                run(vector(n), vector(m))


def test_arrays_are_equal_in_the_runs_that_find_one_size() -> None:
    spec = gt.TensorSpec([None], "float64")
    same = gt.function(gt.array_equal, input_signature=[spec, spec])
    found = [[same(vector(n), vector(m)).item() for m in (0, 1, 3)] for n in (0, 1, 3)]
    assert found == [[True, False, False], [False, True, False], [False, False, True]]
    assert not same(vector(3), 2.0 * vector(3)).item()


def test_matrices_are_factored_wide_or_high_by_one_trace() -> None:
    def product(x: Any) -> Any:
        q, r = gt.linalg.qr(x)
        return gt.sum(gt.abs(r) * 2.0) + gt.sum(gt.cos(q @ r))

    traced = gt.function(
        lambda x: (product(x), gt.grad(product)(x)),
        input_signature=[gt.TensorSpec([None, None], "float64")],
    )
    for shape in ((3, 3), (2, 4), (4, 2)):
        x = gt.constant(np.random.default_rng(1).normal(size=shape))
        value, slope = traced(x)
        np.testing.assert_allclose(value.numpy(), product(x).numpy(), rtol=1e-12)
        np.testing.assert_allclose(slope.numpy(), gt.grad(product)(x).numpy(), rtol=1e-10)


@pytest.mark.parametrize("rows", [2, 3, 5])
def test_least_squares_have_residuals_where_rows_exceed_columns(rows: int) -> None:
    solve = gt.function(
        gt.linalg.lstsq,
        input_signature=[gt.TensorSpec([None, 3], "float64"), gt.TensorSpec([None, 2], "float64")],
    )
    rng = np.random.default_rng(rows)
    a, b = (gt.constant(rng.normal(size=(rows, n))) for n in (3, 2))
    for mine, want in zip(solve(a, b), gt.linalg.lstsq(a, b), strict=True):
        assert mine.shape == want.shape
        np.testing.assert_allclose(mine.numpy(), want.numpy(), rtol=1e-10)


def test_a_constant_mask_keeps_its_size() -> None:
    picked = gt.function(
        lambda x: x[np.array([True, False, True])],
        input_signature=[gt.TensorSpec([3, None])],
    )
    concrete = picked.get_concrete_function(gt.TensorSpec([3, None]))
    assert str(concrete.graph.outputs[0].shape) == "(2, n)"


@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("edges", [[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]])
def test_bins_may_ascend_or_descend_in_any_number(edges: list[float], size: int) -> None:
    spec = gt.TensorSpec([None], "float64")
    digitize = gt.function(gt.digitize, input_signature=[spec, spec])
    for count in range(4):
        bins = gt.constant(np.asarray(edges[:count], np.float64))
        want = gt.digitize(vector(size), bins)
        assert digitize(vector(size), bins).tolist() == want.tolist()


#: name -> (a function in which a size decides what a trace is made of, the words)
FORMS: dict[str, tuple[Function, str]] = {
    "diff": (lambda x: gt.diff(x, x.shape[0]), "diff: n decides"),
    "matrix_power": (
        lambda x: gt.linalg.matrix_power(gt.outer(x, x), x.shape[0]),
        "matrix_power: the power decides",
    ),
    "polyder": (lambda x: gt.polyder(x, x.shape[0]), "polyder: m decides"),
    "polyval": (lambda x: gt.polyval(x, 2.0), "polyval: the number of coefficients decides"),
    "tensordot": (
        lambda x: gt.tensordot(gt.outer(x, x), x, x.shape[0]),
        "tensordot: the number of axes decides",
    ),
    "histogram": (lambda x: gt.histogram(x, "auto")[0], "histogram: how many bins the rule"),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_size_that_decides_the_form_of_a_trace_is_refused_by_name(name: str) -> None:
    function, words = FORMS[name]
    with pytest.raises(gt.errors.TraceError, match=words):
        traced(function)(vector(3))
