"""What the tests of executors share: those that run here, models to train, exact comparisons."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import gradtape as gt

#: The executors for NumPy's arrays, as far as they run here.
NAMES = [
    name
    for name, needed in (("plain", "numpy"), ("planned", "numpy"), ("fused", "llvmlite"))
    if name in gt.registry().executors and importlib.util.find_spec(needed)
]
each_executor = pytest.mark.parametrize("name", NAMES)
#: Calls after which a fused executor runs what it compiled.
OFTEN = 5


class Training:
    """A small network, its optimizer, and one compiled step of training.

    Parameters
    ----------
    optimizer
        What updates the variables; Adam by default.
    traced
        Whether the step is compiled.
    """

    def __init__(self, optimizer: Any = None, traced: bool = True, batch: int = 12) -> None:
        random = np.random.default_rng(0)
        self.x = random.normal(size=(batch, 7)).astype("float32")
        self.labels = random.integers(0, 3, batch)
        gt.random.set_seed(0)
        self.model = gt.layers.Sequential(
            [
                gt.layers.Dense(16),
                gt.layers.BatchNorm(),
                gt.layers.Activation("relu"),
                gt.layers.Dense(9, activation="tanh"),
                gt.layers.Dense(3),
            ]
        )
        self.model(gt.constant(self.x))
        self.optimizer = gt.training.Adam(0.01) if optimizer is None else optimizer
        self.run = gt.function(self._step) if traced else self._step

    def _step(self, x: Any, labels: Any) -> Any:
        with gt.GradientTape() as tape:
            logits = self.model(x, training=True)
            losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
            loss = gt.mean(losses)
        variables = self.model.trainable_variables
        grads = tape.gradient(loss, variables)
        self.optimizer.apply_gradients(zip(grads, variables, strict=True))
        return loss, logits, grads[0], self.model.layers[0].kernel.value

    def steps(self, count: int) -> list[float]:
        """Train; return the losses."""
        return [float(self.step()[0]) for _ in range(count)]

    def step(self) -> Any:
        """Train for one step; return loss, logits, a gradient and a variable's new value."""
        return self.run(gt.constant(self.x), gt.constant(self.labels))

    @property
    def variables(self) -> list[gt.Variable]:
        """All variables, the optimizer's among them."""
        return [*self.model.variables, *self.optimizer.variables]

    def state(self) -> list[np.ndarray]:
        """Return copies of all variables' values."""
        return [np.array(v.numpy()) for v in self.variables]


def same_bits(found: Any, wanted: Any) -> bool:
    """Return whether two arrays have the same dtype, shape and bytes."""
    mine, right = np.asarray(found), np.asarray(wanted)
    return (mine.dtype, mine.shape) == (right.dtype, right.shape) and (
        mine.tobytes() == right.tobytes()
    )


def differences(
    found: Sequence[Any], wanted: Sequence[Any], close: Callable[[Any, Any], bool] = same_bits
) -> list[str]:
    """Say which arrays differ."""
    assert len(found) == len(wanted)
    pairs = enumerate(zip(found, wanted, strict=True))
    return [f"{i}: {a} for {b}" for i, (a, b) in pairs if not close(a, b)]


def within_ulps(found: Any, wanted: Any, ulps: int = 2) -> bool:
    """Return whether numbers differ by so many units in the last place at most.

    Infinities, nan and the signs of zeros must be the same.
    """
    mine, right = np.asarray(found), np.asarray(wanted)
    if (mine.dtype, mine.shape) != (right.dtype, right.shape):
        return False
    if mine.dtype.kind not in "fc":
        return bool(np.array_equal(mine, right))
    if mine.dtype.kind == "c":
        parts = [(mine.real, right.real), (mine.imag, right.imag)]
        return all(within_ulps(np.array(a), np.array(b), ulps) for a, b in parts)
    nan = np.isnan(right)
    if not np.array_equal(np.isnan(mine), nan):
        return False
    mine, right = mine[~nan], right[~nan]
    zero = right == 0
    if not np.array_equal(np.signbit(mine[zero]), np.signbit(right[zero])):
        return False
    with np.errstate(all="ignore"):
        near = np.abs(mine - right) <= ulps * np.spacing(np.abs(right))
    return bool(np.all((mine == right) | (near & np.isfinite(right))))


def all_close(found: Any, wanted: Any, rtol: float = 1e-5) -> bool:
    """Return whether arrays are alike up to the order of sums; infinities and nan as they are."""
    mine, right = np.asarray(found), np.asarray(wanted)
    if (mine.dtype, mine.shape) != (right.dtype, right.shape):
        return False
    if mine.dtype.kind not in "fc":
        return bool(np.array_equal(mine, right))
    if mine.dtype.itemsize >= 8 * (1 + (mine.dtype.kind == "c")):
        rtol = 1e-11
    finite = np.abs(right[np.isfinite(right)])
    scale = float(finite.max(initial=0.0))
    return bool(np.allclose(mine, right, rtol=rtol, atol=rtol * scale, equal_nan=True))
