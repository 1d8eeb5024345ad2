"""Weights and states of layers: their rules, the build that creates them, files, batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypedDict

import numpy as np

from ...core.extend import (
    RULED,
    Module,
    Variable,
    WeakIdentityDict,
    add_to_loss,
    backend,
    backend_of,
    current_backend,
    current_device,
    flatten,
    freeze,
    in_precision,
    init_scope,
    known_size,
    ops,
    ruled_weights,
)
from .. import constraints, regularizers
from ..configs import unknown_argument

__all__ = [
    "BUILT",
    "UNMADE",
    "WAITING",
    "CarriesStates",
    "Rules",
    "add_activity",
    "build_with",
    "check_part",
    "check_weights",
    "regulated",
    "rows_per_example",
    "set_rules",
    "set_rules_of_weight",
    "stateful_layers",
    "states_continued",
    "states_kept",
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


def set_rules(layer: Any, rules: Mapping[str, Any]) -> None:
    """Set the regularizers and constraints that a layer's constructor received.

    Raises
    ------
    TypeError
        If the layer takes no such argument.
    """
    allowed = layer._rules()
    for rule, given in rules.items():
        if rule == "trainable":
            if given is False:  # compat's layers pass None
                layer.trainable = False
        elif rule not in allowed:
            raise unknown_argument(type(layer), rule, (*allowed, "trainable"))
        elif given is not None:
            get = constraints.get if rule.endswith("constraint") else regularizers.get
            setattr(layer, rule, get(given))


def set_rules_of_weight(layer: Any, weight: Variable, regularizer: Any, constraint: Any) -> None:
    """Note the regularizer and the constraint of a weight, if there are any."""
    if regularizer is not None or constraint is not None:
        rules = regularizers.get(regularizer), constraints.get(constraint)
        vars(layer).setdefault(RULED, []).append((weight, *rules))
        if constraint is not None:
            _CONSTRAINTS[weight] = rules[1]


#: The constraints of weights.
_CONSTRAINTS: WeakIdentityDict[Any] = WeakIdentityDict()


def constraint_of(weight: Variable) -> Any:
    """Return the constraint of a layer's weight; None without one."""
    return _CONSTRAINTS.get(weight)


# -- a build at the first call --------------------------------------------------------------------

#: The attribute of layers that are built.
BUILT = "_gradtape_built"
#: Weights from a file, kept by ``load_weights`` until the layer is built.
WAITING = "_gradtape_waiting"


def build_with(layer: Any, shapes: Any, dtype: str | None, leaves: list[Any]) -> None:
    """Build a layer unless it is built, and set waiting weights; a build that fails is undone.

    Parameters
    ----------
    layer
        The layer.
    shapes, dtype
        Those of its inputs; the dtype is that of weights without their own.
    leaves
        The inputs; the first one's backend and device are those of the weights.
    """
    state = vars(layer)
    before = dict(state)
    is_new, parts = not layer.built, set(map(id, () if layer.trainable else layer.submodules))
    try:
        if is_new:
            state["_gradtape_dtype"] = dtype
            with init_scope(), backend(_place(leaves)):
                layer.build(shapes)
            for weight, _, constraint in ruled_weights(layer):
                if constraint is not None:
                    _CONSTRAINTS[weight] = constraint
        waiting = state.pop(WAITING, None)
        if waiting is not None:
            with init_scope():
                waiting(layer)
    except BaseException:
        for attribute in set(state) - set(before):
            del state[attribute]
        state.update(before)
        raise
    state[BUILT] = True
    if is_new and not layer.trainable:  # now that there are weights
        freeze(layer)
        for part in layer.submodules:
            if id(part) not in parts:
                part.trainable = False


def _place(leaves: list[Any]) -> str:
    """Return the place of the weights: the backend and device of the first input."""
    array = leaves[0].array if leaves else None
    if hasattr(array, "__array__") or hasattr(array, "__dlpack__"):
        owner = backend_of(array)
        return f"{owner.name}:{owner.device(array)}"
    device = current_device()
    return current_backend().name + (f":{device}" if device else "")


# -- the activity of a layer ----------------------------------------------------------------------

#: The layers whose outputs are regularized when the running call ends; ``super()`` may nest calls.
regulated: ContextVar[tuple[Any, ...]] = ContextVar("gradtape_layers_regulated", default=())


#: How many rows of a batch belong to one example, if a layer passes another one its steps as rows.
_ROWS: ContextVar[Any] = ContextVar("gradtape_layers_rows", default=1)


@contextmanager
def rows_per_example(count: Any) -> Iterator[None]:
    """Run a block in which ``count`` rows of a batch belong to each row around it."""
    token = _ROWS.set(_ROWS.get() * count)
    try:
        yield
    finally:
        _ROWS.reset(token)


