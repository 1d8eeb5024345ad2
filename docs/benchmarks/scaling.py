"""What a data-parallel step costs here, and what it would cost on 8, 64 and 1,000 workers.

``python docs/benchmarks/scaling.py`` starts jobs of 2 and 4 ranks with ``mpiexec`` and measures

1. collectives of gradtape beside the engine's own calls, for the same bytes, in turns;
2. steps of three networks, by ranks that average gradients beside ranks that train on their own;
3. from both, the machine's constants: the latency of a message and the time of a byte.

With ``--plot FILE`` it projects the steps onto more workers by the cost model of
docs/distributed.md and draws how they split into computing and communicating.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from timing import as_markdown

#: Networks by name: sizes of layers, and the examples of each rank's batch.
NETWORKS: dict[str, tuple[tuple[int, ...], int]] = {
    "small": ((64, 128, 10), 32),
    "middle": ((784, 256, 256, 10), 128),
    "large": ((784, 1024, 1024, 10), 256),
}
#: Bytes of messages.
MESSAGES = (1 << 10, 42_000, 1_080_000, 7_500_000)
WORKERS = (1, 8, 64, 1000)


class Link(NamedTuple):
    """How long a message takes: ``latency`` seconds, and ``byte`` seconds for each byte."""

    latency: float
    byte: float


#: What joins hosts where nothing was measured: assumptions, which the options change.
NETWORK = Link(latency=20e-6, byte=1 / 3.0e9)


# -- the cost model --------------------------------------------------------------------------------


def ring(workers: int, size: float, link: Link) -> float:
    """Return the seconds of an all-reduce in a ring.

    Each of ``2 (n - 1)`` steps sends ``size / n`` bytes: Patarasuk and Yuan, 2009.
    """
    steps = 2 * (workers - 1)
    return steps * link.latency + steps / workers * size * link.byte


def halving(workers: int, size: float, link: Link) -> float:
    """Return the seconds of an all-reduce by recursive halving and doubling.

    ``2 log2(n)`` steps, the same bytes as a ring: Thakur, Rabenseifner and Gropp, 2005.
    """
    if workers == 1:
        return 0.0
    steps = 2 * np.ceil(np.log2(workers))
    return float(steps * link.latency + 2 * (workers - 1) / workers * size * link.byte)


def hierarchical(workers: int, size: float, inside: Link, between: Link, per_host: int) -> float:
    """Return the seconds of an all-reduce inside hosts, between them, and back.

    Hosts scatter the sum over their ranks, so that each rank takes its part between hosts.
    """
    local = min(workers, per_host)
    hosts = -(-workers // local)
    part = size / local
    return ring(local, size, inside) + min(
        ring(hosts, part, between), halving(hosts, part, between)
    )


def split(
    workers: int, compute: float, size: float, inside: Link, between: Link, per_host: int
) -> tuple[float, float]:
    """Return the seconds of a step that compute, and those that wait for gradients."""
    return compute, hierarchical(workers, size, inside, between, per_host)


# -- what a rank does ------------------------------------------------------------------------------


def best(run: Callable[[], Any], wait: Callable[[], Any], rounds: int) -> float:
    """Return the median of the quicker half of calls, each begun by all ranks together."""
    found = []
    for _ in range(rounds):
        wait()
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return statistics.median(sorted(found)[: max(1, rounds // 2)])


def measure_messages(rounds: int) -> list[dict[str, float]]:
    """Return, for each size, the seconds of the engine's own call and of gradtape's."""
    from mpi4py import MPI

    import gradtape as gt

    group = gt.distributed.init()
    world, wait = MPI.COMM_WORLD, group.communicator.barrier
    rows = []
    for size in MESSAGES:
        sent = np.ones(size // 4, np.float32)
        got = np.empty_like(sent)
        tensor, kept = gt.constant(sent), gt.constant(sent.copy())
        calls: dict[str, Callable[[], Any]] = {
            "raw": lambda sent=sent, got=got: world.Allreduce(sent, got),
            "eager": lambda tensor=tensor: gt.distributed.all_reduce(tensor),
            "in a step": averaging(kept),
        }
        runs = {name: [] for name in calls}
        for _ in range(3):  # in turns
            for name, call in calls.items():
                call()
                runs[name].append(best(call, wait, rounds))
        rows.append({"bytes": size, **{name: min(times) for name, times in runs.items()}})
    return rows


def averaging(kept: Any) -> Callable[[], Any]:
    """Return the call that a traced data-parallel step makes for its gradients."""
    import gradtape as gt
    from gradtape.core.extend import collectives_agreed

    op, array = gt.registry().op("average_over_ranks"), kept.array

    def run() -> Any:
        with collectives_agreed():
            return op.raw(1.0, array, checked=0)

    return run


def network_of(sizes: Sequence[int]) -> Any:
    """Return layers of these sizes."""
    import gradtape as gt

    hidden: list[Any] = []
    for units in sizes[1:-1]:
        hidden += [
            gt.layers.Dense(units), gt.layers.BatchNorm(), gt.layers.Activation("relu"),
        ]  # fmt: skip
    return gt.layers.Sequential([*hidden, gt.layers.Dense(sizes[-1])])


def measure_steps(rounds: int) -> list[dict[str, Any]]:
    """Return, for each network, the seconds of a step on its own, and in a group."""
    import gradtape as gt

    group = gt.distributed.init()
    rows = []
    for name, (sizes, batch) in NETWORKS.items():
        random = np.random.default_rng(group.rank)
        x = gt.constant(random.random((batch, sizes[0]), dtype=np.float32))
        y = gt.constant(random.integers(0, sizes[-1], batch))
        steps: dict[str, Callable[[], Any]] = {}
        for kind in ("alone", "together"):
            gt.random.set_seed(0)
            model, optimizer = network_of(sizes), gt.training.Adam(1e-3)
            model(x)

            def step(x: Any, y: Any, model: Any = model, optimizer: Any = optimizer) -> Any:
                with gt.GradientTape() as tape:
                    logits = model(x, training=True)
                    each = gt.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)
                    loss = gt.mean(each)
                variables = model.trainable_variables
                optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
                return loss

            run = gt.function(step) if kind == "alone" else group.data_parallel(step)
            for _ in range(3):
                run(x, y)
            steps[kind] = lambda run=run, x=x, y=y: run(x, y)
        size = 4 * sum(v.size for v in model.trainable_variables)
        found = {kind: [] for kind in steps}
        for _ in range(3):
            for kind, call in steps.items():
                found[kind].append(best(call, group.communicator.barrier, rounds))
        times = {kind: min(seconds) for kind, seconds in found.items()}
        rows.append({"network": name, "bytes": size, **times})
    return rows


def be_a_rank(rounds: int) -> None:
    """Measure, and let rank 0 print what it found."""
    import gradtape as gt

    group = gt.distributed.init()
    found = {"messages": measure_messages(rounds), "steps": measure_steps(max(rounds // 2, 5))}
    if group.rank == 0:
        print("FOUND", json.dumps(found), flush=True)


# -- the one who starts them -----------------------------------------------------------------------


def job(ranks: int, rounds: int) -> dict[str, Any]:
    """Start a job and return what its rank 0 found."""
    launcher = shutil.which("mpiexec") or str(Path(sys.executable).with_name("mpiexec"))
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    told = [launcher, "-n", str(ranks), sys.executable, __file__, "--rank", "--rounds", str(rounds)]
    done = subprocess.run(
        told, env={**os.environ, **threads}, capture_output=True, text=True, timeout=900
    )
    for line in done.stdout.splitlines():
        if line.startswith("FOUND "):
            found: dict[str, Any] = json.loads(line[6:])
            return found
    raise SystemExit(f"{ranks} ranks: the job failed\n{done.stdout}{done.stderr}")


def link_of(messages: Sequence[dict[str, float]], ranks: int) -> Link:
    """Return latency and time of a byte, from the engine's own all-reduces."""
    small, big = messages[0], messages[-1]
    steps = 2 * (ranks - 1)
    byte = (big["raw"] - small["raw"]) / ((big["bytes"] - small["bytes"]) * steps / ranks)
    return Link(max(small["raw"] / steps, 1e-7), max(byte, 1e-12))


