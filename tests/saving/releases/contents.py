"""What the files of a release hold, and what is computed from them.

A case makes a module (``make``), and ``results`` computes numbers: from the module itself when the
files are written, and ever after from what ``gt.load`` returns. ``results`` uses public names only,
as users do: a case that no longer runs shows a promise that was broken. Cases are added, and never
changed, because the files of earlier releases are tested by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import gradtape as gt
from gradtape import layers, training

Arrays = dict[str, np.ndarray[Any, Any]]


class Case(NamedTuple):
    """A module, the inputs for it, and what is computed."""

    make: Callable[[], gt.Module]
    inputs: Callable[[], Arrays]
    results: Callable[[Any, Arrays], Arrays]
    signatures: Callable[[], dict[str, Any]] = dict


def random(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    """Return normal numbers of float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def leaves(outputs: Any) -> Iterator[Any]:
    """Give the tensors of nested outputs."""
    if isinstance(outputs, dict):
        outputs = [outputs[key] for key in sorted(outputs)]
    if isinstance(outputs, list | tuple):
        for part in outputs:
            yield from leaves(part)
    elif hasattr(outputs, "dtype"):
        yield outputs


def measured(call: Callable[[], Any], sources: dict[str, Any]) -> Arrays:
    """Return the outputs of a call, and the gradients of a weighted sum of those that have some."""
    with gt.GradientTape() as tape:
        for source in sources.values():
            tape.watch(source)
        outputs = list(leaves(call()))
        loss = gt.constant(0.0, "float64")
        for x in outputs:
            if np.dtype(x.dtype).kind == "f":
                weights = np.cos(np.arange(x.size) + 1.0).reshape(tuple(x.shape))
                loss = loss + gt.sum(gt.cast(x, "float64") * weights)
    found = {f"output {i}": x.numpy() for i, x in enumerate(outputs)}
    gradients = tape.gradient(loss, list(sources.values()))
    for name, gradient in zip(sources, gradients, strict=True):
        if gradient is not None:
            found[f"gradient of {name}"] = gt.as_tensor(gradient).numpy()
    return found


def below(name: str, found: Arrays) -> Arrays:
    """Return arrays with longer names."""
    return {f"{name}/{key}": value for key, value in found.items()}


def given(name: str, inputs: Arrays) -> list[Any]:
    """Return the inputs that begin with a name."""
    return [gt.constant(x) for key, x in inputs.items() if key.rpartition("/")[0] == name]


def values(module: Any) -> Arrays:
    """Return the values of all variables, in their order."""
    return {f"variable {i}": np.array(v.numpy()) for i, v in enumerate(module.variables)}


class Holder(gt.Module):
    """Modules by name."""

    def __init__(self, parts: dict[str, Any]) -> None:
        super().__init__()
        self.parts = parts


# -- models, and a step of their training ----------------------------------------------------------
# No variable has a gradient that is 0 but for rounding, as a bias before BatchNormalization has:
# Adam would make of it a step of full length, in a direction that depends on the machine.


def run(model: Any, xs: list[Any], **options: Any) -> Arrays:
    """Call a model with one input, or with a list of several; return outputs and gradients."""
    sources = {f"input {i}": x for i, x in enumerate(xs) if np.dtype(x.dtype).kind == "f"}
    sources |= {f"variable {i}": v for i, v in enumerate(model.trainable_variables)}
    return measured(lambda: model(xs[0] if len(xs) == 1 else xs, **options), sources)


def step(model: Any, optimizer: Any, xs: list[Any], y: Any) -> Any:
    """Make a step of training; return its loss."""
    with gt.GradientTape() as tape:
        loss = gt.mean((model(xs[0] if len(xs) == 1 else xs, training=True) - y) ** 2)
    trained = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, trained), trained, strict=True))
    return loss


class Trained(gt.Module):
    """A model with its optimizer, after two steps."""

    def __init__(self, model: Any, optimizer: Any, inputs: Arrays) -> None:
        super().__init__()
        self.model, self.optimizer = model, optimizer
        for _ in range(2):
            step(model, optimizer, given("x", inputs), inputs["y"])
        xs = given("x", inputs)
        self(xs[0] if len(xs) == 1 else xs)

    def __call__(self, x: Any) -> Any:
        """Call the model, so that the file holds its graph as well."""
        return self.model(x)


def trained_results(module: Any, inputs: Arrays) -> Arrays:
    """Call a model, and train it on: the third step and the fourth."""
    xs = given("x", inputs)
    found = below("before", run(module.model, xs)) | below("graph", run(module, xs))
    for i in (3, 4):
        loss = step(module.model, module.optimizer, xs, inputs["y"])
        found |= below(f"step {i}", {"loss": loss.numpy(), **values(module.model)})
    return found | below("after", run(module.model, xs, training=False))


