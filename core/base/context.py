"""The context of running code: active tapes, the graph being traced, batches, and more.

All of it is in ``contextvars``: an asyncio task or ``copy_context().run`` sees the tapes of the
code that started it, and a plain new thread starts with none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from ..errors import BrokenPathWarning, GradientError
from .user_code import warn_user

if TYPE_CHECKING:
    from ..graphs.graph import Graph
    from ..tensors.tensor import Tensor
    from ..tensors.variable import Variable
    from .observers import Recorder

V = TypeVar("V")


class Setting(AbstractContextManager[V]):
    """A block in which a context variable has a value.

    Parameters
    ----------
    variable
        The variable, which gets its former value at the end of the block.
    value
        The value; ``with`` gives it too.
    """

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[Any], value: V) -> None:
        self._variable, self._value = variable, value

    def __enter__(self) -> V:
        self._token = self._variable.set(self._value)
        return self._value

    def __exit__(self, *raised: object) -> None:
        self._variable.reset(self._token)


active_tapes: ContextVar[tuple[Recorder, ...]] = ContextVar("gradtape_tapes", default=())
active_graph: ContextVar[Graph | None] = ContextVar("gradtape_graph", default=None)


class Reducer(Protocol):
    """Turns the gradients of one rank's part of a batch into those of the whole batch."""

    def weighed(
        self, targets: list[Tensor], seeds: list[Tensor | None], sources: list[Any]
    ) -> list[Tensor | None]:
        """Return the upstream gradients, weighted by this rank's share of the batch."""

    def reduced(
        self, targets: list[Tensor], sources: list[Any], grads: list[Tensor | None]
    ) -> list[Tensor | None]:
        """Return the gradients of all ranks."""

    def refuse(self, method: str, sources: list[Any]) -> None:
        """Raise if another derivative with respect to variables would cover only this rank."""


class Batching(NamedTuple):
    """A running batch: its level, a tensor of its length, and the mode of random numbers."""

    level: int
    like: Tensor
    randomness: str


#: The batches around the running code, the outermost first.
active_batches: ContextVar[tuple[Batching, ...]] = ContextVar("gradtape_batches", default=())


def batched_in(batches: Sequence[Batching]) -> Setting[tuple[Batching, ...]]:
    """Run a block in these batches alone."""
    return Setting(active_batches, tuple(batches))


def back_in(batches: Sequence[Batching]) -> Setting[tuple[Batching, ...]]:
    """Run a block in batches that may have ended, in addition to those that run.

    A gradient function is written for one example, as the function that it belongs to.
    """
    levels = {batch.level for batch in batches}
    inside = (batch for batch in active_batches.get() if batch.level not in levels)
    return batched_in((*batches, *inside))


#: Whether the backward pass of a tape is running that recorded inside batches which have ended.
after_batches: ContextVar[bool] = ContextVar("gradtape_after_batches", default=False)


#: Whether a broken gradient path is an error for the derivatives being computed.
strictness: ContextVar[bool] = ContextVar("gradtape_strictness", default=False)


#: Whether decorated functions run as a part of what calls them, as they do in a trace.
inlined: ContextVar[bool] = ContextVar("gradtape_inlined", default=False)
#: One item for each block on any thread that inlines: asking whether there are any is quicker.
INLINING: list[None] = []


@contextmanager
def inlining(wanted: bool = True) -> Iterator[None]:
    """Run a block in which decorated functions are a part of what calls them, if ``wanted``.

    A graph of their own would give the results alone, without losses that layers add and masks.
    """
    if not wanted:
        yield
        return
    INLINING.append(None)
    try:
        with Setting(inlined, True):
            yield
    finally:
        INLINING.pop()


#: Turns each rank's gradients with respect to variables into those of all ranks.
reducing: ContextVar[Reducer | None] = ContextVar("gradtape_reducing", default=None)


