"""Every gradient has the dtype of its source, and every tangent that of its result, in any mix."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.testing import Sample

ALL = ("float16", "float32", "float64", "complex64", "complex128", "int32")
# what an op may refuse: a dtype, a mix, or the numbers that are left of it
REFUSALS = (TypeError, ValueError, np.linalg.LinAlgError)


def mixes(sample: Sample) -> Iterator[dict[int, str]]:
    """Yield dtypes by the place of an input: all of them, then in pairs, then one beside others."""
    places = [
        i for i, x in enumerate(sample.inputs) if getattr(x, "dtype", None) in (float, complex)
    ]
    if len(places) <= 2:
        yield from (
            dict(zip(places, kinds, strict=True))
            for kinds in itertools.product(ALL, repeat=len(places))
            if set(kinds) - {"int32"}
        )
        return
    for odd, kind, other in itertools.product(places, ("float32", "complex64"), ALL):
        yield {i: kind if i == odd else other for i in places}


def tensors_of(sample: Sample, kinds: dict[int, str]) -> list[Any]:
    """Return the inputs in other dtypes."""
    return [
        gt.constant(np.asarray(x, kinds.get(i))) if isinstance(x, np.ndarray) else x
        for i, x in enumerate(sample.inputs)
    ]


def run(call: Callable[..., Any], sample: Sample, inputs: list[Any]) -> Any:
    """Return what a sample gives for other inputs."""
    fed = sample.feed(*inputs)
    return call(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)


def followed(found: Any) -> list[Any]:
    """Return the tensors among an op's results that have gradients."""
    listed = found if isinstance(found, (list, tuple)) else [found]
    return [y for y in listed if isinstance(y, gt.Tensor) and y.dtype.kind in "fc"]


def odd_ones(call: Callable[..., Any], sample: Sample, kinds: dict[int, str]) -> Iterator[str]:
    """Yield what is of another dtype than it should be."""
    inputs = tensors_of(sample, kinds)
    sources = [x for x in inputs if isinstance(x, gt.Tensor) and x.dtype.kind in "fc"]
    with gt.ForwardAccumulator(sources, [gt.ones_like(x) for x in sources]) as forwards:
        results = followed(run(call, sample, inputs))
        tangents = [forwards.jvp(y) for y in results]
    for y, t in zip(results, tangents, strict=True):
        if t is not None and t.dtype != y.dtype:
            yield f"a tangent of a result of {y.dtype} is of {t.dtype}"
    with gt.GradientTape() as outer:
        outer.watch(sources)
        with gt.GradientTape() as tape:
            tape.watch(sources)
            results = followed(run(call, sample, inputs))
        first = tape.gradient(results, sources)
    known = [g for g in first if g is not None]
    second = outer.gradient(known, sources) if known else []
    for order, grads in enumerate((first, second), 1):
        for x, g in zip(sources, grads):
            if g is not None and g.dtype != x.dtype:
                yield f"a gradient of order {order} of a source of {x.dtype} is of {g.dtype}"


TABLES = [(name, SAMPLES[name], gt.registry().ops[name]) for name in sorted(SAMPLES)]
TABLES += [(name, FUNCTIONS[name], as_called(name)) for name in sorted(FUNCTIONS)]


@pytest.mark.parametrize(
    ("name", "samples", "call"), TABLES, ids=[f"{name}-{len(found)}" for name, found, _ in TABLES]
)
def test_gradients_and_tangents_have_the_dtypes_of_what_they_belong_to(
    name: str, samples: list[Sample], call: Callable[..., Any]
) -> None:
    every = list(gt.registry().ops.values())
    for sample in samples:
        for kinds in mixes(sample):
            for op in every:
                op.forget_made()  # the first run of a kernel is compared with the shape rule
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                try:
                    found = list(odd_ones(call, sample, kinds))
                except REFUSALS:
                    continue
                except gt.errors.PluginError:
                    # gradient rules call these ops, with other dtypes than these
                    assert not hasattr(gt, name), (sample, kinds)
                    continue
            assert not found, (sample, kinds, found)


MIXES = [("float32", "float64"), ("float32", "int64"), ("float64", "float32"), ("float16", "int8")]


@pytest.mark.parametrize(("source", "other"), MIXES)
def test_gradients_by_every_way_have_the_dtype_of_the_source(source: str, other: str) -> None:
    logits = gt.constant(np.array([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]], source))
    labels = np.array([[1, 0, 0], [0, 0, 1]], other)

    def loss(x: Any, y: Any = labels) -> Any:
        return gt.sum(gt.nn.softmax_cross_entropy_with_logits(labels=y, logits=x))

    with gt.GradientTape(persistent=True) as tape:
        tape.watch(logits)
        each = gt.nn.softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        column = each[:, None]
    found = [
        tape.gradient(each, logits),
        tape.jacobian(each, logits),
        tape.batch_jacobian(column, logits),
        gt.grad(loss)(logits),
        gt.jacrev(loss)(logits),
        gt.hessian(loss)(logits),
        gt.vmap(gt.grad(loss))(logits, gt.constant(labels)),
        gt.function(gt.grad(loss))(logits),
        gt.hvp(loss, logits, gt.ones_like(logits)),
    ]
    assert {str(g.dtype) for g in found} == {source}
    value, tangent = gt.jvp(loss, (logits,), (gt.ones_like(logits),))
    assert tangent.dtype == value.dtype
