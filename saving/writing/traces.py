"""Find the functions of a module to save, and trace those that are not decorated."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial, wraps
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.errors import TraceError
from ...core.extend import (
    ConcreteFunction,
    Function,
    Module,
    RestoredFunction,
    Shape,
    Tensor,
    TensorSpec,
    Variable,
    calling_in,
    flatten,
    has_unknown_sizes,
    line_of,
    pack_like,
    structure,
)
from ...layers import Layer, Sequential, takes_training
from ..errors import SaveError
from ..proofs.samples import Shapes
from ..records.schema import rule_fits_weight
from .running import retraced, split_added, with_added


class NeedsSizes(SaveError):
    """A function can be traced for the sizes that it was called with, but not for unknown ones."""


class History(NamedTuple):
    """A module's history before it is saved: its past calls, and the shape of its last result.

    Tracing or running a module calls the modules inside it, which then remember that.
    """

    calls: list[Any]
    output: Shape

    @classmethod
    def by(cls, module: Module) -> History:
        """Return a module's history so far."""
        return cls(module.call_signatures(), vars(module).get("_gradtape_output"))

    @classmethod
    def of_steps(cls) -> History:
        """Return the history of a learning rate: it is called with the number of each step."""
        return cls([((TensorSpec((), "int64"),), {})], ())


class SavedFunction(NamedTuple):
    """A function to be saved.

    Attributes
    ----------
    where
        Its name in messages.
    original
        What to compare the traces with: the Python code, if there is any.
    sizes
        The sizes for which saving has traced it, ``"open"`` or ``"seen"``; empty if its signature
        or its calls determine them.
    seen
        Per trace, the shapes of the tensors of past calls, the smallest first.
    converts
        Whether numbers and lists passed first become tensors before anything else, as in layers.
    adding
        The Python code with the losses that it adds, and the masks, as further results.
    """

    name: str
    where: str
    signature: inspect.Signature
    concrete: list[ConcreteFunction]
    original: Any
    sizes: str = ""
    seen: Sequence[Sequence[Shapes]] = ()
    converts: bool = False
    adding: Any = None

    def with_losses_and_masks(
        self, concrete: ConcreteFunction
    ) -> tuple[SavedFunction, ConcreteFunction]:
        """Return this function and one of its traces with losses and masks among the results."""
        return self._replace(original=self.adding), concrete.whole

    def seen_by(self, i: int) -> Sequence[Shapes]:
        """Return the shapes of the tensors of past calls that trace ``i`` is for."""
        return self.seen[i] if self.seen else ()

    @property
    def python(self) -> Any:
        """The Python code itself, which makes no traces; None if it no longer exists."""
        if isinstance(self.original, RestoredFunction):
            return None
        if isinstance(self.original, Function):
            return self.original.python_function
        return self.original


def functions_of(
    module: Module, where: str, lost: list[str]
) -> tuple[list[SavedFunction], list[str]]:
    """Return a module's decorated functions with all their traces, and the names of the others.

    The others have no trace: no ``input_signature``, and never called. ``lost`` receives what a
    call adds to the loss and its traces cannot.
    """
    functions = module.functions()
    saved = {name: with_traces(name, f"{where}.{name}", f) for name, f in functions.items()}
    call = saved.get("__call__")
    if call is not None and call.python is not None and module.submodules:
        adding = with_added(call.python, module, lost)
        traces = [retraced(adding, x) for x in call.concrete]
        saved["__call__"] = call._replace(concrete=traces, adding=adding)
    return [x for x in saved.values() if x], [name for name, x in saved.items() if not x]


def with_traces(name: str, where: str, function: Any) -> SavedFunction | None:
    """Return a decorated (or restored) function with all its traces; None if it has none."""
    if isinstance(function, Function) and function.input_signature is not None:
        try:
            function.get_concrete_function()
        except Exception as error:
            raise SaveError(f"{where} cannot be traced: {reason_of(error)}") from error
    # a trace in which a call around told layers to train is not what these arguments mean
    concrete = [x for x in function.concrete_functions if not x.while_training]
    concrete = [_up_to_date(function, x, where) for x in concrete]
    if not concrete:
        return None
    restored = function if isinstance(function, RestoredFunction) else None
    sizes = "" if restored is None else restored.sizes
    seen = _called_with(concrete)
    converts = restored is not None and restored.converts
    return SavedFunction(name, where, function.signature, concrete, function, sizes, seen, converts)


