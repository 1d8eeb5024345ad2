"""Integers and booleans in every public function: as NumPy has it, or as the same floats."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from table import FUNCTIONS, SAMPLES, as_called, public_functions

import gradtape as gt
from gradtape.core.extend import Op
from gradtape.testing import Sample

INTEGERS = [*np.typecodes["AllInteger"], "?"]
#: Functions that call a sample's function, which has floats of its own; and the order of a
#: partition is free.
ASIDE = {"cond", "while_loop", "scan", "host_call", "apply_along_axis", "piecewise", "partition"}
REFUSALS = (TypeError, ValueError, ArithmeticError, np.linalg.LinAlgError, gt.errors.TraceError)


def cases() -> dict[str, list[Sample]]:
    """Return samples with floating inputs, by the name of the public function that takes them."""
    names = {name.rpartition(".")[2]: name for name in public_functions()}
    found = {names[name]: samples for name, samples in SAMPLES.items() if name in names}
    return {
        name: kept
        for name, samples in {**found, **FUNCTIONS}.items()
        if name not in ASIDE and (kept := [s for s in samples if floats_of(s)])
    }


def floats_of(sample: Sample) -> list[Any]:
    return [x for x in sample.inputs if isinstance(x, np.ndarray) and x.dtype == float]


def in_integers(sample: Sample, char: str) -> list[Any]:
    """Return the inputs of a sample with the least, the largest and small integers of a dtype."""
    ends = [0, 1] if char == "?" else [0, 1, 127, max(np.iinfo(char).min, -128), 3, 2]
    ends = [255 if x == 0 and i and char == "B" else x for i, x in enumerate(ends)]
    return [
        np.resize(ends, x.shape).astype(char)
        if isinstance(x, np.ndarray) and x.dtype == float
        else x
        for x in sample.inputs
    ]


def results(call: Callable[..., Any], inputs: Any, params: dict[str, Any]) -> list[np.ndarray]:
    found = call(*inputs, **params)
    return [np.asarray(y) for y in (found if isinstance(found, (list, tuple)) else [found])]


def numpys(name: str) -> Any:
    """Return NumPy's function of a name, if there is one."""
    found: Any = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def near(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    with np.errstate(all="ignore"):
        return [x.shape for x in a] == [y.shape for y in b] and all(
            np.allclose(x.astype(complex), y.astype(complex), 1e-4, 1e-4, equal_nan=True)
            for x, y in zip(a, b, strict=True)
        )


@pytest.mark.parametrize("name", sorted(cases()))
def test_integers_count_as_in_numpy_or_as_floats(name: str) -> None:
    call, numpy = as_called(name), numpys(name)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for sample in cases()[name][:2]:
            for char in INTEGERS:
                given = in_integers(sample, char)
                inputs = [gt.constant(x) if isinstance(x, np.ndarray) else x for x in given]
                fed = sample.feed(*inputs)
                fed = fed if isinstance(fed, tuple) else (fed,)
                try:
                    found = results(call, fed, sample.params)
                except REFUSALS:
                    continue
                check(name, call, numpy, fed, sample, char, found)
                if char in "B?":
                    run = functools.partial(call, **sample.params)
                    try:
                        traced = results(gt.function(lambda *x: run(*x)), fed, {})  # noqa: B023
                    except REFUSALS:  # what depends on values
                        continue
                    assert [y.dtype for y in traced] == [y.dtype for y in found]
                    assert near(traced, found), (sample, char, found, traced)


def check(
    name: str, call: Any, numpy: Any, fed: Any, sample: Sample, char: str, found: Any
) -> None:
    """Check a result against NumPy's, or against that of floats."""
    if numpy is not None:
        arrays = [np.asarray(x) if isinstance(x, gt.Tensor) else x for x in fed]
        try:
            wanted = results(numpy, arrays, sample.params)
        except Exception:  # other arguments
            return
        if near(found, wanted):
            return
    integers = [isinstance(x, gt.Tensor) and x.dtype == np.dtype(char) for x in fed]
    if len(fed) == len(sample.inputs):  # labels and indices stay integers
        integers = [isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in sample.inputs]
    for dtype in ("float64", "float32"):  # the second where a narrower result is less exact
        plain = [x.astype(dtype) if i else x for i, x in zip(integers, fed, strict=True)]
        try:
            wanted = results(call, plain, sample.params)
        except REFUSALS:
            return
        if near(found, wanted):
            return
    raise AssertionError((name, sample, fed, found, wanted))


def of_images() -> list[str]:
    """Return the functions of images that need nothing else and draw nothing."""
    found = []
    for name in gt.image.__all__:
        function = getattr(gt.image, name)
        kinds = inspect.signature(function).parameters.values()
        needed = [p for p in kinds if p.default is p.empty]
        if len(needed) == 1 and "random" not in name:
            found.append(name)
    return found


@pytest.mark.parametrize("name", of_images())
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "bool"])
def test_images_of_integers_are_those_of_floats(name: str, dtype: str) -> None:
    ends = {"uint8": [0, 255, 1, 127, 254, 3, 2], "bool": [0, 1, 1]}.get(
        dtype, [0, 127, -128, 1, 3]
    )
    images = np.resize(ends, (1, 4, 5, 1 if name == "grayscale_to_rgb" else 3)).astype(dtype)
    function = getattr(gt.image, name)
    try:
        found = results(function, (images,), {})
    except TypeError as error:
        assert "images of bool do not convert" in str(error)  # noqa: PT017
        return
    wanted = results(function, (images.astype("float32"),), {})
    traced = results(gt.function(function), (images,), {})
    for y, same, exact in zip(found, traced, wanted, strict=True):
        rounded = 0.5 + 1e-3 if y.dtype.kind in "iu" else 0.0  # it returns the dtype it was given
        np.testing.assert_allclose(y, exact, 1e-5, 1e-4 + 2 * rounded)
        np.testing.assert_array_equal(y, same)
        assert y.dtype == same.dtype


