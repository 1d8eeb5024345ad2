"""Models whose code computes with sizes are trained, saved, loaded elsewhere and trained on there.

What was saved has seen batches of one size; the interpreter that loads it has none of this code,
and gives it batches of others.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fresh_process import probe, run_isolated

import gradtape as gt


class Sampling(gt.layers.Layer):
    """Draws around a mean; only the mean where nothing is trained."""

    def call(self, mean: Any, log_variance: Any, training: bool = False) -> Any:
        if not training:
            return mean
        return mean + gt.exp(0.5 * log_variance) * gt.random.normal(mean.shape)


class VariationalAutoencoder(gt.Module):
    """Encodes into a normal distribution, decodes a sample of it."""

    def __init__(self, features: int = 8, latent: int = 2) -> None:
        super().__init__()
        self.encoder = gt.layers.Dense(6, activation="tanh")
        self.mean = gt.layers.Dense(latent)
        self.log_variance = gt.layers.Dense(latent)
        self.sampling = Sampling()
        self.decoder = gt.layers.Sequential(
            [gt.layers.Dense(6, activation="tanh"), gt.layers.Dense(features)]
        )

    def __call__(self, x: Any, training: bool = False) -> Any:
        batch = x.shape[0]
        x = gt.reshape(x, (batch, -1))
        hidden = self.encoder(x)
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = self.sampling(mean, log_variance, training=training)
        divergence = gt.sum(gt.exp(log_variance) + mean**2 - 1.0 - log_variance) / (2 * batch)
        return gt.reshape(self.decoder(code), (batch, 2, 4)), divergence * 1e-3


class LSTM(gt.layers.Layer):
    """A recurrent layer that makes its first state itself; it returns all its outputs."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units = units

    def build(self, input_shape: Any) -> None:
        draw = gt.layers.initializers.GlorotUniform(seed=1)
        self.kernel = self.add_weight((input_shape[-1], 4 * self.units), draw, "kernel")
        self.recurrent = self.add_weight((self.units, 4 * self.units), draw, "recurrent")
        self.bias = self.add_weight((4 * self.units,), "zeros", "bias")

    def call(self, x: Any) -> Any:
        def step(state: Any, row: Any) -> Any:
            h, c = state
            gates = row @ self.kernel + h @ self.recurrent + self.bias
            i, f, g, o = gt.split(gates, 4, axis=-1)
            c = gt.nn.sigmoid(f + 1.0) * c + gt.nn.sigmoid(i) * gt.tanh(g)
            h = gt.nn.sigmoid(o) * gt.tanh(c)
            return (h, c), h

        zeros = gt.zeros((x.shape[0], self.units), x.dtype)
        _, outputs = gt.scan(step, (zeros, zeros), gt.swapaxes(x, 0, 1))
        return gt.swapaxes(outputs, 0, 1)


