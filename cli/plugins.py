"""``gradtape plugins``: the installed plugins, and what each of them provides."""

from __future__ import annotations

import json
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ..core.extend import Backend, Engine, PluginError, PluginInfo, Registry, registry

__all__ = ["op_table", "plugin_json", "plugin_table", "quiet_registry", "unavailable"]

#: The attributes of ``PluginInfo`` that list what a plugin provides; each is a table column.
KINDS = ("ops", "rules", "kernels", "modules", "executors", "backends", "collectives")


def plugin_table() -> str:
    """Return tables of plugins and what they provide, with notes on what cannot be used."""
    found = quiet_registry()
    heads = ["engines" if kind == "collectives" else kind for kind in KINDS]
    rows: list[Sequence[Any]] = [("plugin", "distribution", "version", "status", *heads)]
    notes = list(found.notes)
    for info in found.plugins:
        status, reason = _status(info, found)
        notes += [f"{info.name}: {told}" for told in (reason, *info.clashes, *info.notes) if told]
        counts = [len(getattr(info, kind)) for kind in KINDS]
        who = (info.name, info.distribution or "(by hand)", info.version or "-")
        rows.append((*who, status, *counts))
    backends: list[Sequence[Any]] = [("backend", "from", "available")]
    for name, backend in found.backends.items():
        usable = "no" if unavailable(backend) else "yes"
        backends.append((name, _provider(backend.provider), usable))
    executors: list[Sequence[Any]] = [("executor", "from")]
    executors += [(name, _provider(found.owner("executor", name))) for name in found.executors]
    engines: list[Sequence[Any]] = [("engine", "from", "available")]
    for name, engine in found.collectives.items():
        engines.append((name, _provider(engine.provider), "no" if unavailable(engine) else "yes"))
    tables = [format_table(rows, right=4), *map(format_table, (backends, executors, engines))]
    return "\n\n".join(
        [*tables, *(textwrap.fill(note, 100, break_on_hyphens=False) for note in notes)]
    )


def op_table() -> str:
    """Return a table of the ops, with the plugins that provide each kernel and gradient."""
    found = quiet_registry()
    rows: list[Sequence[Any]] = [("op", "kernel from", "gradient from", "own kernels for")]
    for name, kernel, gradient, special in _ops(found):
        rows.append((name, kernel, gradient or "-", ", ".join(special) or "-"))
    return f"{format_table(rows)}\n\n{len(found.ops)} ops"


def plugin_json(ops: bool = False) -> str:
    """Return the plugins, or the ops, as JSON text.

    A plugin has the keys ``name``, ``distribution``, ``version``, ``status``, ``problem``, those of
    ``KINDS`` (lists of names) and ``unavailable``, which maps backends and engines that cannot be
    used to the reasons. An op has the keys ``name``, ``kernel``, ``gradient`` and ``own_kernels``.
    """
    found = quiet_registry()
    if ops:
        return json.dumps(
            [
                {"name": name, "kernel": kernel, "gradient": gradient, "own_kernels": special}
                for name, kernel, gradient, special in _ops(found)
            ],
            indent=2,
        )
    records = []
    for info in found.plugins:
        status, problem = _status(info, found)
        provided = {key: sorted(map(str, getattr(info, key))) for key in KINDS}
        who = {"name": info.name, "distribution": info.distribution, "version": info.version}
        unavailable = {"unavailable": _unavailable(info, found)}
        records.append({**who, "status": status, "problem": problem, **provided, **unavailable})
    return json.dumps(records, indent=2)


def format_table(rows: Sequence[Sequence[Any]], right: int | None = None) -> str:
    """Return rows in aligned columns; the first row has the headings.

    The column with index ``right`` and those after it are aligned to the right.
    """
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    texts.insert(1, ["-" * width for width in widths])
    right = len(widths) if right is None else right
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < right else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in texts
    )


def _ops(found: Registry) -> Iterator[tuple[str, str, str | None, list[str]]]:
    """Give each op, the providers of its kernel and gradient, and backends with own kernels."""
    for name, op in sorted(found.ops.items()):
        special = sorted(backend for (of, backend) in found.kernels if of == name)
        gradient = _provider(op.rules_provider) if op.differentiable else None
        yield name, _provider(op.provider), gradient, special


def quiet_registry() -> Registry:
    """Return the registry with all ops, without warnings about plugins that are not in use."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the table shows them
        found = registry()
    for prefix in found.late_ops:
        with suppress(PluginError):  # the ops are then missing in the table
            found.find(f"{prefix}::")
    return found


def unavailable(part: Backend | Engine) -> str | None:
    """Return why a backend or engine cannot be used here; one that cannot say it is named."""
    try:
        return part.unavailable()
    except Exception as error:  # another distribution's code
        return f"{part.name!r}: unavailable() raised {type(error).__name__}: {error}"


def _status(info: PluginInfo, found: Registry) -> tuple[str, str]:
    """Return the status for the table, and the reason for the note below it."""
    if info.problem == "disabled":
        return "disabled", ""
    if info.problem:
        return "failed", info.problem
    if not any(isinstance(provided, list) and provided for provided in vars(info).values()):
        return "empty", "it provides nothing: no function is a hook, or all hooks returned nothing"
    reasons = _unavailable(info, found)
    usable = len(reasons) < len(info.backends) + len(info.collectives) or not reasons
    return "ready" if usable else "unavailable", " ".join(reasons.values())


def _unavailable(info: PluginInfo, found: Registry) -> dict[str, str]:
    """Return why a plugin's backends and engines cannot be used here, by their names."""
    parts: list[Any] = [x for x in found.backends.values() if x.provider is info]
    parts += [x for x in found.collectives.values() if x.provider is info]
    reasons = {part.name: unavailable(part) for part in parts}
    return {name: reason for name, reason in reasons.items() if reason}


def _provider(provider: Any) -> str:
    """Return the provider: a plugin, or the module that registered something by hand."""
    if not isinstance(provider, PluginInfo):
        return str(provider or "?")
    if not provider.distribution:
        return provider.name
    return f"{provider.name} ({provider.distribution} {provider.version})"
