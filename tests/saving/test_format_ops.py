"""docs/format-ops.md against reality: what the page defines is what the ops compute."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from page_ops import PAGE, definitions

import gradtape as gt
from gradtape.core.extend import Graph, compiled
from gradtape.testing import Sample

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from table import SAMPLES

OPS = definitions()
#: Ops that no file has: saving refuses what calls Python when it runs.
UNSAVED = {"host_call"}
OWN = sorted(
    name
    for name in gt.registry().ops
    if gt.registry().owner("op", name).distribution == "gradtape" and name not in UNSAVED
)
EXACT = {"float64": 1e-10, "float32": 1e-4, "float16": 3e-2}
OF_GRAPHS = {"cond", "scan", "while_loop"}


def as_page_has_it(value: Any) -> Any:
    return {"inputs": value.inputs, "graph": value} if isinstance(value, Graph) else value


def run(graph: Any, inputs: Any) -> Any:
    return [np.asarray(x) for x in compiled(graph["graph"])(list(inputs))]


def both(name: str, inputs: Any, params: Any) -> tuple[list[Any], list[Any]]:
    """Return what an op gives, and what the page says."""
    op = gt.registry().ops[name]
    settings = {"run": run} if name in OF_GRAPHS else {}
    settings |= {key: as_page_has_it(x) for key, x in params.items()}
    with np.errstate(all="ignore"):
        said = OPS[name](*inputs, **settings)
        found = op(*[gt.constant(x) if isinstance(x, np.ndarray) else x for x in inputs], **params)
    said = said if isinstance(said, (list, tuple)) else [said]
    found = found if isinstance(found, (list, tuple)) else [found]
    return [x.numpy() for x in found], [np.asarray(x) for x in said]


NARROW = {
    "float32": {"float64": "float32", "complex128": "complex64"},
    "float16": {"float64": "float16"},
}


def given(sample: Sample, dtype: str = "float64") -> list[Any]:
    """Return a sample's inputs, those of double precision in a narrower dtype."""
    kinds = NARROW.get(dtype, {})
    fed = sample.feed(*(gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    fed = fed if isinstance(fed, tuple) else (fed,)
    arrays = [x.numpy() if isinstance(x, gt.Tensor) else x for x in fed]
    return [
        x.astype(kinds.get(x.dtype.name, x.dtype)) if isinstance(x, np.ndarray) else x
        for x in arrays
    ]


def pull(function: Any, inputs: Any, gradients: Any) -> Any:
    """Return gradients by central differences, for functions of float64."""
    found = []
    for k, x in enumerate(inputs):
        if x.dtype.kind == "f":
            slope = np.zeros_like(x)
            for place in np.ndindex(x.shape):
                ends = []
                for step in (1e-4, -1e-4):
                    moved = np.array(x)
                    moved[place] += step
                    ys = [y for y in function(*inputs[:k], moved, *inputs[k + 1 :]) if floats(y)]
                    ends.append(sum((y * g).sum() for y, g in zip(ys, gradients, strict=True)))
                slope[place] = (ends[0] - ends[1]) / 2e-4
            found.append(slope)
    return found


def floats(x: Any) -> bool:
    return bool(x.dtype.kind == "f")


def check(name: str, inputs: Any, params: Any, exact: float) -> None:
    found, said = both(name, inputs, params)
    assert len(found) == len(said)
    for x, y in zip(found, said, strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype)
        if name.startswith("random_") and name != "random_gamma_slope":
            assert x.tobytes() == y.tobytes()
        size = max((np.abs(x[np.isfinite(x)]).max(initial=1)), 1) if x.dtype.kind in "fc" else 1
        np.testing.assert_allclose(x, y, rtol=exact, atol=exact * size)


def test_the_page_defines_every_op_and_no_other() -> None:
    assert sorted(OPS) == OWN


@pytest.mark.parametrize("name", OWN)
def test_the_page_says_what_an_op_computes(name: str) -> None:
    assert name in OPS, f"{name} is not defined in {PAGE.name}"
    for sample in SAMPLES[name]:
        for dtype, exact in EXACT.items():
            if dtype not in sample.exempt:
                try:
                    check(name, given(sample, dtype), sample.params, exact)
                except TypeError as error:  # NumPy solves nothing in half precision
                    if "float16 is unsupported" not in str(error):
                        raise


@pytest.mark.parametrize("name", sorted(OF_GRAPHS))
def test_the_page_says_what_the_gradients_of_loops_are(name: str) -> None:
    for sample in SAMPLES[name]:
        params = sample.params
        settings = {"run": run, "pull": pull} | {k: as_page_has_it(x) for k, x in params.items()}
        inputs, made = [*sample.inputs], OPS[name](*sample.inputs, **settings)
        for order in (1, 2):
            inputs += [np.cos(1 + np.arange(y.size)).reshape(y.shape) for y in made if floats(y)]
            found = gt.registry().ops[name](*map(gt.constant, inputs), **params, order=order)
            made = OPS[name](*inputs, **settings, order=order)
            for x, y in zip(found, made, strict=True):
                np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-5)
