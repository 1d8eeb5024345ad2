"""Write the bytes of a file, whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
from typing import Any

import h5py
import numpy as np

from ..errors import SaveError
from ..records.schema import FORMAT, VERSION, text_digest

__all__ = ["write"]


def write(path: str, contents: Any) -> None:
    """Write to a temporary file beside ``path``, make sure it is on disk, then put it in place."""
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise SaveError(f"{path}: there is no folder {folder}")
    temporary = os.path.join(folder, f".gradtape-{secrets.token_hex(8)}.h5")
    try:
        # made before HDF5 opens it: nobody else's file is overwritten, and the umask counts
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        with h5py.File(temporary, "w", libver=("v110", "v110")) as file:
            _fill(file, contents)
        if os.path.exists(path):
            os.chmod(temporary, os.stat(path).st_mode & 0o777)
        _sync(temporary)
        os.replace(temporary, path)
    except (OSError, RuntimeError, ValueError) as error:  # h5py raises any of them on a full disk
        raise SaveError(f"{path}: cannot be written ({error})") from error
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        _sync(folder)


def _fill(file: h5py.File, contents: Any) -> None:
    for name, text in (
        ("format", FORMAT),
        ("format_version", ".".join(map(str, VERSION))),
        ("manifest_sha256", text_digest(contents.manifest)),
    ):
        file.attrs[name] = np.bytes_(text)
    for path, text in {"/manifest": contents.manifest, **contents.texts}.items():
        data = text.encode()
        file.create_dataset(path, data=data, dtype=h5py.string_dtype("utf-8", len(data)))
    for path, array in contents.datasets.items():
        file.create_dataset(path, data=np.ascontiguousarray(array).reshape(array.shape))


def _sync(path: str) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
