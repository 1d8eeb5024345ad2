"""``ValueHolder``: reading the value of a variable, or of another object that holds a tensor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..base.context import active_tapes
from .tensor import Operators, Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ValueHolder(Operators):
    """Base class of objects that NumPy, Python and other libraries read as their value."""

    _gradtape_internal = "handle"

    __slots__ = ()

    value: Any
    #: Whether functions that are traced take the value as a tensor, rather than read the object.
    _by_value = False

    def handle(self) -> Tensor:
        """Return the value without watching the object."""
        raise NotImplementedError

    def _leaving(self, method: str) -> Tensor:
        """Return the value; tell the tapes that do not follow it yet that ``method`` reads it."""
        handle = self.handle()
        unread = [t for t in active_tapes.get() if handle.id not in t.records]
        if unread and getattr(self, "trainable", False):
            handle._leave(method, held=True)
        return handle

    def numpy(self) -> NDArray[Any] | Any:
        """Return the value as a read-only NumPy array, without watching the variable.

        Returns
        -------
        numpy.ndarray or numpy.generic
            The value, of the variable's shape and dtype.
        """
        return self.handle().numpy()

    @property
    def device(self) -> str:
        """The backend and device of the value, for instance ``"numpy:cpu"``."""
        return self.handle().device

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self._leaving("__array__").__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """Return a DLPack capsule of the value, as :meth:`Tensor.__dlpack__` does."""
        return self._leaving("__dlpack__").__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.handle().__dlpack_device__()

    def tolist(self) -> Any:
        """Return the value as nested lists of Python numbers.

        Returns
        -------
        list or number
            A list per axis; a number if there are no axes.

        Raises
        ------
        TraceError
            While a function is traced or transformed, when there is no value.
        """
        return self._leaving("tolist").tolist()

    def item(self, *index: Any) -> Any:
        """Return the only element, or the one at ``index``, as a Python number.

        Parameters
        ----------
        index
            An integer (into the flattened value) or one for each axis, as in NumPy.

        Returns
        -------
        bool, int, float or complex
            The element.

        Raises
        ------
        ValueError
            If there are several elements and no index is given.
        IndexError
            If the index is out of bounds.
        """
        return self._leaving("item").item(*index)

    def __float__(self) -> float:
        return float(self._leaving("float"))

    def __int__(self) -> int:
        return int(self._leaving("int"))

    def __trunc__(self) -> int:
        return int(self)

    def __floor__(self) -> int:
        return math.floor(self._leaving("int"))

    def __ceil__(self) -> int:
        return math.ceil(self._leaving("int"))

    def __complex__(self) -> complex:
        return complex(self._leaving("complex"))

    def __bool__(self) -> bool:
        return bool(self.handle())

    def __index__(self) -> int:
        return self.handle().__index__()

    def __len__(self) -> int:
        return len(self.handle())

    def __iter__(self) -> Any:
        return iter(self.value)

    def __format__(self, spec: str) -> str:
        return format(self.handle(), spec)
