"""What converted code finds under ``ag__``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.extend import user_line
from .calls import CONVERTED, call
from .choices import and_, compare, if_exp, if_stmt, not_, or_
from .effects import assert_stmt, text
from .loops import for_stmt, while_stmt
from .values import Maybe, Undefined, UndefinedReturnValue, is_traced

__all__ = [
    "ConversionOptions",
    "Feature",
    "FunctionScope",
    "Undefined",
    "UndefinedReturnValue",
    "and_",
    "assert_stmt",
    "autograph_artifact",
    "compare",
    "converted_call",
    "for_stmt",
    "if_exp",
    "if_stmt",
    "ld",
    "ldu",
    "not_",
    "or_",
    "text",
    "while_stmt",
    "with_function_scope",
]

converted_call = call


def ld(value: Any) -> Any:
    """Return a variable that is read."""
    return value.read() if isinstance(value, Undefined) else value


def ldu(load: Callable[[], Any], name: str) -> Any:
    """Return an attribute or item as it is, or what stands for one that is not there."""
    try:
        return load()
    except (LookupError, AttributeError, NameError):
        return Undefined(name)


def autograph_artifact(function: Any) -> Any:
    """Mark a function inside a converted one, which is converted as a part of it."""
    setattr(function, CONVERTED, True)
    return function


def ConversionOptions(**options: Any) -> None:
    """Stand for the options that are said in converted code: they are always the same."""


class Feature:
    """Stands for what options name."""

    BUILTIN_FUNCTIONS = None


class FunctionScope:
    """The block in which a converted function runs.

    Parameters
    ----------
    function
        The function's name.
    name
        The variable that holds this.
    options
        Always the same.
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
            If it returns a value on some ways through it, and none on others, as the run decides.
        """
        if isinstance(value, UndefinedReturnValue):
            return None
        if isinstance(value, Maybe):
            if is_traced(returned):
                raise ValueError(
                    f"{user_line()}: {self.function!r} returns a value on some ways through it, "
                    "and comes to its end without one on others; a trace needs one on each: "
                    "write a return at the end"
                )
            return value.value
        return value


def with_function_scope(body: Callable[[FunctionScope], Any], name: str, options: Any) -> Any:
    """Return what a converted lambda returns."""
    with FunctionScope("lambda", name, options) as scope:
        return body(scope)
