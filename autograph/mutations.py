"""Refuses changes of Python objects in traced blocks: they would happen once, while tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

from ..core.extend import flatten, line_of, user_line
from .values import is_traced

__all__ = ["raising_while", "unchanged"]

_CONTAINERS = (list, dict, set)
_PACKAGE = __name__.partition(".")[0]


@contextmanager
def unchanged(what: str, names: Sequence[str], *blocks: Callable[..., Any]) -> Iterator[None]:
    """Check that functions traced in the ``with`` block change no Python object.

    Parameters
    ----------
    what
        The statement.
    names
        The variables that it changes. They may include ``d['key']`` and ``x.name``.
    blocks
        The functions that are traced. All objects that they refer to by name are checked.

    Raises
    ------
    ValueError
        If one of them changes a list, dict or set, or assigns a traced tensor to an attribute of a
        user's object. The message names the object.
    """
    handed_on = {name.partition("[")[0] for name in names if "[" in name}
    before = [
        (name, x, _inside(x))
        for name, x in _seen(blocks)
        if name not in handed_on and (isinstance(x, _CONTAINERS) or _is_users(x))
    ]
    yield
    for name, x, inside in before:
        now = _inside(x)
        if isinstance(x, _CONTAINERS):
            if len(now) == len(inside) and all(now[key] is inside[key] for key in inside):
                continue
            raise ValueError(
                f"{user_line()}: the {type(x).__name__} {name!r} is changed inside a traced "
                f"'{what}', which Python runs only once, while tracing, and not in each step; "
                "collect values with gradtape.scan or map, or write into a tensor with .at"
            )
        for key, value in now.items():
            changed = key not in inside or inside[key] is not value
            if changed and f"{name}.{key}" not in names and any(map(is_traced, flatten(value))):
                raise ValueError(
                    f"{user_line()}: a tensor is assigned to the attribute {name}.{key} in a "
                    f"function that a traced '{what}' calls; return the tensor and assign it in "
                    "the statement itself"
                )


@contextmanager
def raising_while(what: str) -> Iterator[None]:
    """Add a note to errors of the user's code: they are raised while ``what`` is traced."""
    try:
        yield
    except Exception as error:
        place = error.__traceback__
        while place is not None and place.tb_next is not None:
            place = place.tb_next
        name = "" if place is None else str(place.tb_frame.f_globals.get("__name__"))
        if name.partition(".")[0] != _PACKAGE and not hasattr(error, "__notes__"):
            error.add_note(
                f"{line_of(error)}: raised while {what}, whatever a run would do; to check in each "
                "run, use 'assert'"
            )
        raise


def _inside(x: Any) -> dict[Any, Any]:
    """Return what an object holds."""
    if isinstance(x, dict):
        return dict(x)
    if isinstance(x, list):
        return dict(enumerate(x))
    return dict.fromkeys(x, True) if isinstance(x, set) else dict(vars(x))


def _is_users(x: Any) -> bool:
    if isinstance(x, (type, ModuleType, FunctionType)) or not hasattr(x, "__dict__"):
        return False
    return type(x).__module__.partition(".")[0] not in (_PACKAGE, "builtins")


def _seen(blocks: Any) -> Iterator[tuple[str, Any]]:
    """Yield the objects that functions refer to by name: captured variables and globals."""
    found: dict[int, tuple[str, Any]] = {}
    for block in blocks:
        for name, cell in zip(block.__code__.co_freevars, block.__closure__ or (), strict=False):
            try:
                found[id(cell.cell_contents)] = (name, cell.cell_contents)
            except ValueError:  # no value yet
                continue
        for name in _names(block.__code__):
            if name in block.__globals__:
                found[id(block.__globals__[name])] = (name, block.__globals__[name])
    yield from found.values()


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
