"""``init`` and ``Group``: joining a job, and what its ranks do together."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

import numpy as np

from ..core.errors import DistributedError
from ..core.extend import Communicator, communicator, connect_to, public, registry
from ..plugins.mpi.launchers import TRAINING
from ..plugins.ops.collectives import exchange
from .faults import hooks
from .faults.lifeline import DONE, JOINED, JOINING, hostname, join, tell_supervisor
from .parallel import DataParallel
from .reduction import BUCKET_BYTES

__all__ = ["Group", "abort", "group", "init", "joined", "shutdown"]

#: The environment variable that names the engine for ``init("auto")``.
ENGINE = "GRADTAPE_ENGINE"


class Group:
    """The ranks of a job, as :func:`init` returns them.

    Attributes
    ----------
    rank, size : int
        The number of this rank, from 0, and how many there are.
    devices : int
        Into how many shards a batch is cut: the devices of all processes under the engine
        ``"jax"``, whose ranks are processes; the ranks under any other.
    engine : str
        The engine that connects them; ``"alone"`` for a group of one.

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
        """Return a part of the sum: :func:`gradtape.distributed.reduce_scatter`."""
        return exchange.reduce_scatter(x, axis)

    def barrier(self) -> None:
        """Wait until every rank is here: :func:`gradtape.distributed.barrier`."""
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
        """Return a training step that each rank does on its part of a batch, on all ranks alike.

        The step is that of a single process: it opens a tape, asks for the gradients of a loss by
        variables, applies them, and returns numbers. Each rank calls it with its part of a batch.
        ``tape.gradient`` by variables returns gradients of the whole batch, the same on each rank,
        so that variables that begin alike stay alike, bit for bit.

        Parameters
        ----------
        step
            A function of arrays, the first of which counts this rank's examples on its first axis.
            Without one, a decorator is returned.
        reduction
            ``"mean"``, the default: losses are means over examples, and parts of different lengths
            are weighed by them. ``"sum"``: they are sums over examples; what does not depend on
            examples, as a penalty, is summed over the ranks as well then.
        outputs
            ``"mean"``, the default: the step returns numbers, floating tensors, which become the
            means over the whole batch. ``"local"``: what each rank has is returned as it is.
        compile
            Whether the step is traced (see :func:`gradtape.function`); true by default.
        timeout
            After how many seconds a rank that does not come is named; ``None``, the default, waits.
        bucket_bytes
            How many bytes of gradients a traced step sends at once, 25 MiB by default. More go in
            several messages, those of the last layers first, each on its way while the backward
            pass goes on.

        Returns
        -------
        A callable like ``step``: a :class:`DataParallel`. All ranks call it, in the same order.

        Raises
        ------
        TypeError
            If ``step`` is no function. When called: if the target of a gradient by variables is no
            number, gradients are asked by variables and tensors at once, a Jacobian is asked by
            variables, or something that is no number is returned.
        ValueError
            If an argument is none of these; when called, on every rank, if one has no examples.
        FloatingPointError
            When called, on every rank, if the loss of one of them is not finite. The optimizer has
            done no step then.
        DistributedError
            At the first call, on every rank, if ranks run different code.

        Notes
        -----
        Gradients by tensors, such as inputs, stay those of each rank's own examples. Random numbers
        drawn for a tensor of as many rows as the rank has examples are its rows of what a single
        process would draw for the whole batch. Batch normalization takes the mean and variance of
        each rank's examples unless ``synchronized=True``.

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
        """Run a block under a name, by which the watchdog tells of it.

        Parameters
        ----------
        name
            What the ranks do in it, for instance ``"step 3"``.
        timeout
            How many seconds a rank may wait for the others in one collective of the block; None,
            the default, for that of :func:`gradtape.distributed.init`.

        Raises
        ------
        DistributedError
            If there is a timeout, and the ranks have no connections but the engine's.
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
        ``"auto"``, the default: the engine that the environment variable ``GRADTAPE_ENGINE`` names,
        or else the one whose launcher started the process (``mpiexec`` and ``srun`` for
        ``"mpi"``), or else a group of one. Or an engine by name: ``"mpi"``, ``"jax"``, ``"alone"``,
        or that of a plugin.
    timeout
        How many seconds a rank may wait for the others in one collective. Then all are asked where
        they are, those that did not come are named, and the job ends. None, the default, is for
        ever; the first step takes longer than others, since it is traced. A group of one has nobody
        to wait for.
    options
        What the engine takes.

    Returns
    -------
    Group
        The ranks of the job. A second call returns the same group.

    Raises
    ------
    BackendUnavailable
        If the engine's library is missing, with what to install.
    DistributedError
        If the process has joined by another engine already.
    UnknownOp
        If no plugin provides the engine.
    ValueError
        If the timeout is not positive.

    Notes
    -----
    Where ranks are processes, an exception that nobody catches, in any thread of any rank, from now
    on ends the job; so does a rank that dies, or ends its script while others wait for it. All
    ranks print which one it was and why. At their end, scripts wait until all have ended.

    Examples
    --------
    >>> gt.distributed.init()  # started without a launcher
    <group of 1, rank 0, engine 'alone'>
    """
    chosen = os.environ.get(ENGINE, "auto") if engine == "auto" else engine
    if timeout is not None and not timeout > 0:
        raise ValueError(f"distributed.init: timeout is positive, or None; got {timeout!r}")
    if _group:
        held = _group[0]
        if timeout is not None:
            options = {"timeout": timeout, **options}
        if chosen not in ("auto", held.engine) or options:
            raise DistributedError(
                f"distributed.init: this process joined by the engine {held.engine!r} already; "
                "call gt.distributed.shutdown() first"
            )
        return held
    if chosen == "auto":
        engines = registry().collectives.values()
        chosen = next((found.name for found in engines if found.launched()), "alone")
    if chosen == "alone":
        if options:
            raise TypeError(f"distributed.init: a group of one takes no {', '.join(options)}")
        connect_to(None)
    else:
        tell_supervisor(JOINING)
        connect_to(registry().engine(chosen).connect(**options))
        tell_supervisor(JOINED)
    _group.append(Group(communicator()))
    try:
        _watch(communicator(), timeout)
    except DistributedError:
        shutdown()
        raise
    if TRAINING in os.environ and communicator().rank == 0:
        sys.stderr.write(f"gradtape train: {_told(communicator())}\n")
        sys.stderr.flush()
    return _group[0]


def _told(found: Communicator) -> str:
    """Return what the group is, for the top of a log."""
    line = hooks.line()
    hosts = ", ".join(dict.fromkeys(line.hosts)) if line else hostname()
    engine = registry().engine(found.engine)
    return "; ".join(
        [
            f"{found.size} ranks on {hosts}",
            f"engine {found.engine!r}, {', '.join(engine.diagnosis())}",
            f"gradtape {public('__version__')}, NumPy {np.__version__}, "
            f"Python {platform.python_version()}",
            f"threads of BLAS per rank: {os.environ.get('OMP_NUM_THREADS', 'as many as it likes')}",
        ]
    )


def _watch(found: Communicator, timeout: float | None) -> None:
    """Have what befalls one rank known on all of them, where each is a process."""
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
    """Refuse a timeout that nobody would keep.

    Raises
    ------
    DistributedError
        If there is one, and several ranks whose connections are the engine's alone.
    """
    if timeout is not None and found.size > 1:
        raise DistributedError(
            f"timeout={timeout:g}: the ranks of the engine {found.engine!r} have no connections "
            "beside it, by which one that is stuck could be found"
        )


def joined() -> bool:
    """Return whether :func:`init` was called, and :func:`shutdown` not since."""
    return bool(_group)


def group() -> Group:
    """Return the group that :func:`init` returned; a group of one if it was not called.

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
    """Leave the job: what follows is a group of one, and :func:`init` may be called again.

    It is collective; at a process's end it is not needed.

    Examples
    --------
    >>> gt.distributed.shutdown()
    """
    if _group:
        hooks.leave()
        hooks.forget()
        tell_supervisor(DONE)
        _group.pop().communicator.close()
    connect_to(None)


def abort(reason: str, code: int = 1) -> NoReturn:
    """End the processes of all ranks at once, without the wait in which one of them would hang.

    Parameters
    ----------
    reason
        What is printed, with this rank's number, on standard error.
    code
        The exit code, 1 by default.

    Raises
    ------
    ValueError
        If the code is 0, which says that all went well.
    """
    if not code:
        raise ValueError("distributed.abort: code 0 says that all went well; give another")
    found = communicator()
    line = hooks.line()
    if line is not None:
        line.fail(f"aborts: {reason}", None, code)
    print(
        f"gradtape: rank {found.rank} of {found.size} aborts: {reason}", file=sys.stderr, flush=True
    )
    found.abort(reason, code)
    raise SystemExit(code)
