"""The names that plugin authors need: import them from here."""

from .backend import Backend
from .errors import BackendUnavailable, PluginError
from .graph import Graph, Symbol
from .hookspecs import hookimpl
from .indexing import decode_index
from .module import Module
from .op import NONDIFF, Op, register_array_type
from .quick import BinaryOp, UnaryOp
from .spec import TensorSpec, broadcast_shapes
from .state import init_scope, tracing_into
from .table import F, ops
from .tree import flatten, map_structure, pack_like, structure

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
    "flatten",
    "hookimpl",
    "init_scope",
    "map_structure",
    "ops",
    "pack_like",
    "register_array_type",
    "structure",
    "tracing_into",
]
