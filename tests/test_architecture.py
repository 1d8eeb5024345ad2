"""How the package is put together: what is installed, and what is imported where."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from configparser import ConfigParser
from importlib.util import find_spec
from pathlib import Path

import pytest

import gradtape as gt

CHECKOUT = Path(__file__).parents[1]
INSTALLED = Path(gt.__file__).parent
NOT_PACKAGED = {"build", "dist", "docs", "tests"}

# Imports inside functions as "module: import", by the reason why they are not at the module's top.
# Any other import belongs at the top of its module. Remove entries that no longer exist.
IMPORTS_IN_FUNCTIONS = {
    "it is slow to import and may not be needed": """
        cli: cli.commands
        cli.doctor: numpy
        data.methods: h5py
        datasets.loading: h5py
        testing.executors: testing.programs
    """,
    "it is optional": """
        cli.demo: matplotlib.figure
        cli.tutorial: (by name)
        data.images: PIL
        export.tracing: (by name)
        testing.backends: (by name)
        export.exporters: export.onnx_model
        export.exporters: plugins.jax.compiling
        interop.in_jax: plugins.jax.compiling
        interop.jax: interop.in_jax
        interop.jax: interop.of_jax
        interop.of_torch: torch._subclasses.fake_tensor
        interop.torch: interop.in_torch
        interop.torch: interop.models_in_torch
        interop.torch: interop.of_torch
        interop.trees: (by name)
        plot.training: matplotlib
        plot.training: matplotlib.ticker
        plot.jacobians: matplotlib.ticker
        plugins.cupy.backend: cupy
        plugins.cupy.backend: cupyx.scipy.special
        plugins.cupy.diagnosis: (by name)
        plugins.mpi: mpi4py
        plugins.jax.backend: jax
        plugins.jax.backend: jax.scipy.special
        plugins.jax.backend: plugins.jax.compiling
        plugins.jax.backend: plugins.jax.kernels
        plugins.jax.communicator: plugins.jax.steps
        plugins.jax.engine: jax
        plugins.jax.engine: plugins.jax.communicator
        plugins.jax.joining: jax
        plugins.numpy.backend: (by name)
        plugins.numpy.backend: threadpoolctl
        plugins.fused.compiler: (by name)
        plugins.scipy.building: (by name)
        reports.models: matplotlib.figure
        reports.models: matplotlib.patches
        special: (by name)
        training.callbacks.writing: tensorboardX
        training.runs.epochs: IPython.display
        training.summary: tensorboardX
    """,
    "only help() needs it": """
        core.module.docstrings: core.ops.docstrings
        core.ops.primitive: core.ops.docstrings
    """,
    "it is found by name: its package is above, or it is needed later": """
        compat.tensorflow.names: (by name)
        core.base.table: (by name)
        core.registry.entry_points: (by name)
        core.registry.host: (by name)
        core.registry.merging: (by name)
        plugins.ops: (by name)
        public: (by name)
    """,
}


def modules(root: Path) -> Iterator[Path]:
    """Give the package's modules in a folder, which may be the repository's root."""
    yield from root.glob("*.py")
    for folder in root.iterdir():
        hidden = folder.name.startswith((".", "__")) or (folder / "pyvenv.cfg").exists()
        if folder.is_dir() and not hidden and folder.name not in NOT_PACKAGED:
            yield from folder.rglob("*.py")


# -- what is installed -----------------------------------------------------------------------------


def test_every_module_of_the_checkout_is_installed() -> None:
    if not (CHECKOUT / "pyproject.toml").exists():
        pytest.skip("the tests are not next to the sources")
    names = set()
    for path in modules(CHECKOUT):
        parts = path.relative_to(CHECKOUT).with_suffix("").parts
        # namespaces/nn is gradtape.nn, extras/plot is gradtape.plot: see setup.py
        parts = parts[1:] if parts[0] in ("namespaces", "extras") else parts
        names.add(".".join(("gradtape", *parts)).removesuffix(".__init__"))
    missing = [name for name in sorted(names - {"gradtape.setup"}) if not find_spec(name)]
    assert not missing, "setup.py finds the folders that have an __init__.py"


# -- the layers and their figure -------------------------------------------------------------------


def test_the_figure_shows_the_layers() -> None:
    figure = CHECKOUT / "docs" / "pictures" / "packages.svg"
    if not figure.exists():
        pytest.skip("the tests are not next to the sources")
    found = subprocess.run([sys.executable, figure.with_name("draw_packages.py"), "--check"])
    assert found.returncode == 0, "run: python docs/pictures/draw_packages.py"
    file = ConfigParser()
    file.read(CHECKOUT / ".importlinter")

    def packages(contract: str, key: str = "layers") -> list[str]:
        text = file[f"importlinter:contract:{contract}"][key]
        return [name.strip().removeprefix("gradtape.") for name in re.split(r"[\n|]", text.strip())]

    labels = re.findall(r'class="name"[^>]*>([^<]+)<', figure.read_text(encoding="utf-8"))
    drawn = [name for label in labels for name in label.rstrip(",").split(", ")]
    extras = packages("extras", "forbidden_modules")
    assert {*packages("package"), *packages("core"), *extras} <= set(drawn)
    below = [name for name in packages("package") if name not in extras]
    assert sorted(below[:-2], key=drawn.index) == below[:-2], "from the top down"


# -- imports in functions --------------------------------------------------------------------------


def dotted(path: Path) -> str:
    """Return a module's name without the package's: ``core.tape``; the package is ``gradtape``."""
    parts = path.relative_to(INSTALLED).parts
    name = ".".join(parts[1:] if parts[0] in ("namespaces", "extras") else parts)  # in a checkout
    return name.removesuffix("__init__").rstrip(".") or "gradtape"


def imported(node: ast.AST, path: Path) -> Iterator[str]:
    """Give the names of the modules that a statement or call imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and not node.level:
        yield node.module or ""
    elif isinstance(node, ast.ImportFrom):
        folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
        for alias in node.names:
            inside = folder / alias.name
            is_module = inside.is_dir() or inside.with_suffix(".py").exists()
            yield dotted(inside if is_module else folder)
    elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "import_module":
        yield "(by name)"


