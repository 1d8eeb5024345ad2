"""Pages that show source files, with an anchor for each line: what links to code open."""

from __future__ import annotations

import html
from pathlib import Path

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound

ROOT = Path(__file__).resolve().parents[2]
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path} - gradtape</title>
<link rel="icon" href="{up}assets/logo.svg">
<link rel="stylesheet" href="{up}assets/source.css">
</head>
<body>
<header><a href="{up}index.html">gradtape</a> <span>{path}</span></header>
<main>
{body}
</main>
</body>
</html>
"""
#: What a folder's page leaves out.
HIDDEN = ("__pycache__", ".pytest_cache", ".ruff_cache")


def uri(path: str) -> str:
    """Return the address of the page that shows a file or folder of the repository."""
    shown = "/".join(part.replace(".", "dot-", part[0] == ".") for part in path.split("/"))
    return f"source/{shown}.html" if (ROOT / path).is_file() else f"source/{shown}/index.html"


def page(path: str) -> str:
    """Return the page that shows a file or folder of the repository."""
    place = ROOT / path
    up = "../" * uri(path).count("/")
    body = _file(place) if place.is_file() else _folder(place)
    return PAGE.format(path=html.escape(path or "/"), up=up, body=body)


def _file(place: Path) -> str:
    try:
        text = place.read_text("utf-8")
    except UnicodeDecodeError:
        return "<p>A binary file.</p>"
    try:
        lexer = get_lexer_for_filename(place.name)
    except ClassNotFound:
        lexer = TextLexer()
    formatter = HtmlFormatter(
        linenos="inline", lineanchors="L", anchorlinenos=True, cssclass="code"
    )
    shown: str = highlight(text, lexer, formatter)
    return shown


def shown_in_folder(path: str) -> list[str]:
    """Return what a folder's page links to."""
    place = ROOT / path
    names = [
        x for x in sorted(place.iterdir()) if x.name not in HIDDEN and not x.name.endswith(".pyc")
    ]
    return [x.relative_to(ROOT).as_posix() for x in names if x.is_file()]


def _folder(place: Path) -> str:
    path = place.relative_to(ROOT).as_posix()
    rows = [
        f'<li><a href="../{"../" * path.count("/")}{uri(x).removeprefix("source/")}">'
        f"{html.escape(x.rpartition('/')[2])}</a></li>"
        for x in shown_in_folder(path)
    ]
    return f"<ul>{''.join(rows)}</ul>"


def style() -> str:
    """Return the style sheet of these pages."""
    light = HtmlFormatter(style="friendly").get_style_defs(".code")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".code")
    return f"""\
:root {{ color-scheme: light dark; }}
body {{ margin: 0; font: 14px/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }}
header {{ position: sticky; top: 0; z-index: 1; padding: .7rem 1rem; }}
header {{ background: #3f51b5; color: #fff; }}
header a {{ color: #fff; font-weight: bold; margin-right: 1rem; }}
main {{ padding: 0 1rem; overflow-x: auto; }}
.code pre {{ line-height: 1.5 !important; }}
.code a {{ color: inherit; text-decoration: none; }}
.code .linenos {{ opacity: .45; padding-right: 1rem; user-select: none; }}
.code a:target, .code a:target + .linenos {{ background: #ffe08a; scroll-margin-top: 4rem; }}
.code a[id] {{ scroll-margin-top: 4rem; }}
{light}
@media (prefers-color-scheme: dark) {{
body {{ background: #0d1117; color: #c9d1d9; }}
{dark}
}}
"""
