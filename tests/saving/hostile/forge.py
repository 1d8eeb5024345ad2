"""Making hostile files: good ones, edited, with digests and checksums that are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rewriting import Draft

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


def forged(
    path: Path,
    manifest: Callable[[Any], Any] | None = None,
    graphs: Callable[[list[Any]], Any] | None = None,
    draft: Callable[[Draft], Any] | None = None,
) -> Path:
    """Edit a good file: its datasets, the JSON of its functions, its manifest; then seal it."""
    if not path.exists():
        good(path)
    held = Draft.of(path)
    if draft is not None:
        draft(held)
    if graphs is not None:
        names = sorted((x for x in held.texts if x.startswith("/functions/")), key=_number)
        records = [held.json(name) for name in names]
        graphs(records)
        for name, record in zip(names, records, strict=True):
            held.put(record, name)
    if manifest is not None:
        record = held.json()
        returned = manifest(record)
        held.put(record if returned is None else returned)
    return held.write(path)


def _number(path: str) -> int:
    return int(path.rsplit("/", 1)[1])


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
