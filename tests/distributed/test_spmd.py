"""JAX's devices, in one process and in two, checked by scripts of their own (spmd_checks.py)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import spmd_checks

pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
SCRIPT = Path(__file__).with_name("spmd_checks.py")
SECONDS = 240  # who takes so long is stuck


def started(kind: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    one["XLA_FLAGS"] = "--xla_backend_optimization_level=0"  # compiling is most of the work
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), kind, str(folder / "found")],
        env={**os.environ, **one, "JAX_PLATFORMS": "cpu", "PYTHONSAFEPATH": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("kind", spmd_checks.CHECKS)
def test_checks(kind: str, tmp_path: Path) -> None:
    environments: list[dict[str, str]] = [{}]
    if kind == "pair":
        where = f"127.0.0.1:{free_port()}"
        place = {"JAX_COORDINATOR_ADDRESS": where, "JAX_NUM_PROCESSES": "2"}
        environments = [{**place, "JAX_PROCESS_ID": str(rank)} for rank in range(2)]
    processes = [started(kind, tmp_path, **place) for place in environments]
    said = []
    for process in processes:
        try:
            said.append(process.communicate(timeout=SECONDS)[0])
        except subprocess.TimeoutExpired:
            process.kill()
            said.append(f"{process.communicate()[0]}\nkilled after {SECONDS} s")
    paths = [tmp_path / f"found.{rank}" for rank in range(len(processes))]
    assert all(path.exists() for path in paths), "\n".join(said)
    assert not any(process.returncode for process in processes), "\n".join(said)
    wrong = [
        f"{name} on rank {rank}: {told}"
        for rank, path in enumerate(paths)
        for name, told in json.loads(path.read_text()).items()
        if told
    ]
    assert not wrong, "\n".join(wrong)
    names = json.loads(paths[0].read_text())
    assert names.keys() == spmd_checks.CHECKS[kind].keys()
