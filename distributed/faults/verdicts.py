"""The messages that say why a job ends, from the reports of its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core.extend import ranks_in_words

#: A rank's report of a failure: ``summary``, ``text`` (its traceback), ``code``.
Failure = Mapping[str, Any]


def called(rank: int, hosts: Sequence[str]) -> str:
    """Return the name of a rank, with its host."""
    return f"rank {rank} on {hosts[rank]}"


def together(said: Mapping[int, str]) -> str:
    """Join the texts of ranks, with ranks of equal text together: ``ranks 0, 2 a; rank 1 b``."""
    by_text: dict[str, list[int]] = {}
    for rank, text in sorted(said.items()):
        by_text.setdefault(text, []).append(rank)
    return "; ".join(f"{ranks_in_words(ranks)} {text}" for text, ranks in by_text.items())


def failed(failures: Mapping[int, Failure]) -> str:
    """Return the ranks that failed, and their errors."""
    return together({rank: str(x["summary"]) for rank, x in failures.items()})


def gone(pids: Mapping[int, int], hosts: Sequence[str]) -> str:
    """Return the ranks whose processes ended without a report."""
    if len(pids) > 1:
        places = ", ".join(dict.fromkeys(hosts[rank] for rank in pids))
        return f"{ranks_in_words(list(pids))} on {places} are gone: their processes {_GONE}"
    ((rank, pid),) = pids.items()
    return f"{called(rank, hosts)} is gone: its process {pid} {_GONE}"


_GONE = (
    "ended without a report: killed (by the system if memory ran out), crashed in native code, or "
    "ended by os._exit"
)


def left(rank: int, count: int, code: Any, waiting: Mapping[int, str], hosts: Sequence[str]) -> str:
    """Return the message for a rank whose script ended while others need it."""
    ended = "ended its script" if not code else f"ended its script with exit code {code}"
    told = f"{called(rank, hosts)} {ended} after {count} collectives"
    return f"{told}, and others wait for it: {together(waiting)}" if waiting else told


def apart(waits: Mapping[int, Failure]) -> str | None:
    """Return the message for ranks that wait in different collectives, which never end.

    Parameters
    ----------
    waits
        What each rank waits in: ``count``, ``doing`` and ``step``, as for :func:`stuck`.

    Returns
    -------
    str or None
        None if ranks whose collectives have the same number wait in the same one.
    """
    for number in sorted({x["count"] for x in waits.values()}):
        there = {rank: x for rank, x in waits.items() if x["count"] == number}
        if len({x["doing"] for x in there.values()}) > 1:
            of = {rank: f" of {x['step']}" if x["step"] else "" for rank, x in there.items()}
            told = together({rank: f"called {x['doing']}{of[rank]}" for rank, x in there.items()})
            return f"ranks disagree in collective number {number}: {told}"
    return None


def stuck(
    states: Mapping[int, Mapping[str, Any] | None], seconds: float, hosts: Sequence[str]
) -> tuple[str, list[int]] | None:
    """Return which ranks are late for the collective that others wait in; ``None`` if none is.

    Parameters
    ----------
    states
        Each rank's answer to the question where it is: ``count`` (of its collectives), ``doing``
        (the collective it is in, or None), ``step``, ``at`` (the line of its code) and ``left``.
        None for a rank that did not answer.
    seconds
        The longest wait allowed.
    hosts
        The ranks' hosts.

    Returns
    -------
    The message, and the ranks that are late.
    """
    answers = {rank: x for rank, x in states.items() if x is not None}
    most = max((x["count"] for x in answers.values()), default=0)
    waiting = [r for r, x in answers.items() if x["count"] == most and x["doing"]]
    late = [r for r in states if r not in answers or answers[r]["count"] < most]
    if not waiting or (not late and len(waiting) < len(states)):
        return None
    told = apart({rank: answers[rank] for rank in waiting})
    if told is not None:
        return told, []
    first = answers[waiting[0]]
    what = f"for more than {seconds:g} s in {first['doing']}, collective number {most}"
    if first["step"] is not None:
        what += f", of {first['step']}"
    if not late:
        return f"all ranks wait {what}: check the network", []
    those = [_late(rank, answers.get(rank), hosts) for rank in late]
    wait = "waits" if len(waiting) == 1 else "wait"
    return f"{'; '.join(those)}, while {ranks_in_words(waiting)} {wait} {what}", late


def _late(rank: int, state: Mapping[str, Any] | None, hosts: Sequence[str]) -> str:
    who = called(rank, hosts)
    if state is None:
        return (
            f"{who} is stuck and does not answer: its process is stopped, or runs native code that "
            "holds Python's lock"
        )
    if state["left"]:
        return f"{who} ended its script after {state['count']} collectives"
    where = f"in {state['doing']}, its" if state["doing"] else f"at {state['at']}, after"
    return f"{who} is stuck {where} collective number {state['count']}"
