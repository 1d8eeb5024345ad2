"""Making hostile files: good ones, edited with h5py, their digests recomputed by the attacker."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import gradtape as gt


class Victim(gt.Module):
    """A little of everything that files hold."""

    def __init__(self) -> None:
        super().__init__()
        self.w = gt.Variable(np.arange(6.0, dtype="float32").reshape(2, 3))
        self.flag = gt.Variable(np.array([True, False]))
        self.wave = gt.Variable(np.array([1 + 2j], "complex64"))
        self.count = gt.Variable(0)
        self.parts = [gt.Variable(1.0), {"deep": (gt.Variable(2.0), "text", 0.5, None)}]
        self.layer = gt.layers.Dense(2, activation=lambda x: gt.sin(x) * 2.0)
        self.layer(np.ones((1, 3), "float32"))
        self.up = self

    @gt.function(input_signature=[gt.TensorSpec(None)])
    def cube(self, x: Any, n: int = 2) -> Any:
        @gt.custom_gradient
        def cube(x: Any) -> Any:
            return x * x * x, lambda g: 10.0 * g * x * x

        self.count.assign_add(1)
        self.count.assign_add(n)
        return cube(x), {"c": x + gt.constant([1.0, 2.0, 3.0])}

    @gt.function(input_signature=[gt.TensorSpec(["rows", 2])])
    def project(self, x: Any) -> Any:
        return gt.sum(gt.matmul(x, self.w), axis=0) * self.parts[0]


INPUT = np.linspace(-1.0, 1.0, 6, dtype="float32").reshape(2, 3)


def behaviour(path: Path) -> list[Any]:
    """Return what a file's functions and variables give: the same means the same model."""
    model = gt.load(path)
    first, second = model.cube(INPUT)
    results = [first, second["c"], model.project(INPUT[:, :2]), model.layer(INPUT)]
    return [x.numpy().tobytes() for x in (*results, *model.variables)]


def good(path: Path) -> Path:
    """Write a file that is all right."""
    gt.save(Victim(), path)
    return path


def array_digest(array: np.ndarray[Any, Any]) -> str:
    head = f"{array.dtype.name}{list(array.shape)}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()


def put_text(file: h5py.File, path: str, text: str) -> None:
    if path in file:
        del file[path]
    data = text.encode("utf-8", "surrogateescape")
    file.create_dataset(path, data=data, dtype=h5py.string_dtype("utf-8", max(1, len(data))))


def get_text(file: h5py.File, path: str) -> str:
    return file[path][()].decode()


def seal(file: h5py.File, manifest: Any, known: dict[str, str] | None = None) -> None:
    """Store a manifest after recomputing every digest that can be recomputed."""
    if isinstance(manifest, dict) and isinstance(manifest.get("digests"), dict):
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
        manifest["digests"] = {**manifest["digests"], **digests, **(known or {})}
        for path in set(manifest["digests"]) - set(digests):
            del manifest["digests"][path]
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    put_text(file, "/manifest", text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
    file.attrs["manifest_sha256"] = np.bytes_(digest)


def forged(
    path: Path,
    manifest: Callable[[Any], Any] | None = None,
    graphs: Callable[[list[Any]], Any] | None = None,
    file: Callable[[h5py.File], Any] | None = None,
    digests: dict[str, str] | None = None,
) -> Path:
    """Edit a good file: its HDF5 objects, the JSON of its functions, its manifest; then seal it."""
    if not path.exists():
        good(path)
    with h5py.File(path, "r+") as held:
        if file is not None:
            file(held)
        if graphs is not None:
            names = sorted(held["functions"], key=int)
            records = [json.loads(get_text(held, f"/functions/{name}")) for name in names]
            graphs(records)
            for name, record in zip(names, records, strict=True):
                put_text(held, f"/functions/{name}", json.dumps(record))
        record = json.loads(get_text(held, "/manifest"))
        if manifest is not None:
            returned = manifest(record)
            record = record if returned is None else returned
        seal(held, record, digests or {})
    return path


# -- places in the JSON of the victim --------------------------------------------------------------


def root(m: Any) -> Any:
    return m["modules"][0]


def dense(m: Any) -> Any:
    return next(record for record in m["modules"] if record["class"] == "layers.Dense")


def put(place: Any, key: Any, value: Any) -> Any:
    place[key] = value


def graph(records: list[Any], name: str = "cube") -> Any:
    return next(r for r in records if r["name"].endswith(name))["graph"]


def node(records: list[Any], kind: str, name: str = "cube") -> Any:
    return next(n for n in graph(records, name)["nodes"] if n.get("op") == kind or kind in n)


def function(records: list[Any]) -> Any:
    return next(r for r in records if r["name"].endswith("cube"))