def _up_to_date(function: Any, concrete: ConcreteFunction, where: str) -> ConcreteFunction:
    """Return a trace, or a new one if it is outdated, as the next call does."""
    if not (isinstance(function, Function) and concrete.outdated):
        return concrete
    args, kwargs = concrete.arguments
    try:
        found = function.get_concrete_function(*args, **kwargs)
    except Exception as error:
        raise SaveError(f"{where} cannot be traced: {reason_of(error)}") from error
    found.met = concrete.met if found.met is None else found.met
    return found


def _called_with(concrete: Sequence[ConcreteFunction]) -> list[list[Shapes]]:
    """Return the shapes of each trace's first call and of calls with traces."""
    found = []
    for general in concrete:
        first: list[Any] = [] if general.met is None else [general.met]
        others: list[Any] = [
            tuple(spec.shape for spec in exact.specs)
            for exact in concrete
            if not any(has_unknown_sizes(spec.shape) for spec in exact.specs)
            and _admits(general, exact)
        ]
        found.append(_informative([*first, *others]))
    return found


def _admits(general: ConcreteFunction, exact: ConcreteFunction) -> bool:
    """Return whether a trace also fits the calls of another one."""
    return _places(exact) == _places(general) and all(
        a.dtype == b.dtype and a.admits(b.shape)
        for a, b in zip(general.specs, exact.specs, strict=True)
    )


def _places(concrete: ConcreteFunction) -> Any:
    """Return which arguments of a trace are tensors, not Python values."""
    tensors = [isinstance(leaf, TensorSpec) for leaf in flatten(concrete.arguments)]
    return structure(concrete.arguments), tensors


def lost_defaults(function: SavedFunction, written: Sequence[Any]) -> Iterator[str]:
    """Yield which defaults of parameters are lost in a file that stores them as ``written``."""
    for parameter, record in zip(function.signature.parameters.values(), written, strict=True):
        known = parameter.default is parameter.empty or parameter.default is None
        if not known and record.get("default") is None:
            yield f"{function.where}: the default of {parameter.name!r}, which has to be given"


def is_called(module: Module) -> bool:
    """Return whether a module can be called: its class defines ``__call__``."""
    calls = (vars(cls).get("__call__") for cls in type(module).__mro__)
    call = next((x for x in calls if x is not None), None)
    return call is not None and not hasattr(call, "refuses")


def trace_call(
    module: Module, history: History, where: str, sizes: str, lost: list[str] | None = None
) -> SavedFunction | None:
    """Trace ``__call__`` for the past calls of the module.

    The batch size is unknown, and so is every other size in which the calls differ; with ``sizes``
    ``"seen"`` there is a trace for each of the sizes. If it takes ``training``, it is traced with
    ``training=True`` and ``False``. What it adds to the loss becomes a part of its traces;
    ``lost`` receives what cannot.

    Raises
    ------
    NeedsSizes
        If it can be traced for the sizes seen, but not for unknown ones.
    SaveError
        If it cannot be traced at all.
    """
    restored = vars(module).get("__call__")
    if isinstance(restored, RestoredFunction):
        return None  # among module.functions()
    call = getattr(type(module), "__call__", None)  # noqa: B004 - the function is needed
    if call is None or isinstance(call, Function) or not history.calls:
        return None
    python_call = getattr(call, "__wrapped__", call)
    converts = hasattr(call, "converts")
    original = _taking_training(module, python_call.__get__(module))
    adding = with_added(original, module, [] if lost is None else lost)
    return _traced_for(history.calls, "__call__", original, where, sizes, converts, adding)


