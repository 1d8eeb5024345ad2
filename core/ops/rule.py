"""The rules of an op: gradient rules (``Rule``), batching rules and forward rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from weakref import WeakKeyDictionary

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
        self.fn = fn
        self.fn_complex = _conjugated(fn) if op.holomorphic else fn
        self.broadcasts = op.broadcasts
        self.checked = False
        slots: list[int] = []
        likes: set[int] = set()
        keywords: list[str] = []
        for name in _argument_names(fn, op.defaults)[1:]:
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
