"""A checkpoint as a file of the format: a module of variables and values, without graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.extend import Variable, exclusive, to_numpy
from ..container.storage import OpenFile, storage_of
from ..errors import DamagedFile, LoadError, SaveError, printable
from ..reading.contents import open_contents
from ..records.schema import (
    CHECKPOINT,
    at,
    decode,
    dump,
    encode,
    tagged,
)
from ..writing.modules import Places
from ..writing.save import ATTRIBUTES
from .trackables import Trackables, decode_state, encode_state


class _Contents:
    """The contents of a file: a manifest, and datasets by path."""

    def __init__(self, tracked: Trackables, record: Mapping[str, Any]) -> None:
        self.datasets: dict[str, np.ndarray[Any, Any]] = {}
        self._variables: list[dict[str, Any]] = []
        self._places = Places()
        nodes: dict[str, Any] = {}
        for path, variable, array in _now(tracked):
            nodes[path] = self._variable(path, array, variable.name, variable.trainable)
        for path, held in tracked.objects.items():
            nodes[path] = encode_state(held.get(), path, self._array)
        root = {
            "name": CHECKPOINT,
            "class": None,
            "class_name": "Checkpoint",
            "attributes": _nested(tracked.names, nodes),
            "functions": {},
        }
        manifest = {
            "modules": [root],
            "signatures": {},
            "functions": [],
            "variables": self._variables,
            "requires": [],
            CHECKPOINT: {key: encode(value, key) for key, value in record.items()},
        }
        try:
            self.texts = {"/manifest": dump(manifest, "the checkpoint")}
        except SaveError:
            for path, node in nodes.items():  # which of them it is
                dump([{"attributes": _nested([], {path: node})}], printable(path))
            raise

    def _variable(self, path: str, array: Any, name: str, trainable: bool) -> dict[str, int]:
        held = np.asarray(array)
        dataset = self._places.take(path)
        self.datasets[dataset] = held
        self._variables.append(
            {
                "dataset": dataset,
                "name": name,
                "trainable": trainable,
                "shape": list(held.shape),
                "dtype": held.dtype.name,
            }
        )
        return {"variable": len(self._variables) - 1}

    def _array(self, array: np.ndarray[Any, Any]) -> str:
        dataset = f"/arrays/{len(self.datasets)}"
        self.datasets[dataset] = array
        return dataset


def _now(tracked: Trackables) -> list[tuple[str, Variable, Any]]:
    """Return path, variable and array of everything that is stored, at one moment."""
    kept = [(path, variable) for path, variable in tracked.variables.items()]
    kept += [(path, state) for path, _, state in tracked.states()]
    with exclusive(variable for _, variable in kept):  # arrays are replaced, never written
        arrays = [variable.array for _, variable in kept]
    return [(path, x, to_numpy(array)) for (path, x), array in zip(kept, arrays, strict=True)]


def _nested(names: list[str], nodes: Mapping[str, Any]) -> dict[str, Any]:
    """Return nodes by path as dictionaries in dictionaries."""
    root: dict[str, Any] = {name: {"dict": {}} for name in names}
    for path, node in nodes.items():
        *above, last = path.split("/")
        held = root
        for i, part in enumerate(above, 1):
            if "/".join(above[:i]) in nodes:
                raise SaveError(f"{path}: {part!r} in it is already taken; rename one")
            held = held.setdefault(part, {"dict": {}})["dict"]
        if last in held and path not in names:
            raise SaveError(f"{path}: two objects have this path; rename one")
        held[last] = node
    return root


def write_checkpoint(
    path: str | os.PathLike[str] | None, tracked: Trackables, record: Mapping[str, Any]
) -> None:
    """Write a checkpoint, completely or not at all.

    Parameters
    ----------
    path
        The file; None to check only that everything can be stored.
    tracked
        What to write.
    record
        Its description: plain values by name.

    Raises
    ------
    SaveError
        If something cannot be stored; nothing was then written.
    """
    unbuilt = tracked.unbuilt()
    for name, module in tracked.modules.items():
        inside = [place for place in unbuilt if f"{place}/".startswith(f"{name}/")]
        if inside and not module.variables and path is not None and not tracked.may_be_unbuilt:
            raise SaveError(
                f"{inside[0]} has no weights yet; call the model with a batch before it is saved"
            )
    for place in tracked.twice:
        raise SaveError(
            f"{place}: two objects have this path, and a file could not tell them apart; rename an "
            "attribute or a key (1 and '1' are one name in a path, and '/' separates names)"
        )
    contents = _Contents(tracked, record)
    storage = storage_of(path)
    if path is None:
        storage.check(ATTRIBUTES, contents.texts, contents.datasets)
    else:
        storage.save(path, ATTRIBUTES, contents.texts, contents.datasets)


class Stored:
    """An open file that is a checkpoint.

    Parameters
    ----------
    file
        The file.

    Attributes
    ----------
    record : dict
        The writer's description.
    attributes : dict
        The JSON of its contents, by name.

    Raises
    ------
    LoadError
        If it is not a checkpoint.
    """

    def __init__(self, file: OpenFile) -> None:
        self.path = file.path
        self._contents = open_contents(file)
        manifest = self._contents.manifest
        if manifest.checkpoint is None:
            raise LoadError(
                f"{file.path}: not a checkpoint; gradtape.load loads files of gradtape.save"
            )
        self.record = {key: decode(value) for key, value in manifest.checkpoint.items()}
        self.attributes = manifest.modules[0].attributes

    def leaves(self, names: list[str], whole: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON of the file's contents under these names, by path.

        Parameters
        ----------
        names
            The names.
        whole
            By path, entries that are one object, whatever their form in the file.
        """
        found: dict[str, Any] = {}
        queue = [
            (name, self.attributes[name]) for name in reversed(names) if name in self.attributes
        ]
        while queue:
            path, node = queue.pop()
            tag, content = tagged(node, path)
            if path in whole or tag != "dict":
                found[path] = node
            elif type(content) is not dict:
                raise DamagedFile(f"{path}: not a dictionary")
            else:
                queue += [(f"{path}/{key}", x) for key, x in reversed(content.items())]
        return found

    def declared(self, node: Any, where: str) -> tuple[str, tuple[int, ...]] | None:
        """Return the dtype and the shape of a node's array, if it is one."""
        tag, number = tagged(node, where)
        return self._contents.declared(self._dataset(number, where)) if tag == "variable" else None

    def arrays(self, nodes: Mapping[str, Any]) -> dict[str, np.ndarray[Any, Any]]:
        """Return the arrays of nodes, by path."""
        paths = {path: self._dataset(tagged(node, path)[1], path) for path, node in nodes.items()}
        found = self._contents.arrays(list(paths.values()))
        return {path: found[dataset] for path, dataset in paths.items()}

    def value(self, node: Any, where: str) -> Any:
        """Return a state of arrays and plain values."""
        return decode_state(node, where, self._contents.array)

    def _dataset(self, number: Any, where: str) -> str:
        return at(self._contents.manifest.variables, number, "variable", where).dataset
