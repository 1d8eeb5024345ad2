"""The graphs of benchmarks over commits: what asv publishes of the results in the repository.

Nothing is measured here. asv reads dates and parents of commits from git, so there are no graphs
without it, as in a source distribution, and the site says what is missing.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "docs" / "benchmarks" / "asv"


def _git(*arguments: str) -> str | None:
    """Return what git prints, None if it fails."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def hindrance() -> str | None:
    """Return why there can be no graphs here, or None."""
    paths = list((SUITE / "results").glob("*/*-*.json"))
    if not paths:
        return "no commit was measured: make bench-history COMMITS=HEAD"
    if importlib.util.find_spec("asv_runner") is None:
        return 'asv is missing: pip install "gradtape[history]"'
    top = shutil.which("git") and _git("rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != ROOT:
        return "this is no git repository, and the graphs need its history"
    for path in paths:
        commit = json.loads(path.read_text("utf-8"))["commit_hash"]
        if _git("merge-base", "--is-ancestor", commit, "HEAD") is None:
            return f"the history lacks {commit[:8]}, which was measured: git fetch --unshallow"
    return None


def publish(folder: Path) -> str | None:
    """Write the graphs into a folder; return why not if that is impossible here."""
    reason = hindrance()
    if reason is not None:
        return reason
    command = [sys.executable, "-m", "asv", "publish", "--no-pull"]
    places = ["--config", str(SUITE / "asv.conf.json"), "--html-dir", str(folder)]
    done = subprocess.run([*command, *places], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"asv publish failed:\n{done.stdout}{done.stderr}")
    return None
