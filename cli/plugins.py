"""``gradtape plugins``: the installed plugins, and what each of them provides.

The code of a plugin may fail, exit, print or hang: it is called with care, so that reports on
plugins always appear.
"""

from __future__ import annotations

import json
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from threading import Timer
from typing import Any

from ..core.extend import (
    DISABLE,
    HOST,
    Backend,
    Engine,
    PluginError,
    PluginInfo,
    Registry,
    lazy_module,
    raised,
    registry,
    reporting,
)

# -- calling plugins with care ---------------------------------------------------------------------


# How long a plugin may take until it is named, in seconds.
_PATIENCE = 10.0


@contextmanager
def quietly() -> Iterator[None]:
    """Let plugins be imported in a block without warnings or errors, which a report has.

    What they print goes to standard error, since the report may be JSON. A plugin that takes very
    long is named there, too.

    Yields
    ------
    None
    """
    timer = Timer(_PATIENCE, _name_slow)
    timer.daemon = True
    timer.start()
    try:
        with warnings.catch_warnings(), redirect_stdout(sys.stderr), reporting():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        timer.cancel()


def _name_slow() -> None:
    info = HOST.running
    if info is not None and sys.stderr is not None:
        print(
            f"gradtape: still waiting for {info}, which is imported; to leave it out, press Ctrl-C "
            f"and set {DISABLE}={info.choice}",
            file=sys.stderr,
            flush=True,
        )


def answer_of(function: Callable[[], Any]) -> tuple[Any, str]:
    """Return what a plugin's function returns, or why it returned nothing.

    Parameters
    ----------
    function
        A function without arguments.

    Returns
    -------
    answer : object
        ``None`` if there is a problem.
    problem : str
        What it raised; empty if it did not.
    """
    try:
        return function(), ""
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # it may exit, too
        return None, raised(error)


# -- reports ---------------------------------------------------------------------------------------


#: The words for kinds of things that are not those of the attributes of ``PluginInfo``.
_WORDS = {"collectives": "engines", "late_ops": "late groups"}


def plugin_table() -> str:
    """Return tables of plugins and what they provide, with notes on what cannot be used."""
    with quietly():
        return _table()


def _table() -> str:
    found = all_ops()
    late = [info.name for info in found.infos if info.waiting]
    infos = found.plugins
    api = ["api"] if any(info.api for info in infos) else []
    heads = ("plugin", "distribution", "version", *api, "status", "provides")
    rows: list[Sequence[Any]] = [heads]
    notes = list(found.notes)
    if late:
        notes.append(f"imported when what they provide is first needed: {', '.join(late)}")
    for info in infos:
        status, reason = _status(info, found)
        notes += [f"{info.name}: {told}" for told in (reason, *info.clashes, *info.notes) if told]
        who: list[Any] = [info.name, info.distribution or "(by hand)", info.version or "-"]
        who += [".".join(map(str, info.api or "-")) for _ in api]
        rows.append((*who, status, _counts(info)))
    backends: list[Sequence[Any]] = [("backend", "from", "available")]
    for name, backend in found.backends.items():
        usable = "no" if unavailable(backend) else "yes"
        backends.append((name, _provider(backend.provider), usable))
    executors: list[Sequence[Any]] = [("executor", "from")]
    executors += [(name, _provider(found.owner("executor", name))) for name in found.executors]
    engines: list[Sequence[Any]] = [("engine", "from", "available")]
    for name, engine in found.collectives.items():
        engines.append((name, _provider(engine.provider), "no" if unavailable(engine) else "yes"))
    tables = map(format_table, (rows, backends, executors, engines))
    notes += [str(contest) for contest in found.contested() if contest.winner is not None]
    return "\n\n".join(
        [*tables, *(textwrap.fill(note, 100, break_on_hyphens=False) for note in notes)]
    )


def _counts(info: PluginInfo) -> str:
    """Return how many things of each kind a plugin provides."""
    counts = {_WORDS.get(kind, kind): len(names) for kind, names in info.provides.items()}
    return ", ".join(f"{word} {n}" for word, n in counts.items() if n) or "-"


