"""``TensorSpec``: the shape and dtype of a tensor that does not exist yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .dtypes import as_dtype, default_dtype
from .sizes import Shape, Size, shapes_differ

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
