"""Every op on CuPy: names, arguments, dtypes and devices, over a pretend CuPy and on a GPU."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from real_gpu import PLACES, Place, placed
from table import FUNCTIONS, SAMPLES, as_called

import gradtape as gt
from gradtape.core.extend import flatten, map_structure
from gradtape.testing import Sample, check_backend
from gradtape.testing.backends import slopes

#: Ops whose kernels CuPy does not have for some dtype, and that say so.
REFUSED = dict.fromkeys(("erf", "erfc"), "of complex numbers")
#: What a real GPU may give another of, where results are not compared through a sample's view.
FREE = {
    **dict.fromkeys(("eigh", "svd"), "signs of vectors"),
    **dict.fromkeys(("rfft", "gt.fft.ihfft"), "NumPy scales transforms of half precision in it"),
    "gt.partition": "the order within parts",
    "gt.polydiv": "what a complex number divided by 0 is",
}
NAMES = [*SAMPLES, *(f"gt.{name}" for name in FUNCTIONS)]


@pytest.fixture(scope="module", autouse=True, params=PLACES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with placed(request.param) as found:
        yield found


def called(name: str) -> tuple[Callable[..., Any], list[Sample]]:
    """Return an op or function, and its samples."""
    if name.startswith("gt."):
        return as_called(name[3:]), FUNCTIONS[name[3:]]
    return gt.registry().op(name), SAMPLES[name]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_values_and_gradients_are_those_of_numpy(place: Place, name: str, traced: bool) -> None:
    report = check_backend(place.device, only=[name], traced=traced, show=False)
    assert not report.wrong, str(report)
    assert bool(report.refused) == (name in REFUSED), str(report)


def _skip_free(place: Place, name: str) -> None:
    if place.real and name in FREE:
        pytest.skip(FREE[name])


# -- forward mode and batches ----------------------------------------------------------------------


def on(place: str, name: str, sample: Sample, run: Callable[..., Any]) -> Any:
    """Return what ``run(function, tensors)`` gives on a backend."""
    op, _ = called(name)
    fed = sample.feed(*(gt.constant(x) if isinstance(x, np.ndarray) else x for x in sample.inputs))
    given = fed if isinstance(fed, tuple) else (fed,)
    here = {id(x): x for x in flatten(given) if isinstance(x, gt.Tensor)}

    def function(*tensors: Any) -> list[Any]:
        there = dict(zip(here, tensors, strict=True))
        found = op(*map_structure(lambda x: there.get(id(x), x), given), **sample.params)
        return list(found) if isinstance(found, (list, tuple)) else [found]

    with gt.backend(place):
        found = run(function, [x.to(place) for x in here.values()]) if here else []
        assert all(y.device.startswith(place) for y in found if y is not None)
    return [None if y is None else y.to("numpy").numpy() for y in found]


def in_a_batch(function: Callable[..., Any], tensors: list[Any]) -> Any:
    return gt.vmap(function, randomness="same")(*(gt.stack([x, x]) for x in tensors))


def forward(function: Callable[..., Any], tensors: list[Any]) -> Any:
    sources = [x for x in tensors if x.dtype.kind in "fc"]
    with gt.ForwardAccumulator(sources, [gt.ones_like(x) for x in sources]) as ahead:
        results = function(*tensors)
    return ahead.jvp([y for y in results if y.dtype.kind in "fc"])


@pytest.mark.parametrize("run", [in_a_batch, forward])
# the sample of dropout has a generator on the host
@pytest.mark.parametrize("name", sorted({*NAMES} - {*REFUSED, "gt.nn.dropout"}))
def test_rules_of_batches_and_of_forward_mode_stay_there(place: Place, name: str, run: Any) -> None:
    _skip_free(place, name)
    for sample in called(name)[1]:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                want = on("numpy", name, sample, run)
            except Exception:
                continue  # the op has no such rule
            found = on(place.device, name, sample, run)
        for mine, right in zip(found, want, strict=True):
            if right is None:
                assert mine is None
            else:
                assert (mine.shape, mine.dtype) == (right.shape, right.dtype)
                np.testing.assert_allclose(mine, right, rtol=1e-7, atol=1e-9)


# -- dtypes ----------------------------------------------------------------------------------------

#: What is not as on NumPy of some dtypes, and why.
_SUMS = "half precision: convolutions and transforms add up in other orders"
_GRAPHS = "the graphs of the sample are of float64"
KEPT = {
    **dict.fromkeys(("gt.fft.ifft", "gt.fft.ifft2", "gt.nn.conv1d", "gt.nn.conv2d"), _SUMS),
    **dict.fromkeys(("cond", "while_loop"), _GRAPHS),
    "cofactor_adjoint": "a gradient of zero up to rounding",
    "spacing": "NumPy's has no sign in half precision",
    "exp2": "NumPy computes that of small integers in half precision",
}


@pytest.mark.parametrize("name", sorted({*NAMES} - {*KEPT} - {*REFUSED}))
def test_what_numpy_takes_of_other_dtypes_cupy_takes(place: Place, name: str) -> None:
    _skip_free(place, name)
    op, samples = called(name)
    for sample in samples:
        for dtype in ("float16", "complex64", "int8"):
            cast = [
                x.astype(dtype) if getattr(x, "dtype", None) == np.float64 else x
                for x in sample.inputs
            ]
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                given = Sample(*cast, **sample.params).fed_through(sample.feed)
                if sample.selects:
                    given = given.with_backend_selected()
                try:
                    want = slopes(op, given, "numpy")
                except Exception:
                    continue  # nor does NumPy
                found = slopes(op, given, "cupy")
            for mine, right in zip(found, want, strict=True):
                assert (mine.shape, mine.dtype) == (right.shape, right.dtype)
                wide = right.real.dtype.itemsize > 2
                tolerance = {"rtol": 1e-4, "atol": 1e-4} if wide else {"rtol": 2e-2, "atol": 2e-2}
                np.testing.assert_allclose(mine, right, **tolerance)
