"""The manifest of a file and its datasets, with their digests checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..container.storage import OpenFile
from ..errors import DamagedFile, NewerFormat, NotAGradtapeFile, UnsafeFile
from ..proofs.values import unpacked
from ..records.schema import FORMAT, MAX_TOKENS, VERSION, parse, take, tokens
from ..records.specs import read_spec

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
        manifest = self._parsed(text)
        self.manifest = manifest
        self.modules: list[Any] = take(manifest, "modules", list, "manifest")
        self.functions: list[Any] = take(manifest, "functions", list, "manifest")
        self.variables: list[Any] = take(manifest, "variables", list, "manifest")
        self.signatures: dict[str, Any] = take(manifest, "signatures", dict, "manifest")
        self.requires: list[Any] = take(manifest, "requires", list, "manifest")
        self.rules: list[Any] = (
            take(manifest, "rules", list, "manifest") if "rules" in manifest else []
        )
        if not self.modules:
            raise DamagedFile("manifest: no modules")

    def array(self, path: str, again: bool = False) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers with a verified digest, for its only use or ``again``."""
        return self.arrays([path], again)[path]

    def arrays(self, paths: Sequence[str], again: bool = False) -> dict[str, np.ndarray[Any, Any]]:
        """Return several datasets of numbers, for their only use or ``again``."""
        if not again:
            for path in paths:
                self._use(path)
        return self.file.arrays(paths)

    def pending(self, path: str) -> Callable[[], np.ndarray[Any, Any]]:
        """Return a function that reads a dataset of numbers later, for its only use."""
        self._use(path)
        return partial(self.array, path, again=True)

    def declared(self, path: str) -> tuple[str, tuple[int, ...]]:
        """Return the dtype and the shape of a dataset of numbers, without reading it."""
        return self.file.declared(path)

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


def cases_of(record: Any) -> list[Any]:
    """Return the golden cases of a function's record, for all of its traces."""
    found: list[Any] = []
    for trace in take(record, "traces", list, "function"):
        if type(trace) is dict and "golden" in trace:
            found += take(trace, "golden", list, "golden")
    return found


def read_case(
    contents: Contents, case: Any, again: bool = False
) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs of a golden case, and its outputs and gradients by name."""
    base = take(case, "case", str, "golden")
    if take(case, "elements", str, "golden") != "spread":
        raise DamagedFile(f"golden: unknown choice of elements {case['elements'][:40]!r}")
    given = [read_spec(record, "golden") for record in take(case, "inputs", list, "golden")]
    made = [read_spec(record, "golden") for record in take(case, "values", list, "golden")]
    if any(spec.shape is None or None in spec.shape for spec in (*given, *made)):
        raise DamagedFile(f"golden: {base[:80]} has a shape that is not known")
    names = {spec.dtype.name for spec in (*given, *made)}
    flat = {name: contents.array(f"{base}/{name}", again) for name in sorted(names)}
    if any(array.ndim != 1 for array in flat.values()):
        raise DamagedFile(f"golden: {base[:80]}: its arrays are not flat")
    try:
        arrays = unpacked([*given, *made], flat)
    except ValueError as error:
        raise DamagedFile(f"golden: {base[:80]}: {error}") from None
    values = {str(spec.name): x for spec, x in zip(made, arrays[len(given) :], strict=True)}
    return arrays[: len(given)], values
