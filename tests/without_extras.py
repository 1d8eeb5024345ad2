"""Build the package without some of its extras, and run tests there.

python tests/without_extras.py export plot              # all tests, without gradtape.export, .plot
python tests/without_extras.py --each -- tests/core     # these tests, without one extra at a time

An extra is a folder that the base works without. To take one away, delete its folder and the lines
that name it under entry-points in pyproject.toml. Tests of what was left out are skipped.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

#: The extras, by import name without ``gradtape``.
EXTRAS = (
    *("autograph", "compat", "datasets", "export", "interop", "plot", "profiler", "reports"),
    *("sklearn", "weights", "plugins.cupy", "plugins.fused", "plugins.jax", "plugins.mpi"),
)


def _link(source: Path, target: Path, left_out: set[tuple[str, ...]]) -> None:
    """Make a folder of links to what another one holds, without some of its folders."""
    target.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        inside = {names[1:] for names in left_out if names[0] == path.name}
        empty = path.is_dir() and not any(path.glob("[!_]*")) and not any(path.glob("*.py"))
        if path.name in ("__pycache__", ".git") or empty or () in inside:
            continue
        if inside:
            _link(path, target / path.name, inside)
        else:
            (target / path.name).symlink_to(path)


def lay_out(site: Path, extras: Iterable[str] = ()) -> None:
    """Lay out the package as a wheel does, made of links and without some extras."""
    import gradtape

    home = Path(gradtape.__file__).parent
    left_out = {tuple(name.split(".")) for name in extras}
    if (home / "setup.py").exists():  # a checkout: these folders have packages of the root, too
        _link(home, site / "gradtape", left_out | {("extras",), ("namespaces",), ("tests",)})
        for root in ("extras", "namespaces"):
            _link(home / root, site / "gradtape", left_out | {("README.md",)})
    else:
        _link(home, site / "gradtape", left_out)


def build(site: Path, extras: list[str]) -> dict[str, str]:
    """Lay out the package without some extras; return the environment in which it is imported."""
    lay_out(site, extras)
    # what an editable install looks with finds the whole package
    (site / "sitecustomize.py").write_text(
        "import sys\n"
        "sys.meta_path[:] = [x for x in sys.meta_path if '__editable__' not in str(x)]\n"
    )
    info = site / "gradtape.dist-info"
    info.mkdir()
    found = distribution("gradtape")
    (info / "METADATA").write_text(found.read_text("METADATA") or "")
    modules = tuple(f"gradtape.{name}" for name in extras)
    (info / "entry_points.txt").write_text(
        "\n".join(
            line
            for line in (found.read_text("entry_points.txt") or "").splitlines()
            if not f"{line.partition(' = ')[2]}.".startswith(tuple(f"{x}." for x in modules))
        )
    )
    return {**os.environ, "PYTHONPATH": str(site), "GRADTAPE_TESTS_WITHOUT": " ".join(modules)}


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="*", choices=[*EXTRAS, []], metavar="EXTRA")
    parser.add_argument("--each", action="store_true", help="each on its own")
    arguments = sys.argv[1:]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:place])
    extras = options.extras or list(EXTRAS)
    worst = 0
    for some in [[name] for name in extras] if options.each else [extras]:
        with tempfile.TemporaryDirectory() as folder:
            environment = build(Path(folder), some)
            command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments[place + 1 :])
            done = subprocess.run(
                [sys.executable, *command], env=environment, capture_output=True, text=True
            )
        last = done.stdout.strip().rpartition("\n")[2]
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        print(f"without {', '.join(some)}: {last}", *failed, sep="\n  ", flush=True)
        worst = max(worst, done.returncode)
    return worst


if __name__ == "__main__":
    sys.exit(main())
