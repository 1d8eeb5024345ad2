"""What gradtape's array types share: an identity, Python's operators, and indices.

``Handle`` is an array and its identity, the part of a tensor that lower layers know.
``ArrayOperators`` gives a class Python's operators, one op each. ``encode_index`` turns the
contents of Python's brackets into plain values, as ops have them as a parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any, Self

import numpy as np

from .sizes import Size, as_size
from .table import F
from .user_code import not_known

#: Identities on tapes, in the order of creation; 0 belongs to none.
next_id = count(1).__next__


class Handle:
    """An array of any type, and the number that identifies it on tapes."""

    __slots__ = ("__weakref__", "array", "id")

    array: Any
    id: int

    def __init__(self, array: Any) -> None:
        self.array = array
        self.id = next_id()

    __init__.__qualname__ = "Tensor.__init__"  # so that errors name the class that users know

    @classmethod
    def with_id(cls, array: Any, id: int) -> Self:
        """Return a handle with the given identity on tapes: a variable's, or 0 for none.

        Parameters
        ----------
        array
            An array of a backend or of a trace.
        id
            The identity.

        Returns
        -------
        Tensor
            A handle of the array.
        """
        handle = object.__new__(cls)  # skips __init__, which would use up an identity
        handle.array = array
        handle.id = id
        return handle


# -- indices ---------------------------------------------------------------------------------------


def encode_index(index: Any, as_array: Callable[[Any], Any]) -> tuple[tuple[Any, ...], list[Any]]:
    """Return an index as a parameter of ops, and the arrays in it, converted by ``as_array``."""
    parts = index if isinstance(index, tuple) else (index,)
    template: list[Any] = []
    arrays: list[Any] = []
    for part in parts:
        if part is None:
            template.append("newaxis")
        elif part is Ellipsis:
            template.append("...")
        elif isinstance(part, slice):
            template.append(("slice", *(_bound(n) for n in (part.start, part.stop, part.step))))
        elif isinstance(part, (int, np.integer)) and not isinstance(part, bool):
            template.append(int(part))
        elif isinstance(part, Size):
            template.append(part)
        else:
            array = as_array(part)
            template.append(("array", len(arrays)))
            arrays.append(array)
    return tuple(template), arrays


def _bound(n: Any) -> Any:
    return n if n is None or type(n) is int else as_size(n, "getitem")


# -- operators -------------------------------------------------------------------------------------


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