def sequential() -> gt.Module:
    """Make a model with moving statistics and dropout."""
    init = layers.initializers.GlorotUniform
    model = layers.Sequential(
        [
            layers.Dense(5, "gelu", kernel_initializer=init(seed=1), kernel_regularizer="l2"),
            layers.BatchNormalization(momentum=0.9),
            layers.Dropout(0.25, seed=4),
            layers.Dense(4, activation=lambda x: gt.sin(x) + 0.5 * x, kernel_constraint="max_norm"),
            layers.Dense(2),
        ],
        name="net",
    )
    return Trained(model, training.Adam(0.01, clipnorm=1.0), simple_inputs())


def functional() -> gt.Module:
    """Make a model of two inputs in which one layer is used twice."""
    a, b = gt.Input((3,)), gt.Input((3,))
    shared = layers.Dense(4, "tanh")
    both = layers.Concatenate()([shared(a), shared(b)])
    both = layers.Add()([layers.LayerNormalization()(both), both])
    model = gt.Model([a, b], layers.Dense(2)(both))
    schedule = training.schedules.ExponentialDecay(0.1, 2, 0.5)
    return Trained(model, training.SGD(schedule, momentum=0.9), pair_inputs())


def attention() -> gt.Module:
    """Make a model that reads words: embedding, attention, a recurrent layer."""
    words = gt.Input((6,), dtype="int32")
    x = layers.Embedding(7, 4, embeddings_initializer="random_normal", mask_zero=True)(words)
    x = layers.Add()([x, layers.MultiHeadAttention(2, 2, use_bias=False)(x, x)])
    x = layers.GRU(3)(x)
    model = gt.Model(words, layers.Dense(2)(x))
    return Trained(model, training.SGD(0.1, momentum=0.9, nesterov=True), word_inputs())


