"""Open weights files of every supported kind, recognised by their content."""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...core.errors import BackendUnavailable
from ...core.extend import raised, registry
from ..container.limits import DTYPES, MAX_PATHS
from ..container.source import EndsTooEarly, Source
from ..container.storage import open_file, recognised
from ..errors import DamagedFile, LoadError, NotAGradtapeFile, UnsafeFile
from ..reading.contents import Contents, open_contents
from ..records.formats import format_of
from ..records.schema import (
    at,
    decode,
    tagged,
    variable_label,
)
from .arrays import Arrays, Entry, layout_of, of_arrays, of_lazy
from .layouts import RESTORE

# How many further names are made of modules that are in several places of a file.
_MAX_SHARED = 1000


def open_arrays(path: Any, max_bytes: int) -> Arrays:
    """Return the contents of a weights file, and keep it open.

    The file's content decides on the format, or its name if the format of this name does not look
    at the content.

    Parameters
    ----------
    path
        The file: a path, or its bytes.
    max_bytes
        The maximum memory of the arrays together.

    Raises
    ------
    LoadError
        If there is no such file, or it is damaged, unsafe or of an unknown kind.
    """
    container = recognised(path)
    if container is not None and not os.path.isfile(path):
        return open_own(path, max_bytes)
    file = Source(path)
    try:
        ending, named = format_of(path, _reads)
        if named is not None and not hasattr(named, "recognises"):
            try:
                return _read(ending, named, path, file.path, max_bytes)
            except DamagedFile:  # a process without its plugin wrote gradtape's own format
                if container is None:
                    raise
                with suppress(LoadError):
                    return open_own(path, max_bytes)
                raise
        known = registry()
        reads = {
            id(x): (end, x)
            for end, x in known.formats.items()
            if hasattr(x, "recognises") and _reads(x)
        }
        failed: list[str] = []
        found = [(end, x) for end, x in reads.values() if _recognises(end, x, file, failed)]
        if found:
            ranks = {end: known.candidates("format", end)[0].rank for end, _ in found}
            end, item = min(found, key=lambda x: (x[1] is not named, ranks[x[0]]))
            return _read(end, item, path, file.path, max_bytes)
        if container is not None:
            return open_own(path, max_bytes)
        guess = "".join([file.guess(), *failed])
    finally:
        file.close()
    formats = known.formats.items()
    read = ", ".join(end for end, x in formats if _reads(x) and not hasattr(x, "instead"))
    raise NotAGradtapeFile(
        f"{file.path}: not a weights file of a known kind{guess}. Known are files of gradtape, and "
        f"those of formats with the ends {read}; if the plugin of its format is missing, {RESTORE}"
    )


def _reads(item: Any) -> bool:
    return hasattr(item, "read") or hasattr(item, "open")


def _recognises(ending: str, item: Any, file: Source, failed: list[str]) -> bool:
    """Return whether a file is of a format; note one that fails, which must not hide the others."""
    try:
        return bool(item.recognises(file))
    except EndsTooEarly:
        return False
    except DamagedFile:  # it is of the format, and cannot be read
        raise
    except Exception as error:
        failed.append(f"; the format {ending} cannot tell ({raised(error)})")
        return False


def _read(ending: str, item: Any, origin: Any, path: str, max_bytes: int) -> Arrays:
    """Return what a format reads."""
    try:
        if hasattr(item, "open"):
            found = item.open(origin, max_bytes)
            if isinstance(found, Arrays):
                return found
        else:
            parameters = inspect.signature(item.read).parameters
            limit = {"max_bytes": max_bytes} if "max_bytes" in parameters else {}
            found = item.read(origin, **limit)
        arrays, metadata = found if isinstance(found, tuple) else (found, {})
        if not isinstance(arrays, Mapping):
            raise TypeError(f"it returned {type(arrays).__name__} instead of arrays by name")
        if not isinstance(metadata, Mapping) or any(
            type(x) is not str for pair in metadata.items() for x in pair
        ):
            raise TypeError(f"its metadata are {metadata!r:.80} instead of texts by name")
        held = of_lazy(arrays) if hasattr(item, "open") else of_arrays(arrays)
    except (LoadError, BackendUnavailable):
        raise
    except Exception as error:
        raise DamagedFile(
            f"{path}: the plugin's format {ending} failed with {type(error).__name__}: {error}"
        ) from error
    held.path = path
    total = sum(prod(x.shape) * x.dtype.itemsize for x in held.entries.values())
    if total > max_bytes:
        raise UnsafeFile(
            f"{path}: the arrays take {total:,} bytes, more than {max_bytes:,}; "
            "raise max_bytes if you trust the file"
        )
    held.layout = layout_of(metadata)
    names = held.entries
    held.aliases = {k: v for k, v in metadata.items() if v in names and k not in names}
    return held


# -- files of gradtape -----------------------------------------------------------------------------


def open_own(path: Any, max_bytes: int) -> Arrays:
    """Return the variables of a file by their paths, ignoring its functions."""
    stack = ExitStack()
    with stack:
        file = stack.enter_context(open_file(path, max_bytes))
        contents = open_contents(file)
        entries: dict[str, Entry] = {}
        aliases: dict[str, str] = {}
        places: dict[str, str] = {}
        for number, names in _paths(contents).items():
            record = contents.manifest.variables[number]
            dataset = record.dataset
            # the tree need not have the writer's name: a list in two places is encoded in one
            label = variable_label(dataset)
            own = label if label in names else names[0]
            if dataset.startswith("/variables/"):
                names.append(label)
            dtype, shape = contents.declared(dataset)
            if (record.dtype, record.shape) != (dtype, shape):
                raise DamagedFile(
                    f"{file.path}: variable {number} is declared differently from its dataset"
                )
            read = partial(contents.array, dataset)
            places[own] = dataset
            entries[own] = Entry(shape, DTYPES[dtype], read)
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
            is_checkpoint=contents.manifest.checkpoint is not None,
        )
    raise AssertionError  # the stack passes every error on


def _paths(contents: Contents) -> dict[int, list[str]]:
    """Return the paths of variables in a file's tree, by number; each module is visited once."""
    modules: Any = contents.manifest.modules
    variables: Any = contents.manifest.variables
    found: dict[int, list[str]] = {}
    seen = {0: ""}
    queue = deque([("", 0)])
    again: list[tuple[str, str]] = []
    length = 0
    while queue:
        prefix, number = queue.popleft()
        where = f"{contents.file.path}: module {number}"
        for path, kind, item in _leaves(modules[number].attributes, where):
            length += len(prefix) + len(path)
            if length > MAX_PATHS:
                raise UnsafeFile(f"{contents.file.path}: its paths are too long together")
            at(variables if kind == "variable" else modules, item, kind, where)
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
