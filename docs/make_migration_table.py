"""Write the tables of docs/migration.md from the names of gradtape.compat.tensorflow.

python docs/make_migration_table.py            # write the tables into the page
python docs/make_migration_table.py --check    # exit with 1 if they are not up to date

The text before the marker is written by hand and stays unchanged.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from gradtape.compat.tensorflow.names import INSTEAD, NAMESPACES, Row, instead, rows

sys.path.append(str(Path(__file__).resolve().parent))

from generated_pages import markdown_rows, write_or_check

PAGE = Path(__file__).with_name("migration.md")
#: A line for each name that programs use: expressions that are true, and names that are refused.
PROGRAMS = Path(__file__).parents[1] / "tests" / "compat" / "names_programs_use.txt"
MARKER = "<!-- generated from here on by make_migration_table.py -->\n"
#: What the table says of a name without a counterpart in gradtape.
ONLY = "only in the compatibility layer"
MEANING = {"same": "the same object", "adapted": "takes TensorFlow's arguments", "": ONLY}


def namespace_of(row: Row) -> str:
    """Return the namespace of a row's name."""
    return row.tensorflow.rpartition(".")[0]


def cells(row: Row) -> tuple[str, str, str]:
    """Return a row of the table of names."""
    ours = ", ".join(f"`{path}`" for path in row.gradtape.split(", ") if path)
    return f"`{row.tensorflow}`", ours or "-", MEANING[row.how if ours else ""]


def of_programs(known: Sequence[Row]) -> Iterator[tuple[str, str]]:
    """Give the names that programs use, in order, with gradtape's names or what to use instead."""
    here = {row.tensorflow: cells(row)[1] for row in known}
    text = PROGRAMS.read_text(encoding="utf-8").replace("K.", "tf.keras.backend.")
    used = set(re.findall(r"\btf(?:\.\w+)+", text))
    for name in sorted(used, key=str.lower):
        if name in here:
            yield f"`{name}`", here[name] if here[name] != "-" else ONLY
        elif f"no {name}: " in text:
            yield f"`{name}`", f"refused: use {instead(name)}"


def tables() -> str:
    """Return the generated part of the page."""
    known = rows()
    counts = Counter(row.how if row.gradtape else "" for row in known)
    text = [
        "",
        f"Of {len(known)} names, {counts['same']} are gradtape's own objects,",
        f"{counts['adapted']} take TensorFlow's arguments and call the gradtape objects in their",
        f"rows, and {counts['']} exist only in the compatibility layer.",
    ]
    for namespace in sorted(NAMESPACES):
        found = [cells(row) for row in known if namespace_of(row) == namespace]
        text += ["", f"### {namespace}", ""]
        text += markdown_rows(("TensorFlow", "gradtape", "how"), found)
    text += ["", "## Names that programs use", ""]
    text += [
        "Public programs for `tf.GradientTape` use these names. The tests run a line for each.",
        "",
    ]
    text += markdown_rows(("TensorFlow", "gradtape"), of_programs(known))
    text += ["", "## Names without a counterpart", ""]
    text += [
        "A name that is in neither table raises `AttributeError` with the most similar name. For "
        "these names,",
        "the error says what to use instead:",
        "",
    ]
    text += markdown_rows(
        ("name", "use"), ((f"`{name}`", use) for name, use in sorted(INSTEAD.items()))
    )
    return "\n".join(text) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the tables, or check them."""
    before = PAGE.read_text(encoding="utf-8")
    by_hand, marker, _ = before.partition(MARKER)
    if not marker:
        print(f"{PAGE.name}: the line {MARKER.strip()!r} is missing", file=sys.stderr)
        return 1
    return write_or_check({PAGE: by_hand + marker + tables()}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
