"""Functions of neural networks: activations, losses, convolution, pooling, normalisation."""

from __future__ import annotations

# the whole package before its parts: threads that start with different parts would deadlock
from ..plugins import ops  # noqa: F401
from ..plugins.ops.elementwise.trigonometry import tanh as tanh
from ..plugins.ops.linalg.norms import clip_by_norm as clip_by_norm
from ..plugins.ops.network.convolution import conv as conv
from ..plugins.ops.network.convolution import conv1d as conv1d
from ..plugins.ops.network.convolution import conv2d as conv2d
from ..plugins.ops.network.convolution import depthwise_conv as depthwise_conv
from ..plugins.ops.network.embeddings import embedding_lookup as embedding_lookup
from ..plugins.ops.network.embeddings import one_hot as one_hot
from ..plugins.ops.network.embeddings import segment_sum as segment_sum
from ..plugins.ops.network.gated_activations import gelu as gelu
from ..plugins.ops.network.gated_activations import glu as glu
from ..plugins.ops.network.gated_activations import hard_silu as hard_silu
from ..plugins.ops.network.gated_activations import mish as mish
from ..plugins.ops.network.gated_activations import silu as silu
from ..plugins.ops.network.losses import binary_cross_entropy as binary_cross_entropy
from ..plugins.ops.network.losses import categorical_cross_entropy as categorical_cross_entropy
from ..plugins.ops.network.losses import cosine_similarity as cosine_similarity
from ..plugins.ops.network.losses import hinge as hinge
from ..plugins.ops.network.losses import huber as huber
from ..plugins.ops.network.losses import kl_divergence as kl_divergence
from ..plugins.ops.network.losses import (
    sigmoid_cross_entropy_with_logits as sigmoid_cross_entropy_with_logits,
)
from ..plugins.ops.network.normalization import batch_normalization as batch_normalization
from ..plugins.ops.network.normalization import dropout as dropout
from ..plugins.ops.network.normalization import group_normalization as group_normalization
from ..plugins.ops.network.normalization import layer_normalization as layer_normalization
from ..plugins.ops.network.pooling import avg_pool as avg_pool
from ..plugins.ops.network.pooling import avg_pool1d as avg_pool1d
from ..plugins.ops.network.pooling import avg_pool2d as avg_pool2d
from ..plugins.ops.network.pooling import max_pool as max_pool
from ..plugins.ops.network.pooling import max_pool1d as max_pool1d
from ..plugins.ops.network.pooling import max_pool2d as max_pool2d
from ..plugins.ops.network.rectifiers import celu as celu
from ..plugins.ops.network.rectifiers import elu as elu
from ..plugins.ops.network.rectifiers import hard_shrink as hard_shrink
from ..plugins.ops.network.rectifiers import leaky_relu as leaky_relu
from ..plugins.ops.network.rectifiers import relu as relu
from ..plugins.ops.network.rectifiers import relu6 as relu6
from ..plugins.ops.network.rectifiers import selu as selu
from ..plugins.ops.network.rectifiers import soft_shrink as soft_shrink
from ..plugins.ops.network.rectifiers import softplus as softplus
from ..plugins.ops.network.rectifiers import squareplus as squareplus
from ..plugins.ops.network.rectifiers import tanh_shrink as tanh_shrink
from ..plugins.ops.network.sampling import log_uniform_candidates as log_uniform_candidates
from ..plugins.ops.network.sampling import nce_loss as nce_loss
from ..plugins.ops.network.sampling import sampled_softmax_loss as sampled_softmax_loss
from ..plugins.ops.network.sigmoids import hard_sigmoid as hard_sigmoid
from ..plugins.ops.network.sigmoids import hard_tanh as hard_tanh
from ..plugins.ops.network.sigmoids import log_sigmoid as log_sigmoid
from ..plugins.ops.network.sigmoids import log_softmax as log_softmax
from ..plugins.ops.network.sigmoids import sigmoid as sigmoid
from ..plugins.ops.network.sigmoids import softmax as softmax
from ..plugins.ops.network.sigmoids import softsign as softsign
from ..plugins.ops.network.softmax_cross_entropy import (
    softmax_cross_entropy_with_logits as softmax_cross_entropy_with_logits,
)
from ..plugins.ops.network.softmax_cross_entropy import (
    sparse_softmax_cross_entropy_with_logits as sparse_softmax_cross_entropy_with_logits,
)
from ..plugins.ops.network.transposed_convolution import conv1d_transpose as conv1d_transpose
from ..plugins.ops.network.transposed_convolution import conv2d_transpose as conv2d_transpose
from ..plugins.ops.network.transposed_convolution import conv_transpose as conv_transpose
from ..public import publish

publish(__name__)
