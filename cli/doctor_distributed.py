"""``gradtape doctor --distributed``: whether several ranks can train here, and the cost."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..core.errors import BackendUnavailable, DistributedError
from ..core.extend import communicator, cores, place, quota, ranks_in_words, registry
from ..distributed import init
from ..distributed.faults.lifeline import hostname
from ..distributed.trying import gathered, timed, tried
from ..plugins.numpy.backend import pools
from .doctor import filled
from .plugins import unavailable

#: The families of MPI, and words in the version texts of their launchers and libraries.
FAMILIES = {
    "Open MPI": ("openrte", "open mpi", "prrte", "prterun"),
    "Intel MPI": ("intel",),
    "MPICH": ("hydra", "mpich"),
}


def launcher_report(as_json: bool, measure: bool = True) -> tuple[str, int]:
    """Return the text for rank 0 to print, and the exit code; collective under a launcher.

    Parameters
    ----------
    as_json
        Whether the text is JSON.
    measure
        Whether to time collectives, which takes about a second.
    """
    found = diagnosis(measure)
    here = place()
    if here is not None and here.rank:
        return "", 1 if found["problems"] else 0
    text = json.dumps(found, indent=2) if as_json else _in_words(found)
    return text, 1 if found["problems"] else 0


def diagnosis(measure: bool = True) -> dict[str, Any]:
    """Return the engines, the launcher, the group and problems, as a tree of JSON values.

    Parameters
    ----------
    measure
        Whether to time collectives.
    """
    here = place()
    found: dict[str, Any] = {
        "host": hostname(),
        "engines": _engines(),
        "launcher": _launcher() if "mpi" in registry().launchers else None,
        "started": here._asdict() if here is not None else None,
        "group": None,
        "problems": [],
        "advice": [],
    }
    if here is not None and here.size > 1:
        try:
            found["group"] = _group(measure)
        except (BackendUnavailable, DistributedError) as error:
            found["problems"].append(str(error))
    _judge(found)
    return found


# -- findings --------------------------------------------------------------------------------------


def _engines() -> dict[str, Any]:
    told = {}
    for name, engine in registry().collectives.items():
        reason = unavailable(engine)
        told[name] = {"unavailable": reason, "told": [] if reason else [*engine.diagnosis()]}
    return told


def _launcher() -> dict[str, Any] | None:
    """Return the mpiexec on PATH, or in Python's folder, and its family."""
    beside = str(Path(sys.executable).parent)
    path = shutil.which("mpiexec") or shutil.which("mpiexec", path=beside)
    if path is None:
        return None
    try:
        run = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError) as error:
        return {"path": path, "family": None, "version": f"unknown: {error}"}
    output = run.stdout or run.stderr
    number = re.search(r"\d+\.\d+[\w.]*", output)
    return {"path": path, "family": _family(output), "version": number and number[0]}


def _family(output: str) -> str | None:
    low = output.lower()
    return next((name for name, signs in FAMILIES.items() if any(x in low for x in signs)), None)


def _group(measure: bool) -> dict[str, Any]:
    """Join the job, test the collectives, and describe each rank."""
    group = init()
    ranks = communicator()
    mine = {"host": hostname(), "threads": _threads(), "cores": cores(), "quota": quota()}
    told: dict[str, Any] = {
        "engine": group.engine,
        "size": group.size,
        "ranks": gathered(ranks, mine),
        "wrong": tried(ranks),
    }
    if measure:
        told["times"] = timed(ranks)
    return told


def _threads() -> int | None:
    try:
        return max((x["num_threads"] or 0 for x in pools()), default=None)
    except BackendUnavailable:
        named = os.environ.get("OMP_NUM_THREADS", "")
        return int(named) if named.isdecimal() else None


