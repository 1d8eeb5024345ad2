"""What only files of format 1 have: SHA-256 digests in the manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..container.storage import OpenFile
from ..errors import DamagedFile
from ..records.schema import take


class OldDigests:
    """The digests of a manifest of format 1."""

    def __init__(self, file: OpenFile, manifest: Mapping[str, Any]) -> None:
        self._path = file.path
        self._digests: dict[str, Any] = take(manifest, "digests", dict, "manifest")
        unlisted = set(file.sizes) - set(self._digests) - {"/manifest"}
        missing = set(self._digests) - set(file.sizes)
        if unlisted or missing:
            raise DamagedFile(
                f"{file.path}: the datasets are not those of the manifest "
                f"({', '.join(sorted(unlisted | missing)[:3])})"
            )

    def check(self, path: str, found: str) -> None:
        """Refuse a dataset with a different digest."""
        if self._digests.get(path) != found:
            raise DamagedFile(f"{self._path}: {path} does not match its digest")


def array_digest(array: np.ndarray[Any, Any]) -> str:
    """Return the SHA-256 of an array's dtype, shape and elements (C order, little endian)."""
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    state = hashlib.sha256(f"{plain.dtype.name}{list(array.shape)}".encode())
    state.update(plain.reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