def imports_in_functions() -> Iterator[tuple[str, str]]:
    """Give pairs of a module and what its functions import, except from the standard library."""
    for path in modules(INSTALLED):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        for function in [x for x in ast.walk(tree) if isinstance(x, functions)]:
            for node in ast.walk(function):
                for name in imported(node, path):
                    if name.partition(".")[0] not in sys.stdlib_module_names:
                        yield dotted(path.with_suffix("")), name


def test_imports_in_functions_have_a_reason() -> None:
    found = {f"{who}: {what}" for who, what in imports_in_functions()}
    listed = [line.strip() for text in IMPORTS_IN_FUNCTIONS.values() for line in text.split("\n")]
    allowed = [line for line in listed if line]
    assert sorted(found - set(allowed)) == [], "import them at the module's top, or list a reason"
    assert sorted(set(allowed) - found) == [], "they no longer exist: remove them from the list"
    assert len(allowed) == len(set(allowed)), "list each import under one reason"


#: Names of modules in texts that lead to a package above or to an extra, and why. Elsewhere, what
#: is there is a service or another thing that a plugin provides.
STRINGS_UPWARD = {
    "core.base.table: core.registry.host": "plugins are found when the registry is first used",
}


def levels(contract: str) -> dict[str, int]:
    """Return the packages of a contract in .importlinter, numbered from below."""
    file = ConfigParser()
    file.read(CHECKOUT / ".importlinter")
    rows = file[f"importlinter:contract:{contract}"]["layers"].strip().split("\n")
    return {
        name.strip().removeprefix("gradtape."): len(rows) - place
        for place, row in enumerate(rows)
        for name in row.split("|")
    }


