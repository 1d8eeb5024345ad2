"""Write the files of a release: ``python tests/saving/releases/make_release_files.py 0.2.0``.

Without a version, they are those of the present one. A release that the changelog has is out: its
files are never written again. Until it has a tag, ``--public`` may stand in place of the version:
it records anew what the present version makes public.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from releases import contents, everything, keeping, public, runs  # noqa: E402

import gradtape as gt  # noqa: E402

CASES = {**contents.CASES, **everything.CASES}
SUMS, EXPECTED = "SHA256SUMS", "expected.npz"


def write(folder: Path) -> None:
    """Write all files of a release into a new folder."""
    folder.mkdir(parents=True)
    kept: contents.Arrays = {"public": np.frombuffer(public.packed(public.public()), "uint8")}
    classes: set[str] = set()
    for name, case in CASES.items():
        gt.random.set_seed(0)
        module, inputs = case.make(), case.inputs()
        path = folder / f"{name}.h5"
        packed = "gzip" if name in everything.CASES else None
        gt.save(module, path, case.signatures(), compression=packed)
        classes |= {cls for part in gt.saving.inspect(path).requires for cls in part.modules}
        if case.signatures():  # a module gets its signatures from a file
            module = gt.load(path)
        kept |= contents.below(f"inputs/{name}", inputs)
        kept |= contents.below(f"results/{name}", case.results(module, inputs))
    forgotten = {name for name, cls in gt.registry().modules.items() if ours(cls)} - classes
    if forgotten:
        sys.exit(f"no file has {', '.join(sorted(forgotten))}: add cases to everything.py")
    runs.write_weights(folder)
    for name in runs.WEIGHTS:
        kept |= contents.below(f"results/{name}", runs.weights_results(folder / name))
    runs.write_checkpoint(folder / runs.CHECKPOINT)
    whole = folder / "whole.h5"
    kept |= contents.below(f"results/{runs.CHECKPOINT}", runs.fit(whole, resume=False))
    whole.unlink()
    keeping.keep(folder / EXPECTED, kept)
    write_sums(folder)


def write_sums(folder: Path) -> None:
    """Write the digests of a release's files."""
    paths = sorted(path for path in folder.iterdir() if path.name != SUMS)
    lines = [f"{digest(path)}  {path.name}\n" for path in paths]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def record(folder: Path) -> None:
    """Record anew what the present version makes public."""
    kept = keeping.kept(folder / EXPECTED)
    kept["public"] = np.frombuffer(public.packed(public.public()), "uint8")
    keeping.keep(folder / EXPECTED, kept)
    write_sums(folder)


def has_tag(version: str) -> bool:
    """Tell whether git has the tag of a version."""
    command = ["git", "rev-parse", "--quiet", "--verify", f"refs/tags/v{version}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True).returncode == 0


def ours(cls: type) -> bool:
    """Tell whether a class is of gradtape and not of an installed plugin."""
    return cls.__module__.partition(".")[0] == "gradtape"


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(version: str = gt.__version__, root: Path = HERE) -> int:
    """Write the folder of a version into a folder of releases, unless the version is out."""
    if version == "--public":
        if has_tag(gt.__version__):
            print(f"{gt.__version__} is released: what it made public stays", file=sys.stderr)
            return 1
        record(root / gt.__version__)
        return 0
    named = re.fullmatch(r"[0-9]+(\.[0-9]+)+[a-z0-9]*", version)
    if root == HERE and not named:  # it is a folder that is replaced
        print(f"{version!r} is not a version, such as 0.2.0", file=sys.stderr)
        return 1
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    if root == HERE and f"## {version} (" in changelog:
        print(f"{version} is released: its files are never written again", file=sys.stderr)
        return 1
    folder = root / version
    shutil.rmtree(folder, ignore_errors=True)
    write(folder)
    files = list(folder.iterdir())
    print(f"{folder}: {len(files)} files, {sum(x.stat().st_size for x in files):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2], *map(Path, sys.argv[2:])))
