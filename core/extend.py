"""The engine's interface for gradtape's own packages: ops, layers, training, saving, ...

Errors are in ``core.errors``. Code outside ``core`` imports only from these two modules. The names
here change with the packages that use them: other distributions import ``gradtape.plugin``.
"""

from __future__ import annotations

from ..hints import hinted
from ..public import publish
from .base.context import (
    active_graph,
    active_tapes,
    calling_in,
    converting,
    init_scope,
    inlining,
    is_noted,
    loop_limit,
    meant_for,
    muted,
    muting,
    note_answer,
    recording_to,
    reducing,
    setting_up,
    tracing_into,
)
from .base.dtypes import (
    SCALARS,
    as_dtype,
    default_dtype,
    is_differentiable,
    kind_of,
    numpy_dtype,
    refuse_bfloat16,
)
from .base.generations import MADE
from .base.handle import next_id
from .base.holders import COUNTS, Kept, WeakIdentityDict
from .base.limits import deriving, tell_lacking
from .base.operators import BINARY, COMPARISONS, UNARY, ArrayOperators
from .base.precision import (
    CASTING,
    as_policy,
    computing,
    computing_in,
    in_precision,
)

# their public names are those of `gradtape.mixed_precision`
from .base.precision import Policy as Policy
from .base.precision import policy as policy
from .base.recorder import Everything, Recorder
from .base.sizes import (
    Dim,
    Formula,
    Open,
    Shape,
    Size,
    agreed,
    alone,
    apart,
    as_shape,
    as_size,
    blunt,
    broadcast_shapes,
    dims_of,
    evaluated,
    exact_quotient,
    holds,
    is_open,
    known_size,
    largest,
    lowered,
    same_shape,
    same_size,
    shapes_differ,
    sizes_differ,
    smallest,
    unsure,
)
from .base.spec import TensorSpec, describe
from .base.table import F, face, functions, late, late_entry, ops, services
from .base.tree import flatten, map_structure, outline, pack_like, paths, structure
from .base.unknown import is_users_call, line_of, not_known, user_line, warn_user
from .base.watcher import Watcher, begin_step, end_step, stage
from .batches.batched import (
    Batched,
    Shared,
    as_batched,
    has_level,
    rank_of,
    row_of,
    seen_rows,
)
from .batches.boundary import check_randomness, in_words, key_for_examples, leave
from .contract import API
from .errors import BackendUnavailable, PluginError
from .functions.branch import Branch, holding, joined, trace_branch
from .functions.concrete import ConcreteFunction, Output, RestoredFunction
from .functions.custom import custom_gradient
from .functions.fitting import are_several, as_inputs, held_to
from .functions.function import STORE, Function, function
from .functions.halves import halved
from .functions.program import Program, batched_graph
from .functions.tracing import numpy_random_state
from .graphs.constants import local_constants
from .graphs.executors import compiled, executor, telling
from .graphs.folding import folded
from .graphs.graph import Graph
from .graphs.lifting import lifted
from .graphs.nodes import (
    BeyondOrder,
    CustomGradient,
    Node,
    NotSaved,
    Read,
    Refusal,
    SharedRule,
    Symbol,
    Written,
    nodes_within,
)
from .graphs.optimize import forward_only, joined_pulls
from .graphs.plain import (
    argument_of,
    by_backend,
    compiling,
    default,
    kernel_of,
    node_by_node,
    plain,
)
from .graphs.replay import replay, run_for_meant
from .graphs.rules import StoredRule, trace_rule
from .graphs.run_shapes import shape_in_run
from .module.added import (
    ADDED,
    IN_TRACES,
    RULED,
    RULES,
    add_to_loss,
    added_losses,
    apply_constraints,
    collecting,
    constrained,
    forget,
    forward_pass,
    keep_adding,
    keep_mask,
    keeping_added,
    losses_of,
    mask_of,
    passing,
    penalties,
    penalty,
    ruled_weights,
)
from .module.calls import call_replaced
from .module.families import complete_docstring, summary_of
from .module.freezing import freeze, frozen_variables, is_frozen
from .module.hidden import is_code, slots_of, untracked, warn_of_hidden
from .module.module import Module, saved_classes, snake_case
from .module.summary import is_unbuilt, lacks_weights, parameters, untrained_arrays
from .module.told import told
from .ops.backends.backend import Backend
from .ops.backends.owners import backend_of, check_same_backend, scope_of, settled, to_numpy
from .ops.backends.promotion import promoting
from .ops.backends.selection import backend, current_backend, current_device
from .ops.backends.sender import Sender
from .ops.backends.stopwatch import Stopwatch
from .ops.collectives import (
    BatchRows,
    Communicator,
    Engine,
    Wish,
    as_group_of_one,
    as_one_program,
    batch_rows,
    check_by_rank,
    communicator,
    compared,
    connect_to,
    ranks_in_words,
    wish,
    without_examples,
)
from .ops.collectives import agreed as collectives_agreed
from .ops.collectives import told as told_by_ranks
from .ops.dispatch import ScalarTable, is_transformed, register_array_type
from .ops.host_kernels import runs_on_host
from .ops.launching import PLACE, TRAINING, Launcher, Place, place
from .ops.results import FirstRun, check_specs
from .ops.rule import NONDIFF, Composed
from .ops.watching import watching
from .registry.hooks import near_names
from .registry.hookspecs import hookimpl
from .registry.host import HOST, registry
from .registry.info import PluginInfo
from .registry.kinds import NAMED
from .registry.loading import raise_problems, raised
from .registry.managing import register_plugin, unregister_plugin
from .registry.registry import Registry
from .registry.settings import DISABLE, MODULES, VARIABLES, is_strict, listed, reporting
from .registry.versions import means_the_same
from .tape.tape import GradientTape
from .tensors.convert import (
    among,
    as_tensor,
    beside,
    beside_tensors,
    check_held,
    constant,
    floats,
    host_array,
    own_array,
    with_each_other,
    with_others,
)
from .tensors.held import Held
from .tensors.indexing import decode_index
from .tensors.notebooks import Text
from .tensors.op import Op
from .tensors.quick import BinaryOp, UnaryOp
from .tensors.several import exclusive, put_away, put_back, set_arrays
from .tensors.stream import Stream
from .tensors.tensor import Operators, Tensor
from .tensors.variable import Pending, Variable
from .transforms.forward import ForwardAccumulator
from .transforms.vmap import vmap

