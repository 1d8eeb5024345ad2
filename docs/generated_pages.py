"""What the scripts ``docs/make_*.py`` share: tables, and writing or checking what they generate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

__all__ = ["markdown_rows", "write_or_check"]


def markdown_rows(header: Sequence[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    """Give the lines of a table."""
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    for row in body:
        yield f"| {' | '.join(row)} |"


def write_or_check(texts: Mapping[Path, str], arguments: Sequence[str]) -> int:
    """Write texts to their files; with ``--check``, return 1 if a file has another text."""
    if "--check" in arguments:
        return int(any(not p.exists() or p.read_text("utf-8") != text for p, text in texts.items()))
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return 0
