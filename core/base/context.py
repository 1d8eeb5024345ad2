"""What surrounds the running code: active tapes, the graph that is traced, batches, and more.

All of it follows ``contextvars``: an asyncio task or ``copy_context().run`` sees the tapes of the
code that started it; a bare new thread starts with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from ..graphs.graph import Graph
    from ..tensors.tensor import Tensor
    from .recorder import Recorder


active_tapes: ContextVar[tuple[Recorder, ...]] = ContextVar("gradtape_tapes", default=())
active_graph: ContextVar[Graph | None] = ContextVar("gradtape_graph", default=None)


class Reducer(Protocol):
    """What makes gradients of a part of a batch those of the whole."""

    def weighed(
        self, targets: list[Tensor], seeds: list[Tensor | None], sources: list[Any]
    ) -> list[Tensor | None]:
        """Return the upstream gradients with which this rank's targets count."""

    def reduced(
        self, targets: list[Tensor], sources: list[Any], grads: list[Tensor | None]
    ) -> list[Tensor | None]:
        """Return the gradients of all ranks."""

    def refuse(self, method: str, sources: list[Any]) -> None:
        """Raise if a derivative of another kind would be by variables, and of this rank alone."""


class Batching(NamedTuple):
    """A batch that is running: its level, a tensor as long as it, and what random numbers do."""

    level: int
    like: Tensor
    randomness: str


#: The batches around the running code, the outermost first.
active_batches: ContextVar[tuple[Batching, ...]] = ContextVar("gradtape_batches", default=())


#: Whether what runs is the backward pass of a tape that has recorded in batches which have ended.
after_batches: ContextVar[bool] = ContextVar("gradtape_after_batches", default=False)


#: Whether whoever asks for derivatives wants an error where a path is broken.
strictness: ContextVar[bool] = ContextVar("gradtape_strictness", default=False)


#: What a tape's gradients by variables go through, each rank's becoming those of all ranks.
reducing: ContextVar[Reducer | None] = ContextVar("gradtape_reducing", default=None)


class BackwardPass:
    """A backward pass that is running, and the id of the tensor at whose gradient it is."""

    __slots__ = ("output",)

    def __init__(self) -> None:
        self.output = 0


class Mode:
    """Whether modules called without ``training`` train, and whether one of them has asked."""

    __slots__ = ("asked", "training")

    def __init__(self, training: Any) -> None:
        self.training = training
        self.asked = False


#: Whether what runs has run before (a gradient computes again what it needs), or is a trial: ops
#: with an effect then have none.
muted: ContextVar[bool] = ContextVar("gradtape_muted", default=False)


@contextmanager
def muting() -> Iterator[None]:
    """Run a block in which ops have no effects."""
    token = muted.set(True)
    try:
        yield
    finally:
        muted.reset(token)


#: Of which examples of a batch what runs is meant, if not of all: booleans, the innermost last.
_meant: ContextVar[tuple[Tensor, ...]] = ContextVar("gradtape_meant", default=())


def meant() -> tuple[Tensor, ...]:
    """Return which examples what runs is meant for: all for which each of these tensors is true."""
    return _meant.get()


@contextmanager
def meant_for(chosen: Tensor) -> Iterator[None]:
    """Run a block, for all examples, whose effects are meant for some of them."""
    token = _meant.set((*_meant.get(), chosen))
    try:
        yield
    finally:
        _meant.reset(token)


#: What converts the functions that modules run, inside a function that is traced by AutoGraph.
converting: ContextVar[Callable[[Any], Any] | None] = ContextVar(
    "gradtape_converting", default=None
)


def as_converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function, or what AutoGraph makes of it in a function that it converts."""
    convert = converting.get()
    converted: Callable[..., Any] = function if convert is None else convert(function)
    return converted


#: What a call with ``training=...`` hands on to the modules that are called inside it.
training_mode: ContextVar[Mode | None] = ContextVar("gradtape_training", default=None)


@contextmanager
def calling_in(training: Any) -> Iterator[Mode]:
    """Run a block whose modules are to train, or not, where they are called without a word."""
    mode = Mode(training)
    token = training_mode.set(mode)
    try:
        yield mode
    finally:
        training_mode.reset(token)


# While a function is traced: what was asked whether it trains (a variable, a module), by its id,
# with the answer. The trace holds as long as the answers do.
_asked: ContextVar[dict[int, tuple[Any, bool]] | None] = ContextVar(
    "gradtape_trainable", default=None
)


@contextmanager
def noting_trainable() -> Iterator[dict[int, tuple[Any, bool]]]:
    """Note, by its id, what is asked in a block whether it trains, with the answer."""
    asked: dict[int, tuple[Any, bool]] = {}
    token = _asked.set(asked)
    try:
        yield asked
    finally:
        _asked.reset(token)


def told_trainable(x: Any, answer: bool) -> bool:
    """Return what somebody who asks whether ``x`` trains is told, and note it for the trace."""
    asked = _asked.get()
    if asked is not None:
        asked.setdefault(id(x), (x, answer))
    return answer


#: The backward passes on tensors, and the graphs run op by op, around the running code: messages
#: tell of them.
running: ContextVar[tuple[BackwardPass | Graph, ...]] = ContextVar("gradtape_running", default=())

#: How many steps a loop may take; None for any number.
loop_limit: ContextVar[int | None] = ContextVar("gradtape_loop_limit", default=None)


@contextmanager
def recording_to(tapes: tuple[Recorder, ...]) -> Iterator[None]:
    """Make ``tapes`` the active ones for a block, whatever was active before."""
    token = active_tapes.set(tapes)
    try:
        yield
    finally:
        active_tapes.reset(token)


@contextmanager
def using_ended_batches(allowed: bool) -> Iterator[None]:
    """Run a block that may use what tapes keep of batches which have ended."""
    token = after_batches.set(allowed or after_batches.get())
    try:
        yield
    finally:
        after_batches.reset(token)


@contextmanager
def tracing_into(graph: Graph | None, *recorders: Recorder) -> Iterator[None]:
    """Trace a block into ``graph`` with no tape or batch of the surrounding code looking on."""
    graph_token = active_graph.set(graph)
    tapes_token = active_tapes.set(recorders)
    batches_token = active_batches.set(())
    try:
        yield
    finally:
        active_batches.reset(batches_token)
        active_tapes.reset(tapes_token)
        active_graph.reset(graph_token)


@contextmanager
def init_scope() -> Iterator[None]:
    """Leave any trace, tape and batch for a block: state created in it is real and unrecorded.

    Yields
    ------
    None
        Tensors and variables made in the block have values, whatever surrounds it.

    Examples
    --------
    >>> @gt.function
    ... def shifted(x):
    ...     with gt.init_scope():
    ...         table = gt.constant([10.0, 20.0]).numpy()
    ...     return x + table
    >>> shifted(gt.constant([1.0, 2.0])).tolist()
    [11.0, 22.0]
    """
    with tracing_into(None):
        yield
