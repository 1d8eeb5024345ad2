"""Open weights files of every supported kind, recognised by their content."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any

import numpy as np

from ..container.file import SafeFile
from ..container.profile import MAX_PATHS, SIGNATURE
from ..container.source import Source
from ..errors import DamagedFile, LoadError, NotAGradtapeFile, UnsafeFile
from ..reading.contents import Contents, open_contents
from ..records.schema import (
    CHECKPOINT,
    at,
    check_dtype,
    check_shape,
    decode,
    tagged,
    take,
    variable_label,
)
from .archives import archive_kind
from .arrays import Arrays, Entry
from .keras import open_keras
from .tensors import open_tensors

__all__ = ["open_arrays"]

_TORCH = (
    "is a pickle, which may hold code and is never read; where PyTorch is and the file is trusted: "
    'safetensors.torch.save_file(torch.load("model.pt", weights_only=True), "model.safetensors")'
)
# How many further names are made of modules that are in several places of a file.
_MAX_SHARED = 1000
_NUMPY = "is a file of NumPy; pass the arrays: gt.load_weights(dict(numpy.load(...)), model)"


def open_arrays(path: str | os.PathLike[str], max_bytes: int) -> Arrays:
    """Return the contents of a weights file, and keep it open.

    Raises
    ------
    LoadError
        If there is no such file, or it is damaged, unsafe or of an unknown kind.
    """
    file = Source(path)
    try:
        start = file.read(0, min(16, file.size))
        if start.startswith(SIGNATURE) and file.size > len(SIGNATURE):
            return _open_hdf5(path, file, max_bytes)
        if start.startswith(b"PK\x03\x04"):
            return _open_archive(file, max_bytes)
        # the length of a header may begin as a pickle does
        if start[8:9] == b"{" and int.from_bytes(start[:8], "little") <= file.size:
            return open_tensors(file, max_bytes)
        if start[:1] == b"\x80" and start[1:2] in b"\x02\x03\x04\x05":
            raise UnsafeFile(f"{file.path} {_TORCH}")
        if start.startswith(b"\x93NUMPY"):
            raise LoadError(f"{file.path} {_NUMPY}")
        if start[8:9] == b"{":
            return open_tensors(file, max_bytes)
    except BaseException:
        file.close()
        raise
    guess = file.guess()
    file.close()
    raise NotAGradtapeFile(
        f"{file.path}: not a weights file of a known kind{guess}. Known are files of gradtape, "
        "safetensors, and files of Keras (.weights.h5, .keras, .h5)"
    )


def _open_hdf5(path: str | os.PathLike[str], file: Source, max_bytes: int) -> Arrays:
    # gradtape writes this version of the superblock, and other programs hardly ever
    ours = file.read(8, 1) == b"\x02"
    arrays = None if ours else open_keras(file, max_bytes)
    if arrays is None:
        arrays = _open_gradtape(path, max_bytes)
        file.close()
    return arrays


def _open_archive(file: Source, max_bytes: int) -> Arrays:
    kind = archive_kind(file)
    if kind == "torch":
        raise UnsafeFile(f"{file.path} {_TORCH}")
    if kind == "numpy":
        raise LoadError(f"{file.path} {_NUMPY}")
    arrays = open_keras(file, max_bytes) if kind == "keras" else None
    if arrays is None:
        raise LoadError(f"{file.path}: a zip archive without weights of Keras in it")
    return arrays


# -- files of gradtape -----------------------------------------------------------------------------


def _open_gradtape(path: str | os.PathLike[str], max_bytes: int) -> Arrays:
    """Return the variables of a file by their paths, ignoring its functions."""
    stack = ExitStack()
    with stack:
        file = stack.enter_context(SafeFile(path, max_bytes))
        contents = open_contents(file)
        entries: dict[str, Entry] = {}
        aliases: dict[str, str] = {}
        places: dict[str, str] = {}
        for number, names in _paths(contents).items():
            record = contents.variables[number]
            where = f"{file.path}: variable {number}"
            dataset = take(record, "dataset", str, where)
            # the tree need not have the writer's name: a list in two places is encoded in one
            label = variable_label(dataset)
            own = label if label in names else names[0]
            if dataset.startswith("/variables/"):
                names.append(label)
            dtype, shape = contents.declared(dataset)
            said = check_shape(take(record, "shape", list, where), where, known=True)
            if (take(record, "dtype", str, where), said) != (dtype, shape):
                raise DamagedFile(f"{where} is declared differently from its dataset")
            read = partial(contents.array, dataset)
            places[own] = dataset
            entries[own] = Entry(shape, check_dtype(dtype, where), read)
            aliases.update({other: own for other in names if other != own})
        close = stack.pop_all().close

        def together(names: list[str]) -> dict[str, np.ndarray[Any, Any]]:
            found = contents.arrays([places[name] for name in names])
            return {name: found[places[name]] for name in names}

        return Arrays(
            file.path,
            entries,
            aliases,
            {},
            "gradtape",
            close,
            together,
            is_checkpoint=CHECKPOINT in contents.manifest,
        )
    raise AssertionError  # the stack passes every error on


def _paths(contents: Contents) -> dict[int, list[str]]:
    """Return the paths of variables in a file's tree, by number; each module is visited once."""
    found: dict[int, list[str]] = {}
    seen = {0: ""}
    queue = deque([("", 0)])
    again: list[tuple[str, str]] = []
    length = 0
    while queue:
        prefix, number = queue.popleft()
        where = f"{contents.file.path}: module {number}"
        attributes = take(contents.modules[number], "attributes", dict, where)
        for path, kind, item in _leaves(attributes, where):
            length += len(prefix) + len(path)
            if length > MAX_PATHS:
                raise UnsafeFile(f"{contents.file.path}: its paths are too long together")
            pool = contents.variables if kind == "variable" else contents.modules
            at(pool, item, kind, where)
            if kind == "variable":
                found.setdefault(item, []).append(prefix + path)
            elif item not in seen:
                seen[item] = f"{prefix}{path}/"
                queue.append((seen[item], item))
            else:
                again.append((f"{prefix}{path}/", seen[item]))
    # a module that is in two places: its variables have a name in each
    count = 0
    for other, first in again[:_MAX_SHARED]:
        for names in found.values():
            below = [name for name in names if first and name.startswith(first)]
            names += [other + name[len(first) :] for name in below]
            count += len(below)
        if count > _MAX_SHARED:
            break
    return found


def _leaves(attributes: Mapping[str, Any], where: str) -> Iterator[tuple[str, str, Any]]:
    """Yield the variables and modules in encoded attributes: path, kind and number."""
    queue = deque(attributes.items())
    while queue:
        path, encoded = queue.popleft()
        if encoded is None:
            continue
        tag, content = tagged(encoded, where)
        if tag in ("variable", "module"):
            yield path, tag, content
        elif tag in ("list", "tuple") and type(content) is list:
            queue += [(f"{path}/{i}", item) for i, item in enumerate(content)]
        elif tag == "dict" and type(content) is dict:
            queue += [(f"{path}/{key}", item) for key, item in content.items()]
        elif tag == "items" and type(content) is list:
            if any(type(pair) is not list or len(pair) != 2 for pair in content):
                raise DamagedFile(f"{where}: {path[:80]!r} is not a dictionary")
            queue += [(f"{path}/{decode(key)}", item) for key, item in content]
