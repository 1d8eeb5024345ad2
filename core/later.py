"""The part of ``extend`` that a first op does not need: graphs, functions, modules, transforms.

A name that is imported as itself is one that the module offers, for type checkers too.
"""

from __future__ import annotations

from ..public import publish

# these before the rest: what they publish keeps their names
from . import contract_later as _contract_later  # noqa: F401
from . import extend as _extend  # noqa: F401
from .base.lifetimes import REPLACED as REPLACED
from .functions.arguments import are_several as are_several
from .functions.arguments import as_inputs as as_inputs
from .functions.arguments import with_checked_shape as with_checked_shape
from .functions.concrete import ConcreteFunction as ConcreteFunction
from .functions.concrete import Output as Output
from .functions.concrete import RestoredFunction as RestoredFunction
from .functions.control_flow import Branch as Branch
from .functions.control_flow import Program as Program
from .functions.control_flow import batched_graph as batched_graph
from .functions.control_flow import holding as holding
from .functions.control_flow import joined as joined
from .functions.control_flow import trace_branch as trace_branch
from .functions.custom_gradients import custom_gradient as custom_gradient
from .functions.function import STORE as STORE
from .functions.function import Function as Function
from .functions.function import function as function
from .functions.recompute import halved as halved
from .functions.traces import numpy_random_state as numpy_random_state
from .graphs.executors import compiled as compiled
from .graphs.executors import executor as executor
from .graphs.executors import reporting_steps as reporting_steps
from .graphs.gradient_rules import StoredRule as StoredRule
from .graphs.gradient_rules import trace_rule as trace_rule
from .graphs.graph import Graph as Graph
from .graphs.nodes import BeyondOrder as BeyondOrder
from .graphs.nodes import CustomGradient as CustomGradient
from .graphs.nodes import Node as Node
from .graphs.nodes import NotSaved as NotSaved
from .graphs.nodes import Read as Read
from .graphs.nodes import Refusal as Refusal
from .graphs.nodes import SharedRule as SharedRule
from .graphs.nodes import Symbol as Symbol
from .graphs.nodes import Written as Written
from .graphs.nodes import nodes_within as nodes_within
from .graphs.optimize import folded as folded
from .graphs.optimize import forward_only as forward_only
from .graphs.optimize import joined_pulls as joined_pulls
from .graphs.optimize import local_constants as local_constants
from .graphs.optimize import prune as prune
from .graphs.plain import argument_of as argument_of
from .graphs.plain import by_backend as by_backend
from .graphs.plain import compiling as compiling
from .graphs.plain import default as default
from .graphs.plain import kernel_of as kernel_of
from .graphs.plain import node_by_node as node_by_node
from .graphs.plain import plain as plain
from .graphs.replay import lifted as lifted
from .graphs.replay import replay as replay
from .graphs.replay import run_with_masked_effects as run_with_masked_effects
from .graphs.sizes import shape_in_run as shape_in_run
from .module.attributes import HELD_BY as HELD_BY
from .module.attributes import freeze as freeze
from .module.attributes import frozen_variables as frozen_variables
from .module.attributes import is_frozen as is_frozen
from .module.attributes import overridable as overridable
from .module.calls import call_replaced as call_replaced
from .module.docstrings import complete_docstring as complete_docstring
from .module.docstrings import summary_of as summary_of
from .module.losses_and_masks import ADDED as ADDED
from .module.losses_and_masks import IN_TRACES as IN_TRACES
from .module.losses_and_masks import RULED as RULED
from .module.losses_and_masks import RULES as RULES
from .module.losses_and_masks import add_to_loss as add_to_loss
from .module.losses_and_masks import added_losses as added_losses
from .module.losses_and_masks import apply_constraints as apply_constraints
from .module.losses_and_masks import collecting as collecting
from .module.losses_and_masks import constrained as constrained
from .module.losses_and_masks import forget as forget
from .module.losses_and_masks import forward_pass as forward_pass
from .module.losses_and_masks import keep_adding as keep_adding
from .module.losses_and_masks import keep_mask as keep_mask
from .module.losses_and_masks import keeping_added as keeping_added
from .module.losses_and_masks import losses_of as losses_of
from .module.losses_and_masks import mask_of as mask_of
from .module.losses_and_masks import passing as passing
from .module.losses_and_masks import penalties as penalties
from .module.losses_and_masks import penalty as penalty
from .module.losses_and_masks import ruled_weights as ruled_weights
from .module.module import Module as Module
from .module.module import saved_classes as saved_classes
from .module.module import snake_case as snake_case
from .module.summary import has_future_weights as has_future_weights
from .module.summary import is_unbuilt as is_unbuilt
from .module.summary import parameters as parameters
from .module.summary import untrained_arrays as untrained_arrays
from .module.untracked import is_code as is_code
from .module.untracked import slots_of as slots_of
from .module.untracked import untracked as untracked
from .module.untracked import warn_of_hidden as warn_of_hidden
from .transforms.forward import ForwardAccumulator as ForwardAccumulator
from .transforms.functional import flatten as _flatten_to_vector
from .transforms.vmap import vmap as vmap

flatten_to_vector = _flatten_to_vector

publish(__name__, __name__.replace("later", "extend"))
