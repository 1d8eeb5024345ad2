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
    "svdvals": (lambda x: gt.linalg.svdvals(squares(x))[:1], 1, "(1,)"),
    "largest norm": (lambda x: gt.linalg.norm(x, ord=np.inf), 0, "()"),
    "convolve": (lambda x: gt.convolve(x, [1.0, 2.0]), 1, "(n + 1,)"),
    "convolve same": (lambda x: gt.convolve(x, [1.0, 2.0, 3.0], "same"), 1, "(max(3, n),)"),
    "convolve valid": (lambda x: gt.convolve(x, x[:1], "valid"), 1, "(n,)"),
    "correlate": (lambda x: gt.correlate(x, [1.0, 2.0, 3.0], "same"), 1, "(max(3, n),)"),
    "diff": (lambda x: gt.diff(x), 0, "(max(0, n - 1),)"),
    "gradient": (lambda x: gt.gradient(x), 2, "(n,)"),
    "unwrap": (lambda x: gt.unwrap(4.0 * x), 1, "(n,)"),
    "trapezoid": (lambda x: gt.trapezoid(x, x * x), 1, "()"),
    "interp": (lambda x: gt.interp(x, [0.0, 1.0], [1.0, 3.0]), 0, "(n,)"),
    "vander": (lambda x: gt.vander(x), 0, "(n, n)"),
    "vander counted": (lambda x: gt.vander(x, x.shape[0] // 2), 0, "(n, n // 2)"),
    "polyder": (lambda x: gt.polyder(x), 1, "(max(0, n - 1),)"),
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
    "at set": (lambda x: gt.outer(x, x).at[x.shape[0] - 1, 0].set(2.0), 1, "(n, n)"),
    "at add": (lambda x: x.at[: x.shape[0] // 2].add(3.0 * x[0]), 1, "(n,)"),
    "maximum or bound": (lambda x: gt.max(x, initial=0.25), 0, "()"),
    "variance": (lambda x: gt.var(x), 1, "()"),
    "cumulative": (lambda x: gt.cumulative_sum(x, include_initial=True), 0, "(n + 1,)"),
    "conv": (
        lambda x: gt.nn.conv(images(x), np.ones((3, 1, 2)), strides=2),
        0,
        "(1, max(0, (n - 1) // 2), 2)",
    ),
    "conv same": (
        lambda x: gt.nn.conv(images(x), np.ones((3, 1, 1)), strides=2, padding="same"),
        0,
        "(1, (n + 1) // 2, 1)",
    ),
    "conv padded": (
        lambda x: gt.nn.conv(images(x), np.ones((3, 1, 1)), padding=x.shape[0]),
        0,
        "(1, max(0, 3*n - 2), 1)",
    ),
    "conv_transpose": (
        lambda x: gt.nn.conv_transpose(images(x), np.ones((3, 1, 1)), strides=2),
        1,
        "(1, max(0, 2*n + 1), 1)",
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
    "histogram": (
        lambda x: gt.histogram(gt.constant([0.2, 0.4, 0.7]), x.shape[0], (0.0, 1.0))[0] * x,
        1,
        "(n,)",
    ),
}
#: What a batch cannot do, or does otherwise.
NOT_BATCHED = {"kaiser of a tensor"}
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


def shape_of(function: Function) -> str:
    graph = traced(function).concrete_functions[0].graph
    return str(graph.outputs[0].shape)


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