def test_texts_name_no_module_above() -> None:
    packages, core = levels("package"), levels("core")
    file = ConfigParser()
    file.read(CHECKOUT / ".importlinter")
    base, extras = (
        tuple(
            f"{name.strip().removeprefix('gradtape.')}."
            for name in file["importlinter:contract:extras"][key].strip().split("\n")
        )
        for key in ("source_modules", "forbidden_modules")
    )

    def height(name: str) -> tuple[int, int]:
        first, second, *_ = *name.split("."), ""
        return packages.get(first, 99), core.get(second, 0) if first == "core" else 0

    found = set()
    for path in modules(INSTALLED):
        who = dotted(path.with_suffix(""))
        if who.partition(".")[0] not in packages or who == "public":
            continue
        is_base = f"{who}.".startswith(base) and not f"{who}.".startswith(extras)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
            if isinstance(name, str) and re.fullmatch(r"(gradtape\.)?[a-z_]+(\.[a-z_0-9]+)+", name):
                what = name.removeprefix("gradtape.")
                places = [
                    INSTALLED.joinpath(root, *what.split("."))
                    for root in ("", "namespaces", "extras")  # in a checkout
                ]
                exists = any(x.is_dir() or x.with_suffix(".py").exists() for x in places)
                to_extra = is_base and f"{what}.".startswith(extras)
                if exists and (to_extra or height(what) > height(who)):
                    found.add(f"{who}: {what}")
    assert found == {*STRINGS_UPWARD}, "provide it as a service: docs/plugins/names.md"


#: The modules of core that import, for type checkers alone, from a package above theirs, and why.
TYPES_UPWARD = {
    "core.base.context: graphs, tensors": (
        "what code above keeps in its variables, and reads as these very classes"
    ),
    "core.base.observers: tensors": (
        "tapes override methods of Recorder, whose parameters are these very classes"
    ),
    "core.base.table: registry": "it returns the registry to all of core",
    "core.extend: later": "names that it offers, and imports when one of them is first used",
}


def test_types_from_above_have_a_reason() -> None:
    heights = levels("core")
    found = set()
    for path in (INSTALLED / "core").rglob("*.py"):
        who = dotted(path.with_suffix(""))
        tree = ast.parse(path.read_text("utf-8"))
        run = {id(node) for node in imports_that_run(tree)}
        named = [
            name.split(".")[1]
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and id(node) not in run
            for name in imported(node, path)
            if name.startswith("core.")
        ]
        here = heights.get(who.split(".")[1], 0) if "." in who else 0
        above = sorted({name for name in named if heights[name] > here})
        if above:
            found.add(f"{who}: {', '.join(above)}")
    assert found == {*TYPES_UPWARD}, "a class below, such as Primitive for Op, may be enough"


def imports_that_run(node: ast.AST) -> Iterator[ast.ImportFrom]:
    """Give the statements ``from … import …`` that are not only for type checkers."""
    if isinstance(node, ast.ImportFrom):
        yield node
    elif not (isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"):
        for child in ast.iter_child_nodes(node):
            yield from imports_that_run(child)


@pytest.mark.parametrize("package", ["datasets", "layers", "plot", "saving", "training"])
def test_a_package_is_imported_whole_from_outside(package: str) -> None:
    # if one thread imports a submodule while another imports the package, they wait for each other,
    # and Python returns a partially imported module; extras import these packages first
    found = [
        f"{dotted(path)}:{node.lineno}"
        for path in modules(INSTALLED)
        if dotted(path).partition(".")[0]
        not in (package, "compat", "reports", "sklearn", "weights")
        for node in imports_that_run(ast.parse(path.read_text("utf-8")))
        if (node.module or "").startswith(f"{package}.")
    ]
    assert found == [], f"write 'from ..{package} import …'"


def test_modules_of_tests_have_different_names() -> None:
    # pytest imports them by name, without their folders: of two with one name it runs one.
    # The fuzzers are a package.
    paths = [p for p in (CHECKOUT / "tests").rglob("*.py") if "fuzz" not in p.parts]
    names = Counter(p.name for p in paths if p.name not in ("conftest.py", "__init__.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_folder_of_the_checkout_may_have_any_name(tmp_path: Path) -> None:
    checkout = tmp_path / "gradtape-0.1.0"
    (checkout / "tests").mkdir(parents=True)
    for name in ("__init__.py", "pyproject.toml", "tests/conftest.py"):
        shutil.copy(CHECKOUT / name, checkout / name)
    (checkout / "tests/test_one.py").write_text("def test_one(): pass\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr


# -- ops -------------------------------------------------------------------------------------------


def test_every_module_of_ops_is_imported_with_all_ops() -> None:
    assert len(gt.registry().ops) > 0
    assert dir(gt.image)  # these functions have no ops of their own
    folder = INSTALLED / "plugins" / "ops"
    names = {f"gradtape.{dotted(path.with_suffix(''))}" for path in folder.rglob("*.py")}
    assert sorted(names - set(sys.modules)) == []
