"""What the graphs of a loaded module hold: its parts and settings cannot be replaced unnoticed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any
from weakref import ref

from ...core.extend import HELD_BY, REPLACED, Module, RestoredFunction, Variable
from ..container.limits import MAX_PATHS
from ..errors import UnsafeFile

_ABSORBED = "_gradtape_absorbed"
_HELD = "_gradtape_held"
_PARTS = "_gradtape_parts"
#: What a part costs, as characters of its path.
_PART = 64


def absorbed(module: Module) -> frozenset[str]:
    """Return the attributes of a loaded module that graphs hold, so that they cannot be set."""
    names: frozenset[str] = vars(module).get(_ABSORBED, frozenset())
    return names


def absorb(module: Module, names: Iterable[str]) -> None:
    """Make these attributes of a loaded module read-only."""
    vars(module)[_ABSORBED] = frozenset(names)


def hold(modules: Iterable[Module]) -> None:
    """Note what the graphs of loaded modules hold: :func:`check_held` compares it.

    A module without functions is held by those above it.

    Raises
    ------
    UnsafeFile
        If modules lie so deep in each other that their paths would take out of proportion.
    """
    left, users = MAX_PATHS, _Users()
    for module in modules:
        functions = {id(f): f for f in _functions(module)}
        users.add(functions)
        parts, names = list[tuple[str, Variable | Module]](), set(absorbed(module))
        for path, part in _all_parts(module) if functions else ():
            left -= len(path) + _PART
            if left < 0:
                raise UnsafeFile(
                    f"module {module.name!r}: the paths of the parts that graphs hold are too long "
                    "together"
                )
            parts.append((path, part))
            if users.of(part, functions):
                names.add(path.partition("/")[0])
        if parts and names:
            vars(module)[_HELD] = frozenset(names)
            vars(module)[_PARTS] = tuple(x for x in parts if x[0].partition("/")[0] in names)
            mark_held(module)


class _Users:
    """The functions whose graphs use a variable. Many modules may have the same functions."""

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._by_variable: dict[int, set[int]] = {}

    def add(self, functions: Mapping[int, RestoredFunction]) -> None:
        """Note the variables of functions, which are given by their ids."""
        for key in functions.keys() - self._known:
            self._known.add(key)
            for trace in functions[key].concrete_functions:
                for variable in trace.graph.variables:
                    self._by_variable.setdefault(id(variable), set()).add(key)

    def of(self, part: Any, functions: Mapping[int, Any]) -> bool:
        """Return whether one of these functions uses a variable."""
        users = self._by_variable.get(id(part), ())
        return any(key in functions for key in users)


def held(module: Module) -> frozenset[str]:
    """Return the attributes of a loaded module that graphs hold, also without reading them."""
    names: frozenset[str] = vars(module).get(_HELD, absorbed(module))
    return names


def mark_held(module: Module) -> None:
    """Let functions of a loaded module check their parts, and settings of the parts warn."""
    if _PARTS not in vars(module):
        return
    for _, part in vars(module)[_PARTS]:
        if isinstance(part, Module):
            vars(part)[HELD_BY] = module.name
    for function in {id(f): f for f in _functions(module)}.values():
        check = function.before_call
        if not (isinstance(check, _Check) and check.function() is function):  # that of a copy
            check = function.before_call = _Check(function)
        check.add(module)


def _functions(module: Module) -> Iterator[RestoredFunction]:
    signatures = vars(module).get("signatures")
    others = signatures.values() if isinstance(signatures, dict) else ()
    for value in (*vars(module).values(), *others):
        if isinstance(value, RestoredFunction):
            yield value


class _Check:
    """:func:`check_held` of the modules that have a function, before each call of it."""

    def __init__(self, function: RestoredFunction) -> None:
        self.function = ref(function)
        self._modules: dict[int, _HeldSince] = {}

    def add(self, module: Module) -> None:
        """Check this module, too."""
        self._modules[id(module)] = _HeldSince(module)

    def __call__(self) -> None:
        for module in self._modules.values():
            module.check()

    def __deepcopy__(self, memo: Any) -> _Check:
        return self


class _HeldSince:
    """What a module, which this does not keep alive, held when it was last checked."""

    def __init__(self, module: Module) -> None:
        self._module = ref(module)
        self._count = -1
        self._containers: list[Any] = []

    def check(self) -> None:
        module = self._module()
        if module is None:
            return
        if self._count != REPLACED.count or not all(x.holds_same() for x in self._containers):
            check_held(module)
            self._containers = module._gradtape_containers()
            self._count = REPLACED.count


def check_held(module: Module) -> None:
    """Raise if a part that graphs hold was replaced or added since :func:`hold`.

    Raises
    ------
    ValueError
        The message names the part, and says how to use another one.
    """
    known = vars(module).get(_PARTS)
    if known is None:
        return
    now = _parts(module)
    weights = {path: x for path, x in now if isinstance(x, Variable)}
    other = [
        before or after
        for before, after in zip_longest(_modules(known), _modules(now))
        if before is None or after is None or before[1] is not after[1]
    ] or [(path, x) for path, x in known if isinstance(x, Variable) and weights.get(path) is not x]
    if not other:
        return
    path, known_part = other[0]
    who, name = f"module {module.name!r}", path.replace("/", ".")
    if path not in dict(known):
        raise ValueError(
            f"{who}: {name!r} was added, but the graphs of the file do not use it. Remove it; call "
            "the module in a model of your own to go on with its result"
        )
    part = path.rpartition("/")[0] if isinstance(known_part, Variable) else path
    raise ValueError(
        f"{who}: {name!r} is not what the file had there, but the graphs of the file still compute "
        f"with that. Put it back; {instead(part or path)}"
    )


def instead(path: str) -> str:
    """Return how to use another part in place of one."""
    return (
        f"for another part, build a model on what comes before this one: "
        f"gradtape.saving.features(model, before={path!r})"
    )


def _parts(module: Module) -> list[tuple[str, Variable | Module]]:
    """Return the paths of all that is in the attributes that graphs hold."""
    names = held(module)
    return [x for x in _all_parts(module) if x[0].partition("/")[0] in names]


def _all_parts(module: Module) -> Iterator[tuple[str, Variable | Module]]:
    for path, leaf in module.own_leaves():
        yield path, leaf
        if isinstance(leaf, Module):
            for below, part in leaf.named_leaves():
                yield f"{path}/{below}", part


def _modules(parts: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    return [(path, x) for path, x in parts if isinstance(x, Module)]


def tracks(value: Any) -> bool:
    """Return whether a value is, or holds, a variable or a module."""
    seen: set[int] = set()
    queue = [value]
    while queue:
        item = queue.pop()
        if isinstance(item, (Variable, Module)):
            return True
        if isinstance(item, (list, tuple, dict)) and id(item) not in seen:
            seen.add(id(item))
            queue += item.values() if isinstance(item, dict) else item
    return False
