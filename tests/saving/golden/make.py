"""Write this folder's file for the present version of the format. Files of past versions stay."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt


@gt.custom_gradient
def wrong_cube(x: Any) -> Any:
    """Return the cube, with a gradient that is wrong on purpose."""
    return x * x * x, lambda g: 10.0 * g * x * x


class Everything(gt.Module):
    """One of each thing that a file of version 1.2 can hold."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable(np.array([0.5, -1.5, 2.0], "float32"), name="scale")
        self.flag = gt.Variable(np.array([True, False]))
        self.wave = gt.Variable(np.array([[1 + 2j]], "complex128"))
        self.half = gt.Variable(np.float16(0.1))
        self.empty = gt.Variable(np.zeros((0, 2), "uint8"))
        self.count = gt.Variable(0)
        self.parts = [self.scale, {"key": (gt.Variable(1.0), "text", 0.1, None, True, 3j)}]
        self.this = self
        self.net = gt.layers.Sequential(
            [
                gt.layers.Dense(
                    4,
                    activation=lambda x: gt.sin(x) + 0.5 * x,
                    kernel_initializer=gt.layers.initializers.GlorotUniform(seed=1),
                ),
                gt.layers.BatchNorm(),
                gt.layers.Dense(2, kernel_initializer=gt.layers.initializers.GlorotUniform(seed=2)),
            ]
        )
        self.net.layers[0].trainable = False
        x = np.linspace(-1, 1, 15, dtype="float32").reshape(5, 3)
        self.net(x, training=True)
        self(x)

    def __call__(self, x: Any, training: bool = False) -> Any:
        """Apply the network to scaled inputs."""
        return self.net(x * self.scale, training=training)

    @gt.function(input_signature=[gt.TensorSpec(None)])
    def cube(self, x: Any, n: int = 2) -> Any:
        """Use a custom gradient, a constant, and assignments."""
        self.count.assign_add(n)
        return {"cube": wrong_cube(x), "more": (x + gt.constant([1.0, 2.0, 3.0]), "text", None)}

    @gt.function(input_signature=[gt.TensorSpec(["batch", 3]), gt.TensorSpec(["batch"])])
    def share(self, x: Any, y: Any) -> Any:
        """Compute with a size that is open."""
        n = x.shape[0]
        return x[: (n + 1) // 2] / n + gt.sum(y) * n**0.5, gt.zeros((2 * n - 1, 2))


if __name__ == "__main__":
    gt.save(Everything(), Path(sys.argv[1]), sizes="seen")
