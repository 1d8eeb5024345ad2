"""``Watcher``: hears of what runs, and how long it takes, while it is active."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

__all__ = ["Watcher", "begin_step", "end_step", "stage", "watcher"]


class Watcher:
    """Stands around kernels, backward passes and graphs while it is active, and runs them.

    Attributes
    ----------
    over
        Whether it hears of nothing any more: a thread may have a copy of the context it was in.
    """

    over = False

    def kernel(
        self,
        name: str,
        backend: Any,
        kernel: Callable[..., Any],
        arrays: Sequence[Any],
        params: dict[str, Any],
    ) -> Any:
        """Run the kernel of the op called ``name``, and return what it returns."""
        raise NotImplementedError

    def backward(self) -> AbstractContextManager[None]:
        """Return the context of a backward pass."""
        raise NotImplementedError

    def rule(self, output: int, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return what runs the gradient rule of an op, and hears of it.

        Parameters
        ----------
        output
            The id of the tensor that the op made; 0 for several.
        name
            The op's name.
        rule
            The rule.
        """
        raise NotImplementedError

    def graph(
        self,
        name: str,
        executor: str,
        run: Callable[[Sequence[Any]], list[Any]],
        arrays: Sequence[Any],
    ) -> list[Any]:
        """Run a graph as an executor compiled it, and return its results."""
        raise NotImplementedError

    def begin(self, name: str, like: Any = None, nbytes: int = 0) -> None:
        """Hear that a step begins; ``like`` is an array of the backend that it runs on."""

    def end(self) -> None:
        """Hear that the step that began last has ended."""


#: Who watches what the running code runs.
watcher: ContextVar[Watcher | None] = ContextVar("gradtape_watcher", default=None)


def begin_step(step: tuple[str, Any, int]) -> None:
    """Say that a step of a compiled graph begins: what :meth:`Watcher.begin` is given."""
    watching = watcher.get()
    if watching is not None:
        watching.begin(*step)


def end_step() -> None:
    """Say that the step that began last has ended."""
    watching = watcher.get()
    if watching is not None:
        watching.end()


def stage(name: str, like: Any = None) -> AbstractContextManager[None]:
    """Return a context in which what runs is one step, if anybody watches.

    Parameters
    ----------
    name
        What it is.
    like
        An array of the backend that it runs on.
    """
    watching = watcher.get()
    return _NOTHING if watching is None else _within(watching, name, like)


_NOTHING = nullcontext()


@contextmanager
def _within(watching: Watcher, name: str, like: Any) -> Iterator[None]:
    watching.begin(name, like)
    try:
        yield
    finally:
        watching.end()
