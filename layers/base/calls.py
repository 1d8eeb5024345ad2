"""Calls of layers: convert the inputs, build the layer at its first call, apply its policy."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ...core.extend import (
    ADDED,
    CASTING,
    IN_TRACES,
    Function,
    Module,
    Policy,
    Tensor,
    are_several,
    as_inputs,
    calling_in,
    computing,
    computing_in,
    converting,
    default_dtype,
    flatten,
    forget,
    in_precision,
    keep_adding,
    kind_of,
    map_structure,
    passing,
    training_mode,
)
from .symbolic import Placeholder, called, placeholders_in
from .weights import BUILT, add_activity, regulated

if TYPE_CHECKING:
    from .layer import Layer

__all__ = [
    "building",
    "by_policy",
    "call_of",
    "in_floats",
    "in_policy",
    "takes_training",
    "training_for",
]


def call_of(cls: type) -> tuple[Any, type, str] | None:
    """Return what a class's ``__call__`` is made from: a member, its class and its name.

    Returns
    -------
    tuple or None
        None if the ``__call__`` that the class inherits, or its own, stays as it is.
    """
    own = next((name for name in ("__call__", "call") if name in vars(cls)), None)
    if own is not None:
        is_graph = own == "__call__" and isinstance(vars(cls)[own], Function)
        return None if is_graph else (vars(cls)[own], cls, own)
    found = [(c, name) for c in cls.__mro__[1:] for name in ("__call__", "call") if name in vars(c)]
    if not found or len(cls.__bases__) < 2:
        return None
    owner, name = found[0]
    # a mixin that is a module, and no layer, only refuses to be called itself
    if "call" in vars(owner) and getattr(vars(owner).get("__call__"), "refuses", False):
        return vars(owner)["call"], owner, "call"
    if issubclass(owner, Module):
        # with another class after it, its **kwargs stand for what that one takes
        after = _after(cls, owner)
        if "call" not in vars(owner) or after is None or after is _after(owner, owner):
            return None
        name = "call"
        kinds = inspect.signature(vars(owner)[name]).parameters.values()
        if isinstance(vars(owner)[name], Function) or all(
            p.kind is not p.VAR_KEYWORD for p in kinds
        ):
            return None
    return vars(owner)[name], owner, name


def _after(cls: type, owner: type) -> Any:
    """Return the class whose call ``super()`` finds in ``owner``, for objects of ``cls``."""
    below = cls.__mro__[cls.__mro__.index(owner) + 1 :]
    return next((c for c in below if "call" in vars(c) or "__call__" in vars(c)), None)


def _method(value: Any, owner: type) -> Any:
    """Return a call as a function of the layer and its inputs, of which the first has a place."""
    if hasattr(type(value), "__get__") and (not callable(value) or isinstance(value, staticmethod)):
        # a staticmethod, classmethod, partialmethod or property

        def bound(self: Any, *args: Any, **kwargs: Any) -> Any:
            return value.__get__(self, type(self))(*args, **kwargs)

        if not isinstance(value, property):
            signature = inspect.signature(value.__get__(None, owner))
            given = list(signature.parameters.values())
            if isinstance(value, (staticmethod, classmethod)):
                one = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
                given.insert(0, one)
            bound.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
        return bound
    signature = inspect.signature(value)
    given = list(signature.parameters.values())
    if len(given) < 2 or given[1].kind is not inspect.Parameter.KEYWORD_ONLY:
        return value
    first = given[1].name

    @functools.wraps(value)
    def placed(self: Any, inputs: Any, /, **kwargs: Any) -> Any:
        return value(self, **{first: inputs}, **kwargs)

    given[1] = given[1].replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    placed.__signature__ = signature.replace(parameters=given)  # type: ignore[attr-defined]
    return placed


def _converted(layer: Layer, inputs: Any) -> Any:
    """Return a layer's inputs as tensors.

    Raises
    ------
    TypeError
        If they are several, and the layer takes one.
    """
    inputs = as_inputs(inputs)
    if layer.takes_one and are_several(inputs):
        raise TypeError(
            f"{type(layer).__name__} {layer.name!r} takes one tensor, got a "
            f"{type(inputs).__name__} of {len(inputs)}; join them first, for example with "
            "gt.concatenate or gt.stack"
        )
    return inputs


def _run_regulated(
    call: Callable[..., Any], layer: Any, x: Any, args: Any, kwargs: dict[str, Any]
) -> Any:
    """Run a layer's call, and add the penalty of its results to the loss."""
    token = regulated.set((*regulated.get(), layer))
    try:
        result = call(layer, x, *args, **kwargs)
    finally:
        regulated.reset(token)
    add_activity(layer, flatten(result))
    return result