def op_table() -> str:
    """Return a table of the ops, with the plugins that provide each kernel and gradient."""
    with quietly():
        found = all_ops()
    rows: list[Sequence[Any]] = [("op", "kernel from", "gradient from", "own kernels for")]
    for name, kernel, gradient, special in _ops(found):
        rows.append((name, kernel, gradient or "-", ", ".join(special) or "-"))
    contests = [f"{contest}\n" for contest in found.contested(found.ops)]
    return f"{format_table(rows)}\n\n{''.join(contests)}{len(found.ops)} ops"


def check(name: str, as_json: bool = False) -> int:
    """Print the report of everything that a plugin provides; return the exit code."""
    try:
        report = lazy_module("testing").check_plugin(name, show=False)
    except LookupError as error:
        print(f"gradtape plugins: {error}", file=sys.stderr)
        return 2
    print(json.dumps(report.as_dict(), indent=2) if as_json else report)
    return 1 if report.wrong else 0


def plugin_json(ops: bool = False) -> str:
    """Return the plugins, or the ops, as JSON text.

    A plugin has the keys ``name``, ``distribution``, ``version``, ``api``, ``compatible_since``,
    ``status``, ``problem``, ``clashes``, ``notes``, ``late`` (the hooks that are called when what
    they provide is first needed), those of ``PluginInfo.provides`` (lists of names) and
    ``unavailable``, which maps backends and engines that cannot be used to the reasons. An op has
    the keys ``name``, ``kernel``, ``gradient``, ``own_kernels`` and ``contested``: what several
    plugins provide, with ``kind``, ``for`` (a backend or target), ``winner`` and ``others``.
    """
    with quietly():
        return json.dumps(_op_records() if ops else _plugin_records(), indent=2)


def _op_records() -> list[dict[str, Any]]:
    found = all_ops()
    return [_op_record(found, *row) for row in _ops(found)]


def _plugin_records() -> list[dict[str, Any]]:
    found = all_ops()
    late = {id(info): sorted(info.waiting) for info in found.infos}
    records = []
    for info in found.plugins:
        status, problem = _status(info, found)
        provided = {key: sorted(map(str, names)) for key, names in info.provides.items()}
        who = {"name": info.name, "distribution": info.distribution, "version": info.version}
        versions = {"api": info.api, "compatible_since": info.compatible_since}
        state = {"status": status, "problem": problem, "clashes": info.clashes}
        more = {"notes": info.notes, "late": late[id(info)]}
        unusable = {"unavailable": _unavailable(info, found)}
        records.append({**who, **versions, **state, **more, **provided, **unusable})
    return records


def _op_record(
    found: Registry, name: str, kernel: str, gradient: str | None, special: list[str]
) -> dict[str, Any]:
    contested = [
        {
            "kind": contest.kind,
            "for": contest.name[1] if isinstance(contest.name, tuple) else None,
            "winner": contest.winner and _provider(contest.winner),
            "others": [_provider(info) for info in contest.others],
        }
        for contest in found.contested([name])
    ]
    who = {"kernel": kernel, "gradient": gradient, "own_kernels": special}
    return {"name": name, **who, "contested": contested}


def format_table(rows: Sequence[Sequence[Any]]) -> str:
    """Return rows in aligned columns; the first row has the headings."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    texts.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in texts
    )


def _ops(found: Registry) -> Iterator[tuple[str, str, str | None, list[str]]]:
    """Give each op, the providers of its kernel and gradient, and backends with own kernels."""
    for name, op in sorted(found.ops.items()):
        special = sorted(backend for (of, backend) in found.kernels if of == name)
        gradient = _provider(op.rules_provider) if op.differentiable else None
        yield name, _provider(op.provider), gradient, special


def all_ops() -> Registry:
    """Return the registry, with all ops in it."""
    found = registry()
    for prefix in found.late_ops:
        with suppress(PluginError):  # the ops are then missing in the table
            found.find(f"{prefix}::")
    return found


def unavailable(part: Backend | Engine) -> str | None:
    """Return why a backend or engine cannot be used here; one that cannot say it is named."""
    found, problem = answer_of(part.unavailable)
    if problem:
        return f"{part.name!r}: unavailable() raised {problem}"
    if found is not None and not isinstance(found, str):
        return f"{part.name!r}: unavailable() returned {type(found).__name__} instead of a text"
    return found


def _status(info: PluginInfo, found: Registry) -> tuple[str, str]:
    """Return the status for the table, and the reason for the note below it."""
    if info.problem == "disabled":
        return "disabled", ""
    if info.problem:
        return "failed", info.problem
    if not any(info.provides.values()):
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
