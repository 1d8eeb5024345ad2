"""Build sdist and wheel twice, compare them byte by byte, and check what the index would check.

python .ci/dist.py dist          # needs build and twine; make dist installs them

Both come from what git tracks, with the commit's date, so that everybody gets the same bytes from
the same commit. setuptools writes the time into an sdist, so it is packed anew here.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def git(*arguments: str) -> str:
    """Return what git prints; in an sdist there is none."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def epoch() -> int:
    """Return the date of the commit, or what the environment says."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or 315532800)


def pack_again(sdist: Path, date: int) -> None:
    """Pack an sdist in a fixed order with one date, one owner and one mode for all."""
    raw = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=raw, mode="w") as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = date, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    with sdist.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=date) as packed:
        packed.write(raw.getvalue())


def build(out: Path, isolated: bool = True) -> list[Path]:
    """Build from a copy of the tracked files, the wheel from the sdist; return both."""
    date = epoch()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(date)}
    options = [] if isolated else ["--no-isolation", "--skip-dependency-check"]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        for name in filter(None, git("ls-files", "-z").split("\0")):
            if (ROOT / name).is_file():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, source / name)
        command = [sys.executable, "-m", "build", *options, "--outdir", str(out)]
        subprocess.run([*command, "--sdist", str(source)], env=environment, check=True)
        (sdist,) = out.glob("*.tar.gz")
        pack_again(sdist, date)
        with tarfile.open(sdist) as held:
            held.extractall(folder, filter="data")
        unpacked = Path(folder, sdist.name.removesuffix(".tar.gz"))
        subprocess.run([*command, "--wheel", str(unpacked)], env=environment, check=True)
    return sorted(out.iterdir())


def main(arguments: Sequence[str]) -> int:
    """Build twice into a folder; 1 if the two differ."""
    out = Path(arguments[0])
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    isolated = "--no-isolation" not in arguments
    first = build(out.resolve(), isolated)
    with tempfile.TemporaryDirectory() as folder:
        again = {path.name: path.read_bytes() for path in build(Path(folder), isolated)}
    same = True
    for path in first:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        equal = again.get(path.name) == path.read_bytes()
        same &= equal
        print(f"{digest}  {path.name}  {'the same twice' if equal else 'DIFFERS'}")
    if not same or len(again) != len(first):
        return 1
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, first)]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
