"""What a checkpoint keeps of a callback that does not say it itself: attributes that a run changes.

Arrays may be large, so that only those are stored that differ from what they were when the run
began.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import sys
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping
from types import MemberDescriptorType
from typing import Any

import numpy as np

from ...core.extend import Module, Tensor, Variable, is_code, to_numpy, warn_user
from ..callbacks.callback import Callback

__all__ = ["Snapshot", "is_plain", "load_attributes", "shared_attributes"]

#: What ``fit`` sets or calls, besides the attributes and methods of :class:`Callback`.
_OF_FIT = ("_asks_to_stop", "state_dict", "load_state_dict", "on_batch_begin", "on_batch_end")


class Snapshot:
    """The attributes of a callback at one time.

    Parameters
    ----------
    callback
        The callback.
    whole
        Whether to note what the others hold as well, for :meth:`changed`.
    stored
        The objects that a checkpoint keeps, by their ids: the model, its variables and so on.

    Attributes
    ----------
    plain
        Copies of those with plain values.
    """

    def __init__(
        self, callback: Any, whole: bool = False, stored: Container[int] = frozenset()
    ) -> None:
        held = _attributes(callback)
        self.plain = {name: copy.deepcopy(x) for name, x in held.items() if is_plain(x)}
        others = [name for name in held if whole and name not in self.plain]
        #: The package of the callback: objects of its classes belong to the callback's state.
        self._home = type(callback).__module__.partition(".")[0]
        self._marks = {name: _mark(held[name], stored, self._home) for name in others}
        self._told: set[str] = set()

    def changed(self, callback: Any, stored: Container[int] = frozenset()) -> dict[str, Any]:
        """Return the attributes with arrays or sets that are no longer as they were.

        Warns
        -----
        UserWarning
            Once, of an attribute that differs and that no file can hold.
        """
        found = {}
        for name, value in _attributes(callback).items():
            if is_plain(value) or self._is_as_before(name, value, stored):
                continue
            if is_state(value):
                found[name] = copy.deepcopy(value)
            elif not (is_code(value) or name in self._told):
                self._told.add(name)
                self._warn(callback, name, value)
        return found

    def _is_as_before(self, name: str, value: Any, stored: Container[int]) -> bool:
        return self._marks.get(name) == _mark(value, stored, self._home)

    def _warn(self, callback: Any, name: str, value: Any) -> None:
        kind = type(callback).__name__
        warn_user(
            f"fit: the checkpoint does not hold {kind}.{name} (a {type(value).__name__}), which "
            f"the run changed: a resumed run begins with what {kind} was made with. Give {kind} "
            "the methods state_dict() and load_state_dict(state)",
            UserWarning,
        )


def shared_attributes(callback: Any, names: Iterable[str]) -> dict[str, str]:
    """Return those of some attributes that hold the same object as another: the names of both."""
    held, first = _attributes(callback), dict[int, str]()
    pairs = [(name, first.setdefault(id(held[name]), name)) for name in names]
    return {
        name: other
        for name, other in pairs
        if name != other and isinstance(held[name], _CHANGED_IN_PLACE)
    }


#: The types of values for which it matters whether they are one object.
_CHANGED_IN_PLACE = (list, dict, set, np.ndarray)


def load_attributes(callback: Any, state: dict[str, Any], given: dict[str, Any]) -> None:
    """Set the attributes of a callback from a file.

    An attribute that did not change after ``on_train_begin`` is a setting, or belongs to one run,
    and keeps its current value. An open file or another object keeps it, too, and so does what
    ``fit`` sets or calls: a file is not trusted.

    Parameters
    ----------
    callback
        The callback.
    state
        Its plain attributes when that run had begun (``given``), what it holds (``now``), and
        which of that is one object (``same``).
    given
        Its plain attributes when this run had begun.
    """
    attributes, loaded = _attributes(callback), set[str]()
    for name, value in state["now"].items():
        if not _is_own(name):
            continue
        ran = _differs(name, value, state["given"])  # not a setting: the run changed it
        held = attributes.get(name)
        begun = is_plain(held) and _differs(name, held, given)
        # a file must replace neither a method nor what the callback has opened
        of_class: Any = getattr(type(callback), name, None)
        in_slot = isinstance(of_class, MemberDescriptorType)
        kept = not is_state(held) or not (in_slot or is_plain(of_class))
        if (ran or begun) and not kept:
            _set(callback, name, copy.deepcopy(value))
            loaded.add(name)
    attributes = _attributes(callback)
    same = state.get("same")  # older files have none
    for name, other in same.items() if isinstance(same, dict) else ():
        if name in loaded and isinstance(other, str) and other in loaded & attributes.keys():
            _set(callback, name, attributes[other])


def _set(callback: Any, name: str, value: Any) -> None:
    """Set an attribute without what the class's properties and ``__setattr__`` do."""
    of_class: Any = getattr(type(callback), name, None)
    if isinstance(of_class, MemberDescriptorType):
        of_class.__set__(callback, value)
    elif hasattr(callback, "__dict__"):
        vars(callback)[name] = value


