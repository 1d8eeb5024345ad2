"""Compare the plugins that a file needs with the installed ones."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...core.extend import PluginError, means_the_same, registry, warn_user
from ..errors import MissingOp, MissingPlugin
from ..records.schema import take

# What the packaging rules allow (PEP 508); nothing else is shown as something to type.
_DISTRIBUTION = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]{0,98}[A-Z0-9])?\Z", re.IGNORECASE)
_VERSION = re.compile(r"[A-Za-z0-9.+!_-]{1,64}\Z")


def known_op(name: str) -> Any:
    """Return an op, or None if no plugin provides it, or the one that should cannot load it."""
    try:
        return registry().find(name)
    except PluginError:
        return None


def check_requirements(records: Sequence[Any], allow_missing: bool) -> None:
    """Refuse a file that needs missing plugins, unless allowed; warn about other versions."""
    known = registry()
    others: list[str] = []
    for record in records:
        name = take(record, "plugin", str, "requires")
        distribution = take(record, "distribution", str, "requires")
        version = take(record, "version", str, "requires")
        needed = [str(op) for op in take(record, "ops", list, "requires")]
        missing = [op for op in needed if known_op(op) is None]
        classes = [str(cls) for cls in take(record, "modules", list, "requires")]
        missing += [cls for cls in classes if cls not in known.modules]
        if "names" in record:
            texts = take(record, "names", list, "requires")
            missing += [x for x in map(str, texts) if not known.has_name(x)]
        here = _plugin_here(known.infos, name, distribution)
        if missing and not allow_missing:
            try:
                known.find(missing[0])
            except PluginError as error:  # the plugin is here, and cannot load its ops
                raise MissingPlugin(f"the file needs {missing[0][:80]!r}: {error}") from None
            raise _missing(name, distribution, version, missing, here)
        if here is None or here.problem:
            continue
        if not means_the_same(version, here.version, here.compatible_since):
            others.append(
                f"plugin {name[:80]!r} has version {here.version or 'unknown'} here, the file "
                f"was saved with {_shown(version, _VERSION) or 'unknown'}"
            )
    if others:
        warn_user(
            f"load: {'; '.join(others)}. Its ops and classes may behave differently; gradtape "
            "verify compares the file's functions with the samples in it",
            UserWarning,
        )


def _plugin_here(infos: Sequence[Any], name: str, distribution: str) -> Any:
    """Return the plugin that a file names; not one of this name of another distribution."""
    named = [info for info in infos if info.name == name]
    same = [info for info in named if _normal(info.distribution) == _normal(distribution)]
    # one that was registered by hand may come from a distribution, and the other way round
    by_hand = [info for info in named if not (info.distribution and distribution)]
    return next(iter(same or by_hand), None)


def _normal(distribution: str) -> str:
    """Return a distribution's name as packaging compares it."""
    return re.sub("[-_.]+", "-", distribution).lower()


def _missing(
    name: str, distribution: str, version: str, missing: Sequence[str], here: Any
) -> MissingOp | MissingPlugin:
    what = ", ".join(_shown(x, re.compile(r"[\w.:]{1,80}\Z")) for x in missing[:5])
    label = f"{_shown(distribution, _DISTRIBUTION)} {_shown(version, _VERSION)}".strip()
    if here is not None and not here.problem:
        version = here.version or "unknown"
        return MissingOp(
            f"plugin {name[:80]!r} is installed in version {version}, but does not provide "
            f"{what}; the file was saved with {label or 'one of no distribution'}"
        )
    install = state = ""
    if _DISTRIBUTION.match(distribution):
        install = (
            "; a file can name any package: if you know this one and trust the file, install it "
            f"with: pip install {distribution}"
        )
    if here is not None:
        state = f" (not in use here: {here.problem})"
    return MissingPlugin(
        f"the file needs plugin {name[:80]!r}{label and f' of {label}'} for {what}{install}"
        f"{state}. load(..., allow_missing=True) loads the rest"
    )


def _shown(text: str, pattern: re.Pattern[str]) -> str:
    """Return untrusted text, unchanged if it has the expected form."""
    return text if not text or pattern.match(text) else repr(text[:80])
