"""Set the version, write the files of a release, and turn docs/changes into its changelog.

    python .ci/release_notes.py 0.2.0               # make release-notes VERSION=0.2.0 calls it
    python .ci/release_notes.py 0.2.0 2027-01-31    # another date than today

The version goes into pyproject.toml, __init__.py, CITATION.cff and SECURITY.md, the date into
CITATION.cff. It needs towncrier, and gradtape as an editable installation of this checkout.
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = "tests/saving/releases/make_release_files.py"
#: By file, the words that state a version, and what takes their place.
LINES = {
    "pyproject.toml": (r'^version = ".*"$', 'version = "{version}"'),
    "__init__.py": (r'^__version__ = ".*"$', '__version__ = "{version}"'),
    "CITATION.cff": (
        r"^version: .*$(\ndate-released: .*$)?",
        "version: {version}\ndate-released: {date}",
    ),
    "SECURITY.md": (r"latest minor version, now [\d.]+", "latest minor version, now {minor}"),
}


def set_version(root: Path, version: str, date: str) -> None:
    """Write the version, and the date, into each file that states them."""
    for name, (line, new) in LINES.items():
        text = (root / name).read_text("utf-8")
        told = new.format(version=version, minor=version.rpartition(".")[0], date=date)
        text, count = re.subn(line, told, text, flags=re.MULTILINE)
        if count != 1:
            sys.exit(f"{name} has {count} lines for the version")
        (root / name).write_text(text, "utf-8")


def problem(root: Path, version: str, date: str) -> str:
    """Tell what keeps a version from being released, or return nothing."""
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)", version)
    if parts is None:
        return f"say which version, three numbers such as 0.2.0, and not {version!r}"
    try:
        datetime.date.fromisoformat(date)
    except ValueError:
        return f"a date is such as 2027-01-31, and not {date!r}"
    if f"## {version} (" in (root / "CHANGELOG.md").read_text("utf-8"):
        return f"the changelog has {version} already"
    if not any((root / "docs" / "changes").glob("+*.md")):
        return "docs/changes has no change"
    return ""


def main(arguments: Sequence[str], root: Path = ROOT) -> int:
    """Make files and changelog of a version, or say why not."""
    version = arguments[0] if arguments else ""
    date = arguments[1] if arguments[1:] else datetime.date.today().isoformat()
    wrong = problem(root, version, date)
    if wrong:
        print(wrong, file=sys.stderr)
        return 1
    set_version(root, version, date)
    commands = [["-m", "towncrier", "build", "--yes", "--version", version, "--date", date]]
    if version.endswith(".0"):  # once the changelog has the version, they are never written again
        commands.insert(0, [str(root / FILES), version])
    for command in commands:
        subprocess.run([sys.executable, *command], cwd=root, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
