"""A program as users write it, for type checkers: what they must know, and what they must refuse.

It is not run. ``assert_type`` states what a checker infers; a line that is wrong on purpose has a
comment that ignores the error, and a checker that finds no error there complains of the comment.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import gradtape as gt
import gradtape.fft
import gradtape.nn as nn
from gradtape import Tensor, Variable
from gradtape.errors import GradtapeError, TraceError
from gradtape.linalg import solve
from gradtape.random import Generator

# -- tensors and ops -------------------------------------------------------------------------------

x = gt.constant([[1.0, 2.0], [3.0, 4.0]])
w = Variable([1.0, 2.0], name="w")

assert_type(x, Tensor)
assert_type(x + 1.0, Tensor)
assert_type(2.0 * x @ w, Tensor)
assert_type(x[0], Tensor)
assert_type(x > 0.0, Tensor)
assert_type(x.T, Tensor)
assert_type(gt.sum(x), Tensor)
assert_type(gt.sin(x), Tensor)
assert_type(gt.maximum(x, 0.0), Tensor)
assert_type(gt.where(x > 0.0, x, 0.0), Tensor)
assert_type(gt.erf(x), Tensor)
assert_type(x.sum(axis=0), Tensor)
assert_type(gt.split(x, 2), list[Tensor])
assert_type(nn.relu(x), Tensor)
assert_type(nn.softmax(x, axis=-1), Tensor)
assert_type(gt.nn.one_hot([0, 1], 3), Tensor)
assert_type(solve(x, w), Tensor)
assert_type(gt.linalg.norm(x), Tensor)
assert_type(gradtape.fft.rfft(x), Tensor)
assert_type(gt.random.normal((2, 3)), Tensor)
assert_type(Generator(7).normal((2, 3)), Tensor)
assert_type(w.value, Tensor)
assert_type(x.dtype, np.dtype[Any])
rows: int = x.shape[0]

# -- gradients -------------------------------------------------------------------------------------

with gt.GradientTape(persistent=True) as tape:
    tape.watch(x)
    y = gt.sum(nn.relu(x) * w)

# a gradient may be None, and a program that knows it is not needs no check
slope = tape.gradient(y, x)
stepped: Tensor = x - 0.1 * slope
if slope is None:
    raise ValueError("y does not depend on x")
print(tape.gradient(y, w).shape)
assert_type(tape.gradient(y, x, unconnected_gradients="zero"), Tensor)
assert_type(tape.gradient(y, [x, w], unconnected_gradients="zero"), list[Tensor])
assert_type(tape.gradient(y, (x,), unconnected_gradients="zero"), tuple[Tensor, ...])
assert_type(tape.gradient(y, {"w": w}, unconnected_gradients="zero"), dict[str, Tensor])
for gradient in tape.gradient(y, [x, w]):
    print(gradient * 2.0)
for name, gradient in tape.gradient(y, {"w": w}).items():
    print(name.upper(), gradient.shape)
first, second = tape.gradient(y, (x, w))
assert_type(tape.batch_jacobian(y, x), Tensor)
print(tape.jacobian(y, x).shape)


def loss(point: Tensor, scale: float = 1.0) -> Tensor:
    return scale * gt.sum(point * point)


gt.grad(loss)(x, scale=2.0)
value, slopes = gt.value_and_grad(loss)(x)
assert_type(value, Tensor)
gt.hessian(loss)(x)
assert_type(gt.vmap(loss)(x), Tensor)

# -- decorators ------------------------------------------------------------------------------------


@gt.function
def step(point: Tensor, rate: float) -> tuple[Tensor, Tensor]:
    return point * rate, gt.sum(point)


@gt.function(input_signature=[gt.TensorSpec([None])])
def mean_square(point: Tensor) -> Tensor:
    return gt.mean(point * point)


@gt.custom_gradient
def clipped(point: Tensor) -> tuple[Tensor, Any]:
    def backward(upstream: Tensor) -> Tensor:
        return gt.clip(upstream, -1.0, 1.0)

    return point, backward


assert_type(step(x, 0.1), tuple[Tensor, Tensor])
assert_type(mean_square(x), Tensor)
assert_type(clipped(x), Tensor)
print(step.get_concrete_function(x, 0.1).graph, step.concrete_functions)

# -- models ----------------------------------------------------------------------------------------


class Scale(gt.Module):
    def __init__(self) -> None:
        super().__init__()
        self.factor = gt.Variable(2.0)

    def __call__(self, point: Tensor) -> Tensor:
        return point * self.factor

    @gt.function
    def twice(self, point: Tensor) -> Tensor:
        return self(self(point))


class Shift(gt.layers.Layer):
    def call(self, point: Tensor) -> Tensor:
        return point + 1.0


layer = gt.layers.Dense(3, activation="relu")
assert_type(layer(x), Tensor)
assert_type(Scale()(x), Tensor)
assert_type(Scale().twice(x), Tensor)
assert_type(Shift()(x), Tensor)
model = gt.layers.Sequential([layer, Shift(), gt.layers.Dense(1)])
assert_type(model(x, training=True), Tensor)

optimizer = gt.training.Adam(1e-3)
with gt.GradientTape() as tape:
    error = gt.training.mean_squared_error(model(x), w)
gradients = tape.gradient(error, model.trainable_variables)
optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

history = gt.training.fit(
    model, (np.ones((8, 2)), np.ones((8, 1))), loss="mean_squared_error", epochs=2, verbose=False
)
assert_type(history, gt.training.History)
predictions: Tensor = gt.training.predict(model, x)  # or several, as the model returns them
print(predictions.shape)

gt.save(model, Path("model.h5"))
loaded = gt.load(Path("model.h5"))
print(loaded(x))

try:
    with gt.debug.nan_guard():
        gt.log(x)
except TraceError as problem:
    raise GradtapeError(str(problem)) from problem

# -- what is wrong ---------------------------------------------------------------------------------

print(gt.nosuchthing)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
gt.nn.sofmax(x)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
print(gt.Any)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
print(gt.nn.np)  # type: ignore[attr-defined]  # pyright: ignore
gt.sum(x).nosuchmethod()  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
slope.nosuchmethod()  # type: ignore[union-attr]  # pyright: ignore[reportAttributeAccessIssue]
step(x)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
step(x, "fast")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
clipped(1.0, 2.0)  # type: ignore[call-arg, arg-type]  # pyright: ignore
Scale().twice()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
text: str = gt.sin(x)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
