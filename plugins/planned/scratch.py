"""Buffers of one block of a group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...core.extend import Symbol
from .steps import Shape, bytes_of

if TYPE_CHECKING:
    from .emission import Emission

__all__ = ["Scratch"]


class Scratch:
    """Buffers of one block, for what stays in a group."""

    def __init__(self, emission: Emission, rows: int, shape: Shape, even: bool) -> None:
        self.emission = emission
        self.shape = (min(rows, shape[0]), *shape[1:])
        self.even = even
        self._owned: dict[str, Any] = {}
        self._free: dict[Any, list[str]] = {}

    def take(self, out: Symbol) -> str:
        """Return an expression for a buffer."""
        free = self._free.get(out.dtype)
        if free:
            return free.pop()
        symbol = Symbol(out.graph, self.shape, out.dtype)
        name = self.emission.buffer(symbol)
        expression = name if self.even else f"{name}[:z - a]"
        self._owned[expression] = symbol
        return expression

    def free(self, expressions: Sequence[str], dtype: Any = None) -> None:
        """Take back buffers, of one dtype if one is named."""
        for expression in expressions:
            symbol = self._owned.get(expression)
            if symbol is None or (dtype is not None and symbol.dtype != dtype):
                continue
            free = self._free.setdefault(symbol.dtype, [])
            if expression not in free:
                free.append(expression)

    def close(self) -> None:
        """Leave the memory to whoever comes later."""
        for symbol in self._owned.values():
            slot = self.emission.slots.pop(symbol)
            self.emission.free.setdefault(bytes_of(symbol), []).append(slot)
