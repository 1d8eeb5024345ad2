"""Changes of a page's text that its look on the site needs. The functions need no MkDocs."""

from __future__ import annotations

import re

_FIRST = re.compile(r"(# .+\n\n)((?:.+\n)+)\n")
_MARKUP = re.compile(r"[`*_<\[!]")
#: A line of code that is indented, up to the indentation.
_INDENTED = re.compile(r'(<span id="__span-[\d-]+")(>(?:<a [^>]*></a>)?(?:<span class="w">)?)( +)')


def first_paragraph(markdown: str) -> tuple[str, str]:
    """Return the paragraph after a page's title, and the page without that paragraph.

    The band of the home page shows the paragraph as plain text.

    Raises:
        ValueError: If the page does not begin with a title and a paragraph without markup.
    """
    found = _FIRST.match(markdown)
    if found is None or _MARKUP.search(found[2]):
        raise ValueError("README.md must begin with a title and a paragraph without markup")
    return " ".join(found[2].split()), found[1] + markdown[found.end() :]


def with_indentation(html: str) -> str:
    """Return a page whose lines of code have their indentation as ``--in``, for a style sheet.

    A line that is too long for the window wraps. With the indentation known, the line goes on to
    the right of its first column, not to the left of it.
    """
    return _INDENTED.sub(lambda m: f'{m[1]} style="--in:{len(m[3])}ch"{m[2]}{m[3]}', html)
