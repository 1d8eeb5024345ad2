"""Write docs/accuracy.md, the table of errors of derivatives, from tests/accuracy.

python docs/make_accuracy_page.py                # write the page
python docs/make_accuracy_page.py --check        # exit with 1 if it is not up to date
python docs/make_accuracy_page.py --measure gradtape jax torch    # into docs/accuracy.json

A measurement takes some minutes. ``--points`` sets the number of points for each function, 10,000
by default, and ``--only`` the op whose rows are measured.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.extend([str(ROOT / "docs"), str(ROOT / "tests")])

from accuracy.references import ROWS  # noqa: E402
from accuracy.row import Row  # noqa: E402
from accuracy.ulps import LIMIT, measured  # noqa: E402
from generated_pages import markdown_rows, write_or_check  # noqa: E402

PAGE, DATA = ROOT / "docs" / "accuracy.md", ROOT / "docs" / "accuracy.json"
LIBRARIES = {"gradtape": "gradtape", "jax": "JAX", "torch": "PyTorch"}
HEAD = """# Accuracy of derivatives

This table shows the largest errors of first and second derivatives of elementwise functions, in
units of the last place of the exact derivative. The bound is {limit} units, wherever the exact
derivative is a normal number, for `float64` and `float32`. Every run of the test suite checks it.

Points are numbers of every magnitude, ranges in which exponentials neither overflow nor vanish, and
numbers near kinks, zeros and powers of two. The column *points* says how many gradtape was measured
at, for each dtype; JAX and PyTorch have at least {fewest:,} of the same kind. The exact derivatives
are mpmath's. The measurements are stored in `docs/accuracy.json`: gradtape with NumPy {gradtape},
JAX {jax} and PyTorch {torch} on CPUs. They depend a little on the functions of the processor and of
the C library. `python docs/make_accuracy_page.py` generates the page from
[tests/accuracy](../tests/accuracy/references.py).

A cell reads *first; second*: the largest error of all first and of all second derivatives, in
either dtype. "∞" stands for infinite, nan or 0 instead of a normal number. "-" stands for a
function that the library does not have, or that it cannot differentiate twice. Points that belong
to [the table of kinks](kinks.md) do not count.

{summary}
"""
NOTES = """
## Exceptions

Where the bound cannot be met, errors are measured in another way. Numbers after functions in the
table refer to these notes:

{notes}
"""


def measure(libraries: list[str], count: int, only: str | None) -> None:
    """Measure libraries, and put their errors into the data."""
    data = json.loads(DATA.read_text()) if DATA.exists() else {}
    for library in libraries:
        column = data.setdefault(library, {"rows": {}})
        column["version"] = _version(library)
    for row in ROWS:
        if only not in (None, row.op):
            continue
        found: dict[str, Any] = {library: {} for library in libraries}
        for library, dtype, worst in measured(row, count, libraries):
            if worst:
                found[library][dtype] = [_number(error) for error, _ in worst]
        for library, errors in found.items():
            data[library]["rows"][row.call] = errors | {"points": count} if errors else None
        print(row.call, found, flush=True)
        DATA.write_text(_text_of(data))  # after each row, as a measurement takes long


def _number(error: float) -> Any:
    return float(f"{error:.3g}") if math.isfinite(error) else "inf"


def _version(library: str) -> str:
    module = __import__("numpy" if library == "gradtape" else library)
    return str(module.__version__).split("+")[0]


def _text_of(data: dict[str, Any]) -> str:
    columns = []
    for library, column in sorted(data.items()):
        rows = ",\n".join(
            f"  {json.dumps(row.call)}: {json.dumps(column['rows'][row.call])}"
            for row in ROWS
            if row.call in column["rows"]
        )
        start = f'{{"version": "{column["version"]}", "rows": {{'
        columns.append(f"{json.dumps(library)}: {start}\n{rows}}}}}")
    return "{\n" + ",\n".join(columns) + "\n}\n"


def worst_of(row: Row, errors: dict[str, Any] | None) -> tuple[float, float] | None:
    """Return the largest error of first and of second derivatives, in all dtypes."""
    if errors is None:
        return None
    first = len(row.first)
    both = [list(map(float, errors[dtype])) for dtype in ("float64", "float32")]
    return max(max(each[:first]) for each in both), max(max(each[first:]) for each in both)


def page() -> str:
    """Return the text of the page."""
    data = json.loads(DATA.read_text())
    versions = {library: data[library]["version"] for library in LIBRARIES}
    notes = list(dict.fromkeys(reason for row in ROWS for reason in _reasons(row)))
    lines, counts = [], {library: [0, 0, 0] for library in LIBRARIES}
    for row in ROWS:
        cells = [f"`{row.call}`".replace("|", "\\|") + _note(row, notes)]
        for library in LIBRARIES:
            worst = worst_of(row, data[library]["rows"].get(row.call))
            cells.append(_cell(worst))
            if worst:
                for place, met in enumerate((True, worst[0] <= LIMIT, worst[1] <= LIMIT)):
                    counts[library][place] += met
        cells.append(f"{_points(data, 'gradtape', row):,}")
        lines.append(cells)
    summary = markdown_rows(
        ["", "functions", f"first within {LIMIT} units", f"second within {LIMIT} units"],
        [[name, *map(str, counts[library])] for library, name in LIBRARIES.items()],
    )
    head = HEAD.format(
        limit=LIMIT,
        fewest=min(_points(data, library, row) for library in ("jax", "torch") for row in ROWS),
        summary="\n".join(summary),
        **versions,
    )
    table = "\n".join(markdown_rows(["function", *LIBRARIES.values(), "points"], lines))
    listed = "\n".join(f"{i + 1}. {_sentence(note)}" for i, note in enumerate(notes))
    return f"{head}\n{table}\n{NOTES.format(notes=listed)}"


def _points(data: dict[str, Any], library: str, row: Row) -> int:
    errors = data[library]["rows"][row.call]
    return int(errors["points"]) if errors else 10_000


def _reasons(row: Row) -> list[str]:
    return [text for text in (_LEFT_OUT.get(row.inside, ""), row.why) if text]


_LEFT_OUT = {
    "arguments": "subnormal arguments do not count: products of them lose digits",
    "values": "points do not count at which the function's value is not a normal number, or a "
    "derivative is within a factor of 4096 of the ends of their range: rules multiply powers",
}


def _note(row: Row, notes: list[str]) -> str:
    numbers = ", ".join(str(notes.index(reason) + 1) for reason in _reasons(row))
    return f" ({numbers})" if numbers else ""


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _cell(worst: tuple[float, float] | None) -> str:
    return "-" if worst is None else "; ".join(map(_text, worst))


def _text(error: float) -> str:
    if math.isinf(error) or error > 2.0**52:
        return "∞"
    return f"{error:.1f}" if error < 1000 else f"{error:.0e}".replace("e+0", "e").replace("e+", "e")


def main() -> int:
    """Do what the command line says; return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--measure", nargs="+", choices=LIBRARIES)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--only")
    chosen = parser.parse_args()
    if chosen.measure:
        measure(chosen.measure, chosen.points, chosen.only)
        return 0
    return write_or_check({PAGE: page()}, ["--check"] if chosen.check else [])


if __name__ == "__main__":
    sys.exit(main())
