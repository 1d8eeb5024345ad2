"""TensorFlow's names over gradtape: ``import gradtape.compat.tensorflow as tf``.

A function with the same arguments in both is the same object: ``tf.sin is gradtape.sin``. Others
adapt names and defaults. A missing name raises an ``AttributeError`` that has the nearest one.
docs/migration.md lists all names and the intended differences.

Importing this module gives the ``shape`` of every tensor and variable in the process TensorFlow's
methods (``as_list()`` and others), including those that native code makes. It is still a tuple;
reading it takes about 0.1 µs longer.
"""

from __future__ import annotations

import sys
from typing import Any

from ...layers import Layer as _layers_whole
from ...training import losses as _training_whole
from . import dtypes, keras, linalg, math, nn, random, runs, values
from .arrays import *
from .arrays import __all__ as _arrays
from .dtypes import *
from .dtypes import __all__ as _dtypes
from .functions import *
from .functions import __all__ as _functions
from .keras import initializers, losses, metrics, optimizers
from .names import complete as _complete
from .names import lookup as _lookup
from .tensors import *
from .tensors import __all__ as _tensors

__version__ = "2.21.0+gradtape"
newaxis = None
_complete(runs, values)
_tables_only: Any = sys.modules[__name__]
_tables_only.version.VERSION = __version__

__all__ = (
    "dtypes initializers keras linalg losses math metrics nest newaxis nn optimizers "
    "random saved_model"
).split()
__all__ += [*_arrays, *_dtypes, *_functions, *_tensors]

__getattr__ = _lookup(__name__)
