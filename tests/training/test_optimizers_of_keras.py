"""Optimizers beside what Keras 3 gave after the same 20 steps, eager and traced."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.training import optimizers

RANDOM = np.random.default_rng(0)
START = RANDOM.standard_normal(3).astype("float32")
GRADIENTS = RANDOM.standard_normal((20, 3)).astype("float32")

#: The optimizer, its settings beside a learning rate of 0.05, and Keras' weights.
KERAS: list[tuple[str, dict[str, Any], list[float]]] = [
    ("SGD", {}, [0.13506201, -0.09443888, 0.38658318]),
    ("SGD", {"momentum": 0.9}, [0.26069072, -0.05330172, 0.00104764]),
    ("SGD", {"momentum": 0.9, "nesterov": True}, [0.2565265, -0.02351602, -0.18885455]),
    ("Adam", {}, [0.09130204, -0.04361663, 0.61334074]),
    ("Adam", {"amsgrad": True}, [0.09130204, -0.04360987, 0.61334074]),
    ("AdamW", {}, [0.09091111, -0.04341339, 0.61051202]),
    ("RMSprop", {}, [-0.05412173, 0.06097609, 0.3153457]),
    ("RMSprop", {"momentum": 0.5, "centered": True}, [-0.28388861, 0.18765244, 0.0448302]),
    ("Adagrad", {}, [0.10818352, -0.08629022, 0.574094]),
    ("Adamax", {}, [0.08111344, -0.05883863, 0.62597787]),
    ("Nadam", {}, [0.06648142, -0.0651444, 0.47237238]),
    ("Adadelta", {}, [0.12566939, -0.13197596, 0.63997048]),
    ("Lion", {}, [0.12573022, -0.03210486, 0.34042257]),
]


@pytest.mark.parametrize(("name", "settings", "expected"), KERAS)
def test_twenty_steps_are_keras(name: str, settings: dict[str, Any], expected: Any) -> None:
    kind = getattr(optimizers, name)
    eager, traced = (gt.Variable(START) for _ in range(2))
    one, two = kind(0.05, **settings), kind(0.05, **settings)
    two.build([traced])
    step = gt.function(lambda g: two.apply_gradients([(g, traced)]))
    for gradient in GRADIENTS:
        one.apply_gradients([(gt.constant(gradient), eager)])
        step(gt.constant(gradient))
    np.testing.assert_allclose(eager.numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(traced.numpy(), eager.numpy())
    again = kind.from_config(one.get_config()) if hasattr(kind, "from_config") else None
    assert again is None or again.get_config() == one.get_config()


def test_every_optimizer_is_compared() -> None:
    assert set(optimizers.__all__) - {"LBFGS", "by_blocks"} == {name for name, *_ in KERAS}
