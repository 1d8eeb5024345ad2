"""Write this folder's files for the present version of the format. Files of past versions stay."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np

import gradtape as gt


@gt.custom_gradient
def wrong_cube(x: Any) -> Any:
    """Return the cube, with a gradient that is wrong on purpose."""
    return x * x * x, lambda g: 10.0 * g * x * x


@gt.custom_gradient
def sine(x: Any) -> Any:
    """Return the sine, with a gradient whose gradient calls this function."""
    return gt.sin(x), lambda g: g * cosine(x)


@gt.custom_gradient
def cosine(x: Any) -> Any:
    """Return the cosine, with a gradient that calls the sine."""
    return gt.cos(x), lambda g: -g * sine(x)


def wrong_exp(g: Any, x: Any) -> Any:
    """Return a gradient of exp that is wrong on purpose."""
    return 3.0 * g * gt.exp(x)


def train(model: gt.Module, optimizer: gt.training.Optimizer, x: Any) -> None:
    """Make a step, so that the optimizer has a state."""
    with gt.GradientTape() as tape:
        loss = gt.sum(model(x, training=True) ** 2)
    trained = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))


class Halved(gt.layers.Layer):
    """A layer of one's own: its variables are in the order in which they were set.

    It adds to the loss, and its weights have rules.
    """

    def build(self, shape: Any) -> None:
        """Make the variables."""
        self.shift = self.add_weight((), initializer="zeros", name="shift")
        self.factor = self.add_weight(
            (), initializer="ones", name="factor", regularizer="l2", constraint=gt.tanh
        )

    def call(self, x: Any) -> Any:
        """Scale and shift."""
        self.add_loss(0.1 * gt.mean(x * x))
        return x * (0.5 * self.factor) + self.shift


class Damped(gt.training.Optimizer):
    """An optimizer of one's own, which a file holds as its formula."""

    slots = ("velocities",)
    damping = 0.25

    def settings(self, rate: Any, step: Any) -> Any:
        """Return the rate and a factor that changes by step."""
        return rate, 1.0 - self.damping / step

    @gt.training.optimizers.by_blocks
    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        """Return the new value and velocity."""
        velocity = state[0] * self.damping + gradient * settings[1]
        return value - velocity * settings[0], (velocity,)


