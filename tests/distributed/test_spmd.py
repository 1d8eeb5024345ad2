"""JAX's devices, in one process and in two, checked by scripts of their own (spmd_checks.py)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import spmd_checks

pytest.importorskip("jax", reason='pip install "gradtape[jax]"')
SCRIPT = Path(__file__).with_name("spmd_checks.py")
SECONDS = 110


def started(kind: str, folder: Path, **environment: str) -> subprocess.Popen[str]:
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
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


def results(kind: str, folder: Path) -> list[dict[str, Any]]:
    """Run the checks in one process or two, and return what each of them found."""
    environments: list[dict[str, str]] = [{}]
    if kind == "pair":
        place = {"JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{free_port()}", "JAX_NUM_PROCESSES": "2"}
        environments = [{**place, "JAX_PROCESS_ID": str(rank)} for rank in range(2)]
    running = [started(kind, folder, **environment) for environment in environments]
    said = []
    for process in running:
        try:
            said.append(process.communicate(timeout=SECONDS)[0])
        except subprocess.TimeoutExpired:
            process.kill()
            said.append(process.communicate()[0] + f"\nkilled after {SECONDS} s")
    paths = [folder / f"found.{rank}" for rank in range(len(running))]
    assert all(path.exists() for path in paths), "\n".join(said)
    assert not any(process.returncode for process in running), "\n".join(said)
    return [json.loads(path.read_text()) for path in paths]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Any:
    kept: dict[str, Any] = {}

    def of(kind: str) -> Any:
        if kind not in kept:
            try:
                kept[kind] = results(kind, tmp_path_factory.mktemp(kind))
            except AssertionError as error:
                kept[kind] = error
        if isinstance(kept[kind], AssertionError):
            raise kept[kind]
        return kept[kind]

    return of


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in spmd_checks.CHECKS.items() for name in names]
)
def test_check(found: Any, kind: str, name: str) -> None:
    for rank, told in enumerate(found(kind)):
        assert not told[name], f"rank {rank}: {told[name]}"
