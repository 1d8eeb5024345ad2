"""Build sdist and wheel twice, compare them byte by byte, and check what is in them.

python .ci/dist.py dist          # needs build and twine; make dist installs them

Both come from what git tracks, with the commit's date and one version of setuptools, so that
everybody gets the same bytes from the same commit. setuptools writes the time into an sdist, so it
is packed anew here; and a wheel has the modes of the files that setuptools writes, so the umask is
fixed. What has not been committed is an error once the files are there.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What builds. A wheel names it with its version, so any other gives other bytes.
SETUPTOOLS = "setuptools==84.2.1"
#: What a wheel has: modules, their types, the data of the package, the guides, and its metadata.
KEPT = re.compile(
    r"gradtape/(?!tests/|docs/|benchmarks/|.*(?:__pycache__|/test_))[\w./-]+\.(?:py|pyi|typed)$"
    r"|gradtape/(?:pyproject\.toml|datasets/(?:digits\.h5|README\.md)|docs/guides/[\w-]+\.md)$"
    r"|gradtape-[\w.]+\.dist-info/"
)
RELATIVE = re.compile(r"(?:\]\(|(?:src|srcset|href)=\")(?![a-z]+:)([^)\"\s]*)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def git(*arguments: str, root: Path = ROOT) -> str:
    """Return what git prints; leave where there is no repository, as in an sdist."""
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"distributions are built from a clone, and git says: {done.stderr.strip()}")
    return done.stdout


def tracked(root: Path = ROOT) -> set[str]:
    """Return the files that git tracks."""
    return set(filter(None, git("ls-files", "-z", root=root).split("\0")))


def uncommitted(root: Path = ROOT) -> list[str]:
    """Tell which tracked files are not as in the commit."""
    status = git("status", "--porcelain", "--untracked-files=no", root=root)
    return [f"not committed: {line[3:]}" for line in status.splitlines()]


def epoch() -> int:
    """Return the date of the commit, or what the environment says."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    return int(told or git("log", "-1", "--no-show-signature", "--format=%ct"))


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


def unpack(sdist: Path, folder: Path) -> None:
    """Unpack an sdist that was built here."""
    with tarfile.open(sdist) as held:
        # extractall(filter="data") needs Python 3.11.4
        held.extraction_filter = getattr(tarfile, "data_filter", None)
        held.extractall(folder)


def surroundings(folder: Path, date: int) -> dict[str, str]:
    """Return the environment of a build, which installs one version of setuptools."""
    pin = folder / "constraints.txt"
    pin.write_text(f"{SETUPTOOLS}\n", "utf-8")
    return {**os.environ, "SOURCE_DATE_EPOCH": str(date), "PIP_CONSTRAINT": str(pin)}


def build(out: Path, isolated: bool = True) -> list[Path]:
    """Build from a copy of the tracked files, the wheel from the sdist; return both."""
    date = epoch()
    options = [] if isolated else ["--no-isolation", "--skip-dependency-check"]
    with tempfile.TemporaryDirectory() as folder:
        environment = surroundings(Path(folder), date)
        source = Path(folder, "source")
        for name in sorted(tracked()):
            if (ROOT / name).is_file():
                (source / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(ROOT / name, source / name)
        command = [sys.executable, "-m", "build", *options, "--outdir", str(out)]
        subprocess.run([*command, "--sdist", str(source)], env=environment, check=True)
        (sdist,) = out.glob("*.tar.gz")
        pack_again(sdist, date)
        unpack(sdist, Path(folder))
        unpacked = Path(folder, sdist.name.removesuffix(".tar.gz"))
        subprocess.run([*command, "--wheel", str(unpacked)], env=environment, check=True)
    return sorted(out.iterdir())


def problems_of_wheel(path: Path) -> list[str]:
    """Tell what a wheel has too much of, and what it lacks."""
    with zipfile.ZipFile(path) as held:
        names = held.namelist()
        (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
        description = held.read(metadata).decode().partition("\n\n")[2]
    information = metadata.rpartition("/")[0]
    told = [f"{name} is no part of the package" for name in names if not KEPT.match(name)]
    for needed in ("gradtape/py.typed", f"{information}/licenses/LICENSE"):
        told += [] if needed in names else [f"{needed} is missing"]
    told += [
        f"a link to {x} leads nowhere on an index"
        for x in RELATIVE.findall(CODE.sub("", description))
    ]
    return told + ([] if description.strip() else ["the description is empty"])


def problems_of_sdist(path: Path) -> list[str]:
    """Tell how an sdist differs from what git tracks, besides what setuptools adds."""
    with tarfile.open(path) as held:
        names = {x.name.partition("/")[2] for x in held.getmembers() if x.isfile()}
    own = {"PKG-INFO", "setup.cfg", *(name for name in names if ".egg-info/" in name)}
    wanted = tracked()
    told = [f"{name} is not in git" for name in sorted(names - own - wanted)]
    return told + [f"{name} is missing" for name in sorted(wanted - names)]


def main(arguments: Sequence[str]) -> int:
    """Build twice into a folder; 1 if the two differ, or hold what they should not."""
    os.umask(0o022)
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
    wheel, sdist = sorted(first, key=lambda path: path.suffix != ".whl")
    told = [*problems_of_wheel(wheel), *problems_of_sdist(sdist), *uncommitted()]
    print("\n".join(told) or "contents as they should be")
    if told:
        return 1
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, first)]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
