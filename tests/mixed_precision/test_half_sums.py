"""What float16 cannot count or hold inside a layer or an op is computed in float32, everywhere."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layer_cases import FAMILIES, Case

import gradtape as gt
from gradtape import layers as L

#: Layers whose windows, groups or vectors are as long as the input.
LONG = {
    "AveragePooling1D whole": Case(lambda: L.AveragePooling1D(4096), ((4096, 1),)),
    "AveragePooling1D overlapping": Case(lambda: L.AveragePooling1D(512, 64), ((4096, 1),)),
    "AveragePooling2D whole": Case(lambda: L.AveragePooling2D(64), ((64, 64, 1),)),
    "AveragePooling3D whole": Case(lambda: L.AveragePooling3D(16), ((16, 16, 16, 1),)),
    "MaxPooling1D overlapping": Case(lambda: L.MaxPooling1D(512, 64, "same"), ((4096, 1),)),
    "Dot whole": Case(lambda: L.Dot(1, normalize=True), ((4096,), (4096,)), True),
    "GroupNormalization whole": Case(lambda: L.GroupNormalization(1), ((4096, 4),)),
    "GlobalAveragePooling1D masked": Case(
        lambda: L.Sequential([L.Masking(), L.GlobalAveragePooling1D()]), ((4096, 4),)
    ),
    "Softmax axes": Case(lambda: L.Softmax([1, 2]), ((64, 64),)),
}
#: Sizes of the first axis after the batch; a step of a recurrence or a pair of steps takes longer.
STEPS = {"LSTM": 64, "GRU": 64, "RNN": 16, "Bidirectional": 64, "Attention": 128}
#: Exponentials of scores this large are those of the rounded queries.
STEEP = ("MultiHeadAttention",)
CASES = {**FAMILIES, **LONG}


def several(x: Any) -> list[Any]:
    return [leaf for part in x for leaf in several(part)] if isinstance(x, (list, tuple)) else [x]


def wide(x: Any) -> Any:
    return np.asarray(gt.as_tensor(x).numpy(), "float64")


def lengthened(name: str, case: Case) -> Case:
    lines = all(len(shape) == 2 and shape[0] != "int" for shape in case.shapes)
    if name in LONG or name == "Dot" or not lines:
        return case
    steps = next((n for part, n in STEPS.items() if part in name), 4096)
    return case._replace(shapes=tuple((steps, *shape[1:]) for shape in case.shapes))


def inputs_of(case: Case, scale: float) -> list[Any]:
    """Return inputs that float16 and bfloat16 hold exactly."""
    found = several(case.inputs(2))
    for i, x in enumerate(found):
        if x.dtype.kind == "f":
            found[i] = (x * scale).astype("float32").view("uint32") & 0xFFFF0000
            found[i] = found[i].view("float32").astype("float16").astype("float32")
    return found


def fits(x: Any) -> bool:
    return bool(np.abs(x).max(initial=0) < 6e4)


def run(layer: Any, case: Case, xs: list[Any], traced: bool) -> tuple[list[Any], list[Any]]:
    """Return results and gradients; penalties are among the results."""

    def call(*xs: Any) -> Any:
        y = several(layer(list(xs) if case.several else xs[0]))
        return [*y, *layer.losses]

    given = [gt.constant(x) for x in xs]
    with gt.GradientTape() as tape:
        tape.watch([x for x in given if x.dtype.kind == "f"])
        results = (gt.function(call) if traced else call)(*given)
        loss = sum(gt.mean(y.astype("float32")) for y in results)
    sources = [x for x in given if x.dtype.kind == "f"] + list(layer.trainable_variables)
    grads = tape.gradient(loss, sources)
    return [wide(y) for y in results], [wide(g) for g in grads if g is not None]


def made(case: Case, xs: list[Any], dtype: str | None) -> Any:
    gt.random.set_seed(0)
    with gt.mixed_precision.policy(dtype or "float32"):
        layer = case.make()
    layer(xs if case.several else xs[0])
    return layer


@functools.cache
def in_float32(name: str, scale: float) -> Any:
    case = lengthened(name, CASES[name])
    xs = inputs_of(case, scale)
    layer = made(case, xs, None)
    held = [w.astype("float16").astype(w.dtype) for w in layer.get_weights()]
    if layer.variables:  # as mixed_float16 reads them
        layer.set_weights(held)
    return xs, held, run(layer, case, xs, traced=False)


@pytest.mark.parametrize("scale", [1e4, 1e-4])
@pytest.mark.parametrize("name", CASES)
def test_layers_of_halves_give_what_they_give_in_float32(name: str, scale: float) -> None:
    case = lengthened(name, CASES[name])
    xs, held, (results, gradients) = in_float32(name, scale)
    halves = [x.astype("float16") if x.dtype.kind == "f" else x for x in xs]
    for dtype, given, traced in (
        ("mixed_float16", xs, False),
        ("mixed_float16", xs, True),
        (None, halves, False),
    ):
        if traced and STEPS.keys() & {name}:
            continue
        layer = made(case, given, dtype)
        if layer.variables:
            layer.set_weights(held)
        got, slopes = run(layer, case, given, traced)
        for a, b in zip(got, results, strict=True):
            if fits(b) or not b.ndim:  # a penalty is float32
                assert np.isfinite(a).all()
                near = 2e-2 * max(np.abs(b).max(initial=0), 1e-4)
                assert np.abs(a - b).max(initial=0) <= near or name in STEEP
        if all(map(fits, results)):
            assert all(np.isfinite(a).all() for a, b in zip(slopes, gradients) if fits(b))


def gradient(function: Callable[[Any], Any], x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


_NOWHERE = np.zeros(4096, "int64")
#: By name, what is computed of 4096 rows of two ones.
OPS: dict[str, Callable[[Any], Any]] = {
    "sum": lambda x: gt.sum(x, axis=0),
    "nansum": lambda x: gt.nansum(x, axis=0),
    "cumsum": lambda x: gt.cumsum(x, axis=0)[-1],
    "cumsum of all": lambda x: gt.cumsum(x[:2048])[-1],
    "cumsum, gradient": lambda x: gradient(lambda x: gt.cumsum(x, axis=0), x)[0],
    "prod": lambda x: gt.prod(x * (1 + 2**-9), axis=0),
    "cumprod": lambda x: gt.cumprod(x * (1 + 2**-9), axis=0)[-1],
    "average": lambda x: gt.average(x, axis=0, weights=x[:, 0]),
    "std": lambda x: gt.std(x * gt.arange(4096)[:, None].astype(x.dtype), axis=0),
    "norm": lambda x: gt.linalg.norm(x, axis=0),
    "trapezoid": lambda x: gt.trapezoid(x[:, 0]),
    "convolve": lambda x: gt.max(gt.convolve(x[:, 0], x[:, 0])),
    "take, gradient": lambda x: gradient(lambda v: gt.take(v, _NOWHERE, axis=0), x[:2]),
    "index, gradient": lambda x: gradient(lambda v: v[_NOWHERE], x[:2]),
    "take_along_axis, gradient": lambda x: gradient(
        lambda v: gt.take_along_axis(v, gt.constant(np.zeros((4096, 2), "int64")), axis=0), x[:2]
    ),
    "segment_sum": lambda x: gt.nn.segment_sum(x, _NOWHERE, 1),
    "repeat, gradient": lambda x: gradient(lambda v: gt.repeat(v, 4096, axis=0), x[:1]),
    "tile, gradient": lambda x: gradient(lambda v: gt.tile(v, (4096, 1)), x[:1]),
    "avg_pool": lambda x: gt.nn.avg_pool(x[None], 4096),
    "max_pool, gradient": lambda x: gradient(
        lambda v: gt.nn.max_pool(v[:, :3000], 2600, 1, "same"),
        gt.concatenate([x[:1] * 2, x[1:]])[None],
    )[0, 0],
    "layer_normalization": lambda x: gt.nn.layer_normalization(
        x * gt.arange(4096)[:, None].astype(x.dtype), axis=0
    )[-1],
    "group_normalization": lambda x: gt.nn.group_normalization(
        x[None] * gt.arange(4096)[None, :, None].astype(x.dtype), 1
    )[0, -1],
    "pad, gradient": lambda x: gradient(lambda v: gt.pad(v, ((4095, 0), (0, 0)), "edge"), x[:1]),
}


@pytest.mark.parametrize("name", OPS)
def test_ops_sum_halves_in_float32(name: str) -> None:
    for run in (OPS[name], gt.function(OPS[name])):
        got, want = (wide(run(gt.ones((4096, 2), kind))) for kind in ("float16", "float32"))
        np.testing.assert_allclose(got, want, rtol=2e-3)


@pytest.mark.parametrize(
    "rule",
    [
        L.regularizers.L1(1.0),
        L.regularizers.L1L2(1.0, 1.0),
        L.regularizers.OrthogonalRegularizer(1.0, "columns"),
        L.constraints.MaxNorm(1e4),
        L.constraints.UnitNorm(),
        L.constraints.MinMaxNorm(1.0, 1e4),
    ],
)
def test_penalties_and_norms_of_half_weights_are_computed_in_float32(rule: Any) -> None:
    w = gt.constant(np.full((4096, 2), 3e3, "float16"))
    got, want = rule(w), rule(w.astype("float32"))
    np.testing.assert_allclose(wide(got), wide(want), rtol=2e-3)
    kind = np.float32 if isinstance(rule, L.regularizers.Regularizer) else np.float16
    assert got.dtype == kind


@pytest.mark.parametrize("name", gt.training.losses.FUNCTION_NAMES)
def test_losses_of_halves_are_computed_in_float32(name: str) -> None:
    loss = gt.training.losses.get(name)
    labels = np.zeros((2, 4096), "float32")
    labels[:, 7] = 1
    if "sparse" in name:
        labels = labels.argmax(-1)
    for scale in (1.0, 300.0):
        scores = np.random.default_rng(0).random((2, 4096)).astype("float16") * np.float16(scale)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            got, want = loss(labels, scores), loss(labels, scores.astype("float32"))
        assert got.dtype == np.float32
        np.testing.assert_allclose(wide(got), wide(want), rtol=1e-6)
