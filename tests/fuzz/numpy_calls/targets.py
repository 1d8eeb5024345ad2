"""``Target``: a function to call in both libraries, and how its arguments are drawn."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fuzz.numpy_calls.arguments import Array, arrays_in, mapped, ours, text, theirs
from fuzz.numpy_calls.draw import Draw
from fuzz.numpy_calls.kinds import BY_NAME, KINDS, OTHERS, Kind, words
from fuzz.numpy_calls.table import METHODS, NOT_CALLED, OPERATORS, PARAMETERS
from gradtape.core.extend import Tensor
from gradtape.public import HOMES

__all__ = ["Argument", "Call", "Target", "find_targets", "package"]


def package() -> Any:
    """Return gradtape itself."""
    return sys.modules["gradtape"]


@dataclass(frozen=True)
class Argument:
    """An argument for the parameter ``name``: positional if it has no other names."""

    value: Any
    ours: str | None = None
    theirs: str | None = None
    required: bool = True
    name: str = ""


@dataclass(frozen=True)
class Target:
    """A function to call.

    Attributes
    ----------
    name
        Its name for users, such as ``"linalg.det"``, ``"np.sum"`` (NumPy's function on tensors),
        ``"Tensor.sum"`` or ``"{0} + {1}"``.
    theirs, ours
        The functions that are called with NumPy's arguments and with ours.
    draw
        A function that returns the arguments of a random call.
    template
        The call in Python, with ``{xp}`` and ``{args}``, or with positions.
    """

    name: str
    theirs: Callable[..., Any]
    ours: Callable[..., Any]
    draw: Callable[[Draw], list[Argument]]
    template: str

    @property
    def function(self) -> str:
        """The name of the function, without the form of the call."""
        return self.name.removeprefix("np.").removeprefix("Tensor.")


@dataclass(frozen=True)
class Call:
    """A call of a target."""

    target: Target
    arguments: tuple[Argument, ...]

    def in_numpy(self) -> Any:
        """Call NumPy."""
        args = [theirs(a.value) for a in self.arguments if a.theirs is None]
        kwargs = {a.theirs: theirs(a.value) for a in self.arguments if a.theirs is not None}
        return self.target.theirs(*args, **kwargs)

    def in_gradtape(self) -> Any:
        """Call gradtape."""
        xp = package()
        args = [ours(a.value, xp) for a in self.arguments if a.ours is None]
        kwargs = {a.ours: ours(a.value, xp) for a in self.arguments if a.ours is not None}
        return self.target.ours(*args, **kwargs)

    def text(self, xp: str) -> str:
        """Return the call in Python, for ``xp`` "np" or "gt"."""
        names = [a.theirs if xp == "np" else a.ours for a in self.arguments]
        given = [text(a.value, xp) for a in self.arguments]
        args = [f"{name}={x}" if name else x for name, x in zip(names, given)]
        if "{args}" in self.target.template:
            return self.target.template.format(xp=xp, args=", ".join(args))
        if "{rest}" in self.target.template:
            return self.target.template.format(given[0], rest=", ".join(args[1:]))
        return self.target.template.format(*args)

    def argument(self, name: str) -> Any:
        """Return the value of an argument by gradtape's name; None if it is not given."""
        found = [a.value for a in self.arguments if a.name == name]
        return found[0] if found else None

    @property
    def arrays(self) -> list[Array]:
        """All arrays of the call."""
        return [array for a in self.arguments for array in arrays_in(a.value)]

    def with_array(self, place: int, new: Array) -> Call:
        """Return the call with number ``place`` of ``arrays`` replaced."""
        made = []
        for argument in self.arguments:
            count = len(arrays_in(argument.value))
            if 0 <= place < count:
                argument = replace(argument, value=mapped(argument.value, place, new))
            place -= count
            made.append(argument)
        return Call(self.target, tuple(made))

    def with_value(self, place: int, value: Any) -> Call:
        """Return the call with another value for one argument."""
        made = list(self.arguments)
        made[place] = replace(made[place], value=value)
        return Call(self.target, tuple(made))

    def without(self, place: int) -> Call:
        """Return the call without one argument."""
        return Call(self.target, self.arguments[:place] + self.arguments[place + 1 :])


# -- drawing of a signature ------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """A parameter of a gradtape function, with its counterpart in NumPy."""

    name: str
    theirs: str | None
    kind: Kind
    required: bool
    variadic: bool = False
    #: whether it may, or must, be positional, at the same position in both
    place: str = "may"


def named_kind(text_: str) -> Kind:
    """Return a kind by its name in the table, or by its values."""
    if text_ in KINDS:
        return KINDS[text_]
    if "|" not in text_:
        raise LookupError(f"kinds.py has no kind {text_!r}")
    return words(*text_.split("|"))


def parameters_of(path: str, function: Any, namesake: Any) -> list[Parameter]:
    """Return the parameters to draw, in the order of drawing."""
    said = dict(part.split("=", 1) for part in PARAMETERS.get(path, "").split())
    mine, other = _signature(function, path), _signature(namesake, path, np)
    if "self" in mine and path.startswith("Tensor."):
        said = _of_self(path, mine)
    its = list(other.values())
    aligned = True
    found: dict[str, Parameter] = {}
    for place, (name, p) in enumerate(mine.items()):
        if p.kind is p.VAR_KEYWORD or (name == "name" and p.default is None):
            continue
        twin = its[place] if place < len(its) else None
        same = twin is not None and (
            twin.name == name
            or (twin.name not in mine and name not in other and name not in ("dtype", "n"))
        )
        in_place = twin is not None and p.KEYWORD_ONLY not in (p.kind, twin.kind)
        aligned = aligned and same and in_place
        their_name: str | None = name if name in other else twin.name if same and twin else None
        if their_name is None:
            continue  # NumPy has no such parameter
        by_keyword = other[their_name].kind is not inspect.Parameter.POSITIONAL_ONLY
        must = p.kind is p.POSITIONAL_ONLY or not by_keyword or p.kind is p.VAR_POSITIONAL
        kind = named_kind(said[name]) if name in said else BY_NAME.get(name)
        if kind is None:
            raise LookupError(f"no kind for the parameter {name!r}")
        required = p.default is p.empty and p.kind is not p.VAR_POSITIONAL
        variadic = p.kind is p.VAR_POSITIONAL
        way = "must" if must and aligned else "may" if aligned else "never"
        found[name] = Parameter(name, their_name, kind, required, variadic, way)
    order = [*(name for name in said if name in found), *(n for n in found if n not in said)]
    return [found[name] for name in order]


def _signature(function: Any, path: str, xp: Any = None) -> dict[str, inspect.Parameter]:
    """Return a function's parameters, including those that a method passes on to the function."""
    found = dict(inspect.signature(THEIR_SIGNATURES.get(function, function)).parameters)
    rest = [name for name, p in found.items() if p.kind is p.VAR_KEYWORD]
    if rest and path.startswith("Tensor."):
        whole = getattr(xp or package(), path.removeprefix("Tensor."))
        for name, p in list(inspect.signature(whole).parameters.items())[1:]:
            if name == "correction":  # NumPy's methods do not pass it on
                continue
            found.setdefault(name, p.replace(kind=p.KEYWORD_ONLY))
    return {name: p for name, p in found.items() if name not in rest}


def _of_self(path: str, mine: Mapping[str, inspect.Parameter]) -> dict[str, str]:
    """Return the kinds for a method: those of the function, whose array is ``self``."""
    parts = PARAMETERS.get(path) or PARAMETERS.get(path.removeprefix("Tensor."), "")
    said = dict(part.split("=", 1) for part in parts.split())
    first = next((name for name in ("self", "x", "a") if name in said), None)
    kind = said.pop(first) if first and first not in list(mine)[1:] else "array"
    return {"self": kind, **said}


def drawing(parameters: Sequence[Parameter], order: Sequence[str]) -> Callable[..., list[Argument]]:
    """Return a function that draws the arguments of a call."""

    def draw(d: Draw) -> list[Argument]:
        given: dict[str, tuple[Parameter, Any]] = {}
        for p in parameters:
            if p.required or p.variadic or d.chance(0.3):
                d.given[p.name] = value = p.kind(d)
                given[p.name] = p, value
            elif p.name == "axis" and d.given.get("axis") is not None:
                given[p.name] = p, d.given["axis"]
        made: list[Argument] = []
        by_position = True
        for name in order:
            if name not in given:
                by_position = False
                continue
            p, value = given[name]
            if p.variadic:
                several = value if isinstance(value, (list, tuple)) else [value]
                made.extend(Argument(item, name=name) for item in several)
            elif by_position and (
                p.place == "must" or (p.place == "may" and (p.required or d.chance(0.3)))
            ):
                made.append(Argument(value, required=p.required, name=name))
            elif p.place == "must":
                continue  # it cannot be positional if an argument before it is left out
            else:
                by_position = False
                made.append(Argument(value, p.name, p.theirs, p.required, name))
        return made

    return draw


# -- the targets -----------------------------------------------------------------------------------


def _public_functions() -> Iterator[tuple[str, Any, Any]]:
    """Give the public functions that have a namesake, by path."""
    xp = package()
    spaces = {"": (xp, np, HOMES)}
    for name in ("linalg", "fft", "random"):
        module = getattr(xp, name)
        spaces[f"{name}."] = (module, getattr(np, name), module.__all__)
    for prefix, (module, namesake, names) in spaces.items():
        for name in names:
            other = getattr(namesake, name, None)
            if other is None or not callable(other):
                continue
            ours_ = getattr(module, name)
            if (
                callable(ours_) and ours_ is not other and not isinstance(other, type)
            ) or f"{prefix}{name}" in NOT_CALLED:
                yield prefix + name, ours_, other


def _put_along_axis(arr: Any, indices: Any, values: Any, axis: Any) -> Any:
    """Return the array that NumPy's function, which returns None, has changed."""
    arr = np.array(arr)
    np.put_along_axis(arr, indices, values, axis)
    return arr


def _fill_diagonal(a: Any, val: Any, wrap: Any = False) -> Any:
    """Return the array that NumPy's function, which returns None, has changed."""
    a = np.array(a)
    np.fill_diagonal(a, val, wrap)
    return a


def _einsum(subscripts: str, /, *operands: Any, optimize: bool = False) -> None:
    """Provide the signature of NumPy's function, which itself has only ``*operands``."""


THEIR_SIGNATURES = {np.einsum: _einsum}
INSTEAD = {"put_along_axis": _put_along_axis, "fill_diagonal": _fill_diagonal}


def _protocol(function: Any) -> bool:
    """Return whether a NumPy function passes tensors to gradtape."""
    return isinstance(function, np.ufunc) or hasattr(function, "_implementation")


def _tensor_first(draw: Callable[[Draw], list[Argument]]) -> Callable[[Draw], list[Argument]]:
    def drawn(d: Draw) -> list[Argument]:
        d.tensor_first = True
        return draw(d)

    return drawn


def _with_others(
    draw: Callable[[Draw], list[Argument]], function: Any, namesake: Any, path: str
) -> Callable[[Draw], list[Argument]]:
    """Return a function that sometimes adds arguments that only NumPy's function has."""
    mine = _signature(function, path)
    others = [name for name in _signature(namesake, path) if name in OTHERS and name not in mine]
    if path in ("isin", "partition", "argpartition"):  # their kinds have other meanings
        others = []
    elif "kind" in others:
        others = ["kind"]  # there, orders are for fields
    if not others:
        return draw

    def drawn(d: Draw) -> list[Argument]:
        given = draw(d)
        if d.chance(0.15):
            name = d.pick(others)
            given.append(Argument(OTHERS[name](d), name, name, False, name))
        return given

    return drawn


def find_targets() -> tuple[list[Target], dict[str, str]]:
    """Return all targets, and the public functions without a generator, with the reason."""
    targets: list[Target] = []
    missing: dict[str, str] = {}
    methods: dict[str, Callable[..., Any]] = {}
    for path, function, namesake in _public_functions():
        if path in NOT_CALLED:
            continue
        try:
            parameters = parameters_of(path, function, namesake)
        except (LookupError, ValueError, TypeError) as error:
            missing[path] = str(error)
            continue
        draw = drawing(parameters, list(_signature(function, path)))
        theirs_ = INSTEAD.get(path, namesake)
        targets.append(Target(path, theirs_, function, draw, f"{{xp}}.{path}({{args}})"))
        methods[path] = draw
        if _protocol(namesake) and path not in INSTEAD:
            targets.append(
                Target(
                    f"np.{path}",
                    theirs_,
                    functools.partial(_by_their_names, namesake),
                    _tensor_first(_with_others(draw, function, namesake, path)),
                    f"np.{path}({{args}})",
                )
            )
    targets.extend(_methods(missing))
    targets.extend(_operators())
    return targets, missing


def _by_their_names(namesake: Any, *args: Any, **kwargs: Any) -> Any:
    return namesake(*args, **kwargs)


def _methods(missing: dict[str, str]) -> Iterator[Target]:
    known = {name for name in dir(Tensor) if hasattr(np.ndarray, name)}
    for name in METHODS:
        if name not in known:
            missing[f"Tensor.{name}"] = "tensors have no such method"
            continue
        mine = getattr(Tensor, name)
        try:
            parameters = parameters_of(f"Tensor.{name}", mine, getattr(np.ndarray, name))
        except LookupError as error:
            missing[f"Tensor.{name}"] = str(error)
            continue
        draw = _tensor_first(drawing(parameters, list(_signature(mine, f"Tensor.{name}"))))
        yield Target(
            f"Tensor.{name}", getattr(np.ndarray, name), mine, draw, f"{{0}}.{name}({{rest}})"
        )


def _operators() -> Iterator[Target]:
    for template, kinds in OPERATORS.items():
        names = ("a", "b")[: len(kinds.split())]
        source = f"lambda {', '.join(names)}: {template.format(*names)}"
        function = eval(source)
        drawn = [KINDS[name] for name in kinds.split()]

        def draw(d: Draw, drawn: list[Kind] = drawn) -> list[Argument]:
            return [Argument(kind(d)) for kind in drawn]

        yield Target(template, function, function, _tensor_first(draw), template)
