"""TensorFlow's names over gradtape: ``import gradtape.compat.tensorflow as tf``.

What has the same arguments in both is the same object, ``tf.sin is gradtape.sin``; the rest adapts
names and defaults. A name that is not here raises ``AttributeError``, which tells the nearest one.
docs/migration.md lists all names, and the differences that are meant.
"""

from __future__ import annotations

from ...layers import Layer as _layers_whole
from ...training import losses as _training_whole
from . import dtypes, images, keras, linalg, math, nest, nn, random, saved_model
from .dtypes import *
from .dtypes import __all__ as _dtypes
from .keras import initializers, losses, metrics, optimizers
from .names import lookup as _lookup
from .names import namespace as _namespace
from .spaces import autograph, config, data, debugging, sparse, strings, summary, train
from .tensors import *
from .tensors import __all__ as _tensors
from .toplevel import *
from .toplevel import __all__ as _toplevel

__version__ = "2.21.0+gradtape"
newaxis = None
autodiff = _namespace("tf.autodiff", "Forward mode.")
autograph = _namespace("tf.autograph", autograph)
autograph.experimental = _namespace("tf.autograph.experimental", "More of ``tf.autograph``.")
config = _namespace("tf.config", config)
config.experimental = _namespace("tf.config.experimental", "More of ``tf.config``.")
config.optimizer = _namespace("tf.config.optimizer", "What tunes TensorFlow's graphs.")
config.threading = _namespace("tf.config.threading", "How many threads TensorFlow has.")
data = _namespace("tf.data", data)
data.experimental = _namespace("tf.data.experimental", "More of ``tf.data``.")
debugging = _namespace("tf.debugging", debugging)
errors = _namespace("tf.errors", "What raises: Python's errors.")
experimental = _namespace("tf.experimental", "More of ``tf``.")
image = _namespace("tf.image", "Images with their channels last.")
io = _namespace("tf.io", "Files.")
sparse = _namespace("tf.sparse", sparse)
strings = _namespace("tf.strings", strings)
summary = _namespace("tf.summary", summary)
sysconfig = _namespace("tf.sysconfig", "How TensorFlow was built.")
test = _namespace("tf.test", "Which devices there are.")
train = _namespace("tf.train", train)
version = _namespace("tf.version", "Of what this has the names.")
version.VERSION, version.GIT_VERSION, version.COMPILER_VERSION = __version__, __version__, ""
random.experimental = _namespace("tf.random.experimental", "More of ``tf.random``.")
signal = _namespace("tf.signal", "Fourier transforms over the last axes.")

__all__ = (
    "autodiff dtypes initializers keras linalg losses math metrics nest newaxis nn optimizers "
    "random saved_model signal"
).split()
__all__ += [*_dtypes, *_tensors, *_toplevel]

__getattr__ = _lookup(__name__)