class BackwardPass:
    """A running backward pass, and the id of the tensor whose gradient it is handling."""

    __slots__ = ("output",)

    def __init__(self) -> None:
        self.output = 0


class Mode:
    """The ``training`` that modules called without one use, and whether one has read it."""

    __slots__ = ("asked", "training")

    def __init__(self, training: Any) -> None:
        self.training = training
        self.asked = False


#: Whether code runs for a second time (a gradient recomputes what it needs) or as a trial: ops with
#: an effect then have none.
muted: ContextVar[bool] = ContextVar("gradtape_muted", default=False)


def muting() -> Setting[bool]:
    """Run a block in which ops have no effects."""
    return Setting(muted, True)


#: The examples of a batch that effects apply to, if not to all: booleans, the innermost last.
_meant: ContextVar[tuple[Tensor, ...]] = ContextVar("gradtape_meant", default=())


def effect_masks() -> tuple[Tensor, ...]:
    """Return the masks of the examples that effects apply to: those where every mask is true."""
    return () if muted.get() else _meant.get()


def mask_effects(chosen: Tensor) -> Setting[tuple[Tensor, ...]]:
    """Run a block for all examples, with effects only for the chosen ones."""
    return meaning((*_meant.get(), chosen))


def meaning(masks: tuple[Tensor, ...]) -> Setting[tuple[Tensor, ...]]:
    """Run a block with effects for the examples where all of these masks are true."""
    return Setting(_meant, masks)


#: Converts the functions that modules run, inside a function that AutoGraph traces.
converting: ContextVar[Callable[[Any], Any] | None] = ContextVar(
    "gradtape_converting", default=None
)


def as_converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a user's function, converted by AutoGraph inside a function that it converts."""
    convert = converting.get()
    converted: Callable[..., Any] = function if convert is None else convert(function)
    return converted


#: The ``training=...`` of a call, which modules called inside it inherit.
training_mode: ContextVar[Mode | None] = ContextVar("gradtape_training", default=None)


def calling_in(training: Any) -> Setting[Mode]:
    """Run a block in which modules called without ``training`` use this value."""
    return Setting(training_mode, Mode(training))


# While a function is traced: the objects that were asked for an attribute, with its name and value.
# The trace is valid while these values stay the same.
_asked: ContextVar[dict[tuple[int, str], tuple[Any, str, Any]] | None] = ContextVar(
    "gradtape_asked", default=None
)


#: In the place of an attribute's name: the trace calls the module.
CALLED = "()"


def noting_answers() -> Setting[dict[tuple[int, str], tuple[Any, str, Any]]]:
    """Collect the attributes that traced code reads in a block: object, name and value."""
    return Setting(_asked, {})


def note_trainable(x: Any, answer: bool) -> bool:
    """Return ``answer``, the value of ``x.trainable``, and note it for the trace."""
    asked = _asked.get()
    if asked is not None:
        asked.setdefault((id(x), "trainable"), (x, "trainable", answer))
    return answer


def is_noting() -> bool:
    """Return whether a trace notes what is read."""
    return _asked.get() is not None


def note_answer(x: Any, name: str) -> None:
    """Note the value of an attribute for the trace, which is valid while it stays the same."""
    asked = _asked.get()
    if asked is not None:
        asked.setdefault((id(x), name), (x, name, getattr(x, name)))


def note_call(module: Any) -> None:
    """Note for the trace that it calls a module: it is valid while the module holds the same."""
    asked = _asked.get()
    if asked is not None:
        asked.setdefault((id(module), CALLED), (module, CALLED, True))


def is_noted(x: Any, name: str) -> bool:
    """Return whether the trace has noted a value of an attribute."""
    return (id(x), name) in (_asked.get() or ())


#: The backward passes on tensors, and the graphs run op by op, around the running code: messages
#: mention them.
running: ContextVar[tuple[BackwardPass | Graph, ...]] = ContextVar("gradtape_running", default=())