def draw(
    path: str, steps: Sequence[dict[str, Any]], inside: Link, between: Link, per_host: int
) -> None:
    """Draw for each network how a step splits, on each number of workers."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(steps), figsize=(10, 3.4), layout="constrained")
    for axis, row in zip(axes, steps, strict=True):
        told = [split(n, row["alone"], row["bytes"], inside, between, per_host) for n in WORKERS]
        compute = np.array([a for a, _ in told]) * 1e3
        waits = np.array([b for _, b in told]) * 1e3
        places = np.arange(len(WORKERS))
        axis.bar(places, compute, 0.6, color="#4c72b0", label="computing")
        axis.bar(places, waits, 0.6, bottom=compute, color="#dd8452", label="communicating")
        for place, a, b in zip(places, compute, waits, strict=True):
            axis.text(place, a + b, f"{a / (a + b):.0%}", ha="center", va="bottom", fontsize=9)
        axis.set_xticks(places, [f"{n:,}" for n in WORKERS])
        axis.set_ylim(0, max(compute + waits) * 1.15)
        axis.set_xlabel("workers")
        axis.set_title(f"{row['network']}: {row['bytes'] / 1e6:.2f} MB of gradients", fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("a step, ms")
    axes[0].legend(frameon=False, loc="upper left", fontsize=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print tables, and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--rounds", type=int, default=60, help="calls of each kind (%(default)s)")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--plot", metavar="FILE", help="where to draw the projection")
    parser.add_argument(
        "--latency", type=float, default=NETWORK.latency * 1e6, help="between hosts, µs"
    )
    parser.add_argument("--bandwidth", type=float, default=3.0, help="between hosts, GB/s")
    parser.add_argument("--per-host", type=int, default=8, help="workers of a host (%(default)s)")
    options = parser.parse_args()
    if options.rank:
        be_a_rank(options.rounds)
        return
    between = Link(options.latency / 1e6, 1e-9 / options.bandwidth)
    inside, steps = None, None
    for ranks in options.ranks:
        found = job(ranks, options.rounds)
        print(f"\n{ranks} ranks\n")
        lines = [["bytes", "raw, µs", "eager ÷ raw", "in a step ÷ raw"]]
        for row in found["messages"]:
            ratios = [f"{row[k] / row['raw']:.2f}" for k in ("eager", "in a step")]
            lines.append([f"{row['bytes']:,}", f"{row['raw'] * 1e6:.0f}", *ratios])
        print(as_markdown(lines), "\n")
        lines = [["network", "gradients, MB", "alone, µs", "together ÷ alone"]]
        for row in found["steps"]:
            cells = f"{row['bytes'] / 1e6:.2f}", f"{row['alone'] * 1e6:.0f}"
            lines.append([row["network"], *cells, f"{row['together'] / row['alone']:.2f}"])
        print(as_markdown(lines))
        link = link_of(found["messages"], ranks)
        print(f"\nlatency {link.latency * 1e6:.1f} µs, {1e-9 / link.byte:.2f} GB/s")
        if inside is None:
            inside, steps = link, found["steps"]
    assert inside is not None
    assert steps is not None
    lines = [["network", *[f"{n:,} workers" for n in WORKERS]]]
    for row in steps:
        told = [
            split(n, row["alone"], row["bytes"], inside, between, options.per_host) for n in WORKERS
        ]
        lines.append([row["network"], *[f"{a / (a + b):.0%}" for a, b in told]])
    print("\nshare of a step that computes, projected\n")
    print(as_markdown(lines))
    if options.plot:
        draw(options.plot, steps, inside, between, options.per_host)


if __name__ == "__main__":
    main()
