"""The module tree from JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.errors import UnknownName
from ...core.extend import (
    SCALARS,
    ConcreteFunction,
    Module,
    RestoredFunction,
    Tensor,
    Variable,
    as_tensor,
    policy,
    registry,
)
from ..errors import DamagedFile, MissingOp, MissingPlugin, UnsafeFile
from ..records.held import tracks
from ..records.loaded import MISSING, LoadedModule, check_name
from ..records.manifest import ModuleRecord
from ..records.schema import at, check_dtype, decode, tagged, take
from .contents import known_op

_SETS: dict[str, Any] = {"set": set, "frozenset": frozenset}
# What a class may hold itself where a file sets an attribute: plain values, and what holds them.
_PLAIN = (type(None), bool, int, float, complex, str, bytes, range, slice)
# How many keys or members may have the same hash: each is compared with all of these, and files can
# choose numbers of which all have the same.
_MOST_ALIKE = 256
# How many items are in the containers of attributes that are those of another one, together.
_MOST_SHARED = 2**20
_DATA = (*_PLAIN, list, tuple, dict, set, frozenset, np.ndarray, np.generic, np.dtype, Tensor)


class StateReader:
    """Set the attributes of modules from JSON.

    Parameters
    ----------
    variables, modules
        The modules and variables of the file, which attributes refer to by number.
    array
        Returns the array at a path of the file.
    allow_missing
        Whether to leave out ops that are not installed.
    """

    def __init__(
        self,
        variables: Sequence[Variable],
        modules: Sequence[Module],
        array: Callable[[str], np.ndarray[Any, Any]],
        allow_missing: bool = False,
    ) -> None:
        self._pools: dict[str, Sequence[Any]] = {"variable": variables, "module": modules}
        self._array = array
        self._allow_missing = allow_missing
        self._containers: list[Any] = []  # lists and dictionaries, in the order in which they begin
        self._shared = 0
        #: How modules of the file differ from what their classes make today.
        self.changed: list[str] = []
        self._arrays: dict[tuple[str, str], Any] = {}

    def restore(self, module: Module, record: ModuleRecord, where: str) -> None:
        """Set a module's attributes; for a known class, only what it tracks."""
        generic = isinstance(module, LoadedModule)
        made = {} if generic else _tracked(module)
        for name, encoded in record.attributes.items():
            check_name(name, type(module), where)
            value = self.decode(encoded, where)
            if encoded is not None and "same" in encoded:
                self._charge(value, where)
            if generic:
                vars(module)[name] = value
                continue
            if not tracks(value):
                if name in _parts(module):
                    raise DamagedFile(
                        f"{where}: {name!r} is neither a variable nor a module, and holds none"
                    )
                continue  # the configuration has the settings
            settled = type(vars(module).get(name)) in _PLAIN[1:]
            if settled and name in (record.config or ()):
                raise DamagedFile(f"{where}: {name!r} is in its configuration too")
            _check_kind(vars(module).get(name), value, f"{where}: {name!r}")
            self._set(module, name, value, where)
        if unset := [name for name in made if name not in record.attributes]:
            others = [name for name in _tracked(module) if name not in made]
            self.changed.append(_difference(module, unset, others))
        for name, encoded in (record.extra or {}).items():
            check_name(name, type(module), where)
            value = self.decode(encoded, where)
            if not isinstance(vars(module).get(name), _DATA) or tracks(value):
                raise DamagedFile(f"{where}: {name!r} is not an attribute that a file may set")
            self._set(module, name, value, where)

    def _charge(self, value: Any, where: str) -> None:
        """Limit repeated traversal of containers that many attributes share."""
        seen: set[int] = set()
        queue = [value]
        while queue:
            item = queue.pop()
            if isinstance(item, (list, tuple, dict)) and id(item) not in seen:
                seen.add(id(item))
                self._shared += len(item)
                if self._shared > _MOST_SHARED:
                    raise UnsafeFile(f"{where}: its attributes share too many containers")
                queue += item.values() if isinstance(item, dict) else item

    def _set(self, module: Module, name: str, value: Any, where: str) -> None:
        try:
            setattr(module, name, value)
        except Exception as error:  # a plugin's class, with untrusted arguments
            raise DamagedFile(
                f"{where}: {type(module).__name__} refuses {name!r}: {error}"
            ) from None

    def decode(self, encoded: Any, where: str) -> Any:
        if encoded is None:
            return None
        tag, content = tagged(encoded, where)
        if tag in self._pools:
            return at(self._pools[tag], content, tag, where)
        if tag == "same":
            return at(self._containers, content, "container", where)
        if tag == "value":
            return decode(content)
        if tag in ("list", "tuple", "dict", "items"):
            return self._container(tag, content, where)
        if tag in ("array", "tensor") and type(content) is str:
            return self._array_at(tag, content)
        if tag == "op" and type(content) is str:
            op = known_op(content)
            if op is None and not self._allow_missing:
                raise MissingOp(f"{where}: no installed plugin provides the op {content[:80]!r}")
            return op
        try:
            return self._leaf(tag, content, where)
        except (TypeError, ValueError, OverflowError) as error:
            raise DamagedFile(f"{where}: {tag[:40]!r}: {error}") from None

    def _container(self, tag: str, content: Any, where: str) -> Any:
        if tag == "dict" and type(content) is dict:
            found: dict[Any, Any] = {}
            self._containers.append(found)
            found.update((key, self.decode(item, where)) for key, item in content.items())
            return found
        if type(content) is not list or tag == "dict":
            raise DamagedFile(f"{where}: not a {tag}: {str(content)[:80]}")
        if tag == "tuple":
            return tuple([self.decode(item, where) for item in content])
        if tag == "list":
            items: list[Any] = []
            self._containers.append(items)
            items += [self.decode(item, where) for item in content]
            return items
        found = {}
        self._containers.append(found)
        if any(type(pair) is not list or len(pair) != 2 for pair in content):
            raise DamagedFile(f"{where}: not keys and their items: {str(content)[:80]}")
        try:
            keys = _hashable([decode(key) for key, _ in content], where)
        except TypeError as error:
            raise DamagedFile(f"{where}: not a key: {error}") from None
        found.update(
            (key, self.decode(x, where)) for key, (_, x) in zip(keys, content, strict=True)
        )
        if len(found) < len(keys):
            raise DamagedFile(f"{where}: a key is repeated: {str(content)[:80]}")
        return found

    def _array_at(self, tag: str, path: str) -> Any:
        """Return an array of the file, or a tensor of it: the same object each time."""
        known = self._arrays.get((tag, path))
        if known is None:
            array = self._array(path)
            known = self._arrays[tag, path] = as_tensor(array) if tag == "tensor" else array
        return known

    def _leaf(self, tag: str, content: Any, where: str) -> Any:
        if tag in _SETS and type(content) is list:
            return _SETS[tag](_hashable([self.decode(item, where) for item in content], where))
        if tag in ("range", "slice") and type(content) is list and len(content) == 3:
            parts = [decode(part) for part in content]
            return range(*parts) if tag == "range" else slice(*parts)
        if tag == "bytes" and type(content) is str:
            return bytes.fromhex(content)
        if tag == "dtype":
            return check_dtype(content, where)
        if tag == "scalar" and type(content) is list and len(content) == 2:
            number = decode(content[1])
            if type(number) in SCALARS:
                return check_dtype(content[0], where).type(number)
        raise DamagedFile(f"{where}: not an attribute: {tag[:40]!r}")


