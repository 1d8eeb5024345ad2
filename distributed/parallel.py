"""``DataParallel``: a training step that each rank runs on its part of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import DistributedError, TraceError
from ..core.extend import (
    BatchRows,
    Function,
    Graph,
    Tensor,
    Variable,
    active_graph,
    as_tensor,
    batch_rows,
    collectives_agreed,
    communicator,
    flatten,
    public_package,
    reducing,
    without_examples,
)
from .agreement import agree, agree_on_graph, compare, messages_of
from .reduction import BUCKET_BYTES, MEANS, Reduction, numbers_of

if TYPE_CHECKING:
    from .group import Group


class DataParallel:
    """A training step that each rank runs on its part of a batch; see ``group.data_parallel``.

    Attributes
    ----------
    step
        The function for a single process.
    group
        The ranks.
    timeout
        The longest wait in one collective, in seconds, or ``None``.
    """

    def __init__(
        self,
        group: Group,
        step: Callable[..., Any],
        *,
        reduction: str = "mean",
        outputs: str = "mean",
        compile: bool = True,
        timeout: float | None = None,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        _check(step, reduction, outputs, compile, timeout, bucket_bytes)
        self.step, self.group, self.timeout = step, group, timeout
        self.name = getattr(step, "__name__", type(step).__name__)
        self._reduction, self._outputs, self._compile = reduction, outputs, compile
        self._bucket_bytes = bucket_bytes
        options = {"reduction": reduction, "outputs": outputs, "compile": compile}
        self._whole = group.communicator.parallel(
            step if outputs == "local" else _returning_numbers(step),
            {**options, "timeout": timeout, "meet": self._compare},
        )
        self._traced = Function(self._run_even, None, self.name)
        self._weighted = Function(self._run, None, self.name)
        self._usual = 0  # the number of examples with weight 1
        self._number = 0  # of this step among those that the ranks have begun
        self._even = (
            True  # whether all ranks had equally many in the first step, and so equal traces
        )
        self._steps = 0
        self._agreed = self._compared = False
        self._asks = False  # whether Python arguments are compared in each step
        #: The messages of traces that ranks agreed on, their variables, and the Python arguments.
        self._messages: list[list[Any]] = []
        self._held: list[Any] = []
        self._settings: set[tuple[str, ...]] = set()
        self._before = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the step on this rank's part of the batch; collective."""
        self._steps += 1
        with self.group.step(f"step {self._steps} of {self.name}", self.timeout):
            if self._whole is not None:
                return self._whole(*args, **kwargs)
            if reducing.get() is not None:
                raise TraceError(
                    f"data_parallel: {self.name} is called in a data-parallel step, which already "
                    "reduces gradients; call the plain function instead"
                )
            count = _examples((args, kwargs))
            rows = BatchRows(count) if self._usual else self._compare_ranks(count, (args, kwargs))
            return self.run(rows, args, kwargs)

    def run(self, rows: BatchRows, args: Any, kwargs: Any) -> Any:
        """Run the step on rows of the global batch.

        Parameters
        ----------
        rows
            The rows.
        args, kwargs
            The step's arguments.
        """
        alone = communicator().size == 1
        even = alone or self._reduction == "sum" or (self._even and rows.count == self._usual)
        weight = 1.0 if even else rows.count / self._usual
        token = batch_rows.set(None if alone else rows)
        try:
            if self.group.latest != self._number:
                agree(self.group.communicator, f"called {self._called}")
                self.group.latest = self._number
            if not self._compile:
                return self._run(weight, *args, **kwargs)
            if self._asks:  # they decide which trace runs
                given = ", ".join(_settings((args, kwargs), alike=True)) or "none"
                told = f"called {self._called} with these Python arguments: {given}"
                agree(self.group.communicator, told)
            with collectives_agreed(self._agreed):
                if even:
                    return self._traced(*args, **kwargs)
                # a tensor, because each Python number would be traced anew
                return self._weighted(as_tensor(np.float64(weight)), *args, **kwargs)
        finally:
            batch_rows.reset(token)

    def _compare_ranks(self, count: int, arguments: Any) -> BatchRows:
        """Compare the code of ranks, and gather their numbers of examples."""
        found = communicator()
        self._asks = self._compile and found.size > 1 and bool(_settings(arguments))
        agree(
            found,
            f"called {self.name} of gradtape {public_package().__version__}, "
            f"reduction={self._reduction!r}, outputs={self._outputs!r}, compile={self._compile}"
            + (", with Python arguments" if self._asks else ""),
        )
        counts = found.all_gather(np.array(count)).tolist()
        empty = [rank for rank, n in enumerate(counts) if not n]
        if empty:
            raise ValueError(without_examples(empty, found.size))
        self.group.steps += 1
        self.group.latest = self._number = self.group.steps
        self._usual = max(counts)
        self._even = len(set(counts)) == 1
        return BatchRows(count, (sum(counts[: found.rank]), sum(counts)))

    def _compare(self, variables: list[Variable]) -> None:
        """Raise on all ranks if the initial values of trained variables differ."""
        self._compared = True
        compare(
            "data_parallel",
            "variables",
            "set the same seed of gt.random on all ranks before creating the model, or call "
            "gt.distributed.broadcast_variables(model)",
            [variable.array for variable in variables],
        )

    def _run_even(self, *args: Any, **kwargs: Any) -> Any:
        """Run or trace the step without a weight, for ranks with equally many examples."""
        return self._run(1.0, *args, **kwargs)

    def _run(self, weight: Any, *args: Any, **kwargs: Any) -> Any:
        """Run or trace the step with gradients of the whole batch."""
        reduction = Reduction(weight, self._reduction, self._bucket_bytes)
        if not self._compared:
            reduction.meet = self._compare
        token = reducing.set(reduction)
        try:
            returned = self.step(*args, **kwargs)
            found = returned if self._outputs == "local" else reduction.results(returned)
        finally:
            reducing.reset(token)
        graph = active_graph.get()
        if graph is not None and communicator().size > 1:
            self._agree(graph, reduction, _settings((args, kwargs)))
        return found

    def _agree(self, graph: Graph, reduction: Reduction, settings: tuple[str, ...]) -> None:
        """Compare the messages of ranks, so that none waits for a message that is never sent.

        A rank may trace again for another number of examples while others do not. It cannot
        compare then, and must send the same messages as before.
        """
        calls = messages_of(graph)
        sends = [*calls, *((*map(id, whose), count) for whose, count in reduction.sent)]
        known = settings in self._settings
        if sends not in self._messages:
            told = f"sends {_in_words(reduction, len(calls))}"
            if not self._agreed:
                agree_on_graph(self.group, graph)
            elif not known:
                agree(self.group.communicator, f"called {self._called}, traced again, which {told}")
            else:
                raise DistributedError(
                    f"data_parallel: {self.name} was traced again, for arrays of another shape or "
                    f"dtype, and now {told}; before, it {self._before}. Other ranks may still send "
                    "the old messages. Let what a step trains and returns depend on Python "
                    "arguments that are the same on all ranks, such as a bool"
                )
            self._before = told
            self._messages.append(sends)
            self._held.append(reduction.sent)
        self._settings.add(settings)
        self._agreed = True

    @property
    def _called(self) -> str:
        return f"{self.name} (data-parallel function {self._number})"

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<{self.name}, data-parallel on {self.group!r}>"


