"""``inspect_text``: what a file holds, without running or building any of it."""

from __future__ import annotations

import os
from typing import Any

from ..core.registry import registry
from ..core.spec import describe
from .errors import DamagedFile
from .reader import Contents, open_contents
from .safe import SafeFile
from .schema import check_dtype, check_shape, parse, tagged, take, variable_label

__all__ = ["inspect_text"]

_TEXT = (str, type(None))


def inspect_text(path: str | os.PathLike[str]) -> str:
    """Return a description of a file: tree, shapes, functions, custom gradients, plugins, sizes.

    Raises
    ------
    LoadError
        If the file is damaged or unsafe.
    """
    with SafeFile(path) as file:
        contents = open_contents(file)
        lines = [*_heading(contents), "", "Modules", *_module_lines(contents, 0, "  ", set())]
        lines += ["", "Functions", *_function_lines(contents)]
        lines += ["", "Plugins needed", *_plugin_lines(contents)]
    return "\n".join(_printable(line) for line in lines)


def _printable(line: str) -> str:
    """Show what a stranger named without letting it steer the terminal."""
    return "".join(c if c.isprintable() else "?" for c in line)


def _heading(contents: Contents) -> list[str]:
    file = contents.file
    listed = [(take(r, "dataset", str, "variable"), r) for r in contents.variables]
    size = sum(file.sizes.get(path, 0) for path, _ in listed)
    trainable = sum(1 for _, record in listed if record.get("trainable") is True)
    other = {"graphs": "/functions/", "constants": "/constants/", "golden vectors": "/golden/"}
    sizes = [
        f"{label} {sum(n for path, n in file.sizes.items() if path.startswith(prefix)):,}"
        for label, prefix in other.items()
    ]
    return [
        f"{os.path.basename(file.path)}: gradtape format {file.attribute('format_version')}, "
        f"{os.path.getsize(file.path):,} bytes",
        f"  {len(listed)} variables ({trainable} trainable) of {size:,} bytes; "
        f"bytes of other contents: {', '.join(sizes)}",
    ]


# -- the tree --------------------------------------------------------------------------------------


def _module_lines(contents: Contents, index: int, indent: str, seen: set[int]) -> list[str]:
    record = contents.modules[index]
    known = take(record, "class", _TEXT, "module")
    kind = known or f"{take(record, 'class_name', str, 'module')}, restored as a plain module"
    heading = f"{indent}{take(record, 'name', str, 'module')} ({kind})"
    if index in seen:
        return [heading + " (shown above)"]
    seen.add(index)
    lines = [heading]
    for name, encoded in take(record, "attributes", dict, "module").items():
        lines += _attribute_lines(contents, name, encoded, indent + "  ", seen)
    if "untraced" in record:
        for name, reason in take(record, "untraced", dict, "module").items():
            lines.append(f"{indent}  {name}: not in the file ({str(reason)[:300]})")
    return lines


def _attribute_lines(
    contents: Contents, name: str, encoded: Any, indent: str, seen: set[int]
) -> list[str]:
    if encoded is None:
        return []
    tag, content = tagged(encoded, "module")
    if len(indent) > 400:
        return [f"{indent[:400]}..."]
    if tag == "variable":
        shape, record = _variable(contents, content)
        trains = "" if record.get("trainable") is True else ", not trainable"
        outside = variable_label(record["dataset"])
        kept = f", kept as {outside}" if outside.startswith("captured/") else ""
        return [f"{indent}{name}: {shape}{trains}{kept}"]
    if tag == "module":
        if type(content) is not int or not 0 <= content < len(contents.modules):
            raise DamagedFile(f"module: no module {str(content)[:40]}")
        lines = _module_lines(contents, content, indent, seen)
        return [f"{indent}{name}: {lines[0].strip()}", *lines[1:]]
    items: list[tuple[str, Any]] = []
    if tag in ("list", "tuple") and type(content) is list:
        items = [(f"{name}/{i}", item) for i, item in enumerate(content)]
    elif tag == "dict" and type(content) is dict:
        items = [(f"{name}/{key}", item) for key, item in content.items()]
    return [
        line for key, item in items for line in _attribute_lines(contents, key, item, indent, seen)
    ]


