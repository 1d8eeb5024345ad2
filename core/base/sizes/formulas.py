"""Formulas: expressions of sizes as graphs and files hold them.

A node whose parameters depend on sizes has a formula instead of each. The arrays that have these
sizes, its *witnesses*, are further inputs at the end.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .arithmetic import largest, smallest
from .open_values import Open
from .unknowns import Compound, Condition, Dim, Number, Size, ordered_terms

# the size limit of a formula's integers: files are untrusted
_MOST_BITS = 4096


class Formula:
    """An expression of the sizes of a node's witnesses.

    Parameters
    ----------
    expression
        An integer, a float, ``("size", witness, axis)``, ``("value", witness)`` for the value of
        an integer, or ``(kind, *expressions)``.
    """

    __slots__ = ("expression",)

    def __init__(self, expression: Any) -> None:
        self.expression = expression

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Formula) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        return _text(self.expression)


def _power(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        if b < 0:
            raise ValueError(f"{a} ** {b} of sizes is not an integer; write {float(a)} ** {b}")
        if a.bit_length() * b > _MOST_BITS:
            raise OverflowError(f"a size of {a} ** {b} is too large for any array")
    result = a**b
    if isinstance(result, complex):
        raise ValueError(f"{a} ** {b} of sizes is a complex number")
    return result


def _product(*factors: Any) -> Any:
    result = factors[0]
    for factor in factors[1:]:
        result = result * factor
        if type(result) is int and result.bit_length() > _MOST_BITS:
            raise OverflowError("a product of sizes is too large for any array")
    return result


def _whole(comparison: Any) -> Any:
    return comparison * 1  # True is 1; an unknown comparison becomes a size


#: The operations of formulas, with the number of arguments; None for any number.
KINDS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "+": (None, lambda *xs: sum(xs[1:], xs[0])),
    "*": (None, _product),
    "-": (2, operator.sub),
    "/": (2, operator.truediv),
    "//": (2, operator.floordiv),
    "%": (2, operator.mod),
    "**": (2, _power),
    "neg": (1, operator.neg),
    "abs": (1, operator.abs),
    "floor": (1, math.floor),
    "ceil": (1, math.ceil),
    "trunc": (1, math.trunc),
    "round": (1, round),
    "int": (1, _whole),
    "max": (None, largest),
    "min": (None, smallest),
    "&": (2, operator.and_),
    "|": (2, operator.or_),
    "^": (2, operator.xor),
    "==": (2, operator.eq),
    "!=": (2, operator.ne),
    "<": (2, operator.lt),
    "<=": (2, operator.le),
    ">": (2, operator.gt),
    ">=": (2, operator.ge),
}

#: Faster versions for two arguments.
_OF_TWO: dict[str, Callable[..., Any]] = {"+": operator.add, "*": operator.mul}


def _text(expression: Any) -> str:
    if not isinstance(expression, tuple):
        return repr(expression)
    kind, *rest = expression
    if kind in ("size", "value"):
        return f"{kind}({', '.join(map(str, rest))})"
    if kind[0].isalpha():
        return f"{kind}({', '.join(map(_text, rest))})"
    return f"({f' {kind} '.join(map(_text, rest))})"


# -- from sizes ------------------------------------------------------------------------------------


def _expression(value: Any, place: Callable[[Dim], Any]) -> Any:
    if isinstance(value, Size):
        sums = []
        for monomial, factor in ordered_terms(value.terms):
            parts = [_expression(atom, place) for atom in monomial]
            parts = parts if factor == 1 and parts else [factor, *parts]
            sums.append(parts[0] if len(parts) == 1 else ("*", *parts))
        return sums[0] if len(sums) == 1 else ("+", *sums)
    if isinstance(value, Dim):
        return place(value)
    if isinstance(value, (Compound, Condition, Number)):
        return (value.kind, *(_expression(x, place) for x in value.args))
    return value


def dims_of(value: Any) -> Iterator[Dim]:
    """Yield the unknowns in an expression of sizes."""
    found: list[Dim] = []
    _expression(value, found.append)
    yield from found


def replaced(value: Any, kind: type | tuple[type, ...], new: Callable[[Any], Any]) -> Any:
    """Return a parameter with each part of type ``kind`` replaced by ``new(part)``."""
    if isinstance(value, kind):
        return new(value)
    if isinstance(value, (tuple, list)):  # a subclass may hold sizes too
        plain = tuple if isinstance(value, tuple) else list
        return plain(replaced(item, kind, new) for item in value)
    if type(value) is dict:
        return {key: replaced(item, kind, new) for key, item in value.items()}
    return value


# types that contain nothing, checked first: tracing calls this for each node
_PLAIN = frozenset((int, float, bool, str, type(None)))


def contains_instance(value: Any, kind: type | tuple[type, ...]) -> bool:
    """Return whether a parameter is, or contains, an instance of ``kind``."""
    if type(value) is dict:
        value = value.values()
    elif not isinstance(value, (tuple, list)):  # a subclass may hold sizes too
        return isinstance(value, kind)
    return any(type(item) not in _PLAIN and contains_instance(item, kind) for item in value)


def lowered(params: Any, place: Callable[[Dim], Any]) -> Any:
    """Return parameters with a formula instead of each size.

    Parameters
    ----------
    params
        Parameters of an op.
    place
        Returns ``("size", witness, axis)`` or ``("value", witness)`` for an unknown.
    """
    return replaced(params, Open, lambda value: Formula(_expression(value, place)))


# -- to sizes --------------------------------------------------------------------------------------

#: Computes parameters from the witnesses' shapes and a function that returns a witness's value.
Plan = Callable[[Sequence[Any], Callable[[int], Any]], Any]


def evaluated(params: Any, shapes: Sequence[Any], value: Callable[[int], Any]) -> Any:
    """Return parameters with each formula evaluated: a number, or a size during tracing.

    Parameters
    ----------
    params
        Parameters of a node.
    shapes
        The shapes of its witnesses.
    value
        Returns the value of a witness, an integer.

    Raises
    ------
    ValueError
        If a formula is malformed: files are untrusted.
    """
    return planned(params)(shapes, value)


def planned(params: Any) -> Plan:
    """Return a function that evaluates parameters, built once for many runs.

    Raises
    ------
    ValueError
        If a formula is malformed.
    """
    if not contains_instance(params, Formula):
        return lambda shapes, value: params
    if isinstance(params, Formula):
        return _planned(params.expression)
    if type(params) is dict:
        plans = {
            key: planned(item) for key, item in params.items() if contains_instance(item, Formula)
        }
        return lambda shapes, value: {
            **params,
            **{key: plan(shapes, value) for key, plan in plans.items()},
        }
    kind, items = type(params), [planned(item) for item in params]
    return lambda shapes, value: kind([plan(shapes, value) for plan in items])


def _planned(expression: Any) -> Plan:
    if type(expression) is int or type(expression) is float:
        return lambda shapes, value: expression
    if type(expression) is not tuple or len(expression) < 2:
        raise ValueError(f"not a formula of sizes: {str(expression)[:80]}")
    kind, *rest = expression
    if kind in ("size", "value"):
        return _size_reader(kind, rest)
    count, compute = KINDS.get(kind, (0, None)) if type(kind) is str else (0, None)
    if compute is None or count not in (None, len(rest)):
        raise ValueError(f"not a formula of sizes: {str(expression)[:80]}")
    parts = [_planned(x) for x in rest]
    if len(parts) != 2:
        return lambda shapes, value: compute(*[part(shapes, value) for part in parts])
    first, second = parts
    of_two: Callable[..., Any] = _OF_TWO.get(kind, compute)
    if type(rest[1]) is int:
        known = rest[1]
        return lambda shapes, value: of_two(first(shapes, value), known)
    return lambda shapes, value: of_two(first(shapes, value), second(shapes, value))


def _size_reader(kind: str, rest: Sequence[Any]) -> Plan:
    """Return a function that reads a size or the value of a witness."""
    count = 2 if kind == "size" else 1
    if [type(n) for n in rest] != [int] * count or min(rest) < 0:
        raise ValueError(f"not a size of a witness: {str((kind, *rest))[:80]}")
    witness = rest[0]
    if kind == "value":
        return lambda shapes, value: value(witness)
    axis = rest[1]

    def size(shapes: Sequence[Any], value: Callable[[int], Any]) -> Any:
        try:
            return shapes[witness][axis]
        except (IndexError, TypeError):
            raise ValueError(f"there is no witness {witness} with an axis {axis}") from None

    return size
