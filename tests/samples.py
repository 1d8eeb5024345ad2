"""What every op that stands for a NumPy function must do, for a table of samples.

A sample is ``(ours, NumPy's, inputs)``: two functions of the inputs, which are arrays. Inputs of
floating dtype are differentiated, and are away from kinks; others stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gradcheck import check_gradients

import gradtape as gt

Sample = tuple[Callable[..., Any], Callable[..., Any], list[Any]]


def cross_in_a_plane(a: Any, b: Any) -> Any:
    """Return cross products of vectors with 2 or 3 elements, which NumPy 2.5 refuses."""
    whole = [np.concatenate([x, np.zeros((*x.shape[:-1], 3 - x.shape[-1]))], -1) for x in (a, b)]
    product = np.cross(*whole)
    return product[..., 2] if a.shape[-1] == b.shape[-1] == 2 else product


def listed(results: Any, keep: bool = False) -> list[Any]:
    """Return one result, or several, as a list of arrays; or of what they are, if to be kept."""
    several = list(results) if isinstance(results, (list, tuple)) else [results]
    return several if keep else [np.asarray(y) for y in several]


def check_values(sample: Sample, rtol: float, atol: float = 0.0) -> None:
    """Check values, shapes and dtypes against NumPy's."""
    ours, theirs, inputs = sample
    for mine, want in zip(
        listed(ours(*map(gt.constant, inputs))), listed(theirs(*inputs)), strict=True
    ):
        assert mine.shape == want.shape
        assert mine.dtype == want.dtype
        np.testing.assert_allclose(mine, want, rtol=rtol, atol=atol)


def check_two_orders(sample: Sample) -> None:
    """Check gradients of first and second order against differences."""
    ours, _, inputs = sample

    def squared(*xs: Any) -> Any:
        return [y * y for y in listed(ours(*xs), keep=True)]  # no second order is 0

    check_gradients(squared, *inputs)


def check_traces(sample: Sample, unknown: str = "sizes") -> None:
    """Check that traces agree with eager runs, in values and gradients.

    ``unknown`` is what the trace does not know: ``"nothing"``, ``"sizes"``, or ``"rank"``.
    """
    ours, theirs, inputs = sample
    tensors = [gt.constant(x) for x in inputs]
    sources = [x for x in tensors if x.dtype.kind in "fc"]
    known = gt.function(ours)
    for mine, want in zip(listed(known(*tensors)), listed(ours(*tensors)), strict=True):
        np.testing.assert_array_equal(mine, want)
    for symbol, want in zip(
        known.concrete_functions[0].graph.outputs, listed(theirs(*inputs)), strict=True
    ):
        assert symbol.dtype == want.dtype
        assert len(symbol.shape) == want.ndim
        assert all(n in (None, m) for n, m in zip(symbol.shape, want.shape, strict=True))
    if unknown == "nothing":
        return

    def slopes(*xs: Any) -> list[Any]:
        watched = [x for x in xs if x.dtype.kind in "fc"]
        with gt.GradientTape() as tape:
            tape.watch(watched)
            loss = [y * y for y in listed(ours(*xs), keep=True)]
        return [*loss, *tape.gradient(loss, watched, unconnected_gradients="zero")]

    specs = [
        gt.TensorSpec(None if unknown == "rank" else [None] * np.ndim(x), x.dtype) for x in inputs
    ]
    assert sources
    traced = gt.function(slopes, input_signature=specs)
    for mine, want in zip(traced(*tensors), slopes(*tensors), strict=True):
        assert mine.dtype == want.dtype
        np.testing.assert_allclose(mine.numpy(), want.numpy(), rtol=1e-13, atol=1e-15)


def check_runs_in_traces(
    sample: Sample, sized: bool = False, rtol: float = 1e-12, atol: float = 0.0
) -> None:
    """Check that a trace of values and gradients agrees with the eager run.

    It knows its sizes, then does not, or again if it is to be ``sized``.
    """
    ours, _, inputs = sample
    xs = [gt.constant(x) for x in inputs]

    def run(*xs: Any) -> list[Any]:
        with gt.GradientTape() as tape:
            tape.watch(xs)
            ys = listed(ours(*xs), keep=True)
        return [ys, tape.gradient(ys, list(xs))]

    want, grads = run(*xs)
    specs = [gt.TensorSpec(x.shape if sized else [None] * x.ndim, x.dtype) for x in xs]
    for traced in (gt.function(run), gt.function(input_signature=specs)(run)):
        ys, slopes = traced(*xs)
        for y, w in zip([*ys, *slopes], [*want, *grads], strict=True):
            np.testing.assert_allclose(y.numpy(), w.numpy(), rtol=rtol, atol=atol)
    outputs = gt.function(ours).get_concrete_function(*xs).graph.outputs
    assert [(x.shape, x.dtype) for x in outputs] == [(y.shape, y.dtype) for y in want]


def check_dtypes(sample: Sample, *dtypes: str) -> None:
    """Check the dtypes of results against NumPy's, eager and traced, and those of gradients."""
    ours, theirs, inputs = sample
    for dtype in dtypes:
        xs = [x.astype(dtype) if x.dtype.kind == "f" else x for x in inputs]
        wanted = listed(theirs(*xs))
        tensors = [gt.constant(x) for x in xs]
        sources = [x for x in tensors if x.dtype.kind in "fc"]
        with gt.GradientTape() as tape:
            tape.watch(sources)
            results = listed(ours(*tensors), keep=True)
        for mine, want in zip(results, wanted, strict=True):
            assert mine.dtype == want.dtype, f"{dtype} gives {mine.dtype}, NumPy {want.dtype}"
        for mine, want in zip(listed(gt.function(ours)(*tensors)), wanted, strict=True):
            assert mine.dtype == want.dtype, f"traced {dtype} gives {mine.dtype}"
        followed = [y for y in results if y.dtype.kind in "fc"]
        if followed:
            for g, x in zip(tape.gradient(followed, sources), sources, strict=True):
                assert g is None or g.dtype == x.dtype
