"""A third party's optimizer, written with public functions, on arrays that refuse tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from strict_backend import NAME

import gradtape as gt


class Lion(gt.training.Optimizer):
    slots = ("moments",)

    def update(
        self, value: Any, gradient: Any, state: Sequence[Any], settings: tuple[Any, ...]
    ) -> tuple[Any, tuple[Any, ...]]:
        moment = state[0] * 0.9 + gradient * 0.1
        return value - gt.sign(moment) * settings[0], (moment,)


class LionByBlocks(Lion):
    update = gt.training.optimizers.by_blocks(Lion.update)


class Wrong(gt.training.Optimizer):
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        return value - "a step", state


pytestmark = pytest.mark.usefixtures("strict")


def variables(backend: str) -> list[gt.Variable]:
    with gt.backend(backend):
        return [gt.Variable([1.0, -2.0]), gt.Variable([[3.0]])]


def stepped(backend: str, kind: type[gt.training.Optimizer]) -> list[Any]:
    found, optimizer = variables(backend), kind(0.5)
    for _ in range(2):
        optimizer.apply_gradients([(v.value * 2.0, v) for v in found])
    assert {v.value.device for v in found} == {f"{backend}:cpu"}
    return [v.value.to("numpy").tolist() for v in (*found, *optimizer.moments)]


@pytest.mark.parametrize("kind", [Lion, LionByBlocks])
def test_the_steps_are_those_on_numpy(kind: type[gt.training.Optimizer]) -> None:
    assert stepped(NAME, kind) == stepped("numpy", kind)


def test_a_mistake_in_a_formula_is_raised_as_it_is() -> None:
    (v, _) = variables(NAME)
    with pytest.raises(TypeError, match="str"):
        Wrong(0.5).apply_gradients([(v.value, v)])