def _taking_training(module: Module, call: Any) -> Any:
    """Return a call that takes ``training``, which reaches the parts of the module as in ``fit``.

    A class may leave it to its parts (``Dropout``, say) to know whether the model trains. A graph
    can serve one of the two only, so there must be one for each.
    """
    signature = inspect.signature(call)
    kinds = {x.kind for x in signature.parameters.values()}
    if "training" in signature.parameters or inspect.Parameter.VAR_KEYWORD in kinds:
        return call
    if not any(takes_training(x) for x in module.submodules if not isinstance(x, Sequential)):
        return call

    @wraps(call)
    def told(*args: Any, training: Any = False, **kwargs: Any) -> Any:
        with calling_in(training):
            return call(*args, **kwargs)

    added = inspect.Parameter("training", inspect.Parameter.KEYWORD_ONLY, default=False)
    parameters = [*signature.parameters.values(), added]
    vars(told)["__signature__"] = signature.replace(parameters=parameters)
    return told


def trace_mask(module: Module, history: History, where: str, sizes: str) -> SavedFunction | None:
    """Trace ``compute_mask`` of a custom layer for its calls, if it passes masks on."""
    restored = vars(module).get("compute_mask")
    if isinstance(restored, RestoredFunction) or not isinstance(module, Layer):
        return None  # among module.functions(), or there is none
    own = type(module).compute_mask is not Layer.compute_mask
    if not (own or module.keeps_mask or getattr(module, "supports_masking", False)):
        return None
    traced = partial(_traced_mask, module, where, sizes)
    calls: list[Any] = []
    unmasked: list[Any] = []
    leads = getattr(module, "hands_masks", False)
    for args, kwargs in history.calls:
        x = args[0] if args else None
        given = kwargs.get("mask")
        if given is None and not leads and isinstance(x, TensorSpec) and (x.ndim or 0) > 1:
            given = TensorSpec((x.shape or ())[:2], "bool")
        calls += [((x, given), {})] if given is not None else []
        if leads or getattr(module, "makes_mask", False):
            calls.append(((x,), {}))
        elif module._gradtape_makes_mask:
            unmasked.append(((x, [None] * len(x) if isinstance(x, (list, tuple)) else None), {}))
    found = None
    if unmasked:
        with suppress(SaveError):  # it may need a mask
            found = traced(calls + unmasked)
    if not calls and found is None:
        return None
    found = traced(calls) if found is None else found
    return found if any(x.graph.outputs for x in found.concrete) else None


def _traced_mask(module: Layer, where: str, sizes: str, calls: Sequence[Any]) -> SavedFunction:
    return _traced_for(calls, "compute_mask", module.compute_mask, where, sizes, True)


def _traced_for(
    calls: Sequence[Any],
    name: str,
    original: Any,
    where: str,
    sizes: str,
    converts: bool,
    adding: Any = None,
) -> SavedFunction:
    signature = inspect.signature(original)
    function = Function(adding or original, name=name)
    concrete: list[ConcreteFunction] = []
    seen: list[list[Shapes]] = []
    for args, kwargs, shapes in _variants(signature, calls, sizes):
        general = (args, kwargs)
        if sizes == "open":
            general = pack_like(general, [_batched(leaf) for leaf in flatten(general)])
        try:
            traced = function.get_concrete_function(*general[0], **general[1])
        except Exception as error:
            together = _of_one_batch(general, shapes) if sizes == "open" else None
            found = None if together is None else _traced(function, *together)
            if found is None:
                if sizes == "open":
                    _needs_sizes(where, error, function, (args, kwargs), shapes)
                raise SaveError(f"{where} cannot be traced: {reason_of(error)}") from error
            traced = found
        concrete.append(traced if adding is None else split_added(traced))
        seen.append(shapes)
    return SavedFunction(name, where, signature, concrete, original, sizes, seen, converts, adding)


