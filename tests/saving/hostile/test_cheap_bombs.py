"""Small files that would take long, or much, to load or to look at."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from forge import forged, root
from machine import seconds_of

import gradtape as gt
from gradtape.saving import LoadError, UnsafeFile


def attributes(m: Any) -> dict[str, Any]:
    found: dict[str, Any] = root(m)["attributes"]
    return found


def alike(count: int) -> list[dict[str, Any]]:
    """Return numbers of which all have the same hash, whatever the process."""
    return [{"complex": [str(-1_000_003 * i), str(i)]} for i in range(count)]


def lists_of_lists(m: Any) -> None:
    ours: dict[str, Any] = {"a0": {"list": [{"value": 1}, {"variable": 0}]}}
    ours |= {f"a{i}": {"list": [{"same": i - 1}] * 8} for i in range(1, 40)}
    root(m)["attributes"] = {**ours, **attributes(m)}


def dictionaries_of_themselves(m: Any) -> None:
    again = {str(i): {"same": 0} for i in range(8)}
    root(m)["attributes"] = {"a": {"dict": again}, **attributes(m)}


def chain(m: Any) -> None:
    """Put 3,000 modules into each other: their paths have 270 million characters."""
    modules, first = m["modules"], len(m["modules"])
    twin = {"name": "a", "class": None, "class_name": "A", "functions": {}}
    for i in range(3000):
        below = {"a" * 60: {"module": first + i + 1}} if i < 2999 else {}
        modules.append({**twin, "attributes": below})
    attributes(m)["deep"] = {"module": first}


def chain_of_callers(m: Any) -> None:
    """Put 3,000 modules into each other of which each has a graph."""
    chain(m)
    for module in m["modules"][-3000:]:
        module["functions"] = {"__call__": 0}


def absorbed(m: Any) -> None:
    root(m)["absorbed"] = [f"x{i}" for i in range(40_000)]
    attributes(m).update({f"y{i}": {"value": 1} for i in range(10_000)})


BOMBS: dict[str, Callable[[Any], Any]] = {
    "a set of numbers of one hash": lambda m: attributes(m).update(
        n={"set": [{"value": x} for x in alike(30_000)]}
    ),
    "keys of one hash": lambda m: attributes(m).update(
        n={"items": [[x, {"value": 1}] for x in alike(24_000)]}
    ),
    "tuples of one hash": lambda m: attributes(m).update(
        n={"frozenset": [{"tuple": [{"value": x}]} for x in alike(24_000)]}
    ),
    "lists that hold lists eight times, 40 deep": lists_of_lists,
    "one list in many attributes": lambda m: root(m).update(
        attributes={
            "a0": {"list": [{"variable": 0}, *({"value": 1} for _ in range(20_000))]},
            **{f"a{i}": {"same": 0} for i in range(1, 20_000)},
            **attributes(m),
        }
    ),
    "a dictionary that holds itself": dictionaries_of_themselves,
    "a long chain of modules": chain,
    "a long chain of modules with graphs": chain_of_callers,
    "many names that are absorbed": absorbed,
    "many lists in lists": lambda m: attributes(m).update(
        n={"list": [{"list": []} for _ in range(30_000)]}
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_small_files_take_little_to_load_and_to_look_at(bomb: str, tmp_path: Path) -> None:
    path = forged(tmp_path / "f.h5", manifest=BOMBS[bomb])
    assert path.stat().st_size < 2**21

    def look(model: Any) -> None:
        assert len(repr(model)) < 1000
        assert model.variables
        model.summary()

    for act in (lambda: look(gt.load(path)), lambda: gt.saving.read_weights(path)):
        start = time.thread_time()
        refused = ""
        try:
            act()
        except LoadError as error:
            refused = str(error)
        assert not refused or refused.startswith(str(path))
        assert time.thread_time() - start < seconds_of(4.0)  # it takes some tenths of a second


def test_long_paths_take_little_memory(tmp_path: Path) -> None:
    path = forged(tmp_path / "f.h5", manifest=chain)
    acts: list[Callable[[Path], Any]] = [gt.load, gt.saving.read_weights]
    for act in acts:
        tracemalloc.start()
        with pytest.raises(UnsafeFile, match="too long together"):
            act(path)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < 100 * 2**20


def test_a_few_keys_of_one_hash_are_kept(tmp_path: Path) -> None:
    path = forged(
        tmp_path / "f.h5",
        manifest=lambda m: attributes(m).update(n={"items": [[x, {"value": 1}] for x in alike(9)]}),
    )
    assert len(gt.load(path).n) == 9


def test_more_keys_of_one_hash_are_refused_in_words(tmp_path: Path) -> None:
    path = forged(
        tmp_path / "f.h5",
        manifest=lambda m: attributes(m).update(n={"set": [{"value": x} for x in alike(300)]}),
    )
    with pytest.raises(UnsafeFile, match="the same hash"):
        gt.load(path)
