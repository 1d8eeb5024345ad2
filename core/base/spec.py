"""``TensorSpec``: the shape and dtype of a tensor that is not there yet."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import TraceError
from .dtypes import as_dtype, default_dtype
from .sizes import OpenSize, Size, is_open, known_size, provably_equal

__all__ = [
    "Shape",
    "TensorSpec",
    "as_shape",
    "as_size",
    "blunt",
    "broadcast_shapes",
    "describe",
    "differ",
    "same_shape",
    "unsure",
]

# A dimension is an integer, None if it is unknown, or in a trace an open Size; None alone is an
# unknown rank.
Shape = tuple[Any, ...] | None

# What files hold.
_LONGEST_NAME = 1024


class TensorSpec:
    """Describe a tensor's shape and dtype, for ``function(input_signature=...)``.

    Parameters
    ----------
    shape
        A sequence of sizes: an integer, ``None`` for an unknown size, or a name for one that is
        unknown but the same wherever a call's arguments have that name; or ``None`` for unknown
        rank.
    dtype
        The dtype; the default dtype (``float32``) if not given.
    name
        The argument's name in printed graphs.

    Attributes
    ----------
    shape
        A tuple of sizes, ``None`` for an unknown size, named or not; or ``None`` for unknown rank.
    names
        The name of each size, ``None`` for one without; or ``None`` if no size has a name.

    Raises
    ------
    TypeError
        If the shape is no sequence, or no tensor can have the dtype.
    ValueError
        If a size is negative or no integer, or its name is no Python identifier.

    Examples
    --------
    >>> gt.TensorSpec([None, 3])
    TensorSpec((None, 3), 'float32')
    >>> spec = gt.TensorSpec(["batch", 3])
    >>> spec, spec.shape, spec.names
    (TensorSpec(('batch', 3), 'float32'), (None, 3), ('batch', None))
    """

    __slots__ = ("dtype", "name", "names", "shape", "trues")

    def __init__(
        self,
        shape: Sequence[int | str | Size | None] | None,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if isinstance(shape, (int, str)):
            raise TypeError(f"TensorSpec: a shape is a sequence of sizes or None, got {shape!r}")
        sizes = None if shape is None else tuple(shape)
        self.names: tuple[str | None, ...] | None = None
        if sizes is not None and any(isinstance(n, str) for n in sizes):
            self.names = tuple(_size_name(n) if isinstance(n, str) else None for n in sizes)
            sizes = tuple(None if isinstance(n, str) else n for n in sizes)
        self.shape: Shape = None if sizes is None else tuple(_dimension(n) for n in sizes)
        self.dtype: np.dtype[Any] = default_dtype() if dtype is None else as_dtype(dtype)
        self.name = name
        # how many elements are true, for a mask that a trace knows
        self.trues: int | None = None

    @classmethod
    def of(cls, array: Any) -> TensorSpec:
        """Return the spec of an array or symbol, whose sizes need no check."""
        spec = cls.__new__(cls)
        spec.shape, spec.dtype = array.shape, array.dtype
        spec.name = spec.names = spec.trues = None
        return spec

    @property
    def ndim(self) -> int | None:
        """The number of axes, ``None`` if unknown."""
        return None if self.shape is None else len(self.shape)

    @property
    def dims(self) -> tuple[Any, ...] | None:
        """The shape as it was given: the name of a size that has one."""
        if self.shape is None or self.names is None:
            return self.shape
        return tuple(
            n if name is None else name for n, name in zip(self.shape, self.names, strict=True)
        )

    def admits(self, shape: Sequence[int | Size | None] | None) -> bool:
        """Return whether a tensor of ``shape`` fits, as far as a trace knows the shape.

        Parameters
        ----------
        shape
            A sequence of sizes, ``None`` for an unknown one; or ``None`` for unknown rank.

        Returns
        -------
        bool
            False if a known size or the number of axes differs.
        """
        if self.shape is None or shape is None:
            return True
        if len(shape) != len(self.shape):
            return False
        return not any(map(differ, self.shape, shape))

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


def differ(n: Any, m: Any) -> bool:
    """Return whether two sizes are not equal, as far as a trace knows them."""
    if known_size(n) and known_size(m):
        return bool(n != m)
    return n is not None and m is not None and not _may_be(n, m)


def same_shape(a: Any, b: Any) -> bool:
    """Return whether two shapes are equal in every run, as far as a trace can prove it."""
    try:
        return a is not None and bool(a == b)
    except OpenSize:
        return False


def unsure(shape: Any) -> bool:
    """Return whether a shape is not fully known (it is a symbol's)."""
    return shape is None or None in shape


def describe(shape: Shape, dtype: Any) -> str:
    """Return ``float32[2, ?]``, or ``float32[...]`` for unknown rank."""
    if shape is None:
        return f"{dtype}[...]"
    return f"{dtype}[{', '.join('?' if n is None else str(n) for n in shape)}]"


def _size_name(name: str) -> str:
    if not name.isidentifier() or len(name) > _LONGEST_NAME:
        raise ValueError(
            "TensorSpec: the name of a size is a Python identifier of at most "
            f"{_LONGEST_NAME} characters, got {name[:80]!r}"
        )
    return name


def blunt(shape: Any) -> Any:
    """Return a shape with ``None`` in the place of each size that is open."""
    return None if shape is None else tuple(n if known_size(n) else None for n in shape)


def _dimension(size: Any) -> Any:
    if size is None or isinstance(size, Size):
        return size
    if isinstance(size, bool) or int(size) != size or size < 0:
        raise ValueError(f"TensorSpec: a dimension is a size of at least 0 or None, got {size!r}")
    return int(size)


def broadcast_shapes(*shapes: Shape, op: str = "broadcast") -> Shape:
    """Broadcast shapes by NumPy's rule, unknown sizes included.

    Parameters
    ----------
    shapes
        Tuples of sizes, ``None`` for an unknown size; or ``None`` for unknown rank.
    op
        The name that begins the message if they do not broadcast.

    Returns
    -------
    tuple or None
        The common shape; ``None`` if a rank is unknown. A known size above 1 wins over an unknown
        one.

    Raises
    ------
    ValueError
        If two known sizes disagree.

    Examples
    --------
    >>> from gradtape.core.extend import broadcast_shapes
    >>> broadcast_shapes((2, None), (3,))
    (2, 3)
    """
    if None in shapes:
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max((len(shape) for shape in known), default=0)
    result: list[int | None] = []
    for axis in range(-rank, 0):
        sizes = [shape[axis] for shape in known if len(shape) >= -axis]
        sizes = [n for n in sizes if type(n) is not int or n != 1]
        size, fits = (sizes[0] if sizes else 1), True
        if len(sizes) > 1:
            size, fits = _broadcast_size(sizes)
        if not fits:
            raise ValueError(
                f"{op}: shapes {' and '.join(str(shape) for shape in known)} do not broadcast"
            )
        result.append(size)
    return tuple(result)


def _broadcast_size(sizes: list[Any]) -> tuple[Any, bool]:
    """Return the size that sizes have together, and whether they may go together at all."""
    fixed = {n for n in sizes if known_size(n)}
    unknown = [n for n in sizes if not known_size(n)]
    if len(fixed) > 1:
        return None, False
    if fixed:
        # a known size above 1 wins over an unknown one, which must be it or 1 at run time
        (size,) = fixed
        return size, all(n is None or _may_be(n, size) or _may_be(n, 1) for n in unknown)
    first = unknown[0]
    if all(n is first or provably_equal(n, first) for n in unknown[1:]):
        return first, True
    pairs = [(a, b) for i, a in enumerate(unknown) for b in unknown[:i] if None is not a]
    fits = all(b is None or _may_be(a, b) or _may_be(a, 1) or _may_be(b, 1) for a, b in pairs)
    return None, fits


def _may_be(a: Any, b: Any) -> bool:
    """Return whether two sizes may be equal in a run."""
    return (a == b) is not False


def as_size(n: Any, name: str) -> Any:
    """Return what a user gave as a size, a count or a bound: an int, or a size that is open.

    Raises
    ------
    TypeError
        If it is no integer.
    """
    if isinstance(n, Size):
        return n.as_plain()
    if getattr(getattr(n, "array", None), "traced", False):
        return n.array.as_size(name)
    try:
        return operator.index(n)
    except TypeError:
        if is_open(n):
            raise
        raise TypeError(f"{name}: expected an integer, got {n!r}") from None


def _listed(shape: Any, name: str) -> Any:
    """Return the sizes in a vector, which may be traced; what is none as the only size."""
    array = getattr(shape, "array", shape)
    axes: Any = getattr(array, "shape", ())
    if axes is None or len(axes) != 1:
        return (shape,)
    if not getattr(array, "traced", False):
        return shape.tolist()
    if not known_size(axes[0]):
        raise TraceError(
            f"{name}: {array!r} is no shape, since how many sizes it holds is not known while a "
            "function is traced"
        )
    return [shape[i] for i in range(axes[0])]


def as_shape(shape: Any, name: str) -> tuple[Any, ...]:
    """Return what a user gave as a shape (one size, a sequence or a vector) as a tuple of ints.

    In a trace, sizes that are open stay what they are.

    Raises
    ------
    TypeError
        If a size is no integer; ``None`` is one that a trace does not know.
    """
    sizes = shape if isinstance(shape, (tuple, list)) else _listed(shape, name)
    try:
        return tuple([n if type(n) is int else as_size(n, name) for n in sizes])
    except TypeError as error:
        if isinstance(error, TraceError):
            raise
        hint = ""
        if any(n is None for n in sizes):
            hint = (
                "; None says that a size is unknown: take the size itself, which x.shape[i] is in "
                "a trace too, or let -1 stand for what is left in reshape"
            )
        raise TypeError(
            f"{name}: a shape is an integer or a sequence of integers, got {shape!r}{hint}"
        ) from None