def _variants(
    signature: inspect.Signature, calls: Sequence[Any], sizes: str
) -> list[tuple[Any, Any, list[Shapes]]]:
    """Return the arguments to trace a call for, each with the shapes that it was seen with."""
    takes_training = "training" in signature.parameters
    others = any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values())
    variants: dict[Any, Any] = {}
    seen: dict[Any, list[Shapes]] = {}
    for args, kwargs in calls:
        if not takes_training and not others:  # a layer to which it makes no difference
            kwargs = {name: x for name, x in kwargs.items() if name != "training"}
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if isinstance(value, (Tensor, np.ndarray, np.generic)):  # a default, which nobody gave
                bound.arguments[name] = TensorSpec(value.shape, value.dtype)
        choices: list[Any] = [False, True] if takes_training else [None]
        if takes_training:  # None, say, which may mean either
            default = signature.parameters["training"].default
            known_values = (bound.arguments["training"], default)
            choices += [x for x in known_values if x is not inspect.Parameter.empty]
        for choice in choices:
            if takes_training:
                bound.arguments["training"] = choice
            tree = (bound.args, bound.kwargs)
            leaves = flatten(tree)
            key = (structure(tree), *(_kind(leaf, sizes) for leaf in leaves))
            known = variants.get(key)
            variants[key] = tree if known is None else _merged(known, tree)
            shapes: Any = tuple(x.shape for x in leaves if isinstance(x, TensorSpec))
            if not any(map(has_unknown_sizes, shapes)) and shapes not in seen.setdefault(key, []):
                seen[key].append(shapes)
    return [(*tree, _informative(seen.get(key, []))) for key, tree in variants.items()]


def _informative(seen: list[Shapes]) -> list[Shapes]:
    """Return the smallest call, and the smallest with other sizes outside the batch."""
    ordered = sorted(seen, key=lambda shapes: sum(map(prod, shapes)))
    inner = [[shape[1:] for shape in shapes] for shapes in ordered]
    others = [x for x, rest in zip(ordered, inner, strict=True) if rest != inner[0]]
    return [*ordered[:1], *others[:1]]


def trace_callable(
    function: Any, module: Module, history: History, where: str, sizes: str
) -> SavedFunction:
    """Trace a callable of a layer's configuration, for any shape if possible.

    Its arguments depend on the layer's variables and input. It is traced for the common floating
    dtypes, and for those of the layer and its inputs. It is traced for integers (such as a step
    number) only if it takes nothing else.
    """
    if isinstance(function, RestoredFunction):
        sizes = function.sizes
        traces = function.concrete_functions
        return SavedFunction(function.name, where, function.signature, traces, function, sizes)
    seen = [x for x in flatten(history.calls) if isinstance(x, TensorSpec)]
    dtypes: set[np.dtype[Any]] = {np.dtype("float32"), np.dtype("float64")}
    own = [v.dtype for v in module.variables] + [x.dtype for x in seen]
    dtypes |= {dtype for dtype in own if dtype.kind in "fc"}
    shapes = dict.fromkeys([history.output, *(x.shape for x in seen)])
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
                spec = TensorSpec(shape, dtype)
                try:
                    found = traced.get_concrete_function(
                        spec if sizes == "seen" else _batched(spec)
                    )
                except Exception as other:
                    reason = other
                else:
                    concrete += [found] if found not in concrete else []
    if not concrete:
        hint = "call the layer once before saving it"
        if shapes and reason is not None:
            spec = TensorSpec(None)
            _needs_sizes(where, reason, traced, ((spec,), {}), [(x,) for x in shapes])
            hint = "write it with gradtape's ops"
        raise SaveError(
            f"{where}: {function!r} cannot be traced for a tensor of unknown rank "
            f"({reason_of(reason)}); {hint}"
        ) from reason
    name = getattr(function, "__name__", type(function).__name__)
    exact = any(spec.shape is not None for x in concrete for spec in x.specs)
    return SavedFunction(
        name, where, traced.signature, concrete, function, sizes if exact else "open"
    )


def trace_rule(rule: Any, weight: Variable, regularizer: bool, where: str) -> SavedFunction:
    """Trace a regularizer or a constraint for its weight, whose shape never changes."""
    if isinstance(rule, RestoredFunction):
        return SavedFunction(rule.name, where, rule.signature, rule.concrete_functions, rule)
    traced = rule if isinstance(rule, Function) else Function(rule)
    try:
        concrete = traced.get_concrete_function(TensorSpec(weight.shape, weight.dtype))
    except Exception as error:
        raise SaveError(f"{where} cannot be traced: {reason_of(error)}") from error
    if not rule_fits_weight([concrete], weight, regularizer):
        wanted = "a scalar" if regularizer else f"a tensor of the shape {weight.shape}"
        raise SaveError(f"{where} does not return {wanted}")
    name = getattr(rule, "__name__", type(rule).__name__)
    return SavedFunction(name, where, traced.signature, [concrete], rule)


