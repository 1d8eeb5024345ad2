"""Compiled gradtape, by each executor, beside JAX and PyTorch; and eager beside PyTorch.

``python docs/benchmarks/compiled.py --threads 1 all`` prints the tables of
``docs/benchmarks/README.md``; what is computed is in ``rows``. Each contender has a process of its
own, which this script starts. They take turns: one runs for a slice of time while the others sleep,
round after round; what counts is the median of the rounds, and of the ratios within each round.
Before it is timed, each one's result is compared with the others'.

To measure in several runs, give each ``--results FILE``. ``--summary FILE`` then prints the tables
of the page.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import training_step
from contest import Missing, Outcome, Process, Timer, channel, take_turns
from rows import ROWS, Made
from timing import as_markdown, resident

BASE, EAGER_BASE = "JAX, jit", "PyTorch, eager"
#: Contenders: the library, the executor or backend, and what to install for it.
CONTENDERS = {
    "default": ("gradtape", "", "pip install gradtape"),
    "plain": ("gradtape", "plain", "pip install gradtape"),
    "planned": ("gradtape", "planned", "pip install gradtape"),
    "fused": ("gradtape", "fused", 'pip install "gradtape[fused]"'),
    "on JAX": ("gradtape", "jax", 'pip install "gradtape[jax]"'),
    BASE: ("jax", "", "pip install jax"),
    "PyTorch, compiled": ("torch", "compiled", "pip install torch, and a C++ compiler such as g++"),
    "eager": ("gradtape", "eager", "pip install gradtape"),
    EAGER_BASE: ("torch", "eager", "pip install torch"),
}
EAGER = ("eager", EAGER_BASE)
COMPILED = tuple(name for name in CONTENDERS if name not in EAGER)
#: Variables that say how many threads libraries start.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
#: Variables that keep OpenBLAS, and no other library, from the processor's best instructions.
RESTRICTING = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")
#: What torch.compile compiles with.
COMPILERS = (os.environ.get("CXX", "g++"), "g++", "clang++")
#: Those that compile to machine code while they already run.
LATER = ("default", "fused")
#: Outcomes by the number of threads and the row.
Found = dict[int, dict[str, Outcome]]


# -- a contender's process -------------------------------------------------------------------------


def _finished(made: Made, how: str) -> Callable[[], Any]:
    """Return what runs it until all is computed, which JAX leaves to others."""
    if how != "jax":
        return made.run
    import jax

    def run() -> None:
        found = made.run()
        jax.block_until_ready(made.changed() if found is None else getattr(found, "array", found))

    return run


def _prepare(name: str) -> tuple[str, str, contextlib.ExitStack]:
    """Import a contender's library; return it, how it runs, and what ends its surroundings."""
    library, how, _ = CONTENDERS[name]
    if importlib.util.find_spec(library) is None:
        raise Missing(f"{library} is not installed")
    __import__(library)
    context = contextlib.ExitStack()
    if library == "gradtape":
        import gradtape as gt

        if how == "jax":
            try:
                context.enter_context(gt.backend("jax"))
            except (LookupError, gt.errors.BackendUnavailable) as error:
                raise Missing(str(error)) from None
        elif how == "fused" and importlib.util.find_spec("llvmlite") is None:
            raise Missing("llvmlite is not installed")
        elif how not in ("", "eager") and how not in gt.registry().executors:
            raise Missing(f"no plugin provides the executor {how!r}")
    elif how == "compiled" and not any(map(shutil.which, COMPILERS)):
        raise Missing("torch.compile finds no C++ compiler")
    return library, how, context


def serve(row: str, name: str, folder: str, settle: float, clock: str) -> None:
    """Be a contender: say what the start cost, then run a slice for each line that comes."""
    out = channel()
    try:
        library, how, context = _prepare(name)
    except Missing as error:
        out.write(json.dumps({"missing": str(error)}) + "\n")
        return
    before = resident()
    made = ROWS[row].make(library, how)
    timer = Timer(_finished(made, how), clock)
    start = timer.clock()
    try:
        timer.run()
    except Exception as error:
        if how != "compiled":
            raise
        # what torch.compile does not compile
        reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
        out.write(json.dumps({"failed": reason}) + "\n")
        return
    first = timer.clock() - start
    timer.run()
    timer.run()
    result = made.result()
    np.savez(os.path.join(folder, f"{row}-{name}.npz"), *result)
    settled = timer.settle(settle)
    extra = first + settled["seconds"] - (settled["calls"] + 1) * settled["each"]
    resident(reset=True)
    timer.slice(0.05)
    peak = (resident(peak=True) - before) / 2**20
    told = {"first": first, "extra": max(extra, first), "peak": peak}
    out.write(json.dumps(told) + "\n")
    for line in sys.stdin:
        out.write(json.dumps(timer.slice(float(line))[0]) + "\n")
    context.close()


