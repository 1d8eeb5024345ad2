"""The NumPy array into which the user's running code writes, and what to write instead."""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from .frames import locals_of
from .instructions import (
    ITEM,
    METHODS,
    PARTS,
    Step,
    at,
    called,
    is_given,
    names_at,
    path_written,
    paths_to_sources,
)


class Target(NamedTuple):
    """An array into which code writes.

    ``owner`` is how the code names the array to make writable: of a view, the array that it is a
    view of.
    """

    array: Any
    path: tuple[Step, ...]
    call: str
    owner: str

    @property
    def statement(self) -> str:
        """The statement that writes."""
        if self.call in ("", "__setitem__"):
            return f"{self.name}[...] = x"
        if self.call in PARTS:
            return f"{self.name}.{self.call} = x"
        if self.call in METHODS:
            return f"{self.name}.{self.call}(x)"
        return f"numpy.{self.call}({self.name}, x)"

    @property
    def name(self) -> str:
        """How the code names the array."""
        return "".join(map(str, self.path))

    def how(self, code: CodeType) -> str:
        """Return where to make the array writable.

        The function that fills an argument must get the writable array, and a view must be one of
        the writable array: a writable copy of it would leave the other array as it was.
        """
        if self.owner == self.name:
            return how_to_write(code, self.name)
        how = how_to_write(code, self.owner)
        return f"{self.name} is a view of {self.owner}: {how}, and take the view from the result"


def how_to_write(code: CodeType, name: str) -> str:
    """Return where to make the array ``name`` writable, to whose elements code assigns.

    The function that fills an argument must get the writable array: it would write into a copy.
    """
    if is_given(code, name):
        return (
            "write a = gradtape.writable(a) in the caller, where the array is made, because "
            f"{name} is an argument of {code.co_name}"
        )
    return f"write {name} = gradtape.writable({name}) once the array is made"


def target_of(frame: FrameType) -> Target | None:
    """Return the array into which a frame is writing, ``None`` if into none.

    It writes by ``a[i] = x``, a method such as ``a.fill(x)``, or ``numpy.fill_diagonal(a, x)``.
    """
    code, place = frame.f_code, frame.f_lasti
    call = called(code, place)
    function = "" if call == ITEM else call.rpartition(".")[2]
    if call not in (ITEM, *PARTS) and function not in METHODS and function != "fill_diagonal":
        return None
    found = array_on(frame, path_written(code, place) or _by_names(code, place))
    if found is None:
        return None
    array, path = found
    name = "".join(map(str, path))
    return Target(array, path, function, _owner(frame, array, name))


def _by_names(code: CodeType, place: int) -> tuple[Step, ...]:
    """Return the variable and attributes with which a statement begins."""
    found = at(code, place)
    names = [] if found is None else names_at(code, found)
    kinds = ["name", *["attribute"] * len(names)]
    return tuple(Step(kind, name) for kind, name in zip(kinds, names, strict=False))


def array_on(frame: FrameType, path: Sequence[Step]) -> tuple[Any, tuple[Step, ...]] | None:
    """Return the first array in an expression, and the expression of it.

    No code of the user runs.
    """
    scope = {**frame.f_globals, **locals_of(frame)}
    held: Any = None
    for number, (kind, value) in enumerate(path):
        if kind == "name":
            held = scope.get(value)
        elif kind == "attribute":  # without running a property
            held = getattr(held, "__dict__", {}).get(value)
        else:
            index = scope.get(value) if kind == "of" else value
            held = _item(held, index) if kind != "any" else None
        if isinstance(held, np.ndarray):
            return held, tuple(path[: number + 1])
    return None


def _item(held: Any, index: Any) -> Any:
    if type(held) not in (dict, list, tuple) or type(index) not in (str, int, bool):
        return None
    try:
        return held[index]
    except LookupError:
        return None


def _owner(frame: FrameType, array: Any, name: str) -> str:
    """Return the name of the array that holds the memory of ``array``; see :class:`Target`."""
    owner = memory_of(array)
    if owner is array:
        return name
    others = {
        other: value
        for other, value in locals_of(frame).items()
        if isinstance(value, np.ndarray) and value is not array and memory_of(value) is owner
    }
    for other, value in others.items():
        if value is owner:
            return other
    if others:
        return max(others, key=lambda x: others[x].size)
    for path in paths_to_sources(frame.f_code, name):
        found = array_on(frame, path)
        if found is not None and found[0] is not array and memory_of(found[0]) is owner:
            return "".join(map(str, found[1]))
    return name  # nobody else has it: numpy.zeros(6).reshape(2, 3)


def aliases(frame: FrameType, array: Any) -> frozenset[str]:
    """Return the local variables of a frame that hold an array or views of its memory."""
    owner = memory_of(array)
    return frozenset(
        name
        for name, value in locals_of(frame).items()
        if isinstance(value, np.ndarray) and memory_of(value) is owner
    )


def memory_of(array: Any) -> Any:
    """Return the array that owns the memory of a view."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array
