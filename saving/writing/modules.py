"""The module tree as JSON: what modules track, and their Python state."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.extend import (
    Function,
    Module,
    Op,
    RestoredFunction,
    Tensor,
    Variable,
    is_code,
    policy,
    ruled_weights,
    untracked,
)
from ...layers import initializers
from ...training import Optimizer
from ..container.limits import DTYPES, MAX_DEPTH, SEGMENT
from ..errors import SaveError
from ..records.held import tracks
from ..records.loaded import LoadedModule, shadows, signatures_of
from ..records.loaded_optimizer import RATE, LoadedOptimizer
from ..records.schema import IDENTIFIER, dump, encode, is_attribute, is_small

_PLAIN = (type(None), bool, int, float, complex, str)
# What is written as it is, by the name of its tag.
_SETS: dict[type, str] = {set: "set", frozenset: "frozenset"}


def loaded_class(module: Module) -> type[LoadedModule]:
    """Return what becomes of a module whose class readers do not know."""
    return LoadedOptimizer if isinstance(module, Optimizer) else LoadedModule


class StateWriter:
    """Turn the attributes of modules into JSON, and record what does not go into a file.

    Parameters
    ----------
    root
        The module that is saved; None for a value that is in no module.
    number_of
        Gives a variable or a module its reference; None for a module that is not in the tree.
    add_array
        Stores an array and gives the path of its dataset.
    add_op
        Records an op that the file needs.
    shares
        Whether a container that is met again is stored as a reference to the first.

    Attributes
    ----------
    left_out : list of str
        What the file does not hold, or holds as another type, each with its path.
    hidden : list
        ``(path, object, variable or module)``: what modules do not find, because an object holds
        it.
    """

    def __init__(
        self,
        root: Module | None,
        number_of: Callable[[Variable | Module], dict[str, int] | None],
        add_array: Callable[[np.ndarray[Any, Any]], str],
        add_op: Callable[[Op], None],
        shares: bool = True,
    ) -> None:
        self._number_of = number_of
        self._add_array = add_array
        self._add_op = add_op
        self._paths: dict[int, str] = {} if root is None else {id(root): root.name}
        self._containers: dict[int, int] = {}
        self._shares = shares
        self._inside: set[int] = set()
        self._arrays: dict[int, Any] = {}
        self._alive: list[Any] = []  # what is known by identity stays alive
        self.left_out: list[str] = []
        self.hidden: list[tuple[str, str, Variable | Module]] = []

    def attributes(self, module: Module) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the attributes of a module of a class that readers do not know.

        They are in the order in which they were set, which is the order of a layer's weights.

        Returns
        -------
        attributes : dict
            By name, as JSON.
        absent : dict
            By name, why the file does not hold it.
        """
        result: dict[str, Any] = {}
        absent: dict[str, str] = {}
        kept = _rules_given(module)
        own = dict(self._own(module))
        described = getattr(module, "_gradtape_described", ())
        named = {k: getattr(module, k) for k in described if k not in own and hasattr(module, k)}
        # a reader takes zeros where there is nothing
        own |= {k: x for k, x in named.items() if not getattr(x, "gives_zeros", False)}
        for name, value in own.items():
            path = f"{self._path(module)}.{name}"
            if id(value) in kept:
                absent[name] = "the file holds what it computes, for training"
                continue
            encoded = self.encode(value, path)
            if encoded is not None:
                self._check_name(name, path, loaded_class(module))
                result[name] = encoded
            elif not isinstance(value, Module):  # one that its class hides
                if name in described and is_code(value):
                    self.left_out.append(f"{path} ({_described(value)})")
                absent[name] = f"{_described(value)} cannot be stored in a file"
        return result, absent

    def known_attributes(
        self, module: Module, twin: Callable[[], Module]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the attributes of a module of a class that readers know.

        Parameters
        ----------
        module
            The module.
        twin
            Creates another one from the configuration, as a reader will.

        Returns
        -------
        attributes : dict
            The tracked attributes.
        extra : dict
            Attributes of other kinds that the constructor does not create.
        """
        result: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in self._own(module):
            if tracks(value):
                path = f"{self._path(module)}.{name}"
                self._check_name(name, path, type(module))
                result[name] = self.encode(value, path)
            elif not name.startswith("_"):  # what the class keeps for itself
                others[name] = value
        made = vars(twin()) if others else {}
        extra: dict[str, Any] = {}
        for name, value in others.items():
            if name in made and (_same(made[name], value) or not _is_data(value)):
                continue  # the constructor makes it
            path = f"{self._path(module)}.{name}"
            encoded = self.encode(value, path)
            if encoded is not None:
                self._check_name(name, path, type(module))
                extra[name] = encoded
            elif is_code(value):
                self.left_out.append(f"{path} ({_described(value)})")
        return result, extra

    def _own(self, module: Module) -> Iterator[tuple[str, Any]]:
        restored = signatures_of(module)
        for name, value in vars(module).items():
            if name.startswith("_gradtape") or name == "_name":
                continue
            if isinstance(value, (Function, RestoredFunction)):  # module.functions() has them
                continue
            if name != "signatures" or not restored:
                yield name, value

    def _path(self, module: Module) -> str:
        return self._paths.setdefault(id(module), module.name)

    def _check_name(self, name: str, path: str, cls: type) -> None:
        if not is_attribute(name) or shadows(cls, name):
            kinds: dict[type, str] = {
                LoadedModule: "every loaded module",
                LoadedOptimizer: "every loaded optimizer",
            }
            raise SaveError(
                f"{path}: {name!r} cannot be the name of an attribute in a file: "
                f"{kinds.get(cls, 'its class')} has an attribute of that name, or it has "
                "characters other than ASCII letters, digits and '_'; rename it"
            )

    # -- values --------------------------------------------------------------------------------

    def encode(self, value: Any, path: str) -> Any:
        """Return a value as JSON; if files cannot hold it, record that and return None."""
        if isinstance(value, Variable):
            return self._number_of(value)
        if isinstance(value, Module):
            self._paths.setdefault(id(value), path)
            return self._number_of(value)
        if type(value) is int and not is_small(value):
            end = "; None is in its place" if path[-1] in "]}" else ""
            self.left_out.append(f"{path} ({_described(value)}{end})")
            return None
        if type(value) in _PLAIN:
            return {"value": encode(value, path)}
        if isinstance(value, (list, tuple, dict)):
            return self._container(value, path)
        encoded = self._leaf(value, path)
        if encoded is None:
            self._leave_out(value, path)
        return encoded

    def _leaf(self, value: Any, path: str) -> Any:
        kind = type(value)
        if kind is Tensor or kind is np.ndarray:
            return self._array(value)
        if kind in _SETS:
            return self._set(value, path)
        if kind in (range, slice):
            parts = [value.start, value.stop, value.step]
            if all(type(part) in _PLAIN for part in parts):
                return {kind.__name__: [encode(part, path) for part in parts]}
        if kind is bytes:
            return {"bytes": value.hex()}
        if isinstance(value, np.dtype) and value.name in DTYPES and value.isnative:
            return {"dtype": value.name}
        if isinstance(value, np.generic) and value.dtype.name in DTYPES:
            return {"scalar": [value.dtype.name, encode(value, path)]}
        if isinstance(value, enum.Enum) and type(value.value) in _PLAIN:
            self.left_out.append(f"{path} (a {kind.__name__} comes back as its value)")
            return {"value": encode(value.value, path)}
        if isinstance(value, Op):
            self._add_op(value)
            return {"op": value.name}
        return None

    def _array(self, value: Any) -> Any:
        known = self._arrays.get(id(value))
        if known is None:
            try:  # a copy: what is compared runs Python code, which may change it
                array = np.array(value.numpy() if type(value) is Tensor else value)
            except Exception:  # a tensor of a trace that has ended
                return None
            if array.dtype.name not in DTYPES:
                return None
            tag = "tensor" if type(value) is Tensor else "array"
            known = self._arrays[id(value)] = {tag: self._add_array(array)}
            self._alive.append(value)
        return known

    def _container(self, value: Any, path: str) -> Any:
        if id(value) in self._inside:
            raise SaveError(f"{path}: a container that holds itself cannot be saved")
        if 2 * len(self._inside) > MAX_DEPTH - 5:  # each takes two levels of JSON
            raise SaveError(f"{path[:80]}...: nested too deeply to be saved")
        base = next(kind for kind in (list, tuple, dict) if isinstance(value, kind))
        if type(value) is not base:
            self.left_out.append(
                f"{path} (a {type(value).__name__} comes back as a plain {base.__name__})"
            )
        if base is not tuple and self._shares:
            number = self._containers.get(id(value))
            if number is not None:
                return {"same": number}
            self._containers[id(value)] = len(self._containers)
            self._alive.append(value)
        self._inside.add(id(value))
        try:
            if base is dict:
                return self._dict(value, path)
            items = [self.encode(item, f"{path}[{i}]") for i, item in enumerate(value)]
            return {base.__name__: items}
        finally:
            self._inside.discard(id(value))

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        items: list[tuple[Any, Any]] = []
        plain = True
        for key, item in value.items():
            place = f"{path}[{key!r}]"
            if not _is_key(key):
                if tracks(item):
                    raise SaveError(
                        f"{place}: a key of type {type(key).__name__} cannot be saved; use a "
                        "string, a number, or a tuple of them"
                    )
                self.left_out.append(f"{place} (its key is {_described(key)})")
                continue
            plain &= type(key) is str
            items.append((key, self.encode(item, place)))
        if plain:
            return {"dict": dict(items)}
        return {"items": [[encode(key, path), item] for key, item in items]}

    def _set(self, value: Any, path: str) -> Any:
        items = []
        for item in value:
            place = f"{path}{{...}}"
            encoded = self.encode(item, place)
            if encoded is not None:
                items.append(encoded)
            elif isinstance(item, Module):  # which nobody finds in a set
                self._leave_out([item], place)
        # in an order that does not change from one process to the next
        return {_SETS[type(value)]: sorted(items, key=lambda item: dump(item, path))}

    def _leave_out(self, value: Any, path: str) -> None:
        """Record what a file does not hold, and the variables that would be lost with it."""
        for place, item in untracked(value):
            self.hidden.append((path + place, type(value).__name__, item))
        in_container = path[-1] in "]}"
        # what layers are made with, and have no use for once they have weights
        spent = initializers.is_one(value)
        if in_container or not (is_code(value) or spent):
            end = "; None is in its place" if in_container else ""
            self.left_out.append(f"{path} ({_described(value)}{end})")


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return (
            f"an array of dtype {value.dtype}"
            if type(value) is np.ndarray
            else (f"an array of class {type(value).__name__}")
        )
    if type(value) is int:
        return "an integer of more than 64 bits"
    if is_code(value):
        return f"the code of {getattr(value, '__name__', type(value).__name__)!r}"
    return f"an object of class {type(value).__name__}"


def _is_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(map(_is_key, key))
    return type(key) in _PLAIN or (isinstance(key, np.generic) and key.dtype.name in DTYPES)


def _is_data(value: Any) -> bool:
    """Return whether files hold a value directly."""
    kinds = (*_PLAIN, list, tuple, dict, set, frozenset, np.ndarray, Tensor)
    return isinstance(value, (*kinds, range, slice, bytes, np.generic, np.dtype))


def _same(a: Any, b: Any) -> bool:
    """Return whether two values are equal, as far as files hold them."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    if isinstance(a, (np.ndarray, Tensor)):
        a, b = np.asarray(a), np.asarray(b)
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, (float, complex)):
        return repr(a) == repr(b)
    # objects of one class in the same place are the constructor's
    return not _is_data(a) or bool(a == b)


