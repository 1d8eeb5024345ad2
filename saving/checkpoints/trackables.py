"""The contents of a checkpoint, by path: variables, optimizers' states, and other states.

An object's state is JSON and arrays: restored exactly, or refused when it is saved.
"""

from __future__ import annotations

import copy
import random
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ... import random as gradtape_random
from ...core.extend import Module, Tensor, Variable, is_unbuilt
from ...plugins.ops.random.functions import shared
from ...training import Optimizer
from ..container.limits import DTYPES
from ..errors import DamagedFile, SaveError
from ..reading.modules import StateReader
from ..records.schema import COUNTS, encode, is_small
from ..writing.modules import StateWriter


class StatefulValue(NamedTuple):
    """An object whose state is a value: a generator, or an object with ``state_dict``."""

    get: Callable[[], Any]
    put: Callable[[Any], None]

    def snapshot(self) -> Any:
        """Return a copy of the state."""
        return copy.deepcopy(self.get())


class Trackables:
    """The contents of a checkpoint, by path.

    Parameters
    ----------
    groups
        Objects by name. A restored plain value replaces the one in its group.

    Attributes
    ----------
    names : list of str
        The names.
    variables : dict of str to Variable
        Variables by path, without those that optimizers keep for others.
    optimizers : dict of str to Optimizer
        Optimizers by path.
    objects : dict of str to Held
        Other objects by path.
    modules : dict of str to Module
        The given modules, by path.
    twice : list of str
        Paths that lead to more than one object.

    Raises
    ------
    TypeError
        If an object has no state that can be stored.
    """

    #: Whether modules without any weights yet are written, with nothing in them.
    may_be_unbuilt = False

    def __init__(self, *groups: dict[str, Any]) -> None:
        self.names: list[str] = []
        self.variables: dict[str, Variable] = {}
        self.optimizers: dict[str, Optimizer] = {}
        self.objects: dict[str, StatefulValue] = {}
        self.modules: dict[str, Module] = {}
        self.twice: list[str] = []
        for group in groups:
            for name, value in group.items():
                self.names.append(name)
                if not self._add(name, value):
                    self._add_plain(group, name)

    def _add(self, path: str, value: Any) -> bool:
        """Add an object; return whether it has a state."""
        if value is gradtape_random:
            value = shared()
        if isinstance(value, Module):
            self._add_module(path, value)
        elif isinstance(value, Variable):
            self._place(self.variables, path, value)
        elif (held := _state_access(value)) is not None:
            self._place(self.objects, path, held)
        elif isinstance(value, (list, tuple, dict)):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            found = [self._add(f"{path}/{key}", item) for key, item in items]
            if any(found) and not all(found):
                raise TypeError(
                    f"Checkpoint: {path} holds plain values and objects whose state is stored "
                    "separately; pass the two under separate names"
                )
            return any(found)
        else:
            return False
        return True

    def _add_module(self, path: str, module: Module) -> None:
        self._place(self.modules, path, module)
        leaves = [("", module), *((f"/{part}", leaf) for part, leaf in module.named_leaves())]
        optimizers = {path + part: x for part, x in leaves if isinstance(x, Optimizer)}
        kept = {id(state) for x in optimizers.values() for _, _, state in x.states()}
        self.optimizers |= optimizers
        met = Counter(part for part, _ in leaves)
        self.twice += [path + part for part, count in met.items() if count > 1]
        for part, leaf in leaves:
            if isinstance(leaf, Variable) and id(leaf) not in kept:
                self._place(self.variables, path + part, leaf)

    def _place(self, found: dict[str, Any], path: str, value: Any) -> None:
        if any(path in table for table in (self.variables, self.objects, self.modules)):
            self.twice.append(path)
        found[path] = value

    def _add_plain(self, group: dict[str, Any], name: str) -> None:
        try:
            encode_state(group[name], name, _refuse_array)
        except SaveError:
            raise TypeError(
                f"Checkpoint: {name} is {type(group[name]).__name__}, whose state cannot be "
                "stored; give modules, optimizers, variables, generators, objects with state_dict "
                "and load_state_dict, or plain values"
            ) from None
        self.objects[name] = StatefulValue(
            lambda: group[name], lambda value: group.update({name: value})
        )

    def states(self) -> Iterator[tuple[str, Variable, Variable]]:
        """Yield the states that optimizers keep for variables.

        Yields
        ------
        path : str
            ``OPTIMIZER/SLOT/PATH``, where the last part is the variable's path. It is not a number,
            so it also fits a model whose variables are in another order.
        variable, state : Variable
            The variable, and its state.

        Raises
        ------
        SaveError
            If the variable cannot be determined, or is not in the checkpoint.
        """
        paths: dict[int, str] = {}
        for path, followed in self.variables.items():
            paths.setdefault(followed.id, path)
        for place, optimizer in self.optimizers.items():
            for slot, variable, state in (*optimizer.states(), *_counts_of_all(optimizer)):
                if variable is None:
                    raise SaveError(
                        f"{place}: the optimizer came from a file, and it is not yet known which "
                        "variables its state belongs to; run a step first"
                    )
                if variable.id not in paths:
                    raise SaveError(
                        f"{place}: it trains variable {variable.name!r} of shape {variable.shape}, "
                        "which is not in the checkpoint; add the module that holds it"
                    )
                yield f"{place}/{slot}/{paths[variable.id]}", variable, state

    def unbuilt(self) -> list[str]:
        """Return the paths of layers that have no weights yet."""
        return [
            f"{path}/{part}".rstrip("/")
            for path, module in self.modules.items()
            for part, leaf in (("", module), *module.named_leaves())
            if isinstance(leaf, Module) and is_unbuilt(leaf)
        ]


