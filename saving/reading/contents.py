"""The manifest of a file and its datasets, with their digests checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.extend import Op, PluginError, means_the_same, registry, warn_user
from ..container.storage import OpenFile
from ..errors import (
    DamagedFile,
    MissingOp,
    MissingPlugin,
    NewerFormat,
    NotAGradtapeFile,
    UnsafeFile,
)
from ..proofs.golden import unpacked
from ..records.manifest import CaseRecord, Manifest, RequirementRecord
from ..records.schema import FORMAT, MAX_TOKENS, VERSION, parse, tokens

_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\Z")


class Contents:
    """The manifest of a file, and its datasets with their digests checked when read.

    Each dataset is read once, so reading is bounded by the size of the file, however often it says
    that a dataset is used.
    """

    def __init__(self, file: OpenFile, text: str) -> None:
        self.file = file
        self._tokens = MAX_TOKENS
        self._used: set[str] = set()
        self.manifest = Manifest.read(self._parsed(text), "manifest")

    def array(self, path: str, again: bool = False) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers with a verified digest, for its only use or ``again``."""
        return self.arrays([path], again)[path]

    def arrays(self, paths: Sequence[str], again: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """Return several datasets of numbers, for their only use or ``again``."""
        if not again:
            new = set(paths)
            if len(new) < len(paths) or not new.isdisjoint(self._used):
                for path in paths:
                    self._use(path)  # which says which of them
            self._used |= new
        return self.file.arrays(paths)

    def pending(self, path: str) -> Callable[[], np.ndarray[Any, Any]]:
        """Return a function that reads a dataset of numbers later, for its only use."""
        self._use(path)
        return partial(self.array, path, again=True)

    def declared(self, path: str) -> tuple[str, tuple[int, ...]]:
        """Return the dtype and the shape of a dataset of numbers, without reading it."""
        return self.file.declared(path)

    def check_variables(self) -> None:
        """Refuse variables whose datasets are not what the manifest says."""
        for i, record in enumerate(self.manifest.variables):
            if self.declared(record.dataset) != (record.dtype, record.shape):
                raise DamagedFile(
                    f"variable {i} is declared {record.dtype}{list(record.shape)}, its dataset "
                    "differs"
                )

    def json(self, path: str) -> Any:
        """Return what a text says whose digest is right, for its only use."""
        self._use(path)
        return self._parsed(self.file.text(path))

    def check_uses(self) -> None:
        """Refuse what no module, function or golden case uses."""
        if unused := sorted(set(self.file.sizes) - self._used - {"/manifest"}):
            raise DamagedFile(f"nothing uses {', '.join(unused[:3])}")

    def _use(self, path: str) -> None:
        if path in self._used:
            raise UnsafeFile(f"{path[:80]} is used twice")
        self._used.add(path)

    def _parsed(self, text: str) -> Any:
        found = parse(text, self._tokens)
        self._tokens -= tokens(text)
        return found


def check_format(file: OpenFile) -> None:
    """Refuse a file whose format is not read here."""
    if file.attribute("format") != FORMAT:
        raise NotAGradtapeFile(f"{file.path}: its format is {file.attribute('format')[:40]!r}")
    # before anything else is looked at: a newer format may hold what this one forbids
    version = file.attribute("format_version")
    if not _VERSION.match(version):
        raise DamagedFile(f"{file.path}: its format version is {version[:40]!r}")
    major, minor = (int(part) for part in version.split("."))
    if major > VERSION[0]:
        raise NewerFormat(
            f"{file.path}: written in format {major}.{minor}, this gradtape reads up to "
            f"{VERSION[0]}.x; upgrade with: pip install --upgrade gradtape"
        )
    if major != VERSION[0]:
        raise DamagedFile(f"{file.path}: its container is not the one of format {version}")


def open_contents(file: OpenFile) -> Contents:
    """Check everything in an open file, and read its manifest."""
    check_format(file)
    file.check()
    return Contents(file, file.text("/manifest"))


def read_case(
    contents: Contents, case: CaseRecord, again: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs of a golden case, and its outputs and gradients by name."""
    place = f"golden: {case.case[:80]}"
    flat = {name: contents.array(f"{case.case}/{name}", again) for name in case.dtypes}
    if any(array.ndim != 1 for array in flat.values()):
        raise DamagedFile(f"{place}: its arrays are not flat")
    try:
        arrays = unpacked([*case.inputs, *case.values], flat)
    except ValueError as error:
        raise DamagedFile(f"{place}: {error}") from None
    count = len(case.inputs)
    values = {str(spec.name): x for spec, x in zip(case.values, arrays[count:], strict=True)}
    return arrays[:count], values


# What the packaging rules allow (PEP 508); nothing else is shown as something to type.
_DISTRIBUTION = re.compile(r"[A-Z0-9](?:[A-Z0-9._-]{0,98}[A-Z0-9])?\Z", re.IGNORECASE)
_PLUGIN_VERSION = re.compile(r"[A-Za-z0-9.+!_-]{1,64}\Z")


def known_op(name: str) -> Op | None:
    """Return an op, or None if no plugin provides it, or the one that should cannot load it."""
    try:
        found: Any = registry().find(name)
    except PluginError:
        return None
    return found


def missing_here(record: RequirementRecord) -> list[str]:
    """Return what a file needs of a plugin and no plugin provides."""
    known = registry()
    missing = [op for op in record.ops if known_op(op) is None]
    missing += [cls for cls in record.modules if cls not in known.modules]
    return missing + [x for x in record.names or () if not known.has_name(x)]


def check_requirements(records: Sequence[RequirementRecord], allow_missing: bool) -> None:
    """Refuse a file that needs missing plugins, unless allowed; warn about other versions."""
    known = registry()
    others: list[str] = []
    for record in records:
        name, distribution, version = record.plugin, record.distribution, record.version
        missing = missing_here(record)
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
                f"was saved with {_shown(version, _PLUGIN_VERSION) or 'unknown'}"
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
    what += f" and {len(missing) - 5} more" if len(missing) > 5 else ""
    label = f"{_shown(distribution, _DISTRIBUTION)} {_shown(version, _PLUGIN_VERSION)}".strip()
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
    elif not distribution:  # a program registered it
        install = "; first import the code that registers it (gradtape.register_plugin)"
    if here is not None:
        state = f" (not in use here: {here.problem})"
    return MissingPlugin(
        f"the file needs plugin {name[:80]!r}{label and f' of {label}'} for {what}{install}"
        f"{state}. load(..., allow_missing=True) loads the rest"
    )


def _shown(text: str, pattern: re.Pattern[str]) -> str:
    """Return untrusted text, unchanged if it has the expected form."""
    return text if not text or pattern.match(text) else repr(text[:80])
