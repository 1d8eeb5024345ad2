"""The functions that networks need, by the same names in gradtape, PyTorch and JAX."""

from __future__ import annotations

from typing import Any

import numpy as np
from training_step import BN_EPSILON

__all__ = ["Gradtape", "Jax", "Torch"]


class Gradtape:
    """gradtape's functions; ``half`` is the dtype to compute in, if it is not float32."""

    def __init__(self, half: str | None) -> None:
        import gradtape as gt
        from gradtape.core.extend import ops

        self.gt, self.half = gt, half
        self._batch_norm = ops["batch_norm_training"]
        self._cells: dict[int, Any] = {}
        self._round = ops["round_to_bfloat16"]
        self.generator: Any = None  # of the random numbers of a step

    def cast(self, x: Any, dtype: str | None) -> Any:
        if self.half == "bfloat16":  # which no tensor has: float32 is rounded, as in layers
            return x if dtype else self._round(x)
        return x if self.half is None else self.gt.cast(x, dtype or self.half)

    def operand(self, x: Any) -> Any:
        return self._round(x) if self.half == "bfloat16" else x

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return self.operand(x) @ self.cast(w, None) + self.cast(b, None)

    def relu(self, x: Any) -> Any:
        return self.gt.nn.relu(x)

    def batch_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        x = self.cast(x, "float32")
        y, _, _ = self._batch_norm(x, gamma, beta, axis=-1, epsilon=BN_EPSILON)
        return self.cast(y, None)

    def convolution(self, x: Any, w: Any, b: Any) -> Any:
        found = self.gt.nn.conv2d(self.operand(x), self.cast(w, None), padding="same")
        return found + self.cast(b, None)

    def max_pool(self, x: Any) -> Any:
        return self.gt.nn.max_pool2d(x, 2)

    def flatten(self, x: Any) -> Any:
        return self.gt.reshape(x, (x.shape[0], -1))

    def swap(self, x: Any, one: int, other: int) -> Any:
        return self.gt.swapaxes(x, one, other)

    def exp(self, x: Any) -> Any:
        return self.gt.exp(x)

    def gelu(self, x: Any) -> Any:
        return self.gt.nn.gelu(x)

    def layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        x = self.cast(x, "float32")
        y = self.gt.nn.layer_normalization(x, gamma, beta, epsilon=BN_EPSILON)
        return self.cast(y, None)

    def causal_attention(self, q: Any, k: Any, v: Any) -> Any:
        gt, (q, k, v) = self.gt, map(self.operand, (q, k, v))
        scores = q @ gt.swapaxes(k, -1, -2) / q.shape[-1] ** 0.5
        mask = gt.tril(gt.ones((q.shape[-2], k.shape[-2]), "bool"))
        return self.cast(gt.nn.softmax(gt.where(mask, scores, -float("inf"))), None) @ v

    def dropout(self, x: Any, rate: float) -> Any:
        return self.gt.nn.dropout(x, rate, self.generator)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        losses = self.gt.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
        return self.gt.mean(losses)

    def sigmoid_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.gt.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits)

    def lstm(self, x: Any, w: Any, b: Any, u: Any) -> Any:
        gt = self.gt
        u = self.cast(u, None)
        units = u.shape[0]
        h = c = gt.zeros_like(x[0, :, :1]) + gt.zeros((units,), dtype=x.dtype)
        given = gt.unstack(self.dense(x, w, b))
        if units not in self._cells:
            self._cells[units] = gt.layers.LSTMCell(units)
        for step in given:
            h, c = self._cells[units].next_states(step + self.operand(h) @ u, c)
        return h


class Torch:
    """PyTorch's functions. Kernels are as PyTorch has them, and images have channels first."""

    def __init__(self) -> None:
        import torch

        self.torch, self.f = torch, torch.nn.functional
        self.no_bias: Any = None

    def cast(self, x: Any, dtype: str | None) -> Any:
        return x.float() if dtype == "float32" else x  # autocast does the rest

    def weight(self, w: np.ndarray) -> np.ndarray:
        turned = w.transpose(3, 2, 0, 1) if w.ndim == 4 else w.T
        return np.ascontiguousarray(turned)

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return self.f.linear(x, w, b)

    def relu(self, x: Any) -> Any:
        return self.f.relu(x)

    def batch_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        return self.f.batch_norm(x, None, None, gamma, beta, training=True, eps=BN_EPSILON)

    def convolution(self, x: Any, w: Any, b: Any) -> Any:
        return self.f.conv2d(x, w, b, padding="same")

    def max_pool(self, x: Any) -> Any:
        return self.f.max_pool2d(x, 2)

    def flatten(self, x: Any) -> Any:
        return x.permute(0, 2, 3, 1).flatten(1)  # in the order of the others

    #: The axis of a kernel that meets the inputs.
    inputs_axis = 1

    def product(self, x: Any, w: Any) -> Any:
        return x @ w.T

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.torch.zeros(shape)

    def split(self, x: Any, parts: int) -> Any:
        return x.chunk(parts, -1)

    def swap(self, x: Any, one: int, other: int) -> Any:
        return x.transpose(one, other)

    def exp(self, x: Any) -> Any:
        return x.exp()

    def tanh(self, x: Any) -> Any:
        return x.tanh()

    def sigmoid(self, x: Any) -> Any:
        return x.sigmoid()

    def gelu(self, x: Any) -> Any:
        return self.f.gelu(x)

    def layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        return self.f.layer_norm(x, x.shape[-1:], gamma, beta, BN_EPSILON)

    def causal_attention(self, q: Any, k: Any, v: Any) -> Any:
        return self.f.scaled_dot_product_attention(q, k, v, is_causal=True)

    def dropout(self, x: Any, rate: float) -> Any:
        return self.f.dropout(x, rate)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.f.cross_entropy(logits, labels)

    def sigmoid_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.f.binary_cross_entropy_with_logits(logits, labels, reduction="none")

    def beside(self, w: Any, b: Any, u: Any) -> None:
        """Let an LSTM's weights lie beside each other, as cuDNN wants them."""
        torch = self.torch
        self.no_bias = torch.zeros_like(b, requires_grad=False)
        mode = torch.backends.cudnn.rnn.get_cudnn_mode("LSTM")
        sizes = (4, w.shape[1], mode, u.shape[1], 0, 1, False, False)
        with torch.no_grad():
            torch._cudnn_rnn_flatten_weight([w, u, b, self.no_bias], *sizes)

    def lstm(self, x: Any, w: Any, b: Any, u: Any) -> Any:
        zeros = x.new_zeros((1, x.shape[1], u.shape[1]), dtype=x.dtype)
        weights = [w, u, b, self.torch.zeros_like(b) if self.no_bias is None else self.no_bias]
        settings = (True, 1, 0.0, True, False, False)  # biases, layers, dropout, training, ...
        _, h, _ = self.torch._VF.lstm(x, (zeros, zeros), weights, *settings)
        return h[0]


