"""Files whose trees of modules lie, read for their weights alone."""

from __future__ import annotations

import contextlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forge import forged

import gradtape as gt
from gradtape.saving import LoadError, UnsafeFile


def attributes(record: Any) -> dict[str, Any]:
    found: dict[str, Any] = record["modules"][0]["attributes"]
    return found


LIES: dict[str, Callable[[Any], Any]] = {
    "no such variable": lambda m: attributes(m).update(w={"variable": 99}),
    "a truth for a number": lambda m: attributes(m).update(w={"variable": True}),
    "no such module": lambda m: attributes(m).update(w={"module": -1}),
    "two tags": lambda m: attributes(m).update(w={"variable": 0, "module": 0}),
    "items of no pairs": lambda m: attributes(m).update(w={"items": [1]}),
    "another shape": lambda m: m["variables"][0].update(shape=[2**40, 2**40]),
    "another dtype": lambda m: m["variables"][0].update(dtype="object"),
    "no such dataset": lambda m: m["variables"][0].update(dataset="/variables/none"),
    "a text": lambda m: m["variables"][0].update(dataset="/manifest"),
    "no attributes": lambda m: m["modules"][0].pop("attributes"),
    "no module": lambda m: m["modules"].__setitem__(0, 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_trees_that_lie_are_refused(lie: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "f.h5", manifest=LIES[lie])
    with pytest.raises(LoadError) as caught:
        gt.saving.read_weights(path)
    assert str(caught.value).startswith(str(path))


def test_one_dataset_for_all_variables_is_no_bomb(tmp_path: Path) -> None:
    def share(manifest: Any) -> None:
        first = manifest["variables"][0]
        manifest["variables"] = [dict(first) for _ in range(200)]
        attributes(manifest).update({f"v{i}": {"variable": i} for i in range(200)})

    path = forged(tmp_path / "f.h5", manifest=share)
    with pytest.raises(UnsafeFile, match="is used twice"):
        gt.saving.read_weights(path)


def test_modules_in_ever_more_places_take_no_time(tmp_path: Path) -> None:
    def nest(manifest: Any) -> None:
        modules, first = manifest["modules"], len(manifest["modules"])
        twin = {**modules[0], "attributes": {}}
        modules += [dict(twin) for _ in range(40)]
        for i in range(39):
            below = {"module": first + i + 1}
            modules[first + i]["attributes"] = {f"p{k}": below for k in range(8)}
        attributes(manifest)["deep"] = {"module": first}

    path = forged(tmp_path / "f.h5", manifest=nest)
    assert gt.saving.read_weights(path)["w"].shape == (2, 3)


def test_random_lies_are_refused_or_read(tmp_path: Path) -> None:
    chance = random.Random(0)
    junk = [None, True, -1, 2**40, "", [[]], {}, {"variable": 0}, {"items": [[1, 2]]}, 1.5]

    def lie(manifest: Any) -> None:
        place, step = manifest, chance.choice(["modules", "variables"])
        while True:
            below = place[step]
            if not isinstance(below, (dict, list)) or not below or chance.random() < 0.2:
                place[step] = chance.choice(junk)
                return
            place = below
            step = chance.choice(list(below) if isinstance(below, dict) else range(len(below)))

    for i in range(60):
        path = forged(tmp_path / f"{i}.h5", manifest=lie)
        with contextlib.suppress(LoadError):
            gt.saving.read_weights(path)


def tensors(header: Any) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text


EMPTY = {"dtype": "F32", "data_offsets": [0, 0]}


@pytest.mark.parametrize(
    "header",
    [
        {"a": {**EMPTY, "shape": [0, 2**47, 2**47]}},
        {"a": {**EMPTY, "shape": [2**47] * 31 + [0]}},
        {"a": {**EMPTY, "dtype": "BF16", "shape": [2**41, 0, 2**41]}},
        {"\ud800": {**EMPTY, "shape": [0]}},
        {"__metadata__": {"\ud800": "a"}, "a": {**EMPTY, "shape": [0]}},
    ],
)
def test_safetensors_that_no_machine_can_hold_or_print_are_refused(
    header: Any, tmp_path: Path
) -> None:
    path = tmp_path / "f.safetensors"
    path.write_bytes(tensors(header))
    with pytest.raises(LoadError, match=str(path)):
        gt.saving.read_weights(path)
