"""What neural networks add: activations, losses, convolution, pooling, normalisation."""

from __future__ import annotations

from ..plugins.ops.elementwise.trigonometry import tanh
from ..plugins.ops.network.activations import (
    gelu,
    hard_sigmoid,
    hard_silu,
    hard_tanh,
    log_sigmoid,
    mish,
    selu,
    softsign,
)
from ..plugins.ops.network.blocks import (
    dropout,
    embedding_lookup,
    group_normalization,
    layer_normalization,
    segment_sum,
)
from ..plugins.ops.network.convolution import conv, conv1d, conv2d, conv_transpose, depthwise_conv
from ..plugins.ops.network.images import (
    avg_pool1d,
    avg_pool2d,
    conv1d_transpose,
    conv2d_transpose,
    max_pool1d,
    max_pool2d,
)
from ..plugins.ops.network.losses import (
    binary_cross_entropy,
    categorical_cross_entropy,
    cosine_similarity,
    hinge,
    huber,
    kl_divergence,
    sigmoid_cross_entropy_with_logits,
)
from ..plugins.ops.network.nn import (
    batch_normalization,
    clip_by_norm,
    elu,
    leaky_relu,
    log_softmax,
    one_hot,
    relu,
    relu6,
    sigmoid,
    silu,
    softmax,
    softmax_cross_entropy_with_logits,
    softplus,
    sparse_softmax_cross_entropy_with_logits,
)
from ..plugins.ops.network.pooling import avg_pool, max_pool
from ..plugins.ops.network.shrinkage import (
    celu,
    glu,
    hard_shrink,
    soft_shrink,
    squareplus,
    tanh_shrink,
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