def fixed(value: Any) -> None:
    """Make arrays in a value read-only, because a graph contains their elements."""
    queue, seen = [value], {id(value)}
    while queue:
        item = queue.pop()
        if isinstance(item, np.ndarray):
            item.flags.writeable = False
        elif isinstance(item, (list, tuple, dict)):
            inner = list(item.values() if isinstance(item, dict) else item)
            queue += [x for x in inner if id(x) not in seen]
            seen.update(map(id, inner))


def _parts(module: Module) -> set[str]:
    """Return the names of a module's attributes that are weights or states, or hold some."""
    named = (*getattr(module, "weight_names", ()), *getattr(module, "state_names", ()))
    return {*named, *(name for name, value in vars(module).items() if tracks(value))}


def _tracked(module: Module) -> dict[str, Any]:
    """Return the attributes in which a module holds variables or modules."""
    items = vars(module).items()
    return {k: x for k, x in items if not k.startswith("_gradtape") and tracks(x)}


def _difference(module: Module, unset: Sequence[str], others: Sequence[str]) -> str:
    """Describe a class that makes other attributes than when the file was saved."""
    kind, known = type(module).__name__, ", ".join(map(repr, unset))
    has = f", but has {', '.join(map(repr, others))}, which {kind} does not make" if others else ""
    return f"module {module.name!r} ({kind}) has no {known} in the file{has}"


