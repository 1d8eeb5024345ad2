"""Arguments of calls: arrays in every layout and plain values, for both libraries and as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gradtape.core.extend import Tensor, constant

__all__ = ["LAYOUTS", "Array", "Code", "arrays_in", "mapped", "ours", "text", "theirs"]

NDArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Layout:
    """The layout of an array in memory: an array, and a view of it, which is the argument."""

    stored: Callable[[NDArray], NDArray]
    view: Callable[[Any], Any]
    text: str


#: Layouts by name. ``text`` is the view in Python, with ``{}`` for the array or tensor.
LAYOUTS = {
    "plain": Layout(lambda x: x, lambda x: x, "{}"),
    "fortran": Layout(lambda x: np.ascontiguousarray(x.T), lambda x: x.T, "{}.T"),
    "strided": Layout(lambda x: np.repeat(x, 2, -1), lambda x: x[..., ::2], "{}[..., ::2]"),
    "reversed": Layout(lambda x: x[::-1].copy(), lambda x: x[::-1], "{}[::-1]"),
    "read-only": Layout(lambda x: x, lambda x: x, "{}"),
}


@dataclass(frozen=True)
class Array:
    """An array argument.

    ``form`` is the type that gradtape receives: ``"tensor"``, or ``"ndarray"`` or ``"list"``, which
    NumPy receives as well.
    """

    values: NDArray
    layout: str = "plain"
    form: str = "tensor"

    def with_values(self, values: NDArray) -> Array:
        """Return the same kind of argument with other values."""
        return replace(self, values=np.asarray(values))

    def numpy(self) -> Any:
        """Return the argument for NumPy."""
        if self.form == "list":
            return self.values.tolist()
        layout = LAYOUTS[self.layout]
        array = layout.view(layout.stored(self.values))
        if self.layout == "read-only":
            array = array.view()
            array.flags.writeable = False
        return array

    def tensor(self) -> Tensor:
        """Return the argument as a tensor, in its layout."""
        layout = LAYOUTS[self.layout]
        tensor: Tensor = layout.view(constant(layout.stored(self.values)))
        return tensor

    def text(self, tensor: bool) -> str:
        """Return the argument in Python, as a ``tensor`` or as a NumPy array."""
        if self.form == "list":
            return str(self.values.tolist())
        layout = LAYOUTS[self.layout]
        stored = layout.stored(self.values)
        listed = str(stored.tolist())
        if 0 in stored.shape:
            listed = f"zeros({stored.shape}, {stored.dtype.name!r})"
        else:
            listed = f"array({listed}, {stored.dtype.name!r})"
        if tensor and self.form == "tensor":
            listed = f"gt.constant({listed})"
        return layout.text.format(listed)


@dataclass(frozen=True)
class Code:
    """An argument written in Python, such as a function of arrays. ``xp`` is np or gt."""

    source: str

    def value(self, xp: Any) -> Any:
        """Return the argument for one of the two libraries."""
        return eval(self.source, {"xp": xp, "np": np})

    def text(self, xp: str) -> str:
        """Return the argument in Python."""
        return self.source.replace("xp.", f"{xp}.")


def theirs(value: Any) -> Any:
    """Return an argument in the form that NumPy receives."""
    if type(value) is Array:
        return value.numpy()
    if type(value) is Code:
        return value.value(np)
    if type(value) in (list, tuple):
        return type(value)([theirs(item) for item in value])
    return value


def ours(value: Any, xp: Any) -> Any:
    """Return an argument in the form that gradtape receives."""
    if type(value) is Array:
        return value.tensor() if value.form == "tensor" else value.numpy()
    if type(value) is Code:
        return value.value(xp)
    if type(value) in (list, tuple):
        return type(value)([ours(item, xp) for item in value])
    return value


def text(value: Any, xp: str) -> str:
    """Return an argument in Python, for ``xp`` "np" or "gt"."""
    if type(value) is Array:
        return value.text(xp == "gt")
    if type(value) is Code:
        return value.text(xp)
    if type(value) is list:
        return f"[{', '.join(text(item, xp) for item in value)}]"
    if type(value) is tuple:
        return f"({', '.join(text(item, xp) for item in value)}{',' * (len(value) == 1)})"
    return str(value) if value is Ellipsis else repr(value)


def arrays_in(value: Any) -> list[Array]:
    """Return the arrays in an argument."""
    if type(value) is Array:
        return [value]
    if type(value) in (list, tuple):
        return [array for item in value for array in arrays_in(item)]
    return []


def mapped(value: Any, place: int, new: Array) -> Any:
    """Return an argument in which a new array replaces number ``place`` of ``arrays_in``."""
    if type(value) is Array:
        return new
    items = []
    for item in value:
        count = len(arrays_in(item))
        items.append(mapped(item, place, new) if 0 <= place < count else item)
        place -= count
    return type(value)(items)
