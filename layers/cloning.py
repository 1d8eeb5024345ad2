"""``clone_model``: a model of the same layers with new weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import flatten, map_structure
from .base.layer import Layer
from .base.symbolic import is_placeholder, placeholders_in, replaced
from .model import Input, Model
from .sequential import Sequential

__all__ = ["clone_model"]


def clone_model(
    model: Any, input_tensors: Any = None, clone_function: Callable[[Any], Any] | None = None
) -> Any:
    """Return a model with copies of a model's layers, whose weights are new.

    A layer that the model calls several times is copied once. Weights and optimizers are not
    copied: ``copy.set_weights(model.get_weights())`` does it for weights.

    Parameters
    ----------
    model
        A ``Sequential``, or a ``Model`` made from inputs and outputs.
    input_tensors
        Placeholders that take the place of the inputs; new ones by default.
    clone_function
        A function of a layer that returns its copy. By default, the copy is constructed from the
        layer's configuration.

    Returns
    -------
    Model
        The copy, of the same class.

    Raises
    ------
    TypeError
        If the model has a ``call`` of its own, or the class of a layer cannot be constructed from
        its configuration.

    Examples
    --------
    >>> model = gt.layers.Sequential([gt.Input((2,)), gt.layers.Dense(3)])
    >>> copy = gt.layers.clone_model(model)
    >>> [layer.units for layer in copy.layers], copy.layers[0] is model.layers[0]
    ([3], False)
    """
    made: dict[int, Any] = {}

    def twin(layer: Any) -> Any:
        if id(layer) not in made:
            made[id(layer)] = _twin(layer, clone_function)
        return made[id(layer)]

    if isinstance(model, Sequential):
        spec = model._gradtape_spec
        first = [] if spec is None else [Input(dtype=spec.dtype, batch_shape=spec.shape)]
        first = first if input_tensors is None else flatten(input_tensors)
        return type(model)([*first, *map(twin, model.layers)], name=model.name)
    if "_gradtape_plan" not in vars(model):
        raise TypeError(
            f"clone_model: {type(model).__name__} has a call() of its own; make another object of "
            "its class"
        )
    plan = model._gradtape_plan

    def again(x: Any) -> Any:
        return Input(dtype=x.dtype, name=x.array.name, batch_shape=x.shape)

    inputs = map_structure(again, plan.inputs) if input_tensors is None else input_tensors
    known = dict(zip(placeholders_in(plan.inputs), flatten(inputs), strict=True))
    for node in plan.nodes:
        args, kwargs = replaced((node.args, node.kwargs), known)
        run = node.run if node.layer is None else twin(node.layer)
        found, wanted = flatten(run(*args, **kwargs)), flatten(node.outputs)
        pairs = zip(wanted, found, strict=True)
        known.update((x.array, y) for x, y in pairs if is_placeholder(x))
    return type(model)(inputs, replaced(plan.outputs, known), name=model.name)


def _twin(layer: Any, clone_function: Callable[[Any], Any] | None) -> Any:
    """Return the copy of a layer, or of a model that is part of another."""
    if isinstance(layer, Sequential) or (isinstance(layer, Model) and layer.input is not None):
        return clone_model(layer, None, clone_function)
    if clone_function is not None:
        return clone_function(layer)
    if not isinstance(layer, Layer):
        raise TypeError(f"clone_model: {layer!r:.80} is no layer; pass clone_function")
    try:
        return type(layer).from_config(layer.get_config())
    except TypeError as error:
        raise TypeError(
            f"clone_model: {type(layer).__name__} cannot be constructed from its configuration "
            f"({error}): define get_config(), which returns the constructor's arguments"
        ) from error