def add_activity(layer: Any, outputs: list[Any]) -> None:
    """Add the penalty of a layer's activity regularizer to the loss, divided by the batch size."""
    rows = _ROWS.get()
    for y in outputs:
        value = layer.activity_regularizer(in_precision(y, "float32"))
        if y.ndim:
            count = y.shape[0]  # an empty batch counts as 1: the sum over it is 0
            if known_size(count) and known_size(rows):
                value = value / (max(count, 1) / rows if rows else 1)
            else:
                examples = ops["maximum"](ops["maximum"](count, 1) // ops["maximum"](rows, 1), 1)
                value = value / examples.astype(value.dtype)
        add_to_loss(layer, value)


# -- weights from a file, compared with those of the configuration --------------------------------

#: Set on a layer that is built only for the shapes of its weights.
UNMADE = "_gradtape_unmade"


def check_weights(layer: Any) -> None:
    """Raise if weights are not variables, are missing, or do not have the shapes of the layer.

    Raises
    ------
    TypeError, ValueError
        The message names the attribute, and what it should be.
    """
    names = layer.weight_names
    held = {name: vars(layer)[name] for name in names or () if vars(layer).get(name) is not None}
    for name, weight in held.items():
        if not isinstance(weight, Variable):
            raise TypeError(f"{name!r} must be a variable, got {weight!r}")
    if not held:
        return
    if missing := [name for name in names if name not in held]:
        raise ValueError(f"it has {', '.join(held)}, but lacks {', '.join(missing)}")
    shape = layer.shape_for_weights({name: weight.shape for name, weight in held.items()})
    if shape is None:
        if _infers_input_shape(type(layer)):
            shapes = ", ".join(f"{name} {weight.shape}" for name, weight in held.items())
            raise ValueError(f"no input has weights of these shapes: {shapes}")
        return
    twin = type(layer).from_config(layer.get_config())
    vars(twin)[UNMADE] = True
    twin.build(shape)
    for name, weight in held.items():
        made = vars(twin).get(name)
        if isinstance(made, Variable) and made.shape != weight.shape:
            raise ValueError(
                f"{name!r} has shape {weight.shape}, but its configuration needs {made.shape}"
            )


def _infers_input_shape(cls: Any) -> bool:
    """Return whether a class can infer its input shape from its weights."""
    base = next(x for x in reversed(cls.__mro__) if "shape_for_weights" in vars(x))
    return cls.shape_for_weights is not base.shape_for_weights


def check_part(what: str, value: Any, *attributes: str) -> Any:
    """Return the inner layer of another, checked.

    Raises
    ------
    TypeError
        If it is not a layer, or lacks attributes that the outer layer needs.
    """
    whole = isinstance(value, Module) and callable(value)
    if not whole or not all(hasattr(value, name) for name in attributes):
        raise TypeError(f"{what!r} is not a layer that fits there: {value!r}"[:200])
    return value


# -- states carried from one batch to the next ----------------------------------------------------

#: Whether blocks of :func:`states_kept` let states go on.
_CONTINUED: ContextVar[bool] = ContextVar("gradtape_states_continued", default=False)


class CarriesStates:
    """A mixin for models, which may have stateful layers inside."""

    def reset_states(self) -> None:
        """Set the states of the stateful layers inside to zero, where new sequences begin.

        Examples
        --------
        >>> layer = gt.layers.GRU(2, stateful=True)
        >>> model = gt.layers.Sequential([layer])
        >>> y = model(gt.ones((1, 3, 2)))
        >>> model.reset_states()
        >>> layer.states[0].tolist()
        [[0.0, 0.0]]
        """
        model: Any = self
        for layer in stateful_layers(model):
            if layer is not self and hasattr(layer, "reset_states"):
                layer.reset_states()
            else:
                _zero(_states_of(layer))


def stateful_layers(model: Module) -> list[Any]:
    """Return the layers inside that carry states: those whose attribute ``stateful`` is true.

    Layers of your own take part if they have ``states``, a variable or a container of variables,
    or a method ``reset_states``. Otherwise ``stateful`` means something else.
    """
    found = [x for x in (model, *model.submodules) if getattr(x, "stateful", False) is True]
    return [x for x in found if hasattr(x, "states") or _resets(x)]


def _resets(layer: Any) -> bool:
    """Return whether a layer, which may have no states yet, has its own way to reset them."""
    own = getattr(type(layer), "reset_states", CarriesStates.reset_states)
    return own is not CarriesStates.reset_states


@contextmanager
def states_kept(model: Module) -> Iterator[None]:
    """Run a block that leaves the states of stateful layers as they are; new states are zero."""
    if _CONTINUED.get():
        yield
        return
    before = {state: state.array for layer in stateful_layers(model) for state in _states_of(layer)}
    try:
        yield
    finally:
        for layer in stateful_layers(model):
            for state in _states_of(layer):
                if state in before:
                    state.set_array(before[state])
                else:
                    _zero([state])


@contextmanager
def states_continued() -> Iterator[None]:
    """Run a block in which predictions continue the states of stateful layers, as in Keras."""
    token = _CONTINUED.set(True)
    try:
        yield
    finally:
        _CONTINUED.reset(token)


def _states_of(layer: Any) -> list[Variable]:
    return [x for x in flatten(getattr(layer, "states", None)) if isinstance(x, Variable)]


def _zero(states: list[Variable]) -> None:
    for state in states:
        state.assign(np.zeros(state.shape, state.dtype.name))