def name_in_files(name: str) -> str:
    """Return a module's name as an identifier, which it is for all but those with any names."""
    if IDENTIFIER.match(name):
        return name
    found = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return f"_{found}"[:128] if not found or found[0].isdigit() else found[:128]


def config_of(
    module: Module,
    save_op: Callable[[Op], None],
    save_callable: Callable[[Any, str], int],
    where: str,
) -> dict[str, Any]:
    """Return a known class's configuration as JSON, with callables as ops or traced functions."""
    config = _configuration(module, where)
    result: dict[str, Any] = {}
    for key, value in config.items():
        if key == "name" and isinstance(value, str):
            value = name_in_files(value)
        if isinstance(value, Op):
            save_op(value)
            result[key] = {"op": value.name}
        elif callable(value) and not isinstance(value, type):
            result[key] = {"function": save_callable(value, f"{where}: {key}")}
        else:
            result[key] = {"value": encode(value, f"{where}: configuration {key!r}")}
    return result


def texts_in(encoded: Any) -> set[str]:
    """Return all texts in JSON, except the keys of objects."""
    if isinstance(encoded, str):
        return {encoded}
    items = encoded.values() if isinstance(encoded, dict) else encoded
    return set().union(*map(texts_in, items)) if isinstance(encoded, (dict, list)) else set()


