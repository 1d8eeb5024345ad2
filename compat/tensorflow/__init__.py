"""TensorFlow's names over gradtape: ``import gradtape.compat.tensorflow as tf``.

What has the same arguments in both is the same object, ``tf.sin is gradtape.sin``; the rest adapts
names and defaults. A name that is not here raises ``AttributeError``, which tells the nearest one.
docs/migration.md lists all names, and the differences that are meant.
"""

from __future__ import annotations

from ...layers import Layer as _layers_whole  # noqa: F401 - before a part of them is imported
from ...training import losses as _training_whole  # noqa: F401
from . import dtypes, keras, linalg, math, nest, nn, random, saved_model
from .dtypes import *
from .dtypes import __all__ as _dtypes
from .keras import initializers, losses, metrics, optimizers
from .names import lookup, namespace
from .tensors import *
from .tensors import __all__ as _tensors
from .toplevel import *
from .toplevel import __all__ as _toplevel

__version__ = "2.21.0+gradtape"
newaxis = None
autodiff = namespace("tf.autodiff", "Forward mode.")
signal = namespace("tf.signal", "Fourier transforms over the last axes.")

__all__ = [
    *_dtypes,
    *_tensors,
    *_toplevel,
    "autodiff",
    "dtypes",
    "initializers",
    "keras",
    "linalg",
    "losses",
    "math",
    "metrics",
    "nest",
    "newaxis",
    "nn",
    "optimizers",
    "random",
    "saved_model",
    "signal",
]

__getattr__ = lookup(__name__)
