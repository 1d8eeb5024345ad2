"""The names that plugin authors need: import them from here."""

from .backend import (
    Backend,
    backend,
    backend_of,
    check_same_backend,
    current_backend,
    current_device,
    to_numpy,
)
from .convert import as_tensor, constant
from .custom import custom_gradient
from .dtypes import as_dtype, default_dtype
from .errors import BackendUnavailable, PluginError
from .function import Function
from .graph import Graph, Symbol
from .hookspecs import hookimpl
from .indexing import decode_index
from .module import Module, saved_classes, snake_case
from .op import NONDIFF, Op, is_transformed, register_array_type
from .quick import BinaryOp, UnaryOp
from .registry import PluginInfo, Registry, registry
from .spec import TensorSpec, broadcast_shapes
from .state import active_graph, init_scope
from .table import F, ops
from .tape import GradientTape
from .tensor import Tensor
from .tree import flatten, map_structure, pack_like, structure
from .variable import Variable
from .vmap import key_for_examples

__all__ = [
    "NONDIFF",
    "Backend",
    "BackendUnavailable",
    "BinaryOp",
    "F",
    "Function",
    "GradientTape",
    "Graph",
    "Module",
    "Op",
    "PluginError",
    "PluginInfo",
    "Registry",
    "Symbol",
    "Tensor",
    "TensorSpec",
    "UnaryOp",
    "Variable",
    "active_graph",
    "as_dtype",
    "as_tensor",
    "backend",
    "backend_of",
    "broadcast_shapes",
    "check_same_backend",
    "constant",
    "current_backend",
    "current_device",
    "custom_gradient",
    "decode_index",
    "default_dtype",
    "flatten",
    "hookimpl",
    "init_scope",
    "is_transformed",
    "key_for_examples",
    "map_structure",
    "ops",
    "pack_like",
    "register_array_type",
    "registry",
    "saved_classes",
    "snake_case",
    "structure",
    "to_numpy",
]
