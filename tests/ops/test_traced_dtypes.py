"""Dtypes: the eager one, that in a trace and that of its run are the same for all numbers.

Executors rely on a traced dtype: they drop casts to it, and reserve memory of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.core.extend import SCALARS, ops
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