class Everything(gt.Module):
    """One of each thing that a file of version 2.4 can hold."""

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
        self.rate = 0.25
        self.state = {
            "numbers": (-(2**63), float("nan"), float("-inf"), -0.0, complex(0.0, -0.0)),
            "sets": [{1, 2}, frozenset({"a", (1.5, None)})],
            "keys": {1: "one", (2, None): gt.Variable(2.0), 0.5: [], True + 2: {}},
            "array": np.arange(6, dtype="uint16").reshape(2, 3),
            "tensor": gt.constant([[1.5]]),
            "scalars": [np.float32(0.1), np.int8(-1), np.bool_(True), np.complex64(1j)],
            "dtype": np.dtype("float16"),
            "ranges": [range(1, 9, 3), slice(None, -1, None)],
            "bytes": b"\x00\xff",
            "op": gt.tanh,
        }
        self.again = [self.state, self.state["array"], self.state["tensor"]]
        self.own = gt.random.Generator(seed=7)
        self.drawn = gt.random.Generator()
        self.net = gt.layers.Sequential(
            [
                gt.layers.Dense(
                    4,
                    activation=lambda x: gt.sin(x) + 0.5 * x,
                    kernel_initializer=gt.layers.initializers.GlorotUniform(seed=1),
                ),
                gt.layers.BatchNorm(),
                gt.layers.Dense(2, kernel_initializer=gt.layers.initializers.GlorotUniform(seed=2)),
                gt.layers.Activation("tanh"),
                Halved(),
            ]
        )
        self.net.layers[0].trainable = False
        self.net.note = ["an attribute that no constructor makes", {"n": 1}]
        self.optimizer = gt.training.Adam(0.01, clipnorm=1.0)
        x = np.linspace(-1, 1, 15, dtype="float32").reshape(5, 3)
        train(self.net, self.optimizer, x)
        self.net.layers[0].trainable = True  # joins late: its steps are counted apart
        train(self.net, self.optimizer, x)
        self.net.layers[0].trainable = False
        self.damped = Damped(lambda step: 0.01 / (step + 1), weight_decay=0.1)
        self.damped.exclude_from_weight_decay(var_names=["bias"])
        train(self.net, self.damped, x)
        self.metrics = [gt.training.metrics.R2Score(), gt.training.metrics.AUC()]
        self.metrics[0]([1001.0, 1002.0, 1004.0], [1001.5, 1002.0, 1003.5])
        self.metrics[1]([0, 0, 1, 1], [0.0, 0.5, 0.3, 0.9])
        self(x)
        self.noise(x)

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

    @gt.function(input_signature=[gt.TensorSpec([None]), gt.TensorSpec([None], "int64")])
    def pick(self, x: Any, i: Any) -> Any:
        """Index, cast, reduce, and use an op whose gradient was replaced."""
        picked = gt.exp(x)[i % 2] * gt.cast(i, "float32")
        return gt.cast(picked[::-1, None, ...], "float64"), gt.max(x) * self.rate

    @gt.function(input_signature=[gt.TensorSpec([3])])
    def loop(self, x: Any) -> Any:
        """Decide and repeat by values."""
        chosen = gt.cond(gt.sum(x) > 0.0, lambda: gt.sin(x), lambda: x * x)
        grown = gt.while_loop(
            lambda y: gt.sum(y * y) < 20.0, lambda y: y * 1.5 + gt.sin(y * chosen), x
        )
        last, sums = gt.scan(lambda c, y: (gt.tanh(c + y), c * y), gt.constant(0.5), x)
        return grown, last, sums

    @gt.function(input_signature=[gt.TensorSpec([None]), gt.TensorSpec([])])
    def wave_of(self, x: Any, c: Any) -> Any:
        """Use custom gradients that call each other, and one that leaves out what it captures."""

        @gt.custom_gradient
        def scaled(x: Any) -> Any:
            return x * c, lambda g: g * c

        return sine(x) + gt.cond(c > 0.0, lambda: cosine(x), lambda: x), scaled(x)

    @gt.function
    def noise(self, x: Any) -> Any:
        """Draw from three streams."""
        return (
            x + self.own.normal(x.shape) + self.drawn.uniform((3,)),
            gt.random.shuffle(gt.arange(5)),
        )

    @gt.function
    def unused(self, x: Any) -> Any:
        """Be called never, so that no file can hold it."""
        return x


def write(folder: Path, name: str) -> None:
    """Write all files of a version."""
    gt.random.set_seed(3)
    gt.register_gradient("exp", override=True)(wrong_exp)
    module = Everything()
    gt.save(module, folder / f"{name}.h5", {"serve": module.cube}, sizes="seen")
    large = gt.Module("large")
    large.table = gt.Variable(np.tile(np.arange(64, dtype="float32"), (8, 4)))
    large.flags = gt.Variable(np.zeros((3, 100), "bool"))
    large.one = gt.Variable(1.5)
    gt.save(large, folder / f"{name}_gzip.h5", compression="gzip")
    model = gt.layers.Sequential([gt.layers.Dense(4), gt.layers.BatchNorm(), gt.layers.Dense(2)])
    optimizer = gt.training.Adam(0.01)
    train(model, optimizer, np.linspace(-1, 1, 15, dtype="float32").reshape(5, 3))
    checkpoint = gt.training.Checkpoint(
        model=model,
        optimizer=optimizer,
        streams={"own": gt.random.Generator(seed=7)},
        numpy=np.random.default_rng(1),
        python=random.Random(1),
        step=3,
    )
    checkpoint.save(folder / f"{name}_checkpoint.h5")


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