def modules_in(value: Any) -> Iterator[Module]:
    """Yield the modules that a value is or holds, and those inside them."""
    if isinstance(value, Module):
        yield from (value, *value.submodules)
    elif isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from modules_in(item)


def _counts_of_all(optimizer: Optimizer) -> Iterator[tuple[str, Variable, Variable]]:
    """Yield what counts the steps of variables where nothing else tells that they were trained.

    Without slots, only a class whose settings depend on the step needs to know.
    """
    if optimizer.slots or type(optimizer).settings is Optimizer.settings:
        return
    for place, variable in enumerate(optimizer.trained):
        if optimizer.counter(place) is optimizer.iterations:
            yield COUNTS, variable, optimizer.iterations


# -- objects ---------------------------------------------------------------------------------------


def _refuse_array(array: Any) -> str:
    raise SaveError("an array is restored into the object that holds it, and a plain value is not")


def _state_access(value: Any) -> StatefulValue | None:
    """Return how to read and set the state of an object, if that is known."""
    if isinstance(value, np.random.Generator):
        value = value.bit_generator
    if isinstance(value, np.random.BitGenerator):
        bits = value
        return _numpy_state(lambda: bits.state, lambda state: setattr(bits, "state", state))
    if value is np.random or isinstance(value, np.random.RandomState):
        return _numpy_state(lambda: value.get_state(legacy=False), value.set_state)
    if value is random or isinstance(value, random.Random):
        return StatefulValue(value.getstate, value.setstate)
    if all(callable(getattr(value, name, None)) for name in ("state_dict", "load_state_dict")):
        return StatefulValue(value.state_dict, value.load_state_dict)
    return None


def _numpy_state(get: Callable[[], Any], put: Callable[[Any], None]) -> StatefulValue:
    """Return NumPy's state in stored form: integers of more than 64 bits as text."""

    def checked(state: Any) -> None:
        put(_unpacked(get(), state, "state"))

    return StatefulValue(lambda: _packed(get()), checked)


def _packed(state: Any) -> Any:
    if isinstance(state, Mapping):
        return {key: _packed(value) for key, value in state.items()}
    return str(state) if isinstance(state, int) else state


def _unpacked(now: Any, state: Any, what: str) -> Any:
    """Return a stored state in the form of the generator's present one.

    Raises
    ------
    ValueError
        If it belongs to another kind of generator.
    """
    if isinstance(now, Mapping):
        if isinstance(state, Mapping) and now.keys() == state.keys():
            return {key: _unpacked(value, state[key], key) for key, value in now.items()}
    elif isinstance(now, np.ndarray):
        if isinstance(state, np.ndarray) and (state.shape, state.dtype) == (now.shape, now.dtype):
            return state
    elif isinstance(now, int):
        if isinstance(state, str) and state.isascii() and state.isdecimal() and len(state) < 100:
            return int(state)
    elif not isinstance(now, str) or state == now:
        return state
    raise ValueError(f"the state in the file is that of another generator: its {what} differs")


