"""The manifest of a file and its datasets, with their digests checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..container.safe import SafeFile
from ..errors import DamagedFile, NewerFormat, NotAGradtapeFile
from ..proofs.values import every_mth, spread, unpacked
from ..records.schema import FORMAT, VERSION, digest, parse, take, text_digest
from ..records.specs import read_spec

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
        self._digests: dict[str, Any] = take(manifest, "digests", dict, "manifest")
        if not self.modules:
            raise DamagedFile("manifest: no modules")
        unlisted = set(file.sizes) - set(self._digests) - {"/manifest"}
        missing = set(self._digests) - set(file.sizes)
        if unlisted or missing:
            raise DamagedFile(
                f"{file.path}: the datasets are not those of the manifest "
                f"({', '.join(sorted(unlisted | missing)[:3])})"
            )

    def array(self, path: str) -> np.ndarray[Any, Any]:
        """Return a dataset of numbers whose digest is right."""
        array = self.file.array(path)
        self._check(path, digest(array))
        return array

    def text(self, path: str) -> str:
        """Return a dataset of text whose digest is right."""
        text = self.file.text(path)
        self._check(path, text_digest(text))
        return text

    def _check(self, path: str, found: str) -> None:
        if self._digests.get(path) != found:
            raise DamagedFile(f"{self.file.path}: {path} does not match its digest")


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
    if major < 1:
        raise DamagedFile(f"{file.path}: there is no format {version}")
    file.check()
    text = file.text("/manifest")
    if text_digest(text) != file.attribute("manifest_sha256"):
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