# -- the one who starts them -----------------------------------------------------------------------


def _started(
    row: str, name: str, folder: str, threads: int, options: argparse.Namespace
) -> Process:
    """Return a contender in a process of its own."""
    library, how, _ = CONTENDERS[name]
    cache = os.path.join(folder, name)  # each compiles for itself
    settings: dict[str, str | None] = {
        "JAX_PLATFORMS": "cpu",
        **dict.fromkeys(THREADS, str(threads)),
        "XDG_CACHE_HOME": cache,
        # of all rows, which otherwise compile the same headers again
        "TORCHINDUCTOR_CACHE_DIR": os.path.join(os.path.dirname(folder), f"torch{threads}"),
        "GRADTAPE_CACHE_DIR": None,
        "GRADTAPE_EXECUTOR": None,
        **dict.fromkeys(RESTRICTING),
    }
    if library == "gradtape" and how not in ("", "eager", "jax"):
        settings["GRADTAPE_EXECUTOR"] = how
    settle = options.settle * (4 if name in LATER else 1)
    told = ["--serve", row, name, folder, str(settle), options.clock]
    return Process(name, [__file__, *told], settings, threads)


def contest(
    row: str,
    names: Sequence[str],
    folder: str,
    threads: int,
    options: argparse.Namespace,
    said: set[str],
) -> Outcome:
    """Let the contenders of a row take turns."""
    with contextlib.ExitStack() as stack:
        running: list[Process] = []
        starts: dict[str, dict[str, float]] = {}
        for name in names:
            fused = name == "fused"
            for kind in ("", "cached ") if fused else ("",):
                process = _started(row, name, folder, threads, options)
                try:
                    told = process.answer()
                    if "failed" in told:
                        process.end()
                        raise Missing(told["failed"])
                except Missing as error:
                    print(f"failed: {ROWS[row].title}, {name}: {error}\n")
                    break
                if "missing" in told:
                    if name not in said:
                        print(f"left out: {name}: {told['missing']}; {CONTENDERS[name][2]}\n")
                    said.add(name)
                    process.end()
                    break
                starts.setdefault(name, {}).update({kind + k: x for k, x in told.items()})
                if fused and not kind:
                    process.end()  # the next one finds what it compiled
            else:
                running.append(process)
                stack.callback(process.end)
        _check(row, [process.name for process in running], folder)
        seconds = take_turns(running, options.rounds, options.slice)
    return Outcome(seconds, starts)


def _check(row: str, names: Sequence[str], folder: str) -> None:
    """Compare the results of all contenders with the first one's."""
    wanted: list[np.ndarray] | None = None
    for name in names:
        with np.load(os.path.join(folder, f"{row}-{name}.npz")) as file:
            found = [file[key] for key in file.files]
        wanted = wanted or found
        if ROWS[row].trained:
            training_step.compare(name, found, wanted, ROWS[row].free)
            continue
        for mine, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, right, rtol=2e-3, atol=1e-5, err_msg=name)


# -- tables and results ----------------------------------------------------------------------------


def details(title: str, outcome: Outcome, names: Sequence[str], base: str) -> Iterator[list[str]]:
    """Give the lines of one row's table: a contender each."""
    costs = ["first call, s", "until settled, s", "peak, MiB"]
    yield [title, "µs", "±", f"÷ {base}", "best ÷ best", *costs]
    for name in names:
        if name not in outcome.seconds:
            continue
        times = np.array(outcome.seconds[name]) * 1e6
        low, middle, high = np.quantile(times, (0.25, 0.5, 0.75))
        ratio = outcome.ratio(name, base)
        start = outcome.starts[name]
        first, extra = f"{start['first']:.2f}", f"{start['extra']:.2f}"
        if "cached first" in start:
            first += f" ({start['cached first']:.2f} cached)"
            extra += f" ({start['cached extra']:.2f} cached)"
        yield [
            name,
            f"{middle:,.0f}",
            f"{(high - low) / 2:,.0f}",
            "-" if ratio is None else f"{ratio[0]:.2f} ± {ratio[1]:.2f}",
            "-" if ratio is None else f"{times.min() / min(outcome.seconds[base]) / 1e6:.2f}",
            first,
            extra,
            f"{start['peak']:.0f}",
        ]