# -- states as JSON and arrays ---------------------------------------------------------------------

Array = np.ndarray[Any, Any]
_SCALARS = (type(None), bool, int, float, complex, str)


def encode_state(value: Any, path: str, add_array: Callable[[Array], str]) -> Any:
    """Return a state as an attribute's JSON.

    A variable is stored as its value, a tensor.

    Parameters
    ----------
    value
        The state: plain values, arrays and tensors, in lists, tuples, sets and dictionaries.
    path
        Its path, for messages.
    add_array
        Stores an array and returns the path of its dataset.

    Raises
    ------
    SaveError
        If something in it would not come back as it is; the message has the path.
    """
    try:
        return _Writer(add_array).encode(value, path)
    except RecursionError:
        raise SaveError(f"{path}: nested too deeply to be saved") from None


def decode_state(encoded: Any, where: str, array: Callable[[str], Array]) -> Any:
    """Return the state of :func:`encode_state`'s JSON; ``array`` returns a dataset by its path."""
    return _Reader((), (), array).decode(encoded, where)


class _Reader(StateReader):
    """Reads states: attributes that refer to nothing."""

    def decode(self, encoded: Any, where: str) -> Any:
        if type(encoded) is dict and not {"op", "same"}.isdisjoint(encoded):
            raise DamagedFile(f"{where}: not a state: {str(encoded)[:80]}")
        return super().decode(encoded, where)


class _Writer(StateWriter):
    """Writes states as modules' attributes are written, but leaves out and changes nothing."""

    def __init__(self, add_array: Callable[[Array], str]) -> None:
        super().__init__(None, lambda _: None, add_array, lambda _: None, shares=False)

    def encode(self, value: Any, path: str) -> Any:
        if isinstance(value, Module):
            raise SaveError(
                f"{path}: a module in the state of another object is not saved; pass it to the "
                "checkpoint by a name of its own"
            )
        if type(value) is OrderedDict:  # of PyTorch; it equals the dictionary that comes back
            value = dict(value)
        encoded = super().encode(value.value if isinstance(value, Variable) else value, path)
        if encoded is None or self.left_out:
            what = self.left_out[0] if self.left_out else f"{path} ({type(value).__name__})"
            raise SaveError(
                f"{what.replace('; None is in its place', '')}: it would not come back as it is. A "
                "state is of None, booleans, numbers, strings, bytes and arrays, in plain lists, "
                "tuples, sets and dictionaries"
            )
        return encoded

    def _array(self, value: Any) -> Any:
        array = value.numpy() if type(value) is Tensor else value
        if array.dtype.name not in DTYPES or not array.dtype.isnative:
            return None
        tag = "tensor" if type(value) is Tensor else "array"
        return {tag: self._add_array(array)}

    def _container(self, value: Any, path: str) -> Any:
        # long lists of numbers take less space as one value
        return (
            {"value": encode(value, path)} if _is_value(value) else super()._container(value, path)
        )

    def _dict(self, value: dict[Any, Any], path: str) -> Any:
        for key in value:
            if not _is_key(key):
                raise SaveError(
                    f"{path}[{key!r}]: a key of type {type(key).__name__} would not come back as "
                    "it is; use a string, a number, None, or a tuple of them"
                )
        return super()._dict(value, path)


def _is_value(value: Any) -> bool:
    """Return whether a value's JSON is exact without tags of its own."""
    if type(value) in (list, tuple):
        return all(map(_is_value, value))
    if type(value) is dict:
        return all(type(key) is str for key in value) and all(map(_is_value, value.values()))
    return type(value) in _SCALARS and not (type(value) is int and not is_small(value))


def _is_key(key: Any) -> bool:
    if type(key) is tuple:
        return all(map(_is_key, key))
    return type(key) in _SCALARS and not (type(key) is int and not is_small(key))
