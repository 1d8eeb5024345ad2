"""Nested arguments and results: their tensors, and the rest, which passes through unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from numpy import generic

from ..core.extend import BackendUnavailable, Variable, flatten, pack_like, structure


class Parts:
    """A nested container, taken apart into tensors and other leaves.

    Parameters
    ----------
    tree
        Lists, tuples and dicts of anything.
    kinds
        The types of the leaves that count as tensors.

    Attributes
    ----------
    tensors
        The tensors, in order.
    """

    __slots__ = ("_leaves", "_places", "_tree", "tensors")

    def __init__(self, tree: Any, kinds: Any) -> None:
        self._leaves = flatten(tree)
        self._places = [i for i, x in enumerate(self._leaves) if isinstance(x, kinds)]
        self.tensors = [self._leaves[i] for i in self._places]
        for i in self._places:  # memory with a single reference may be shared
            self._leaves[i] = None
        self._tree = pack_like(tree, self._leaves)

    def filled(self, tensors: Sequence[Any]) -> Any:
        """Return the container with these tensors instead of its own."""
        leaves = list(self._leaves)
        for i, x in zip(self._places, tensors, strict=True):
            leaves[i] = x
        return pack_like(self._tree, leaves)

    def key(self) -> Any:
        """Return what two containers share if they differ only in the values of tensors."""
        # texts tell 0.0 from -0.0, and nan is equal to itself
        numbers = (float, complex, generic)
        rest = tuple([(type(x), repr(x) if isinstance(x, numbers) else x) for x in self._leaves])
        return structure(self._tree), tuple(self._places), rest

    def taken(self) -> list[Any]:
        """Return the tensors, which the container no longer holds."""
        tensors, self.tensors = self.tensors, []
        return [x.value if isinstance(x, Variable) else x for x in tensors]


def imported(name: str) -> ModuleType:
    """Import a library, for which gradtape has an extra of the same name.

    Raises
    ------
    BackendUnavailable
        If it is missing: the message says what to install.
    """
    from importlib import import_module

    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise BackendUnavailable(
            f'gradtape.interop.{name}: {name} is not installed: pip install "gradtape[{name}]"'
        ) from error
