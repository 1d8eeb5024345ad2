"""Measure commits with the suite in this folder, and write docs/benchmarks/history.md.

``make bench-history`` measures the commits that have results again;
``make bench-history COMMITS="v0.2.0 HEAD"`` measures others. asv builds each commit in .cache/asv.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from asv.commands.run import Run
from asv.config import Config
from asv.machine import Machine, MachineCollection

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".cache" / "asv"


def machine() -> tuple[str, Path]:
    """Describe this machine in .cache/asv by what it has, without names of host and kernel."""
    found = Machine.get_defaults()
    found["os"] = platform.system()
    name = found["machine"] = f"{found['num_cpu']}-cores-{found['arch']}"
    path = CACHE / "machine.json"
    CACHE.mkdir(parents=True, exist_ok=True)
    MachineCollection.save(name, found, str(path))
    return name, path


def commits(names: Sequence[str]) -> list[str]:
    """Return the hashes of revisions."""
    command = ["git", "rev-parse", "--verify", "--quiet"]
    return [
        subprocess.check_output([*command, f"{name}^{{commit}}"], text=True, cwd=ROOT).strip()
        for name in names
    ]


def main(names: Sequence[str]) -> int:
    """Measure revisions, or again those that have results."""
    hashes = commits(names)
    os.chdir(HERE)  # paths of the configuration begin here
    name, path = machine()
    failed = Run.run(
        Config.load("asv.conf.json"),
        range_spec=hashes or "EXISTING",
        machine=name,
        show_stderr=True,
        _machine_file=str(path),
    )
    page = ROOT / "docs" / "make_history_page.py"
    return int(failed or subprocess.call([sys.executable, str(page)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
