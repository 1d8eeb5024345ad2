"""Compiled gradtape, by each executor, beside JAX's jit; and eager beside PyTorch.

``python docs/benchmarks/compiled.py`` prints the tables of ``docs/benchmarks/README.md``. Each
contender has a process of its own, which this script starts. They take turns: one runs for a slice
of time while the others sleep, round after round; what counts is the median of the rounds, and of
the ratios within each round. Before it is timed, each one's result is compared with the others'.
"""

from __future__ import annotations

import argparse
import compileall
import contextlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import training_step
from contest import Missing, Outcome, Process, Timer, channel, take_turns
from timing import as_markdown, resident

BASE, EAGER_BASE = "JAX, jit", "PyTorch, eager"
#: Contenders: the library, the executor or backend, and what to install for it.
CONTENDERS = {
    "plain": ("gradtape", "plain", "pip install gradtape"),
    "planned": ("gradtape", "planned", "pip install gradtape"),
    "fused": ("gradtape", "fused", 'pip install "gradtape[fused]"'),
    "on JAX": ("gradtape", "jax", 'pip install "gradtape[jax]"'),
    BASE: ("jax", "", "pip install jax"),
    "eager": ("gradtape", "eager", "pip install gradtape"),
    EAGER_BASE: ("torch", "", "pip install torch"),
}
COMPILED = ("plain", "planned", "fused", "on JAX", BASE)
EAGER = ("eager", EAGER_BASE)


class Made(NamedTuple):
    """What a contender runs, the arrays that tell whether it is right, and what it changes."""

    run: Callable[[], Any]
    result: Callable[[], list[np.ndarray]]
    changed: Callable[[], Any] = list


# -- the rows --------------------------------------------------------------------------------------


def _of(contenders: dict[str, Callable[[], Any]], name: str) -> Made:
    run = contenders[name]
    return Made(run, lambda: [np.asarray(run())])


def chain(library: str, traced: bool) -> Made:
    """50 times ``sin(y * 1.001)`` of ten numbers, forward and gradient."""
    import eager

    if library == "gradtape":
        return _of(eager.gradtape_tiny(), "gradtape, function" if traced else "gradtape, eager")
    return _of(
        *((eager.jax_tiny(), BASE) if library == "jax" else (eager.torch_tiny(), EAGER_BASE))
    )


def network(library: str, traced: bool, inputs: int, hidden: Sequence[int], batch: int) -> Made:
    """A step of Dense, BatchNorm, relu and Adam."""
    task = training_step.Task(inputs, hidden, batch)
    if library == "gradtape":
        made = training_step.gradtape(task, traced)
    else:
        made = training_step.jax(task) if library == "jax" else training_step.torch(task)
    return Made(made.step, made.weights, made.arrays)


def hessian(library: str, traced: bool) -> Made:
    """The Hessian of a layer of 40 parameters."""
    import derivatives

    if library == "jax":
        return _of(derivatives.jax_hessian(), "JAX, jit(hessian)")
    return _of(derivatives.gradtape_hessian(), "gradtape, function(hessian)")


def batch_jacobian(library: str, traced: bool) -> Made:
    """Jacobians of 256 examples."""
    import derivatives

    if library == "jax":
        return _of(derivatives.jax_batch(), "JAX, jit(vmap(jacrev))")
    return _of(derivatives.gradtape_batch(), "gradtape, function(batch_jacobian)")


class Row(NamedTuple):
    """What is computed: its title, what makes it, and whether it is compared eagerly too."""

    title: str
    make: Callable[[str, bool], Made]
    eager: bool


ROWS = {
    "chain": Row("100-op chain", chain, True),
    "small": Row(
        "MLP 64-128-10, BatchNorm, Adam, batch 32",
        partial(network, inputs=64, hidden=(128,), batch=32),
        True,
    ),
    "mid": Row(
        "MLP 784-256-256-10, batch 128",
        partial(network, inputs=784, hidden=(256, 256), batch=128),
        True,
    ),
    "big": Row(
        "MLP 784-1024-1024-10, batch 256",
        partial(network, inputs=784, hidden=(1024, 1024), batch=256),
        True,
    ),
    "hessian": Row("Hessian of 40 parameters", hessian, False),
    "jacobian": Row("batch Jacobian, 256 examples, 32 → 64 → 32", batch_jacobian, False),
}


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
        elif how != "eager" and how not in gt.registry().executors:
            raise Missing(f"no plugin provides the executor {how!r}")
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
    made = ROWS[row].make(library, how != "eager")
    timer = Timer(_finished(made, how), clock)
    start = timer.clock()
    timer.run()
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


