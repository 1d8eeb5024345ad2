"""Terms that layers add to the loss, and the regularizers and constraints of their weights."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypedDict
from weakref import WeakKeyDictionary, WeakSet

from ...core.errors import TraceError
from ...core.extend import Module, Variable, known_size, ops

__all__ = [
    "ADDED",
    "IN_TRACES",
    "RULES",
    "Rules",
    "add",
    "add_activity",
    "added_losses",
    "constrained",
    "forget",
    "forward_pass",
    "keep_adding",
    "losses_of",
    "passing",
    "penalties",
    "regulated",
]


class Rules(TypedDict, total=False):
    """Regularizers and constraints of a layer's weights and output, and ``trainable``."""

    activity_regularizer: Any
    alpha_constraint: Any
    alpha_regularizer: Any
    beta_constraint: Any
    beta_regularizer: Any
    bias_constraint: Any
    bias_regularizer: Any
    depthwise_constraint: Any
    depthwise_regularizer: Any
    embeddings_constraint: Any
    embeddings_regularizer: Any
    gamma_constraint: Any
    gamma_regularizer: Any
    kernel_constraint: Any
    kernel_regularizer: Any
    pointwise_constraint: Any
    pointwise_regularizer: Any
    recurrent_constraint: Any
    recurrent_regularizer: Any
    trainable: bool


#: The suffixes of the attributes that hold rules.
RULES = ("regularizer", "constraint")
#: Whether the running code is within a call of a layer.
passing: ContextVar[bool] = ContextVar("gradtape_layers_passing", default=False)
#: The layers whose outputs are regularized when the running call ends; ``super()`` may nest calls.
regulated: ContextVar[tuple[Any, ...]] = ContextVar("gradtape_layers_regulated", default=())
#: The losses that layers added in the last call. They are kept neither on layers nor in files.
ADDED: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
#: The layers that added losses in a trace: later calls run the graph, and Python sees no value.
IN_TRACES: WeakSet[Any] = WeakSet()


@contextmanager
def forward_pass(root: Module) -> Iterator[None]:
    """Run a block that calls a module, after dropping the losses that its layers added before."""
    token = passing.set(True)
    try:
        if ADDED:
            forget(root)
        yield
    finally:
        passing.reset(token)


def forget(root: Module) -> None:
    """Drop the losses that the layers in a module added."""
    for module in (root, *root.submodules):
        ADDED.pop(module, None)


def add(layer: Any, value: Any) -> None:
    """Keep a term that a layer adds to the loss."""
    ADDED.setdefault(layer, []).append(value)


def added_losses(root: Module) -> list[Any]:
    """Return the losses that the layers in a module added in the last call.

    Raises
    ------
    TraceError
        If that was in a trace or a ``vmap`` that has ended, so that there is no value.
    """
    if not ADDED:
        return []
    found = []
    for module in (root, *root.submodules):
        for value in ADDED.get(module, ()):
            if value is None or _is_gone(value):
                raise TraceError(
                    f"layer {module.name!r} ({type(module).__name__}): it last added to the loss "
                    "in a trace or a vmap that has ended; read losses within that and return them, "
                    "or call the layer outside"
                )
            found.append(value)
    return found


def _is_gone(value: Any) -> bool:
    gone = getattr(value.array, "gone", None)
    return gone is not None and gone() is not None


def keep_adding(root: Module) -> None:
    """After a traced call, mark the layers whose added losses exist only inside the graph."""
    for module in (root, *root.submodules):
        values = ADDED.get(module)
        if values is None:
            ADDED.update({module: [None]} if module in IN_TRACES else {})
        elif any(value is None or _is_gone(value) for value in values):
            IN_TRACES.add(module)


def penalties(root: Module) -> list[tuple[Variable, Any]]:
    """Return the weights in a module that have a regularizer, each once, with the regularizer."""
    return _ruled(root, "regularizer")


def constrained(root: Module) -> list[tuple[Variable, Any]]:
    """Return the weights in a module that have a constraint, each once, with the constraint."""
    return _ruled(root, "constraint")


def _ruled(root: Module, kind: str) -> list[tuple[Variable, Any]]:
    found: dict[int, tuple[Variable, Any]] = {}
    for module in (root, *root.submodules):
        ruled = getattr(type(module), "ruled", {})
        for prefix, attribute in ruled.items():
            rule = vars(module).get(f"{prefix}_{kind}")
            variable = vars(module).get(attribute)
            if rule is not None and variable is not None:
                found.setdefault(id(variable), (variable, rule))
        for variable, *rules in vars(module).get("_gradtape_rules", ()):
            rule = rules[RULES.index(kind)]
            if rule is not None:
                found.setdefault(id(variable), (variable, rule))
    return list(found.values())


def add_activity(layer: Any, outputs: list[Any]) -> None:
    """Add the penalty of a layer's activity regularizer to the loss, divided by the batch size."""
    for y in outputs:
        value = layer.activity_regularizer(y)
        if y.ndim:
            count = y.shape[0]  # an empty batch counts as 1: the sum over it is 0
            value = value / (max(count, 1) if known_size(count) else ops["maximum"](count, 1))
        add(layer, value)


def losses_of(root: Module) -> list[Any]:
    """Return the losses of the layers in a module: regularizers, and those of the last call."""
    weights = [regularizer(variable.value) for variable, regularizer in penalties(root)]
    return weights + added_losses(root)