def _needs_sizes(
    where: str,
    reason: Exception,
    function: Function[..., Any],
    call: Any,
    seen: Sequence[Sequence[Shape]],
) -> None:
    """Raise ``NeedsSizes`` if a function has a trace for the sizes seen but none for others."""
    if not seen:
        return
    shapes = iter(seen[0])
    leaves = [
        TensorSpec(next(shapes), x.dtype) if isinstance(x, TensorSpec) else x for x in flatten(call)
    ]
    args, kwargs = pack_like(call, leaves)
    try:
        function.get_concrete_function(*args, **kwargs)
    except Exception:
        return
    shown = ", ".join(str(x) for x in leaves if isinstance(x, TensorSpec))
    raise NeedsSizes(
        f"{where} cannot be traced for unknown sizes: {reason_of(reason)}. Write it with sizes: "
        "x.shape[0] computes with numbers and tensors in a trace; or save it only for the sizes "
        f'seen ({shown}): gradtape.save(..., sizes="seen")'
    ) from reason


def reason_of(error: BaseException | None) -> str:
    """Return an error's text, and the user's line that raised it."""
    place = "" if error is None or isinstance(error, TraceError) else line_of(error)
    return str(error).rstrip(".") + (f" ({place})" if place else "")


def _kind(leaf: Any, sizes: str) -> Any:
    if isinstance(leaf, TensorSpec):
        return ("tensor", leaf.dtype, leaf.ndim if sizes == "open" else leaf.shape)
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return (type(leaf), leaf)


def _merged(known: Any, tree: Any) -> Any:
    """Return the specs that fit both calls: sizes that differ become unknown."""
    leaves = []
    for a, b in zip(flatten(known), flatten(tree), strict=True):
        if isinstance(a, TensorSpec) and a.shape is not None and b.shape is not None:
            shape = tuple(n if n == m else None for n, m in zip(a.shape, b.shape, strict=True))
            a = TensorSpec(shape, a.dtype)
        leaves.append(a)
    return pack_like(known, leaves)


def _traced(function: Function[..., Any], args: Any, kwargs: Any) -> ConcreteFunction | None:
    try:
        return function.get_concrete_function(*args, **kwargs)
    except Exception:  # the first error is the one that is reported
        return None


def _of_one_batch(call: Any, seen: Sequence[Shapes]) -> Any:
    """Return a call whose tensors share one batch size, if they did in each call, or None."""
    firsts = [{shape[0] for shape in shapes if shape} for shapes in seen]
    several = sum(isinstance(leaf, TensorSpec) and bool(leaf.shape) for leaf in flatten(call)) > 1
    if not several or any(len(sizes) != 1 for sizes in firsts):
        return None
    return pack_like(call, [_named_batch(leaf) for leaf in flatten(call)])


def _named_batch(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec) or not leaf.shape:
        return leaf
    return TensorSpec(("batch", *leaf.shape[1:]), leaf.dtype, leaf.name)


def _batched(leaf: Any) -> Any:
    if not isinstance(leaf, TensorSpec) or not leaf.shape:
        return leaf
    shape: Shape = (None, *leaf.shape[1:])
    return TensorSpec(shape, leaf.dtype, leaf.name)


def plain_signature(concrete: ConcreteFunction) -> inspect.Signature:
    """Return parameters for a trace, with the names that it knows."""
    args, kwargs = concrete.arguments
    kinds = inspect.Parameter
    known = concrete.names if len(concrete.names) == len(args) else None
    first = kinds.POSITIONAL_ONLY if known is None else kinds.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            *(kinds(known[i] if known else f"arg{i}", first) for i in range(len(args))),
            *(kinds(name, kinds.KEYWORD_ONLY) for name in kwargs),
        ]
    )