def _configuration(module: Module, where: str) -> dict[str, Any]:
    """Return what a module's ``get_config``, which may be a plugin's, returns."""
    get_config: Callable[[], Any] = getattr(module, "get_config", dict)
    try:
        found = get_config()
    except SaveError:
        raise
    except Exception as error:
        raise SaveError(f"{where}: get_config() failed: {type(error).__name__}: {error}") from error
    if not isinstance(found, Mapping):
        returned = "None (is a return missing?)" if found is None else f"{found!r:.80}"
        raise SaveError(
            f"{where}: get_config() returned {returned} instead of a dictionary of the arguments "
            "of the constructor"
        )
    return dict(found)


def twin_of(module: Module, where: str) -> Module:
    """Return a module of the same class and configuration, as a reader will create it."""
    cls: Any = type(module)
    config = _configuration(module, where)
    build = getattr(cls, "from_config", None)
    try:
        with policy("float32"):
            made: Module = cls(**config) if build is None else build(config)
    except Exception as error:  # the class is a plugin's
        remedy = ""
        if "unexpected keyword argument" in str(error):
            remedy = (
                "; let __init__ take **rest and pass it on, super().__init__(**rest), or define "
                "get_config() without this argument"
            )
        raise SaveError(
            f"{where} refuses its own configuration, so it could not be loaded: {error}{remedy}"
        ) from error
    return made


