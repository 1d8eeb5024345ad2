"""Layers: modules with a forward pass, built at their first call. Names and defaults are Keras'."""

from __future__ import annotations

from ..public import publish
from . import (
    activations,
    advanced_activations,
    attention,
    batch_norm,
    convolutional,
    dense,
    dropout,
    einsum_dense,
    embedding,
    initializers,
    layer,
    merging,
    model,
    normalization,
    recurrent,
    reshaping,
    sequential,
    simple,
)
from .advanced_activations import *
from .attention import *
from .batch_norm import *
from .convolutional import *
from .dense import *
from .dropout import *
from .einsum_dense import *
from .embedding import *
from .layer import *
from .merging import *
from .model import *
from .normalization import *
from .recurrent import *
from .reshaping import *
from .sequential import *
from .simple import *

__all__ = ["activations", "initializers"]
__all__ += advanced_activations.__all__
__all__ += attention.__all__
__all__ += batch_norm.__all__
__all__ += convolutional.__all__
__all__ += dense.__all__
__all__ += dropout.__all__
__all__ += einsum_dense.__all__
__all__ += embedding.__all__
__all__ += layer.__all__
__all__ += merging.__all__
__all__ += model.__all__
__all__ += normalization.__all__
__all__ += recurrent.__all__
__all__ += reshaping.__all__
__all__ += sequential.__all__
__all__ += simple.__all__

publish(__name__)