def _started(row: str, name: str, folder: str, options: argparse.Namespace) -> Process:
    """Return a contender in a process of its own."""
    how = CONTENDERS[name][1]
    threads = str(options.threads)
    settings = {
        "JAX_PLATFORMS": "cpu",
        **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), threads),
        "XDG_CACHE_HOME": folder,
    }
    if CONTENDERS[name][0] == "gradtape" and how not in ("eager", "jax"):
        settings["GRADTAPE_EXECUTOR"] = how
    settle = options.settle * (4 if how == "fused" else 1)
    told = ["--serve", row, name, folder, str(settle), options.clock]
    return Process(name, [__file__, *told], settings, options.threads)


def contest(
    row: str, names: Sequence[str], folder: str, options: argparse.Namespace, said: set[str]
) -> Outcome:
    """Let the contenders of a row take turns."""
    with contextlib.ExitStack() as stack:
        running: list[Process] = []
        starts: dict[str, dict[str, float]] = {}
        for name in names:
            fused = name == "fused"
            for kind in ("", "cached ") if fused else ("",):
                process = _started(row, name, folder, options)
                try:
                    told = process.answer()
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
        if row in ("small", "mid", "big"):
            training_step.compare(name, found, wanted)
            continue
        for mine, right in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, right, rtol=2e-3, atol=1e-5, err_msg=name)


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


def summary(found: dict[str, Outcome]) -> Iterator[list[str]]:
    """Give the lines of the table of ratios: a row each."""
    ours = [name for name in COMPILED if name != BASE]
    yield [f"÷ {BASE}", *ours, f"eager ÷ {EAGER_BASE}"]
    for row, outcome in found.items():
        ratios = [outcome.ratio(name, BASE) for name in ours]
        ratios.append(outcome.ratio("eager", EAGER_BASE))
        yield [ROWS[row].title, *("-" if x is None else f"{x[0]:.2f}" for x in ratios)]


def arguments() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    add = parser.add_argument
    add("--rows", nargs="+", choices=ROWS, default=list(ROWS), help="these alone")
    add("--contenders", nargs="+", choices=CONTENDERS, default=list(CONTENDERS), help="these alone")
    add("--rounds", type=int, default=15, help="turns of each contender (%(default)s)")
    add("--slice", type=float, default=0.3, help="seconds of a turn (%(default)s)")
    add("--settle", type=float, default=2.0, help="seconds without progress before turns begin")
    add("--threads", type=int, default=1, help="threads, and cores, of each (%(default)s)")
    add(
        "--clock",
        choices=["wall", "cpu"],
        default="wall",
        help="cpu: the processor time of all threads, for a machine on which others work too",
    )
    add("--quick", action="store_true", help="the chain alone, in a few seconds")
    add("--serve", nargs=5, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run the contests and print."""
    options = arguments()
    if options.serve:
        row, name, folder, settle, clock = options.serve
        serve(row, name, folder, float(settle), clock)
        return
    if options.quick:
        options.rows, options.rounds, options.slice, options.settle = ["chain"], 3, 0.02, 0.05
    # as an installation does it: what is imported late would be compiled by the first call
    import gradtape.plugins

    compileall.compile_dir(gradtape.plugins.__path__[0], quiet=2)
    found: dict[str, Outcome] = {}
    said: set[str] = set()
    for row in options.rows:
        wanted = [*COMPILED, *(EAGER if ROWS[row].eager else ())]
        names = [name for name in wanted if name in options.contenders]
        with tempfile.TemporaryDirectory() as folder:
            found[row] = contest(row, names, folder, options, said)
        for group, base in ((COMPILED, BASE), (EAGER, EAGER_BASE)):
            lines = list(details(ROWS[row].title, found[row], group, base))
            if len(lines) > 1:
                print(as_markdown(lines), end="\n\n", flush=True)
    print(as_markdown(list(summary(found))))


if __name__ == "__main__":
    main()
