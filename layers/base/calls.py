"""Calls of layers: convert the inputs, build the layer at its first call, apply its policy."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ...core.extend import (
    ADDED,
    CASTING,
    IN_TRACES,
    Function,
    Module,
    Tensor,
    are_several,
    as_inputs,
    calling_in,
    converting,
    flatten,
    forget,
    keep_adding,
    passing,
)
from .losses import add_activity, regulated
from .precision import by_policy, in_policy
from .symbolic import Placeholder, called, placeholders_in

if TYPE_CHECKING:
    from .layer import Layer

__all__ = ["BUILT", "building", "takes_training", "training_for"]

#: The attribute of layers that are built.
BUILT = "_gradtape_built"


def building(call: Any) -> Callable[..., Any]:
    """Return ``__call__`` for a layer's ``call``; it converts inputs and builds the layer."""

    parameters = inspect.signature(call).parameters
    first = next(iter(list(parameters)[1:]), "")
    # every layer may be called as layer(x, training=True), even if it makes no difference
    indifferent = "training" not in parameters and all(
        p.kind is not p.VAR_KEYWORD for p in parameters.values()
    )
    traced = isinstance(call, Function)
    if traced:
        by_policy(call)

    @functools.wraps(call)
    def wrapper(self: Layer, inputs: Any = None, *args: Any, **kwargs: Any) -> Any:
        if inputs is None and first in kwargs:
            inputs = kwargs.pop(first)
        if not passing.get():  # like forward_pass, but faster
            token = passing.set(True)
            try:
                if ADDED:
                    forget(self)
                return wrapper(self, inputs, *args, **kwargs)
            finally:
                passing.reset(token)
        if type(inputs) is not Tensor:
            inputs = as_inputs(inputs)
            if self.takes_one and are_several(inputs):
                raise TypeError(
                    f"{type(self).__name__} {self.name!r} takes one tensor, got a "
                    f"{type(inputs).__name__} of {len(inputs)}; join them first, for example with "
                    "gt.concatenate or gt.stack"
                )
        if BUILT not in self.__dict__:
            self._build_for(inputs)
        single = type(inputs) is Tensor and type(inputs.array) is not Placeholder
        if not single and any(placeholders_in((inputs, args, kwargs))):
            return called(self, functools.partial(wrapper, self), (inputs, *args), kwargs)
        if kwargs and indifferent and (training := kwargs.pop("training", None)) is not None:
            with calling_in(training):
                return wrapper(self, inputs, *args, **kwargs)
        if self.activity_regularizer is not None and all(x is not self for x in regulated.get()):
            held = regulated.set((*regulated.get(), self))
            try:
                result = wrapper(self, inputs, *args, **kwargs)
            finally:
                regulated.reset(held)
            add_activity(self, flatten(result))
            return result
        if traced:
            result = call.__get__(self)(inputs, *args, **kwargs)
            if ADDED or IN_TRACES:
                keep_adding(self)
            return result
        convert = converting.get()
        run = call if convert is None else convert(call)
        if CASTING:
            return in_policy(run, self, inputs, *args, **kwargs)
        return run(self, inputs, *args, **kwargs)

    wrapper.converts = as_inputs  # type: ignore[attr-defined]
    return wrapper


def takes_training(module: Module) -> bool:
    """Return whether calls of a module take ``training=``."""
    own = vars(module).get("__call__")  # of a restored module, an attribute
    kind: Any = type(module)
    return _class_takes_training(kind) if own is None else _names_training(own)


def training_for(layer: Module, training: Any) -> dict[str, Any]:
    """Return ``training`` as a keyword argument for a layer, or nothing for one without it.

    Every live layer takes it, even if it makes no difference; one from a file takes what its class
    named.
    """
    call = vars(layer).get("__call__")
    kinds = [] if call is None else inspect.signature(call).parameters.values()
    open_ = any(p.kind is p.VAR_KEYWORD for p in kinds)
    return {"training": training} if call is None or open_ or takes_training(layer) else {}


@functools.cache
def _class_takes_training(kind: Any) -> bool:
    return _names_training(kind.__call__)


def _names_training(call: Any) -> bool:
    try:
        return "training" in inspect.signature(call).parameters
    except (TypeError, ValueError):  # not written in Python
        return False
