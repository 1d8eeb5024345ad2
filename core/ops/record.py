"""What an op's record may say: its signature, its rules, and its traits.

Traits tell executors, exporters, tapes and AutoGraph what they may assume about an op. They read
them from the record, so that an op of any plugin is treated as its record says.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..base.dtypes import SCALARS, numpy_dtype
from ..base.spec import TensorSpec
from ..errors import PluginError

if TYPE_CHECKING:
    from .primitive import Primitive

#: How an op computes with integers that a trace knows as expressions.
Integers: TypeAlias = "Literal['moves'] | Callable[..., Any] | None"


def check_traits(op: Primitive) -> None:
    """Check what a record says of an op, in itself and together.

    Raises
    ------
    PluginError
        If a trait has an unknown value, or two of them contradict each other.
    """

    def refuse(text: str) -> None:
        raise PluginError(f"op {op.name!r}: {text}")

    if op.view not in (None, True, False, "reshape"):
        refuse(f"view must be True, False, None or 'reshape', got {op.view!r}")
    if op.reads not in ("values", "shapes"):
        refuse(f"reads must be 'values' or 'shapes', got {op.reads!r}")
    if op.integers not in (None, "moves") and not callable(op.integers):
        refuse(f"integers must be 'moves' or a function of arrays, got {op.integers!r}")
    for name in ("identity", "inline", "pointwise", "random", "verified"):
        if type(getattr(op, name)) is not bool:
            refuse(f"{name} must be a boolean, got {getattr(op, name)!r}")
    if type(op.host) is not bool and not callable(op.host):
        refuse(f"host must be a boolean or a function of a backend, got {op.host!r}")
    if op.host and (op.infer is None or isinstance(op.kernel, str)):
        refuse(
            "host=True is for a kernel that is a function, with a shape rule (infer=), from which "
            "compilers know the results"
        )
    if op.host and op.inline:
        refuse("host and inline contradict each other; give one of them")
    said = {
        "view": bool(op.view),
        "identity": op.identity,
        "reads='shapes'": op.reads == "shapes",
        "random": op.random,
    }
    for name, holds in said.items():
        if holds and not op.inputs:
            refuse(f"{name} says something of its first input, but it has no inputs")
    for one, other in (
        ("view", "reads='shapes'"),
        ("view", "random"),
        ("identity", "reads='shapes'"),
        ("identity", "random"),
        ("reads='shapes'", "random"),
    ):
        if said[one] and said[other]:
            refuse(f"{one} and {other} contradict each other; give one of them")
    if op.identity and op.view is False:
        refuse("an identity returns its input, so it is a view of it; leave out view=False")
    if said["reads='shapes'"] and op.differentiable:
        refuse("reads='shapes' means that no value matters, but it has a gradient rule")
    _check_ends(op, refuse)


def _check_ends(op: Primitive, refuse: Callable[[str], None]) -> None:
    ends = op.ends_gradients
    if isinstance(ends, bool):
        return
    if isinstance(ends, str) or not set(ends) <= set(op.inputs):
        refuse(f"ends_gradients must be a boolean or names of its inputs {op.inputs}, got {ends!r}")
    for name, rule in zip(op.inputs, op.rules or (), strict=False):
        if rule is not None and name in ends:
            refuse(f"ends_gradients names {name!r}, which has a gradient rule")


def known(rule: Any, words: tuple[str, ...], op: str, argument: str) -> Any:
    """Return a rule that is a function or one of some words; raise for another word."""
    if isinstance(rule, str) and rule not in words:
        raise PluginError(
            f"op {op!r}: {argument} must be a function or {' or '.join(map(repr, words))}, got "
            f"{rule!r}"
        )
    return rule


def signature(
    name: str,
    kernel: str | Callable[..., Any],
    inputs: Sequence[str] | None,
    params: Mapping[str, Any] | None,
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the names of a kernel's arrays, and its parameters with their defaults."""
    if isinstance(kernel, str):
        if inputs is None:
            raise PluginError(
                f"op {name!r}: the kernel {kernel!r} is only a name, which does not show the "
                "inputs; pass their names as inputs="
            )
        return tuple(inputs), dict(params or {})
    arrays: list[str] = []
    defaults: dict[str, Any] = {}
    parameters = list(inspect.signature(kernel).parameters.values())
    _check_namespace(name, parameters, inputs is not None)
    for parameter in parameters[1:]:
        if parameter.kind is parameter.KEYWORD_ONLY:
            defaults[parameter.name] = parameter.default
        elif parameter.kind is parameter.VAR_POSITIONAL:
            arrays.append("*" + parameter.name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            raise PluginError(
                f"op {name!r}: its kernel takes **{parameter.name}; name each parameter instead"
            )
        elif parameter.default is not parameter.empty:
            raise PluginError(
                f"op {name!r}: {parameter.name!r} has a default but is positional; arrays must be "
                "positional, and parameters keyword-only"
            )
        else:
            arrays.append(parameter.name)
    return tuple(inputs) if inputs is not None else tuple(arrays), {**defaults, **(params or {})}


def inferred(op: Primitive, arrays: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """Return what the shape rule says of arrays: a shape and dtype, or a list of such pairs."""
    infer: Any = op.infer
    specs = [
        x if type(x) in SCALARS else TensorSpec(tuple(x.shape), numpy_dtype(x.dtype))
        for x in arrays
    ]
    return infer(*specs, **{**op.defaults, **params})


#: What nobody calls a namespace of functions.
_ARRAYS = frozenset({"a", "arr", "array", "b", "data", "input", "inputs", "tensor", "x", "y", "z"})


def _check_namespace(op: str, parameters: Sequence[inspect.Parameter], inputs_given: bool) -> None:
    """Refuse a kernel that forgets the namespace, its first parameter."""
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [x.name for x in parameters if x.kind in positional]
    if names and names[0] in _ARRAYS:
        why, arrays = f"its first parameter is {names[0]!r}", names
    elif (
        len(names) < 2
        and not inputs_given
        and not any(x.kind is inspect.Parameter.VAR_POSITIONAL for x in parameters)
    ):
        why, arrays = "it takes no arrays", ["x"]
    else:
        return
    raise PluginError(
        f"op {op!r}: a kernel first receives the functions of the array library, such as the "
        f"module numpy, and then arrays, but {why}; write kernel(xp, {', '.join(arrays)})"
    )
