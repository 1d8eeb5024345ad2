"""The manifest of a file and its datasets, with their digests checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..container.file import SafeFile
from ..errors import DamagedFile, NewerFormat, NotAGradtapeFile
from ..proofs.values import every_mth, spread, unpacked
from ..records.schema import FORMAT, VERSION, parse, take
from ..records.specs import read_spec
from .old import OldDigests, array_digest, text_digest

__all__ = ["Contents", "cases_of", "open_contents", "read_case", "thinning_of"]

_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\Z")


class Contents:
    """The manifest of a file, and its datasets with their digests checked when read."""

    def __init__(self, file: SafeFile, manifest: Mapping[str, Any]) -> None:
        self.file = file
        self.manifest = manifest
        self.modules: list[Any] = take(manifest, "modules", list, "manifest")
        self.functions: list[Any] = take(manifest, "functions", list, "manifest")
        self.variables: list[Any] = take(manifest, "variables", list, "manifest")
        self.signatures: dict[str, Any] = take(manifest, "signatures", dict, "manifest")
        self.requires: list[Any] = take(manifest, "requires", list, "manifest")
        self._old: OldDigests | None = OldDigests(file, manifest) if file.is_old else None
        if not self.modules:
            raise DamagedFile("manifest: no modules")

    def array(self, path: str) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers whose digest is right."""
        return self.arrays([path])[path]

    def arrays(self, paths: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
        """Return several datasets of numbers, each of which is asked for once."""
        if len(set(paths)) != len(paths):
            raise DamagedFile("two variables have one dataset")
        found = self.file.arrays(paths)
        if self._old is not None:
            for path, array in found.items():
                self._old.check(path, array_digest(array))
        return found

    def declared(self, path: str) -> tuple[str, tuple[int, ...]]:
        """Return the dtype and the shape of a dataset of numbers, which is not read."""
        return self.file.declared(path)

    def text(self, path: str) -> str:
        """Return a dataset of text whose digest is right."""
        text = self.file.text(path)
        if self._old is not None:
            self._old.check(path, text_digest(text))
        return text


def open_contents(file: SafeFile) -> Contents:
    """Check everything in an open file, and read its manifest."""
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
    if major != (1 if file.is_old else 2):
        raise DamagedFile(f"{file.path}: a file of its kind is not of format {version}")
    file.check()
    text = file.text("/manifest")
    if file.is_old and text_digest(text) != file.attribute("manifest_sha256"):
        raise DamagedFile(f"{file.path}: the manifest does not match its digest")
    return Contents(file, parse(text))


def cases_of(record: Any) -> list[Any]:
    """Return the golden cases of a function's record, for all of its traces."""
    found: list[Any] = []
    for trace in take(record, "traces", list, "function"):
        if type(trace) is dict and "golden" in trace:
            found += take(trace, "golden", list, "golden")
    return found


def thinning_of(case: Any) -> Callable[[Any], Any]:
    """Return what a golden case keeps of a large array."""
    if "elements" not in case:
        return every_mth
    if take(case, "elements", str, "golden") != "spread":
        raise DamagedFile(f"golden: unknown choice of elements {case['elements'][:40]!r}")
    return spread


def read_case(contents: Contents, case: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs of a golden case, and its outputs and gradients by name."""
    base = take(case, "case", str, "golden")
    given = [read_spec(record, "golden") for record in take(case, "inputs", list, "golden")]
    made = [read_spec(record, "golden") for record in take(case, "values", list, "golden")]
    if any(spec.shape is None or None in spec.shape for spec in (*given, *made)):
        raise DamagedFile(f"golden: {base[:80]} has a shape that is not known")
    names = {spec.dtype.name for spec in (*given, *made)}
    flat = {name: contents.array(f"{base}/{name}") for name in sorted(names)}
    try:
        arrays = unpacked([*given, *made], flat)
    except ValueError as error:
        raise DamagedFile(f"golden: {base[:80]}: {error}") from None
    values = {str(spec.name): x for spec, x in zip(made, arrays[len(given) :], strict=True)}
    return arrays[: len(given)], values
