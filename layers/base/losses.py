"""What layers add to the loss, and the rules of their weights: regularizers and constraints."""

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
    """Regularizers and constraints of a layer's weights and its output; whether they train."""

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


#: By the ends of their names, the attributes that hold rules.
RULES = ("regularizer", "constraint")
#: Whether the running code is within a call of a layer.
passing: ContextVar[bool] = ContextVar("gradtape_layers_passing", default=False)
#: The layers whose outputs are regularized when the running call ends; one calls itself by super().
regulated: ContextVar[tuple[Any, ...]] = ContextVar("gradtape_layers_regulated", default=())
#: What layers added to the loss in the last call. No part of the layers: no file has it.
ADDED: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
#: The layers that did so in the trace of a call: a later call does so without Python's seeing it.
IN_TRACES: WeakSet[Any] = WeakSet()


@contextmanager
def forward_pass(root: Module) -> Iterator[None]:
    """Run a block that calls a module: what its layers added to the loss before is forgotten."""
    token = passing.set(True)
    try:
        if ADDED:
            forget(root)
        yield
    finally:
        passing.reset(token)


def forget(root: Module) -> None:
    """Forget what the layers in a module added to the loss."""
    for module in (root, *root.submodules):
        ADDED.pop(module, None)


def add(layer: Any, value: Any) -> None:
    """Note what a layer adds to the loss."""
    ADDED.setdefault(layer, []).append(value)


def added_losses(root: Module) -> list[Any]:
    """Return what the layers in a module added to the loss in the last call.

    Raises
    ------
    TraceError
        If that was in a trace, or in a batch of ``vmap``, that has ended: it is no number.
    """
    if not ADDED:
        return []
    found = []
    for module in (root, *root.submodules):
        for value in ADDED.get(module, ()):
            if value is None or _is_gone(value):
                raise TraceError(
                    f"layer {module.name!r} ({type(module).__name__}): what it last added to the "
                    "loss was in a trace or a vmap that has ended; ask for losses within it, and "
                    "return them, or call the layer outside"
                )
            found.append(value)
    return found


def _is_gone(value: Any) -> bool:
    gone = getattr(value.array, "gone", None)
    return gone is not None and gone() is not None


def keep_adding(root: Module) -> None:
    """Note after a call that is traced: what its trace added, the next call adds unseen."""
    for module in (root, *root.submodules):
        values = ADDED.get(module)
        if values is None:
            ADDED.update({module: [None]} if module in IN_TRACES else {})
        elif any(value is None or _is_gone(value) for value in values):
            IN_TRACES.add(module)


def penalties(root: Module) -> list[tuple[Variable, Any]]:
    """Return the weights in a module that have a regularizer, with it; each once."""
    return _ruled(root, "regularizer")


def constrained(root: Module) -> list[tuple[Variable, Any]]:
    """Return the weights in a module that have a constraint, with it; each once."""
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
    """Note what a layer's regularizer of outputs adds to the loss, for one example in the mean."""
    for y in outputs:
        value = layer.activity_regularizer(y)
        if y.ndim:
            count = y.shape[0]  # of an empty batch, too, the sum over it is 0
            value = value / (max(count, 1) if known_size(count) else ops["maximum"](count, 1))
        add(layer, value)


def losses_of(root: Module) -> list[Any]:
    """Return what the layers in a module add to the loss: of regularizers, and in the last call."""
    weights = [regularizer(variable.value) for variable, regularizer in penalties(root)]
    return weights + added_losses(root)