def test_a_score_of_images_with_different_ranges_is_refused() -> None:
    image = np.full((12, 12, 1), 200, "uint8")
    for score in (gt.image.psnr, gt.image.ssim):
        with pytest.raises(TypeError, match="the images have dtypes uint8 and float32; convert"):
            score(image, image.astype("float32"), 255)


def test_an_op_of_a_plugin_declares_that_it_is_for_floats() -> None:
    half = Op(
        "example::square_less",
        lambda xp, x, y: x * x - y,
        gradients={"x": lambda g, x: 2.0 * g * x, "y": lambda g: -g},
        infer=lambda x, y: (x.shape, x.dtype),
        floating=True,
        broadcasts=True,
    )
    gt.register_plugin(SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [half])), "example")
    try:
        x, y = gt.constant(np.array([16], "uint8")), gt.constant(np.array([3.0], "float16"))
        for call in (half, gt.function(lambda x, y: half(x, y))):
            assert call(x, x).dtype == np.float32
            assert call(x, x).tolist() == [240.0]
            assert call(x, y).dtype == np.float16
        with gt.GradientTape() as tape:
            tape.watch(y)
            z = half(x, y)
        assert tape.gradient(z, y).dtype == np.float16
    finally:
        gt.unregister_plugin("example")
    with pytest.raises(gt.errors.PluginError, match="floating must be a boolean or the first"):
        Op("example::x", lambda xp, x, y: x, floating=("y",))


def test_any_number_of_inputs_and_some_of_them_are_for_floats() -> None:
    half = Op(
        "example::half_sum",
        lambda xp, *arrays: sum(arrays[1:], arrays[0]) / 2,
        vjp=lambda gs, inputs, outputs, needed: [gs[0] / 2 for _ in inputs],
        infer=lambda *specs: (specs[0].shape, specs[0].dtype),
        floating=True,
    )
    scaled = Op(
        "example::scaled",
        lambda xp, x, y: x * y,
        gradients={"x": lambda g, y: g * y, "y": lambda g, x: g * x},
        infer=lambda x, y: (x.shape, y.dtype),
        floating=("x",),
    )
    ops = SimpleNamespace(gradtape_ops=gt.hookimpl(lambda: [half, scaled]))
    gt.register_plugin(ops, "example")
    try:
        many = gt.constant(np.array([200, 100], "uint8"))
        ones, y = gt.constant([1, 3]), gt.constant(np.array([1.5, 2.0], "float32"))
        for run in (half, gt.function(lambda *x: half(*x))):
            assert run(many, many, many).tolist() == [300.0, 150.0]
            assert run(many, many, y).dtype == np.float32
        for run in (scaled, gt.function(lambda x, y: scaled(x, y))):
            with gt.GradientTape() as tape:
                tape.watch(y)
                z = run(ones, y)
            slope = tape.gradient(z, y)
            assert (slope.dtype, slope.tolist()) == (np.float32, [1.0, 3.0])
    finally:
        gt.unregister_plugin("example")