def convolutional() -> gt.Module:
    """Make a model of images."""
    model = layers.Sequential(
        [
            layers.Conv2D(3, 3, padding="same", use_bias=False),
            layers.BatchNormalization(),
            layers.Activation("relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(2),
        ]
    )
    return Trained(model, training.RMSprop(0.01), image_inputs())


class Signs(training.Optimizer):
    """An optimizer that no plugin provides: its file holds the formula as graphs."""

    slots = ("means",)

    def __init__(self, learning_rate: Any, beta: float = 0.8, **options: Any) -> None:
        super().__init__(learning_rate, **options)
        self.beta = beta

    def settings(self, rate: Any, step: Any) -> tuple[Any, ...]:
        """Return the rate, and the part of the mean that is known after some steps."""
        return rate, 1.0 - self.beta**step

    def update(self, value: Any, gradient: Any, state: Any, settings: Any) -> Any:
        """Move against the sign of the mean, smoothed."""
        rate, known = settings
        mean = state[0] * self.beta + gradient * (1.0 - self.beta)
        return value - rate * gt.tanh(mean / known), (mean,)


def own_optimizer() -> gt.Module:
    """Make a model that an optimizer of one's own trains, by a schedule."""
    model = layers.Sequential([layers.Dense(4, "tanh"), layers.Dense(2)])
    rate = training.schedules.ExponentialDecay(0.1, 2, 0.5)
    return Trained(model, Signs(rate, clipnorm=1.0, weight_decay=0.01), simple_inputs())


def simple_inputs() -> Arrays:
    """Return a batch of rows and their labels."""
    return {"x/0": random(1, 6, 3), "y": random(2, 6, 2)}


def pair_inputs() -> Arrays:
    """Return two batches of rows and their labels."""
    return {"x/0": random(1, 6, 3), "x/1": random(3, 6, 3), "y": random(2, 6, 2)}


def word_inputs() -> Arrays:
    """Return a batch of sentences, some with padding."""
    words = np.array([[1, 2, 3, 4, 5, 6], [3, 1, 0, 0, 0, 0], [2, 2, 6, 1, 0, 0]], "int32")
    return {"x/0": words, "y": random(2, 3, 2)}


def image_inputs() -> Arrays:
    """Return a batch of images and their labels."""
    return {"x/0": random(1, 4, 6, 6, 2), "y": random(2, 4, 2)}


# -- classes of one's own --------------------------------------------------------------------------


@gt.custom_gradient
def wrong_cube(x: Any) -> Any:
    """Return the cube, with a gradient that is wrong on purpose, so that no other can be meant."""
    return x * x * x, lambda g: 10.0 * g * x * x


@gt.custom_gradient
def sine(x: Any) -> Any:
    """Return the sine, with a gradient whose gradient calls this function."""
    return gt.sin(x), lambda g: g * cosine(x)


@gt.custom_gradient
def cosine(x: Any) -> Any:
    """Return the cosine, with a gradient that calls the sine."""
    return gt.cos(x), lambda g: -g * sine(x)


class Own(gt.Module):
    """A class that no later program has: methods, variables of many types, Python state."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable(np.array([0.5, -1.5, 2.0], "float32"), name="scale")
        self.count = gt.Variable(0)
        self.flag = gt.Variable(np.array([True, False]))
        self.wave = gt.Variable(np.array([[1 + 2j]], "complex128"))
        self.half = gt.Variable(np.float16(0.1))
        self.state = {"keys": {1: "one", (2, None): [0.5, -0.0]}, "bytes": b"\x00\xff"}
        self.draws = gt.random.Generator(seed=7)
        self.inner = layers.Dense(2, kernel_initializer=layers.initializers.HeNormal(seed=3))
        self(np.ones((2, 3), "float32"))

    def __call__(self, x: Any, training: bool = False) -> Any:
        """Use a custom gradient, another one in training."""
        return self.inner(sine(x * self.scale) if training else wrong_cube(x * self.scale))

    @gt.function(input_signature=[gt.TensorSpec(["batch", 3])])
    def counted(self, x: Any) -> Any:
        """Assign a variable, and compute with an open size."""
        self.count.assign_add(1)
        n = x.shape[0]
        return {"half": x[: (n + 1) // 2] / n, "sine": sine(x), "text": "a text", "none": None}


def own_results(module: Any, inputs: Arrays) -> Arrays:
    """Call the methods, and differentiate twice."""
    (x,) = given("x", inputs)
    found = below("call", run(module, [x])) | below("training", run(module, [x], training=True))
    found |= below("counted", measured(lambda: module.counted(x), {"x": x}))
    second = gt.grad(lambda x: gt.sum(gt.grad(lambda x: gt.sum(module.counted(x)["sine"]))(x)))(x)
    state = {
        "count": module.count.numpy(),
        "wave": module.wave.numpy(),
        "half": module.half.numpy(),
    }
    state["keys"] = np.frombuffer(repr(module.state["keys"]).encode(), "uint8")
    state["bytes"] = np.frombuffer(module.state["bytes"], "uint8")
    state["draws"] = module.draws.normal((3,)).numpy()
    return found | below("state", state) | {"second gradient": second.numpy()}


class Decides(gt.Module):
    """Control flow in traces."""

    def __init__(self) -> None:
        super().__init__()
        self.start = gt.Variable(np.float32(0.5), name="start")

    @gt.function(input_signature=[gt.TensorSpec([3])])
    def cond(self, x: Any) -> Any:
        """Choose by values, inside a choice too."""
        small = lambda: gt.cond(gt.sum(x) > -1.0, lambda: wrong_cube(x), lambda: x * self.start)  # noqa: E731
        return gt.cond(gt.sum(x) > 0.0, lambda: gt.sin(x), small)

    @gt.function(input_signature=[gt.TensorSpec([3])])
    def loop(self, x: Any) -> Any:
        """Repeat as often as the values say."""
        return gt.while_loop(lambda y: gt.sum(y * y) < 20.0, lambda y: y * 1.5 + gt.sin(y), x)

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def scan(self, x: Any) -> Any:
        """Carry a value over a number of steps that is open."""
        return gt.scan(lambda c, y: (gt.tanh(c + y), c * y), self.start * 1.0, x)

    @gt.function(input_signature=[gt.TensorSpec([None])])
    def map(self, x: Any) -> Any:
        """Apply a function to each element."""
        return gt.map(lambda y: y * y + self.start, x)


def decided_results(module: Any, inputs: Arrays) -> Arrays:
    """Call each method for each vector, and differentiate."""
    found = {}
    for i, x in enumerate(given("x", inputs)):
        for name in ("cond", "loop", "scan", "map"):
            sources = {"x": x, "start": module.start}
            found |= below(
                f"{name} {i}", measured(lambda n=name, x=x: getattr(module, n)(x), sources)
            )
    return found


def vectors() -> Arrays:
    """Return vectors that take different branches."""
    rows = [[0.5, 1.0, 2.0], [-0.3, -0.2, 0.1], [-3.0, 0.5, -1.0]]
    return {f"x/{i}": np.array(row, "float32") for i, row in enumerate(rows)}


def signatures() -> dict[str, Any]:
    """Return a function that is saved by itself."""

    @gt.function(input_signature=[gt.TensorSpec([None, 3]), gt.TensorSpec([3, 2])])
    def serve(x: Any, w: Any) -> Any:
        return gt.nn.softmax(gt.matmul(wrong_cube(x), w))

    return {"serve": serve}


def served_results(module: Any, inputs: Arrays) -> Arrays:
    """Call the saved function."""
    x, w = given("x", inputs)
    return measured(lambda: module.signatures["serve"](x, w), {"x": x, "w": w})


CASES: dict[str, Case] = {
    "sequential": Case(sequential, simple_inputs, trained_results),
    "functional": Case(functional, pair_inputs, trained_results),
    "attention": Case(attention, word_inputs, trained_results),
    "convolutional": Case(convolutional, image_inputs, trained_results),
    "own-optimizer": Case(own_optimizer, simple_inputs, trained_results),
    "own": Case(Own, lambda: {"x/0": random(4, 5, 3)}, own_results),
    "control-flow": Case(Decides, vectors, decided_results),
    "function": Case(
        lambda: gt.Module("holder"),
        lambda: {"x/0": random(1, 4, 3), "x/1": random(2, 3, 2)},
        served_results,
        signatures,
    ),
}
