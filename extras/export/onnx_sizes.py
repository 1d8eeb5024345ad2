"""The sizes of an ONNX model that are known only in a run."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import ndonnx as ndx
import numpy as np
from spox import Tensor

from ..core.extend import Dim, alone, evaluated, lowered


class Sizes:
    """Unknown sizes by name.

    ONNX's shape inference passes names from node to node. Each name is mapped to a size that
    supports arithmetic and comparison as in a trace, and raises if Python needs its value.
    """

    def __init__(self) -> None:
        self._named: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self._homes: dict[str, tuple[Any, int | None, int]] = {}
        self._lowered: dict[str, Any] = {}
        self._numbers = itertools.count()

    def shape(self, inner: Any) -> tuple[Any, ...]:
        """Return the shape of an array of ndonnx."""
        sizes = _type(inner).shape
        if None in sizes:
            sizes = tuple([self._new_name() if n is None else n for n in sizes])
            _set_shape(inner, sizes)
        for axis, n in enumerate(sizes):
            if type(n) is str and n not in self._named:
                self._new(n, inner, axis)
        return tuple([n if type(n) is int else self._named[n] for n in sizes])

    def value(self, inner: Any) -> Any:
        """Return the value of an array of one integer as a size."""
        return self._new(self._new_name(), inner, None)

    def argument(self, inner: Any) -> None:
        """Add the sizes of an input; each is at least 1."""
        for axis, name in enumerate(_type(inner).shape):
            if type(name) is str and name not in self._named:
                self._new(name, inner, axis, least=1)

    def _new(self, name: str, inner: Any, axis: int | None, least: int = 0) -> Any:
        dim = Dim(name, inner, axis)
        self._homes[dim.key] = (inner, axis, least)
        # written as 1 plus a non-negative number, a size is known to differ from 0
        size: Any = alone(dim)
        size = self._named[name] = size + least
        self._names[size.key] = name
        return size

    def _new_name(self) -> str:
        names = (f"size_{number}" for number in self._numbers)
        return next(name for name in names if name not in self._named)

    def tell(self, inner: Any, shape: Sequence[Any]) -> None:
        """Set the shape of an array of ndonnx; None leaves a size unchanged."""
        names = list(_type(inner).shape)
        for axis, n in enumerate(shape):
            if n is None or type(names[axis]) is int:
                continue
            if type(n) is not int and n.key not in self._names:
                name = self._names[n.key] = self._new_name()
                self._named[name] = n
            names[axis] = n if type(n) is int else self._names[n.key]
        _set_shape(inner, names)

    def vector(self, shape: Sequence[Any]) -> Any:
        """Return a shape as an array of ndonnx."""
        if all(type(n) is int for n in shape):
            return ndx.asarray(np.asarray(shape, np.int64))
        parts = [
            ndx.asarray(n, dtype=ndx.int64) if type(n) is int else self.lowered(n) for n in shape
        ]
        return ndx.stack(parts)

    def lowered(self, value: Any) -> Any:
        """Return an array of ndonnx that computes an unknown value in each run."""
        if value.key not in self._lowered:
            homes: list[tuple[Any, int | None, int]] = []

            def place(dim: Dim) -> tuple[str, int]:
                homes.append(self._homes[dim.key])
                return "value", len(homes) - 1

            formula = lowered(value, place)
            self._lowered[value.key] = evaluated(formula, (), lambda k: _counted(*homes[k]))
        return self._lowered[value.key]


def _counted(inner: Any, axis: int | None, least: int) -> Any:
    found = ndx.astype(inner, ndx.int64) if axis is None else inner.dynamic_shape[axis]
    return found - least if least else found


def _type(inner: Any) -> Any:
    return inner.unwrap_spox().unwrap_tensor()


def _set_shape(inner: Any, names: Sequence[Any]) -> None:
    info = inner.unwrap_spox()._var_info
    info.type = Tensor(info.type.dtype, tuple(names))
