"""``check_engine``: holds an engine's communicators to the contract of the collectives."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.errors import BackendUnavailable
from ..core.extend import Communicator, Engine, describe, registry
from .report import PASSED, WRONG, Findings, Report, reason_of

Array = NDArray[Any]
Must = Callable[[object, str], bool]
Check = Callable[[Communicator, Must], None]

SHAPES: tuple[tuple[int, ...], ...] = ((), (0,), (3,), (2, 3), (2, 0), (70_001,))
DTYPES = ("float64", "float32", "float16", "int64", "int32", "complex128")
#: The relative tolerances of sums, whose order is the engine's.
TOLERANCES = {"float16": 1e-2, "float32": 1e-5}
#: How long a rank waits in a barrier for a late one, in seconds.
LATE = 0.2


def check_engine(
    engine: str | Engine,
    *,
    connect: Callable[[int, int], Communicator] | None = None,
    sizes: Iterable[int] = (1, 2, 3),
    timeout: float = 60.0,
    show: bool = True,
) -> Report:
    """Run every collective of an engine, and compare its results with what they must be.

    Results must have the right values, shapes and dtypes, the same bits on each rank, memory of
    their own, and must leave arguments unchanged. Arrays are empty, without axes and large;
    messages of :meth:`Communicator.exchange` have any length.

    The ranks are threads of this process if ``connect`` makes them. Otherwise they are those of the
    job that this process belongs to: call this function in each of its processes, under the
    engine's launcher. A process that no launcher started is a group of one.

    Parameters
    ----------
    engine
        The engine, or the name of one that a plugin provides.
    connect
        ``connect(rank, size)`` returns the communicator of one of ``size`` ranks. It is called in a
        thread for each rank, at the same time. By default ``engine.connect()`` joins the job.
    sizes
        The numbers of ranks to try with ``connect``; 1, 2 and 3 by default.
    timeout
        How many seconds the threads of all ranks may take for one check; 60 by default.
    show
        Whether to print the report (on rank 0).

    Returns
    -------
    Report
        The checks that passed, and those with wrong results. In a job, the same on each rank.

    Raises
    ------
    LookupError
        If no plugin provides the engine.
    BackendUnavailable
        If the engine cannot be used here.

    Examples
    --------
    >>> from gradtape.plugin import Communicator, Engine
    >>> class Alone(Engine):
    ...     name = "alone"
    ...     def connect(self, **options):
    ...         return Communicator()
    >>> gt.testing.check_engine(Alone(), show=False).wrong
    {}
    """
    if isinstance(engine, str):
        known = registry().collectives
        if engine not in known:
            raise LookupError(
                f"check_engine: no plugin provides the engine {engine!r}; there are: "
                f"{', '.join(sorted(known)) or 'none'}"
            )
        engine = known[engine]
    reason = engine.unavailable()
    if isinstance(reason, str) and reason:
        raise BackendUnavailable(reason)
    findings = Findings("engine", engine.name)
    findings.run("record", lambda: _record(engine))
    if connect is None:
        rank = _in_job(engine, findings)
        return findings.report(show and rank == 0)
    for size in sizes:
        if not _in_threads(connect, size, timeout, findings):
            break
    return findings.report(show)


def _record(engine: Engine) -> None:
    """Check the methods that connect nothing."""
    launched, lines = engine.launched(), engine.diagnosis()
    wrong = [
        (not (isinstance(engine.name, str) and engine.name), f"name is {engine.name!r}, no text"),
        (engine.unavailable() is not None, "unavailable() returns neither None nor a reason"),
        (not isinstance(launched, bool), f"launched() returns {launched!r}, not a bool"),
        (not _are_texts(lines), f"diagnosis() returns {lines!r}, not a list of texts"),
    ]
    for is_wrong, problem in wrong:
        if is_wrong:
            raise AssertionError(problem)


def _are_texts(lines: Any) -> bool:
    if isinstance(lines, str) or not isinstance(lines, Sequence):
        return False
    return all(isinstance(line, str) for line in lines)


# -- how the ranks run -----------------------------------------------------------------------------


def _in_job(engine: Engine, findings: Findings) -> int:
    """Run the checks as one rank of a job; return its number."""
    found = engine.connect()
    told: dict[str, str] = {}
    for what, check in CHECKS.items():
        try:
            _run(check, found)
        except Exception as error:
            told[what] = f"rank {found.rank}: {reason_of(error)}"
    everyone = [json.loads(x) for x in found.exchange(json.dumps(told).encode())]
    for what in CHECKS:
        reasons = [other[what] for other in everyone if what in other]
        findings.note(*_row(what, found.size, reasons))
    rank = found.rank
    findings.run(f"close, {_ranks(found.size)}", found.close)
    return rank


def _in_threads(
    connect: Callable[[int, int], Communicator], size: int, timeout: float, findings: Findings
) -> bool:
    """Run the checks with a thread for each rank; return whether all ranks came to the end."""
    ranks = [_Rank(rank, size) for rank in range(size)]
    checks: dict[str, Callable[[_Rank], None]] = {
        "connect": lambda rank: rank.join(connect),
        **{what: _of_rank(check) for what, check in CHECKS.items()},
        "close": lambda rank: rank.found.close(),
    }
    for what, check in checks.items():
        for rank in ranks:
            rank.todo.put(check)
        end = time.monotonic() + timeout
        reasons, hangs = [], False
        for rank in ranks:
            try:
                reason = rank.done.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                hangs, reason = True, f"it did not return within {timeout:g} seconds"
            if reason:
                reasons.append(f"rank {rank.number}: {reason}")
        findings.note(*_row(what, size, reasons))
        if hangs or (reasons and what == "connect"):
            return False
    for rank in ranks:
        rank.todo.put(None)
    return True


class _Rank:
    """A rank in a thread, which runs checks until it receives None."""

    found: Communicator

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size = number, size
        self.todo: queue.Queue[Callable[[_Rank], None] | None] = queue.Queue()
        self.done: queue.Queue[str] = queue.Queue()
        # a rank that waits forever must not keep the process from ending
        threading.Thread(target=self._work, daemon=True).start()

    def join(self, connect: Callable[[int, int], Communicator]) -> None:
        """Connect, and check the numbers."""
        self.found = connect(self.number, self.size)
        numbers = self.found.rank, self.found.size
        if numbers != (self.number, self.size):
            raise AssertionError(
                f"connect({self.number}, {self.size}) returned rank {numbers[0]} of {numbers[1]}"
            )

    def _work(self) -> None:
        while (check := self.todo.get()) is not None:
            try:
                check(self)
            except BaseException as error:
                self.done.put(reason_of(error))
            else:
                self.done.put("")


def _of_rank(check: Check) -> Callable[[_Rank], None]:
    return lambda rank: _run(check, rank.found)


def _run(check: Check, found: Communicator) -> None:
    """Run a check to its end, since other ranks wait for it, and raise for its first problem."""
    problems: list[str] = []

    def must(holds: object, problem: str) -> bool:
        if not holds:
            problems.append(problem)
        return bool(holds)

    check(found, must)
    if problems:
        raise AssertionError(problems[0])


def _ranks(size: int) -> str:
    return "1 rank" if size == 1 else f"{size} ranks"


def _row(what: str, size: int, reasons: list[str]) -> tuple[str, str, str]:
    return f"{what}, {_ranks(size)}", WRONG if reasons else PASSED, "; ".join(reasons)


# -- the checks ------------------------------------------------------------------------------------


def _numbers(found: Communicator, must: Must) -> None:
    must(type(found.rank) is int and type(found.size) is int, "rank and size are not integers")
    must(0 <= found.rank < found.size, f"rank {found.rank} of {found.size}")
    must(isinstance(found.engine, str) and found.engine, "engine is not the engine's name")
    ranks = np.asarray(found.all_gather(np.array(found.rank, np.int64))).tolist()
    must(ranks == list(range(found.size)), f"the ranks have the numbers {ranks}")


def _rank_array(rank: int, dtype: str, shape: tuple[int, ...]) -> Array:
    """Return the array of a rank, which each rank can make."""
    random = np.random.default_rng([rank, len(shape)])
    kind = np.dtype(dtype).kind
    if kind in "iub":
        return np.asarray(random.integers(0, 2 if kind == "b" else 50, shape)).astype(dtype)
    numbers = np.asarray(random.normal(size=shape))
    return np.asarray(numbers + 1j * numbers[::-1] if kind == "c" and shape else numbers, dtype)


def _arrays(found: Communicator, dtypes: Sequence[str]) -> Iterator[tuple[str, list[Array]]]:
    """Give the arrays of all ranks, for each dtype and shape, and what to call them."""
    for dtype in dtypes:
        for shape in SHAPES:
            arrays = [_rank_array(rank, dtype, shape) for rank in range(found.size)]
            yield describe(shape, np.dtype(dtype)), arrays


def _total(arrays: Sequence[Array]) -> Array:
    """Return the sum of arrays, in their dtype."""
    wide = np.stack(arrays)
    total = wide.astype(np.float64) if wide.dtype == "float16" else wide
    return np.asarray(total.sum(axis=0)).astype(wide.dtype)


def _same(must: Must, what: str, got: Any, want: Array, exact: bool = True) -> None:
    """Note whether a result is a NumPy array like the one expected."""
    if not must(
        isinstance(got, np.ndarray),
        f"{what} is of the type {type(got).__name__}, not a NumPy array",
    ):
        return
    is_, wanted = describe(got.shape, got.dtype), describe(want.shape, want.dtype)
    if not must(is_ == wanted, f"{what} is {is_} instead of {wanted}"):
        return
    tolerance = 0.0 if exact or want.dtype.kind in "iub" else TOLERANCES.get(want.dtype.name, 1e-12)
    same = np.allclose(got, want, tolerance, tolerance) if tolerance else np.array_equal(got, want)
    must(same, f"{what} has other values")


def _alike(found: Communicator, must: Must, what: str, got: Any) -> None:
    """Note whether all ranks have the same bits."""
    everyone = found.exchange(np.asarray(got).tobytes())
    must(len(set(everyone)) == 1, f"{what} has other bits on other ranks")


def _sums(found: Communicator, must: Must) -> None:
    for what, arrays in _arrays(found, DTYPES):
        own = arrays[found.rank].copy()
        got = found.all_reduce(own, "sum")
        _same(must, f"all_reduce of {what}", got, _total(arrays), exact=False)
        must(np.array_equal(own, arrays[found.rank]), f"all_reduce changes its argument, {what}")
        _alike(found, must, f"all_reduce of {what}", got)


def _extremes(found: Communicator, must: Must) -> None:
    for reduction, how in (("min", np.min), ("max", np.max)):
        for what, arrays in _arrays(found, [name for name in DTYPES if name != "complex128"]):
            got = found.all_reduce(arrays[found.rank].copy(), reduction)
            want = np.asarray(how(np.stack(arrays), axis=0))
            _same(must, f"all_reduce ({reduction}) of {what}", got, want)


def _unknown(found: Communicator, must: Must) -> None:
    """Note whether a reduction that does not exist is refused."""
    if found.size > 1:
        try:
            found.all_reduce(np.ones(2), "median")
        except Exception:
            return
        must(False, 'all_reduce(array, "median") raises no error')


def _results_are_kept(found: Communicator, must: Must) -> None:
    """Note whether a result keeps its values when others follow."""
    names = ("all_reduce", "all_gather", "broadcast")
    first, other = np.full(5, 1.0 + found.rank), np.full(5, 100.0)
    kept = [getattr(found, name)(first) for name in names]
    before = [np.array(x) for x in kept]
    for _ in range(3):
        for name in names:
            getattr(found, name)(other)
    for name, x, y in zip(names, kept, before, strict=True):
        must(np.array_equal(x, y), f"a later {name} overwrites the result of an earlier one")


def _in_place(found: Communicator, must: Must) -> None:
    for what, arrays in _arrays(found, ("float64", "float32")):
        array = arrays[found.rank].copy()
        found.reduce_in_place(array)
        _same(must, f"reduce_in_place of {what}", array, _total(arrays), exact=False)
        _alike(found, must, f"reduce_in_place of {what}", array)


def _started(found: Communicator, must: Must) -> None:
    """Note whether two sums that run at the same time are right."""
    for what, arrays in _arrays(found, ("float64", "float32")):
        one = arrays[found.rank].copy()
        other = np.asarray(2 * one)
        waits = [found.start_in_place(one), found.start_in_place(other)]
        for wait in waits:
            if must(callable(wait), "start_in_place returned no function that waits"):
                wait()
        total = _total(arrays)
        _same(must, f"start_in_place of {what}", one, total, exact=False)
        _same(must, f"a second start_in_place of {what}", other, 2 * total, exact=False)


def _gathered(found: Communicator, must: Must) -> None:
    for what, arrays in _arrays(found, (*DTYPES, "bool", "uint8")):
        own = arrays[found.rank].copy()
        _same(must, f"all_gather of {what}", found.all_gather(own), np.stack(arrays))
        must(np.array_equal(own, arrays[found.rank]), f"all_gather changes its argument, {what}")


def _broadcasts(found: Communicator, must: Must) -> None:
    for root in range(found.size):
        for what, arrays in _arrays(found, (*DTYPES, "bool", "uint8")):
            own = arrays[found.rank].copy()
            got = found.broadcast(own, root)
            _same(must, f"broadcast from rank {root} of {what}", got, arrays[root])
            must(np.array_equal(own, arrays[found.rank]), f"broadcast changes its argument, {what}")


def _scattered(found: Communicator, must: Must) -> None:
    for dtype in DTYPES:
        for rows in (0, 1, 4):
            shape, place = (rows * found.size, 2), slice(rows * found.rank, rows * (found.rank + 1))
            arrays = [_rank_array(rank, dtype, shape) for rank in range(found.size)]
            got = found.reduce_scatter(arrays[found.rank].copy())
            what = f"reduce_scatter of {describe(shape, np.dtype(dtype))}"
            _same(must, what, got, _total(arrays)[place], exact=False)


def _messages(found: Communicator, must: Must) -> None:
    """Note whether messages arrive: of equal and of different lengths, none and many bytes."""
    for length in (lambda i: 0, lambda i: i, lambda i: 1 if i % 2 else 100_000, lambda i: 7):
        every = [(bytes([i, 0, 255, 10]) * length(i))[: length(i)] for i in range(found.size)]
        got = found.exchange(every[found.rank])
        if must(isinstance(got, list), f"exchange returned {type(got).__name__}, not a list"):
            must(
                all(type(x) is bytes for x in got), "exchange returned a list of others than bytes"
            )
            sizes = [len(x) for x in every]
            must(got == every, f"exchange of {sizes} bytes returned {[len(x) for x in got]} bytes")


def _waits(found: Communicator, must: Must) -> None:
    """Note whether a rank leaves a barrier before the last one enters it."""
    for late in range(found.size):
        found.exchange(b"")
        start = time.monotonic()
        if found.rank == late:
            time.sleep(LATE)
        found.barrier()
        waited = time.monotonic() - start
        must(waited > LATE / 2, f"it left a barrier before rank {late} entered it")


def _compares(found: Communicator, must: Must) -> None:
    for what, arrays in _arrays(found, ("float64", "int32")):
        same, rows = found.compare(2**63 - 1, arrays[found.rank])
        must(same, f"compare of equal codes returned {same!r}, {what}")
        if rows is not None:
            _same(must, f"the arrays that compare returned, of {what}", rows, np.stack(arrays))
        if found.size > 1:
            for code in (found.rank, int(found.rank == found.size - 1)):
                same, _ = found.compare(code, arrays[found.rank])
                must(not same, f"compare of different codes returned {same!r}, {what}")


def _in_a_row(found: Communicator, must: Must) -> None:
    """Note whether collectives of different kinds take each other's messages."""
    size = found.size
    for i in range(40):
        mine = np.array([found.rank + i * 1.0])
        got = (
            np.asarray(found.all_reduce(mine)).tolist(),
            found.exchange(b"%d" % i),
            np.asarray(found.broadcast(mine, i % size)).tolist(),
            np.asarray(found.all_gather(mine)).tolist(),
        )
        rows = [[rank + i * 1.0] for rank in range(size)]
        want = [sum(row[0] for row in rows)], [b"%d" % i] * size, rows[i % size], rows
        must(got == want, f"in round {i}, the results are {got} instead of {want}")


CHECKS: dict[str, Check] = {
    "rank and size": _numbers,
    "exchange": _messages,
    "all_reduce, sum": _sums,
    "all_reduce, min and max": _extremes,
    "all_reduce, unknown": _unknown,
    "reduce_in_place": _in_place,
    "start_in_place": _started,
    "all_gather": _gathered,
    "broadcast": _broadcasts,
    "reduce_scatter": _scattered,
    "barrier": _waits,
    "compare": _compares,
    "results keep their values": _results_are_kept,
    "many in a row": _in_a_row,
}
