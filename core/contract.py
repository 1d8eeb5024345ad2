"""What `gradtape.plugin` offers to authors of plugins, and keeps stable.

It is apart from ``core.extend``, which gradtape's own packages use and which changes with them.
``docs/plugins/living-together.md`` says what stays the same, and for how long.
"""

from __future__ import annotations

from ..public import publish
from .base.observers import begin_step, end_step
from .base.sizes import (
    as_shape,
    as_size,
    broadcast_shapes,
    known_size,
    largest,
    same_shape,
    same_size,
    shapes_differ,
    sizes_differ,
    smallest,
)
from .base.table import PACKAGE, F, ops
from .base.user_code import user_line, warn_user
from .batches.batched import as_batched, rank_of
from .errors import BackendUnavailable, PluginError
from .graphs.graph import Graph
from .graphs.nodes import Node, Read, Symbol
from .graphs.optimize import local_constants
from .graphs.plain import argument_of, by_backend, compiling, default, kernel_of, plain
from .module.module import Module, saved_classes
from .ops.backend import Backend, Sender, Stopwatch
from .ops.collectives import Communicator, Engine
from .ops.dispatch import backend_of, to_numpy
from .ops.launching import Launcher, Place, place
from .ops.rule import NONDIFF
from .registry.hookspecs import hookimpl
from .registry.host import registry
from .registry.info import API, PluginInfo
from .tensors.assignment import set_arrays
from .tensors.convert import as_tensor
from .tensors.op import Op

__all__ = [
    "API",
    "NONDIFF",
    "Backend",
    "BackendUnavailable",
    "Communicator",
    "Engine",
    "F",
    "Graph",
    "Launcher",
    "Module",
    "Node",
    "Op",
    "Place",
    "PluginError",
    "PluginInfo",
    "Read",
    "Sender",
    "Stopwatch",
    "Symbol",
    "argument_of",
    "as_batched",
    "as_shape",
    "as_size",
    "as_tensor",
    "backend_of",
    "begin_step",
    "broadcast_shapes",
    "by_backend",
    "compiling",
    "default",
    "end_step",
    "hookimpl",
    "kernel_of",
    "known_size",
    "largest",
    "local_constants",
    "ops",
    "place",
    "plain",
    "rank_of",
    "registry",
    "same_shape",
    "same_size",
    "saved_classes",
    "set_arrays",
    "shapes_differ",
    "sizes_differ",
    "smallest",
    "to_numpy",
    "user_line",
    "warn_user",
]

# users find these names in the module of this name, which may not be imported yet
publish(__name__, f"{PACKAGE}.plugin")
