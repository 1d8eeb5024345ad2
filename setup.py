"""Find the packages: the repository root is ``gradtape``, and two folders hold packages of it, too.

``namespaces/`` holds the packages of public names (``gradtape.nn``, ``gradtape.random``, ...): a
folder called ``random`` at the root would shadow Python's own module if Python starts there.
``extras/`` holds what the base works without (``gradtape.export``, ``gradtape.plot``, ...).
The guides are included for ``gradtape tutorial``.

The description of the project is the README. Its links are relative, and would lead nowhere on an
index's page.
"""

import re
import tomllib
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
SECOND_ROOTS = ("namespaces", "extras")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)
LINK = re.compile(r"(!?)\[([^\[\]]*)\]\((?![a-z]+:)([^)\s]*)\)")
IMAGE = re.compile(r"(<(?:img|source)\b[^>]*?\bsrc(?:set)?=\")(?![a-z]+:)([^\"]*)(\"[^>]*>)")


def described(text: str, address: str, version: str) -> str:
    """Return a README whose links are absolute; without an address, its text without the links."""

    def absolute(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if not address:
            return "" if picture else words
        target = f"README.md{target}" if target.startswith("#") else target
        return f"{picture}[{words}]({address}/{'raw' if picture else 'blob'}/v{version}/{target})"

    def shown(match: re.Match[str]) -> str:
        before, target, after = match.groups()
        return f"{before}{address}/raw/v{version}/{target}{after}" if address else ""

    held: list[str] = []  # code keeps what looks like a link, and links keep code in their words

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    text = IMAGE.sub(shown, LINK.sub(absolute, CODE.sub(hold, text)))
    return re.sub(r"\0(\d+)\0", lambda match: held[int(match[1])], text)


def project() -> None:
    """Hand the project to setuptools."""
    packages = find_packages(".", exclude=["docs*", "tests*", *(f"{x}*" for x in SECOND_ROOTS)])
    elsewhere = {
        name: f"{root}/{name.replace('.', '/')}"
        for root in SECOND_ROOTS
        for name in find_packages(root)
    }
    told = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    address = told.get("urls", {}).get("Repository", "").rstrip("/")
    readme = (ROOT / "README.md").read_text("utf-8")
    setup(
        # so that this file, at the root, is not packed as a module
        script_name=Path(__file__).name,
        long_description=described(readme, address, told["version"]),
        long_description_content_type="text/markdown",
        packages=[
            "gradtape",
            *(f"gradtape.{name}" for name in (*packages, *elsewhere, "docs.guides")),
        ],
        package_dir={
            "gradtape": ".",
            **{f"gradtape.{name}": folder for name, folder in elsewhere.items()},
        },
    )


if __name__ == "__main__":
    project()
