"""A rule whose gradient has another shape than its input is refused, whatever a trace knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import BinaryOp, F, Op, hookimpl

X = np.arange(1.0, 7.0).reshape(3, 2)
SHAPES: dict[str, Any] = {
    "all known": (3, 2),
    "one size unknown": (None, 2),
    "sizes unknown": (None, None),
    "rank unknown": None,
}
WRONG = r"\(1, 2\).*\(3, 2\)|\(3, 2\).*\(1, 2\)"
weight = gt.Variable(np.ones((1, 2)))


@gt.custom_gradient
def argument(x: Any) -> Any:
    return x * 2.0, lambda g: gt.sum(g * 2.0, axis=0, keepdims=True)


@gt.custom_gradient
def variable(x: Any) -> Any:
    return x * weight, lambda g, variables=(): (g * weight, [g * x])


class Rules:
    """Ops whose rules return a sum over the first axis, or what one row becomes."""

    @staticmethod
    @hookimpl
    def gradtape_ops() -> list[Op]:
        summed = Op(
            "shapes::doubled",
            lambda xp, x: x * 2.0,
            gradients={"x": lambda g: 2.0 * F.sum(g, axis=0, keepdims=True)},
            infer=lambda x: (x.shape, x.dtype),
        )
        alone = BinaryOp(
            "shapes::times",
            lambda xp, x, y: x * y,
            infer=lambda x, y: (x.shape, x.dtype),
            gradients={
                "x": lambda g, y: F.sum(g * y, axis=0, keepdims=True),
                "y": lambda g, x: g * x,
            },
        )
        return [summed, alone]


@pytest.fixture
def fn(request: pytest.FixtureRequest) -> Iterator[Callable[[Any], Any]]:
    gt.register_plugin(Rules, "shapes")
    ops = gt.registry().ops
    yield {
        "argument": argument,
        "variable": variable,
        "rule": lambda x: ops["shapes::doubled"](x),
        "broadcasting rule": lambda x: ops["shapes::times"](x, x + 1.0),
    }[request.param]
    gt.unregister_plugin("shapes")


each_function = pytest.mark.parametrize(
    "fn", ["argument", "variable", "rule", "broadcasting rule"], indirect=True
)
each_shape = pytest.mark.parametrize("shape", SHAPES)


def gradient(fn: Callable[[Any], Any], x: Any) -> Any:
    with gt.GradientTape() as tape:
        tape.watch(x)
        y = gt.sum(fn(x))
    return tape.gradient(y, [x, weight])


@each_function
def test_eagerly(fn: Callable[[Any], Any]) -> None:
    with pytest.raises((ValueError, LookupError), match=WRONG):
        gradient(fn, gt.constant(X))


@each_function
@each_shape
def test_in_a_function(fn: Callable[[Any], Any], shape: str) -> None:
    spec = gt.TensorSpec(SHAPES[shape], "float64")
    with pytest.raises((ValueError, LookupError), match=WRONG):
        gradient(gt.function(fn, input_signature=[spec]), gt.constant(X))


@each_function
@each_shape
def test_where_the_gradient_is_part_of_the_function(fn: Callable[[Any], Any], shape: str) -> None:
    spec = gt.TensorSpec(SHAPES[shape], "float64")
    whole = gt.function(lambda x: gradient(fn, x), input_signature=[spec])
    with pytest.raises((ValueError, LookupError), match=WRONG):
        whole(gt.constant(X))


@pytest.mark.filterwarnings("ignore:op 'shapes..*' has no batching rule")
@each_function
def test_batched(fn: Callable[[Any], Any]) -> None:
    with pytest.raises((ValueError, LookupError), match=WRONG):
        gradient(lambda x: gt.vmap(fn)(x), gt.constant(np.stack([X, X])))


@pytest.mark.parametrize("fn", ["argument", "variable"], indirect=True)
@each_shape
@pytest.mark.filterwarnings("ignore:save. model.weight. float64")
def test_loaded(fn: Callable[[Any], Any], shape: str, tmp_path: Path) -> None:
    if shape == "all known":
        pytest.skip("refused before it is saved")

    class Model(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = weight

        @gt.function(input_signature=[gt.TensorSpec(SHAPES[shape], "float64")])
        def __call__(self, x: Any) -> Any:
            return fn(x)

    gt.save(Model(), tmp_path / "model.h5")
    loaded = gt.load(tmp_path / "model.h5")
    with pytest.raises((ValueError, LookupError), match=WRONG):
        gradient(loaded, gt.constant(X))


@each_shape
def test_a_gradient_of_the_right_shape_is_unchanged(shape: str) -> None:
    @gt.custom_gradient
    def right(x: Any) -> Any:
        return x * 2.0, lambda g: gt.reshape(g * 3.0, (-1, 2))

    spec = gt.TensorSpec(SHAPES[shape], "float64")
    found, _ = gradient(gt.function(right, input_signature=[spec]), gt.constant(X))
    assert np.array_equal(found, np.full((3, 2), 3.0))
