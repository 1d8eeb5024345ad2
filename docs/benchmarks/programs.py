"""Public TensorFlow programs, cell by cell, on ``gradtape.compat.tensorflow``.

``programs.json`` names programs by repository, path and commit; none is copied here. Fetch their
texts into ``FOLDER/owner/name/path``, then::

    python docs/benchmarks/programs.py --from FOLDER

Each program runs in a process of its own, rewritten only in its imports, data and sizes: made-up
arrays stand in for data sets, a small environment for games, and nothing for pictures. A notebook's
cells are its code cells; a script's are its top-level statements, divided at blank lines and
comments. A cell that fails is reported with its error, and the next one runs. Nothing here opens a
connection: programs whose text is missing are reported as "not here". A program runs with the
rights of whoever starts it: read what you fetch.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

TABLE = Path(__file__).with_name("programs.json")
COMPAT = "gradtape.compat.tensorflow"
SHAPES = {"mnist": (28, 28), "fashion_mnist": (28, 28), "cifar10": (32, 32, 3)}

#: What every program may have rewritten: imports, and where its data comes from.
EVERYWHERE = [
    (r"^([ \t]*)from\s+keras import", rf"\1from {COMPAT}.keras import"),
    (r"^([ \t]*)from\s+keras\.", rf"\1from {COMPAT}.keras."),
    (r"^([ \t]*)import\s+keras\b$", rf"\1from {COMPAT} import keras"),
    (r"^([ \t]*)import\s+tensorflow\s*$", rf"\1import {COMPAT} as tensorflow"),
    (r"^([ \t]*)(from|import)\s+tensorflow\b", rf"\1\2 {COMPAT}"),
    (rf"^([ \t]*)from {COMPAT}\.keras\.datasets import .*$", r"\1pass"),
    (rf"^(\s*from {COMPAT}\.keras import .*?)\bdatasets, ", r"\1"),
    (rf"^(\s*from {COMPAT}\.keras import .*?), datasets\b", r"\1"),
    (r"[\w.]*?\b(mnist|fashion_mnist|cifar10|boston_housing)\.load_data\(\)", r"made_up('\1')"),
    (r"[\w.]*\.preprocessing\.image\.array_to_img", "picture"),
]


def made_up(name: str) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Return small random arrays of a data set's shapes and dtypes."""
    random = np.random.default_rng(0)

    def part(count: int) -> tuple[np.ndarray, np.ndarray]:
        if name == "boston_housing":
            return random.random((count, 13)), random.random(count)
        images = random.integers(0, 256, (count, *SHAPES[name])).astype("uint8")
        labels = random.integers(0, 10, count).astype("uint8")
        return images, labels[:, None] if name == "cifar10" else labels

    return part(64), part(32)


class Environment:
    """A game of eight steps with random observations, under gym's or gymnasium's signatures."""

    def __init__(self, name: str, new: bool) -> None:
        self.new, self.left, self.random = new, 0, np.random.default_rng(0)
        self.continuous = name.startswith("Pendulum")
        self.size = 3 if self.continuous else 4
        self.observation_space = types.SimpleNamespace(shape=(self.size,))
        self.action_space = types.SimpleNamespace(
            n=2, shape=(1,), low=np.float32([-2.0]), high=np.float32([2.0])
        )

    def _observed(self) -> np.ndarray:
        return self.random.standard_normal(self.size).astype("float32")

    def reset(self, **kwargs: Any) -> Any:
        self.left = 8
        return (self._observed(), {}) if self.new else self._observed()

    def step(self, action: Any) -> tuple[Any, ...]:
        self.left -= 1
        done = self.left == 0
        return self._observed(), 1.0, done, *([False] if self.new else []), {}

    def __getattr__(self, name: str) -> Any:
        if name in {"seed", "render", "close"}:
            return lambda *args, **kwargs: None
        raise AttributeError(name)


def stand_in_modules() -> dict[str, Any]:
    """Return the modules that programs import and that say nothing about gradients."""
    plots = mock.MagicMock()
    plots.subplots.side_effect = lambda *args, **kwargs: (mock.MagicMock(), mock.MagicMock())
    bars = types.SimpleNamespace(tqdm=lambda x=(), **_: x, trange=lambda *a, **_: range(*a))
    games = {
        name: types.SimpleNamespace(make=lambda game, new=new, **_: Environment(game, new))
        for name, new in (("gym", False), ("gymnasium", True))
    }
    silent = "IPython IPython.display PIL wandb imageio mpl_toolkits mpl_toolkits.mplot3d".split()
    return {
        "matplotlib": mock.MagicMock(pyplot=plots),
        "matplotlib.pyplot": plots,
        "tqdm": bars,
        **games,
        **{name: mock.MagicMock() for name in silent},
    }


