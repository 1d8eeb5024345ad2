"""``tf.nn``: activations, cross-entropies and normalisation; for convolutions, see ``images``."""

from __future__ import annotations

from typing import Any

import gradtape

from ...core.extend import as_size, sizes_differ
from .dtypes import cast
from .names import adapts, lookup
from .random import source
from .tensors import convert_to_tensor, plain

__all__ = (
    "bias_add dropout embedding_lookup silu swish weighted_cross_entropy_with_logits"
).split()


# -- activations -----------------------------------------------------------------------------------


@adapts("nn.silu")
def silu(features: Any, beta: Any = 1.0) -> Any:
    """Return ``x * sigmoid(beta * x)``."""
    x = convert_to_tensor(features)
    if type(beta) in (int, float) and beta == 1.0:
        return gradtape.nn.silu(x)
    return x * gradtape.nn.sigmoid(beta * x)


swish = silu


# -- losses ----------------------------------------------------------------------------------------


@adapts("nn.sigmoid_cross_entropy_with_logits")
def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> Any:
    """Return sigmoid cross-entropies with positive labels weighted by ``pos_weight``."""
    logits = convert_to_tensor(logits)
    labels = like(labels, logits)
    weight = 1.0 + (pos_weight - 1.0) * labels
    return (1.0 - labels) * logits + weight * gradtape.nn.softplus(-logits)


def like(value: Any, beside: Any) -> Any:
    """Return ``value`` as a tensor, in the dtype of ``beside`` if it has none or an integer one."""
    value = convert_to_tensor(value, None if hasattr(value, "dtype") else beside.dtype)
    return cast(value, beside.dtype) if value.dtype.kind in "biu" else value


# -- normalisation ---------------------------------------------------------------------------------


@adapts("add")
def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> Any:
    """Return ``value + bias``, a vector along the channels."""
    value, bias = convert_to_tensor(value), convert_to_tensor(bias)
    first = data_format is not None and data_format.startswith("NC")
    shape = value.shape
    channels = None if shape is None else shape[1 if first else -1]
    if bias.ndim != 1 or sizes_differ(bias.shape[0], channels):
        raise ValueError(f"bias_add: a bias of shape {bias.shape} does not fit the value {shape}")
    if first:
        bias = gradtape.reshape(bias, (-1,) + (1,) * (len(shape) - 2))
    return value + bias


@adapts("nn.dropout")
def dropout(
    x: Any, rate: float, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Any:
    """Return ``x`` with elements set to 0 with probability ``rate``, and the others scaled up.

    The random mask has the shape ``noise_shape``, and is broadcast.
    """
    x = convert_to_tensor(x)
    drawn = None if seed is None else source(seed)
    if noise_shape is None:
        return gradtape.nn.dropout(x, rate, drawn)
    given = plain(noise_shape)
    shape = [n if want is None else as_size(want, "dropout") for n, want in zip(x.shape, given)]
    chosen = gradtape.nn.dropout(gradtape.ones(shape, x.dtype), rate, drawn)
    return x * chosen


@adapts("nn.embedding_lookup")
def embedding_lookup(
    params: Any, ids: Any, max_norm: float | None = None, name: str | None = None
) -> Any:
    """Return rows of a table by index, scaled down to a norm of at most ``max_norm``."""
    rows = gradtape.nn.embedding_lookup(convert_to_tensor(params), convert_to_tensor(ids))
    if max_norm is None:
        return rows
    own = tuple(range(convert_to_tensor(ids).ndim, rows.ndim))
    return gradtape.clip_by_norm(rows, max_norm, own)


__getattr__ = lookup(__name__)
