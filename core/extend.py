"""The engine's interface for gradtape's own packages: ops, layers, training, saving, ...

Errors are in ``core.errors``. Code outside ``core`` imports only from these two modules. The names
here change with the packages that use them: other distributions import ``gradtape.plugin``.

A name that is imported as itself is one that the module offers, for type checkers too.
Those of ``later`` are imported when the first of them is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..hints import hinted as hinted
from ..public import publish, publish_rest
from .base.arguments import LOADING_WEIGHTS as LOADING_WEIGHTS
from .base.arguments import SAVING as SAVING
from .base.arguments import hinted_arguments as hinted_arguments
from .base.arguments import to_use as to_use
from .base.array_types import BINARY as BINARY
from .base.array_types import COMPARISONS as COMPARISONS
from .base.array_types import UNARY as UNARY
from .base.array_types import ArrayOperators as ArrayOperators
from .base.array_types import TensorSpec as TensorSpec
from .base.array_types import describe as describe
from .base.array_types import next_id as next_id
from .base.context import Setting as Setting
from .base.context import active_graph as active_graph
from .base.context import active_tapes as active_tapes
from .base.context import calling_in as calling_in
from .base.context import converting as converting
from .base.context import deriving as deriving
from .base.context import init_scope as init_scope
from .base.context import inlining as inlining
from .base.context import is_noted as is_noted
from .base.context import loop_limit as loop_limit
from .base.context import mask_effects as mask_effects
from .base.context import muted as muted
from .base.context import muting as muting
from .base.context import note_answer as note_answer
from .base.context import recording_to as recording_to
from .base.context import reducing as reducing
from .base.context import report_missing_terms as report_missing_terms
from .base.context import setting_up as setting_up
from .base.context import tracing_into as tracing_into
from .base.context import training_mode as training_mode
from .base.dtypes import CASTING as CASTING
from .base.dtypes import SCALARS as SCALARS
from .base.dtypes import Policy as Policy
from .base.dtypes import as_dtype as as_dtype
from .base.dtypes import as_policy as as_policy
from .base.dtypes import computing as computing
from .base.dtypes import computing_in as computing_in
from .base.dtypes import default_dtype as default_dtype
from .base.dtypes import get_matmul_precision as get_matmul_precision
from .base.dtypes import in_precision as in_precision
from .base.dtypes import is_differentiable as is_differentiable
from .base.dtypes import kind_of as kind_of
from .base.dtypes import numpy_dtype as numpy_dtype
from .base.dtypes import policy as policy
from .base.dtypes import refuse_bfloat16 as refuse_bfloat16
from .base.dtypes import wider_dtype as wider_dtype
from .base.generated import function_from as function_from
from .base.lifetimes import COUNTS as COUNTS
from .base.lifetimes import KERNEL_CACHES as KERNEL_CACHES
from .base.lifetimes import ReusedArrays as ReusedArrays
from .base.lifetimes import WeakIdentityDict as WeakIdentityDict
from .base.observers import AllRecords as AllRecords
from .base.observers import Recorder as Recorder
from .base.observers import Watcher as Watcher
from .base.observers import begin_step as begin_step
from .base.observers import end_step as end_step
from .base.observers import excluded as excluded
from .base.observers import stage as stage
from .base.pool import Part as Part
from .base.pool import can_start_threads as can_start_threads
from .base.pool import cores as cores
from .base.pool import in_parallel as in_parallel
from .base.pool import limit_pool as limit_pool
from .base.pool import parts as parts
from .base.pool import pays as pays
from .base.pool import quota as quota
from .base.pool import threads as threads
from .base.positions import NARROW as NARROW
from .base.positions import NUMPY as NUMPY
from .base.positions import narrowed as narrowed
from .base.sizes import Dim as Dim
from .base.sizes import Formula as Formula
from .base.sizes import Open as Open
from .base.sizes import Shape as Shape
from .base.sizes import Size as Size
from .base.sizes import as_shape as as_shape
from .base.sizes import as_size as as_size
from .base.sizes import broadcast_shapes as broadcast_shapes
from .base.sizes import common_size as common_size
from .base.sizes import contains_instance as contains_instance
from .base.sizes import dims_of as dims_of
from .base.sizes import evaluated as evaluated
from .base.sizes import exact_quotient as exact_quotient
from .base.sizes import has_unknown_sizes as has_unknown_sizes
from .base.sizes import is_open as is_open
from .base.sizes import known_size as known_size
from .base.sizes import largest as largest
from .base.sizes import lowered as lowered
from .base.sizes import same_shape as same_shape
from .base.sizes import same_size as same_size
from .base.sizes import shapes_differ as shapes_differ
from .base.sizes import size_difference as size_difference
from .base.sizes import size_of_atom as size_of_atom
from .base.sizes import sizes_differ as sizes_differ
from .base.sizes import smallest as smallest
from .base.sizes import without_expressions as without_expressions
from .base.table import F as F
from .base.table import functions as functions
from .base.table import lazy_entry as lazy_entry
from .base.table import lazy_module as lazy_module
from .base.table import ops as ops
from .base.table import public_package as public_package
from .base.table import services as services
from .base.tree import flatten as flatten
from .base.tree import map_structure as map_structure
from .base.tree import outline as outline
from .base.tree import pack_like as pack_like
from .base.tree import paths as paths
from .base.tree import structure as structure
from .base.user_code import is_users_call as is_users_call
from .base.user_code import line_of as line_of
from .base.user_code import locals_of as locals_of
from .base.user_code import not_known as not_known
from .base.user_code import user_line as user_line
from .base.user_code import warn_user as warn_user
from .batches.batched import Batched as Batched
from .batches.batched import Shared as Shared
from .batches.batched import as_batched as as_batched
from .batches.batched import check_randomness as check_randomness
from .batches.batched import has_level as has_level
from .batches.batched import in_words as in_words
from .batches.batched import key_for_examples as key_for_examples
from .batches.batched import leave as leave
from .batches.batched import rank_of as rank_of
from .batches.batched import row_of as row_of
from .batches.batched import seen_rows as seen_rows
from .contract import API as API
from .errors import BackendUnavailable as BackendUnavailable
from .errors import PluginError as PluginError
from .ops import collectives as _collectives
from .ops.backend import Backend as Backend
from .ops.backend import Sender as Sender
from .ops.backend import Stopwatch as Stopwatch
from .ops.collectives import BatchRows as BatchRows
from .ops.collectives import Communicator as Communicator
from .ops.collectives import Engine as Engine
from .ops.collectives import StopRequest as StopRequest
from .ops.collectives import as_group_of_one as as_group_of_one
from .ops.collectives import as_one_program as as_one_program
from .ops.collectives import batch_rows as batch_rows
from .ops.collectives import check_by_rank as check_by_rank
from .ops.collectives import communicator as communicator
from .ops.collectives import compared as compared
from .ops.collectives import connect_to as connect_to
from .ops.collectives import ranks_in_words as ranks_in_words
from .ops.collectives import stop_request as stop_request
from .ops.collectives import without_examples as without_examples
from .ops.dispatch import ScalarTable as ScalarTable
from .ops.dispatch import backend as backend
from .ops.dispatch import backend_of as backend_of
from .ops.dispatch import check_same_backend as check_same_backend
from .ops.dispatch import current_backend as current_backend
from .ops.dispatch import current_device as current_device
from .ops.dispatch import is_transformed as is_transformed
from .ops.dispatch import register_array_type as register_array_type
from .ops.dispatch import scope_of as scope_of
from .ops.dispatch import settled as settled
from .ops.dispatch import to_numpy as to_numpy
from .ops.kernels import FirstRun as FirstRun
from .ops.kernels import check_specs as check_specs
from .ops.kernels import runs_on_host as runs_on_host
from .ops.kernels import watching as watching
from .ops.launching import PLACE as PLACE
from .ops.launching import TRAINING as TRAINING
from .ops.launching import Launcher as Launcher
from .ops.launching import Place as Place
from .ops.launching import place as place
from .ops.promotion import promoting as promoting
from .ops.rule import NONDIFF as NONDIFF
from .ops.rule import Composed as Composed
from .ops.rule import inferred as inferred
from .registry.hooks import means_the_same as means_the_same
from .registry.hooks import near_names as near_names
from .registry.hooks import package_named as package_named
from .registry.hookspecs import hookimpl as hookimpl
from .registry.host import HOST as HOST
from .registry.host import register_plugin as register_plugin
from .registry.host import registry as registry
from .registry.host import unregister_plugin as unregister_plugin
from .registry.info import DISABLE as DISABLE
from .registry.info import MODULES as MODULES
from .registry.info import NAMED as NAMED
from .registry.info import VARIABLES as VARIABLES
from .registry.info import PluginInfo as PluginInfo
from .registry.info import is_strict as is_strict
from .registry.info import listed as listed
from .registry.info import reporting as reporting
from .registry.loading import raise_problems as raise_problems
from .registry.loading import raised as raised
from .registry.registry import Registry as Registry
from .tape.tape import GradientTape as GradientTape
from .tensors.assignment import Stream as Stream
from .tensors.assignment import exclusive as exclusive
from .tensors.assignment import hide_arrays as hide_arrays
from .tensors.assignment import restore_arrays as restore_arrays
from .tensors.assignment import set_arrays as set_arrays
from .tensors.convert import as_operands as as_operands
from .tensors.convert import as_stored_value as as_stored_value
from .tensors.convert import as_tensor as as_tensor
from .tensors.convert import check_fits_dtype as check_fits_dtype
from .tensors.convert import constant as constant
from .tensors.convert import device_of_tensors as device_of_tensors
from .tensors.convert import floats as floats
from .tensors.convert import host_array as host_array
from .tensors.convert import on_device_of as on_device_of
from .tensors.convert import own_array as own_array
from .tensors.convert import with_each_other as with_each_other
from .tensors.convert import with_others as with_others
from .tensors.custom_records import placeable as placeable
from .tensors.data_frames import numbers_instead as numbers_instead
from .tensors.indexing import decode_index as decode_index
from .tensors.notebooks import Text as Text
from .tensors.op import BinaryOp as BinaryOp
from .tensors.op import Op as Op
from .tensors.op import UnaryOp as UnaryOp
from .tensors.tensor import Operators as Operators
from .tensors.tensor import Tensor as Tensor
from .tensors.value_holder import ValueHolder as ValueHolder
from .tensors.variable import Pending as Pending
from .tensors.variable import Variable as Variable

collectives_agreed = _collectives.agreed
told_by_ranks = _collectives.texts_by_rank

# `contract` first: its names are those of `gradtape.plugin`; three are `gradtape.mixed_precision`'s
publish(__name__, without=("Policy", "get_matmul_precision", "policy"))
publish_rest(__name__, f"{__package__}.later")

if TYPE_CHECKING:
    from .later import *  # noqa: F403