def _replacing(member: Any, defined: Mapping[str, Any], name: str) -> Callable[[Any], Any]:
    """Return a function of a layer that returns the bound ``call`` that replaces its class's."""

    def instead(self: Any) -> Any:
        """Return the ``call`` that replaces this one, bound; None if there is none."""
        if name != "call":
            return None
        own = self.__dict__.get(name)
        if own is not None:
            return own if callable(own) else None
        now = defined.get(name, member)
        return None if now is member else now.__get__(self, type(self))

    return instead


def building(member: Any, owner: type, name: str) -> Callable[..., Any]:
    """Return ``__call__`` for a layer's ``call``; it converts inputs and builds the layer.

    Parameters
    ----------
    member, owner, name
        What :func:`call_of` returns.
    """

    call = _method(member, owner)
    parameters = inspect.signature(call).parameters
    first = next(iter(list(parameters)[1:]), "")
    named_inputs = "inputs" in parameters
    # every layer may be called as layer(x, training=True), even if it makes no difference
    indifferent = "training" not in parameters and all(
        p.kind is not p.VAR_KEYWORD for p in parameters.values()
    )
    traced = isinstance(call, Function)
    if traced:
        by_policy(call)

    replaceable, defined = name == "call", vars(owner)
    instead = _replacing(member, defined, name)

    @functools.wraps(call)
    def wrapper(self: Layer, inputs: Any = None, /, *args: Any, **kwargs: Any) -> Any:
        if inputs is None and kwargs:
            if first in kwargs:
                inputs = kwargs.pop(first)
            elif not named_inputs:
                inputs = kwargs.pop("inputs", None)
        if not passing.get():  # like forward_pass, but faster
            token = passing.set(True)
            try:
                if ADDED:
                    forget(self)
                return wrapper(self, inputs, *args, **kwargs)
            finally:
                passing.reset(token)
        if type(inputs) is not Tensor:
            inputs = _converted(self, inputs)
        if BUILT not in self.__dict__:
            self._build_for(inputs)
        single = type(inputs) is Tensor and type(inputs.array) is not Placeholder
        if not single and any(placeholders_in((inputs, args, kwargs))):
            return called(self, functools.partial(wrapper, self), (inputs, *args), kwargs)
        if not self.takes_integers:
            inputs = in_floats(self, inputs)
        if kwargs and indifferent and (training := kwargs.pop("training", None)) is not None:
            mode = training_mode.get()
            if mode is None or mode.training is not training:  # not what its model was called with
                with calling_in(training):
                    return wrapper(self, inputs, *args, **kwargs)
        if self.activity_regularizer is not None and all(x is not self for x in regulated.get()):
            return _run_regulated(wrapper, self, inputs, args, kwargs)
        if replaceable and ("call" in self.__dict__ or defined.get("call") is not member):
            other = instead(self)
            if other is not None:
                return _run_other(self, other, list(parameters)[2:], inputs, args, kwargs)
        if traced:
            return _run_traced(self, call.__get__(self), inputs, args, kwargs)
        return _run_eagerly(self, call, inputs, args, kwargs)

    wrapper.converts = as_inputs  # type: ignore[attr-defined]
    wrapper.instead = instead  # type: ignore[attr-defined]
    return wrapper


def _run_other(
    layer: Layer, call: Any, names: list[str], x: Any, args: Any, kwargs: dict[str, Any]
) -> Any:
    """Run a bound call instead of the class's own; ``names`` are those of its places."""
    if args:
        args, kwargs = _placed(call, names, x, args, kwargs)
    if isinstance(call, Function):
        return _run_traced(layer, call, x, args, kwargs)
    return _run_eagerly(layer, call, x, args, kwargs, bound=True)


