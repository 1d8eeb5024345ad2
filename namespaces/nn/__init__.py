"""Functions of neural networks: activations, losses, convolution, pooling, normalisation."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.elementwise.trigonometry import tanh
from ..plugins.ops.linalg.norms import clip_by_norm
from ..plugins.ops.network.convolution import conv, conv1d, conv2d, depthwise_conv
from ..plugins.ops.network.embeddings import embedding_lookup, one_hot, segment_sum
from ..plugins.ops.network.gated_activations import gelu, glu, hard_silu, mish, silu
from ..plugins.ops.network.losses import (
    binary_cross_entropy,
    categorical_cross_entropy,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    sigmoid_cross_entropy_with_logits,
)
from ..plugins.ops.network.normalization import (
    batch_normalization,
    dropout,
    group_normalization,
    layer_normalization,
)
from ..plugins.ops.network.pooling import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    max_pool,
    max_pool1d,
    max_pool2d,
)
from ..plugins.ops.network.rectifiers import (
    celu,
    elu,
    hard_shrink,
    leaky_relu,
    relu,
    relu6,
    selu,
    soft_shrink,
    softplus,
    squareplus,
    tanh_shrink,
)
from ..plugins.ops.network.sigmoids import (
    hard_sigmoid,
    hard_tanh,
    log_sigmoid,
    log_softmax,
    sigmoid,
    softmax,
    softsign,
)
from ..plugins.ops.network.softmax_cross_entropy import (
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
)
from ..plugins.ops.network.transposed_convolution import (
    conv1d_transpose,
    conv2d_transpose,
    conv_transpose,
)
from ..public import publish

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "batch_normalization",
    "binary_cross_entropy",
    "categorical_cross_entropy",
    "celu",
    "clip_by_norm",
    "conv",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv_transpose",
    "cosine_similarity",
    "depthwise_conv",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "glu",
    "group_normalization",
    "hard_shrink",
    "hard_sigmoid",
    "hard_silu",
    "hard_tanh",
    "hinge",
    "huber",
    "kl_divergence",
    "layer_normalization",
    "leaky_relu",
    "log_sigmoid",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "segment_sum",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "soft_shrink",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "squareplus",
    "tanh",
    "tanh_shrink",
]

publish(__name__)
