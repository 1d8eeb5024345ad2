"""The names that plugin authors need: import them from here."""

from .base.context import init_scope
from .base.spec import TensorSpec, broadcast_shapes
from .base.table import F, ops
from .errors import BackendUnavailable, PluginError
from .graphs.graph import Graph, Symbol
from .module import Module
from .ops.backend import Backend
from .ops.hookspecs import hookimpl
from .ops.op import NONDIFF, Op, register_array_type
from .ops.quick import BinaryOp, UnaryOp
from .tensors.indexing import decode_index

__all__ = [
    "NONDIFF",
    "Backend",
    "BackendUnavailable",
    "BinaryOp",
    "F",
    "Graph",
    "Module",
    "Op",
    "PluginError",
    "Symbol",
    "TensorSpec",
    "UnaryOp",
    "broadcast_shapes",
    "decode_index",
    "hookimpl",
    "init_scope",
    "ops",
    "register_array_type",
]
