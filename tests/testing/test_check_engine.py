"""``check_engine``: each mistake of an engine is found, by the check that is named after it."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.extend import Communicator, Engine
from gradtape.errors import BackendUnavailable
from gradtape.testing import check_engine


class Board:
    """What the ranks of a job in threads share."""

    def __init__(self, size: int) -> None:
        self.slots: list[Any] = [None] * size
        self.met = threading.Barrier(size)


class Ranks(Communicator):
    """A rank in a thread, which does everything right."""

    engine = "threads"

    def __init__(self, board: Board, rank: int, size: int) -> None:
        self.board, self.rank, self.size = board, rank, size

    def meet(self, value: Any) -> list[Any]:
        self.board.slots[self.rank] = value
        self.board.met.wait(3)
        found = list(self.board.slots)
        self.board.met.wait(3)
        return found

    def all_reduce(self, array: Any, reduction: str = "sum") -> Any:
        how = {"sum": np.sum, "min": np.min, "max": np.max}[reduction]
        return np.asarray(how(self.all_gather(array), axis=0)).astype(array.dtype)

    def all_gather(self, array: Any) -> Any:
        return np.stack(self.meet(array.copy()))

    def broadcast(self, array: Any, root: int = 0) -> Any:
        return self.meet(array.copy())[root].copy()

    def exchange(self, message: bytes) -> list[bytes]:
        return self.meet(message)

    def barrier(self) -> None:
        self.board.met.wait(3)


class Threads(Engine):
    name = "threads"

    def connect(self, **options: Any) -> Communicator:
        return Communicator()


def starting(cls: type[Ranks]) -> Callable[[int, int], Communicator]:
    """What connects ranks of a class in threads."""
    lock, boards = threading.Lock(), dict[int, Board]()

    def connect(rank: int, size: int) -> Communicator:
        with lock:
            board = boards.setdefault(size, Board(size))
        return cls(board, rank, size)

    return connect


def wrong(**methods: Any) -> type[Ranks]:
    return type("Wrong", (Ranks,), methods)


def overwriting(self: Any, array: Any) -> Any:
    found = Ranks.all_gather(self, array)
    if array.shape != (5,):
        return found
    self.memory = getattr(self, "memory", found)
    self.memory[...] = found
    return self.memory


def refilled(self: Any, array: Any) -> None:
    array[...] = self.all_reduce(array.astype("float16"))


def ordered(self: Any, array: Any, reduction: str = "sum") -> Any:
    """A sum that begins with this rank, so that its bits depend on the rank."""
    if reduction != "sum":
        return Ranks.all_reduce(self, array, reduction)
    rows = Ranks.all_gather(self, array)
    return np.asarray(np.sum(np.roll(rows, -self.rank, axis=0), axis=0, dtype=array.dtype))


def spoiling(self: Any, array: Any) -> Any:
    found = Ranks.all_gather(self, array)
    array[...] = 0
    return found


def twice_started(self: Any, array: Any) -> Any:
    self.last = array

    def wait() -> None:
        self.last[...] = self.all_reduce(self.last)

    return wait


def failing(self: Any, message: bytes) -> list[bytes]:
    found = Ranks.exchange(self, message)
    if len(message) > 7:
        raise OSError("the message is too long")
    return found


SUMS = "all_reduce, sum"
# what is wrong: (the class, the check that finds it, what it says)
WRONG: dict[str, tuple[type[Ranks], str, str]] = {
    "the first rank's sum": (
        wrong(all_reduce=lambda s, x, r="sum": s.broadcast(x)),
        SUMS,
        "values",
    ),
    "float64 sums": (
        wrong(all_reduce=lambda s, x, r="sum": np.sum(Ranks.all_gather(s, x), axis=0)),
        SUMS,
        "of the type float64, not a NumPy array",
    ),
    "sums by rank": (wrong(all_reduce=ordered), SUMS, "other bits"),
    "every reduction is a sum": (
        wrong(all_reduce=lambda s, x, r="sum": Ranks.all_reduce(s, x, "sum")),
        "all_reduce, min and max",
        r"all_reduce \(min\) of float64\[\] has other values",
    ),
    "unknown reductions": (
        wrong(
            all_reduce=lambda s, x, r="sum": Ranks.all_reduce(s, x, r if r != "median" else "sum")
        ),
        "all_reduce, unknown",
        "raises no error",
    ),
    "a flat gather": (
        wrong(all_gather=lambda s, x: np.concatenate(s.meet(np.atleast_1d(x)))),
        "all_gather",
        r"float64\[0\] instead of float64\[2, 0\]",
    ),
    "a gather in reverse": (
        wrong(all_gather=lambda s, x: Ranks.all_gather(s, x)[::-1]),
        "rank and size",
        r"the ranks have the numbers \[1, 0\]",
    ),
    "a gather that spoils": (wrong(all_gather=spoiling), "all_gather", "changes its argument"),
    "a memory for all": (
        wrong(all_gather=overwriting),
        "results keep their values",
        "a later all_gather overwrites",
    ),
    "the root left out": (
        wrong(broadcast=lambda s, x, root=0: Ranks.broadcast(s, x)),
        "broadcast",
        "broadcast from rank 1 of float64.* has other values",
    ),
    "lists": (
        wrong(broadcast=lambda s, x, root=0: s.meet(x)[root].tolist()),
        "broadcast",
        "type float, not",
    ),
    "other rows": (
        wrong(reduce_scatter=lambda s, x: s.all_reduce(x)[: x.shape[0] // s.size]),
        "reduce_scatter",
        "has other values",
    ),
    "half precision in place": (wrong(reduce_in_place=refilled), "reduce_in_place", "other values"),
    "only the last one started": (
        wrong(start_in_place=twice_started),
        "start_in_place",
        "other values",
    ),
    "nothing to wait by": (
        wrong(start_in_place=lambda s, x: s.reduce_in_place(x)),
        "start_in_place",
        "no function that waits",
    ),
    "texts without their end": (
        wrong(exchange=lambda s, m: [x.rstrip(b"\n") for x in s.meet(m)]),
        "exchange",
        "bytes returned",
    ),
    "long messages": (wrong(exchange=failing), "exchange", "OSError: the message is too long"),
    "no barrier": (wrong(barrier=lambda s: None), "barrier", "left a barrier before rank"),
    "codes not compared": (
        wrong(compare=lambda s, code, x: (True, None)),
        "compare",
        "different codes returned True",
    ),
    "codes as numbers of 32 bits": (
        wrong(
            compare=lambda s, code, x: (len({*s.meet(code % 2**31)}) == 1 and code < 2**31, None)
        ),
        "compare",
        "equal codes returned False",
    ),
}


def test_an_engine_that_is_right_passes() -> None:
    report = check_engine(Threads(), connect=starting(Ranks), show=False)
    assert (report.wrong, report.refused) == ({}, {})
    assert {"connect, 3 ranks", "barrier, 2 ranks", "close, 1 rank"} <= set(report.passed)
    assert (report.kind, report.name) == ("engine", "threads")


@pytest.mark.parametrize("mistake", WRONG)
def test_each_mistake_is_found(mistake: str) -> None:
    cls, check, says = WRONG[mistake]
    found = check_engine(Threads(), connect=starting(cls), sizes=[2], show=False).wrong
    if mistake == "sums by rank":
        found = check_engine(Threads(), connect=starting(cls), sizes=[3], show=False).wrong
    (why,) = (why for what, why in found.items() if what.startswith(f"{check}, "))
    assert re.search(says, why), why


def test_a_rank_that_never_returns_ends_the_check() -> None:
    cls = wrong(all_gather=lambda s, x: time.sleep(60) if s.rank else np.stack([x, x]))
    report = check_engine(Threads(), connect=starting(cls), sizes=[2, 3], timeout=0.2, show=False)
    assert list(report.wrong) == ["rank and size, 2 ranks"]
    assert "rank 1: it did not return within 0.2 seconds" in report.wrong["rank and size, 2 ranks"]


def test_ranks_with_other_numbers_are_told() -> None:
    report = check_engine(Threads(), connect=lambda *numbers: Communicator(), show=False)
    assert "connect(0, 2) returned rank 0 of 1" in report.wrong["connect, 2 ranks"]
    assert "connect, 3 ranks" not in report.wrong


def test_the_record_is_checked() -> None:
    class Odd(Threads):
        def launched(self) -> Any:
            return "yes"

    assert "launched() returns 'yes'" in check_engine(Odd(), show=False).wrong["record"]

    class Told(Threads):
        def diagnosis(self) -> Any:
            return "version 1"

    assert "not a list of texts" in check_engine(Told(), show=False).wrong["record"]


def test_an_engine_is_found_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    class Plugin:
        @staticmethod
        @gt.hookimpl
        def gradtape_collectives() -> list[Engine]:
            return [Threads()]

    gt.register_plugin(Plugin(), "threads")
    try:
        report = check_engine("threads")
    finally:
        gt.unregister_plugin("threads")
    assert capsys.readouterr().out.startswith("engine 'threads': ")
    assert "broadcast, 1 rank" in report.passed
    assert not report.wrong
    with pytest.raises(LookupError, match="no plugin provides the engine 'thread'"):
        check_engine("thread")


def test_an_engine_that_cannot_be_used_says_why() -> None:
    class Missing(Threads):
        def unavailable(self) -> str:
            return "engine 'threads': pip install threads"

    with pytest.raises(BackendUnavailable, match="pip install threads"):
        check_engine(Missing())
