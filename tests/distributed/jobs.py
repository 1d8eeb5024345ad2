"""Starts jobs of several ranks by the mpiexec that is beside Python, and looks at their end."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
MPIEXEC = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
#: Why no job can be started here, if so.
MISSING = None if MPIEXEC else "there is no mpiexec: pip install mpich"
try:
    import mpi4py  # noqa: F401
except ImportError:
    MISSING = 'mpi4py is not installed: pip install "gradtape[mpi]"'
MARK = "GRADTAPE_TEST_JOB"


@dataclass
class Job:
    """What a job was like."""

    code: int = 0
    said: str = ""
    seconds: float = 0.0
    #: Shared memory that was seen in use, temporary files and processes that it left behind.
    left: list[str] = field(default_factory=list)

    def of(self, rank: int) -> str:
        """Return the lines that stand behind a rank's prefix."""
        ends = r"(?=\n|\[ranks? \S+ of \d+ on |$)"  # lines of ranks may run into each other
        return "\n".join(re.findall(rf"\[rank {rank} of \d+ on \S+\] (.*?){ends}", self.said))


def run(
    *command: Any,
    ranks: int = 2,
    train: bool = False,
    seconds: float = 60.0,
    meanwhile: Callable[[Running], None] | None = None,
    **environment: str,
) -> Job:
    """Run a script with its arguments on so many ranks, and wait for the job's end.

    A job that does not end in time is killed, and its code is -1. ``meanwhile`` is called with the
    job while it runs.
    """
    assert MPIEXEC is not None
    how = ["-m", "gradtape", "train"] if train else []
    with tempfile.TemporaryDirectory() as temporary:
        running = Running(
            [MPIEXEC, "-n", str(ranks), sys.executable, *how, *map(str, command)],
            {"TMPDIR": temporary, **environment},
        )
        job = running.end(meanwhile, seconds)
        job.left += [f"temporary file {path.name}" for path in Path(temporary).iterdir()]
    return job


class Running:
    """A job that runs."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.token = f"{os.getpid()}.{time.monotonic_ns()}"
        one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        one["MPIR_CVAR_ENABLE_HEAVY_YIELD"] = "1"  # who waits sleeps: there are few cores for all
        settings = {"PYTHONSAFEPATH": "1", "PYTHONDONTWRITEBYTECODE": "1", MARK: self.token}
        self.start = time.monotonic()
        self.shared: set[str] = set()
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **one, **settings, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def ranks(self) -> dict[int, int]:
        """Return the processes that run a rank's Python, by the rank."""
        found = {}
        for pid in self.processes():
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                rank = re.search(rb"\0PMI_RANK=(\d+)\0", Path(f"/proc/{pid}/environ").read_bytes())
                if rank and b"python" in words[0] and not any(b"supervisor" in x for x in words):
                    found[int(rank[1])] = pid
        return found

    def processes(self) -> list[int]:
        """Return all processes of the job, wherever they were started from."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if f"{MARK}={self.token}\0".encode() in (folder / "environ").read_bytes():
                    found.append(int(folder.name))
        return found

    def look(self) -> None:
        """Note what shared memory the job has that has a name."""
        for pid in self.processes():
            with suppress(OSError):
                maps = Path(f"/proc/{pid}/maps").read_text()
                self.shared |= set(re.findall(r" (/dev/shm/\S+)$", maps, re.MULTILINE))

    def end(self, meanwhile: Callable[[Running], None] | None, seconds: float) -> Job:
        """Wait for the job's end, and see what it leaves behind."""
        said: list[str] = []
        reading = threading.Thread(target=lambda: said.append(self.process.communicate()[0]))
        reading.start()
        if meanwhile is not None:
            meanwhile(self)
        reading.join(max(0.1, seconds - (time.monotonic() - self.start)))
        took = time.monotonic() - self.start
        hung = reading.is_alive()
        if hung:
            for pid in self.processes():
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            reading.join()
        job = Job(self.process.returncode if not hung else -1, said[0], took)
        job.left += [f"process {pid}" for pid in self._orphans()]
        job.left += [f"shared memory {path}" for path in self.shared if Path(path).exists()]
        if hung:
            job.left.append(f"all of it: it hung, and was killed after {took:.0f} s")
        return job

    def _orphans(self) -> list[int]:
        until = time.monotonic() + 2
        while (left := self.processes()) and time.monotonic() < until:
            time.sleep(0.05)
        return left


def found_by(folder: Path, ranks: int, *names: str) -> dict[str, Any]:
    """Return what the checks of programs/checks.py found on so many ranks, by their names.

    Those of a number of ranks are one job, which is started once for all processes of the tests.

    Parameters
    ----------
    folder
        Where the results are, and what the programs write.
    ranks
        How many run them.
    names
        Which checks; by default those of that number of ranks.
    """
    if MISSING is not None:
        pytest.skip(MISSING)
    if (ranks, names) != (2, ()):  # which begin what others continue
        found_by(folder, 2)
    path = folder / f"{'-'.join(names) or 'all'} on {ranks}.json"
    with locked(path.with_suffix(".lock")):
        if not path.exists():
            place = {"GRADTAPE_TEST_FOLDER": str(folder), "GRADTAPE_TEST_FOUND": f"{path}.lines"}
            job = run(
                *(PROGRAMS / "checks.py", *names),
                ranks=ranks,
                seconds=240,
                PYTHONPATH=str(PROGRAMS),
                **place,
            )
            lines = Path(f"{path}.lines")
            said = lines.read_text().splitlines() if lines.exists() else []
            found = {name: x for line in said for name, x in json.loads(line).items()}
            failure = "" if job.code == 0 and not job.left else f"{job.said[-8000:]}\n{job.left}"
            path.write_text(json.dumps([found, failure]))
    found, failure = json.loads(path.read_text())
    assert not failure, failure
    return found


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Run a block in one process of the tests at a time."""
    import fcntl  # where there is none, there is no mpiexec either

    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
