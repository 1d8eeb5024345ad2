"""gradtape on a GPU: is it right there, and how fast, beside PyTorch and JAX, in one report.

``python docs/benchmarks/gpu.py --out report.md`` is the first thing to run on a machine with an
NVIDIA GPU. It runs ``gradtape doctor``, the tests marked ``gpu``, ``check_backend("cupy")`` and the
digits demo, counts copies between host and device, and then lets contenders take turns, each in a
process of its own, after their losses were compared. What is missing, or does not fit into the
time, is said in words. ``--device cpu`` runs the same code on the processor, at small sizes.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import gc
import importlib.util
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import networks
import numpy as np
from contest import Missing, Outcome, Process, Timer, channel, take_turns
from gpu_checks import CHECKS, checked
from timing import as_markdown, resident

#: Contenders: the library, and how it runs the step.
CONTENDERS = {
    "gradtape eager": ("gradtape", "eager"),
    "gradtape compiled": ("gradtape", "kernels"),
    "gradtape CUDA graph": ("gradtape", "cuda_graphs"),
    "PyTorch eager": ("torch", "eager"),
    "PyTorch compiled": ("torch", "default"),
    "PyTorch CUDA graph": ("torch", "reduce-overhead"),
    "JAX jit": ("jax", ""),
}
INSTALL = {
    "gradtape": 'pip install "gradtape[cupy]"',
    "torch": "pip install torch",
    "jax": 'pip install "jax[cuda12]" (or 13)',
}
HALVES = {"float32": None, "float16": "float16"}
#: How far the losses of the first steps may differ from the first contender's, relatively. Adam
#: adds epsilon elsewhere in PyTorch, which is seen where gradients are small.
TOLERANCES = {"float32": 3e-2, "float16": 1e-1}
#: How many steps are compared, and how many are asked for at once to see what the asking takes.
COMPARED, ASKED = 4, 30
#: For how many seconds a contender may import, or compile a row.
PATIENCE = 150.0


# -- a contender's process -------------------------------------------------------------------------


def prepare(name: str, device: str) -> None:
    """Import a contender's library; raise :class:`Missing` if it cannot run here."""
    library, how = CONTENDERS[name]
    if importlib.util.find_spec(library) is None:
        raise Missing(f"{library} is not installed; {INSTALL[library]}")
    if device == "cpu" and "CUDA graph" in name:
        raise Missing("a CUDA graph needs a GPU")
    if library == "gradtape":
        import gradtape as gt

        reason = gt.registry().backend("cupy").unavailable() if device == "gpu" else None
        if reason is None and how != "eager" and how not in gt.registry().executors:
            reason = f"no plugin provides the executor {how!r}"
    elif library == "torch":
        import torch

        here = device == "cpu" or torch.cuda.is_available()
        reason = None if here else f"PyTorch {torch.__version__} finds no GPU"
    else:
        import jax

        here = device == "cpu" or jax.default_backend() == "gpu"
        reason = None if here else f"JAX finds no GPU; {INSTALL['jax']}"
    if reason is not None:
        raise Missing(reason)


class Memory:
    """The peak of a contender's memory in bytes: the device's, or this process's."""

    def __init__(self, library: str, device: str) -> None:
        self.library, self.device = library, device
        self.before = resident()
        if device == "cpu":
            resident(reset=True)
        elif library == "gradtape":
            self._pool().free_all_blocks()
        elif library == "torch":
            import torch

            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peak(self) -> int:
        """Return the peak since it was made; JAX's is that of the process."""
        if self.device == "cpu":
            return resident(peak=True) - self.before
        if self.library == "gradtape":
            return int(self._pool().total_bytes())
        if self.library == "torch":
            import torch

            return int(torch.cuda.max_memory_allocated())
        import jax

        return int((jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0))

    def _pool(self) -> Any:
        import cupy

        return cupy.get_default_memory_pool()


def begin(name: str, device: str, row: str, dtype: str, settle: float) -> tuple[Timer, Any]:
    """Make a row's step, run it until it has settled, and return its timer and what it cost."""
    library, how = CONTENDERS[name]
    gc.collect()
    memory = Memory(library, device)
    start = time.perf_counter()
    task = networks.TASKS[row][device == "cpu"]
    made = networks.LIBRARIES[library](task, HALVES[dtype], device, how)
    losses = [float(made.step())]
    first = time.perf_counter() - start
    losses += [float(made.step()) for _ in range(COMPARED - 1)]
    made.finish()
    # to wait for each step by itself would count against those that are asked for quickly
    timer = Timer(made.step, finish=made.finish, least=0.002 if device == "cpu" else 0.02)
    timer.settle(settle, 20.0)
    return timer, {"losses": losses, "first": first, "peak": memory.peak() / 2**20}