__all__ = [
    "ADDED",
    "API",
    "BINARY",
    "CASTING",
    "COMPARISONS",
    "COUNTS",
    "DISABLE",
    "HOST",
    "IN_TRACES",
    "MADE",
    "MODULES",
    "NAMED",
    "NONDIFF",
    "PLACE",
    "RULED",
    "RULES",
    "SCALARS",
    "STORE",
    "TRAINING",
    "UNARY",
    "VARIABLES",
    "ArrayOperators",
    "Backend",
    "BackendUnavailable",
    "BatchRows",
    "Batched",
    "BeyondOrder",
    "BinaryOp",
    "Branch",
    "Communicator",
    "Composed",
    "ConcreteFunction",
    "CustomGradient",
    "Dim",
    "Engine",
    "Everything",
    "F",
    "FirstRun",
    "Formula",
    "ForwardAccumulator",
    "Function",
    "GradientTape",
    "Graph",
    "Held",
    "Kept",
    "Launcher",
    "Module",
    "Node",
    "NotSaved",
    "Op",
    "Open",
    "Operators",
    "Output",
    "Pending",
    "Place",
    "PluginError",
    "PluginInfo",
    "Program",
    "Read",
    "Recorder",
    "Refusal",
    "Registry",
    "RestoredFunction",
    "ScalarTable",
    "Sender",
    "Shape",
    "Shared",
    "SharedRule",
    "Size",
    "Stopwatch",
    "StoredRule",
    "Stream",
    "Symbol",
    "Tensor",
    "TensorSpec",
    "Text",
    "UnaryOp",
    "Variable",
    "Watcher",
    "WeakIdentityDict",
    "Wish",
    "Written",
    "active_graph",
    "active_tapes",
    "add_to_loss",
    "added_losses",
    "agreed",
    "alone",
    "among",
    "apart",
    "apply_constraints",
    "are_several",
    "argument_of",
    "as_batched",
    "as_dtype",
    "as_group_of_one",
    "as_inputs",
    "as_one_program",
    "as_policy",
    "as_shape",
    "as_size",
    "as_tensor",
    "backend",
    "backend_of",
    "batch_rows",
    "batched_graph",
    "begin_step",
    "beside",
    "beside_tensors",
    "blunt",
    "broadcast_shapes",
    "by_backend",
    "call_replaced",
    "calling_in",
    "check_by_rank",
    "check_held",
    "check_randomness",
    "check_same_backend",
    "check_specs",
    "collecting",
    "collectives_agreed",
    "communicator",
    "compared",
    "compiled",
    "compiling",
    "complete_docstring",
    "computing",
    "computing_in",
    "connect_to",
    "constant",
    "constrained",
    "converting",
    "current_backend",
    "current_device",
    "custom_gradient",
    "decode_index",
    "default",
    "default_dtype",
    "deriving",
    "describe",
    "dims_of",
    "end_step",
    "evaluated",
    "exact_quotient",
    "exclusive",
    "executor",
    "face",
    "flatten",
    "floats",
    "folded",
    "forget",
    "forward_only",
    "forward_pass",
    "freeze",
    "frozen_variables",
    "function",
    "functions",
    "halved",
    "has_level",
    "held_to",
    "hinted",
    "holding",
    "holds",
    "hookimpl",
    "host_array",
    "in_precision",
    "in_words",
    "init_scope",
    "inlining",
    "is_code",
    "is_differentiable",
    "is_frozen",
    "is_noted",
    "is_open",
    "is_strict",
    "is_transformed",
    "is_unbuilt",
    "is_users_call",
    "joined",
    "joined_pulls",
    "keep_adding",
    "keep_mask",
    "keeping_added",
    "kernel_of",
    "key_for_examples",
    "kind_of",
    "known_size",
    "lacks_weights",
    "largest",
    "late",
    "late_entry",
    "leave",
    "lifted",
    "line_of",
    "listed",
    "local_constants",
    "loop_limit",
    "losses_of",
    "lowered",
    "map_structure",
    "mask_of",
    "means_the_same",
    "meant_for",
    "muted",
    "muting",
    "near_names",
    "next_id",
    "node_by_node",
    "nodes_within",
    "not_known",
    "note_answer",
    "numpy_dtype",
    "numpy_random_state",
    "ops",
    "outline",
    "own_array",
    "pack_like",
    "parameters",
    "passing",
    "paths",
    "penalties",
    "penalty",
    "place",
    "plain",
    "promoting",
    "put_away",
    "put_back",
    "raise_problems",
    "raised",
    "rank_of",
    "ranks_in_words",
    "recording_to",
    "reducing",
    "refuse_bfloat16",
    "register_array_type",
    "register_plugin",
    "registry",
    "replay",
    "reporting",
    "row_of",
    "ruled_weights",
    "run_for_meant",
    "runs_on_host",
    "same_shape",
    "same_size",
    "saved_classes",
    "scope_of",
    "seen_rows",
    "services",
    "set_arrays",
    "setting_up",
    "settled",
    "shape_in_run",
    "shapes_differ",
    "sizes_differ",
    "slots_of",
    "smallest",
    "snake_case",
    "stage",
    "structure",
    "summary_of",
    "tell_lacking",
    "telling",
    "to_numpy",
    "told",
    "told_by_ranks",
    "trace_branch",
    "trace_rule",
    "tracing_into",
    "unregister_plugin",
    "unsure",
    "untracked",
    "untrained_arrays",
    "user_line",
    "vmap",
    "warn_of_hidden",
    "warn_user",
    "watching",
    "wish",
    "with_each_other",
    "with_others",
    "without_examples",
]

# `contract` first: its names are those of `gradtape.plugin`
publish(__name__)
