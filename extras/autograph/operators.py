"""The functions that converted code calls as ``ag__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import user_line
from .calls import CONVERTED, call
from .choices import and_, compare, if_exp, if_stmt, is_, is_not, not_, or_
from .effects import assert_stmt, handled, hashed, noted, text
from .loops import for_stmt, while_stmt
from .mutations import check_in_place
from .values import MaybeAssigned, Undefined, UndefinedReturnValue, is_traced

__all__ = [
    "ConversionOptions",
    "Feature",
    "FunctionScope",
    "Undefined",
    "UndefinedReturnValue",
    "and_",
    "assert_stmt",
    "autograph_artifact",
    "check_in_place",
    "compare",
    "converted_call",
    "for_stmt",
    "handled",
    "hashed",
    "if_exp",
    "if_stmt",
    "is_",
    "is_not",
    "ld",
    "ldu",
    "not_",
    "noted",
    "or_",
    "text",
    "while_stmt",
    "with_function_scope",
]

converted_call = call


def ld(value: Any) -> Any:
    """Return the value of a variable; raise if it has none."""
    return value.read() if isinstance(value, Undefined) else value


def ldu(load: Callable[[], Any], name: str) -> Any:
    """Return an attribute or item, or :class:`Undefined` if it does not exist."""
    try:
        return load()
    except (LookupError, AttributeError, NameError):
        return Undefined(name)


def autograph_artifact(function: Any) -> Any:
    """Mark a function inside a converted one: it is converted already."""
    setattr(function, CONVERTED, True)
    return function


def ConversionOptions(**options: Any) -> None:
    """Accept the options that converted code passes; they are always the same."""


class Feature:
    """The names that options in converted code refer to."""

    BUILTIN_FUNCTIONS = None


class FunctionScope:
    """The block in which a converted function runs.

    Parameters
    ----------
    function
        The function's name.
    name
        The name of the variable that holds this object.
    options
        Unused.
    """

    def __init__(self, function: str, name: str, options: Any) -> None:
        self.function = function
        self.name = name

    def __enter__(self) -> FunctionScope:
        return self

    def __exit__(self, *error: Any) -> None:
        pass

    def ret(self, value: Any, returned: Any) -> Any:
        """Return what the function returns.

        Raises
        ------
        ValueError
            If only some paths through the function return a value, and a run decides which.
        """
        if isinstance(value, UndefinedReturnValue):
            return None
        if isinstance(value, MaybeAssigned):
            if is_traced(returned):
                raise ValueError(
                    f"{user_line()}: {self.function!r} returns a value on some paths and reaches "
                    "its end without one on others; a trace needs a value on each path: add a "
                    "return at the end"
                )
            return value.value
        return value


def with_function_scope(body: Callable[[FunctionScope], Any], name: str, options: Any) -> Any:
    """Return what a converted lambda returns."""
    with FunctionScope("lambda", name, options) as scope:
        return body(scope)