#: The most steps of a loop; None for no limit.
loop_limit: ContextVar[int | None] = ContextVar("gradtape_loop_limit", default=None)


def recording_to(tapes: tuple[Recorder, ...]) -> Setting[tuple[Recorder, ...]]:
    """Make ``tapes`` the only active ones for a block."""
    return Setting(active_tapes, tapes)


def using_ended_batches(allowed: bool) -> Setting[bool]:
    """Run a block that may use values from ended batches that tapes keep."""
    return Setting(after_batches, allowed or after_batches.get())


@contextmanager
def tracing_into(graph: Graph | None, *recorders: Recorder) -> Iterator[None]:
    """Trace a block into ``graph``, hidden from the tapes and batches of the surrounding code."""
    with Setting(active_graph, graph), recording_to(recorders), batched_in(()):
        yield


#: Surrounds the blocks in which code makes state once, whatever is traced around them.
setting_up: ContextVar[Callable[[], AbstractContextManager[None]]] = ContextVar(
    "gradtape_setting_up", default=nullcontext
)


@contextmanager
def init_scope() -> Iterator[None]:
    """Leave any trace, tape and batch for a block: state created in it is eager and unrecorded.

    Yields
    ------
    None
        Tensors and variables created in the block have values, even inside a trace.

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
    with setting_up.get()(), tracing_into(None):
        yield


# -- derivatives that are limits -------------------------------------------------------------------


# Where an op's rule has no derivative, those of points nearby tell it. At equal eigenvalues, for
# example, the derivative of a function of the eigenvectors follows from no upstream gradient: it is
# the limit of the derivatives at separate eigenvalues. A kernel that meets such a point says so,
# and the derivative is computed again at points a small step away, where the same kernel returns
# the outputs of that point. See `core.transforms.limits`.


class Derivation:
    """A derivative that is being computed, at a point or at a step away from it.

    Parameters
    ----------
    step
        None at the point itself. Otherwise the signed, relative length of the step away: a kernel
        that met such a point returns outputs that depend smoothly on it.
    turned
        Whether kernels make other arbitrary choices at the point than usual: the limit is the same
        if there is one.

    Attributes
    ----------
    eps
        The rounding error of the dtypes in which kernels met such a point; 0.0 if none did.
    size
        The smallest size of their arguments there: functions change over such distances.
    met
        A description of the point, for messages.
    changed
        The variables that were assigned, by id, each with its array before.
    """

    __slots__ = ("changed", "eps", "met", "size", "step", "turned")

    def __init__(self, step: float | None = None, turned: bool = False) -> None:
        self.step, self.turned = step, turned
        self.eps, self.size = 0.0, inf
        self.met = ""
        self.changed: dict[int, tuple[Variable, Any]] = {}

    def note_limit(self, eps: float, size: float, what: str) -> None:
        """Note that the derivative at this point is a limit, and why."""
        self.eps, self.size = max(self.eps, eps), min(self.size, size)
        self.met = self.met or what

    def join(self, other: Derivation) -> None:
        """Note what another derivation did, which was a part of this one."""
        self.note_limit(other.eps, other.size, other.met)
        self.changed = other.changed | self.changed


#: The derivative that running code computes, if it can be computed again a step away.
deriving: ContextVar[Derivation | None] = ContextVar("gradtape_deriving", default=None)


def changing(variable: Variable, before: Any) -> None:
    """Note that a variable is about to be assigned, with its current array."""
    derivation = deriving.get()
    if derivation is not None:
        derivation.changed.setdefault(variable.id, (variable, before))


def report_missing_terms(why: str, strict: bool = False) -> None:
    """Warn that a derivative lacks terms, or raise if that is an error."""
    if strict or strictness.get():
        raise GradientError(why)
    warn_user(
        f"{why}. The derivative lacks terms; strict=True makes this an error", BrokenPathWarning
    )
