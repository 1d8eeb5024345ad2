"""Write the table in docs/format-classes.md: the classes that files name, from the classes.

python docs/make_format_classes.py            # write the table
python docs/make_format_classes.py --check    # exit with 1 if it is not up to date

The keys of `config` and their defaults follow from the constructors. A row keeps the types and the
texts about attributes that are in the page. For a new class, both are proposed: complete them.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "format-classes.md"
TESTS = ROOT / "tests"
sys.path += [str(TESTS), str(TESTS / "saving"), str(ROOT / "docs")]

import test_format_classes as known  # noqa: E402
from generated_pages import markdown_rows, write_or_check  # noqa: E402


def kind_of(name: str, parameter: inspect.Parameter) -> str:
    """Return the type of a key: the page's, what the constructor says, or that of its namesakes."""
    own = known.keys(name) if name in known.ROWS else {}
    if parameter.name in own:
        return own[parameter.name][0]
    for kind in ("activation", "initializer", "dtype"):
        if parameter.name.endswith(kind):
            return kind
    said = str(parameter.annotation).partition(" | ")[0]
    others = [row for row in map(known.keys, known.ROWS) if parameter.name in row]
    return said if said in known.TYPES or not others else others[0][parameter.name][0]


def keys_of(name: str) -> str:
    """Return the second cell of a row."""
    cls: Any = known.CLASSES[name]
    config = cls(**known.given(name)).get_config()
    found = []
    for key, parameter in inspect.signature(cls).parameters.items():
        if key in config and key != "name":
            default = parameter.default
            said = "" if default is parameter.empty else f" = {json.dumps(default)}"
            found.append(f"`{key}: {kind_of(name, parameter)}{said}`")
    return ", ".join(found)


def attributes_of(name: str) -> str:
    """Return the third cell of a row."""
    if name in known.ROWS:
        return known.ROWS[name][1].strip()
    return ", ".join(f"`{key}`" for key in known.attributes(name))


def rows() -> Iterator[tuple[str, str, str]]:
    """Give the rows of the table; classes with the same keys and attributes share one."""
    gone = known.ROWS.keys() - known.CLASSES.keys()
    assert not gone, f"files name these classes, so they stay: {', '.join(sorted(gone))}"
    families: dict[tuple[str, str], list[str]] = {}
    for name in sorted(known.CLASSES):
        families.setdefault((keys_of(name), attributes_of(name)), []).append(f"`{name}`")
    for (keys, attributes), names in families.items():
        yield ", ".join(names), keys, attributes


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    table = markdown_rows(("class", "keys of `config`", "attributes"), rows())
    before, _, rest = text.partition("| class |")
    after = rest.partition("\n\n")[2]
    new = "\n".join(table).replace("|  |", "| |").replace("|  |", "| |")
    sys.exit(write_or_check({PAGE: f"{before}{new}\n\n{after}"}, sys.argv[1:]))
