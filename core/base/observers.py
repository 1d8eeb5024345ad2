"""The base classes of what observes a computation: ``Recorder`` and ``Watcher``.

Ops notify recorders, such as gradient tapes, of what they compute. A watcher, such as a profiler,
observes kernels, backward passes and graphs while they run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from types import FrameType

    from ..tensors.op import Op
    from ..tensors.tensor import Tensor
    from ..tensors.variable import Variable
    from .user_code import Site


class AllRecords(dict[int, Any]):
    """The records of a recorder that follows every tensor."""

    def __contains__(self, id: object) -> bool:
        return True


class Recorder:
    """Receives op runs, variable reads and broken gradient paths; this base class ignores them.

    Attributes
    ----------
    records
        What it follows, by the id of the tensor. An op notifies a recorder only if one of the op's
        inputs is in here.
    wants_ops
        Whether every such op must call :meth:`record`. If not, quick ops add the record of the most
        common case to ``records`` themselves.
    asks_where
        Whether it needs to know which record a backward pass is at (``context.running``).
    reads
        The reads of variables, by the variable's id: the array that was read, and the id of the
        tensor made from it. Used while no other recorder is active; None if every read is a new
        tensor.
    levels
        The levels of the batches in which it was opened.
    checks_constants
        Whether it has seen a read after which it looks at constants; see :meth:`record_read`.
    opened_at
        The running ``with`` statement that opened it: the id of the frame, and the place in its
        code. None if it is not known, or what the recorder follows does not begin there.
    """

    _gradtape_internal = "*"

    records: dict[int, Any]
    wants_ops = True
    checks_constants = False
    asks_where = False
    reads: dict[int, tuple[Any, int]] | None = None
    levels: frozenset[int] = frozenset()
    opened_at: tuple[int, int] | None = None

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} cannot be copied or pickled: its records belong to the code "
            "that ran under it; send gradients, or run that code where they are needed"
        )

    def sums_over(self, level: int, inputs: Sequence[Any]) -> bool:
        """Return whether it sums the gradient of one of ``inputs`` over the examples of a level."""
        return False

    def record(
        self, op: Op, inputs: tuple[Any, ...], output: Tensor, params: dict[str, Any]
    ) -> None:
        """Receive a run of ``op`` with one output."""

    def record_joint(
        self, op: Op, inputs: tuple[Any, ...], outputs: list[Tensor], params: dict[str, Any]
    ) -> None:
        """Receive a run of an op with several outputs, or with one rule for all inputs."""

    def record_call(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        backward: Callable[..., Sequence[Any]],
    ) -> None:
        """Receive a computation whose gradient is the function ``backward``.

        It takes the upstream gradients and, as ``ended``, levels of batches over whose examples it
        may sum the gradient of what they share.
        """

    def record_lost(
        self, inputs: Sequence[Tensor], places: Sequence[int], outputs: Sequence[Tensor], why: str
    ) -> None:
        """Receive notice that the outputs of a call depend on inputs that get no gradient.

        ``places`` says which of the inputs these are, and ``record_call`` was called before.
        """

    def record_break(self, inputs: Sequence[Tensor], outputs: Sequence[Tensor], why: str) -> None:
        """Receive notice that gradients stop here, and why."""

    def record_read(self, x: Tensor, site: Site, frame: FrameType, value: Any, held: bool) -> None:
        """Receive notice that Python, NumPy or another library read the value of ``x``.

        ``held`` says that ``x`` is the value of a trainable variable.
        """

    def record_entry(self, x: Tensor, value: Any) -> None:
        """Receive a constant made of a number or array; only for one that ``checks_constants``."""

    def look_at_numbers(self, given: Sequence[Any], outputs: Sequence[Tensor], alone: bool) -> None:
        """Look at the numbers among an op's inputs; only for one that ``checks_constants``.

        ``alone`` says that it follows no other input of the op.
        """

    def accessed(self, variable: Variable, read: Tensor) -> None:
        """Receive the read of a variable; ``read`` is its value."""

    def accessed_by_rule(self, variable: Variable, read: Tensor) -> None:
        """Receive the read of a variable by a gradient function that runs later, if at all."""
        self.accessed(variable, read)

    def changing(self, variable: Variable, before: Any) -> None:
        """Receive notice that a variable is about to be assigned, with its current array."""


# -- watchers --------------------------------------------------------------------------------------


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

    def excluded(self) -> AbstractContextManager[None]:
        """Return the context of work that is done only because there is a watcher."""
        raise NotImplementedError

    def begin(self, name: str, like: Any = None, nbytes: int = 0, planned: bool = True) -> None:
        """Note that a step begins; ``like`` is an array of the backend that it runs on.

        ``planned`` says that a step in a graph is one of the graph's plan.
        """

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


def excluded() -> AbstractContextManager[None]:
    """Return a context for work that the program does not do without a watcher."""
    watching = watcher.get()
    return _NOTHING if watching is None else watching.excluded()


_NOTHING = nullcontext()


@contextmanager
def _within(watching: Watcher, name: str, like: Any) -> Iterator[None]:
    watching.begin(name, like, planned=False)
    try:
        yield
    finally:
        watching.end()
