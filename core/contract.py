"""What `gradtape.plugin` offers to authors of plugins, and keeps stable.

It is apart from ``core.extend``, which gradtape's own packages use and which changes with them.
``docs/plugins/living-together.md`` says what stays the same, and for how long.

A name that is imported as itself is one that the module offers, for type checkers too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..public import publish, publish_rest
from .base.observers import begin_step as begin_step
from .base.observers import end_step as end_step
from .base.sizes import as_shape as as_shape
from .base.sizes import as_size as as_size
from .base.sizes import broadcast_shapes as broadcast_shapes
from .base.sizes import known_size as known_size
from .base.sizes import largest as largest
from .base.sizes import same_shape as same_shape
from .base.sizes import same_size as same_size
from .base.sizes import shapes_differ as shapes_differ
from .base.sizes import sizes_differ as sizes_differ
from .base.sizes import smallest as smallest
from .base.table import F as F
from .base.table import ops as ops
from .base.user_code import user_line as user_line
from .base.user_code import warn_user as warn_user
from .batches.batched import as_batched as as_batched
from .batches.batched import rank_of as rank_of
from .errors import BackendUnavailable as BackendUnavailable
from .errors import PluginError as PluginError
from .ops.backend import Backend as Backend
from .ops.backend import Sender as Sender
from .ops.backend import Stopwatch as Stopwatch
from .ops.collectives import Communicator as Communicator
from .ops.collectives import Engine as Engine
from .ops.dispatch import backend_of as backend_of
from .ops.dispatch import to_numpy as to_numpy
from .ops.launching import Launcher as Launcher
from .ops.launching import Place as Place
from .ops.launching import place as place
from .ops.rule import NONDIFF as NONDIFF
from .registry.hookspecs import hookimpl as hookimpl
from .registry.host import registry as registry
from .registry.info import API as API
from .registry.info import PluginInfo as PluginInfo
from .tensors.assignment import set_arrays as set_arrays
from .tensors.convert import as_tensor as as_tensor
from .tensors.op import Op as Op

# users find these names in the module of this name, which may not be imported yet
publish(__name__, __name__.replace("core.contract", "plugin"))
publish_rest(__name__, f"{__package__}.contract_later")

if TYPE_CHECKING:
    from .contract_later import *  # noqa: F403
