"""``Handle``: an array and its identity, the part of a tensor that lower layers know."""

from __future__ import annotations

from itertools import count
from typing import Any, Self

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
