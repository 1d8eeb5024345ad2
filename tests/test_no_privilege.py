"""No privilege: gradtape's own plugins and those of third parties are told apart only by names.

Bare names, and names that start with a package of gradtape, are reserved. Nothing else may depend
on who ships a plugin, a class or a function.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import gradtape as gt

INSTALLED = Path(gt.__file__).parent
NOT_LOOKED_AT = {"build", "dist", "docs", "tests", "testing"}

#: Places that may compare with the package's own name: the function, and why.
ALLOWED: dict[str, str] = {
    "core.registry.info.may_use_reserved_names": "the names that are reserved",
    "core.registry.loading._is_own": "finds its own plugins where metadata is missing or old",
    "cli.doctor._version": "its own version, whatever metadata is installed",
    "public._hand_out": "gives its own objects their public paths",
    "public._public_names_of": "hides its own private attributes",
    "core.module.docstrings.complete_docstring": "completes its own docstrings",
    # these tell a library's values and frames from the user's, and no plugin's from gradtape's
    "core.tape.reads._is_foreign": "arrays that the user passes, as opposed to tensors",
    "core.tape.reads._parts": "tensors have no parts to search for numbers",
    "core.base.sizes.unknowns.__array__": "NumPy may ask for the shape of sizes for gradtape",
    "distributed.faults.lifeline._place": "the line of the user's code",
    "training.runs.callback_state._is_users": "what a library changes inside is its own affair",
}

_PACKAGE = re.compile(r"\b_?(PACKAGE|ROOT|OURS)\b|'_?gradtape\b|__name__\.(r?partition|split)")
_ASKED = re.compile(r"__module__|\.distribution\b|f_globals|co_filename|\bmodule\b|\bhome\b")


def modules() -> Iterator[Path]:
    """Give the modules of the installed package."""
    for path in INSTALLED.rglob("*.py"):
        first = path.relative_to(INSTALLED).parts[0]
        # in a checkout, environments are in hidden folders
        if first not in NOT_LOOKED_AT and not first.startswith("."):
            yield path


def questions(path: Path) -> Iterator[tuple[str, str]]:
    """Give the functions that ask whether something is gradtape's own, and the question."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    where = ".".join(path.relative_to(INSTALLED).with_suffix("").parts)
    for function in [x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef)]:
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and node.attr in ("ours", "_is_ours"):
                yield f"{where}.{function.name}", ast.unparse(node)
            called = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in (
                "startswith",
                "removeprefix",
            )
            if isinstance(node, ast.Compare) or called:
                text = ast.unparse(node)
                if _PACKAGE.search(text) and _ASKED.search(text):
                    yield f"{where}.{function.name}", text


def test_nothing_asks_who_ships_a_plugin_or_a_class() -> None:
    found = {name: text for path in modules() for name, text in questions(path)}
    new = {name: text for name, text in found.items() if name not in ALLOWED}
    assert not new, "let the object say what is asked, so that anyone's can: see docs/plugins.md"
    assert sorted(set(ALLOWED) - set(found)) == [], "they no longer exist: remove them"
