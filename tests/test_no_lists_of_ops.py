"""No module treats ops by a list of their names: what holds for an op stands in its record.

An op of another distribution can then do whatever one of gradtape does.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

#: Where a name is compared all the same, and why that takes nothing from other ops.
MEANT = {
    "extras/export/onnx_lowerings.py": "looks for nodes that ONNX has one node for",
    "extras/weights/flattened.py": "looks for the products of dense layers in files of Keras",
    "saving/reports/checks.py": "looks for the rounding that stands for bfloat16",
    "saving/writing/graphs.py": "the ops that backward passes and loops themselves use",
    "saving/writing/compare.py": "names that other plugins replaced, found at run time",
    "distributed/reduction.py": "moves the messages that this module itself starts",
    "training/checks.py": "advice on the losses of this package",
}
FOLDERS = "core distributed extras layers plugins saving training".split()


def names_an_op(node: ast.expr) -> bool:
    """Return whether an expression is the name of an op: ``op.name``, ``getattr(op, "name")``."""
    if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "getattr":
        wanted = node.args[1]
        return (
            isinstance(wanted, ast.Constant)
            and wanted.value == "name"
            and ast.unparse(node.args[0]).rpartition(".")[2] in ("op", "original", "made")
        )
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "name"
        and ast.unparse(node.value).rpartition(".")[2] in ("op", "original")
    )


def lists_ops(node: ast.AST) -> bool:
    """Return whether a node decides by an op's name."""
    if isinstance(node, ast.Compare):
        decides = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)
        sides = [node.left, *node.comparators]
        return any(map(names_an_op, sides)) and any(isinstance(op, decides) for op in node.ops)
    if isinstance(node, ast.Subscript):
        table = ast.unparse(node.value).rpartition(".")[2].lstrip("_")
        return table.isupper() and names_an_op(node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        method, owner = node.func.attr, node.func.value
        if method in ("startswith", "endswith"):
            return names_an_op(owner)
        table = ast.unparse(owner).rpartition(".")[2].lstrip("_")
        return method == "get" and table.isupper() and any(map(names_an_op, node.args))
    return False


def found_in(text: str) -> list[int]:
    return [node.lineno for node in ast.walk(ast.parse(text)) if lists_ops(node)]  # type: ignore[attr-defined]


def test_no_module_decides_by_the_name_of_an_op() -> None:
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            lines = found_in(path.read_text("utf-8"))
            if lines and not name.startswith("plugins/ops/"):
                found[name] = lines
    assert {name: lines for name, lines in found.items() if name not in MEANT} == {}
    assert set(MEANT) <= set(found), "remove what no longer compares names"


@pytest.mark.parametrize(
    "text",
    [
        "node.op.name in _VIEWS",
        "getattr(node.op, 'name', '') not in {'add'}",
        "op.name == 'scan'",
        "op.name.startswith('random_')",
        "RULES.get(node.op.name)",
        "_RULES[op.name]",
    ],
)
def test_the_scan_finds_such_lines(text: str) -> None:
    assert found_in(text)


@pytest.mark.parametrize("text", ["registry().lowering(op.name, 'onnx')", "found[op.name] = op"])
def test_the_scan_lets_tables_of_the_registry_pass(text: str) -> None:
    assert not found_in(text)
