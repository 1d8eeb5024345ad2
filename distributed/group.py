"""``init``, which joins a job, and ``Group``, the ranks of the job."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from ..core.errors import DistributedError
from ..core.extend import TRAINING, Communicator, communicator, connect_to, public_package, registry
from ..plugins.ops.collectives import exchange
from .faults import hooks
from .faults.lifeline import DONE, JOINED, JOINING, hostname, join, report_to_supervisor
from .parallel import DataParallel
from .reduction import BUCKET_BYTES

#: The environment variable that names the engine for ``init("auto")``.
ENGINE = "GRADTAPE_ENGINE"


class Group:
    """The ranks of a job, returned by :func:`init`.

    Attributes
    ----------
    rank, size : int
        The number of this rank, from 0, and the number of ranks.
    devices : int
        The number of parts of a batch. With the engine ``"jax"``, whose ranks are processes, these
        are the devices of all processes; with other engines they are the ranks.
    engine : str
        The engine that connects the ranks; ``"alone"`` for a group of one.
    steps, latest : int
        How many data-parallel functions the ranks have begun, and the number of the one that ran
        last. A rank that calls another one compares this with the other ranks.

    Examples
    --------
    >>> group = gt.distributed.init()  # started without a launcher
    >>> group.rank, group.size
    (0, 1)
    """

    def __init__(self, found: Communicator) -> None:
        self.communicator = found
        self.rank, self.size, self.engine = found.rank, found.size, found.engine
        self.devices = found.devices
        self.steps = self.latest = 0

    def __repr__(self) -> str:
        return f"<group of {self.size}, rank {self.rank}, engine {self.engine!r}>"

    def all_reduce(self, x: Any, reduction: str = "sum") -> Any:
        """Return the reduction over all ranks: :func:`gradtape.distributed.all_reduce`."""
        return exchange.all_reduce(x, reduction)

    def all_gather(self, x: Any, axis: int | None = None) -> Any:
        """Return the tensors of all ranks: :func:`gradtape.distributed.all_gather`."""
        return exchange.all_gather(x, axis)

    def broadcast(self, x: Any, root: int = 0) -> Any:
        """Return one rank's tensor: :func:`gradtape.distributed.broadcast`."""
        return exchange.broadcast(x, root)

    def reduce_scatter(self, x: Any, axis: int = 0) -> Any:
        """Return this rank's part of the sum: :func:`gradtape.distributed.reduce_scatter`."""
        return exchange.reduce_scatter(x, axis)

    def barrier(self) -> None:
        """Wait until every rank has called this: :func:`gradtape.distributed.barrier`."""
        exchange.barrier()

    def data_parallel(
        self,
        step: Callable[..., Any] | None = None,
        *,
        reduction: str = "mean",
        outputs: str = "mean",
        compile: bool = True,
        timeout: float | None = None,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> Any:
        """Turn the training step of a single process into one for all ranks.

        The step is unchanged: it opens a tape, computes the gradients of a loss with respect to
        variables, applies them, and returns numbers. Each rank calls it with its part of a batch.
        ``tape.gradient`` returns the gradients of the whole batch, the same on each rank, so
        variables that start equal stay equal, bit for bit.

        Parameters
        ----------
        step
            A function of arrays. The first axis of the first array counts this rank's examples.
            Without a step, a decorator is returned.
        reduction
            ``"mean"``, the default: losses are means over examples, and parts of different lengths
            are weighted by their lengths. ``"sum"``: losses are sums over examples. A term that
            does not depend on examples, such as a penalty, is then added once per rank.
        outputs
            ``"mean"``, the default: the step returns floating scalars, which are averaged over the
            whole batch. ``"local"``: each rank's own results are returned.
        compile
            Whether the step is traced (see :func:`gradtape.function`); true by default.
        timeout
            The longest wait in one collective, in seconds. Then the job ends, and ranks that are
            late are named. ``None``, the default: that of :func:`gradtape.distributed.init`.
        bucket_bytes
            The most bytes of gradients that a traced step sends in one message, 25 MiB by default.
            More gradients go in several messages, those of the last layers first. Each is sent
            while the backward pass continues.

        Returns
        -------
        A :class:`DataParallel`, called like ``step``. All ranks call it, in the same order.

        Raises
        ------
        TypeError
            If ``step`` is not a function. When called: if the target of a gradient with respect to
            variables is not a scalar, or the step returns anything else than floating scalars. Also
            if one call asks for gradients with respect to both variables and tensors, or for a
            Jacobian with respect to variables.
        ValueError
            If an option has any other value. When called, on every rank: if a rank has no examples.
        FloatingPointError
            When called, on every rank, if the loss of any rank is not finite. The optimizer has
            then done no step.
        DistributedError
            At the first call, on every rank, if ranks run different code.

        Notes
        -----
        Gradients with respect to tensors, such as inputs, are those of the rank's own examples. A
        random tensor with one row per example gets this rank's rows of the tensor that a single
        process would draw for the whole batch. Batch normalization uses the mean and variance of
        the rank's own examples unless ``synchronized=True``.

        Examples
        --------
        >>> group = gt.distributed.init()  # started without a launcher
        >>> w, optimizer = gt.Variable(0.0), gt.training.SGD(0.5)
        >>> @group.data_parallel
        ... def step(x, y):
        ...     with gt.GradientTape() as tape:
        ...         loss = gt.mean((w * x - y) ** 2)
        ...     optimizer.apply_gradients([(tape.gradient(loss, w), w)])
        ...     return loss
        >>> step(gt.constant([1.0, 1.0]), gt.constant([2.0, 4.0])).item()
        10.0
        >>> w.item()
        3.0
        """
        options: dict[str, Any] = {"reduction": reduction, "outputs": outputs}
        options |= {"compile": compile, "timeout": timeout, "bucket_bytes": bucket_bytes}
        if step is None:
            return lambda function: DataParallel(self, function, **options)
        return DataParallel(self, step, **options)

    def abort(self, reason: str, code: int = 1) -> NoReturn:
        """End all ranks: :func:`gradtape.distributed.abort`."""
        abort(reason, code)

    def step(self, name: str, timeout: float | None = None) -> AbstractContextManager[None]:
        """Return a context manager that names a block for reports of stuck ranks.

        Parameters
        ----------
        name
            The name, for instance ``"step 3"``.
        timeout
            How many seconds a rank may wait in one collective of the block, which may contain a
            call of ``fit``. None, the default: as before the block.

        Raises
        ------
        DistributedError
            If there is a timeout, and the ranks have no TCP connections next to the engine's.
        """
        found = hooks.line()
        if found is None:
            check_watched(self.communicator, timeout)
            return nullcontext()
        return found.during(name, timeout)


_group: list[Group] = []


def init(engine: str = "auto", *, timeout: float | None = None, **options: Any) -> Group:
    """Join the job that this process was started for.

    Parameters
    ----------
    engine
        The name of an engine: ``"mpi"``, ``"jax"``, ``"alone"``, or that of a plugin. ``"auto"``,
        the default, takes the engine named by the environment variable ``GRADTAPE_ENGINE``. If it
        is not set, ``"auto"`` takes the engine whose launcher started the process: ``"mpi"`` for
        ``mpiexec`` and ``srun``. Without a launcher it returns a group of one.
    timeout
        How many seconds a rank may wait for the others in one collective. Then all ranks report
        where they are, those that are late are named, and the job ends. None, the default, waits
        without a limit. The first step takes longer than others, because it is traced. A group of
        one never waits.
    options
        The engine's options.

    Returns
    -------
    Group
        The ranks of the job. A second call returns the same group.

    Raises
    ------
    BackendUnavailable
        If the engine's library is missing. The message says what to install.
    DistributedError
        If the process has already joined with another engine.
    UnknownOp
        If no plugin provides the engine.
    ValueError
        If the timeout is not positive.

    Notes
    -----
    If ranks are processes, an uncaught exception in any thread of any rank now ends the job. A rank
    that dies also ends it, and so does a rank whose script ends while others wait for it.
    All ranks print which rank it was and why. At its end, each script waits until all have ended.

    Examples
    --------
    >>> gt.distributed.init()  # started without a launcher
    <group of 1, rank 0, engine 'alone'>
    """
    chosen = os.environ.get(ENGINE, "auto") if engine == "auto" else engine
    if timeout is not None and not timeout > 0:
        raise ValueError(f"distributed.init: timeout must be positive or None; got {timeout!r}")
    if _group:
        held = _group[0]
        if timeout is not None:
            options = {"timeout": timeout, **options}
        if chosen not in ("auto", held.engine) or options:
            raise DistributedError(
                f"distributed.init: this process already joined with the engine {held.engine!r}; "
                "call gt.distributed.shutdown() first"
            )
        return held
    if chosen == "auto":
        engines = registry().collectives.values()
        chosen = next((found.name for found in engines if found.launched()), "alone")
    if chosen == "alone":
        if options:
            raise TypeError(f"distributed.init: a group of one has no option {', '.join(options)}")
        connect_to(None)
    else:
        report_to_supervisor(JOINING)
        connect_to(registry().engine(chosen).connect(**options))
        report_to_supervisor(JOINED)
    _group.append(Group(communicator()))
    try:
        _watch(communicator(), timeout)
    except DistributedError:
        shutdown()
        raise
    if TRAINING in os.environ and communicator().rank == 0:
        sys.stderr.write(f"gradtape train: {_group_text(communicator())}\n")
        sys.stderr.flush()
    return _group[0]


def _group_text(found: Communicator) -> str:
    """Return a description of the group, for the top of a log."""
    line = hooks.line()
    hosts = ", ".join(dict.fromkeys(line.hosts)) if line else hostname()
    engine = registry().engine(found.engine)
    return "; ".join(
        [
            f"{found.size} ranks on {hosts}",
            ", ".join([f"engine {found.engine!r}", *engine.diagnosis()]),
            f"gradtape {public_package().__version__}, NumPy {np.__version__}, "
            f"Python {platform.python_version()}",
            f"threads of BLAS per rank: {os.environ.get('OMP_NUM_THREADS', 'not limited')}",
        ]
    )


def _watch(found: Communicator, timeout: float | None) -> None:
    """Report failures of one rank on all ranks, if ranks are processes."""
    if found.size == 1 or not found.watched:
        check_watched(found, timeout)
        return
    line = join(found)
    hooks.install(found.rank, found.size, hostname(), line)
    if line is None:
        check_watched(found, timeout)
    else:
        line.timeout = timeout


def check_watched(found: Communicator, timeout: float | None) -> None:
    """Refuse a timeout that could not be enforced.

    Raises
    ------
    DistributedError
        If there is a timeout, and several ranks without TCP connections next to the engine's.
    """
    if timeout is not None and found.size > 1:
        raise DistributedError(
            f"timeout={timeout:g}: with the engine {found.engine!r} the ranks have no TCP "
            "connections here, so a stuck rank cannot be found. Leave timeout out"
        )


def joined() -> bool:
    """Return whether :func:`init` was called, and :func:`shutdown` was not called since."""
    return bool(_group)


def group() -> Group:
    """Return the group that :func:`init` returned, or a group of one before :func:`init`.

    Returns
    -------
    Group
        The ranks of the job.

    Examples
    --------
    >>> gt.distributed.group().size
    1
    """
    return _group[0] if _group else Group(communicator())


def shutdown() -> None:
    """Leave the job. The process is then a group of one, and may call :func:`init` again.

    This is collective. It is not needed at the end of a process.

    Examples
    --------
    >>> gt.distributed.shutdown()
    """
    if _group:
        hooks.leave()
        hooks.forget()
        report_to_supervisor(DONE)
        _group.pop().communicator.close()
    connect_to(None)


def abort(reason: str, code: int = 1) -> NoReturn:
    """End the processes of all ranks at once.

    Parameters
    ----------
    reason
        The reason, printed on standard error with this rank's number.
    code
        The exit code, 1 by default.

    Raises
    ------
    ValueError
        If the code is 0, which means success.
    """
    if not code:
        raise ValueError("distributed.abort: code 0 means success; pass another number")
    found = communicator()
    line = hooks.line()
    if line is not None:
        line.fail(f"aborted: {reason}", None, code)
    print(
        f"gradtape: rank {found.rank} of {found.size} aborts: {reason}", file=sys.stderr, flush=True
    )
    found.abort(reason, code)
    raise SystemExit(code)
