"""``inspect_text``: what a file holds, without running or building any of it."""

from __future__ import annotations

import os
from typing import Any

from ...core.extend import describe, registry
from ..container.file import SafeFile
from ..errors import DamagedFile, guarded
from ..reading.contents import Contents, open_contents
from ..records.schema import check_dtype, check_shape, decode, tagged, take, variable_label
from ..records.specs import read_spec

__all__ = ["inspect_text"]

_TEXT = (str, type(None))


def inspect_text(path: str | os.PathLike[str]) -> str:
    """Return a description of a file: tree, shapes, functions, custom gradients, plugins, sizes.

    Nothing of the file is run or built.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    str
        Several lines of text.

    Raises
    ------
    LoadError
        If the file is missing, damaged or unsafe.

    Examples
    --------
    >>> import os, tempfile
    >>> model = gt.Module("settings")
    >>> model.rate = gt.Variable(0.5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "settings.h5")
    ...     gt.save(model, path)
    ...     text = gt.saving.inspect_text(path)
    >>> [line.strip() for line in text.splitlines() if "rate" in line]
    ['rate: float32[]']
    """
    with guarded(path), SafeFile(path) as file:
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
        f"{file.length:,} bytes",
        f"  {len(listed)} variables ({trainable} trainable) of {size:,} bytes; "
        f"bytes of other contents: {', '.join(sizes)}",
    ]


# -- the tree --------------------------------------------------------------------------------------


def _module_lines(contents: Contents, index: int, indent: str, seen: set[int]) -> list[str]:
    record = contents.modules[index]
    known = take(record, "class", _TEXT, "module")
    kind = known or f"{take(record, 'class_name', str, 'module')}, restored as a plain module"
    kind += ", frozen" if "frozen" in record else ""
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
        config = take(record, "config", dict, "module") if "config" in record else {}
        for key, encoded in config.items():
            if type(encoded) is dict and "function" in encoded:
                owners.setdefault(_number(encoded["function"]), []).append(f"{owner}.{key}")
    for name, number in contents.signatures.items():
        owners.setdefault(_number(number), []).append(f"signatures.{name}")
    for number, record in enumerate(contents.functions):
        own = take(record, "name", str, "function")
        sizes = " (saved for the sizes seen)" if record.get("sizes") == "seen" else ""
        lines.append("  " + ", ".join(owners.get(number, [own])) + sizes)
        names = [
            take(item, "name", str, "parameter")
            for item in take(record, "parameters", list, "function")
            if not take(item, "kind", str, "parameter").startswith(("keyword", "var"))
        ]
        for trace in take(record, "traces", list, "function"):
            lines += _trace_lines(contents, trace, names)
    return lines or ["  none"]


def _trace_lines(contents: Contents, trace: Any, names: list[str]) -> list[str]:
    function = contents.json(take(trace, "dataset", str, "function"))
    nodes = take(take(function, "graph", dict, "function"), "nodes", list, "graph")
    checks = len(take(trace, "golden", list, "function")) if "golden" in trace else 0
    samples = {0: "no golden samples", 1: "1 golden sample"}.get(checks, f"{checks} golden samples")
    if not checks and "not_sampled" in trace:
        samples += f" ({str(trace['not_sampled'])[:200]})"
    arguments = ", ".join(_arguments(take(function, "arguments", dict, "function"), names))
    plural = "" if len(nodes) == 1 else "s"
    return [
        f"    ({arguments}): {len(nodes)} node{plural}, {samples}",
        *(f"      custom gradient {label}" for label in _custom_gradients(nodes)),
    ]


def _arguments(encoded: dict[str, Any], names: list[str]) -> list[str]:
    """Return arguments as ``x: float32[?, 3]`` and ``training=False``."""
    pair = take(encoded, "tuple", list, "arguments")
    if len(pair) != 2:
        raise DamagedFile("function: its arguments are no pair")
    args = take(pair[0], "tuple", list, "arguments")
    labels = [*names, *(f"{i}" for i in range(len(names), len(args)))]
    given = [*zip(labels, args, strict=False), *take(pair[1], "dict", dict, "arguments").items()]
    return [
        f"{name}: {_shown(item)}" if _is_spec(item) else f"{name}={_shown(item)}"
        for name, item in given
    ]


def _number(number: Any) -> int:
    if type(number) is not int:
        raise DamagedFile(f"manifest: no function {str(number)[:40]}")
    return number


def _is_spec(item: Any) -> bool:
    return type(item) is dict and "spec" in item


def _shown(item: Any) -> str:
    """Return an encoded argument as Python would print it, tensors as their shapes and dtypes."""
    if type(item) is list:
        return f"[{', '.join(_shown(x) for x in item)}]"
    if type(item) is not dict:
        return repr(item)[:80]
    tag, content = tagged(item, "arguments")
    if tag == "spec":
        return str(read_spec(content, "arguments"))
    if tag == "tuple" and type(content) is list:
        return f"({', '.join(_shown(x) for x in content)})"
    if tag == "dict" and type(content) is dict:
        return "{" + ", ".join(f"{key}: {_shown(x)}" for key, x in content.items()) + "}"
    return str(decode(item))[:80]


def _custom_gradients(nodes: list[Any]) -> list[str]:
    labels = []
    for node in nodes:
        if type(node) is dict and "custom_gradient" in node:
            label = take(node, "custom_gradient", str, "node")
            backward = take(node, "backward", (dict, type(None)), "node")
            if backward is None:
                labels.append(f"{label} (saved without its gradient)")
                continue
            inner = take(backward, "nodes", list, "graph")
            nested = _custom_gradients(inner)
            inside = f", with {', '.join(nested)} inside" if nested else ""
            labels.append(f"{label} (gradient of {len(inner)} nodes{inside})")
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
