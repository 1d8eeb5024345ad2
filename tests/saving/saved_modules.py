"""What several tests save."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt


def reloaded(module: gt.Module, path: Path, **settings: Any) -> Any:
    gt.save(module, path / "model.h5", **settings)
    return gt.load(path / "model.h5")


class Affine(gt.Module):
    """Nothing is decorated; ``training`` changes what it does."""

    def __init__(self, inputs: int, outputs: int, seed: int = 0) -> None:
        super().__init__()
        random = np.random.default_rng(seed)
        self.weight = gt.Variable(random.standard_normal((inputs, outputs)).astype("float32"))
        self.shift = gt.Variable(np.ones(outputs, "float32"))
        self.seen = gt.Variable(0, trainable=False)

    def __call__(self, x: Any, training: bool = False) -> Any:
        y = gt.matmul(x, self.weight) + self.shift
        if training:
            self.seen.assign_add(1)
            return y * 2.0
        return gt.tanh(y)
