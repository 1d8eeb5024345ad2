"""TensorFlow's names over gradtape: ``import gradtape.compat.tensorflow as tf``.

What has the same arguments in both is the same object, ``tf.sin is gradtape.sin``; the rest adapts
names and defaults. A name that is not here raises ``AttributeError``, which tells the nearest one.
docs/migration.md lists all names, and the differences that are meant.
"""

from __future__ import annotations

from ...layers import Layer as _layers_whole  # noqa: F401 - before a part of them is imported
from ...training import losses as _training_whole  # noqa: F401
from . import autodiff, dtypes, keras, linalg, math, nest, nn, random, saved_model, signal
from .argument_names import einsum, identity, pow, round, stop_gradient
from .dtypes import *
from .dtypes import __all__ as _dtypes
from .keras import initializers, losses, metrics, optimizers
from .linalg import eye, matmul, norm, tensordot
from .math import (
    add_n,
    argmax,
    argmin,
    cumsum,
    reduce_all,
    reduce_any,
    reduce_logsumexp,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_prod,
    reduce_sum,
    scalar_mul,
)
from .names import lookup
from .tensors import *
from .tensors import __all__ as _tensors
from .toplevel import *
from .toplevel import __all__ as _toplevel

newaxis = None

__all__ = [
    *_dtypes,
    *_tensors,
    *_toplevel,
    "add_n",
    "argmax",
    "argmin",
    "autodiff",
    "cumsum",
    "dtypes",
    "einsum",
    "eye",
    "identity",
    "initializers",
    "keras",
    "linalg",
    "losses",
    "math",
    "matmul",
    "metrics",
    "nest",
    "newaxis",
    "nn",
    "norm",
    "optimizers",
    "pow",
    "random",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "round",
    "saved_model",
    "scalar_mul",
    "signal",
    "stop_gradient",
    "tensordot",
]

__getattr__ = lookup(__name__)