def ratios(found: Found) -> Iterator[list[str]]:
    """Give the lines of the table of ratios: a row each, a figure for each number of threads."""
    ours = [name for name in COMPILED if name != BASE]
    yield [f"÷ {BASE}", *ours, f"eager ÷ {EAGER_BASE}"]
    for row in _rows(found):
        outcomes = [found[threads][row] for threads in sorted(found) if row in found[threads]]
        pairs = [*((name, BASE) for name in ours), ("eager", EAGER_BASE)]
        cells = []
        for name, base in pairs:
            figures = [outcome.ratio(name, base) for outcome in outcomes]
            told = ["-" if x is None else f"{x[0]:.2f}" for x in figures]
            cells.append("-" if set(told) == {"-"} else " / ".join(told))
        yield [ROWS[row].title, *cells]


def starting(found: Found) -> Iterator[list[str]]:
    """Give the lines of the table of what starting costs, with the fewest threads: a row each."""
    names = [name for name in COMPILED if name != "fused"]
    yield ["first call, s; until settled, s; peak, MiB", *names, "fused (cached)"]
    outcomes = found[min(found)]
    for row in _rows({min(found): outcomes}):
        cells = []
        for name in [*names, "fused"]:
            start = outcomes[row].starts.get(name)
            cells.append(
                "-" if start is None or name not in outcomes[row].seconds else _cost(start)
            )
        yield [ROWS[row].title, *cells]


def _cost(start: dict[str, float]) -> str:
    first, extra = f"{start['first']:.2f}", f"{start['extra']:.1f}"
    if "cached first" in start:
        first += f" ({start['cached first']:.2f})"
        extra += f" ({start['cached extra']:.1f})"
    return f"{first}; {extra}; {start['peak']:.0f}"


def _rows(found: Found) -> list[str]:
    return [row for row in ROWS if any(row in outcomes for outcomes in found.values())]


def summary(found: Found) -> str:
    """Return the tables of the page."""
    counts = " / ".join(f"{n} thread{'s' if n > 1 else ''}" for n in sorted(found))
    tables = [as_markdown(list(ratios(found))), as_markdown(list(starting(found)))]
    return "\n\n".join([counts, *tables])


def read(path: str) -> Found:
    """Return the results of a file; none if there is no file."""
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        told = json.load(file)
    return {
        int(threads): {row: Outcome(**outcome) for row, outcome in rows.items() if row in ROWS}
        for threads, rows in told.items()
    }


def write(path: str, found: Found) -> None:
    """Keep results in a file."""
    told = {
        str(threads): {row: outcome._asdict() for row, outcome in rows.items()}
        for threads, rows in found.items()
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(told, file, indent=1)


def _threads(text: str) -> int:
    if text != "all":
        return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="these alone")
    add("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="these alone")
    add("--rounds", type=int, default=7, help="turns of each contender (%(default)s)")
    add("--slice", type=float, default=0.15, help="seconds of a turn (%(default)s)")
    add("--settle", type=float, default=0.5, help="seconds without progress before turns begin")
    add(
        "--threads",
        nargs="+",
        type=_threads,
        default=[1],
        help="threads, and cores, of each; all for those that there are",
    )
    add(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="cpu: the processor time of all threads, for a machine on which others work too",
    )
    add("--quick", action="store_true", help="two small rows, in a few seconds")
    add("--results", metavar="FILE", help="add what is measured to this file")
    add("--summary", metavar="FILE", help="print the page's tables of such a file, and end")
    add("--serve", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_args()


def measure(options: argparse.Namespace) -> Found:
    """Run the contests, and print each one's table; return what was found, and was known before."""
    found = read(options.results) if options.results else {}
    said: set[str] = set()
    names = [name for name in CONTENDERS if name in options.contenders]
    with tempfile.TemporaryDirectory() as whole:
        for row, threads in product(options.rows, options.threads):
            folder = os.path.join(whole, f"{row}{threads}")
            os.mkdir(folder)
            outcome = contest(row, names, folder, threads, options, said)
            found.setdefault(threads, {})[row] = outcome
            if options.results:
                write(options.results, found)
            title = f"{ROWS[row].title}; {threads} thread{'s' if threads > 1 else ''}"
            for group, base in ((COMPILED, BASE), (EAGER, EAGER_BASE)):
                lines = list(details(title, outcome, group, base))
                if len(lines) > 1:
                    print(as_markdown(lines), end="\n\n", flush=True)
    return found


def main() -> None:
    """Run the contests and print."""
    options = arguments()
    if options.serve:
        row, name, folder, settle, clock = options.serve
        serve(row, name, folder, float(settle), clock)
        return
    if options.summary:
        print(summary(read(options.summary)))
        return
    if options.quick:
        options.rows, options.rounds = ["chain", "matrices"], 3
        options.slice, options.settle = 0.02, 0.05
    # as an installation does it: what is imported late would be compiled by the first call
    import gradtape.plugins

    compileall.compile_dir(gradtape.plugins.__path__[0], quiet=2)
    print(summary(measure(options)))


if __name__ == "__main__":
    main()
