"""What calls of modules give besides results: terms of the loss, and masks of padding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ..base.context import Setting
from ..base.dtypes import in_precision
from ..base.lifetimes import WeakIdentityDict
from ..errors import TraceError
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable
from .module import Module

#: The suffixes of the attributes that hold rules.
RULES = ("regularizer", "constraint")
#: The attribute for weights with rules: tuples of a variable, a regularizer and a constraint.
RULED = "_gradtape_rules"
#: Whether the running code is within a call of a layer.
passing: ContextVar[bool] = ContextVar("gradtape_layers_passing", default=False)
#: The losses that modules added in the last call. They are kept neither on modules nor in files;
#: files keep the part of the graph that computes them.
ADDED: WeakIdentityDict[list[Any]] = WeakIdentityDict()
#: The layers that added losses in a trace: later calls run the graph, and Python sees no value.
IN_TRACES: WeakIdentityDict[bool] = WeakIdentityDict()
#: The masks of models' results.
_MASKS: WeakIdentityDict[Any] = WeakIdentityDict()


@contextmanager
def forward_pass(root: Module) -> Iterator[None]:
    """Run a block that calls a module, after dropping the losses that its layers added before."""
    with Setting(passing, True):
        if ADDED:
            forget(root)
        yield


def forget(root: Module) -> None:
    """Drop the losses that the layers in a module added."""
    for module in (root, *root.submodules):
        ADDED.pop(module, None)


def add_to_loss(module: Any, value: Any) -> None:
    """Keep a term that a module adds to the loss."""
    ADDED.setdefault(module, []).append(value)


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
            if value is None or _trace_has_ended(value):
                raise TraceError(
                    f"layer {module.name!r} ({type(module).__name__}): it last added to the loss "
                    "in a trace or a vmap that has ended; read losses within that and return them, "
                    "or call the layer outside"
                )
            found.append(value)
    return found


def _trace_has_ended(value: Any) -> bool:
    ended = getattr(value.array, "ended", None)
    return ended is not None and ended() is not None


@contextmanager
def collecting(root: Module) -> Iterator[list[Any]]:
    """Collect the losses that a module adds in a block, in the list that the block receives.

    They do not count until they are added again: those of the body of a loop belong to its graph.
    """
    modules = (root, *root.submodules)
    found: list[Any] = []
    with keeping_added(modules):
        forget(root)
        yield found
        for module in modules:
            found += ADDED.get(module, ())


@contextmanager
def keeping_added(modules: Sequence[Module]) -> Iterator[None]:
    """Restore the losses that modules added before a block, after the block calls them."""
    before = [(module, [*ADDED[module]]) for module in modules if module in ADDED]
    try:
        yield
    finally:
        for module in modules:
            ADDED.pop(module, None)
        ADDED.update(before)


def keep_adding(root: Module) -> None:
    """After a traced call, mark the layers whose added losses exist only inside the graph."""
    for module in (root, *root.submodules):
        values = ADDED.get(module)
        if values is None:
            if module in IN_TRACES:
                ADDED[module] = [None]
        elif any(value is None or _trace_has_ended(value) for value in values):
            IN_TRACES[module] = True


def penalties(root: Module) -> list[tuple[Variable, Any]]:
    """Return the weights in a module that have a regularizer, each once, with the regularizer."""
    return _ruled(root, 1)


def constrained(root: Module) -> list[tuple[Variable, Any]]:
    """Return the weights in a module that have a constraint, each once, with the constraint."""
    return _ruled(root, 2)


def _ruled(root: Module, place: int) -> list[tuple[Variable, Any]]:
    found: dict[int, tuple[Variable, Any]] = {}
    for module in (root, *root.submodules):
        for ruled in ruled_weights(module):
            if ruled[place] is not None:
                found.setdefault(id(ruled[0]), (ruled[0], ruled[place]))
    return list(found.values())


def ruled_weights(module: Module) -> Iterator[tuple[Variable, Any, Any]]:
    """Yield a module's own weights with rules, each with its regularizer and its constraint."""
    for prefix, attribute in getattr(type(module), "ruled", {}).items():
        rules = [vars(module).get(f"{prefix}_{kind}") for kind in RULES]
        variable = vars(module).get(attribute)
        if variable is not None and any(rule is not None for rule in rules):
            yield variable, rules[0], rules[1]
    yield from vars(module).get(RULED, ())


def apply_constraints(root: Module) -> None:
    """Apply the constraints to the weights in a module."""
    for variable, constraint in constrained(root):
        variable.assign(constraint(variable.value))


def losses_of(root: Module) -> list[Any]:
    """Return the losses of the layers in a module: regularizers, and those of the last call."""
    return [penalty(v, regularizer) for v, regularizer in penalties(root)] + added_losses(root)


def penalty(variable: Variable, regularizer: Any) -> Any:
    """Return the penalty of a weight, computed in ``float32`` for one of ``float16``.

    Raises
    ------
    ValueError
        If the regularizer returns anything but one number.
    """
    value = regularizer(in_precision(variable.value, "float32"))
    shape = getattr(value, "shape", ())
    if value is None or shape:
        told = "None (is a return missing?)" if value is None else f"shape {shape}"
        raise ValueError(
            f"the regularizer of variable {variable.name!r} returned {told}; a penalty is one "
            "number, such as the sum"
        )
    return value


def keep_mask(y: Any, mask: Any) -> None:
    """Keep the mask of a tensor that a model returns."""
    # a mask has no mask: two tensors that mask each other would never be freed
    if mask is not None and mask is not y and type(y) is Tensor and mask_of(mask) is None:
        _MASKS[y] = mask


def mask_of(y: Any) -> Any:
    """Return the mask of a model's result; ``None`` if it has none."""
    return _MASKS.get(y)