def is_plain(value: Any) -> bool:
    """Return whether files can hold a value directly; not arrays, which may be large."""
    try:
        return _is_plain(value)
    except RecursionError:  # a list that holds itself
        return False


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return type(value) in (list, tuple) and all(map(_is_plain, value))
    if isinstance(value, dict):
        return type(value) is dict and all(map(_is_plain, (*value, *value.values())))
    if type(value) is int:
        return abs(value) < 2**64
    if isinstance(value, np.number):  # neither long doubles nor differences of times
        return value.dtype.kind in "iufc" and value.dtype.char not in "gG"
    return value is None or type(value) in (bool, str, float, complex)


def is_state(value: Any) -> bool:
    """Return whether files can hold a value, which may be an array or contain some."""
    try:
        return _is_state(value)
    except RecursionError:  # a list that holds itself
        return False


def _is_state(value: Any) -> bool:
    if type(value) is np.ndarray:
        return value.dtype.kind in "biufc" and value.dtype.char not in "gG"
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_state, value))
    if type(value) is dict:
        return all(map(_is_plain, value)) and all(map(_is_state, value.values()))
    return is_plain(value) or type(value) in (bytes, np.bool_, Tensor)


def _attributes(callback: Any) -> dict[str, Any]:
    return {name: value for name, value in _all_held(callback).items() if _is_own(name)}


def _is_own(name: Any) -> bool:
    """Return whether an attribute is a callback's own, and neither an event nor Python's."""
    return (
        type(name) is str
        and name.isidentifier()
        and not name.startswith(("__", "_gradtape"))
        and name not in _OF_FIT
        and not hasattr(Callback, name)
    )


def _differs(name: str, value: Any, held: dict[str, Any]) -> bool:
    return name not in held or repr(held[name]) != repr(value)


def _mark(value: Any, stored: Container[int], home: str) -> bytes:
    """Return a text that differs if the value does: what is in it, else its identity."""
    digest = hashlib.blake2b(digest_size=16)
    for part in _parts(value, stored, home):
        digest.update(len(part).to_bytes(8))  # so that parts do not run together
        digest.update(part)
    return digest.digest()


def _parts(value: Any, stored: Container[int], home: str) -> Iterator[bytes]:
    met: dict[int, Any] = {}  # holds them, so that no other object gets such an id
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if id(value) in stored:
            yield b"stored"
            continue
        if isinstance(value, (Tensor, Variable)):
            value = to_numpy(value.array)
        if is_plain(value) or type(value) in (int, bytes, bytearray):
            yield repr(value).encode()
        elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
            yield f"{value.dtype}{value.shape}".encode()
            yield np.ascontiguousarray(value).tobytes()
        else:
            inside = None if id(value) in met else _inside(value, home)
            met[id(value)] = value
            known = id(value) if inside is None else len(inside)
            yield f"{type(value).__name__} {known}".encode()
            waiting += (inside or [])[::-1]


def _inside(value: Any, home: str) -> list[Any] | None:
    """Return what is in a value; None if only its identity is known."""
    if isinstance(value, dict) or (isinstance(value, Mapping) and _is_users(type(value), home)):
        with contextlib.suppress(Exception):  # one of a file that is closed
            return [x for pair in value.items() for x in pair]
        return None
    if isinstance(value, np.ndarray):
        return list(value.flat)
    if isinstance(value, Module):
        return [*value.variables, *(_held(value) if _is_users(type(value), home) else ())]
    if is_code(value):
        return None
    kind = type(value)
    sized = hasattr(value, "__len__") and kind.__module__ in _CONTAINERS and kind is not range
    if sized or isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if kind.__module__.partition(".")[0] in _OF_VALUES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some iterators say that they soon cannot be reduced
            return _made_of(value)
    return (_held(value) or None) if _is_users(kind, home) else None


def _made_of(value: Any, depth: int = 3) -> list[Any] | None:
    """Return what an object of Python or NumPy is made of.

    None for a file or a lock, and for tools that have one: threads, queues between threads and
    temporary files belong to one run.
    """
    try:
        found = list(value.__reduce_ex__(2)[1:3])
    except Exception:
        return None
    state = found[-1] if found and type(found[-1]) is dict else {}
    for part in state.values() if depth else ():
        pythons = type(part).__module__.partition(".")[0] in sys.stdlib_module_names
        if pythons and not is_code(part) and _made_of(part, depth - 1) is None:
            return None
    return found


def _held(value: Any) -> list[Any]:
    """Return the names and values of an object's attributes."""
    pairs = _all_held(value).items()
    return [x for pair in pairs if not pair[0].startswith("_gradtape") for x in pair]


def _all_held(value: Any) -> dict[str, Any]:
    """Return an object's attributes by name, those in slots too."""
    held: dict[str, Any] = {}
    for cls in type(value).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            hidden = name.startswith("__") and not name.endswith("__")
            name = f"_{cls.__name__.lstrip('_')}{name}" if hidden else name
            if hasattr(value, name):
                held[name] = getattr(value, name)
    return {**held, **getattr(value, "__dict__", {})}


def _is_users(kind: type, home: str) -> bool:
    """Return whether a class is the user's or of the callback's package, and no other library's."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None) or ""
    installed = "site-packages" in file or "dist-packages" in file
    own = not installed or kind.__module__.partition(".")[0] == home
    return kind.__module__.partition(".")[0] != _PACKAGE and own


_PACKAGE = __name__.partition(".")[0]
#: The modules of containers whose contents count.
_CONTAINERS = ("builtins", "collections")
#: The packages whose objects are values, which say what they are made of.
_OF_VALUES = sys.stdlib_module_names - {"__main__"} | {"numpy"}