def _variable(contents: Contents, number: Any) -> tuple[str, dict[str, Any]]:
    if type(number) is not int or not 0 <= number < len(contents.variables):
        raise DamagedFile(f"module: no variable {str(number)[:40]}")
    record = contents.variables[number]
    where = f"variable {number}"
    shape = check_shape(take(record, "shape", list, where), where, known=True)
    dtype = check_dtype(take(record, "dtype", str, where), where)
    take(record, "dataset", str, where)
    return describe(shape, dtype), record


# -- functions -------------------------------------------------------------------------------------


def _function_lines(contents: Contents) -> list[str]:
    lines: list[str] = []
    owners: dict[int, list[str]] = {}
    for record in contents.modules:
        owner = take(record, "name", str, "module")
        for name, number in take(record, "functions", dict, "module").items():
            owners.setdefault(_number(number), []).append(f"{owner}.{name}")
    for name, number in contents.signatures.items():
        owners.setdefault(_number(number), []).append(f"signatures.{name}")
    for number, record in enumerate(contents.functions):
        own = take(record, "name", str, "function")
        lines.append("  " + ", ".join(owners.get(number, [f"{own} (used by a layer)"])))
        for trace in take(record, "traces", list, "function"):
            lines += _trace_lines(contents, trace)
    return lines or ["  none"]


def _trace_lines(contents: Contents, trace: Any) -> list[str]:
    function = parse(contents.text(take(trace, "dataset", str, "function")))
    graph = take(function, "graph", dict, "function")
    inputs = [_described(item) for item in take(graph, "inputs", list, "graph")]
    static = _static(function.get("arguments"))
    nodes = take(graph, "nodes", list, "graph")
    checks = len(take(trace, "golden", list, "function")) if "golden" in trace else 0
    samples = {0: "no golden samples", 1: "1 golden sample"}.get(checks, f"{checks} golden samples")
    if not checks and "not_sampled" in trace:
        samples += f" ({str(trace['not_sampled'])[:200]})"
    arguments = ", ".join([*inputs, *static])
    plural = "" if len(nodes) == 1 else "s"
    return [
        f"    ({arguments}): {len(nodes)} node{plural}, {samples}",
        *(f"      custom gradient {label}" for label in _custom_gradients(nodes)),
    ]


def _number(number: Any) -> int:
    if type(number) is not int:
        raise DamagedFile(f"manifest: no function {str(number)[:40]}")
    return number


def _described(item: Any) -> str:
    shape = check_shape(item.get("shape") if type(item) is dict else 0, "graph")
    text = describe(shape, check_dtype(take(item, "dtype", str, "graph"), "graph"))
    name = item.get("name")
    return f"{name}: {text}" if name else text


def _static(arguments: Any) -> list[str]:
    """Return the Python arguments that a trace depends on, as they stand in the file."""
    if type(arguments) is list:
        return [text for item in arguments for text in _static(item)]
    if type(arguments) is dict and len(arguments) == 1:
        ((tag, content),) = arguments.items()
        if tag == "spec":
            return []
        if tag == "dict" and type(content) is dict:
            return [text for item in content.values() for text in _static(item)]
        return _static(content) if tag == "tuple" else [str(content)[:80]]
    return [repr(arguments)[:80]]


def _custom_gradients(nodes: list[Any]) -> list[str]:
    labels = []
    for node in nodes:
        if type(node) is dict and "custom_gradient" in node:
            inner = take(take(node, "backward", dict, "node"), "nodes", list, "graph")
            nested = _custom_gradients(inner)
            inside = f", with {', '.join(nested)} inside" if nested else ""
            labels.append(f"{node['custom_gradient']} (gradient of {len(inner)} nodes{inside})")
    return labels


# -- plugins ---------------------------------------------------------------------------------------


def _plugin_lines(contents: Contents) -> list[str]:
    lines = []
    known = registry()
    for record in contents.requires:
        where = "requires"
        name, distribution = (take(record, key, str, where) for key in ("plugin", "distribution"))
        label = f"{distribution} {take(record, 'version', str, where)}".strip() or "no distribution"
        classes = [str(item) for item in take(record, "modules", list, where)]
        used = [str(item) for item in take(record, "ops", list, where)]
        lines.append(f"  {name} ({label}): {', '.join([*classes, *used])}")
        missing = [item for item in classes if item not in known.modules]
        missing += [item for item in used if item not in known.ops]
        if missing:
            lines.append(f"    missing here: {', '.join(missing)}")
    return lines or ["  none"]
