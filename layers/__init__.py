"""Layers: modules with a forward pass, built at the first call. Names and defaults are Keras's."""

from __future__ import annotations

from ..public import publish
from . import (
    activations,
    attention,
    basic,
    batch_norm,
    constraints,
    convolutional,
    dropout,
    initializers,
    layer_norm,
    model,
    normalization,
    recurrent,
    regularizers,
    sequential,
    shaping,
)
from .attention import *
from .base import Layer
from .base import added_losses as added_losses
from .base import constrained as constrained
from .base import forward_pass as forward_pass
from .base import keep_mask as keep_mask
from .base import mask_of as mask_of
from .base import penalties as penalties
from .base import penalty as penalty
from .base import stateful_layers as stateful_layers
from .base import states_continued as states_continued
from .base import states_kept as states_kept
from .base import takes_training as takes_training
from .basic import *
from .batch_norm import *

# for training, which imports this package as a whole
from .configs import find as find
from .configs import is_reference as is_reference
from .configs import unknown_argument as unknown_argument
from .convolutional import *
from .dropout import *
from .layer_norm import *
from .model import *
from .normalization import *
from .recurrent import *
from .sequential import *
from .shaping import *

__all__ = ["Layer", "activations", "constraints", "initializers", "regularizers"]
__all__ += attention.__all__
__all__ += basic.__all__
__all__ += batch_norm.__all__
__all__ += convolutional.__all__
__all__ += dropout.__all__
__all__ += layer_norm.__all__
__all__ += model.__all__
__all__ += normalization.__all__
__all__ += recurrent.__all__
__all__ += sequential.__all__
__all__ += shaping.__all__

publish(__name__)