def _check(
    step: Any, reduction: str, outputs: str, compile: Any, timeout: Any, bucket_bytes: Any
) -> None:
    """Check the arguments of ``data_parallel``."""
    if not callable(step):
        raise TypeError(f"data_parallel: the step must be a function, got {step!r}")
    if isinstance(step, DataParallel):
        raise TypeError(
            f"data_parallel: {step.name} is already data-parallel; pass the plain function"
        )
    if reduction not in MEANS:
        raise ValueError(f"data_parallel: reduction must be 'mean' or 'sum', got {reduction!r}")
    if outputs not in ("mean", "local"):
        raise ValueError(f"data_parallel: outputs must be 'mean' or 'local', got {outputs!r}")
    if not isinstance(compile, bool):
        raise TypeError(f"data_parallel: compile must be True or False, got {compile!r}")
    if timeout is not None and (isinstance(timeout, bool) or not timeout > 0):
        raise ValueError(
            f"data_parallel: timeout must be a positive number of seconds, got {timeout!r}"
        )
    if isinstance(bucket_bytes, bool) or not isinstance(bucket_bytes, int) or bucket_bytes < 1:
        raise ValueError(
            f"data_parallel: bucket_bytes must be an integer of at least 1, got {bucket_bytes!r}"
        )


def _returning_numbers(step: Callable[..., Any]) -> Callable[..., Any]:
    """Return a step that checks that it returns floating scalars."""

    @functools.wraps(step, updated=())
    def checked(*args: Any, **kwargs: Any) -> Any:
        returned = step(*args, **kwargs)
        numbers_of(returned)
        return returned

    return checked


def _examples(arguments: Any) -> int:
    """Return the number of rows of the first array among the arguments; 1 without an array."""
    for leaf in flatten(arguments):
        if isinstance(leaf, (Tensor, Variable, np.ndarray)) and leaf.ndim:
            return int(leaf.shape[0])
    return 1


def _settings(arguments: Any, alike: bool = False) -> tuple[str, ...]:
    """Return the arguments that are not arrays, as text: each of their values has its own trace.

    With ``alike`` the text is the same on all ranks, without the addresses of objects.
    """
    arrays = (Tensor, Variable, np.ndarray, type(None))
    plain = (bool, int, float, complex, str, bytes, np.generic)
    return tuple(
        type(leaf).__qualname__ if alike and not isinstance(leaf, plain) else repr(leaf)
        for leaf in flatten(arguments)
        if not isinstance(leaf, arrays)
    )


def _in_words(reduction: Reduction, calls: int) -> str:
    """Return a description of the messages of a step."""
    told = []
    for whose, count in reduction.sent:
        names = [v.name for v in whose if v is not None]
        told += [f"gradients by {', '.join(names)}"] if names else []
        told += [f"{count} number{'s' * (count != 1)}"] if count else []
    return f"{' and '.join(told) or 'nothing'} ({calls} ops among ranks)"
