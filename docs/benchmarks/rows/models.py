"""Training steps of a convolution network, LSTMs, an attention block and an autoencoder.

gradtape's are written with its layers. JAX and PyTorch share a description, which the functions of
each in ``libraries.py`` compute. Weights are kernels and biases in the order of their use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import networks
import numpy as np
from libraries import Jax, Torch
from training_step import BN_EPSILON, CLASSES

from rows import training
from rows.made import Made

__all__ = ["attention", "autoencoder", "convolution", "lstm", "lstm_loop"]

IMAGES = networks.Task("", "convolution", (32, 28, 28, 1), (16, 32))
#: 30 steps of a batch of 32, with 32 features
SERIES = networks.Task("", "lstm", (30, 32, 32), (64,))
#: Of the attention block: examples, tokens, width, heads.
BATCH, TOKENS, WIDTH, HEADS = 8, 128, 64, 4
#: Units of the autoencoder's layers.
PIXELS, HIDDEN, CODE, DRAWN = 784, 256, 20, 128


def _others(
    library: str,
    how: str,
    loss_of: Callable[..., Any],
    weights: Sequence[np.ndarray],
    data: Sequence[np.ndarray],
) -> Made:
    """Return the step in JAX or PyTorch; ``loss_of`` also takes the functions to compute with."""
    if library == "jax":
        lib = Jax(None)
        return training.jax(lambda *given: loss_of(lib, *given), weights, data)
    functions = Torch()
    if how == "compiled":
        import torch

        # torch.compile leaves the layer nn.LSTM as it is, too
        functions.lstm = torch.compiler.disable(functions.lstm)  # type: ignore[method-assign]
    return training.torch(lambda *given: loss_of(functions, *given), weights, data, how)


# -- classifiers: a convolution network, and LSTMs -------------------------------------------------


def _cross_entropy(model: Any, x: Any, labels: Any) -> Any:
    import gradtape as gt

    losses = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(x))
    return gt.mean(losses)


def convolution(library: str, how: str) -> Made:
    """Two convolutions with relu and pooling, and a Dense layer."""
    weights, data = IMAGES.weights(), IMAGES.data()
    if library == "torch":  # channels first
        data = (np.ascontiguousarray(data[0].transpose(0, 3, 1, 2)), data[1])
    if library != "gradtape":

        def loss_of(lib: Any, weights: Any, x: Any, labels: Any) -> Any:
            return lib.cross_entropy(networks.forward(lib, IMAGES, weights, x), labels)

        return _others(library, how, loss_of, weights, data)
    from gradtape import layers

    model = layers.Sequential(
        [
            layers.Conv2D(16, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(2),
            layers.Flatten(),
            layers.Dense(CLASSES),
        ]
    )
    return training.gradtape(
        model, _cross_entropy, data, lambda: model.trainable_variables, weights, how
    )


def lstm(library: str, how: str) -> Made:
    """An LSTM as each library has it: a layer, or a scan."""
    weights, (x, labels) = SERIES.weights(), SERIES.data()
    if library != "gradtape":

        def loss_of(lib: Any, weights: Any, x: Any, labels: Any) -> Any:
            return lib.cross_entropy(networks.forward(lib, SERIES, weights, x), labels)

        return _others(library, how, loss_of, weights, (x, labels))
    from gradtape import layers

    first, last = layers.LSTM(SERIES.units[0]), layers.Dense(CLASSES)
    model = layers.Sequential([first, last])

    def variables() -> list[Any]:
        cell = first.cell
        return [cell.kernel, cell.bias, cell.recurrent_kernel, last.kernel, last.bias]

    data = (np.ascontiguousarray(x.swapaxes(0, 1)), labels)
    return training.gradtape(model, _cross_entropy, data, variables, weights, how)


def lstm_loop(library: str, how: str) -> Made:
    """The same LSTM as a Python loop over its steps."""
    weights, (x, labels) = SERIES.weights(), SERIES.data()
    if library != "gradtape":

        def loss_of(lib: Any, weights: Any, x: Any, labels: Any) -> Any:
            w, b, u, *last = weights
            h = c = lib.zeros((x.shape[1], u.shape[lib.inputs_axis]))
            for i in range(len(x)):
                gates = lib.dense(x[i], w, b) + lib.product(h, u)
                i_gate, f, g, o = lib.split(gates, 4)
                c = lib.sigmoid(f) * c + lib.sigmoid(i_gate) * lib.tanh(g)
                h = lib.sigmoid(o) * lib.tanh(c)
            return lib.cross_entropy(lib.dense(h, *last), labels)

        return _others(library, how, loss_of, weights, (x, labels))
    import gradtape as gt

    class Unrolled(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell, self.last = gt.layers.LSTMCell(SERIES.units[0]), gt.layers.Dense(CLASSES)

        def __call__(self, x: Any) -> Any:
            h = c = gt.zeros((x.shape[0], SERIES.units[0]))
            for i in range(x.shape[1]):
                _, (h, c) = self.cell(x[:, i], [h, c])
            return self.last(h)

    model = Unrolled()

    def variables() -> list[Any]:
        cell, last = model.cell, model.last
        return [cell.kernel, cell.bias, cell.recurrent_kernel, last.kernel, last.bias]

    data = (np.ascontiguousarray(x.swapaxes(0, 1)), labels)
    return training.gradtape(model, _cross_entropy, data, variables, weights, how)


# -- an attention block ----------------------------------------------------------------------------


def _block(lib: Any, weights: Any, x: Any, target: Any) -> Any:
    """Return the loss of the block."""
    return ((networks.block(lib, iter(weights), x, HEADS) - target) ** 2).mean()


def attention(library: str, how: str) -> Made:
    """A block of causal attention and an MLP, each after a LayerNorm and around a residual."""
    random = np.random.default_rng(0)
    data = random.standard_normal((2, BATCH, TOKENS, WIDTH)).astype(np.float32)
    weights = networks.block_weights(WIDTH)
    if library != "gradtape":
        return _others(library, how, _block, weights, list(data))
    import gradtape as gt
    from gradtape import layers

    class Block(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = layers.LayerNormalization(epsilon=BN_EPSILON)
            self.attention = layers.MultiHeadAttention(HEADS, WIDTH // HEADS)
            self.second = layers.LayerNormalization(epsilon=BN_EPSILON)
            self.wide, self.narrow = layers.Dense(4 * WIDTH, "gelu"), layers.Dense(WIDTH)

        def __call__(self, x: Any) -> Any:
            h = self.first(x)
            x = x + self.attention(h, h, use_causal_mask=True)
            return x + self.narrow(self.wide(self.second(x)))

    model = Block()

    def variables() -> list[Any]:
        parts = [model.first, model.attention, model.second, model.wide, model.narrow]
        return [variable for part in parts for variable in part.trainable_variables]

    def loss_of(model: Any, x: Any, target: Any) -> Any:
        return gt.mean((model(x) - target) ** 2)

    return training.gradtape(model, loss_of, list(data), variables, weights, how)


# -- a variational autoencoder ---------------------------------------------------------------------


def autoencoder(library: str, how: str) -> Made:
    """A variational autoencoder; its noise is given."""
    random = np.random.default_rng(0)
    images = random.random((DRAWN, PIXELS), dtype=np.float32)
    data = [images, random.standard_normal((DRAWN, CODE)).astype(np.float32)]
    weights = networks.autoencoder_weights(PIXELS, HIDDEN, CODE)
    if library != "gradtape":
        return _others(library, how, networks.autoencoder_loss, weights, data)
    import gradtape as gt
    from gradtape import layers

    class Autoencoder(gt.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = layers.Sequential([layers.Dense(HIDDEN, "relu"), layers.Dense(2 * CODE)])
            self.decoder = layers.Sequential([layers.Dense(HIDDEN, "relu"), layers.Dense(PIXELS)])

        def __call__(self, images: Any, noise: Any) -> Any:
            mean, spread = gt.split(self.encoder(images), 2, axis=-1)
            return self.decoder(mean + gt.exp(spread) * noise), mean, spread

    def loss_of(model: Any, images: Any, noise: Any) -> Any:
        logits, mean, spread = model(images, noise)
        pixels = gt.nn.sigmoid_cross_entropy_with_logits(labels=images, logits=logits)
        distance = gt.exp(2 * spread) + mean**2 - 1 - 2 * spread
        return gt.mean(gt.sum(pixels, axis=-1) + gt.sum(distance, axis=-1) / 2)

    model = Autoencoder()

    def variables() -> list[Any]:
        return [*model.encoder.trainable_variables, *model.decoder.trainable_variables]

    return training.gradtape(model, loss_of, data, variables, weights, how)