def _run_traced(layer: Layer, call: Any, x: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Run a bound call that is traced."""
    result = call(x, *args, **kwargs)
    if ADDED or IN_TRACES:
        keep_adding(layer)
    return result


def _run_eagerly(
    layer: Layer, call: Any, x: Any, args: Any, kwargs: dict[str, Any], bound: bool = False
) -> Any:
    """Run a call of Python code, with its control flow converted in a trace that asks for it."""
    convert = converting.get()
    run = call if convert is None else convert(call)
    run = _taking_layer(run) if bound else run
    if CASTING or getattr(layer, "computes_in_float32", False):
        return in_policy(run, layer, x, *args, **kwargs)
    return run(layer, x, *args, **kwargs)


def _placed(call: Any, names: list[str], x: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return arguments for a call that may have fewer places, and only names for the others."""
    signature = inspect.signature(call)
    for count in range(len(args), -1, -1):
        named = {**dict(zip(names[count:], args[count:])), **kwargs}
        with suppress(TypeError):
            signature.bind(x, *args[:count], **named)
            return args[:count], named
    return args, kwargs  # Python says what is wrong


def _taking_layer(call: Any) -> Callable[..., Any]:
    """Return a bound call as a function that gets the layer first."""

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        return call(*args, **kwargs)

    return run


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


# -- the layer's precision policy -----------------------------------------------------------------


def by_policy(function: Function[Any, Any]) -> None:
    """Make the traces of a method follow the policy of its layer."""
    call = function.python_function

    @functools.wraps(call)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        return in_policy(call, self, *args, **kwargs)

    function.python_function = wrapper


def in_policy(call: Callable[..., Any], layer: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a layer's code under its policy.

    Floating inputs are cast, and variables are read in the compute dtype.
    """
    name = vars(layer).get("_gradtape_policy")
    wide = getattr(layer, "computes_in_float32", False)  # a layer from a file may have no class
    halves = wide and name is None and _are_halves(layer, args, kwargs)
    if name is None and computing.get() is None and not halves:
        return call(layer, *args, **kwargs)
    policy = Policy(name or "float64")  # without one, inputs keep their dtypes
    halves = halves or policy.compute_dtype == "float16"
    dtype = policy.compute_dtype if policy.mixed else None
    if wide and (policy.mixed or halves):
        dtype = "float32"
        if not CASTING:  # its weights may be float16, too
            CASTING.append(dtype)
    into = dtype or ("float32" if name == "float32" else None)
    args, kwargs = _in_precision((args, kwargs), into)
    with computing_in(dtype):
        result = call(layer, *args, **kwargs)
    # results computed from bfloat16 are float32: the next layer rounds them
    return _in_precision(result, "float16") if halves and wide else result


def _are_halves(layer: Any, args: Any, kwargs: Any) -> bool:
    """Return whether a layer without a policy would compute in ``float16``."""
    if type(args[0]) is Tensor and args[0].dtype.itemsize != 2:  # the common case, quickly
        return False
    given = [x.dtype for x in flatten((args, kwargs)) if type(x) is Tensor and x.dtype.kind == "f"]
    halves = bool(given) and all(dtype.itemsize < 4 for dtype in given)
    return halves and all(v.dtype.itemsize < 4 for v in layer.variables if v.dtype.kind == "f")


def _in_precision(values: Any, dtype: str | None) -> Any:
    if dtype is None:
        return values
    return map_structure(lambda x: in_precision(x, dtype) if type(x) is Tensor else x, values)


def in_floats(layer: Any, inputs: Any) -> Any:
    """Return a layer's inputs with integers and booleans cast to the layer's dtype."""
    if type(inputs) is not Tensor:
        return map_structure(lambda x: in_floats(layer, x) if type(x) is Tensor else x, inputs)
    if kind_of(inputs.array.dtype) not in "biu":
        return inputs
    return inputs.astype(layer.dtype or vars(layer).get("_gradtape_dtype") or default_dtype())
