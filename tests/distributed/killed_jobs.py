"""A job of which a rank is killed at any moment, and which is started again.

python killed_jobs.py --kills N [--ranks R]

Each job has to end within ten seconds of the kill, with no process, temporary file or shared memory
left behind; and started again it has to come to what a job left alone comes to, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from jobs import HERE, Running, run

SCRIPT = HERE / "restartable.py"
#: Seconds within which a job has to end.
ALLOWED = 10.0


@dataclass
class Kill:
    """Sends SIGKILL to one of the ranks some time after a job has begun."""

    folder: Path
    rank: int
    delay: float
    #: How long after the beginning that was, if the rank was there; and after which checkpoint.
    when: float = 0.0
    seen: str = ""

    def __call__(self, running: Running) -> None:
        while time.monotonic() < running.start + self.delay:
            running.look()
            time.sleep(0.003)
        pid = running.ranks().get(self.rank)
        if pid is not None and running.process.poll() is None:
            names = sorted(x.stem for x in self.folder.glob("checkpoint-*.h5"))
            self.seen = names[-1] if names else "no checkpoint"
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.when = time.monotonic() - running.start


def result(folder: Path) -> dict[str, bytes]:
    with np.load(folder / "result.npz") as found:
        return {name: x.tobytes() for name, x in found.items()}


def main(kills: int, ranks: int, epochs: int, seed: int, supervised: bool = True) -> list[str]:
    """Kill a rank of jobs and start them again; return what went wrong."""
    rng, faults, waits, equal = random.Random(seed), [], [], 0
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)

        def started(folder: Path, kill: Kill | None = None):
            folder.mkdir(exist_ok=True)
            command = (SCRIPT, folder, epochs)
            return run(*command, ranks=ranks, train=supervised, seconds=120, meanwhile=kill)

        whole = started(root / "whole")
        assert whole.code == 0, whole.said
        expected = result(root / "whole")
        for i in count():  # a moment may fall before the ranks have started, or after their end
            if len(waits) == kills or i == 2 * kills:
                break
            folder = root / f"run{i}"
            kill = Kill(folder, rng.randrange(ranks), rng.uniform(0.2, whole.seconds))
            job = started(folder, kill)
            took = job.seconds - kill.when
            if kill.when:
                waits.append(took)
                if took > ALLOWED:
                    faults.append(f"{i}: the job ended {took:.1f} s after the kill")
            if kill.when and job.code == 0 and not (folder / "result.npz").exists():
                faults.append(f"{i}: the job ended with code 0")
            again = started(folder)
            if again.code:
                faults.append(f"{i}: started again, it failed: {again.said}")
            same = again.code == 0 and result(folder) == expected
            equal += same
            faults += [] if same else [f"{i}: started again, it came to something else"]
            hidden = [f"file {x.name}" for x in folder.iterdir() if x.name.startswith(".")]
            for left in (*job.left, *again.left, *hidden):
                faults.append(f"{i}: left behind: {left}")
            named = "gone" in job.said or "was ended by signal 9" in job.said
            place = f"rank {kill.rank} at {kill.seen}" if kill.when else "nobody"
            told = (
                f"{i + 1:3d}: after {kill.delay:4.1f} s killed {place}, ended {took:4.1f} s later"
            )
            told += f", code {job.code}, {'named' if named else 'not named'}"
            print(f"{told}; then {'equal' if same else 'DIFFERS'}", flush=True)
    waits.sort()
    print(f"{len(waits)} of {i} jobs killed, {equal} of {i} equal after the restart")
    if waits:
        print(f"seconds to the end: median {waits[len(waits) // 2]:.2f}, most {waits[-1]:.2f}")
    print("\n".join(faults) or "nothing hung, and nothing was left behind")
    return faults


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--plain", action="store_true", help="python, not gradtape train")
    given = parser.parse_args()
    sys.exit(bool(main(given.kills, given.ranks, given.epochs, given.seed, not given.plain)))