def _judge(found: dict[str, Any]) -> None:
    """Add problems and advice."""
    problems, advice = found["problems"], found["advice"]
    for name, engine in found["engines"].items():
        if engine["unavailable"]:
            reason = engine["unavailable"].removeprefix(f"engine {name!r}: ")
            advice.append(f"The engine {name!r} cannot be used: {reason}.")
    launcher, mpi = found["launcher"], found["engines"].get("mpi")
    library = _family(" ".join(mpi["told"])) if mpi else None
    if launcher is None and mpi:
        advice.append(
            "No mpiexec was found: pip install mpich, or load the module of the cluster's MPI."
        )
    elif launcher and library and launcher["family"] not in (None, library):
        problems.append(
            f"{launcher['path']} belongs to {launcher['family']}, and mpi4py's library to "
            f"{library}: each process would be a job of its own. Put the launcher of that library "
            "first on PATH, or install mpi4py for this one (pip install --no-binary=mpi4py mpi4py)."
        )
    group = found["group"]
    if group is None:
        if not problems and launcher and not (mpi and mpi["unavailable"]):
            advice.append(f"Test it: {launcher['path']} -n 2 gradtape doctor --distributed")
            advice.append(
                "Train: mpiexec -n 2 gradtape train SCRIPT; with SLURM, use srun instead."
            )
        return
    problems += [f"{name}: {x}" for name, x in group["wrong"].items() if x]
    for host in dict.fromkeys(x["host"] for x in group["ranks"]):
        there = [rank for rank, x in enumerate(group["ranks"]) if x["host"] == host]
        threads = [group["ranks"][rank]["threads"] for rank in there]
        cores = _cores([group["ranks"][rank] for rank in there])
        if len(there) > cores:
            advice.append(f"{host} has {cores:g} cores for {len(there)} ranks: they take turns.")
        elif None not in threads and sum(threads) > cores:
            advice.append(
                f"{ranks_in_words(there)} on {host} start {sum(threads)} BLAS threads for "
                f"{cores:g} cores, so they wait for each other. `gradtape train` gives each rank "
                "its share; without it, set OMP_NUM_THREADS."
            )


def _cores(ranks: list[dict[str, Any]]) -> float:
    """Return the number of cores that ranks of one host have together."""
    together = {core for x in ranks for core in x["cores"]}
    return min([len(together), *(x["quota"] for x in ranks if x["quota"] is not None)])


# -- as text ---------------------------------------------------------------------------------------


def _in_words(found: dict[str, Any]) -> str:
    lines = [("host", found["host"])]
    for name, engine in found["engines"].items():
        state = engine["unavailable"] or ", ".join(["ready", *engine["told"]])
        lines.append(("engines", f"{name}: {state.removeprefix(f'engine {name!r}: ')}"))
    launcher = found["launcher"]
    lines.append(("launcher", _launcher_text(launcher) if launcher else "-"))
    if found["started"] is None:
        lines.append(("ranks", "1: no launcher started this process"))
    group = found["group"]
    if group is not None:
        lines.append(("ranks", f"{group['size']} with the engine {group['engine']!r}"))
        for host in dict.fromkeys(x["host"] for x in group["ranks"]):
            there = [rank for rank, x in enumerate(group["ranks"]) if x["host"] == host]
            ranks = [group["ranks"][rank] for rank in there]
            threads = sorted({str(x["threads"] or "?") for x in ranks})
            told = f"{ranks_in_words(there)} on {host}: {_cores(ranks):g} cores for all"
            lines.append(("ranks", f"{told}, threads of each: {', '.join(threads)}"))
        lines += [
            ("collectives", f"{name}: {x or 'correct'}") for name, x in group["wrong"].items()
        ]
        for name, records in group.get("times", {}).items():
            lines += [("times", f"{name:11} {_time(x)}") for x in records]
    words, last = [], None
    for head, text in lines:
        words.append(filled(f"{'' if head == last else head:13}{text}", " " * 13))
        last = head
    advice = [*(f"PROBLEM: {x}" for x in found["problems"]), *found["advice"]]
    return "\n".join([*words, "", *(filled(f"* {x}", "  ") for x in advice)]).rstrip()


def _launcher_text(launcher: dict[str, Any]) -> str:
    return f"{launcher['family'] or 'unknown'} {launcher['version'] or ''}, {launcher['path']}"


def _time(record: dict[str, float]) -> str:
    if not record["bytes"]:
        return f"{'':>12} {record['us']:10,.1f} µs"
    return f"{record['bytes']:10,.0f} B {record['us']:10,.1f} µs {record['MB_per_s']:10,.1f} MB/s"