def _check_kind(known: Any, value: Any, where: str) -> None:
    """Refuse values that cannot replace a variable that a constructor made."""
    if isinstance(known, Variable) and not (
        isinstance(value, Variable)
        and value.shape == known.shape
        and value.dtype.kind == known.dtype.kind
    ):
        raise DamagedFile(f"{where} is not like {known!r}")
    if isinstance(known, Module) and not isinstance(value, Module):
        raise DamagedFile(f"{where} is no module, as {known!r} is"[:300])


def _hashable(keys: list[Any], where: str) -> list[Any]:
    """Return keys from which a dictionary or a set is built quickly."""
    alike = Counter(map(hash, keys))
    if keys and max(alike.values()) > _MOST_ALIKE:
        raise UnsafeFile(f"{where}: more than {_MOST_ALIKE} keys with the same hash")
    return keys


class MissingFunction(RestoredFunction):
    """A function with traces that need an op that no plugin provides here."""

    reason = ""

    def select(self, args: Any, kwargs: Any) -> ConcreteFunction:
        """Return the first trace that fits, or raise an error that names what is missing."""
        try:
            if self.concrete_functions:
                return super().select(args, kwargs)
        except TypeError:  # it would be one of those that are not here
            pass
        raise MissingOp(f"{self.name} cannot run, and was {MISSING}{self.reason}")


def restore_config(
    cls: type, record: Any, functions: Callable[[int], RestoredFunction], where: str
) -> Module:
    """Rebuild a known class from its configuration."""
    config: dict[str, Any] = {}
    for key, encoded in record.items():
        tag, content = tagged(encoded, f"{where}: configuration {key[:80]!r}")
        if tag == "value":
            try:
                config[key] = decode(content)
            except DamagedFile as error:
                raise DamagedFile(f"{where}: configuration {key[:80]!r}: {error}") from None
        elif tag == "op":
            name = take(encoded, "op", str, where)
            op = known_op(name)
            if op is None:
                raise MissingOp(f"{where}: no installed plugin provides the op {name[:80]!r}")
            config[key] = op
        elif tag == "function":
            config[key] = functions(content)
            if isinstance(config[key], MissingFunction):
                raise MissingOp(config[key].reason)
        else:
            raise DamagedFile(f"{where}: configuration {key[:80]!r} is a {tag[:80]!r}")
    if not issubclass(cls, Module):  # before anything is made of it
        raise DamagedFile(f"{where}: {cls.__name__} is not a module class")
    build = getattr(cls, "from_config", None)
    try:
        with policy("float32"):  # only the file decides, not the caller's policy
            module = cls(**config) if build is None else build(config)
    except Exception as error:  # a plugin's class, with untrusted arguments
        if isinstance(error, UnknownName) and _lacks_names(config):
            raise MissingPlugin(f"{where}: {error}") from None
        raise DamagedFile(f"{where}: {cls.__name__} refuses its configuration: {error}") from None
    if not isinstance(module, Module):
        raise DamagedFile(f"{where}: {cls.__name__} is not a module class")
    return module


def _lacks_names(config: Mapping[str, Any]) -> bool:
    """Return whether a configuration names an object that only another plugin could provide."""
    named = [x.get("name") if isinstance(x, dict) else x for x in config.values()]
    texts = [x for x in named if isinstance(x, str) and ("::" in x or "." in x)]
    return not all(map(registry().has_name, texts))


def check_restored(modules: Sequence[Module]) -> None:
    """Let layers check what a file set; refuse layers that call themselves."""
    inside: dict[int, list[Any]] = {}
    for i, module in enumerate(modules):
        check = getattr(type(module), "check_restored", None)
        if check is not None:
            try:
                inside[id(module)] = check(module)
            except RecursionError:
                raise DamagedFile(
                    f"module {i}: {type(module).__name__} {module.name!r} holds itself"
                ) from None
            except Exception as error:  # a plugin's class, with untrusted arguments
                raise DamagedFile(
                    f"module {i}: {type(module).__name__} {module.name!r}: {error}"
                ) from None
    done: set[int] = set()
    for i, module in enumerate(modules):
        waiting, above = [module], set[int]()
        while waiting:
            item = waiting[-1]
            if id(item) in done or id(item) in above:
                above.discard(id(item))
                done.add(id(item))
                waiting.pop()
                continue
            above.add(id(item))
            parts = inside.get(id(item), [])
            if any(id(part) in above for part in parts):
                raise DamagedFile(f"module {i}: {type(item).__name__} {item.name!r} calls itself")
            waiting += [part for part in parts if id(part) not in done]
