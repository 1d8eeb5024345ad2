"""What a module remembers of its calls, and how it passes ``training`` to inner calls."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.array_types import TensorSpec
from ..base.context import Mode, as_converted, note_call, training_mode
from ..base.sizes import has_unknown_sizes, without_expressions
from ..base.tree import flatten, map_structure
from ..tensors.convert import as_tensor
from ..tensors.tensor import Tensor
from ..tensors.variable import Variable

if TYPE_CHECKING:
    from .module import Module

#: Functions here call formulas of the user, in which ``v -= ...`` is no update of a variable.
_gradtape_formulas = True

#: The attributes for the signatures of a module's calls, and for the shape of its last output.
CALLS = "_gradtape_calls"
OUTPUT = "_gradtape_output"
#: The attribute of calls for their parameters, without those that ``**kwargs`` stand for.
OWN = "_gradtape_parameters"


def inheriting_training(cls: type, call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a class's ``__call__`` that takes ``training``, so that calls inside it receive it.

    A call without it uses the value of the enclosing call, as in Keras. PyTorch sets the mode on
    modules instead.

    ``**kwargs`` take ``training`` and ``mask`` if the call that this one overrides does: for them
    ``super().call(x, **kwargs)`` is written. The signature of the result names them.
    """
    own = inspect.signature(call)
    inherited, place = _inherited(cls, hasattr(call, "instead"))
    signature = _completed(own, inherited)
    if isinstance(call, FunctionType):
        setattr(call, OWN, own.parameters)
    if "training" not in signature.parameters:
        if signature is not own:
            call.__signature__ = signature  # type: ignore[attr-defined]
        return call
    if "training" in own.parameters:
        parameter, place = own.parameters["training"], list(own.parameters).index("training")
        by_name = parameter.kind is inspect.Parameter.KEYWORD_ONLY
    else:  # where it is in the call above, *args may hold it
        kinds = {p.kind for p in own.parameters.values()}
        parameter = inherited["training"]
        by_name = inspect.Parameter.VAR_POSITIONAL not in kinds
        by_name = by_name or parameter.kind is inspect.Parameter.KEYWORD_ONLY
    place = sys.maxsize if by_name else place - 1

    @functools.wraps(call)
    def wrapper(self: Module, *args: Any, **kwargs: Any) -> Any:
        training = args[place] if len(args) > place else kwargs.get("training")
        mode = training_mode.get()
        run = as_converted(call)
        if training is None:
            if mode is not None:
                mode.asked = True
                if len(args) <= place and mode.training is not None:
                    kwargs["training"] = mode.training
            return run(self, *args, **kwargs)
        if mode is not None and mode.training is training:
            return run(self, *args, **kwargs)
        token = training_mode.set(Mode(training))  # without the cost of a context manager
        try:
            return run(self, *args, **kwargs)
        finally:
            training_mode.reset(token)

    wrapper.__signature__ = signature  # type: ignore[attr-defined]
    return wrapper


def _inherited(cls: type, is_layer: bool) -> tuple[dict[str, inspect.Parameter], int]:
    """Return the ``training`` and ``mask`` of the calls that a class extends.

    As long as one has ``**kwargs``, these stand for what the next one takes. The number is the
    place of ``training``.
    """
    found: dict[str, inspect.Parameter] = {}
    place = 0
    for base in cls.__mro__[1:]:
        own = vars(base)
        call = own.get("__call__") or (own.get("call") if is_layer else None)  # a mixin's
        if not isinstance(call, FunctionType):
            continue
        parameters = getattr(call, OWN, None) or inspect.signature(call).parameters
        if "training" in parameters and "training" not in found:
            place = list(parameters).index("training")
        found = {**{x: parameters[x] for x in ("training", "mask") if x in parameters}, **found}
        if all(p.kind is not p.VAR_KEYWORD for p in parameters.values()):
            break
    return found, place


def _completed(
    own: inspect.Signature, inherited: Mapping[str, inspect.Parameter]
) -> inspect.Signature:
    """Return a signature with what its ``**kwargs`` stand for."""
    parameters = list(own.parameters.values())
    missing = [
        inherited[name].replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name in ("training", "mask")
        if name in inherited and name not in own.parameters
    ]
    if not missing or all(p.kind is not p.VAR_KEYWORD for p in parameters):
        return own
    return own.replace(parameters=[*parameters[:-1], *missing, *parameters[-1:]])


def call_replaced(module: Any) -> bool:
    """Return whether another ``call`` was set on a layer, or on its class after its definition."""
    calls = (vars(cls).get("__call__") for cls in type(module).__mro__)
    instead: Any = next(filter(None, (getattr(call, "instead", None) for call in calls)), None)
    return instead is not None and instead(module) is not None


def remembering_signatures(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``__call__`` so that the module remembers the signatures of its calls.

    When a module without decorated methods is saved, it is traced for these signatures.
    """

    converts = getattr(call, "converts", None)

    @functools.wraps(call)
    def wrapper(self: Module, *args: Any, **kwargs: Any) -> Any:
        if converts is not None and args and type(args[0]) is not Tensor:
            args = (converts(args[0]), *args[1:])  # what a layer does with its input
        note_call(self)
        result = as_converted(call)(self, *args, **kwargs)
        state = self.__dict__
        state[OUTPUT] = (
            _without_unknowns(result.array.shape) if type(result) is Tensor else _shapes(result)
        )
        calls = state.get(CALLS)
        if calls is None:
            calls = state[CALLS] = {}
        # lists cost half as much as generators
        key = tuple([_signature_of(x) for x in args])
        if kwargs:
            key += tuple([(name, _signature_of(x)) for name, x in kwargs.items()])
        if key not in calls and len(calls) < 64:
            calls[key] = map_structure(_spec_of, (args, kwargs))
        return result

    return wrapper


def _shapes(result: Any) -> Any:
    """Return the shape of a result; the shapes in a list, if it is several tensors."""
    if isinstance(result, (list, tuple, dict)):
        shapes = [getattr(x, "shape", None) for x in flatten(result)]
        return [_without_unknowns(shape) for shape in shapes if shape is not None]
    shape = getattr(result, "shape", None)
    return None if shape is None else _without_unknowns(shape)


def _without_unknowns(shape: Any) -> Any:
    """Return a shape that may be kept: unknown sizes, which belong to a trace, become None."""
    return without_expressions(shape) if has_unknown_sizes(shape) else shape


#: Types of plain values, which contain no variables or modules.
PLAIN = frozenset({bool, int, float, str, type(None)})


def _signature_of(x: Any) -> Any:
    kind = type(x)
    if kind is Tensor:
        return (_without_unknowns(x.array.shape), x.dtype)
    if kind in PLAIN:
        return (kind, x)
    if isinstance(x, (np.ndarray, np.generic)):
        return (_without_unknowns(x.shape), x.dtype)
    if isinstance(x, (list, tuple)):
        return tuple(_signature_of(item) for item in x)
    if isinstance(x, dict):
        return tuple((name, _signature_of(item)) for name, item in x.items())
    return (kind, x if isinstance(x, (bool, int, float, str)) else id(x))


def _spec_of(x: Any) -> Any:
    if isinstance(x, (Tensor, np.ndarray, np.generic, Variable)):
        return TensorSpec(_without_unknowns(x.shape), x.dtype)
    if hasattr(x, "__array__") and not isinstance(x, type):  # a table: ops accept it as an array
        try:
            array = as_tensor(x)
        except (TypeError, ValueError):
            return x
        return TensorSpec(array.shape, array.dtype)
    return x
