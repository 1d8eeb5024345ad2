"""Which functions of a module are saved, and tracing those that were never decorated."""

from __future__ import annotations

import contextlib
import inspect
from typing import Any, NamedTuple

import numpy as np

from ..core.extend import (
    ConcreteFunction,
    Function,
    Module,
    RestoredFunction,
    Shape,
    TensorSpec,
    flatten,
    pack_like,
    structure,
)
from .errors import SaveError

__all__ = ["SavedFunction", "functions_of", "trace_call", "trace_callable"]


class SavedFunction(NamedTuple):
    """A function as it goes into a file.

    ``original`` is what to compare the traces with: the Python code where there is any.
    """

    name: str
    signature: inspect.Signature
    concrete: list[ConcreteFunction]
    original: Any


def functions_of(module: Module, where: str) -> tuple[list[SavedFunction], list[str]]:
    """Return the decorated functions of a module with all their traces, and the names of the rest.

    The rest has no trace: it has no ``input_signature`` and was never called.
    """
    found, untraced = [], []
    for name, function in module.functions().items():
        if isinstance(function, Function) and function.input_signature is not None:
            _guarded(f"{where}.{name}", function.get_concrete_function)
        # a trace in which a call around told layers to train is not what these arguments mean
        concrete = [x for x in function.concrete_functions if not x.while_training]
        if concrete:
            found.append(SavedFunction(name, function.signature, concrete, function))
        else:
            untraced.append(name)
    return found, untraced


def trace_call(module: Module, where: str) -> SavedFunction | None:
    """Trace ``__call__`` for the calls that the module has seen, with an unknown batch size.

    If it takes ``training``, it is traced with ``training=True`` and ``False``.
    """
    restored = vars(module).get("__call__")
    if isinstance(restored, RestoredFunction):
        return None  # among module.functions()
    call = getattr(type(module), "__call__", None)  # noqa: B004 - the function is wanted
    seen = module.call_signatures()
    if call is None or isinstance(call, Function) or not seen:
        return None
    python_call = getattr(call, "__wrapped__", call)
    original = python_call.__get__(module)
    signature = inspect.signature(original)
    variants: dict[Any, tuple[Any, Any]] = {}
    takes_training = "training" in signature.parameters
    others = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    for args, kwargs in seen:
        if not takes_training and not others:  # a layer to which it makes no difference
            kwargs = {name: x for name, x in kwargs.items() if name != "training"}
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        choices: list[Any] = [False, True] if takes_training else [None]
        if takes_training:  # None, say, which may mean either
            default = signature.parameters["training"].default
            known_values = (bound.arguments["training"], default)
            choices += [x for x in known_values if x is not inspect.Parameter.empty]
        for choice in choices:
            if takes_training:
                bound.arguments["training"] = choice
            tree = (bound.args, bound.kwargs)
            key = (structure(tree), *(_kind(leaf) for leaf in flatten(tree)))
            known = variants.get(key)
            variants[key] = tree if known is None else _merged(known, tree)
    function = Function(original, name="__call__")
    concrete = []
    for args, kwargs in variants.values():
        general = pack_like((args, kwargs), [_batched(leaf) for leaf in flatten((args, kwargs))])
        try:
            traced = function.get_concrete_function(*general[0], **general[1])
        except Exception:  # not for every batch size, then: for the one that was seen
            traced = _guarded(where, function.get_concrete_function, *args, **kwargs)
        concrete.append(traced)
    return SavedFunction("__call__", signature, concrete, original)


def trace_callable(function: Any, module: Module, where: str) -> SavedFunction:
    """Trace a callable of a layer's configuration, for any shape if it can be.

    What it is given depends on the layer's variables and on its input: it is traced for the common
    floating dtypes, and for those that the layer has or has met; for integers (the number of a
    step, say) only if it takes nothing else.
    """
    if isinstance(function, RestoredFunction):
        return SavedFunction(
            function.name, function.signature, function.concrete_functions, function
        )
    seen = [x for x in flatten(module.call_signatures()) if isinstance(x, TensorSpec)]
    dtypes: set[np.dtype[Any]] = {np.dtype("float32"), np.dtype("float64")}
    held = [v.dtype for v in module.variables] + [x.dtype for x in seen]
    dtypes |= {dtype for dtype in held if dtype.kind in "fc"}
    shapes = dict.fromkeys([vars(module).get("_gradtape_output"), *(x.shape for x in seen)])
    shapes.pop(None, None)
    traced = function if isinstance(function, Function) else Function(function)
    concrete: list[ConcreteFunction] = []
    reason: Exception | None = None
    for dtype in [*sorted(dtypes, key=str), np.dtype("int64")]:
        if concrete and dtype.kind == "i":
            break
        try:
            concrete.append(traced.get_concrete_function(TensorSpec(None, dtype)))
        except Exception as error:
            reason = error
            # not for every rank, then: for what the layer took and gave, one of which it gets
            for shape in shapes:
                with contextlib.suppress(Exception):
                    spec = _batched(TensorSpec(shape, dtype))
                    concrete.append(traced.get_concrete_function(spec))
    if not concrete:
        raise SaveError(
            f"{where}: {function!r} cannot be traced for a tensor of unknown rank ({reason}); "
            "call the layer once before saving it"
        ) from reason
    name = getattr(function, "__name__", type(function).__name__)
    return SavedFunction(name, traced.signature, concrete, function)


def _guarded(where: str, trace: Any, *args: Any, **kwargs: Any) -> Any:
    try:
        return trace(*args, **kwargs)
    except SaveError:
        raise
    except Exception as error:
        raise SaveError(f"{where} cannot be traced: {error}") from error


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, TensorSpec):
        return ("tensor", leaf.dtype, leaf.ndim)
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return (type(leaf), leaf)


def _merged(known: Any, tree: Any) -> Any:
    """Return the specs that admit both calls: sizes that differ become unknown."""
    leaves = []
    for a, b in zip(flatten(known), flatten(tree), strict=True):
        if isinstance(a, TensorSpec) and a.shape is not None and b.shape is not None:
            shape = tuple(n if n == m else None for n, m in zip(a.shape, b.shape, strict=True))
            a = TensorSpec(shape, a.dtype)
        leaves.append(a)
    return pack_like(known, leaves)


def _batched(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec) or not leaf.shape:
        return leaf
    shape: Shape = (None, *leaf.shape[1:])
    return TensorSpec(shape, leaf.dtype, leaf.name)
