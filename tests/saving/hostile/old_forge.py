"""Hostile files of format 1: made with h5py, their digests recomputed by the attacker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from gradtape.saving.reading.old import array_digest

__all__ = ["array_digest", "edited", "put_text", "seal"]


def put_text(file: h5py.File, path: str, text: str) -> None:
    if path in file:
        del file[path]
    data = text.encode("utf-8", "surrogateescape")
    file.create_dataset(path, data=data, dtype=h5py.string_dtype("utf-8", max(1, len(data))))


def seal(file: h5py.File, manifest: Any, known: dict[str, str] | None = None) -> None:
    """Store a manifest after recomputing every digest that can be recomputed."""
    if isinstance(manifest, dict):
        digests = {}

        def visit(name: str, item: Any) -> None:
            path = "/" + name
            if isinstance(item, h5py.Dataset) and path != "/manifest":
                try:
                    value = item[()]
                    if isinstance(value, bytes):
                        digests[path] = hashlib.sha256(value).hexdigest()
                    else:
                        digests[path] = array_digest(np.asarray(value))
                except Exception:  # what h5py itself cannot read here, the reader must refuse
                    digests[path] = "0" * 64

        file.visititems(visit)
        manifest["digests"] = digests | (known or {})
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    put_text(file, "/manifest", text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    file.attrs["manifest_sha256"] = np.bytes_(digest)


def edited(
    path: Path, change: Callable[[h5py.File], Any], digests: dict[str, str] | None = None
) -> Path:
    """Edit the HDF5 objects of a file of format 1, then seal it."""
    with h5py.File(path, "r+") as held:
        change(held)
        seal(held, json.loads(held["manifest"][()]), digests)
    return path
