"""Dtypes: the eager one, that in a trace and that of its run are the same for all numbers.

Executors rely on a traced dtype: they drop casts to it, and reserve memory of it.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.core.extend import SCALARS, inferred, ops
from gradtape.testing import Sample

DTYPES = ("as it is", "int32", "int64", "bool", "uint8", "float16", "float32", "complex64")


def called(name: str) -> Callable[..., Any] | None:
    """Return a public function; None for the parts of others, which get floats alone."""
    if name in FUNCTIONS:
        return as_called(name)
    found = (getattr(space, name, None) for space in (gt, gt.nn, gt.linalg, gt.fft, gt.image))
    return next(filter(callable, found), None)


def converted(x: Any, dtype: str) -> Any:
    if dtype == "as it is" or x.dtype.kind not in "fc":
        return x
    if dtype == "bool":
        return x.real > 0
    if dtype.startswith(("int", "uint")):
        return np.round(np.abs(np.nan_to_num(x.real)) * 3).astype(dtype)
    return (x if dtype.startswith("c") else x.real).astype(dtype)


def dtypes_of(fn: Callable[..., Any], sample: Sample, dtype: str) -> list[list[Any]] | None:
    """Return the dtypes of results: eagerly, in a trace, and when it runs; None if refused."""
    arrays = [converted(x, dtype) for x in sample.inputs if type(x) not in SCALARS]
    seen: list[Any] = []

    def run(tensors: list[Any]) -> list[Any]:
        rest = iter(tensors)
        given = [x if type(x) in SCALARS else next(rest) for x in sample.inputs]
        fed = sample.feed(*given)
        found = fn(*(fed if isinstance(fed, tuple) else (fed,)), **sample.params)
        shown = sample.view(*(found if isinstance(found, (list, tuple)) else [found]))
        results = list(shown) if isinstance(shown, (list, tuple)) else [shown]
        seen[:] = [y.dtype for y in results]
        return results

    tensors = [gt.constant(a) for a in arrays]
    try:
        eager = [np.asarray(y).dtype for y in run(tensors)]
        with gt.executor("plain"):
            ran = [np.asarray(y).dtype for y in gt.function(run)(tensors)]
    except Exception:  # refused, eagerly or for its values
        return None
    return [eager, list(seen), ran]


NAMES = sorted({*SAMPLES, *FUNCTIONS})


@pytest.mark.parametrize("name", [name for name in NAMES if called(name) is not None])
def test_a_trace_has_the_dtypes_of_the_eager_run(name: str) -> None:
    fn = called(name)
    assert fn is not None
    differ = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in (SAMPLES.get(name) or FUNCTIONS[name])[:4]:
            for dtype in DTYPES:
                found = dtypes_of(fn, sample, dtype)
                if found is not None and not found[0] == found[1] == found[2]:
                    differ.append((dtype, found))
    assert differ == []


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "float16"])
def test_products_of_others_are_as_wide_as_products(dtype: str) -> None:
    found = dtypes_of(ops["product_of_others"], SAMPLES["product_of_others"][0], dtype)
    assert found == [[gt.prod(gt.ones(2, dtype=dtype)).dtype]] * 3


def floats(sample: Sample) -> list[int]:
    """Return the places of real floating inputs."""
    found = enumerate(sample.inputs)
    return [i for i, x in found if isinstance(x, np.ndarray) and x.dtype.kind == "f"]


def mixes(sample: Sample) -> Iterator[list[Any]]:
    """Yield the inputs of a sample with one dtype at one place, and another at all others."""
    places = floats(sample)
    for odd, *kinds in itertools.product(places, *[("float16", "float32", "float64")] * 2):
        inputs = list(sample.inputs)
        for i in places:
            inputs[i] = inputs[i].astype(kinds[i == odd])
        yield inputs


MIXED = {name: [x for x in SAMPLES[name] if len(floats(x)) > 1] for name in SAMPLES}


@pytest.mark.parametrize("name", sorted(name for name, found in MIXED.items() if found))
def test_a_shape_rule_knows_the_dtypes_of_mixes_whatever_the_kernel(name: str) -> None:
    known = gt.registry()
    op, backend, differ = known.op(name), known.backend("numpy"), []
    kernels = [known.kernel(op, backend), backend.bind(op.kernel)]
    for sample, kernel in itertools.product(MIXED[name][:3], kernels):
        params = {**op.defaults, **sample.params}
        for inputs in mixes(sample):
            try:
                with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
                    found = kernel(*inputs, **params)
                specs = inferred(op, inputs, params)
            except (TypeError, ValueError):  # refused, or the sample makes other inputs
                continue
            results = found if isinstance(found, (list, tuple)) else [found]
            want = [y[1] for y in (specs if isinstance(specs, list) else [specs])]
            if [y.dtype for y in results] != want:
                differ.append(([getattr(x, "dtype", x) for x in inputs], want))
    assert differ == []
