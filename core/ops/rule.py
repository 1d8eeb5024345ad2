"""An op's record: its signature and traits, its gradient rules (``Rule``) and other rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from ..base.array_types import TensorSpec
from ..base.dtypes import SCALARS, numpy_dtype
from ..base.table import F
from ..errors import PluginError
from .dispatch import shape_witness

if TYPE_CHECKING:
    from .primitive import Primitive

#: How an op batches: by broadcasting, in terms of other ops, or by a function of the op, the arrays
#: inside, which of them are batched, and the parameters. It returns the results with the hidden
#: axis first.
BatchRule: TypeAlias = (
    "Literal['elementwise'] | Composed"
    " | Callable[[Primitive, list[Any], list[bool], dict[str, Any]], Any]"
)
#: The forward rule: the kind of linearity of the op, or ``rule(tangents, inputs, outputs,
#: **params)``.
ForwardRule: TypeAlias = "Literal['linear', 'multilinear'] | Callable[..., Any]"

#: In :attr:`Rule.single`: the rule needs no value.
NOTHING = -1
#: In :attr:`Rule.quick`: the rule reads an op's only input and its result.
BOTH = 2
#: Marks an input that intentionally has no gradient.
NONDIFF = None

_TAKES_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
_ANY_NUMBER = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Rule:
    """The gradient rule of one input: ``fn(g, *picked, **keywords)`` is that input's gradient.

    The function's parameter names select its arguments: inputs, ``out``, only the shape and dtype
    of an input (``x_like``), or parameters of the op. A tape keeps only these values alive.

    Attributes
    ----------
    fn, fn_complex
        The function, for real and for complex results.
    pick
        Selects the function's arguments from the tuple of the op's inputs and its output.
    single
        The position in that tuple of the only value that the function needs; ``NOTHING`` if it
        needs no value; None in all other cases.
    quick
        The same for the quick ops, which also know ``BOTH``.
    keywords
        The op's parameters that it needs.
    check
        What compares the gradient with the upstream one, if the input is like the result; None if
        nothing does.
    plain
        ``fn``, ``pick`` and ``single`` for use with ``check``, without a check of their own.
    broadcasts
        Whether its result must still be summed to the shape of the input.
    """

    __slots__ = (
        "broadcasts",
        "check",
        "checked",
        "fn",
        "fn_complex",
        "keywords",
        "pick",
        "plain",
        "quick",
        "single",
    )

    def __init__(self, op: Primitive, target: str, fn: Callable[..., Any]) -> None:
        names = _argument_names(fn, op.defaults)[1:]
        fn = _in_any_order(fn, names, op.defaults)
        self.fn = fn
        self.fn_complex = _conjugated(fn) if op.holomorphic else fn
        self.broadcasts = op.broadcasts
        self.checked = False
        slots: list[int] = []
        likes: set[int] = set()
        keywords: list[str] = []
        for name in names:
            stem = name.removesuffix("_like")
            if name in op.inputs:
                slots.append(op.inputs.index(name))
            elif name == "out":
                slots.append(len(op.inputs))
            elif stem in op.inputs:
                likes.add(len(slots))
                slots.append(op.inputs.index(stem))
            elif name in op.defaults:
                keywords.append(name)
            else:
                raise PluginError(
                    f"op {op.name!r}: the gradient rule of {target!r} has a parameter {name!r}; it "
                    f"may name inputs {op.inputs}, 'out', '<input>_like' or parameters "
                    f"{tuple(op.defaults)}"
                )
        self.keywords = tuple(keywords)
        self.pick = _picker(slots, likes)
        simple = len(slots) <= 1 and not likes and not keywords
        self.single: int | None = (slots[0] if slots else NOTHING) if simple else None
        self.check: Any = None
        self.plain: Any = fn, self.pick, self.single
        both = slots == [0, 1] and len(op.inputs) == 1 and not likes and not keywords
        self.quick = BOTH if both else self.single

    def apply(
        self, g: Any, values: tuple[Any, ...], params: Mapping[str, Any], complex_: bool = False
    ) -> Any:
        """Return the input's gradient from the op's inputs, its output and all parameters."""
        fn = self.fn_complex if complex_ else self.fn
        return fn(g, *self.pick(values), **self.settings(params))

    def belongs_to(self, op: str) -> None:
        """Remember the op's name for its functions, because tapes keep only the functions."""
        for fn in (self.fn, self.fn_complex, self.plain[0]):
            remember(fn, op)

    def settings(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the op's parameters that the rule takes."""
        return {name: params[name] for name in self.keywords}


# the names of ops, by a rule's function
_op_names: WeakKeyDictionary[Callable[..., Any], str] = WeakKeyDictionary()


def remember(fn: Callable[..., Any], op: str) -> None:
    """Remember the name of the op that a rule's function belongs to."""
    with suppress(TypeError):  # it does not support weak references
        _op_names.setdefault(fn, op)  # another op may use the same function


def op_of(fn: Callable[..., Any]) -> str:
    """Return the name of the op that a rule's function belongs to."""
    return _op_names.get(fn) or str(getattr(fn, "__qualname__", repr(fn)))


class Composed:
    """A batching rule that writes the op in terms of other ops: ``fn(*arrays, **params)``.

    Its arrays belong to one example, as in a gradient rule.
    """

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn


def _argument_names(fn: Callable[..., Any], by_keyword: Collection[str]) -> tuple[str, ...]:
    """Return the names of a function's parameters, with stars where they cannot be given."""
    if type(fn) is FunctionType and not fn.__dict__:  # nothing that changes its signature
        code = fn.__code__
        if not (code.co_flags & _TAKES_MORE or code.co_kwonlyargcount):
            # a hundred times faster than inspect, for hundreds of rules
            return tuple(code.co_varnames[: code.co_argcount])
    names = []
    for name, x in inspect.signature(fn).parameters.items():
        if x.kind is x.KEYWORD_ONLY and name not in by_keyword:
            name = f"*, {name}"  # inputs are given by position
        names.append(str(x) if x.kind in _ANY_NUMBER else name)
    return tuple(names)


def _in_any_order(
    fn: Callable[..., Any], names: Sequence[str], by_keyword: Collection[str]
) -> Callable[..., Any]:
    """Return a rule that takes arrays by position, even if a parameter of the op is before one."""
    kinds = [name in by_keyword for name in names]
    if kinds == sorted(kinds):
        return fn
    arrays = [name for name in names if name not in by_keyword]

    @wraps(fn)
    def rule(g: Any, *picked: Any, **params: Any) -> Any:
        return fn(g, **dict(zip(arrays, picked, strict=True)), **params)

    return rule


def _conjugated(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Return a holomorphic function's rule for complex values: the conjugate of the derivative."""

    def rule(g: Any, *args: Any, **params: Any) -> Any:
        return F.conj(fn(F.conj(g), *args, **params))

    return rule


def _picker(slots: list[int], likes: set[int]) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return a function that selects a rule's tensors from an op's inputs and output."""
    if not slots:
        return lambda values: ()
    # itemgetter returns a bare item for one index, and a tuple for a slice
    getter = itemgetter(*slots) if len(slots) > 1 else itemgetter(slice(slots[0], slots[0] + 1))
    if not likes:
        return getter
    wanted = [(slot, i in likes) for i, slot in enumerate(slots)]

    def pick(values: tuple[Any, ...]) -> tuple[Any, ...]:
        # a list first: half the cost of a generator
        return tuple([shape_witness(values[i]) if like else values[i] for i, like in wanted])

    return pick


def one_by_one(together: Callable[..., Any]) -> Callable[..., Any]:
    """Return the ``vjp`` of an op that picks elements, from its rule for many picks."""

    def vjp(gs: Any, inputs: Sequence[Any], outputs: Any, needed: Any, **params: Any) -> list[Any]:
        return [together(gs, [inputs], [params]), *[None] * (len(inputs) - 1)]

    return vjp


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
    description = {
        "view": bool(op.view),
        "identity": op.identity,
        "reads='shapes'": op.reads == "shapes",
        "random": op.random,
    }
    for name, holds in description.items():
        if holds and not op.inputs:
            refuse(f"{name} says something of its first input, but it has no inputs")
    for one, other in (
        ("view", "reads='shapes'"),
        ("view", "random"),
        ("identity", "reads='shapes'"),
        ("identity", "random"),
        ("reads='shapes'", "random"),
    ):
        if description[one] and description[other]:
            refuse(f"{one} and {other} contradict each other; give one of them")
    if op.identity and op.view is False:
        refuse("an identity returns its input, so it is a view of it; leave out view=False")
    if description["reads='shapes'"] and op.differentiable:
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
    """Return a rule that is a function or one of some words; raise for anything else."""
    right = rule in words if isinstance(rule, str) else callable(rule) or type(rule) is Composed
    if rule is not None and not right:
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
    parameters = _parameters(kernel)
    _check_namespace(name, parameters, inputs is not None)
    for parameter in parameters[1:]:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            defaults[parameter.name] = parameter.default
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            arrays.append("*" + parameter.name)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            raise PluginError(
                f"op {name!r}: its kernel takes **{parameter.name}; name each parameter instead"
            )
        elif parameter.default is not inspect.Parameter.empty:
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
    return checked_form(op, infer(*specs, **{**op.defaults, **params}))


def checked_form(op: Primitive, found: Any) -> Any:
    """Return what a shape rule returned; raise if it has another form than it must have.

    Raises
    ------
    PluginError
        If it is neither a pair of a shape and a dtype, nor a list of such pairs.
    """
    if op.verified:
        return found
    for part in found if isinstance(found, list) else [found]:
        pair = isinstance(part, tuple) and len(part) == 2
        if not (pair and (part[0] is None or isinstance(part[0], (tuple, list)))):
            raise PluginError(
                f"op {op.name!r}: its shape rule (infer=) returned "
                f"{'None (is a return missing?)' if found is None else f'{found!r:.80}'}; it must "
                "return (shape, dtype), or a list of such pairs for several outputs"
            )
        for n in part[0] or ():
            if isinstance(n, float) or (isinstance(n, (int, np.integer)) and n < 0):
                raise PluginError(
                    f"op {op.name!r}: its shape rule (infer=) returned the shape "
                    f"{tuple(part[0] or ())}; a size is an integer from 0, an unknown size, or None"
                )
    return found


#: What nobody calls a namespace of functions.
_ARRAYS = frozenset({"a", "arr", "array", "b", "data", "input", "inputs", "tensor", "x", "y", "z"})


class _Parameter(NamedTuple):
    """A parameter, with the kinds and the missing default of ``inspect``."""

    name: str
    kind: Any
    default: Any


def _parameters(function: Callable[..., Any]) -> Sequence[_Parameter | inspect.Parameter]:
    """Return the parameters of a function; each op has kernels, and ``inspect`` is slow."""
    if type(function) is not FunctionType or vars(function):  # perhaps another's signature
        return list(inspect.signature(function).parameters.values())
    code, kinds, empty = function.__code__, inspect.Parameter, inspect.Parameter.empty
    names, count = code.co_varnames, code.co_argcount
    end = count + code.co_kwonlyargcount
    given = function.__defaults__ or ()
    defaults = [empty] * (count - len(given)) + list(given)
    by_name = function.__kwdefaults__ or {}
    found = [
        _Parameter(
            name,
            kinds.POSITIONAL_ONLY if i < code.co_posonlyargcount else kinds.POSITIONAL_OR_KEYWORD,
            defaults[i],
        )
        for i, name in enumerate(names[:count])
    ]
    if code.co_flags & inspect.CO_VARARGS:
        found.append(_Parameter(names[end], kinds.VAR_POSITIONAL, empty))
        end += 1
    found += [
        _Parameter(name, kinds.KEYWORD_ONLY, by_name.get(name, empty))
        for name in names[count : count + code.co_kwonlyargcount]
    ]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        found.append(_Parameter(names[end], kinds.VAR_KEYWORD, empty))
    return found


def _check_namespace(op: str, parameters: Sequence[Any], inputs_given: bool) -> None:
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