def places_of(module: Module) -> dict[int, str]:
    """Return the path of each variable's dataset, by the variable's identity."""
    places = Places()
    leaves = module.named_leaves()
    return {id(x): places.take(path) for path, x in leaves if isinstance(x, Variable)}


class Places:
    """Gives variables the paths of their datasets.

    A path names the attributes, positions and keys that lead to the variable. Characters that it
    cannot hold are replaced by ``_``, and a path that is taken gets another ``_`` at its end.
    """

    def __init__(self) -> None:
        self._datasets: set[str] = set()
        self._groups: set[str] = set()

    def take(self, path: str) -> str:
        """Return the path of the dataset of the variable at this path, and note it as taken."""
        place = "/variables/" + "/".join(map(_segment, path.split("/")))
        if any(group in self._datasets for group in _above(place)):
            place = "/variables/" + _segment(path)
        while place in self._datasets or place in self._groups:
            place += "_"
        self._datasets.add(place)
        self._groups.update(_above(place))
        return place


def _above(place: str) -> list[str]:
    """Return the groups that a dataset is in."""
    return [place[:i] for i, c in enumerate(place) if c == "/" and i]


def _segment(part: str) -> str:
    if SEGMENT.match(part):
        return part
    return "_" + re.sub(r"[^A-Za-z0-9_.\- ]", "_", part)[:100].rstrip(". ")


def check_hidden(
    hidden: Sequence[tuple[str, str, Variable | Module]], is_saved: Callable[[Variable], bool]
) -> None:
    """Refuse variables that an object holds where no module finds them and no function reads them.

    Parameters
    ----------
    hidden
        The path, the object's class, and the variable or the module.
    is_saved
        Returns whether the file will hold a variable.
    """
    for path, owner, item in hidden:
        variables = item.variables if isinstance(item, Module) else (item,)
        lost = [v for v in variables if not is_saved(v)]
        if lost:
            raise SaveError(
                f"{path}: variable {lost[0].name!r} would be lost: modules find variables in "
                f"attributes, lists, tuples and dicts, but not inside an object of class {owner}, "
                "and no saved function reads it. Make that class a gradtape.Module, or keep the "
                "variable in an attribute of a module as well"
            )


def at_in(root: Module, module: Module) -> str:
    """Return the location of a module for messages; empty for the root."""
    found = (path for path, leaf in root.named_leaves() if leaf is module)
    return "".join(f" at {path.replace('/', '.')!r}" for path in found)


def _rules_given(module: Module) -> set[int]:
    """Return the regularizers and constraints of a module that a file keeps, by identity."""
    rules = [rule for _, *pair in ruled_weights(module) for rule in pair]
    rules.append(getattr(module, "activity_regularizer", None))
    rate = vars(module).get(RATE) if isinstance(module, Optimizer) else None
    if not isinstance(rate, (Variable, Module)):  # a function, which is traced
        rules.append(rate)
    return set(map(id, rules)) - {id(None)}
