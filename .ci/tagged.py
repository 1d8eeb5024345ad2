"""Print the notes of a tagged release; an error if tag, version and changelog do not agree.

python .ci/tagged.py v0.2.0 https://host/owner/name > notes.md

The notes are the version's section of the changelog. Its links get the repository's address. What
is still in docs/changes is not in it, and is an error, too.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The characters that a release's text may have on GitHub.
MOST = 125_000
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def notes(root: Path, tag: str, address: str) -> str:
    """Return the section of a tag in the changelog, or leave with what is wrong."""
    version = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    if tag != f"v{version}":
        sys.exit(f"the tag is {tag}, and the version in pyproject.toml {version}")
    changelog = (root / "CHANGELOG.md").read_text("utf-8")
    title, _, section = changelog.partition("\n## ")[2].partition("\n")
    if not re.fullmatch(rf"{re.escape(version)} \(\d{{4}}-\d\d-\d\d\)", title):
        sys.exit(f"the changelog begins with {title!r}, and not with {version} and its date")
    left = sorted(path.name for path in (root / "docs" / "changes").glob("+*.md"))
    if left:
        sys.exit(f"the changelog lacks what docs/changes has: {', '.join(left)}")
    text = section.partition("\n## ")[0].strip()
    parts = CODE.split(text)  # every second one is code
    target = f"]({address}/blob/{tag}/"
    parts[::2] = [re.sub(r"\]\((?![a-z]+:)", lambda _: target, part) for part in parts[::2]]
    text = "".join(parts)
    if len(text) > MOST:  # found before anything is published
        sys.exit(f"the notes have {len(text)} characters, and GitHub takes {MOST}")
    return text


def main(arguments: Sequence[str]) -> int:
    """Print the notes of a tag."""
    if len(arguments) != 2:
        sys.exit("say which tag, and the repository's address")
    tag, address = arguments
    print(notes(ROOT, tag, address.rstrip("/")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
