"""``inspect_text``: what a file holds, without running or building any of it."""

from __future__ import annotations

import os
from typing import Any

from ..core.spec import describe
from .reader import Contents, open_contents
from .safe import SafeFile
from .schema import parse, take

__all__ = ["inspect_text"]


def inspect_text(path: str | os.PathLike[str]) -> str:
    """Return a description of a file: tree, shapes, functions, custom gradients, plugins, sizes.

    Raises
    ------
    LoadError
        If the file is damaged or unsafe.
    """
    with SafeFile(path) as file:
        contents = open_contents(file)
        arrays = [d for p, d in file.datasets.items() if p.startswith("/variables/")]
        size = sum(int(d.size) * d.dtype.itemsize for d in arrays)
        lines = [
            f"{os.path.basename(file.path)}: gradtape format {file.attribute('format_version')}, "
            f"{os.path.getsize(file.path):,} bytes, {size:,} of them in {len(arrays)} variables",
            "",
            "Modules",
            *_module_lines(contents, 0, "", set()),
            "",
            "Functions",
            *_function_lines(contents),
            "",
            "Plugins needed",
        ]
        for record in contents.requires:
            label = f"{record.get('distribution')} {record.get('version')}".strip()
            names = [*record.get("modules", []), *record.get("ops", [])]
            lines.append(f"  {record.get('plugin')} ({label}): {', '.join(map(str, names))}")
        if not contents.requires:
            lines.append("  none")
        return "\n".join(_printable(line) for line in lines)


def _printable(line: str) -> str:
    """Show what a stranger named without letting it steer the terminal."""
    return "".join(c if c.isprintable() else "?" for c in line)


def _module_lines(contents: Contents, index: int, indent: str, seen: set[int]) -> list[str]:
    record = contents.modules[index]
    known = take(record, "class", (str, type(None)), "module")
    kind = known or f"{take(record, 'class_name', str, 'module')}, restored as a plain module"
    lines = [f"{indent}  {take(record, 'name', str, 'module')} ({kind})"]
    if index in seen:
        return [lines[0] + " (shown above)"]
    seen.add(index)
    if "not_traced" in record:
        lines.append(f"{indent}    not callable once loaded: {record['not_traced']}")
    for name, encoded in take(record, "attributes", dict, "module").items():
        lines += _attribute_lines(contents, name, encoded, indent + "  ", seen)
    return lines


def _attribute_lines(
    contents: Contents, name: str, encoded: Any, indent: str, seen: set[int]
) -> list[str]:
    if type(encoded) is not dict or len(encoded) != 1 or len(indent) > 200:
        return []
    ((tag, content),) = encoded.items()
    if tag == "variable" and type(content) is int and 0 <= content < len(contents.variables):
        record = contents.variables[content]
        shape = describe(tuple(record.get("shape", ())), record.get("dtype"))
        trains = "" if record.get("trainable") else ", not trainable"
        return [f"{indent}  {name}: {shape}{trains}"]
    if tag == "module" and type(content) is int and 0 <= content < len(contents.modules):
        lines = _module_lines(contents, content, indent, seen)
        return [f"{indent}  {name}: {lines[0].strip()}", *lines[1:]]
    items: list[tuple[str, Any]] = []
    if tag in ("list", "tuple") and type(content) is list:
        items = [(f"{name}/{i}", item) for i, item in enumerate(content)]
    elif tag == "dict" and type(content) is dict:
        items = [(f"{name}/{key}", item) for key, item in content.items()]
    return [
        line for key, item in items for line in _attribute_lines(contents, key, item, indent, seen)
    ]


def _function_lines(contents: Contents) -> list[str]:
    lines = []
    owners: dict[int, str] = {}
    for record in contents.modules:
        for name, number in take(record, "functions", dict, "module").items():
            owners.setdefault(number, f"{record['name']}.{name}")
    for name, number in contents.signatures.items():
        owners.setdefault(number, f"signatures.{name}")
    for number, record in enumerate(contents.functions):
        for trace in take(record, "traces", list, "function"):
            graph = parse(contents.text(take(trace, "dataset", str, "function")))
            body = take(graph, "graph", dict, "function")
            inputs = ", ".join(_described(item) for item in take(body, "inputs", list, "graph"))
            checks = len(trace.get("golden", []))
            nodes = take(body, "nodes", list, "graph")
            lines.append(
                f"  {owners.get(number, record.get('name'))}({inputs}): {len(nodes)} nodes, "
                f"{checks} golden samples"
            )
            lines += [f"    custom gradient {label}" for label in _custom_gradients(nodes)]
    return lines or ["  none"]


def _described(item: Any) -> str:
    shape = item.get("shape")
    text = describe(None if shape is None else tuple(shape), item.get("dtype"))
    return f"{item['name']}: {text}" if item.get("name") else text


def _custom_gradients(nodes: list[Any], depth: int = 0) -> list[str]:
    labels = []
    for node in nodes:
        if type(node) is dict and "custom_gradient" in node and depth < 60:
            inner = take(take(node, "backward", dict, "node"), "nodes", list, "graph")
            nested = _custom_gradients(inner, depth + 1)
            inside = f", with {', '.join(nested)} inside" if nested else ""
            labels.append(f"{node['custom_gradient']} ({len(inner)} nodes{inside})")
    return labels
