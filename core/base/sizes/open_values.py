"""``Open``: a number in every run, and an expression of sizes while a function is traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ...errors import TraceError
from ..context import active_graph
from ..user_code import is_users_call, user_line

# the longest and deepest expressions: beyond these limits, proofs and printing would be slow
_LONGEST = 30_000
_DEEPEST = 100


class OpenSize(TraceError):
    """Code needs the value of a size, number or comparison that is known only in a run."""


# users see a TraceError
OpenSize.__module__, OpenSize.__name__, OpenSize.__qualname__ = (
    TraceError.__module__,
    *("TraceError", "TraceError"),
)


def is_open(value: Any) -> bool:
    """Return whether a value is a size, number or comparison that is known only in a run."""
    return isinstance(value, Open)


def known_size(n: Any) -> bool:
    """Return whether a size is known: neither ``None`` nor an expression.

    Parameters
    ----------
    n
        A size of a shape.

    Returns
    -------
    bool
        Whether it is an integer.

    Examples
    --------
    >>> from gradtape.plugin import known_size
    >>> known_size(3), known_size(gt.TensorSpec([None]).shape[0])
    (True, False)
    """
    return n is not None and not isinstance(n, Open)


class Open:
    """A Python number in every run, and an expression of sizes while a function is traced.

    Attributes
    ----------
    key
        A text that equal expressions share.
    depth
        The depth to which expressions are nested in it.
    """

    __slots__ = ("__weakref__", "depth", "key")
    key: str
    depth: int
    what = "size"
    stands_for: type = int  # its type in eager code

    if not TYPE_CHECKING:  # type checkers should see the class and its attributes

        @property
        def __class__(self) -> Any:
            # isinstance(n, int) has the same result as in eager code
            return self.stands_for if is_users_call() else type(self)

        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(self.stands_for, name) and not name.startswith("_"):
                self._refuse(
                    f".{name}",
                    "compute with operators and with gradtape's functions, or set the size in its "
                    "TensorSpec",
                )
            raise AttributeError(f"{self.stands_for.__name__!r} object has no attribute {name!r}")

    def text(self) -> tuple[str, int]:
        """Return the expression as text, and the precedence of its outermost operator."""
        raise NotImplementedError

    def used_after(self) -> str:
        """Return the message for a use after the trace has ended."""
        return (
            f"{user_line()}: the {self.what} {self!r} of a trace is used after the trace ended; "
            "return what depends on it from the function"
        )

    def _refuse(self, asked: str, instead: str) -> NoReturn:
        if active_graph.get() is None:
            raise OpenSize(self.used_after())
        raise OpenSize(
            f"{user_line()}: the {self.what} {self!r} is not known while a function is traced, and "
            f"{asked} needs its value; {instead}"
        )

    def __bool__(self) -> bool:
        self._refuse(
            "a decision (if, while, and, or, not, in, max, min)",
            "write gradtape.where or gradtape.cond for a choice, gradtape.while_loop to repeat, "
            "gradtape.maximum or gradtape.minimum, or set the size in its TensorSpec",
        )

    def __index__(self) -> int:
        self._refuse(
            "Python or NumPy (range, a list, len(), an array)",
            "compute with gradtape's functions (gradtape.arange, zeros, tile; gradtape.scan or "
            "while_loop to repeat), or set the size in its TensorSpec",
        )

    def __int__(self) -> int:
        self._refuse(
            "int()",
            "a size already is an integer: write n, n // 2, or math.floor, math.ceil or round of a "
            "number, or set the size in its TensorSpec",
        )

    def __float__(self) -> float:
        self._refuse(
            "Python (float(), math)",
            "write n ** 0.5, n / 2 or a gradtape function of it, or set the size in its TensorSpec",
        )

    def __complex__(self) -> complex:
        return complex(float(self))

    def __eq__(self, other: object) -> Any:
        return NotImplemented

    def __hash__(self) -> int:
        # a table of numbers would not contain it, and silently return a default or False
        if is_users_call():
            self._refuse(
                "a dictionary or a set",
                "compare it with the keys in gradtape.cond or where, or set the size in its "
                "TensorSpec",
            )
        return hash((type(self), self.key))

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{user_line()}: the {self.what} {self!r} of a trace cannot be pickled; return it from "
            "the function to get its value"
        )

    def __repr__(self) -> str:
        return self.text()[0]

    def __format__(self, spec: str) -> str:
        return str(self)


def key_of(value: Any) -> str:
    """Return the key of a number or an expression; equal ones have equal keys."""
    return value.key if isinstance(value, Open) else repr(value)


def checked(key: str, depth: int) -> tuple[str, int]:
    """Return the key and depth of an expression, if it is within the limits.

    Raises
    ------
    TraceError
        If it is too long or too deep. If a shape rule made it, the size becomes a new unknown.
    """
    if len(key) > _LONGEST or depth > _DEEPEST:
        raise OpenSize(
            f"{user_line()}: an expression of sizes is too long for a trace, for instance after "
            "many steps of a loop; use gradtape.while_loop, compute with gradtape.constant(n), or "
            "set the size in its TensorSpec"
        )
    return key, depth