class Jax:
    """JAX's functions."""

    def __init__(self, half: str | None) -> None:
        import jax

        self.jax, self.jnp, self.half = jax, jax.numpy, half
        self.key: Any = None  # of the random numbers of a step

    def cast(self, x: Any, dtype: str | None) -> Any:
        return x if self.half is None else x.astype(dtype or self.half)

    def dense(self, x: Any, w: Any, b: Any) -> Any:
        return x @ self.cast(w, None) + self.cast(b, None)

    def relu(self, x: Any) -> Any:
        return self.jax.nn.relu(x)

    def batch_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        x = self.cast(x, "float32")
        mean, var = x.mean(0), x.var(0)
        return self.cast((x - mean) * self.jax.lax.rsqrt(var + BN_EPSILON) * gamma + beta, None)

    def convolution(self, x: Any, w: Any, b: Any) -> Any:
        kinds = ("NHWC", "HWIO", "NHWC")
        convolve = self.jax.lax.conv_general_dilated
        return convolve(x, self.cast(w, None), (1, 1), "SAME", dimension_numbers=kinds) + self.cast(
            b, None
        )

    def max_pool(self, x: Any) -> Any:
        lax, window = self.jax.lax, (1, 2, 2, 1)
        return lax.reduce_window(x, -self.jnp.inf, lax.max, window, window, "VALID")

    def flatten(self, x: Any) -> Any:
        return x.reshape(x.shape[0], -1)

    #: The axis of a kernel that meets the inputs.
    inputs_axis = 0

    def product(self, x: Any, w: Any) -> Any:
        return x @ w

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return self.jnp.zeros(shape)

    def split(self, x: Any, parts: int) -> Any:
        return self.jnp.split(x, parts, axis=-1)

    def swap(self, x: Any, one: int, other: int) -> Any:
        return x.swapaxes(one, other)

    def exp(self, x: Any) -> Any:
        return self.jnp.exp(x)

    def tanh(self, x: Any) -> Any:
        return self.jnp.tanh(x)

    def sigmoid(self, x: Any) -> Any:
        return self.jax.nn.sigmoid(x)

    def gelu(self, x: Any) -> Any:
        return self.jax.nn.gelu(x, approximate=False)

    def layer_norm(self, x: Any, gamma: Any, beta: Any) -> Any:
        x = self.cast(x, "float32")
        mean, var = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return self.cast((x - mean) * self.jax.lax.rsqrt(var + BN_EPSILON) * gamma + beta, None)

    def causal_attention(self, q: Any, k: Any, v: Any) -> Any:
        jax, jnp = self.jax, self.jnp
        scores = self.cast(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, "float32")
        mask = jnp.tril(jnp.ones((q.shape[-2], k.shape[-2]), bool))
        return self.cast(jax.nn.softmax(jnp.where(mask, scores, -jnp.inf)), None) @ v

    def dropout(self, x: Any, rate: float) -> Any:
        keep = self.jax.random.bernoulli(self.key, 1 - rate, x.shape)
        return self.jnp.where(keep, x / (1 - rate), 0)

    def cross_entropy(self, logits: Any, labels: Any) -> Any:
        rows = self.jnp.arange(len(labels))
        return -self.jax.nn.log_softmax(logits)[rows, labels].mean()

    def sigmoid_cross_entropy(self, logits: Any, labels: Any) -> Any:
        return self.jax.nn.softplus(logits) - logits * labels

    def lstm(self, x: Any, w: Any, b: Any, u: Any) -> Any:
        jax, jnp = self.jax, self.jnp
        u = self.cast(u, None)

        def cell(carry: Any, step: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(step + h @ u, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        zeros = jnp.zeros((x.shape[1], u.shape[0]), x.dtype)
        (h, _), _ = jax.lax.scan(cell, (zeros, zeros), self.dense(x, w, b))
        return h
