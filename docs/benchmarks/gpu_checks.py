"""What ``gpu.py`` runs beside its table: is gradtape right on this GPU, and what does it copy?"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

__all__ = ["CHECKS", "Check", "checked"]

TESTS = Path(__file__).resolve().parents[2] / "tests"
#: Where tests marked ``gpu`` are.
WITH_GPU = ("ops/test_ops_on_cupy.py", "plugins/cupy_*", "plugins/test_cupy*.py")
#: Counts copies between host and device in steps, by what CUDA itself tells PyTorch's profiler.
TRANSFERS = """
import sys
import torch
if not torch.cuda.is_available():
    sys.exit("PyTorch finds no GPU: its profiler is what counts copies")
import networks
task = networks.TASKS["mlp256"][0]
for how in sys.argv[1:]:
    made = networks.gradtape(task, networks.Numbers(), "gpu", how)
    for _ in range(5):
        made.step()
    made.finish()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
        for _ in range(10):
            made.step()
        made.finish()
    events = [(e.key, e.count) for e in p.key_averages()]
    assert events, "the profiler saw nothing on the GPU"
    found = {way: sum(n for k, n in events if k.startswith("Memcpy " + way))
             for way in ("HtoD", "DtoH")}
    print(f"{how}: in 10 steps {found['HtoD']} copies to the device, {found['DtoH']} from it")
"""
DEMO = """
import sys
import gradtape as gt
from gradtape.cli.demo import run
with gt.backend(sys.argv[2]):
    sys.exit(run(sys.argv[1], epochs=10))
"""
BACKEND = """
import sys
import gradtape as gt
sys.exit(bool(gt.testing.check_backend(sys.argv[1], only=sys.argv[2:] or None).wrong))
"""


class Check(NamedTuple):
    """A check: its title, its command, given a folder and a device, and its most seconds."""

    title: str
    command: Callable[[str, str], Sequence[str]]
    seconds: float
    gpu: bool = False


def _backend(device: str) -> str:
    return "cupy" if device == "gpu" else "numpy"


def _code(text: str, *told: str) -> list[str]:
    return ["-c", text, *told]


def _tests(folder: str, device: str) -> list[str]:
    # each process has some hundred MB of the GPU's memory, and compiles kernels on a core
    processes = ["-n", str(min(16, os.cpu_count() or 1)), "--dist", "worksteal"]
    paths = [str(path) for pattern in WITH_GPU for path in sorted(TESTS.glob(pattern))]
    return ["-P", "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", *processes, *paths]


def _samples(folder: str, device: str) -> list[str]:
    some = () if device == "gpu" else ("sin", "matmul", "gt.nn.dropout")
    return _code(BACKEND, _backend(device), *some)


CHECKS = {
    "doctor": Check(
        "`gradtape doctor`", lambda folder, device: ["-m", "gradtape", "doctor", "--no-measure"], 60
    ),
    "transfers": Check(
        "copies between host and device",
        lambda folder, device: _code(TRANSFERS, "eager", "default", "cuda_graphs"),
        60,
        gpu=True,
    ),
    "tests": Check("tests marked `gpu`", _tests, 300, gpu=True),
    "backend": Check("`gt.testing.check_backend`", _samples, 150),
    "demo": Check(
        "the digits demo; its file is verified on the CPU",
        lambda folder, device: _code(DEMO, folder, _backend(device)),
        90,
    ),
}


def checked(name: str, device: str, left: float) -> tuple[str, str]:
    """Run a check; return how it ended in a word or two, and a section of the report.

    Parameters
    ----------
    name
        One of :data:`CHECKS`.
    device
        ``"gpu"`` or ``"cpu"``.
    left
        How many seconds there are.
    """
    check = CHECKS[name]
    if check.gpu and device != "gpu":
        ended, told = "left out: it needs a GPU", ""
    elif left <= 0:
        ended, told = "left out: no time was left", ""
    else:
        ended, told = _run(check, device, min(left, check.seconds))
    lines = [f"## {check.title}: {ended}", ""]
    if told:
        lines += ["```", *told.splitlines()[-60:], "```", ""]
    return ended, "\n".join(lines)


def _run(check: Check, device: str, seconds: float) -> tuple[str, str]:
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            run = subprocess.run(
                [sys.executable, *check.command(folder, device)],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=seconds,
                cwd=Path(__file__).parent,
            )
        except subprocess.TimeoutExpired as error:
            said = error.stdout or b""
            text = said.decode(errors="replace") if isinstance(said, bytes) else said
            return f"stopped after {seconds:.0f} s", text
    took = time.perf_counter() - start
    # a bar that is drawn over and over counts as its last line
    said = "\n".join(line.rpartition("\r")[2] for line in run.stdout.splitlines())
    ended = f"passed in {took:.0f} s" if run.returncode == 0 else f"FAILED ({run.returncode})"
    return ended, said
