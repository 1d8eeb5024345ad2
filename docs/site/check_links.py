"""Check every link of a built site: that its page or file is there, and its anchor in it.

A reference that was left as it was written, ``[name][path]``, counts as broken too.

python docs/site/check_links.py docs-site
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Found(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.left: list[str] = []
        self._code = 0

    def handle_data(self, data: str) -> None:
        if not self._code:
            self.left += re.findall(r"^\]\[[\w.]*\]", data)

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag in ("pre", "script", "style")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._code += tag in ("pre", "script", "style")
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif (name == "id" or (tag == "a" and name == "name")) and value:
                self.anchors.add(value)


def broken(site: Path) -> tuple[int, list[str]]:
    """Return how many links were followed, and those that lead nowhere."""
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Found()
        found[path].feed(path.read_text("utf-8"))
    followed = 0
    bad = [f"{path.relative_to(site)}: {x}" for path, page in found.items() for x in page.left]
    for path, page in found.items():
        if path.name == "404.html":  # its links begin at the root of a server
            continue
        for link in sorted(page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            followed += 1
            if parts.fragment.startswith("/"):  # a view that the page's script shows
                parts = parts._replace(fragment="")
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            missing = not target.is_file()
            if missing or (anchor and target in found and anchor not in found[target].anchors):
                bad.append(f"{path.relative_to(site)}: {link}")
    return followed, bad


def main(arguments: Sequence[str]) -> int:
    """Check the site in a folder; 1 if a link leads nowhere."""
    followed, bad = broken(Path(arguments[0]).resolve())
    print("\n".join([*bad, f"{followed} links, {len(bad)} broken"]))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
