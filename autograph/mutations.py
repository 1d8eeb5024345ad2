"""Python objects that a traced block changes: the change would happen once, while tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

from ..core.extend import user_line

__all__ = ["unchanged"]

_CONTAINERS = (list, dict, set)


@contextmanager
def unchanged(what: str, *blocks: Callable[..., Any]) -> Iterator[None]:
    """Run a block in which others are traced, and see to it that they change no list or dict.

    Parameters
    ----------
    what
        The statement.
    blocks
        The functions that are traced; what they see by name is looked at.

    Raises
    ------
    ValueError
        If one of them does; it names the object.
    """
    before = [(name, x, _inside(x)) for name, x in _seen(blocks) if isinstance(x, _CONTAINERS)]
    yield
    for name, x, inside in before:
        now = _inside(x)
        if len(now) != len(inside) or any(a is not b for a, b in zip(now, inside)):
            raise ValueError(
                f"{user_line()}: the {type(x).__name__} {name!r} is changed inside a traced "
                f"'{what}', which Python runs once, while tracing, and not in each step; collect "
                "values with gradtape.scan or map, or write into a tensor with .at"
            )


def _inside(x: Any) -> list[Any]:
    return [y for pair in x.items() for y in pair] if isinstance(x, dict) else list(x)


def _seen(blocks: Any) -> Iterator[tuple[str, Any]]:
    """Yield what functions see by name: in the functions around them, and in the module."""
    found: dict[int, tuple[str, Any]] = {}
    for block in blocks:
        for name, cell in zip(block.__code__.co_freevars, block.__closure__ or ()):
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
