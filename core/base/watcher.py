"""``Watcher``: observes kernels, backward passes and graphs while they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any


class Watcher:
    """Wraps kernels, backward passes and graphs while it is active, and runs them.

    Attributes
    ----------
    over
        Whether it has ended: a thread may still have a copy of the context in which it was active.
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
        """Run the kernel of the op called ``name``, and return its result."""
        raise NotImplementedError

    def backward(self) -> AbstractContextManager[None]:
        """Return the context of a backward pass."""
        raise NotImplementedError

    def rule(self, output: int, name: str, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that runs an op's gradient rule and observes it.

        Parameters
        ----------
        output
            The id of the op's output; 0 for several.
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
        """Run a graph that an executor compiled, and return its results."""
        raise NotImplementedError

    def begin(self, name: str, like: Any = None, nbytes: int = 0) -> None:
        """Note that a step begins; ``like`` is an array of the backend that it runs on."""

    def end(self) -> None:
        """Note that the step that began last has ended."""


#: The watcher of the running code.
watcher: ContextVar[Watcher | None] = ContextVar("gradtape_watcher", default=None)


def begin_step(step: tuple[str, Any, int]) -> None:
    """Report the start of a step of a compiled graph to ``gt.profile()``.

    Parameters
    ----------
    step
        The name of the step, an array of the backend whose clock measures it (``None`` for the
        host's), and the number of bytes that it allocates.

    Examples
    --------
    >>> from gradtape.plugin import begin_step, end_step
    >>> with gt.profile() as found:
    ...     begin_step(("acme step", None, 0))
    ...     end_step()
    >>> "acme step" in str(found)
    True
    """
    watching = watcher.get()
    if watching is not None:
        watching.begin(*step)


def end_step() -> None:
    """Report that the step that began last has ended.

    Examples
    --------
    >>> from gradtape.plugin import begin_step, end_step
    >>> with gt.profile() as found:
    ...     begin_step(("acme step", None, 0))
    ...     end_step()
    >>> "acme step" in str(found)
    True
    """
    watching = watcher.get()
    if watching is not None:
        watching.end()


def stage(name: str, like: Any = None) -> AbstractContextManager[None]:
    """Return a context whose code counts as one step, if there is a watcher.

    Parameters
    ----------
    name
        The name of the step.
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
