"""Whatever is in a file: ``load``, ``inspect_text`` and ``verify`` raise errors of files alone."""

from __future__ import annotations

import contextlib
import copy
import math
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft, rewritten

import gradtape as gt

READERS: dict[str, Callable[[Path], Any]] = {
    "load": gt.load,
    "inspect": gt.saving.inspect_text,
    "verify": partial(gt.saving.verify, max_memory=math.inf, max_seconds=math.inf),
}


class Model(gt.Module):
    """Records of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = gt.Variable([1.0, 2.0, 3.0])
        self.dense = gt.layers.Dense(2, activation=lambda x: gt.tanh(x))
        self.parts = [self.dense, {"a": (gt.Variable(2.0), 0.5)}]
        self.dense(np.ones((2, 3), "float32"))
        self.dense.trainable = False

    @gt.function(input_signature=[gt.TensorSpec([None, 3])])
    def f(self, x: Any, n: int = 2) -> Any:
        @gt.custom_gradient
        def held(x: Any) -> Any:
            return gt.round(x), lambda g: g * 2.0

        return {"y": held(x) * self.scale, "n": (x[: x.shape[0] // 2] + gt.constant([1.0] * 3), n)}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "a.h5"
    gt.save(Model(), path)
    assert READERS["verify"](path).ok
    return path


def flat(draft: Draft) -> None:
    path = next(name for name in draft.arrays if name.startswith("/golden/"))
    draft.arrays[path] = np.array(1.0, draft.arrays[path].dtype)


def manifest(change: Callable[[Any], Any]) -> Callable[[Draft], None]:
    def edit(draft: Draft) -> None:
        record = draft.json()
        change(record)
        draft.put(record)

    return edit


def dense(record: Any) -> Any:
    return next(item for item in record["modules"] if item["class"] == "layers.Dense")


def deep(record: Any) -> None:
    """Let modules hold each other, thousands of them."""
    record["modules"][0]["attributes"] = {"next": {"module": len(record["modules"])}}
    start = len(record["modules"])
    for i in range(3000):
        item = copy.deepcopy(record["modules"][0])
        item |= {"functions": {}, "attributes": {"next": {"module": start + i + 1}}}
        record["modules"].append(item)
    record["modules"][-1]["attributes"] = {}


LIES: dict[str, Callable[[Draft], Any]] = {
    "golden values of no axes": flat,
    "a configuration that is a text": manifest(lambda m: dense(m).update(config="x")),
    "a configuration where there is no class": manifest(
        lambda m: m["modules"][0].update(config="x")
    ),
    "a function that is not there": manifest(lambda m: dense(m).update(functions={"__call__": 99})),
    "a function below 0": manifest(lambda m: dense(m).update(functions={"__call__": -1})),
    "golden values of an unknown choice": manifest(
        lambda m: m["functions"][0]["traces"][0]["golden"][0].update(elements="some")
    ),
    "golden values of a choice that is no text": manifest(
        lambda m: m["functions"][0]["traces"][0]["golden"][0].update(elements=[])
    ),
    "a signature that is a text": manifest(lambda m: m["signatures"].update(f="x")),
    "modules in modules": manifest(deep),
    "a manifest that is a list": lambda draft: draft.put([]),
    "a manifest that is no JSON": lambda draft: draft.put("{"),
    "a function that is a text": lambda draft: draft.put("x", "/functions/0"),
    "a surrogate": lambda draft: draft.put('{"name": "\\ud800"}', "/functions/0"),
}


@contextlib.contextmanager
def own_errors(path: Path) -> Iterator[None]:
    named = True
    try:
        yield
    except gt.saving.LoadError as error:
        named = str(path) in str(error)
    assert named


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_an_error_of_the_file(lie: str, reader: str, good: Path, tmp_path: Path) -> None:
    path = rewritten(good, LIES[lie], tmp_path / "b.h5")
    with own_errors(path):
        READERS[reader](path)


def test_a_lie_that_is_computed_with_is_refused(good: Path, tmp_path: Path) -> None:
    for lie in ("golden values of no axes", "a function that is not there"):
        path = rewritten(good, LIES[lie], tmp_path / "b.h5")
        with pytest.raises(gt.saving.DamagedFile):
            gt.saving.verify(path)


def places(tree: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield where every value of a JSON tree is."""
    keyed = tree if isinstance(tree, dict) else dict(enumerate(tree if type(tree) is list else ()))
    for key, item in keyed.items():
        yield (*here, key)
        yield from places(item, (*here, key))


VALUES: list[Any] = [None, True, -1, 99, 2**63, "x", "", "__class__", [], [[]], {}, {"tuple": 1}]


def changed(draft: Draft, seed: int) -> None:
    choice = random.Random(seed)
    text = choice.choice(sorted(draft.texts))
    record = draft.json(text)
    place = choice.choice(list(places(record)))
    holder = record
    for key in place[:-1]:
        holder = holder[key]
    if choice.random() < 0.1:
        del holder[place[-1]]
    else:
        holder[place[-1]] = copy.deepcopy(choice.choice(VALUES))
    draft.put(record, text)


@pytest.mark.parametrize("block", range(4))
def test_values_of_other_types_are_errors_of_the_file(
    block: int, good: Path, tmp_path: Path
) -> None:
    for seed in range(40 * block, 40 * (block + 1)):
        path = rewritten(good, partial(changed, seed=seed), tmp_path / f"{seed}.h5")
        for read in READERS.values():
            with own_errors(path):
                read(path)


def test_inspect_shows_a_file_that_was_saved_without_custom_gradients(tmp_path: Path) -> None:
    gt.save(Model(), tmp_path / "a.h5", custom_gradients=False)
    text = gt.saving.inspect_text(tmp_path / "a.h5")
    assert "custom gradient held (" in text


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "error", [MemoryError, RecursionError, OverflowError, KeyError, IndexError]
)
def test_errors_of_python_become_errors_of_the_file(
    error: type[Exception], reader: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise error("inside")

    monkeypatch.setattr("gradtape.saving.reading.contents.parse", fail)
    kind = gt.saving.UnsafeFile if error in (MemoryError, RecursionError) else gt.saving.DamagedFile
    with pytest.raises(kind, match=f"{error.__name__}|not fit into memory") as caught:
        READERS[reader](good)
    assert str(caught.value).startswith(str(good))
