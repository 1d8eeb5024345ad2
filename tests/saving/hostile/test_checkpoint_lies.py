"""Checkpoints that lie, with digests that are right: nothing but a LoadError comes of them."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rewriting import Draft

import gradtape as gt
from gradtape.saving import LoadError, SaveError
from gradtape.training import Adam, Checkpoint, CheckpointManager


class Kept:
    """An object that takes what it is given."""

    def __init__(self) -> None:
        self.state: Any = {"n": 1, "array": np.arange(3.0), "list": [np.arange(2), (1, None)]}

    def state_dict(self) -> Any:
        return self.state

    def load_state_dict(self, state: Any) -> None:
        first, second = state["list"]
        self.state = {"n": state["n"], "array": state["array"] + 0, "list": [first, second]}


def followed() -> tuple[Checkpoint, Any]:
    w, optimizer, rng, kept = gt.Variable([1.0, 2.0]), Adam(), np.random.default_rng(0), Kept()
    optimizer.apply_gradients([(gt.ones(2), w)])
    checkpoint = Checkpoint(w=w, optimizer=optimizer, rng=rng, kept=kept, step=3)

    def state() -> Any:
        variables = [v.numpy().tobytes() for v in (w, *optimizer.variables)]
        return variables, rng.bit_generator.state, repr(kept.state), checkpoint.step

    return checkpoint, state


def attributes(manifest: Any) -> Any:
    return manifest["modules"][0]["attributes"]


LIES: dict[str, Any] = {
    "no record": lambda m: m.pop("checkpoint"),
    "a record that is a list": lambda m: m.update(checkpoint=[]),
    "a record of what is no value": lambda m: m["checkpoint"].update(series={"float": "x"}),
    "no attributes": lambda m: m["modules"][0].pop("attributes"),
    "no variable of this number": lambda m: attributes(m).update(w={"variable": 99}),
    "a variable by a text": lambda m: attributes(m).update(w={"variable": "0"}),
    "a variable by a truth": lambda m: attributes(m).update(w={"variable": True}),
    "one variable twice": lambda m: attributes(m).update(w=attributes(m)["optimizer"]),
    "one dataset twice": lambda m: m["variables"][0].update(dataset=m["variables"][1]["dataset"]),
    "a dataset that is not there": lambda m: m["variables"][0].update(dataset="/variables/x"),
    "a text for a dataset": lambda m: m["variables"][0].update(dataset="/manifest"),
    "two tags": lambda m: attributes(m).update(w={"variable": 0, "value": 1}),
    "a dictionary that is none": lambda m: attributes(m).update(optimizer={"dict": [1]}),
    "a generator of another kind": lambda m: attributes(m).update(rng={"value": {"dict": {}}}),
    "a generator that is a number": lambda m: attributes(m).update(rng={"value": 3}),
    "a state without its keys": lambda m: attributes(m).update(kept={"dict": {}}),
    "a state of a strange kind": lambda m: attributes(m).update(kept={"set": []}),
    "a state with an op": lambda m: attributes(m)["kept"]["dict"].update(n={"op": "add"}),
    "a state with a part twice": lambda m: attributes(m)["kept"]["dict"].update(n={"same": 0}),
    "a state with a key twice": lambda m: attributes(m)["kept"]["dict"].update(
        n={"items": [[1, {"value": 1}], [1, {"value": 2}]]}
    ),
    "a state that is a number": lambda m: attributes(m).update(kept={"value": 3}),
    "half of a state": lambda m: attributes(m)["optimizer"]["dict"].pop("second_moments"),
    "too many": lambda m: attributes(m)["optimizer"]["dict"].update(more={"value": 1}),
    "a state for no variable": lambda m: attributes(m)["optimizer"]["dict"].update(
        first_moments={"dict": {"v": {"variable": 1}}}
    ),
    "a plain value in an optimizer": lambda m: attributes(m)["optimizer"]["dict"].update(
        iterations={"value": 1}
    ),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_refused_and_nothing_changes(lie: str, tmp_path: Path) -> None:
    checkpoint, state = followed()
    draft = Draft.of(Path(checkpoint.save(tmp_path / "now.h5")))
    manifest = draft.json()
    LIES[lie](manifest)
    draft.put(manifest)
    draft.write(tmp_path / "now.h5")
    before = state()
    with pytest.raises(LoadError):
        checkpoint.restore(tmp_path / "now.h5")
    assert state() == before


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Return every place in JSON: a container and a key."""
    found = []
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in list(keys):
        found += [(tree, key), *places(tree[key])]
    return found