def asking(timer: Timer) -> float:
    """Return how many seconds it takes to ask for a step, of many before any is waited for."""
    start = time.perf_counter()
    for _ in range(ASKED):
        timer.run()
    seconds = (time.perf_counter() - start) / ASKED
    if timer.finish is not None:
        timer.finish()
    return seconds


def serve(name: str, device: str, settle: float) -> None:
    """Be a contender: begin each row that comes, and run a slice for each number."""
    out = channel()

    def say(what: Any) -> None:
        out.write(json.dumps(what) + "\n")

    try:
        prepare(name, device)
    except Missing as error:
        say({"missing": str(error)})
        return
    except Exception as error:  # a library that is broken here
        say({"missing": _line(error)})
        return
    say({})
    timer = None
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if isinstance(asked, float):
                assert timer is not None
                say(timer.slice(asked)[0])
            elif asked == "asking":
                assert timer is not None
                say(asking(timer))
            else:
                timer = None  # and with it what the row before held
                timer, told = begin(name, device, *asked, settle)
                say(told)
        except Exception as error:  # which the report tells; others go on
            say({"failed": _line(error)})


def _line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


# -- the one who starts them -----------------------------------------------------------------------


class Contest:
    """The contenders that are here.

    Parameters
    ----------
    options
        Those of the command line.
    folder
        Where libraries may keep what they compile.
    say
        Takes a paragraph of the report.
    """

    def __init__(
        self, options: argparse.Namespace, folder: str, say: Callable[[str], None]
    ) -> None:
        self.options, self.say = options, say
        settings = {"TORCHINDUCTOR_CACHE_DIR": folder, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        cores = None
        if options.device == "cpu":
            settings.update(JAX_PLATFORMS="cpu", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
            cores = 1
        self.running: list[Process] = []
        begun = []
        for name in options.contenders:
            told = [__file__, "--serve", name, options.device, str(options.settle)]
            begun.append(Process(name, told, settings, cores))
        for process in begun:  # they import at once
            reason = _answer(process).get("missing")
            if reason is None:
                self.running.append(process)
            else:
                say(f"left out: {process.name}: {reason}\n")
                process.end()

    def row(self, row: str, dtype: str) -> Outcome:
        """Let those that can run a row, and get its results, take turns."""
        title = f"{networks.TASKS[row][self.options.device == 'cpu'].title}, {dtype}"
        for process in self.running:
            with contextlib.suppress(Missing):
                process.tell([row, dtype])
        ready: list[Process] = []
        starts: dict[str, Any] = {}
        wanted: list[float] | None = None
        for process in list(self.running):
            told = _answer(process)
            reason = told.get("failed") or told.get("missing")
            if reason is None:
                wanted = wanted or told["losses"]
                if not np.allclose(told["losses"], wanted, rtol=TOLERANCES[dtype], atol=1e-4):
                    reason = f"its losses are {told['losses']}, the first one's {wanted}"
            if reason is not None:
                self.say(f"left out of {title}: {process.name}: {reason}\n")
                if "missing" in told:
                    self.running.remove(process)
                continue
            ready.append(process)
            starts[process.name] = told
        for process in ready:  # one at a time
            process.tell("asking")
            starts[process.name]["asking"] = float(process.answer(PATIENCE))
        seconds = take_turns(ready, self.options.rounds, self.options.slice)
        return Outcome(seconds, starts)

    def end(self) -> None:
        """Let all go."""
        for process in self.running:
            process.end()


def _answer(process: Process) -> dict[str, Any]:
    try:
        found: dict[str, Any] = process.answer(PATIENCE)
    except Missing as error:
        return {"missing": str(error)}
    return found


def details(title: str, outcome: Outcome, device: str) -> Iterator[list[str]]:
    """Give the lines of a row's table: a contender each."""
    asking = ["asking for it, µs"] if device == "gpu" else []
    yield [title, "µs", "±", "÷ best of others", *asking, "first step, s", "peak, MiB"]
    for name, rounds in outcome.seconds.items():
        low, middle, high = np.quantile(np.array(rounds) * 1e6, (0.25, 0.5, 0.75))
        start = outcome.starts[name]
        cells = [name, f"{middle:,.0f}", f"{(high - low) / 2:,.0f}", _beside(outcome, name)]
        cells += [f"{start['asking'] * 1e6:,.0f}"] if device == "gpu" else []
        yield [*cells, f"{start['first']:.2f}", f"{start['peak']:,.0f}"]


def _beside(outcome: Outcome, name: str) -> str:
    """Return the ratio to the best of the other libraries."""
    library = CONTENDERS[name][0]
    others = {
        x: float(np.median(rounds))
        for x, rounds in outcome.seconds.items()
        if CONTENDERS[x][0] != library
    }
    ratio = outcome.ratio(name, min(others, key=others.__getitem__)) if others else None
    return "-" if ratio is None else f"{ratio[0]:.2f} ± {ratio[1]:.2f}"


def summary(found: dict[str, Outcome], device: str) -> Iterator[list[str]]:
    """Give the lines of the table of what is promised: a row each."""
    ours = [name for name, (library, _) in CONTENDERS.items() if library == "gradtape"]
    yield ["÷ best of PyTorch and JAX", *ours, "eager ÷ PyTorch eager", "least asking, µs"]
    for title, outcome in found.items():
        cells = [_beside(outcome, x) if x in outcome.seconds else "-" for x in ours]
        eager = outcome.ratio("gradtape eager", "PyTorch eager")
        asking = [outcome.starts[x]["asking"] * 1e6 for x in ours if x in outcome.starts]
        least = f"{min(asking):,.0f}" if asking and device == "gpu" else "-"
        yield [title, *cells, "-" if eager is None else f"{eager[0]:.2f}", least]


# -- the report ------------------------------------------------------------------------------------


class Report:
    """Prints paragraphs, and keeps them in a file if one is named."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.told: list[str] = []

    def say(self, text: str) -> None:
        """Add a paragraph: the file is whole after each, whatever happens then."""
        print(text, flush=True)
        self.told.append(text)
        if self.path is not None:
            Path(self.path).write_text("\n".join(self.told) + "\n", encoding="utf-8")


def head(device: str) -> str:
    """Return the first lines: what ran where."""
    names = ("gradtape", "numpy", "cupy-cuda12x", "cupy-cuda13x", "torch", "jax")
    versions = []
    for name in names:
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{name} {version(name)}")
    where = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    what = (
        "an NVIDIA GPU" if device == "gpu" else "the processor (small sizes: a trial of the code)"
    )
    day = datetime.datetime.now(datetime.UTC).date()
    return f"# gradtape on {what}\n\n{day}, {where}, Python {platform.python_version()}: " + (
        f"{', '.join(versions)}.\n"
    )


def no_gpu() -> str | None:
    """Return why nothing can run on a GPU here."""
    import gradtape as gt

    reason = gt.registry().backend("cupy").unavailable()
    return None if reason is None else f"Nothing was run on a GPU: {reason}\n"


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--device", choices=["gpu", "cpu"], default="gpu", help="where to run (%(default)s)")
    add("--out", metavar="FILE", help="write the report there, in Markdown")
    add("--checks", nargs="*", choices=CHECKS, default=list(CHECKS), help="these alone, or none")
    add("--rows", nargs="*", choices=networks.TASKS, default=list(networks.TASKS))
    add("--dtypes", nargs="+", choices=HALVES, default=list(HALVES))
    add("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS))
    add("--rounds", type=int, default=7, help="turns of each contender (%(default)s)")
    add("--slice", type=float, default=0.15, help="seconds of a turn (%(default)s)")
    add("--settle", type=float, default=0.5, help="seconds without progress before turns begin")
    add("--minutes", type=float, default=9.5, help="begin nothing after that (%(default)s)")
    add("--serve", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def contest(options: argparse.Namespace, report: Report, end: float) -> None:
    """Let contenders take turns at all rows, and tell."""
    found: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        running = Contest(options, folder, report.say)
        try:
            for row in options.rows:
                for dtype in options.dtypes:
                    title = f"{networks.TASKS[row][options.device == 'cpu'].title}, {dtype}"
                    if time.monotonic() > end:
                        report.say(f"left out: {title}: no time was left\n")
                        continue
                    outcome = running.row(row, dtype)
                    if outcome.seconds:
                        found[title] = outcome
                        lines = list(details(title, outcome, options.device))
                        report.say(as_markdown(lines) + "\n")
        finally:
            running.end()
    if found:
        report.say(as_markdown(list(summary(found, options.device))) + "\n")


def main(options: argparse.Namespace) -> int:
    """Run all, and return the exit code: 1 if a check failed, or there is no GPU."""
    end = time.monotonic() + 60 * options.minutes
    report = Report(options.out)
    report.say(head(options.device))
    reason = no_gpu() if options.device == "gpu" else None
    failed = reason is not None
    if reason is not None:
        report.say(reason)
    for name in options.checks if reason is None else ["doctor"]:
        ended, told = checked(name, options.device, end - time.monotonic())
        failed = failed or not ended.startswith(("passed", "left out"))
        report.say(told)
    if options.rows and reason is None:
        report.say("## Steps\n")
        contest(options, report, end)
    return int(failed)


if __name__ == "__main__":
    OPTIONS = arguments()
    if OPTIONS.serve:
        serve(OPTIONS.serve[0], OPTIONS.serve[1], float(OPTIONS.serve[2]))
    else:
        sys.exit(main(OPTIONS))
