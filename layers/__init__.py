"""Layers: modules with a forward pass, built at the first call. Names and defaults are Keras's."""

from __future__ import annotations

# for training, which imports this package as a whole
from ..core.extend import added_losses as added_losses
from ..core.extend import constrained as constrained
from ..core.extend import forward_pass as forward_pass
from ..core.extend import keep_mask as keep_mask
from ..core.extend import mask_of as mask_of
from ..core.extend import penalties as penalties
from ..core.extend import penalty as penalty
from ..public import publish
from . import (
    activations,
    attention,
    batch_norm,
    cloning,
    constraints,
    dropout,
    initializers,
    layer_norm,
    model,
    normalization,
    regularizers,
    sequential,
    shaping,
)
from .attention import *
from .base.calls import takes_training as takes_training
from .base.layer import Layer
from .base.symbolic import called as called
from .base.symbolic import placeholders_in as placeholders_in
from .base.weights import stateful_layers as stateful_layers
from .base.weights import states_continued as states_continued
from .base.weights import states_kept as states_kept
from .basic import advanced_activations, linear, simple
from .basic.advanced_activations import *
from .basic.linear import *
from .basic.simple import *
from .batch_norm import *
from .cloning import *
from .configs import find as find
from .configs import is_reference as is_reference
from .configs import made as made
from .configs import unknown_argument as unknown_argument
from .configs import with_own_arguments as with_own_arguments
from .convolutional import convolutions, resizing
from .convolutional.convolutions import *
from .convolutional.resizing import *
from .dropout import *
from .layer_norm import *
from .model import *
from .normalization import *
from .recurrent import cells, gated, rnn, wrappers
from .recurrent.cells import *
from .recurrent.gated import *
from .recurrent.rnn import *
from .recurrent.wrappers import *
from .sequential import *
from .shaping import *

# from the modules: mypy would not see names that a package in between star-imports
__all__ = ["Layer", "activations", "constraints", "initializers", "regularizers"]
__all__ += attention.__all__
__all__ += advanced_activations.__all__
__all__ += linear.__all__
__all__ += simple.__all__
__all__ += batch_norm.__all__
__all__ += cloning.__all__
__all__ += convolutions.__all__
__all__ += resizing.__all__
__all__ += dropout.__all__
__all__ += layer_norm.__all__
__all__ += model.__all__
__all__ += normalization.__all__
__all__ += cells.__all__
__all__ += gated.__all__
__all__ += rnn.__all__
__all__ += wrappers.__all__
__all__ += sequential.__all__
__all__ += shaping.__all__

publish(__name__)