class Forecast(gt.Module):
    """Foretells each next entry of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = LSTM(5)
        self.readout = gt.layers.Dense(3)

    def __call__(self, x: Any) -> Any:
        return self.readout(self.recurrent(x))


class PatchTransformer(gt.Module):
    """Cuts images of any size into patches and lets them attend to each other."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        draw = np.random.default_rng(3)
        self.heads = heads
        self.embed = gt.layers.Dense(width)
        self.positions = gt.Variable(0.1 * draw.standard_normal((16, width)).astype("float32"))
        self.qkv = gt.layers.Dense(3 * width)
        self.out = gt.layers.Dense(width)
        self.feed = gt.layers.Sequential(
            [gt.layers.Dense(2 * width, activation="gelu"), gt.layers.Dense(width)]
        )
        self.head = gt.layers.Dense(3)

    @gt.function(input_signature=[gt.TensorSpec([None, None, None, 2])])
    def __call__(self, x: Any) -> Any:
        b, h, w, c = x.shape
        x = gt.reshape(x, (b, h // 2, 2, w // 2, 2, c))
        x = gt.reshape(gt.transpose(x, (0, 1, 3, 2, 4, 5)), (b, h * w // 4, 4 * c))
        x = self.embed(x)
        x = x + self.positions[: x.shape[1]]
        x = x + self.attend(gt.nn.layer_normalization(x))
        x = x + self.feed(gt.nn.layer_normalization(x))
        return self.head(gt.sum(x, axis=1) / x.shape[1])

    def attend(self, x: Any) -> Any:
        b, t, d = x.shape
        qkv = gt.reshape(self.qkv(x), (b, t, 3, self.heads, d // self.heads))
        q, k, v = gt.unstack(gt.transpose(qkv, (2, 0, 3, 1, 4)), axis=0)
        scores = q @ gt.swapaxes(k, 2, 3) / q.shape[-1] ** 0.5
        near = gt.triu(gt.tril(gt.ones((t, t)), 2), -2)
        scores = gt.where(near == 1, scores, -1e9)
        mixed = gt.transpose(gt.nn.softmax(scores) @ v, (0, 2, 1, 3))
        return self.out(gt.reshape(mixed, (b, t, d)))


def drawn(*shape: int) -> Any:
    return np.random.default_rng(shape).standard_normal(shape).astype("float32")


# what each takes: the batch that it has seen, others, and keywords of its calls
MODELS: dict[str, tuple[Any, Any, list[Any], list[dict[str, Any]]]] = {
    "autoencoder": (
        VariationalAutoencoder,
        drawn(6, 2, 4),
        [drawn(1, 2, 4), drawn(2, 2, 4), drawn(9, 2, 4)],
        [{"training": False}, {"training": True}],
    ),
    "forecast": (
        Forecast,
        drawn(4, 5, 3),
        [drawn(1, 5, 3), drawn(3, 5, 3), drawn(8, 5, 3)],
        [{}],
    ),
    "transformer": (
        PatchTransformer,
        drawn(4, 4, 4, 2),
        [drawn(1, 4, 4, 2), drawn(3, 8, 4, 2), drawn(5, 2, 6, 2)],
        [{}],
    ),
}

# Run here and there: descent on the mean square of the outputs from targets made of the inputs.
TRAIN = """
def train(model, x, steps, keywords):
    optimizer, losses = gt.training.Adam(0.02), []
    for _ in range(steps):
        with gt.GradientTape() as tape:
            outputs = leaves(model(x, **keywords))
            y = outputs[0]
            target = gt.reshape(x, (x.shape[0], -1))
            target = gt.sin(target[:, :3]) if len(y.shape) == 2 else gt.sin(x)
            loss = gt.mean((y - target) ** 2) + sum(outputs[1:])
        variables = model.trainable_variables
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        losses.append(loss.item())
    return losses
"""

ELSEWHERE = (
    TRAIN
    + """
import json
folder, keywords = sys.argv[1], json.loads(sys.argv[2])
given = np.load(f"{folder}/given.npz")
results, losses = {}, {}
for name, choices in keywords.items():
    for i in range(3):
        for j, choice in enumerate(choices):
            module = gt.load(f"{folder}/{name}.h5")
            gt.random.set_seed(7)
            found = probe(module, "__call__", [given[f"{name} {i}"]], choice)
            results |= {f"{name} {i} {j} {k}": x for k, x in enumerate(found)}
    gt.random.set_seed(7)
    last = gt.constant(given[f"{name} 2"])
    losses[name] = train(gt.load(f"{folder}/{name}.h5"), last, 40, choices[-1])
np.savez(f"{folder}/results.npz", **results)
print(json.dumps(losses))
"""
)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Train and save the models, use them elsewhere; the models and what was found there."""
    folder: Path = tmp_path_factory.mktemp("models")
    space: dict[str, Any] = {}
    exec("import gradtape as gt\n" + TRAIN, space)
    space["leaves"] = lambda tree: list(tree) if isinstance(tree, (list, tuple)) else [tree]
    given, models, keywords = {}, {}, {}
    for name, (make, seen, others, choices) in MODELS.items():
        model = models[name] = make()
        before = space["train"](model, gt.constant(seen), 5, choices[-1])
        assert before[-1] < before[0]
        gt.save(model, folder / f"{name}.h5")
        given |= {f"{name} {i}": x for i, x in enumerate(others)}
        keywords[name] = choices
    np.savez(folder / "given.npz", **given)
    losses = json.loads(run_isolated(ELSEWHERE, folder, json.dumps(keywords)))
    with np.load(folder / "results.npz") as file:
        return models, dict(file), losses


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_gives_values_and_gradients_of_the_live_one_at_other_sizes(
    name: str, everything: Any
) -> None:
    models, results, _ = everything
    model, (_, _, others, choices) = models[name], MODELS[name]
    for i, x in enumerate(others):
        for j, keywords in enumerate(choices):
            gt.random.set_seed(7)  # as before each draw there
            expected = probe(model, "__call__", [x], keywords)
            found = [results[f"{name} {i} {j} {k}"] for k in range(len(expected))]
            for got, want in zip(found, expected, strict=True):
                assert (got.shape, got.dtype) == (want.shape, want.dtype)
                np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_loaded_model_is_trained_on_at_another_size(name: str, everything: Any) -> None:
    losses = everything[2][name]
    assert losses[-1] < 0.8 * losses[0]