def rewritten(text: str, substitutions: list[list[str]]) -> tuple[str, list[str]]:
    """Return the program with its substitutions made, and those that found nothing to replace."""
    missed = []
    for old, new in substitutions:
        if old not in text:
            missed.append(old)
        text = text.replace(old, new)
    for pattern, new in EVERYWHERE:
        text = re.sub(pattern, new, text, flags=re.MULTILINE)
    return text, missed


def cells_of(text: str, notebook: bool) -> list[str]:
    """Split a program into cells."""
    if notebook:
        sources = (c["source"] for c in json.loads(text)["cells"] if c["cell_type"] == "code")
        joined = (s if isinstance(s, str) else "".join(s) for s in sources)
        joined = (re.sub(r"^[ \t]*[%!].*$", "", s, flags=re.MULTILINE) for s in joined)
        return [source for source in joined if source.strip()]
    lines = text.splitlines()
    spans: list[list[int]] = []
    for node in ast.parse(text).body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue  # a docstring, or the prose of an example
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        if spans and first == spans[-1][1] + 1:
            spans[-1][1] = node.end_lineno or first
        elif not spans or first > spans[-1][1]:
            spans.append([first, node.end_lineno or first])
    return ["\n".join(lines[first - 1 : last]) for first, last in spans]


def run_cells(cells: list[str], folder: Path) -> Iterator[str | None]:
    """Run the cells in one namespace and yield each one's error, or None."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    vars(main).update(made_up=made_up, picture=mock.MagicMock())
    for number, cell in enumerate(cells):
        path = folder / f"cell{number}.py"
        path.write_text(cell)  # a file, since functions are traced from their source
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(cell, str(path), "exec", dont_inherit=True), vars(main))
            yield None
        except (Exception, SystemExit) as error:
            said = " ".join(str(error).split())
            yield f"{type(error).__name__}: {said}"


def run_here(text: str, substitutions: list[list[str]], notebook: bool) -> dict[str, Any]:
    """Run one program in this process; the result holds an error or None for each cell."""
    sys.argv = ["program"]
    sys.modules.update(stand_in_modules())
    importlib.import_module(COMPAT)
    if notebook:
        pieces = [rewritten(cell, substitutions)[0] for cell in cells_of(text, True)]
        whole = "\n".join(cells_of(text, True))
        missed = [old for old, _ in substitutions if old not in whole]
    else:
        text, missed = rewritten(text, substitutions)
        pieces = cells_of(text, False)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        return {"errors": list(run_cells(pieces, Path(folder))), "missed": missed}


def run(program: dict[str, Any], folder: Path, seconds: float = 300) -> dict[str, Any] | None:
    """Run one program of the table in a process of its own; None if its text is not here."""
    path = folder / program["repository"] / program["path"]
    if not path.exists():
        return None
    argv = [sys.executable, __file__, "--one", json.dumps(program), "--from", str(folder)]
    quiet = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, env=quiet, timeout=seconds, check=True
        )
    except subprocess.TimeoutExpired:
        return {"errors": [f"ran for more than {seconds:.0f} s"], "missed": []}
    except subprocess.CalledProcessError as error:
        last = (error.stderr.strip().splitlines() or ["no message"])[-1]
        return {"errors": [f"ended with {error.returncode}: {last}"], "missed": []}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def report(programs: list[dict[str, Any]], folder: Path) -> None:
    """Run the programs and print the table."""
    cells = ran = whole = here = 0
    print("| program | cells | run | first error of each cell that fails |")
    print("| --- | ---: | ---: | --- |")
    for program in programs:
        name = f"{program['repository']}: {program['path']}"
        result = run(program, folder)
        if result is None:
            print(f"| {name} | | | not here |", flush=True)
            continue
        failed = [error for error in result["errors"] if error]
        count = len(result["errors"])
        here, cells, ran = here + 1, cells + count, ran + count - len(failed)
        whole += not failed
        notes = failed + [f"(no text to replace: {old!r})" for old in result["missed"]]
        said = "; ".join(note.replace("|", "\\|")[:240] for note in notes)
        print(f"| {name} | {count} | {count - len(failed)} | {said} |", flush=True)
    print(
        f"\n{here} of {len(programs)} programs here; {ran} of {cells} cells run; {whole} run whole"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--from", dest="folder", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--only", default="", help="programs whose repository or path has this text"
    )
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        program = json.loads(options.one)
        path = options.folder / program["repository"] / program["path"]
        result = run_here(
            path.read_text(encoding="utf-8"), program["substitutions"], path.suffix == ".ipynb"
        )
        print("\n" + json.dumps(result))
        return
    programs = json.loads(TABLE.read_text(encoding="utf-8"))
    chosen = [p for p in programs if options.only in f"{p['repository']}/{p['path']}"]
    report(chosen, options.folder)


if __name__ == "__main__":
    main()
