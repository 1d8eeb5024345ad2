"""What gradtape's array types share: an identity, Python's operators, indices, and specs.

``ArrayHandle`` is an array and its identity, the part of a tensor that lower layers know.
``ArrayOperators`` gives a class Python's operators, one op each. ``encode_index`` turns the
contents of Python's brackets into plain values, as ops have them as a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, Self

import numpy as np

from .dtypes import as_dtype, default_dtype
from .sizes import Shape, Size, as_size, shapes_differ
from .table import F
from .user_code import not_known

#: Identities on tapes, in the order of creation; 0 belongs to none.
next_id = count(1).__next__


class ArrayHandle:
    """An array of any type, and the number that identifies it on tapes."""

    _gradtape_internal = "id with_id"

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

    _gradtape_internal = "batched traced why_unknown"

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


# The longest name that files can hold.
_LONGEST_NAME = 1024


class TensorSpec:
    """Describe a tensor's shape and dtype, for ``function(input_signature=...)``.

    Parameters
    ----------
    shape
        A sequence of sizes, or ``None`` for an unknown rank. A size is an integer, ``None`` if it
        is unknown, or a name if it is unknown but the same wherever a call's arguments have that
        name.
    dtype
        The dtype; the default dtype (``float32``) if not given.
    name
        The argument's name in printed graphs.

    Attributes
    ----------
    shape
        A tuple of sizes, ``None`` for an unknown size, named or not; or ``None`` for an unknown
        rank.
    names
        The name of each size, ``None`` for a size without one; or ``None`` if no size has a name.

    Raises
    ------
    TypeError
        If the shape is not a sequence, or tensors cannot have the dtype.
    ValueError
        If a size is negative or not an integer, or its name is not a Python identifier.

    Examples
    --------
    >>> gt.TensorSpec([None, 3])
    TensorSpec((None, 3), 'float32')
    >>> spec = gt.TensorSpec(["batch", 3])
    >>> spec, spec.shape, spec.names
    (TensorSpec(('batch', 3), 'float32'), (None, 3), ('batch', None))
    """

    __slots__ = ("dtype", "name", "names", "shape")

    def __init__(
        self,
        shape: Sequence[int | str | Size | None] | None,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if isinstance(shape, (int, str)):
            raise TypeError(
                f"TensorSpec: a shape must be a sequence of sizes or None, got {shape!r}"
            )
        sizes = None if shape is None else tuple(shape)
        self.names: tuple[str | None, ...] | None = None
        if sizes is not None and any(isinstance(n, str) for n in sizes):
            self.names = tuple(_size_name(n) if isinstance(n, str) else None for n in sizes)
            sizes = tuple(None if isinstance(n, str) else n for n in sizes)
        self.shape: Shape = None if sizes is None else tuple(_dimension(n) for n in sizes)
        self.dtype: np.dtype[Any] = default_dtype() if dtype is None else as_dtype(dtype)
        self.name = name

    @property
    def ndim(self) -> int | None:
        """The number of axes, ``None`` if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def dims(self) -> tuple[Any, ...] | None:
        """The shape with the names of named sizes, as it was passed."""
        if self.shape is None or self.names is None:
            return self.shape
        return tuple(
            n if name is None else name for n, name in zip(self.shape, self.names, strict=True)
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return TensorSpec, (self.dims, self.dtype, self.name)

    def admits(self, shape: Sequence[int | Size | None] | None) -> bool:
        """Return whether a tensor of ``shape`` fits, as far as a trace knows the shape.

        Parameters
        ----------
        shape
            A sequence of sizes, ``None`` for an unknown one; or ``None`` for an unknown rank.

        Returns
        -------
        bool
            False if a known size or the number of axes differs.
        """
        return not shapes_differ(self.shape, shape)

    def _key(self) -> tuple[Any, str]:
        return (self.dims, self.dtype.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        name = "" if self.name is None else f", name={self.name!r}"
        return f"TensorSpec({self.dims}, {self.dtype.name!r}{name})"

    def __str__(self) -> str:
        return describe(self.dims, self.dtype)


class InputSpec(TensorSpec):
    """The spec of an input that a shape rule receives: a symbol's shape, without further checks.

    Attributes
    ----------
    trues
        How many elements of a mask are true, if the trace knows it.
    """

    __slots__ = ("trues",)

    def __init__(self, symbol: Any, trues: int | None = None) -> None:
        self.shape, self.dtype = symbol.shape, symbol.dtype
        self.name = self.names = None
        self.trues = trues


def describe(shape: Shape, dtype: Any) -> str:
    """Return ``float32[2, ?]``, or ``float32[...]`` for an unknown rank."""
    dtype = str(dtype).rpartition(".")[2]  # other libraries' dtypes have a prefix
    if shape is None:
        return f"{dtype}[...]"
    return f"{dtype}[{', '.join('?' if n is None else str(n) for n in shape)}]"


def _size_name(name: str) -> str:
    if not name.isidentifier() or len(name) > _LONGEST_NAME:
        raise ValueError(
            "TensorSpec: the name of a size must be a Python identifier of at most "
            f"{_LONGEST_NAME} characters, got {name[:80]!r}"
        )
    return name


def _dimension(size: Any) -> Any:
    if size is None or isinstance(size, Size):
        return size
    if isinstance(size, bool) or int(size) != size or size < 0:
        raise ValueError(f"TensorSpec: a size must be an integer >= 0 or None, got {size!r}")
    return int(size)
