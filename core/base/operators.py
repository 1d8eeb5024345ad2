"""Python's operators, one op each: the table, and the base class of gradtape's array types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .index import encode_index
from .table import F
from .unknown import not_known

#: The operators that take a second operand, on either side: ``__add__`` and ``__radd__``.
BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "abs", "invert": "bitwise_invert"}


class ArrayOperators:
    """Base class of symbols and batches, so that rules written with operators run on them."""

    __slots__ = ()
    # an ndarray on the left then leaves the operator to this class
    __array_ufunc__ = None

    #: Whether it is a value of a graph being traced.
    traced = False
    #: Whether it has one value for each example of a batch.
    batched = False

    # == is elementwise, so sets and dictionaries find these by identity, and lists do not
    __hash__ = object.__hash__

    def why_unknown(self) -> str:
        """Return why there are no values, and what to do instead."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise not_known(self, "a tensor's truth (if, while, and, or)")

    def __getitem__(self, index: Any) -> Any:
        template, arrays = encode_index(index, lambda part: part)
        return F.getitem(self, *arrays, index=template)

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return F.floor_divide(self, other), F.remainder(self, other)

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return F.floor_divide(other, self), F.remainder(other, self)


# the functions that F has looked up already
_found = vars(F)


def _unary(op: str) -> Callable[..., Any]:
    return lambda self: getattr(F, op)(self)


def _binary(op: str) -> Callable[..., Any]:
    def method(self: Any, other: Any) -> Any:
        try:
            function = _found[op]  # half the cost of getattr
        except KeyError:
            function = getattr(F, op)
        return function(self, other)

    return method


def _reflected(op: str) -> Callable[..., Any]:
    return lambda self, other: getattr(F, op)(other, self)


for _name, _op in UNARY.items():
    setattr(ArrayOperators, f"__{_name}__", _unary(_op))
for _name, _op in (BINARY | COMPARISONS).items():
    setattr(ArrayOperators, f"__{_name}__", _binary(_op))
for _name, _op in BINARY.items():
    setattr(ArrayOperators, f"__r{_name}__", _reflected(_op))
