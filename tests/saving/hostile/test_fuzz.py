"""Mutated JSON with digests that are right: a LoadError or a model, never anything else."""

from __future__ import annotations

import copy
import os
from pathlib import Path
from typing import Any

import pytest
from forge import forged, good
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rewriting import Draft

import gradtape as gt
from gradtape.saving import LoadError


def _places(tree: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: Any = ()
    if isinstance(tree, dict):
        items = tree.items()
    elif isinstance(tree, list):
        items = enumerate(tree)
    found = [place] if place else []
    for key, value in items:
        found += _places(value, (*place, key))
    return found


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 12),
    st.sampled_from([2**31, 2**63, -(2**63), 2**64, 2**48]),
    st.sampled_from(["", "x", "float32", "object", "multiply", "sum", "__class__", "/variables/w"]),
    st.text(max_size=5),
    st.sampled_from(
        [
            [],
            {},
            [[]],
            {"tuple": []},
            {"float": "nan"},
            {"spec": {}},
            {"output": 0},
            {"value": 1},
            {"variable": 0},
            {"module": 0},
            {"dict": {}},
            {"scalar": 2},
            {"shape": None, "dtype": "int8"},
        ]
    ),
)


@pytest.fixture(scope="module")
def workbench(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Any]]:
    path = good(tmp_path_factory.mktemp("fuzz") / "fuzz.h5")
    path.with_suffix(".good").write_bytes(path.read_bytes())
    draft = Draft.of(path)
    names = sorted(x for x in draft.texts if x != "/manifest")
    documents = [draft.json(), *map(draft.json, names)]
    return path, documents


@settings(
    max_examples=int(os.environ.get("GRADTAPE_FUZZ", "250")),
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_mutated_json_gives_a_load_error_or_a_model(
    workbench: tuple[Path, list[Any]], data: st.DataObject
) -> None:
    path, documents = workbench
    template = path.with_suffix(".good").read_bytes()
    documents = copy.deepcopy(documents)
    for _ in range(data.draw(st.integers(1, 3))):
        document = documents[data.draw(st.integers(0, len(documents) - 1))]
        # by depth first, so that the few places near the root are not lost among the many below
        places = _places(document)
        depth = data.draw(st.sampled_from(sorted({len(p) for p in places})))
        place = data.draw(st.sampled_from([p for p in places if len(p) == depth]))
        target = document
        for key in place[:-1]:
            target = target[key]
        action = data.draw(st.sampled_from(["replace", "delete", "copy", "repeat"]))
        if action == "delete":
            del target[place[-1]]
        elif action == "copy":
            other = data.draw(st.sampled_from(places))
            source: Any = document
            try:
                for key in other:
                    source = source[key]
            except (KeyError, IndexError, TypeError):
                continue
            target[place[-1]] = copy.deepcopy(source)
        elif action == "repeat" and isinstance(target, list):
            target.insert(place[-1], copy.deepcopy(target[place[-1]]))
        else:
            target[place[-1]] = data.draw(JUNK)
    path.write_bytes(template)

    def graphs(records: list[Any]) -> None:
        records[:] = documents[1:]

    forged(path, manifest=lambda _: documents[0], graphs=graphs)
    for read in (lambda: gt.load(path).summary(), lambda: gt.saving.inspect_text(path)):
        try:
            read()
        except LoadError as error:
            if not str(error).startswith(str(path)):
                raise