@pytest.mark.filterwarnings("ignore:a checkpoint that cannot be read")
@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_changed_only_a_load_error_comes_of_it(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    checkpoint, state = followed()
    manager = CheckpointManager(checkpoint, tmp_path, keep=None, best="loss")
    path = Path(manager.save({"loss": 1.0}))
    good = Draft.of(path)
    before = state()
    for _ in range(60):
        draft = Draft(good.attributes, dict(good.texts), dict(good.arrays))
        manifest = draft.json()
        for _ in range(rng.choice([1, 1, 2])):
            container, key = rng.choice(places(manifest))
            value = rng.choice(
                [None, True, -1, 0, 7, "x", [], {}, [[]], {"value": 1}, {"dict": {}}]
            )
            if rng.random() < 0.2:
                del container[key]
            else:
                container[key] = value
        draft.put(manifest)
        try:
            draft.write(path)
            checkpoint.restore(path)
        except LoadError:
            assert state() == before
        else:  # what was changed is no part of the state
            checkpoint, state = followed()
            manager.checkpoint = checkpoint
            before = state()
        assert all(isinstance(name, str) for name in manager.checkpoints)
        assert isinstance(manager.summary(), str)


RUNS: dict[str, Any] = {
    "no epoch": lambda run: run.pop("epoch"),
    "an epoch that is a text": lambda run: run.update(epoch={"value": "1"}),
    "an epoch before the first": lambda run: run.update(epoch={"value": -1}),
    "a batch that is a truth": lambda run: run.update(batch={"value": True}),
    "a seed that is no number": lambda run: run.update(seed={"value": "0x3"}),
    "a history of texts": lambda run: run.update(history={"value": {"dict": {"loss": ["a"]}}}),
    "no random state": lambda run: run.update(random={"value": 0}),
    "sums of texts": lambda run: run.update(
        session={"value": {"dict": {"totals": {"dict": {"loss": "a"}}, "count": 1, "looked": []}}}
    ),
    "a callback that is a number": lambda run: run.update(callbacks={"value": [3]}),
    "no run": lambda run: run.clear(),
    "a seed below 0": lambda run: run.update(seed={"value": "-1"}),
    "a seed with spaces": lambda run: run.update(seed={"value": " 3_0 "}),
    "a seed of too many digits": lambda run: run.update(seed={"value": "9" * 5000}),
    "an epoch that no run reaches": lambda run: run.update(epoch={"value": 2**63}),
    "an epoch that does not follow": lambda run: run.update(epoch={"value": 7}),
    "epochs that fall": lambda run: run.update(epochs={"value": [1, 0]}),
    "epochs that are texts": lambda run: run.update(epochs={"value": ["0"]}),
    "epochs without end": lambda run: run.update(epochs={"value": [{"float": "inf"}]}),
    "a batch after the last": lambda run: run.update(batch={"value": 3}),
    "a batch that no run reaches": lambda run: run.update(batch={"value": 2**63}),
    "more values than epochs": lambda run: run.update(
        history={"value": {"dict": {"loss": [{"float": "1.0"}] * 3}}}
    ),
    "a count below 0": lambda run: run.update(
        session={"value": {"dict": {"totals": {"dict": {"loss": 1}}, "count": -1, "looked": []}}}
    ),
    "callbacks that are a text": lambda run: run.update(callbacks={"value": "abc"}),
    "the state of data that has none": lambda run: run.update(source={"value": "x"}),
}


class Watcher:
    """A callback with a state, and with methods that no file shall replace."""

    def __init__(self) -> None:
        self.seen = 0

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        self.count()

    def count(self) -> None:
        self.seen += 1


def fitted(path: Path, callback: Any, epochs: int) -> Any:
    gt.random.set_seed(0)
    model, optimizer = gt.layers.Sequential([gt.layers.Dense(1)]), Adam()
    options = {"loss": "mse", "verbose": False, "seed": 0, "optimizer": optimizer}
    gt.training.fit(
        model,
        (np.ones((4, 2)), np.ones((4, 1))),
        epochs=epochs,
        checkpoint=path,
        resume=True,
        callbacks=[callback],
        **options,
    )
    return model


@pytest.mark.parametrize("lie", RUNS)
def test_a_lie_about_a_run_is_refused(lie: str, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    fitted(path, Watcher(), 1)
    draft = Draft.of(path)
    manifest = draft.json()
    RUNS[lie](attributes(manifest)["fit"]["dict"])
    draft.put(manifest)
    draft.write(path)
    with pytest.raises(LoadError):
        fitted(path, Watcher(), 2)


def test_a_file_replaces_no_method_of_a_callback(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    fitted(path, Watcher(), 1)
    draft = Draft.of(path)
    manifest = draft.json()
    run = attributes(manifest)["fit"]["dict"]
    (record,) = run["callbacks"]["value"]
    now = record["dict"]["state"]["dict"]["now"]["dict"]
    assert now["seen"] == 1
    now |= {"count": 5, "__class__": 5, "new": 5}
    draft.put(manifest)
    draft.write(path)
    watcher = Watcher()
    fitted(path, watcher, 2)
    assert watcher.seen == 2
    assert vars(watcher) == {"seen": 2, "new": 5}


class Counter(gt.training.Callback):
    """The same, of the class that fit sets attributes of."""

    def __init__(self) -> None:
        self.seen = 0

    def on_epoch_end(self, epoch: int, logs: Any) -> None:
        self.seen += 1


def set_in_callback(path: Path, values: dict[str, Any]) -> None:
    draft = Draft.of(path)
    manifest = draft.json()
    (record,) = attributes(manifest)["fit"]["dict"]["callbacks"]["value"]
    state = record["dict"]["state"]["dict"]
    (state["now"]["dict"] if "now" in state else state).update(values)
    draft.put(manifest)
    draft.write(path)


@pytest.mark.parametrize("kind", [Watcher, Counter])
def test_a_file_sets_nothing_that_fit_sets_or_calls(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    fitted(path, kind(), 1)
    names = (
        "state_dict load_state_dict on_train_begin on_batch_begin on_epoch_begin params measured "
        "model optimizer own_steps _asks_to_stop __doc__ __len__ __iter__ _gradtape_hooks"
    ).split()
    set_in_callback(path, dict.fromkeys([*names, "a b", "", "1"], "x"))
    callback = kind()
    fitted(path, callback, 3)
    assert callback.seen == 3
    assert "x" not in vars(callback).values()
    fitted(path, callback, 4)
    assert callback.seen == 4


def reversed_list(known: Any) -> Any:
    return {"list": known["list"][::-1]}


STOPPING: dict[str, tuple[str, Any]] = {
    "a text for the best value": ("best", lambda known: {"value": "x"}),
    "a text for a count": ("wait", lambda known: {"value": "x"}),
    "a list for a count": ("wait", lambda known: {"value": [1]}),
    "a dictionary for an epoch": ("best_epoch", lambda known: {"value": {"dict": {}}}),
    "weights in another order": ("weights", reversed_list),
    "one weight too many": ("weights", lambda known: {"list": [*known["list"], {"value": 1}]}),
    "a tuple of weights": ("weights", lambda known: {"tuple": known["list"]}),
}


@pytest.mark.parametrize("lie", STOPPING)
def test_early_stopping_takes_only_its_own_state(lie: str, tmp_path: Path) -> None:
    def stopping() -> Any:
        return gt.training.EarlyStopping("loss", patience=5, restore_best_weights=True)

    path, (name, change) = tmp_path / "run.h5", STOPPING[lie]
    fitted(path, stopping(), 1)
    fitted(path, stopping(), 2)
    draft = Draft.of(path)
    manifest = draft.json()
    (record,) = attributes(manifest)["fit"]["dict"]["callbacks"]["list"]
    state = record["dict"]["state"]["dict"]
    state[name] = change(state[name])
    draft.put(manifest)
    draft.write(path)
    with pytest.raises(LoadError, match=f"EarlyStopping: {name}"):
        fitted(path, stopping(), 3)


def in_the_way(folder: Path, kind: str) -> None:
    name = folder / "checkpoint-00002.h5"
    if kind == "a link to itself":
        name.symlink_to(name.name)
    elif kind == "a link to nothing":
        name.symlink_to("nothing")
    elif kind == "a device":
        name.symlink_to("/dev/zero")
    elif kind == "a pipe":
        os.mkfifo(name)
    elif kind == "a folder":
        name.mkdir()
    else:
        (folder / "checkpoint-000001.h5").write_bytes(b"x")


@pytest.mark.skipif(os.name == "nt", reason="needs links and pipes")
@pytest.mark.filterwarnings("ignore:a checkpoint that cannot be read")
@pytest.mark.parametrize(
    "kind",
    ["a link to itself", "a link to nothing", "a device", "a pipe", "a folder", "a twin's number"],
)
def test_folders_with_something_in_the_way_work(kind: str, tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=1), tmp_path)
    first = manager.save({"loss": 1.0})
    in_the_way(tmp_path, kind)
    assert manager.latest == first
    assert Path(first).name in manager.summary()
    assert manager.restore() is not None
    saved = manager.save()
    assert saved == manager.latest != first


def test_no_number_after_the_last_is_taken_without_a_word(tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=1), tmp_path)
    (tmp_path / f"checkpoint-{'9' * 18}.h5").write_bytes(b"x")
    with pytest.raises(SaveError, match=r"no number is left.*9999"):
        manager.save()


def test_summaries_print_nothing_that_steers_a_terminal(tmp_path: Path) -> None:
    manager = CheckpointManager(Checkpoint(step=1), tmp_path)
    manager.save({"\x1b[31mloss\n\u202e": 1.0})
    line = manager.summary().splitlines()
    assert len(line) == 2
    assert line[1].isprintable()


@pytest.mark.parametrize("steps", [-1, 2**62, 2**63 - 1])
def test_a_number_of_steps_that_is_none_is_refused(steps: int, tmp_path: Path) -> None:
    """A power of it would be infinite, or divided by 0."""
    checkpoint, state = followed()
    path = Path(checkpoint.save(tmp_path / "now.h5"))
    draft = Draft.of(path)
    draft.arrays["/variables/optimizer/iterations"] = np.array(steps, np.int64)
    draft.write(path)
    before = state()
    with pytest.raises(LoadError, match="no number of steps"):
        checkpoint.restore(path)
    assert state() == before

    module = gt.Module("m")
    module.optimizer = Adam()
    gt.save(module, path)
    draft = Draft.of(path)
    draft.arrays["/variables/optimizer/iterations"] = np.array(steps, np.int64)
    draft.write(path)
    for lazy in (False, True):
        with pytest.raises(LoadError, match="no number of steps"):
            gt.load(path, lazy=lazy)


@pytest.mark.parametrize("kind", ["list", "number", "another shape", "another dtype"])
def test_what_a_constructor_made_a_variable_stays_one_like_it(kind: str, tmp_path: Path) -> None:
    module = gt.Module("m")
    module.optimizer, module.other = Adam(), gt.Variable([1.0, 2.0])
    path = tmp_path / "m.h5"
    gt.save(module, path)
    draft = Draft.of(path)
    manifest = draft.json()
    held = manifest["modules"][0]["attributes"]
    (optimizer,) = (m for m in manifest["modules"] if m["class"])
    place = "iterations" if kind == "another dtype" else "learning_rate"
    found = optimizer["attributes"][place]
    new = {"list": [found]} if kind == "list" else held["other"]
    if kind == "number":
        new = {"value": 1}
    if kind == "another dtype":
        new = optimizer["attributes"]["learning_rate"]
    optimizer["attributes"][place] = new
    draft.put(manifest)
    draft.write(path)
    with pytest.raises(LoadError):
        gt.load(path)


def test_a_stream_of_random_numbers_has_a_seed_and_a_count(tmp_path: Path) -> None:
    module = gt.Module("m")
    module.drop = gt.random.Generator(3)
    path = tmp_path / "m.h5"
    gt.save(module, path)
    draft = Draft.of(path)
    (place,) = (name for name in draft.arrays if name.startswith("/variables"))
    draft.arrays[place] = np.array([-5, 3], np.int64)
    draft.write(path)
    for lazy in (False, True):
        with pytest.raises(LoadError, match="seed and count"):
            gt.load(path, lazy=lazy)

    checkpoint = Checkpoint(rng=gt.random.Generator(3))
    checkpoint.save(path)
    draft = Draft.of(path)
    (place,) = (name for name in draft.arrays if name.startswith("/variables"))
    draft.arrays[place] = np.array([5, -3], np.int64)
    draft.write(path)
    with pytest.raises(LoadError, match="seed and count"):
        checkpoint.restore(path)


def test_a_file_that_cannot_be_removed_does_not_end_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "not yours", path)

    manager = CheckpointManager(Checkpoint(step=1), tmp_path, keep=1)
    manager.save()
    monkeypatch.setattr(os, "unlink", refuse)
    with pytest.warns(UserWarning, match=r"cannot be removed.*00001\.h5"):
        assert manager.save().endswith("00002.h5")
